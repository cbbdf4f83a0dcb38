//! `recto clean`: rewrites the store without free space.

use clap::Args;
use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;
use crate::numbers::bytes;
use crate::output::CommandResult;
use crate::page::Page;

/// Compact the store, and leave no copies of removed data.
///
/// `erase` and `prune` already overwrite the data that they delete; so does `remove` in a SQLite file. In
/// PostgreSQL, `remove` leaves it in the server's files until this command runs. It rewrites the whole store
/// and returns the free space (SQLite: VACUUM, and a truncated write-ahead log; PostgreSQL: VACUUM FULL of
/// every table, which locks the tables). Run it after an error that says that copies may be left. In a SQLite
/// file it also builds damaged indexes again; in PostgreSQL it builds all indexes again.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto clean
  recto clean --store sqlite:chats.db --json")]
pub(crate) struct Clean {}

impl Clean {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<(), Failure> {
        let session = context.session()?;
        let size = || session.recto.wait(session.recto.store().size());
        let before = size()?;
        context.wait(&session, session.recto.inner().clean())?;
        let after = size()?;
        context.print(&Cleaned { bytes_before: before, bytes: after })
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Cleaned {
    bytes_before: Option<u64>,
    bytes: Option<u64>,
}

impl CommandResult for Cleaned {
    fn show(&self, page: &mut Page) {
        match (self.bytes_before, self.bytes) {
            (Some(before), Some(after)) => {
                page.line(format!("cleaned the store: {}, before {}", bytes(after), bytes(before)));
            }
            _ => page.line("cleaned the store"),
        }
    }
}
