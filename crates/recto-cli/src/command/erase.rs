//! `recto erase`: overwrites messages.

use clap::Args;
use recto::{LogIndex, Version};
use recto_service::{ErasedEntry, Plan};
use serde::Serialize;

use crate::arguments::{ConversationArgument, DestructiveArguments};
use crate::cache_plan::{PlanArguments, ShowPlan as _};
use crate::context::Context;
use crate::entry_line::{EntryLine as _, ShownEntry, heading};
use crate::failure::Failure;
use crate::numbers::{EntryRange, bytes, counted};
use crate::output::CommandResult;
use crate::page::{BAD, FAINT, Line, Page, STRONG};
use crate::provider::sent_at;
use crate::session::{NamedConversation, Session};

/// Overwrite messages permanently, in all versions and forks.
///
/// An erased entry keeps its log index, its role, its token count and a hash of its content. The message
/// is gone for every process at its next request. Older backups still contain it.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto erase 12 --dry-run
  recto erase 12
  recto erase 12 40-42 --yes -c support")]
pub(crate) struct Erase {
    /// Log entries: 3, or 5-8 for 5 to 8
    #[arg(required = true, value_name = "ENTRIES")]
    entries: Vec<EntryRange>,

    #[command(flatten)]
    of: ConversationArgument,

    #[command(flatten)]
    destructive: DestructiveArguments,

    #[command(flatten)]
    plan: PlanArguments,
}

impl Erase {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<(), Failure> {
        self.plan.check(self.destructive.dry_run)?;
        let session = context.session()?;
        let named = session.conversation(&self.of.conversation)?;
        let indices = EntryRange::all(&self.entries);
        // All entries must exist before the first one is erased.
        let log = match named.handle.stats() {
            // A conversation that cannot be read is not checked here: the error of the erasure says what
            // to do with it.
            Err(error) if error.code() == "storage" && !self.destructive.dry_run => usize::MAX,
            stats => stats?.total_messages,
        };
        if let Some(&index) = indices.iter().find(|index| index.as_usize() >= log) {
            return Err(recto::EngineError::IndexOutOfRange { index, len: log }.into());
        }
        let DestructiveArguments { dry_run, expect_version, yes } = self.destructive;
        let expected = expect_version.map(Version);
        if dry_run {
            return self.would_erase(&indices, &session, &named, context);
        }
        let count = counted(indices.len() as u64, "message");
        context.confirm(&format!("erasing {count} of {:?}", named.name), yes)?;
        let mut erased = Vec::new();
        for index in indices {
            let report = context.wait(&session, named.handle.inner().erase_if(index, expected))?;
            erased.push(ErasedEntry::from(report));
        }
        context.print(&EraseResult { conversation: named.name, erased })
    }

    /// Shows the messages that would be erased, and what the change costs in the prompt cache.
    fn would_erase(
        &self,
        indices: &[LogIndex],
        session: &Session,
        named: &NamedConversation,
        context: &mut Context<'_>,
    ) -> Result<(), Failure> {
        let before = sent_at(session, named, None)?;
        let current = before.version.0;
        if let Some(expected) =
            self.destructive.expect_version.filter(|version| *version != current)
        {
            return Err(recto::StoreError::VersionConflict { expected, current }.into());
        }
        let mut after = before.clone();
        for entry in after.entries.iter_mut().filter(|entry| indices.contains(&entry.index)) {
            entry.message = entry.message.erased();
        }
        let counter = named.handle.settings()?.counter;
        let cache_plan = self.plan.compare(&before, &after, &counter, context)?;
        let entries = named.handle.entries(indices)?.into_iter().map(ShownEntry::from).collect();
        let conversation = named.name.clone();
        context.print(&WouldErase { conversation, dry_run: true, entries, cache_plan })
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

impl CommandResult for WouldErase {
    fn show(&self, page: &mut Page) {
        page.line(heading("  "));
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
struct EraseResult {
    conversation: String,
    erased: Vec<ErasedEntry>,
}

impl CommandResult for EraseResult {
    fn show(&self, page: &mut Page) {
        for ErasedEntry { index, bytes: size, was_gone, hash, .. } in &self.erased {
            let what = match was_gone {
                true => " was already erased".to_owned(),
                false => format!(" erased, {}", bytes(*size as u64)),
            };
            let line = Line::new().styled(STRONG, format!("#{index}")).text(what);
            page.line(line.styled(FAINT, format!("  sha256 {hash}")));
        }
        let count = self.erased.iter().filter(|erased| !erased.was_gone).count();
        let line = Line::new().text(counted(count as u64, "message")).text(" erased");
        page.line(line.styled(FAINT, " in ").text(&self.conversation));
    }
}
