//! `{"conversation": NAME, "marks": true}`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::entry::marked;
use crate::error::InField as _;
use crate::{At, Error, MarkedEntries, Perform, Service, True};

/// The marks on log entries.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Marks {
    /// The conversation: its whole name, or its id.
    pub conversation: String,
    /// `true`.
    pub marks: True,
    /// The version to read. Default: the newest.
    pub at: Option<At>,
}

/// The marks of a conversation.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct MarkList {
    /// The conversation's name.
    pub conversation: String,
    /// The marks, in alphabetical order.
    pub marks: Vec<MarkedEntries>,
}

impl Perform for Marks {
    type Response = MarkList;

    async fn perform(self, service: &Service) -> Result<MarkList, Error> {
        let conversation = service.conversation(&self.conversation).await?;
        let marks = match self.at {
            Some(At(version)) => conversation.handle.marks_at(version).await.in_field("at")?,
            None => conversation.handle.marks().await?,
        };
        Ok(MarkList { conversation: conversation.name, marks: marked(marks) })
    }
}
