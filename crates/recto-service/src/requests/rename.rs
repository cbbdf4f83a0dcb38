//! `{"conversation": NAME, "rename": NEW}`

use recto::StoreError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ArrayState;
use super::apply::check_dry_run;
use super::state::state_after;
use crate::{Error, Include, Perform, Service};

/// Renames a conversation.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rename {
    /// The conversation: its whole name, or its id.
    pub conversation: String,
    /// The new name.
    pub rename: String,
    /// Whether to return the response of the change without making it. Default: `false`.
    pub dry_run: Option<bool>,
    /// Additional fields of the response: `["state"]`. Default: none.
    #[serde(rename = "return", default, deserialize_with = "crate::values::or_default")]
    #[schemars(with = "Option<Vec<Include>>")]
    pub include: Vec<Include>,
}

/// A conversation that was renamed.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Renamed {
    /// The name before.
    pub from: String,
    /// The new name.
    pub to: String,
    /// Whether this is a dry run, which changes nothing.
    pub dry_run: bool,
    /// The state of the conversation, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<ArrayState>,
}

impl Perform for Rename {
    type Response = Renamed;

    async fn perform(self, service: &Service) -> Result<Renamed, Error> {
        let (to, dry_run) = (self.rename, self.dry_run.unwrap_or(false));
        check_dry_run(dry_run, None, &self.include)?;
        let conversation = service.conversation(&self.conversation).await?;
        let from = conversation.name.clone();
        if !dry_run {
            service.recto().rename(&from, &to).await?;
            service.forget(&from);
        } else {
            recto::check_name(&to)?;
            match service.recto().info(&to).await {
                Err(recto::Error::Store(StoreError::ConversationNotFound { .. })) => {}
                Ok(_) => return Err(StoreError::ConversationExists { name: to }.into()),
                Err(error) => return Err(error.into()),
            }
        }
        let state = state_after(&self.include, &conversation, None).await?;
        Ok(Renamed { from, to, dry_run, state })
    }
}
