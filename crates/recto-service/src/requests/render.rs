//! `{"conversation": NAME, "render": PROVIDER}`

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use serde_json::value::RawValue;

use crate::Provider;
use crate::error::InField as _;
use crate::provider_view::RenderWarning;
use crate::{At, Error, Fields, Perform, ProviderView, Recipient, Service, ShownFinding, schema};

/// Renders the view as a provider request, with repairs.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Render<'a> {
    /// The conversation: its whole name, or its id.
    pub conversation: String,
    /// The provider.
    pub render: Provider,
    /// The model. It becomes a field of the provider request, except for `gemini` and `bedrock-converse`,
    /// where it is part of the URL.
    pub model: Option<String>,
    /// The version of the provider's API, such as `2026-10-21` at Anthropic. Default: the oldest.
    pub api_version: Option<String>,
    /// Other fields of the provider request.
    #[serde(borrow)]
    #[schemars(with = "Option<BTreeMap<String, schema::Anything>>")]
    pub fields: Option<Fields<'a>>,
    /// The version to read. Default: the newest.
    pub at: Option<At>,
}

/// A view as a provider request.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Rendered {
    /// The provider request.
    #[schemars(with = "schema::Anything")]
    pub request: Box<RawValue>,
    /// The repairs.
    pub repairs: Vec<ShownFinding>,
    /// Warnings about the view and the provider request.
    pub warnings: Vec<RenderWarning>,
}

impl Perform for Render<'_> {
    type Response = Rendered;

    async fn perform(self, service: &Service) -> Result<Rendered, Error> {
        let fields = self.fields.as_ref().map_or(&[][..], |fields| &fields.0.0);
        let fields: Vec<(&str, &str)> =
            fields.iter().map(|(name, json)| (&**name, json.get())).collect();
        let conversation = service.conversation(&self.conversation).await?;
        let handle = &conversation.handle;
        let version = match self.at {
            Some(at) => at.0,
            None => handle.version().await?,
        };
        let sent = ProviderView::at(handle, version).await.in_field("at")?;
        let to = Recipient {
            target: self.render.0,
            model: self.model.as_deref(),
            api_version: self.api_version.as_deref(),
        };
        let rendered = sent.render(to, &fields)?;
        let warnings = sent.render_warnings(&handle.warnings_at(version).await?, &rendered);
        let repairs = sent.findings(&rendered.findings);
        let request = RawValue::from_string(rendered.body).map_err(std::io::Error::other);
        let request = request.map_err(recto_format::Error::Io)?;
        Ok(Rendered { request, repairs, warnings })
    }
}
