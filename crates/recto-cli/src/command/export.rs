//! `recto export`: writes a conversation as a transcript.

use std::fs;
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

/// Writes a file as a whole or not at all: writes a temporary file in the same folder and renames it. On
/// Unix only its owner can read a new file, because it contains messages; an existing file keeps its
/// permissions. If the path leads to something else, such as a terminal or a pipe, the text is written
/// directly.
fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    // The file that a symbolic link leads to is replaced, not the link.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut options = fs::OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let before = fs::metadata(path).ok();
    if before.as_ref().is_some_and(|before| !before.is_file()) {
        return options.open(path)?.write_all(text.as_bytes());
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.partial", std::process::id()));
    let partial = path.with_file_name(name);
    let mut file = options.create_new(true).open(&partial)?;
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| before.map_or(Ok(()), |it| file.set_permissions(it.permissions())))
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&partial, path));
    if written.is_err()
        && let Err(error) = fs::remove_file(&partial)
    {
        // The error of the write is the one to report.
        tracing::warn!(%error, "cannot remove a temporary file");
    }
    written
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_file_is_replaced_as_a_whole_and_keeps_its_permissions() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("a.json"), folder.path().join("link"));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        write_private(&file, "one").unwrap();
        assert_eq!((fs::read_to_string(&file).unwrap().as_str(), mode(&file)), ("one", 0o600));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        symlink(&file, &link).unwrap();
        let mut earlier = fs::File::open(&file).unwrap();
        write_private(&link, "two").unwrap();
        assert_eq!((fs::read_to_string(&file).unwrap().as_str(), mode(&file)), ("two", 0o644));
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        // A file that is open is not changed, so a failed write leaves the earlier file.
        let mut text = String::new();
        std::io::Read::read_to_string(&mut earlier, &mut text).unwrap();
        assert_eq!(text, "one");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "no temporary file is left");
    }

    #[test]
    fn a_file_that_cannot_be_replaced_leaves_no_temporary_file() {
        let folder = tempfile::tempdir().unwrap();
        // A name of 255 bytes leaves no room for that of the temporary file.
        let file = folder.path().join("x".repeat(255));
        fs::write(&file, "one").unwrap();
        assert!(write_private(&file, "two").is_err());
        assert_eq!(fs::read_to_string(&file).unwrap(), "one");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
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
