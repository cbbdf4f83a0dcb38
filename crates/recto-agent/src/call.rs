//! The manifest of a call: what was sent, when, to whom, and what came of it.
//!
//! A manifest is `metadata.call` of the message that the call brought into the log. A call without an
//! answer brings in a note that says so, in a request that appends it and goes back to the version
//! before: so it is in the log, was never in a view, and changes no batch. Rendering ignores metadata:
//! no model reads a manifest.
//!
//! The bytes that were sent are not kept. The version says which messages they were made of (all that
//! were visible but for tool descriptions, since the tools are sent themselves), the manifest which
//! fields stood beside them, and rendering is stable: so they can be made again, and the hash says
//! whether they are the same. See [`Agent::sent`](crate::Agent::sent).

use recto::{LogIndex, Message, Version};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::{Finish, Totals, Usage};

/// The manifest of a call of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Call {
    /// Which call of the conversation it was, from 1, those that were rolled back included.
    pub number: u64,
    /// The version whose view was sent.
    pub version: Version,
    /// Whom the request was written for: `anthropic`.
    pub target: String,
    /// The model that was asked.
    pub model: String,
    /// The fields beside messages and tools, each with its JSON.
    pub fields: Vec<(String, String)>,
    /// If not the view was sent but a question about some of its entries: which, and how it was put.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<About>,
    /// The SHA-256 of the exact bytes that were sent, in hexadecimal digits.
    pub sha256: String,
    /// How many bytes they were.
    pub bytes: u64,
    /// When the call began, in milliseconds since 1970.
    pub at: i64,
    /// How long it took.
    pub millis: u64,
    /// The tokens of the request, as the conversation counts.
    pub counted: u64,
    /// The tokens of the request, as was expected of this model.
    pub expected: u64,
    /// What the provider says was used, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Why the answer ended; nothing if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish: Option<Finish>,
    /// Why there was no answer, or only half of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Which model the provider says has answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<String>,
    /// What the provider calls the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_id: Option<String>,
    /// What was tried before, in vain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<Attempt>,
    /// Which compressions ran before the call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compressed: Vec<Compressed>,
    /// What all calls up to this one have used that lead to the present state: a rollback takes from it.
    pub cumulative: Totals,
    /// What all calls have used that were ever made.
    pub lifetime: Totals,
}

/// An attempt that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Attempt {
    /// The HTTP status, if one came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Why it failed.
    pub failure: String,
    /// How long it took.
    pub millis: u64,
    /// How long was waited after it.
    pub waited_millis: u64,
}

/// A question about entries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct About {
    /// The entries.
    pub entries: Vec<LogIndex>,
    /// What the model was told to do with them.
    pub instructions: String,
}

/// A compression that ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Compressed {
    /// Which strategy.
    pub strategy: String,
    /// Why.
    pub why: String,
    /// The version that it made.
    pub version: Version,
    /// The tokens of what was sent of the view before, without tools and their description.
    pub before: u64,
    /// The tokens of what is sent of the view after.
    pub after: u64,
}

impl Call {
    /// The manifest in a message's metadata.
    pub fn of(message: &Message) -> Option<Call> {
        #[derive(Deserialize)]
        struct Holder {
            metadata: Option<Metadata>,
        }
        #[derive(Deserialize)]
        struct Metadata {
            call: Option<Call>,
        }
        // A quick look: most messages have none.
        if !message.json().contains("\"call\"") {
            return None;
        }
        let holder = serde_json::from_str::<Holder>(message.json()).ok()?;
        holder.metadata?.call
    }
}

/// The SHA-256 of bytes, in hexadecimal digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
