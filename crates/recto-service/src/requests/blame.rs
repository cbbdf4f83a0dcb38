//! `{"conversation": NAME, "blame": INDEX}`

use recto::LogIndex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::entry::{entries_at, index_of};
use crate::error::InField as _;
use crate::{Error, Perform, Service, ShownEntry, schema};

/// Lists the versions that added, hid or restored a log entry, and those that added or removed a mark of it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Blame {
    /// The conversation: its whole name, or its id.
    pub conversation: String,
    /// The log index of the entry.
    pub blame: u64,
}

/// The history of a log entry.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct EntryHistory {
    /// The conversation's name.
    pub conversation: String,
    /// The log index of the entry.
    #[schemars(with = "u32")]
    pub index: LogIndex,
    /// The entry.
    pub entry: Option<ShownEntry>,
    /// The versions that added, hid or restored it, oldest first.
    #[schemars(with = "Vec<schema::Blame>")]
    pub history: Vec<recto::Blame>,
    /// The versions that added a mark to it or removed one, oldest first. Missing if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::MarkBlame>")]
    pub marks: Vec<recto::MarkBlame>,
}

impl Perform for Blame {
    type Response = EntryHistory;

    async fn perform(self, service: &Service) -> Result<EntryHistory, Error> {
        let index = index_of(self.blame);
        let conversation = service.conversation(&self.conversation).await?;
        let history = conversation.handle.blame(index).await.in_field("blame")?;
        let marks = conversation.handle.blame_marks(index).await.in_field("blame")?;
        let entry = entries_at(&conversation.handle, &[index]).await?.into_iter().next();
        Ok(EntryHistory { conversation: conversation.name, index, entry, history, marks })
    }
}
