//! `{"conversation": NAME, "fork": {"name": NEW, "at": VERSION}}`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ArrayState;
use super::state::state_after;
use crate::error::InField as _;
use crate::{At, Error, ForkOrigin, Include, NamedConversation, Perform, Service};

/// Forks a conversation at a version, without copying messages.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Fork {
    /// The conversation: its whole name, or its id.
    pub conversation: String,
    /// The name of the fork, and the version.
    #[serde(deserialize_with = "crate::values::object")]
    pub fork: ForkOptions,
    /// Additional fields of the response: `["state"]`. Default: none.
    #[serde(rename = "return", default, deserialize_with = "crate::values::or_default")]
    #[schemars(with = "Option<Vec<Include>>")]
    pub include: Vec<Include>,
}

/// Options of `fork`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "an object {name, at?}")]
pub struct ForkOptions {
    /// The name of the fork.
    pub name: String,
    /// The version to fork at. Default: the newest.
    pub at: Option<At>,
}

/// A fork.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Forked {
    /// The name of the fork.
    pub conversation: String,
    /// Its id.
    pub id: String,
    /// Where it was forked.
    pub from: ForkOrigin,
    /// The state of the fork, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<ArrayState>,
}

impl Perform for Fork {
    type Response = Forked;

    async fn perform(self, service: &Service) -> Result<Forked, Error> {
        let ForkOptions { name, at } = self.fork;
        let from = service.conversation(&self.conversation).await?;
        let at = match at {
            Some(At(version)) => version,
            None => from.handle.version().await?,
        };
        let handle = from.handle.fork(&name, at).await.in_field("fork.at")?;
        service.cache(&name, &handle);
        let fork = NamedConversation { name, handle };
        let state = state_after(&self.include, &fork, Some(at)).await?;
        let id = fork.handle.id().to_string();
        let from = ForkOrigin { conversation: from.name, version: at.0 };
        Ok(Forked { conversation: fork.name, id, from, state })
    }
}
