//! The policy of a conversation: a token limit and a compression. Unlike the settings, it can change.

use serde::{Deserialize, Serialize};

use crate::row_reader::damaged;
use crate::{Conversation, Error};

/// The token limit and the compression that the agent loop enforces before each model call. Later releases
/// may add fields: construct it with `..Policy::default()`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Policy {
    /// Maximum tokens of a provider request. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_limit: Option<u64>,
    /// When and how the view is shortened. Default: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression: Option<Compression>,
}

/// When and how a view is shortened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct Compression {
    /// Whether compression is on.
    pub enabled: bool,
    /// The view is shortened if it has more tokens than this. At most the token limit.
    pub threshold: u64,
    /// The number of tokens that the view is shortened to. At most `threshold`.
    pub target_tokens: u64,
    /// The name of the strategy. Not empty.
    pub strategy: String,
}

impl Compression {
    /// A compression that is on.
    pub fn new(threshold: u64, target_tokens: u64, strategy: impl Into<String>) -> Compression {
        Compression { enabled: true, threshold, target_tokens, strategy: strategy.into() }
    }
}

impl Policy {
    /// Reads a policy: `{tokenLimit?, compression?: {enabled, threshold, targetTokens, strategy}}`.
    pub fn from_json(text: &str) -> Result<Policy, recto_core::Error> {
        let policy: Policy =
            serde_json::from_str(text).map_err(|error| match error.classify() {
                serde_json::error::Category::Data => wrong(&error.to_string(), "policy"),
                _ => recto_core::Error::InvalidJson { reason: error.to_string() },
            })?;
        policy.check()?;
        Ok(policy)
    }

    /// Checks that the fields fit together.
    pub fn check(&self) -> Result<(), recto_core::Error> {
        let Some(Compression { enabled, threshold, target_tokens, strategy }) = &self.compression
        else {
            return Ok(());
        };
        if target_tokens > threshold {
            let reason = format!(
                "targetTokens is {target_tokens}, above the threshold of {threshold}: \
                 nothing would become shorter; choose a smaller one"
            );
            return Err(wrong(&reason, "compression.targetTokens"));
        }
        if strategy.is_empty() {
            return Err(wrong("strategy is empty; name one", "compression.strategy"));
        }
        match self.token_limit.filter(|limit| *enabled && threshold > limit) {
            Some(limit) => {
                let reason = format!(
                    "the threshold of the compression is {threshold}, above the token limit of {limit}: \
                     no request reaches it; lower the threshold, or raise the limit"
                );
                Err(wrong(&reason, "compression.threshold"))
            }
            None => Ok(()),
        }
    }
}

fn wrong(reason: &str, field: &str) -> recto_core::Error {
    let (reason, field) = (reason.to_owned(), Some(field.to_owned()));
    recto_core::Error::InvalidOperation { reason, field }
}

impl Conversation {
    /// The policy. It is empty if none was set.
    pub async fn policy(&self) -> Result<Policy, Error> {
        let row = self.recto.row_by_id(self.id).await?;
        let Some(text) = &row.policy else { return Ok(Policy::default()) };
        let read = serde_json::from_str(text);
        read.map_err(|_| damaged(row.id, "its policy cannot be read"))
    }

    /// Sets the policy. This makes no version, because the view does not change. Forks that are made
    /// later start with the policy.
    pub async fn set_policy(&self, policy: &Policy) -> Result<(), Error> {
        policy.check()?;
        let text = serde_json::to_string(policy).expect("plain data can be written");
        let text = (*policy != Policy::default()).then_some(text);
        let store = &self.recto.shared.store;
        loop {
            let name = self.recto.row_by_id(self.id).await?.name;
            match store.set_policy(&self.recto.tenant, &name, text.clone()).await {
                // The conversation was renamed or removed since its name was read: read the name again.
                Err(recto_store::Error::ConversationNotFound { .. }) => {}
                done => return Ok(done?),
            }
        }
    }
}
