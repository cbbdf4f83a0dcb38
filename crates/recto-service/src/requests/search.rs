//! `{"search": TEXT, "limit": COUNT}`

use recto::LogIndex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::entry::entries_at;
use crate::{Error, Perform, Service, ShownEntry};

/// Finds messages that contain all words of a text, visible or hidden, in all conversations.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Search {
    /// The text. A word is a run of letters and digits. It is compared as a whole and without case.
    pub search: String,
    /// Maximum number of messages. Default: 1000.
    pub limit: Option<u64>,
}

/// The messages that a search found.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SearchResults {
    /// The text that was searched for.
    pub text: String,
    /// The messages: those of the newest conversation first, and of each conversation the newest first.
    pub messages: Vec<SearchHit>,
}

/// A message that a search found.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SearchHit {
    /// The name of the conversation that the message was added to. If that one was removed, the name of a fork
    /// that shares the message.
    pub conversation: String,
    /// The entry.
    #[serde(flatten)]
    pub entry: ShownEntry,
}

impl Perform for Search {
    type Response = SearchResults;

    async fn perform(self, service: &Service) -> Result<SearchResults, Error> {
        let Search { search: text, limit } = self;
        let limit = usize::try_from(limit.unwrap_or(1_000)).unwrap_or(usize::MAX);
        let recto = service.recto();
        let found = match recto.search(&text, limit).await {
            Err(recto::Error::Store(recto::StoreError::NoSearch)) => {
                recto.search_without_index(&text, limit).await?
            }
            found => found?,
        };
        let mut messages = Vec::new();
        // The hits of a conversation follow each other, so each run is read with one query.
        for hits in found.chunk_by(|one, next| one.conversation == next.conversation) {
            let conversation = service.conversation(&hits[0].conversation).await?;
            let indices: Vec<LogIndex> = hits.iter().map(|hit| hit.index).collect();
            let entries = entries_at(&conversation.handle, &indices).await?;
            messages.extend(entries.into_iter().map(|entry| {
                let conversation = hits[0].conversation.clone();
                SearchHit { conversation, entry }
            }));
        }
        Ok(SearchResults { text, messages })
    }
}
