//! `{"conversation": NAME, "tools": true}`

use recto::Tool;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::InField as _;
use crate::{At, Error, Perform, Service, True, schema};

/// The tools that the model may call.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Tools {
    /// The conversation: its whole name, or its id.
    pub conversation: String,
    /// `true`.
    pub tools: True,
    /// The version to read. Default: the newest.
    pub at: Option<At>,
}

/// The tools of a conversation.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolList {
    /// The tools, as they were given.
    #[schemars(with = "Vec<schema::Tool>")]
    pub tools: Vec<Tool>,
}

impl Perform for Tools {
    type Response = ToolList;

    async fn perform(self, service: &Service) -> Result<ToolList, Error> {
        let conversation = service.conversation(&self.conversation).await?;
        let tools = match self.at {
            Some(At(version)) => conversation.handle.tools_at(version).await.in_field("at")?,
            None => conversation.handle.tools().await?,
        };
        Ok(ToolList { tools })
    }
}
