//! `{"conversation": NAME, "tokenCheck": true}`

use recto_agent::Budget;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Error, Perform, Service, True};

/// The token check of section 9 of the contract: compares the tokens of the view with the limit and the
/// threshold of the settings, and changes nothing. The model loop also counts the tools, and calibrates its
/// count with the usage that the provider reports.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TokenCheck {
    /// The conversation: its whole name, or its id.
    pub conversation: String,
    /// `true`.
    pub token_check: True,
}

/// The tokens of a view compared with its limits.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CheckedTokens {
    /// The conversation's name.
    pub conversation: String,
    /// The version of the view.
    pub version: u32,
    /// The tokens of the view.
    pub tokens: u64,
    /// The token limit. `null` if there is none.
    pub limit: Option<u64>,
    /// The threshold of the compression. `null` if there is no compression or it is not enabled.
    pub threshold: Option<u64>,
    /// The tokens that a compression aims at: the budget of a FIT. `null` if there is no compression or it is
    /// not enabled.
    pub target_tokens: Option<u64>,
    /// Whether the view has more tokens than the limit.
    pub exceeded: bool,
    /// Whether the view has more tokens than the threshold.
    pub compression_requested: bool,
}

impl Perform for TokenCheck {
    type Response = CheckedTokens;

    async fn perform(self, service: &Service) -> Result<CheckedTokens, Error> {
        let conversation = service.conversation(&self.conversation).await?;
        let policy = conversation.handle.policy().await?;
        let Budget { limit, threshold, target, .. } = Budget::of_policy(&policy)?;
        let version = conversation.handle.version().await?;
        let tokens = conversation.handle.version_info(version).await?.tokens;
        Ok(CheckedTokens {
            conversation: conversation.name,
            version: version.0,
            tokens,
            limit,
            threshold,
            target_tokens: threshold.map(|_| target),
            exceeded: limit.is_some_and(|limit| tokens > limit),
            compression_requested: threshold.is_some_and(|threshold| tokens > threshold),
        })
    }
}
