//! `{"conversation": NAME, "lint": PROVIDER}`

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Provider;
use crate::error::InField as _;
use crate::provider_view::RenderWarning;
use crate::{At, Error, Fields, Perform, ProviderView, Recipient, Service, ShownFinding, schema};

/// Finds content of the view that violates a rule of a provider.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Lint<'a> {
    /// The conversation: its whole name, or its id.
    pub conversation: String,
    /// The provider.
    pub lint: Provider,
    /// The model.
    pub model: Option<String>,
    /// The version of the provider's API, such as `2026-10-21` at Anthropic. Default: the oldest.
    pub api_version: Option<String>,
    /// Other fields of the provider request, such as `thinking`. Some rules depend on them.
    #[serde(borrow)]
    #[schemars(with = "Option<BTreeMap<String, schema::Anything>>")]
    pub fields: Option<Fields<'a>>,
    /// The version to read. Default: the newest.
    pub at: Option<At>,
}

/// Content of a view that violates a rule of a provider.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Findings {
    /// The findings.
    pub findings: Vec<ShownFinding>,
    /// Warnings about the view: `placeholder`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<RenderWarning>,
}

impl Perform for Lint<'_> {
    type Response = Findings;

    async fn perform(self, service: &Service) -> Result<Findings, Error> {
        let conversation = service.conversation(&self.conversation).await?;
        let version = match self.at {
            Some(At(version)) => version,
            None => conversation.handle.version().await?,
        };
        let sent = ProviderView::at(&conversation.handle, version).await.in_field("at")?;
        let fields = self.fields.as_ref().map_or(&[][..], |fields| &fields.0.0);
        let fields: Vec<(&str, &str)> =
            fields.iter().map(|(name, json)| (&**name, json.get())).collect();
        let to = Recipient {
            target: self.lint.0,
            model: self.model.as_deref(),
            api_version: self.api_version.as_deref(),
        };
        let findings = sent.lint(to, &fields);
        let warnings = sent.placeholder_warning().into_iter().collect();
        Ok(Findings { findings: sent.findings(&findings), warnings })
    }
}
