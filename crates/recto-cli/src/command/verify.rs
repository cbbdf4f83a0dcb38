//! `recto verify`: verifies stored conversations.

use clap::Args;
use recto_service::{StoreVerification, Verification};

use crate::context::Context;
use crate::failure::Failure;
use crate::numbers::{counted, grouped};
use crate::output::CommandResult;
use crate::page::{BAD, FAINT, GOOD, Line, Page, STRONG};

/// Verify that stored conversations are undamaged.
///
/// Reads everything, replays every version and recomputes the chain of hashes.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto verify                     # all conversations
  recto verify support other
  recto verify support --json | jq -r '.conversations[0].link'")]
pub(crate) struct Verify {
    /// Conversations to verify. Default: all
    conversations: Vec<String>,

    /// Conversation to verify, as in other commands; can be repeated
    #[arg(short = 'c', long = "conversation", value_name = "CONVERSATION")]
    named: Vec<String>,
}

impl Verify {
    pub(crate) fn run(mut self, context: &mut Context<'_>) -> Result<(), Failure> {
        self.conversations.append(&mut self.named);
        let session = context.session()?;
        let names: Vec<String> = match self.conversations.is_empty() {
            true => {
                session.recto.list(None, usize::MAX)?.into_iter().map(|info| info.name).collect()
            }
            false => {
                let names = self.conversations.iter().map(|given| session.name_of(given));
                names.collect::<Result<_, _>>()?
            }
        };
        let mut conversations = Vec::new();
        for name in names {
            let handle = session.recto.conversation(&name)?;
            let mut bar = context.bar(format!("verifying {name}"));
            let mut watch = |progress| bar.update(progress);
            let report = context.wait(&session, handle.inner().verify_with_progress(&mut watch))?;
            conversations.push(Verification::of(name, report));
        }
        let below =
            context.wait(&session, async { Ok(session.recto.inner().store().check().await?) })?;
        let is_sound = below.is_empty() && conversations.iter().all(|verified| verified.sound);
        context.print(&StoreVerification { sound: is_sound, conversations, store: below })?;
        match is_sound {
            true => Ok(()),
            false if context.output.is_json() => Err(Failure::Reported(3)),
            false => {
                Err(Failure::Unsound("the store is damaged; restore it from a backup".to_owned()))
            }
        }
    }
}

impl CommandResult for StoreVerification {
    fn show(&self, page: &mut Page) {
        for verified in &self.conversations {
            let (word, style) = if verified.sound { ("sound", GOOD) } else { ("damaged", BAD) };
            let figures = format!(
                "  {}, {}{}",
                counted(u64::from(verified.versions), "version"),
                counted(u64::from(verified.entries), "message"),
                match verified.erased {
                    0 => String::new(),
                    erased => format!(", {} erased or pruned", grouped(u64::from(erased))),
                }
            );
            let line =
                Line::new().styled(style, format!("{word:<8} ")).styled(STRONG, &verified.name);
            page.line(line.styled(FAINT, figures));
            for fault in &verified.faults {
                page.line(Line::wrapping().text("         ").styled(BAD, fault));
            }
        }
        for fault in &self.store {
            page.line(Line::wrapping().styled(BAD, "damaged  ").text(fault));
        }
        let count = counted(self.conversations.len() as u64, "conversation");
        page.line(Line::new().styled(FAINT, format!("{count} verified")));
    }
}
