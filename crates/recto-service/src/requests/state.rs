//! `{"conversation": NAME, "state": true}`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::InField as _;
use crate::{At, Error, Include, NamedConversation, Perform, Service, True, schema};

/// The visible messages, and a snapshot of each batch below the current one.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct State {
    /// The conversation: its whole name, or its id.
    pub conversation: String,
    /// `true`.
    pub state: True,
    /// The version to read. Default: the newest.
    pub at: Option<At>,
}

/// The visible messages, and a snapshot of each batch below the current one.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct ArrayState(#[schemars(with = "schema::State")] pub recto::ArrayState);

impl Perform for State {
    type Response = ArrayState;

    async fn perform(self, service: &Service) -> Result<ArrayState, Error> {
        let conversation = service.conversation(&self.conversation).await?;
        Ok(ArrayState(match self.at {
            Some(At(version)) => conversation.handle.state_at(version).await.in_field("at")?,
            None => conversation.handle.state().await?,
        }))
    }
}

/// The state at a version, if the caller asks for it. Without a version, the state at the newest one.
pub(super) async fn state_after(
    include: &[Include],
    conversation: &NamedConversation,
    version: Option<recto::Version>,
) -> Result<Option<ArrayState>, Error> {
    match (include.contains(&Include::State), version) {
        (false, _) => Ok(None),
        (true, Some(version)) => Ok(Some(ArrayState(conversation.handle.state_at(version).await?))),
        (true, None) => Ok(Some(ArrayState(conversation.handle.state().await?))),
    }
}
