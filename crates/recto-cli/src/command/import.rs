//! `recto import`: conversations from a transcript.

use std::fs::File;
use std::path::Path;

use anstyle::Style;
use clap::Args;
use recto::{CancelFlag, ImportOptions, Naming, Progress, Settings};
use recto_format::Format;
use recto_service::{ImportedConversation, ShownRemark, counter_named, imported};
use serde::Serialize;

use crate::desk::Desk;
use crate::failure::Failure;
use crate::numbers::counted;
use crate::output::Answer;
use crate::page::{FAINT, Line, NOTE, Page, STRONG};
use crate::provider::format_parser;
use crate::session::check_new_name;
use crate::table::Table;
use crate::transcript::Source;

/// Import a transcript: the conversations in it, with their versions, rewinds and forks.
///
/// What a conversation cannot say is reported, line by line. If anything fails, nothing is imported.
/// Until it is done, a conversation is called `NAME (importing)`.
#[derive(Args, Debug)]
#[command(after_help = "\
Formats:
  openai-chat, openai-responses, anthropic, gemini, langchain, claude-code, codex, chatgpt (the ZIP
  file too), sharegpt, vercel and recto; as a list, a request, or one message a line; also packed
  with zstd

Examples:
  recto import session.jsonl
  recto import conversations.zip --format chatgpt
  curl -s https://example.com/run.json | recto import - --name run
  recto import session.jsonl --dry-run          # what is in it, and what would be lost")]
pub(crate) struct Import {
    /// The file; - for standard input, of which a copy is made if it is long
    file: String,

    /// Its format; recognised unless told
    #[arg(long, value_name = "FORMAT", value_parser = format_parser())]
    format: Option<Format>,

    /// What the conversation is called; unless told, its title in the file, or the file's name
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// What counts tokens: o200k_base, cl100k_base or approx
    #[arg(long, value_name = "COUNTER")]
    counter: Option<String>,

    /// How large one value of the file may be: a message, or a line of a session; 32 MiB unless told
    #[arg(long, value_name = "BYTES")]
    max_bytes: Option<usize>,

    /// Read everything and say what would be imported, and keep nothing
    #[arg(long)]
    dry_run: bool,
}

impl Import {
    pub(crate) fn run(self, desk: &mut Desk<'_>) -> Result<(), Failure> {
        self.name.as_deref().map_or(Ok(()), check_new_name)?;
        let mut settings = Settings::default();
        if let Some(counter) = &self.counter {
            settings.counter = counter_named(counter)?;
        }
        let source = self.open(desk)?;
        let naming = match &self.name {
            Some(name) => Naming::Exactly(name.clone()),
            None => Naming::AsTitled { otherwise: self.otherwise() },
        };
        let session = match self.dry_run {
            // The same way into a store that nobody else sees.
            true => None,
            false => Some(desk.new_session()?),
        };
        let nowhere;
        let recto = match &session {
            Some(session) => &session.recto,
            None => {
                nowhere = recto::blocking::Recto::open("memory:")?;
                &nowhere
            }
        };
        let cancel = recto.wait(cancelled_by_ctrl_c());
        let mut bar = desk.bar(format!("importing {}", self.file));
        let all = source.len();
        let mut watch = |done: u64| bar.tell(Progress::new(done, all));
        let format = self.format;
        let mut options = ImportOptions { format, cancel, ..ImportOptions::new(naming, settings) };
        let limits = &mut options.reading.limits;
        limits.message_bytes = self.max_bytes.unwrap_or(limits.message_bytes);
        let transcript = recto
            .import_with_progress(source, options, &mut watch)
            .map_err(|error| self.about_reading(error.into()))?;
        drop(bar);
        let conversations = imported(&transcript);
        if let (Some(session), Some(first)) = (&session, conversations.first()) {
            session.conversation(&first.conversation)?;
        }
        desk.answer(&Answered {
            format: transcript.format.name(),
            dry_run: self.dry_run,
            conversations,
            remarks: transcript.remarks.iter().map(ShownRemark::from).collect(),
        })
    }

    fn open(&self, desk: &mut Desk<'_>) -> Result<Source, Failure> {
        let failed = |error: std::io::Error| Failure::Input {
            file: self.file.clone(),
            reason: error.to_string(),
        };
        if self.file == "-" {
            return Source::copied(&mut desk.surroundings.input).map_err(failed);
        }
        let mut file = File::open(&self.file).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if metadata.is_file() {
            return Ok(Source::File(file, metadata.len()));
        }
        // A pipe can be read only once.
        Source::copied(&mut file).map_err(failed)
    }

    /// What a conversation without a title is called.
    fn otherwise(&self) -> String {
        let stem = Path::new(&self.file).file_stem().map(|stem| stem.to_string_lossy());
        match stem {
            Some(stem) if self.file != "-" && !stem.trim().is_empty() => stem.trim().to_owned(),
            _ => "imported".to_owned(),
        }
    }

    /// A file that cannot be read is an argument that is wrong; everything else stays as it is.
    fn about_reading(&self, failure: Failure) -> Failure {
        match failure {
            Failure::NotImported { cause, left } => match *cause {
                Failure::Format(recto_format::Error::Io(error)) => {
                    let (file, reason) = (self.file.clone(), error.to_string());
                    Failure::NotImported { cause: Box::new(Failure::Input { file, reason }), left }
                }
                cause => Failure::NotImported { cause: Box::new(cause), left },
            },
            other => other,
        }
    }
}

/// A flag that Ctrl-C sets. Ctrl-C does not end the program from now on, because an import removes what
/// it has written first.
async fn cancelled_by_ctrl_c() -> CancelFlag {
    let cancel = CancelFlag::default();
    let mut pressed = Box::pin(tokio::signal::ctrl_c());
    tokio::select! {
        biased;
        _ = &mut pressed => cancel.cancel(),
        // The signal is registered at the first poll.
        () = std::future::ready(()) => {
            let flag = cancel.clone();
            tokio::spawn(async move {
                if pressed.await.is_ok() {
                    flag.cancel();
                }
            });
        }
    }
    cancel
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answered {
    format: &'static str,
    dry_run: bool,
    conversations: Vec<ImportedConversation>,
    remarks: Vec<ShownRemark>,
}

impl Answer for Answered {
    fn show(&self, page: &mut Page) {
        let plain = Style::new();
        let mut table = Table::new(&["", ">", ">", ""]);
        for told in &self.conversations {
            let fork = told.fork_of.as_ref();
            table.row([
                (STRONG, told.conversation.clone()),
                (plain, counted(u64::from(told.messages), "message")),
                (plain, format!("v{}", told.version)),
                (
                    FAINT,
                    fork.map_or(String::new(), |fork| {
                        format!("fork of {} at v{}", fork.conversation, fork.version)
                    }),
                ),
            ]);
        }
        table.show(page);
        show_remarks(&self.remarks, page);
        let count = counted(self.conversations.len() as u64, "conversation");
        let done = if self.dry_run { "would be imported" } else { "imported" };
        page.line(Line::new().styled(FAINT, format!("{count} {done} from {}", self.format)));
    }
}

/// What could not be represented, a line each.
pub(super) fn show_remarks(remarks: &[ShownRemark], page: &mut Page) {
    for ShownRemark { line, field, message } in remarks {
        let place = match (line, &**field) {
            (0, field) => field.to_owned(),
            (line, "") => format!("line {line}"),
            (line, field) => format!("line {line}, {field}"),
        };
        page.line(Line::wrapping().styled(NOTE, place).text(": ").text(message));
    }
}
