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
/// Reads everything, replays every version, recomputes the chain of hashes, and compares the search index
/// with the messages. A damaged conversation does not stop the others. Exit code 3 if there is damage.
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
        let mut bar = context.bar("verifying");
        let recto = session.recto.inner();
        let mut conversations = Vec::new();
        if self.conversations.is_empty() {
            let mut watch = |name: &str, progress| {
                bar.label(format!("verifying {name}"));
                bar.update(progress);
            };
            let reports = context.wait(&session, recto.verify_all(&mut watch))?;
            conversations
                .extend(reports.into_iter().map(|(name, report)| Verification::of(name, report)));
        }
        for given in &self.conversations {
            // A damaged conversation is only found by its whole name.
            let name = session.name_of(given).unwrap_or_else(|_| given.clone());
            bar.label(format!("verifying {name}"));
            let mut watch = |progress| bar.update(progress);
            let report = context.wait(&session, recto.verify_named(&name, &mut watch))?;
            conversations.push(Verification::of(name, report));
        }
        bar.label("checking the store".to_owned());
        let below = context.wait(&session, recto.check())?;
        drop(bar);
        let verified = StoreVerification::of(conversations, below);
        let only_indexes = verified.conversations.iter().all(|verified| verified.sound)
            && verified.store.iter().all(|fault| fault.contains("index"));
        context.print(&verified)?;
        match verified.sound {
            true => Ok(()),
            false if context.output.is_json() => Err(Failure::Reported(3)),
            false => {
                let advice = match only_indexes {
                    true => "build its indexes again with `recto clean`",
                    false => {
                        "restore it from a backup, or copy what can be read with `recto salvage`; \
                         `recto clean` builds damaged indexes again"
                    }
                };
                Err(Failure::Unsound(format!("the store is damaged; {advice}")))
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
