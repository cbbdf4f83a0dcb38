//! What is wanted of a conversation before a model reads it. Unlike its settings, it may change.

use serde::{Deserialize, Serialize};

use crate::{Error, Recto};

/// What is wanted of a conversation. Whoever calls the model looks at it first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Policy {
    /// More tokens than this should not be sent to a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_limit: Option<u64>,
    /// When and how the view is made shorter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression: Option<Compression>,
}

/// When and how a view is made shorter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Compression {
    /// Whether it is done at all.
    pub enabled: bool,
    /// Over so many tokens it is due.
    pub threshold: u64,
    /// Down to so many tokens.
    pub target_tokens: u64,
    /// Which strategy does it.
    pub strategy: String,
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

    /// Whether it holds together.
    pub fn check(&self) -> Result<(), recto_core::Error> {
        let Some(Compression { threshold, target_tokens, strategy, .. }) = &self.compression else {
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
        Ok(())
    }
}

fn wrong(reason: &str, field: &str) -> recto_core::Error {
    let (reason, field) = (reason.to_owned(), Some(field.to_owned()));
    recto_core::Error::InvalidOperation { reason, field }
}

impl Recto {
    /// What is wanted of a conversation.
    pub async fn policy(&self, name: &str) -> Result<Policy, Error> {
        let row = self.row(name).await?;
        let Some(text) = &row.policy else { return Ok(Policy::default()) };
        let read = serde_json::from_str(text);
        read.map_err(|_| crate::row_reader::damaged(row.id, "its policy cannot be read"))
    }

    /// Sets what is wanted of a conversation. It is no version: nothing that a model reads changes.
    /// Forks that are made later begin with it.
    pub async fn set_policy(&self, name: &str, policy: &Policy) -> Result<(), Error> {
        policy.check()?;
        let text = serde_json::to_string(policy).expect("plain data can be written");
        let text = (*policy != Policy::default()).then_some(text);
        Ok(self.shared.store.set_policy(&self.tenant, name, text).await?)
    }
}
