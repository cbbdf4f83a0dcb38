//! Imports transcripts into a store: everything or nothing.

use std::collections::HashSet;

use recto::{Import, Imported, Naming, Recto, Settings, Tool};
use recto_format::{Collected, EnvelopeInfo, Format, ImportOptions, TranscriptWarning};
use schemars::JsonSchema;
use serde::Serialize;

use crate::Error;

/// A transcript that was imported.
#[derive(Debug)]
pub struct Transcript {
    /// Its format.
    pub format: Format,
    /// The conversations in it.
    pub conversations: Vec<Imported>,
    /// Content that could not be represented.
    pub remarks: Vec<TranscriptWarning>,
}

/// An imported conversation.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
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
    /// For a fork: where it was forked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fork_of: Option<ForkOf>,
}

/// Where a conversation was forked.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ForkOf {
    /// The conversation that it was forked from.
    pub conversation: String,
    /// The version that it was forked at.
    pub version: u32,
}

/// Content that could not be represented: `{line, field, message}`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Remark")]
pub struct ShownRemark {
    /// The line of the file, or the number of the message, from 1. 0 for the envelope around the messages.
    pub line: u64,
    /// The field.
    pub field: String,
    /// The content that is lost.
    pub message: String,
}

impl From<&TranscriptWarning> for ShownRemark {
    fn from(remark: &TranscriptWarning) -> ShownRemark {
        let TranscriptWarning { line, field, message, .. } = remark;
        ShownRemark { line: *line, field: field.clone(), message: message.clone() }
    }
}

impl Transcript {
    /// The conversations as they appear in responses.
    pub fn imported(&self) -> Vec<ImportedConversation> {
        let shown = |made: &Imported| ImportedConversation {
            conversation: made.name.clone(),
            id: Some(made.id.to_string()),
            version: made.version.0,
            messages: made.messages,
            fork_of: made.fork_of.map(|(of, version)| ForkOf {
                conversation: self.conversations[of].name.clone(),
                version: version.0,
            }),
        };
        self.conversations.iter().map(shown).collect()
    }
}

/// Imports a transcript that is in memory: everything or nothing.
pub async fn import_text(
    recto: &Recto,
    text: &str,
    format: Option<Format>,
    naming: Naming,
    settings: Settings,
) -> Result<Transcript, Error> {
    let mut read = Collected::default();
    let mut import = Import::new(recto, naming, settings);
    let format = match recto_format::import(text, format, &ImportOptions::default(), &mut read) {
        Ok(format) => format,
        Err(error) => return Err(give_up(import, error.into()).await),
    };
    for step in read.steps {
        if let Err(error) = import.step(step).await {
            return Err(give_up(import, error.into()).await);
        }
    }
    finish_import(import, format, read.warnings).await
}

/// Ends an import whose steps were all performed: the conversations get their names. If that fails,
/// what was written is removed.
pub async fn finish_import(
    mut import: Import,
    format: Format,
    mut remarks: Vec<TranscriptWarning>,
) -> Result<Transcript, Error> {
    let cause = match import.finish().await {
        Ok(conversations) if conversations.iter().any(|made| made.messages > 0) => {
            remarks.extend(about_envelopes(&conversations, format));
            return Ok(Transcript { format, conversations, remarks });
        }
        Ok(_) => Error::NothingToImport { format: format.name() },
        Err(error) => error.into(),
    };
    Err(give_up(import, cause).await)
}

/// Removes what an import has written.
async fn give_up(mut import: Import, cause: Error) -> Error {
    let left = import.abandon().await;
    let left = left.into_iter().map(|(name, error)| (name, error.to_string())).collect();
    Error::NotImported { cause: Box::new(cause), left }
}

/// The warning about the envelope around the messages, which is not stored. The tools of the envelope are not
/// set, because the model would then read a tool description that the transcript does not have.
fn about_envelopes(conversations: &[Imported], format: Format) -> Option<TranscriptWarning> {
    let mut lost: Vec<String> = Vec::new();
    let mut lines = 0;
    for envelope in conversations.iter().filter_map(|made| made.envelope.as_deref()) {
        let around = EnvelopeInfo::of(envelope, format);
        lines += around.trailing_lines;
        if !around.tools.is_empty() {
            let names: Vec<&str> = around.tools.iter().map(Tool::name).collect();
            lost.push(format!("tools ({}; see `recto settings --tools`)", names.join(", ")));
        }
        lost.extend(around.unsupported_fields.into_iter().filter(|name| name != "tools"));
    }
    let mut known = HashSet::new();
    lost.retain(|field| known.insert(field.clone()));
    match lines {
        0 => {}
        1 => lost.push("1 line behind the last message".to_owned()),
        lines => lost.push(format!("{lines} lines behind the last message")),
    }
    let (line, field) = (0, "around the messages".to_owned());
    let message = format!("not kept: {}", lost.join(", "));
    (!lost.is_empty()).then(|| TranscriptWarning::new(line, field, message))
}
