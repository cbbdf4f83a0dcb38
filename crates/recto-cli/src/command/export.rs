//! `recto export`: a conversation as a transcript.

use std::io::Write;
use std::path::Path;

use clap::Args;
use recto::{Entry, Pick, Query, Scope, Timestamp};
use recto_format::{Container, ExportOptions, Format, Remark};
use serde::Serialize;
use serde_json::Value;

use super::import::{remarks_json, show_remarks};
use crate::arguments::OfConversation;
use crate::desk::Desk;
use crate::failure::Failure;
use crate::numbers::{WhichVersion, bytes, counted};
use crate::output::Answer;
use crate::page::{Line, NOTE, Page, STRONG};
use crate::provider::{format_parser, likely_format};

/// Write a conversation as a transcript, in any format that `import` reads.
///
/// Messages that came from that format have the bytes that they came with. Nothing is repaired: to
/// send a view to a provider, `render` it.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto export > talk.json                        # in the format that it came from, else recto
  recto export --format openai-chat -o talk.json
  recto export --format anthropic --lines --at 12
  recto export --all -o session.jsonl             # hidden messages too, in the order of the log")]
pub(crate) struct Export {
    #[command(flatten)]
    of: OfConversation,

    /// The format; unless told, the one that the messages come from, else recto
    #[arg(long, value_name = "FORMAT", value_parser = format_parser())]
    format: Option<Format>,

    /// The file to be written; - for standard output
    #[arg(short, long, value_name = "FILE", default_value = "-", hide_default_value = true)]
    output: String,

    /// What the model read at this version: 12, or now-3 for three before the newest
    #[arg(long, value_name = "VERSION", conflicts_with = "all")]
    at: Option<WhichVersion>,

    /// All messages ever added, also hidden ones
    #[arg(long)]
    all: bool,

    /// One message a line, not a list
    #[arg(long)]
    lines: bool,
}

impl Export {
    pub(crate) fn run(self, desk: &mut Desk<'_>) -> Result<(), Failure> {
        let session = desk.session()?;
        let named = session.conversation(&self.of.conversation)?;
        let entries: Vec<Entry> = match (self.at, self.all) {
            (Some(version), _) => named.talk.messages_at(version.from(named.talk.version()?)?)?,
            (None, true) => {
                named.talk.ask(&Query { scope: Scope::All, pick: Pick::All, ..Query::default() })?
            }
            (None, false) => named.talk.messages()?,
        };
        let messages = || entries.iter().map(|entry| &entry.message);
        let format = self.format.unwrap_or_else(|| likely_format(messages()));
        let around = around(&named.name, format);
        let container = match (self.lines, &around) {
            (true, _) => Container::Lines,
            (false, Some(around)) => Container::Envelope(around),
            (false, None) => Container::List,
        };
        let mut written = Vec::new();
        let times: Vec<Timestamp> = entries.iter().map(|entry| entry.timestamp).collect();
        let options = ExportOptions { container, times: &times };
        let remarks = match self.all {
            true => recto_format::export_log(messages(), format, &options, &mut written)?,
            false => recto_format::export(messages(), format, &options, &mut written)?,
        };
        let text = String::from_utf8(written).expect("formats are written as UTF-8");
        let count = entries.len();
        if self.output != "-" {
            std::fs::write(&self.output, &text)
                .map_err(|error| Failure::writing(Path::new(&self.output), &error))?;
        }
        let is_shown = self.output == "-";
        if is_shown && !desk.output.is_json() {
            desk.output.document(&text, desk.surroundings)?;
            for remark in &remarks {
                desk.output.aside(&beside(remark), desk.surroundings)?;
            }
            return Ok(desk.surroundings.errors.flush()?);
        }
        desk.answer(&Exported {
            conversation: named.name,
            format: format.name(),
            messages: count,
            bytes: text.len(),
            remarks,
            file: (!is_shown).then_some(self.output),
            data: is_shown.then_some(text),
        })
    }
}

/// What stands around the messages, where that says what the conversation is called.
fn around(name: &str, format: Format) -> Option<String> {
    let title = Value::from(name);
    (format == Format::ChatGpt)
        .then(|| format!(r#"{{"title":{title},"mapping":null,"current_node":null}}"#))
}

/// Something that the format has no place for; the line is that of the message.
fn beside(remark: &Remark) -> Line {
    let Remark { line, field, message } = remark;
    let field = if field.is_empty() { String::new() } else { format!(", {field}") };
    Line::wrapping().styled(NOTE, format!("message {line}{field}")).text(": ").text(message)
}

#[derive(Serialize)]
struct Exported {
    conversation: String,
    format: &'static str,
    messages: usize,
    bytes: usize,
    #[serde(serialize_with = "remarks_json")]
    remarks: Vec<Remark>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    /// What would be in the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<String>,
}

impl Answer for Exported {
    fn show(&self, page: &mut Page) {
        show_remarks(&self.remarks, page);
        let count = counted(self.messages as u64, "message");
        let line = Line::new().text(format!("{count} of ")).styled(STRONG, &self.conversation);
        let file = self.file.as_deref().unwrap_or("-");
        let size = bytes(self.bytes as u64);
        page.line(line.text(format!(" written to {file} as {}, {size}", self.format)));
    }
}
