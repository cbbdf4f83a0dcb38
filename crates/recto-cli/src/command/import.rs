//! `recto import`: imports the conversations of a transcript.

use std::fs::File;
use std::path::Path;

use anstyle::Style;
use clap::Args;
use recto::{CancelFlag, ImportName, ImportOptions, Progress, Settings};
use recto_format::{Format, find_messages};
use recto_service::{ImportedConversation, ShownRemark, counter_named, imported};
use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;
use crate::numbers::{counted, grouped};
use crate::opencode_storage;
use crate::output::CommandResult;
use crate::page::{FAINT, Line, Page, STRONG};
use crate::provider::format_parser;
use crate::remarks::remark_lines;
use crate::table::Table;
use crate::transcript::TranscriptInput;

/// Import a transcript, with its versions and forks.
///
/// Remarks list what a conversation cannot represent, with the line of the file. If anything fails,
/// nothing is imported. During the import a conversation is called `NAME (importing)`.
#[derive(Args, Debug)]
#[command(after_help = "\
Formats:
  openai-chat, openai-responses, openai-agents-js, anthropic, gemini, bedrock-converse, langchain,
  sharegpt, vercel, vercel-model, pydantic-ai and recto: a list, a request, or one message per line
  claude-code, codex, claude-stream, pi, openhands, gemini-responses, gemini-cli, qwen-code, opencode
  and copilot: a session of an agent
  chatgpt: the data export, also its ZIP file; librechat: the export of a conversation
  All of them may be compressed with zstd

Examples:
  recto import session.jsonl
  recto import conversations.zip --format chatgpt
  curl -s https://example.com/run.json | recto import - --name run
  recto import eval.json --select 'samples[*].messages'   # messages inside a larger document
  recto import ~/.local/share/opencode/storage  # all sessions of opencode
  recto import session.jsonl --dry-run          # list its conversations and remarks")]
pub(crate) struct Import {
    /// File to import, or opencode's storage folder; - for standard input, which is copied to a temporary
    /// file if it is long
    file: String,

    /// Format of the file. Default: detected
    #[arg(long, value_name = "FORMAT", value_parser = format_parser())]
    format: Option<Format>,

    /// Path of the messages in a larger document, such as [*].traj or request.messages. Default: if the
    /// format of the file is not recognised, the lists of messages that are nearest to the top
    #[arg(long, value_name = "PATH")]
    select: Option<String>,

    /// Name of the conversation. Default: its title in the file, else the file's name
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Token counter: o200k_base, cl100k_base or approx. Default: o200k_base
    #[arg(long, value_name = "COUNTER")]
    counter: Option<String>,

    /// Maximum size of one message or line of the file, in bytes. Default: 32 MiB
    #[arg(long, value_name = "BYTES")]
    max_bytes: Option<usize>,

    /// Print what would be imported, and store nothing
    #[arg(long)]
    dry_run: bool,
}

impl Import {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<(), Failure> {
        self.name.as_deref().map_or(Ok(()), recto::check_name)?;
        let mut settings = Settings::default();
        if let Some(counter) = &self.counter {
            settings.counter = counter_named(counter)?;
        }
        let (source, found) = self.find_messages(self.open(context)?)?;
        let naming = match &self.name {
            Some(name) => ImportName::Exactly(name.clone()),
            None => ImportName::FromTitle { default: self.default_name() },
        };
        let session = match self.dry_run {
            // A dry run imports into a store in memory.
            true => None,
            false => Some(context.new_session()?),
        };
        let in_memory;
        let recto = match &session {
            Some(session) => &session.recto,
            None => {
                in_memory = recto::blocking::Recto::open("memory:")?;
                &in_memory
            }
        };
        let cancel = recto.wait(cancel_on_ctrl_c());
        let mut bar = context.bar(format!("importing {}", self.file));
        let all = source.len();
        let mut on_progress = |done: u64| bar.update(Progress::new(done, all));
        let format = self.format;
        let mut options = ImportOptions { format, cancel, ..ImportOptions::new(naming, settings) };
        let limits = &mut options.reading.limits;
        limits.message_bytes = self.max_bytes.unwrap_or(limits.message_bytes);
        let transcript = recto
            .import_with_progress(source, options, &mut on_progress)
            .map_err(|error| self.as_input_error(error.into()))?;
        drop(bar);
        let conversations = imported(&transcript);
        if let (Some(session), Some(first)) = (&session, conversations.first()) {
            session.conversation(&first.conversation)?;
        }
        context.print(&ImportResult {
            format: transcript.format.name(),
            dry_run: self.dry_run,
            conversations,
            remarks: found
                .into_iter()
                .chain(transcript.warnings.iter().map(ShownRemark::from))
                .collect(),
        })
    }

    fn open(&self, context: &mut Context<'_>) -> Result<TranscriptInput, Failure> {
        let failed = |error: std::io::Error| Failure::Input {
            file: self.file.clone(),
            reason: error.to_string(),
        };
        if self.file == "-" {
            return TranscriptInput::copied(&mut context.environment.input).map_err(failed);
        }
        if let Some(documents) =
            opencode_storage::documents(Path::new(&self.file)).map_err(failed)?
        {
            return Ok(TranscriptInput::Memory(documents));
        }
        let mut file = File::open(&self.file).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if metadata.is_file() {
            return Ok(TranscriptInput::File(file, metadata.len()));
        }
        // A pipe can be read only once, so it is copied.
        TranscriptInput::copied(&mut file).map_err(failed)
    }

    /// The messages inside a larger document, and a remark that says where they are. Without `--select`,
    /// messages are searched only if no format is given and none is recognised. If none are searched or
    /// found, the result is the unchanged document.
    fn find_messages(
        &self,
        source: TranscriptInput,
    ) -> Result<(TranscriptInput, Option<ShownRemark>), Failure> {
        let found = find_messages(&source, self.format, self.select.as_deref())?;
        Ok(match found {
            Some(found) => {
                let remark = ShownRemark::from(&found.warning());
                (TranscriptInput::Memory(found.transcript.into_bytes()), Some(remark))
            }
            None => (source, None),
        })
    }

    /// The name of a conversation without a title.
    fn default_name(&self) -> String {
        let stem = Path::new(&self.file).file_stem().map(|stem| stem.to_string_lossy());
        match stem {
            Some(stem) if self.file != "-" && !stem.trim().is_empty() => stem.trim().to_owned(),
            _ => "imported".to_owned(),
        }
    }

    /// Turns an I/O error of the file into a usage error. Other errors stay as they are.
    fn as_input_error(&self, failure: Failure) -> Failure {
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

/// A flag that Ctrl-C sets. After this call Ctrl-C does not end the process, because the conversations of
/// a cancelled import must be removed first.
async fn cancel_on_ctrl_c() -> CancelFlag {
    let cancel = CancelFlag::default();
    let mut pressed = Box::pin(tokio::signal::ctrl_c());
    tokio::select! {
        biased;
        _ = &mut pressed => cancel.cancel(),
        // The first poll has registered the handler.
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
struct ImportResult {
    format: &'static str,
    dry_run: bool,
    conversations: Vec<ImportedConversation>,
    remarks: Vec<ShownRemark>,
}

impl CommandResult for ImportResult {
    fn show(&self, page: &mut Page) {
        let plain = Style::new();
        let mut table = Table::new(&["conversation", ">messages", ">version", ""]);
        for imported in &self.conversations {
            let fork = imported
                .fork_of
                .as_ref()
                .map(|fork| format!("fork of {} at v{}", fork.conversation, fork.version));
            let tools = imported
                .tools
                .map(|tools| format!("and a description of {}", counted(tools, "tool")));
            let said = imported.messages - u32::from(tools.is_some());
            table.row([
                (STRONG, imported.conversation.clone()),
                (plain, grouped(u64::from(said))),
                (plain, format!("v{}", imported.version)),
                (FAINT, tools.into_iter().chain(fork).collect::<Vec<_>>().join(", ")),
            ]);
        }
        table.show(page);
        if page.has_remarks() {
            remark_lines(&self.remarks, "line").into_iter().for_each(|line| page.line(line));
        }
        let count = counted(self.conversations.len() as u64, "conversation");
        let done = if self.dry_run { "would be imported" } else { "imported" };
        page.line(Line::new().styled(FAINT, format!("{count} {done} from {}", self.format)));
    }
}
