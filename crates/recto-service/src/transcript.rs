//! Imported transcripts in responses.

use recto::{Imported, ImportedTranscript};
use recto_format::TranscriptWarning;
use schemars::JsonSchema;
use serde::Serialize;

/// An imported conversation.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ImportedConversation {
    /// Its name.
    pub conversation: String,
    /// Its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Its newest version.
    pub version: u32,
    /// The length of its log.
    pub messages: u32,
    /// The number of its tools. The last message of the log is their description. Missing if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<u64>,
    /// For a fork: where it was forked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fork_of: Option<ForkOrigin>,
}

/// The conversation and the version that a fork started from.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct ForkOrigin {
    /// The conversation that it was forked from.
    pub conversation: String,
    /// The version that it was forked at.
    pub version: u32,
}

/// Something that could not be represented: `{line, field, message}`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Remark")]
#[non_exhaustive]
pub struct ShownRemark {
    /// The line of the file, or the number of the message, from 1. 0 for the envelope
    /// of the messages.
    pub line: u64,
    /// The field.
    pub field: String,
    /// The content that is lost.
    pub message: String,
}

impl ShownRemark {
    /// A remark about a field on a line.
    pub fn new(line: u64, field: impl Into<String>, message: impl Into<String>) -> ShownRemark {
        ShownRemark { line, field: field.into(), message: message.into() }
    }
}

impl From<&TranscriptWarning> for ShownRemark {
    fn from(warning: &TranscriptWarning) -> ShownRemark {
        ShownRemark::new(warning.line, &*warning.field, &*warning.message)
    }
}

/// The imported conversations, in the form of responses.
pub fn imported(transcript: &ImportedTranscript) -> Vec<ImportedConversation> {
    let shown = |imported: &Imported| ImportedConversation {
        conversation: imported.name.clone(),
        id: Some(imported.id.to_string()),
        version: imported.version.0,
        messages: imported.messages,
        tools: (imported.tools > 0).then_some(imported.tools as u64),
        fork_of: imported.fork_of.map(|(of, version)| ForkOrigin {
            conversation: transcript.conversations[of].name.clone(),
            version: version.0,
        }),
    };
    transcript.conversations.iter().map(shown).collect()
}
