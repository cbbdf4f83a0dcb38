//! `{"conversation": NAME, "info": true}`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ListedConversation;
use crate::entry::marked;
use crate::{Error, MarkedEntries, Perform, Service, True, schema};

/// The figures, tools, marks and warnings of a conversation.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Info {
    /// The conversation: its whole name, or its id.
    pub conversation: String,
    /// `true`.
    pub info: True,
}

/// The figures, tools, marks and warnings of a conversation.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ConversationSummary {
    /// The fields that `list` returns for a conversation.
    #[serde(flatten)]
    pub listed: ListedConversation,
    /// The figures of its newest version.
    #[schemars(with = "schema::Stats")]
    pub stats: recto::Stats,
    /// The token counter.
    pub counter: String,
    /// The names of the tools.
    pub tools: Vec<String>,
    /// The marks.
    pub marks: Vec<MarkedEntries>,
    /// Warnings about the view.
    #[schemars(with = "Vec<schema::Warning>")]
    pub warnings: Vec<recto::Warning>,
    /// The largest number of tokens of a request to a model. Missing if there is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_limit: Option<u64>,
}

impl Perform for Info {
    type Response = ConversationSummary;

    async fn perform(self, service: &Service) -> Result<ConversationSummary, Error> {
        let conversation = service.conversation(&self.conversation).await?;
        let handle = &conversation.handle;
        Ok(ConversationSummary {
            listed: service.recto().info(&conversation.name).await?.into(),
            stats: handle.stats().await?,
            counter: handle.settings().await?.counter,
            tools: handle.tools().await?.iter().map(|tool| tool.name().to_owned()).collect(),
            marks: marked(handle.marks().await?),
            warnings: handle.warnings().await?,
            token_limit: conversation.handle.policy().await?.token_limit,
        })
    }
}
