//! `recto export`: writes a conversation as a transcript.

use std::io::Write;
use std::path::Path;

use clap::Args;
use recto_format::Format;
use recto_service::{
    At, Export as ExportRequest, ExportOptions, Exported, Scope, TranscriptFormat, TrueOr,
};

use crate::arguments::ConversationArgument;
use crate::context::Context;
use crate::failure::Failure;
use crate::numbers::{VersionArgument, bytes, counted};
use crate::output::CommandResult;
use crate::page::{Line, Page, STRONG};
use crate::provider::format_parser;
use crate::remarks::remark_lines;

/// Write a conversation as a transcript.
///
/// Writes any format that `import` reads. Messages that were imported from that format keep their
/// original bytes. Nothing is repaired: use `render` to make a valid provider request.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto export > chat.json                        # in its original format, else recto
  recto export --format openai-chat -o chat.json
  recto export --format anthropic --lines --at 12
  recto export --all -o session.jsonl             # also hidden messages, in log order")]
pub(crate) struct Export {
    #[command(flatten)]
    of: ConversationArgument,

    /// Format. Default: the one that the messages come from, else recto
    #[arg(long, value_name = "FORMAT", value_parser = format_parser())]
    format: Option<Format>,

    /// File to write; - for standard output. Default: -
    #[arg(short, long, value_name = "FILE", default_value = "-", hide_default_value = true)]
    output: String,

    /// Version to export: 12, or now-3 for three before the newest. Default: the newest
    #[arg(long, value_name = "VERSION", conflicts_with = "all")]
    at: Option<VersionArgument>,

    /// Export the whole log, also hidden messages
    #[arg(long)]
    all: bool,

    /// Write one message per line instead of a list
    #[arg(long)]
    lines: bool,
}

impl Export {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<(), Failure> {
        let session = context.session()?;
        let named = session.conversation(&self.of.conversation)?;
        let at = match self.at {
            Some(version) => Some(At(version.from(named.handle.version()?)?)),
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
            write_private(Path::new(&self.output), &text)
                .map_err(|error| Failure::writing(Path::new(&self.output), &error))?;
        }
        let is_shown = self.output == "-";
        if is_shown && !context.output.is_json() {
            context.output.document(&text, context.environment)?;
            for line in remark_lines(&exported.remarks, "message") {
                context.output.note(&line, context.environment)?;
            }
            return Ok(context.environment.errors.flush()?);
        }
        exported.file = (!is_shown).then_some(self.output);
        exported.data = is_shown.then_some(text);
        context.print(&exported)
    }
}

/// Writes a file. A new one can be read by its owner only, because it contains messages.
fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(text.as_bytes())
}

impl CommandResult for Exported {
    fn show(&self, page: &mut Page) {
        if page.has_remarks() {
            remark_lines(&self.remarks, "message").into_iter().for_each(|line| page.line(line));
        }
        let count = counted(self.messages as u64, "message");
        let line = Line::new().text(format!("{count} of ")).styled(STRONG, &self.conversation);
        let file = self.file.as_deref().unwrap_or("-");
        let size = bytes(self.bytes as u64);
        page.line(line.text(format!(" written to {file} as {}, {size}", self.format)));
    }
}
