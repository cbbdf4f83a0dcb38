//! Changed bits in the file: a read returns an error or the written value.

use std::path::Path;

use recto_store::{
    CommitRow, ConversationRow, Error, IdempotencyKey, Page, PageKind, Rewrite, SqliteOptions,
    SqliteStore, Store,
};

use super::{Dice, chain, child, note};
use crate::sample::{id, tenant};

#[test]
fn a_read_returns_the_written_rows_or_an_error() {
    run(super::setting("RECTO_SIM_SEED", 1), 100);
}

/// Everything that can be read.
struct Read {
    list: Result<Vec<ConversationRow>, Error>,
    commits: Result<Vec<CommitRow>, Error>,
    pages: Result<Vec<Page>, Error>,
    key: Result<Option<IdempotencyKey>, Error>,
}

impl Read {
    async fn from(store: &dyn Store) -> Read {
        let mut pages = store.pages(id(1), PageKind::Entries, 0..u32::MAX, true).await;
        let records = store.pages(id(1), PageKind::Records, 0..u32::MAX, true).await;
        pages = pages.and_then(|pages| Ok([pages, records?].concat()));
        Read {
            list: store.list(&tenant(), None, 100).await,
            commits: store.commits(id(1), None).await,
            pages,
            key: store.key(id(1), "30").await,
        }
    }
}

/// Rows that were read must be equal to the written ones. The chain detects missing rows.
fn is_part<T: PartialEq>(read: &Result<Vec<T>, Error>, written: &Result<Vec<T>, Error>) -> bool {
    let written = written.as_ref().unwrap();
    read.as_ref().map_or(true, |rows| rows.iter().all(|row| written.contains(row)))
}

/// Changes one bit in each of `flips` copies of a file.
pub(super) fn run(seed: u64, flips: u32) {
    note(&format!("bit flips: seed {seed}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let file = folder.path().join("a.db");
    let written = runtime.block_on(async {
        let store = SqliteStore::open(&file, SqliteOptions::default()).await.unwrap();
        let mut chain = chain::Chain::open(&store, 1).await.unwrap();
        for number in 0..60 {
            // Most of the file is rows then.
            chain.append(&child::incompressible(number, 60)).await.unwrap();
        }
        // Without free space, where a changed bit has no effect.
        store.rewrite(id(1), chain.version(), Rewrite::default()).await.unwrap();
        Read::from(&store).await
    });
    let bytes = std::fs::read(&file).unwrap();
    let mut dice = Dice(seed);
    let (mut noticed, mut missing) = (0, 0);
    for flip in 0..flips {
        let mut bytes = bytes.clone();
        let at = dice.below(bytes.len() as u64) as usize;
        bytes[at] ^= 1 << dice.below(8);
        let copy = folder.path().join(format!("{flip}.db"));
        std::fs::write(&copy, &bytes).unwrap();
        let (read, check) = runtime.block_on(read(&copy));
        let Some(read) = read else {
            noticed += 1;
            continue;
        };
        let place = format!("seed {seed}, flip {flip}, byte {at}");
        // The newest row depends on the rows that exist.
        let heads = || written.commits.iter().flatten().map(|row| row.head);
        let first = &written.list.as_ref().unwrap()[0];
        let is_alike = |row: &ConversationRow| {
            let alike = ConversationRow { head: first.head, ..row.clone() };
            alike == *first && heads().any(|head| head == row.head)
        };
        assert!(read.list.as_ref().map_or(true, |rows| rows.iter().all(is_alike)), "{place}");
        assert!(is_part(&read.commits, &written.commits), "{place}");
        assert!(is_part(&read.pages, &written.pages), "{place}");
        assert!(read.key.as_ref().map_or(true, |key| key.is_none() || read.key == written.key));
        let is_whole = read.list == written.list
            && read.commits == written.commits
            && read.pages == written.pages;
        let has_error = read.list.is_err() || read.commits.is_err() || read.pages.is_err();
        let is_reported = check.as_ref().map_or(true, |damage| !damage.is_empty());
        noticed += u32::from(is_reported || has_error);
        missing += u32::from(!is_whole && !has_error);
        assert!(is_whole || has_error || is_reported, "{place}: rows are missing without an error");
    }
    note(&format!("{flips} flips, {noticed} noticed, rows missing in {missing}, none changed"));
}

async fn read(file: &Path) -> (Option<Read>, Result<Vec<String>, Error>) {
    match SqliteStore::open(file, SqliteOptions::default()).await {
        Ok(store) => {
            let read = Read::from(&store).await;
            let _ = store.search(&tenant(), &["word3".into()], 9).await;
            (Some(read), store.check().await)
        }
        Err(error) => (None, Err(error)),
    }
}
