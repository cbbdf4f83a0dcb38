//! `recto snapshot`: a batch of the live path.

use clap::Args;
use recto::{BatchIndex, BatchSnapshot, Moment, Query};
use serde::{Serialize, Serializer};

use crate::arguments::OfConversation;
use crate::desk::Desk;
use crate::entry_line::{EntryLine as _, ShownEntry};
use crate::failure::Failure;
use crate::numbers::counted;
use crate::output::Answer;
use crate::page::{FAINT, Line, Page, STRONG};
use crate::time;

/// Show a batch of the live path: when and why it was opened, and what it holds.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto snapshot 0
  recto snapshot 2 --json")]
pub(crate) struct Snapshot {
    /// The batch
    batch: usize,

    #[command(flatten)]
    of: OfConversation,
}

impl Snapshot {
    pub(crate) fn run(self, desk: &mut Desk<'_>) -> Result<(), Failure> {
        let session = desk.session()?;
        let named = session.conversation(&self.of.conversation)?;
        let batch = BatchIndex(self.batch);
        let snapshot = named.talk.snapshot(batch)?;
        let query = Query { moment: Moment::Batch(batch), ..Query::default() };
        let entries = super::show::found(&session, &named, &query)?;
        desk.answer(&Shot { snapshot, entries })
    }
}

struct Shot {
    snapshot: BatchSnapshot,
    entries: Vec<ShownEntry>,
}

impl Serialize for Shot {
    /// As the contract writes it.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.snapshot.serialize(serializer)
    }
}

impl Answer for Shot {
    fn show(&self, page: &mut Page) {
        let BatchSnapshot { batch, timestamp, description, .. } = &self.snapshot;
        let line = Line::new().styled(STRONG, format!("batch {batch}  "));
        let line = line.text(description).styled(FAINT, format!("  {}", time::shown(*timestamp)));
        page.line(line);
        for entry in &self.entries {
            let line = entry.line(Default::default(), &[], page);
            page.line(line);
        }
        page.line(Line::new().styled(FAINT, counted(self.entries.len() as u64, "message")));
    }
}
