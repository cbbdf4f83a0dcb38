//! `{"conversation": NAME, "lint": PROVIDER}`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::InField as _;
use crate::values::Provider;
use crate::{At, Error, Perform, ProviderView, Service, ShownFinding};

/// Finds content of the view that a provider would reject.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Lint {
    /// The conversation: its whole name, or its id.
    pub conversation: String,
    /// The provider.
    pub lint: Provider,
    /// The model.
    pub model: Option<String>,
    /// The version to read. Default: the newest.
    pub at: Option<At>,
}

/// Content of a view that a provider would reject.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Findings {
    /// The findings.
    pub findings: Vec<ShownFinding>,
}

impl Perform for Lint {
    type Response = Findings;

    async fn perform(self, service: &Service) -> Result<Findings, Error> {
        let conversation = service.conversation(&self.conversation).await?;
        let version = match self.at {
            Some(At(version)) => version,
            None => conversation.handle.version().await?,
        };
        let sent = ProviderView::at(&conversation.handle, version).await.in_field("at")?;
        let findings = sent.lint(self.lint.0, self.model.as_deref());
        Ok(Findings { findings: sent.findings(&findings) })
    }
}
