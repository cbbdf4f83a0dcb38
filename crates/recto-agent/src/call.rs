//! The manifest of a model call: what was sent, when, to which model, and the result.
//!
//! A manifest is stored as `metadata.call` of the message that the call added to the log. For a
//! call without a reply, one request appends a message with the manifest and rolls back to the version
//! before. That message is in the log, was never in a view, and changes no batch. Rendering ignores
//! metadata, so no model reads a manifest.
//!
//! The bytes of the request are not stored. The version determines the messages (all visible messages
//! except tool descriptions, because the tools themselves are sent), the manifest holds the other
//! fields, and rendering is deterministic. So the bytes can be rendered again, and the SHA-256 shows
//! whether they are the same. See [`Agent::request_of_call`](crate::Agent::request_of_call).

use recto::{LogIndex, Message, Version};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::{Attempt, Finish, Totals, Usage};

/// The manifest of a model call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Call {
    /// The number of the call in its conversation, from 1. Calls that were rolled back count.
    pub number: u64,
    /// The version whose view was sent.
    pub version: Version,
    /// The provider format of the request: `anthropic`.
    pub target: String,
    /// The requested model.
    pub model: String,
    /// The fields other than messages and tools, as pairs of name and JSON value.
    pub fields: Vec<(String, String)>,
    /// The version of the provider's API, if the model names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Present if the call asked for a summary: what was summarised, and how. Absent if the view was sent.
    #[serde(rename = "about", default, skip_serializing_if = "Option::is_none")]
    pub summary_prompt: Option<SummaryPrompt>,
    /// The SHA-256 of the bytes that were sent, in hexadecimal digits.
    pub sha256: String,
    /// The number of bytes that were sent.
    pub bytes: u64,
    /// When the call started, in milliseconds since 1970.
    pub at: i64,
    /// Duration of the call in milliseconds, retries included.
    pub millis: u64,
    /// Tokens of the request, as the conversation's counter counts them.
    pub counted: u64,
    /// Expected tokens of the request, calibrated for the model.
    pub expected: u64,
    /// Token usage, if the provider reported it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Why the reply ended; `None` if there was no reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish: Option<Finish>,
    /// Why the call failed, if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// The model that produced the reply, as the provider names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<String>,
    /// The provider's id of the reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_id: Option<String>,
    /// The attempts that failed, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<Attempt>,
    /// The compressions that ran before the call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compressed: Vec<Compressed>,
    /// Totals of all calls on the path to the current version, this one included. A rollback excludes the
    /// calls after its target version.
    pub cumulative: Totals,
    /// Totals of all calls of the conversation up to this one, those that were rolled back included.
    pub lifetime: Totals,
}

/// A request for a summary of log entries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SummaryPrompt {
    /// The entries to summarise.
    pub entries: Vec<LogIndex>,
    /// The instructions to the model.
    pub instructions: String,
}

/// A compression that ran before a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Compressed {
    /// The name of the strategy.
    pub strategy: String,
    /// Why the view was compressed.
    #[serde(rename = "why")]
    pub reason: String,
    /// The version that the strategy created.
    pub version: Version,
    /// Upper bound of the request's tokens before the compression, calibrated for the model: messages and
    /// tools.
    pub before: u64,
    /// Upper bound of the request's tokens after the compression.
    pub after: u64,
}

impl Call {
    /// The manifest in a message's metadata; `None` if there is none.
    pub fn of(message: &Message) -> Option<Call> {
        #[derive(Deserialize)]
        struct Holder {
            metadata: Option<Metadata>,
        }
        #[derive(Deserialize)]
        struct Metadata {
            call: Option<Call>,
        }
        // Most messages have no manifest, and a substring search is faster than parsing.
        if !message.json().contains("\"call\"") {
            return None;
        }
        match serde_json::from_str::<Holder>(message.json()) {
            Ok(holder) => holder.metadata?.call,
            Err(error) => {
                // The text of the error may contain values of the message.
                let (kind, column) = (error.classify(), error.column());
                tracing::warn!(?kind, column, "the manifest of a call cannot be read");
                None
            }
        }
    }
}

/// The SHA-256 of bytes, in hexadecimal digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
