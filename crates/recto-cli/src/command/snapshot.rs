//! `recto snapshot`: shows a batch.

use clap::Args;
use recto::{BatchIndex, Query, QueryAt};
use recto_service::{BatchSnapshot, Snapshot as SnapshotRequest};
use serde::{Serialize, Serializer};

use crate::arguments::ConversationArgument;
use crate::context::Context;
use crate::entry_line::{EntryLine as _, ShownEntry, heading};
use crate::failure::Failure;
use crate::numbers::counted;
use crate::output::CommandResult;
use crate::page::{FAINT, Line, Page, STRONG};
use crate::time;

/// Show a batch of the live path.
///
/// Prints when and why it was opened, and its messages.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto snapshot 0
  recto snapshot 2 --json")]
pub(crate) struct Snapshot {
    /// Number of the batch
    batch: usize,

    #[command(flatten)]
    of: ConversationArgument,
}

impl Snapshot {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<(), Failure> {
        let session = context.session()?;
        let named = session.conversation(&self.of.conversation)?;
        let (conversation, snapshot) = (named.name.clone(), self.batch as u64);
        let snapshot = session.run(SnapshotRequest { conversation, snapshot })?;
        let query = Query { at: QueryAt::Batch(BatchIndex(self.batch)), ..Query::default() };
        let entries = super::show::found(&session, &named, &query)?;
        context.print(&SnapshotResult { snapshot, entries })
    }
}

struct SnapshotResult {
    snapshot: BatchSnapshot,
    entries: Vec<ShownEntry>,
}

impl Serialize for SnapshotResult {
    /// The response of the request.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.snapshot.serialize(serializer)
    }
}

impl CommandResult for SnapshotResult {
    fn show(&self, page: &mut Page) {
        let BatchSnapshot(recto::BatchSnapshot { batch, timestamp, reason, .. }) = &self.snapshot;
        let line = Line::new().styled(STRONG, format!("batch {batch}  "));
        let line = line.text(reason).styled(FAINT, format!("  {}", time::shown(*timestamp)));
        page.line(line);
        if !self.entries.is_empty() {
            page.line(heading(""));
        }
        for entry in &self.entries {
            let line = entry.line(Default::default(), &[], page);
            page.line(line);
        }
        page.line(Line::new().styled(FAINT, counted(self.entries.len() as u64, "message")));
    }
}
