//! `{"conversation": NAME, "export": true}`

use recto::{Pick, Query, Timestamp};
use recto_format::Container;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use serde_json::Value;

use crate::TranscriptFormat;
use crate::error::InField as _;
use crate::{At, Error, Perform, Scope, Service, ShownRemark, TrueOr, source_format};

/// Writes a conversation as a transcript.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Export {
    /// The conversation: its whole name, or its id.
    pub conversation: String,
    /// `true`, or options.
    pub export: TrueOr<ExportOptions>,
    /// The version to export. Default: the newest.
    pub at: Option<At>,
}

/// Options of `export`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExportOptions {
    /// The format. Default: the one that the messages come from, else `recto`.
    pub format: Option<TranscriptFormat>,
    /// The entries to export. Default: `visible`.
    pub scope: Option<Scope>,
    /// Whether to write one message per line instead of a list. Default: `false`.
    pub lines: Option<bool>,
}

/// A conversation as a transcript.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Exported {
    /// The conversation's name.
    pub conversation: String,
    /// The format.
    pub format: &'static str,
    /// The number of messages.
    pub messages: usize,
    /// The number of bytes.
    pub bytes: usize,
    /// Content that the format cannot represent.
    pub remarks: Vec<ShownRemark>,
    /// The file that the transcript was written to, if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The transcript, if it was not written to a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
}

impl Perform for Export {
    type Response = Exported;

    async fn perform(self, service: &Service) -> Result<Exported, Error> {
        let TrueOr(ExportOptions { format, scope, lines }) = self.export;
        let is_log = scope == Some(Scope::All);
        if is_log && self.at.is_some() {
            return Err(Error::field("at", "at and scope \"all\" exclude each other; give one"));
        }
        let conversation = service.conversation(&self.conversation).await?;
        let handle = &conversation.handle;
        let entries = match (self.at, is_log) {
            (Some(At(version)), _) => handle.messages_at(version).await.in_field("at")?,
            (None, true) => {
                let scope = recto::Scope::All;
                handle.query(&Query { scope, pick: Pick::All, ..Query::default() }).await?
            }
            (None, false) => handle.messages().await?,
        };
        let messages = || entries.iter().map(|entry| &entry.message);
        let format = format.map_or_else(|| source_format(messages()), |format| format.0);
        let envelope = envelope(&conversation.name, format);
        let container = match (lines.unwrap_or(false), &envelope) {
            (true, _) => Container::Lines,
            (false, Some(envelope)) => Container::Envelope(envelope),
            (false, None) => Container::List,
        };
        let times: Vec<Timestamp> = entries.iter().map(|entry| entry.timestamp).collect();
        let options = recto_format::ExportOptions { container, times: &times };
        let mut written = Vec::new();
        let remarks = match is_log {
            true => recto_format::export_log(messages(), format, &options, &mut written)?,
            false => recto_format::export(messages(), format, &options, &mut written)?,
        };
        let data = String::from_utf8(written).expect("formats are written as UTF-8");
        Ok(Exported {
            conversation: conversation.name,
            format: format.name(),
            messages: entries.len(),
            bytes: data.len(),
            remarks: remarks.iter().map(ShownRemark::from).collect(),
            file: None,
            data: Some(data),
        })
    }
}

/// The envelope around the messages, for formats whose envelope has the name of the conversation.
fn envelope(name: &str, format: recto_format::Format) -> Option<String> {
    let title = Value::from(name);
    (format == recto_format::Format::ChatGpt)
        .then(|| format!(r#"{{"title":{title},"mapping":null,"current_node":null}}"#))
}
