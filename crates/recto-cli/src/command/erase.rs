//! `recto erase`: overwrites a message for good.

use clap::Args;
use recto::{LogIndex, Version};
use recto_service::{ErasedEntry, Plan};
use serde::Serialize;

use crate::arguments::{Caution, OfConversation};
use crate::cache_plan::{PlanArguments, ShowPlan as _};
use crate::desk::Desk;
use crate::entry_line::{EntryLine as _, ShownEntry};
use crate::failure::Failure;
use crate::numbers::{Entries, bytes, counted};
use crate::output::Answer;
use crate::page::{BAD, FAINT, Line, Page, STRONG};
use crate::provider::sent_at;
use crate::session::{Named, Session};

/// Overwrite messages for good, in all versions and forks.
///
/// The entry keeps its number, its role and its count of tokens, and a hash of what it was. Backups
/// that were made before still have it.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto erase 12 --dry-run
  recto erase 12
  recto erase 12 40-42 --yes -c support")]
pub(crate) struct Erase {
    /// Log entries: 3, or 5-8 for 5 to 8
    #[arg(required = true, value_name = "ENTRIES")]
    entries: Vec<Entries>,

    #[command(flatten)]
    of: OfConversation,

    #[command(flatten)]
    caution: Caution,

    #[command(flatten)]
    plan: PlanArguments,
}

impl Erase {
    pub(crate) fn run(self, desk: &mut Desk<'_>) -> Result<(), Failure> {
        self.plan.check(self.caution.dry_run)?;
        let session = desk.session()?;
        let named = session.conversation(&self.of.conversation)?;
        let indices = Entries::all(&self.entries);
        // All of them must be there before the first is erased.
        let log = named.talk.stats()?.total_messages;
        if let Some(&index) = indices.iter().find(|index| index.as_usize() >= log) {
            return Err(recto::EngineError::IndexOutOfRange { index, len: log }.into());
        }
        let Caution { dry_run, expect_version, yes } = self.caution;
        let expected = expect_version.map(Version);
        if dry_run {
            return self.would_erase(&indices, &session, &named, desk);
        }
        let count = counted(indices.len() as u64, "message");
        desk.confirm(&format!("erasing {count} of {:?}", named.name), yes)?;
        let mut erased = Vec::new();
        for index in indices {
            let receipt = desk.wait(&session, named.talk.inner().erase_if(index, expected))?;
            erased.push(ErasedEntry::from(receipt));
        }
        desk.answer(&Receipts { conversation: named.name, erased })
    }

    /// Shows what would be erased, and what that costs where the model reads it.
    fn would_erase(
        &self,
        indices: &[LogIndex],
        session: &Session,
        named: &Named,
        desk: &mut Desk<'_>,
    ) -> Result<(), Failure> {
        let before = sent_at(session, named, None)?;
        let current = before.version.0;
        if let Some(expected) = self.caution.expect_version.filter(|version| *version != current) {
            return Err(recto::StoreError::VersionConflict { expected, current }.into());
        }
        let mut after = before.clone();
        for entry in after.entries.iter_mut().filter(|entry| indices.contains(&entry.index)) {
            entry.message = entry.message.erased();
        }
        let counter = session.recto.wait(named.talk.inner().settings())?.counter;
        let cache_plan = self.plan.compare(&before, &after, &counter, desk)?;
        let entries = named.talk.entries(indices)?.into_iter().map(ShownEntry::from).collect();
        let conversation = named.name.clone();
        desk.answer(&WouldErase { conversation, dry_run: true, entries, cache_plan })
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WouldErase {
    conversation: String,
    dry_run: bool,
    entries: Vec<ShownEntry>,
    cache_plan: Plan,
}

impl Answer for WouldErase {
    fn show(&self, page: &mut Page) {
        for entry in &self.entries {
            let line = entry.line((BAD, "- "), &[], page);
            page.line(line);
        }
        let count = counted(self.entries.len() as u64, "message");
        page.line(Line::new().text(count).styled(STRONG, " would be erased"));
        self.cache_plan.show(page);
    }
}

#[derive(Serialize)]
struct Receipts {
    conversation: String,
    erased: Vec<ErasedEntry>,
}

impl Answer for Receipts {
    fn show(&self, page: &mut Page) {
        for ErasedEntry { index, bytes: size, was_gone, hash } in &self.erased {
            let what = match was_gone {
                true => " was gone already".to_owned(),
                false => format!(" erased, {}", bytes(*size as u64)),
            };
            let line = Line::new().styled(STRONG, format!("#{index}")).text(what);
            page.line(line.styled(FAINT, format!("  sha256 {hash}")));
        }
    }
}
