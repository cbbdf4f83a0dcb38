//! `{"conversation": NAME, "rename": NEW}`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Error, Perform, Service};

/// Gives a conversation another name.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rename {
    /// The conversation: its whole name, or its id.
    pub conversation: String,
    /// The new name.
    pub rename: String,
    /// Whether only the response is wanted, and nothing is changed. Default: `false`.
    pub dry_run: Option<bool>,
}

/// A conversation that was renamed.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Renamed {
    /// The name before.
    pub from: String,
    /// The new name.
    pub to: String,
    /// Whether nothing was changed.
    pub dry_run: bool,
}

impl Perform for Rename {
    type Response = Renamed;

    async fn perform(self, service: &Service) -> Result<Renamed, Error> {
        let (to, dry_run) = (self.rename, self.dry_run.unwrap_or(false));
        let conversation = service.conversation(&self.conversation).await?;
        let from = conversation.name;
        if !dry_run {
            service.recto().rename(&from, &to).await?;
            service.forget(&from);
        } else if service.recto().info(&to).await.is_ok() {
            return Err(recto::StoreError::ConversationExists { name: to }.into());
        }
        Ok(Renamed { from, to, dry_run })
    }
}
