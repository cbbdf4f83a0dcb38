//! `recto export`: a conversation as a transcript.

use std::io::Write;
use std::path::Path;

use clap::Args;
use recto_format::Format;
use recto_service::{
    At, Export as ExportRequest, ExportOptions, Exported, Scope, ShownRemark, TranscriptFormat,
    TrueOr,
};

use super::import::show_remarks;
use crate::arguments::OfConversation;
use crate::desk::Desk;
use crate::failure::Failure;
use crate::numbers::{WhichVersion, bytes, counted};
use crate::output::Answer;
use crate::page::{Line, NOTE, Page, STRONG};
use crate::provider::format_parser;

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
        let at = match self.at {
            Some(version) => Some(At(version.from(named.talk.version()?)?)),
            None => None,
        };
        let options = ExportOptions {
            format: self.format.map(TranscriptFormat),
            scope: self.all.then_some(Scope::All),
            lines: Some(self.lines),
        };
        let request = ExportRequest { conversation: named.name, export: TrueOr(options), at };
        let mut exported = session.run(request)?;
        let text = exported.data.take().unwrap_or_default();
        if self.output != "-" {
            std::fs::write(&self.output, &text)
                .map_err(|error| Failure::writing(Path::new(&self.output), &error))?;
        }
        let is_shown = self.output == "-";
        if is_shown && !desk.output.is_json() {
            desk.output.document(&text, desk.surroundings)?;
            for remark in &exported.remarks {
                desk.output.aside(&beside(remark), desk.surroundings)?;
            }
            return Ok(desk.surroundings.errors.flush()?);
        }
        exported.file = (!is_shown).then_some(self.output);
        exported.data = is_shown.then_some(text);
        desk.answer(&exported)
    }
}

/// Something that the format has no place for; the line is that of the message.
fn beside(remark: &ShownRemark) -> Line {
    let ShownRemark { line, field, message } = remark;
    let field = if field.is_empty() { String::new() } else { format!(", {field}") };
    Line::wrapping().styled(NOTE, format!("message {line}{field}")).text(": ").text(message)
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
