//! `recto erase`: overwrites a message for good.

use clap::Args;
use recto::LogIndex;
use serde::Serialize;

use crate::arguments::OfConversation;
use crate::desk::Desk;
use crate::failure::Failure;
use crate::numbers::{Entries, bytes, counted};
use crate::output::Answer;
use crate::page::{FAINT, Line, Page, STRONG};

/// Overwrite messages for good, in all versions and forks.
///
/// The entry keeps its number, its role and its count of tokens, and a hash of what it was. Backups
/// that were made before still have it.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto erase 12
  recto erase 12 40-42 --yes -c support")]
pub(crate) struct Erase {
    /// Log entries: 3, or 5-8 for 5 to 8
    #[arg(required = true, value_name = "ENTRIES")]
    entries: Vec<Entries>,

    #[command(flatten)]
    of: OfConversation,

    /// Do not ask
    #[arg(long)]
    yes: bool,
}

impl Erase {
    pub(crate) fn run(self, desk: &mut Desk<'_>) -> Result<(), Failure> {
        let session = desk.session()?;
        let named = session.conversation(&self.of.conversation)?;
        let indices = Entries::all(&self.entries);
        // All of them must be there before the first is erased.
        let log = named.talk.stats()?.total_messages;
        if let Some(&index) = indices.iter().find(|index| index.as_usize() >= log) {
            return Err(recto::EngineError::IndexOutOfRange { index, len: log }.into());
        }
        let count = counted(indices.len() as u64, "message");
        desk.confirm(&format!("erasing {count} of {:?}", named.name), self.yes)?;
        let mut erased = Vec::new();
        for index in indices {
            let receipt = desk.wait(&session, named.talk.inner().erase(index))?;
            erased.push(Erased {
                index,
                bytes: receipt.bytes,
                was_gone: receipt.was_gone,
                hash: receipt.hash.iter().map(|byte| format!("{byte:02x}")).collect(),
            });
        }
        desk.answer(&Receipts { conversation: named.name, erased })
    }
}

#[derive(Serialize)]
struct Receipts {
    conversation: String,
    erased: Vec<Erased>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Erased {
    index: LogIndex,
    bytes: usize,
    /// Whether it had been erased before.
    was_gone: bool,
    /// The SHA-256 of what it was.
    hash: String,
}

impl Answer for Receipts {
    fn show(&self, page: &mut Page) {
        for Erased { index, bytes: size, was_gone, hash } in &self.erased {
            let what = match was_gone {
                true => " was gone already".to_owned(),
                false => format!(" erased, {}", bytes(*size as u64)),
            };
            let line = Line::new().styled(STRONG, format!("#{index}")).text(what);
            page.line(line.styled(FAINT, format!("  sha256 {hash}")));
        }
    }
}
