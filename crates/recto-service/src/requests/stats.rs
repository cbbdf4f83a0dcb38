//! `{"conversation": NAME, "stats": true}`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Error, Perform, Service, True, schema};

/// The numbers of messages, batches and tokens of a conversation.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Stats {
    /// The conversation: its whole name, or its id.
    pub conversation: String,
    /// `true`.
    pub stats: True,
}

/// The numbers of messages, batches and tokens of a conversation.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct ConversationStats(#[schemars(with = "schema::Stats")] pub recto::Stats);

impl Perform for Stats {
    type Response = ConversationStats;

    async fn perform(self, service: &Service) -> Result<ConversationStats, Error> {
        let conversation = service.conversation(&self.conversation).await?;
        Ok(ConversationStats(conversation.handle.stats().await?))
    }
}
