//! Erasing and removing in SQLite files: no file keeps a copy, even while other connections read, write or
//! checkpoint.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use recto_store::{
    Commit, Error, Page, PageKind, Rewrite, Seal, SqliteOptions, SqliteStore, Store,
};
use rusqlite::Connection;

use crate::sample::{commit, grown, id, key, new, page, row, row_with_body, tenant, words};

async fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(path, SqliteOptions::default()).await.unwrap()
}

const SECRET: &str = "quitesecretmarker";

/// Number of occurrences of the secret in the file, its log and the files beside it.
fn traces(folder: &Path) -> usize {
    let files = fs::read_dir(folder).unwrap().map(|file| fs::read(file.unwrap().path()).unwrap());
    let count =
        |bytes: Vec<u8>| bytes.windows(SECRET.len()).filter(|at| *at == SECRET.as_bytes()).count();
    files.map(count).sum()
}

#[tokio::test]
async fn an_erased_message_is_in_no_file() {
    // A few entries wait for the index; many are in it already.
    for (entries, is_packed) in [(3, false), (3, true), (900, false), (900, true)] {
        let folder = tempfile::tempdir().unwrap();
        let store = open(&folder.path().join("a.db")).await;
        store.create(new(id(1), "a")).await.unwrap();
        let secret = |version| row_with_body(version, &format!("{SECRET} {version}").repeat(500));
        for version in 1..=entries {
            let words = vec![words(version, &format!("{SECRET} number{version}"))];
            store
                .commit(Commit { row: secret(version), words, ..commit(id(1), version) })
                .await
                .unwrap();
        }
        let packed = Page { body: secret(1).body, ..page(PageKind::Entries, 0, entries + 1) };
        if is_packed {
            let pages = vec![packed.clone(), page(PageKind::Records, 0, entries + 1)];
            let seal = Some(Seal { below: entries + 1, pages, rows: None });
            store.commit(Commit { seal, ..commit(id(1), entries + 1) }).await.unwrap();
        }
        assert!(traces(folder.path()) > 500);
        let rewrite = match is_packed {
            true => Rewrite { pages: vec![Page { body: vec![], ..packed }], ..Rewrite::default() },
            false => Rewrite { commits: (1..=entries).map(row).collect(), ..Rewrite::default() },
        };
        let rewrite = Rewrite { forget: (1..=entries).collect(), ..rewrite };
        store.rewrite(id(1), entries + u32::from(is_packed), rewrite).await.unwrap();
        assert_eq!(traces(folder.path()), 0, "{entries} entries, packed: {is_packed}");
        assert_eq!(store.search(&tenant(), &[SECRET.into()], 9).await, Ok(vec![]));
        assert_eq!(store.check().await, Ok(vec![]));
    }
}

#[tokio::test]
async fn a_removed_conversation_is_in_no_file() {
    for entries in [3, 900] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        let store = open(&path).await;
        grown(&store, 1, "other", 3).await;
        store.create(new(id(2), &format!("{SECRET} name"))).await.unwrap();
        for version in 1..=entries {
            let words = vec![words(version, &format!("{SECRET} number{version}"))];
            let row = row_with_body(version, &format!("{SECRET} {version}").repeat(500));
            let key = Some(key(&format!("{SECRET} {version}"), version));
            // Some rows are packed, which frees their space long before the conversation is removed.
            let packed = Page { body: row.body.clone(), ..page(PageKind::Entries, 0, version) };
            let seal =
                (version == 600).then(|| Seal { below: 600, pages: vec![packed], rows: None });
            let commit = Commit { row, words, key, seal, ..commit(id(2), version) };
            store.commit(commit).await.unwrap();
        }
        assert!(traces(folder.path()) > 500);
        let reader = Connection::open(&path).unwrap();
        if entries == 3 {
            reader.execute_batch("BEGIN; SELECT * FROM commits").unwrap();
        }
        let removed = store.remove(&tenant(), &format!("{SECRET} name")).await;
        if entries == 3 {
            assert!(matches!(removed, Err(Error::CopiesLeft { .. })), "{removed:?}");
            reader.execute_batch("COMMIT").unwrap();
            store.clean().await.unwrap();
        } else {
            removed.unwrap();
        }
        assert_eq!(traces(folder.path()), 0, "{entries} entries");
        assert_eq!(store.check().await, Ok(vec![]));
        assert_eq!(store.commits(id(1), None).await.unwrap().len(), 4);
    }
}

#[tokio::test]
async fn an_erasure_that_cannot_clean_the_file_fails_and_can_be_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let store = open(&path).await;
    store.create(new(id(1), "a")).await.unwrap();
    let secret = Commit { row: row_with_body(1, SECRET), ..commit(id(1), 1) };
    store.commit(secret).await.unwrap();
    // A reader keeps the old rows longer than the erasure waits.
    let reader = Connection::open(&path).unwrap();
    reader.execute_batch("BEGIN; SELECT * FROM commits").unwrap();
    let rewrite = Rewrite { commits: vec![row(1)], ..Rewrite::default() };
    let left = store.rewrite(id(1), 1, rewrite.clone()).await;
    assert!(matches!(left, Err(Error::CopiesLeft { .. })), "{left:?}");
    reader.execute_batch("COMMIT").unwrap();
    store.rewrite(id(1), 1, rewrite).await.unwrap();
    assert_eq!(traces(folder.path()), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn removing_and_erasing_wait_for_a_checkpoint_of_another_connection() {
    /// Whether the other connection has started its checkpoint, and whether it may complete it.
    static HAS_STARTED: AtomicBool = AtomicBool::new(false);
    static MAY_END: AtomicBool = AtomicBool::new(false);
    let until = |flag: &AtomicBool| {
        while !flag.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(1));
        }
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let store = open(&path).await;
    store.create(new(id(1), "a")).await.unwrap();
    store.commit(Commit { row: row_with_body(1, SECRET), ..commit(id(1), 1) }).await.unwrap();
    for is_removed in [false, true] {
        HAS_STARTED.store(false, Ordering::SeqCst);
        MAY_END.store(false, Ordering::SeqCst);
        // The checkpoint takes its own lock first and then waits for this writer, in its busy handler.
        let writer = Connection::open(&path).unwrap();
        writer.execute_batch("BEGIN IMMEDIATE").unwrap();
        let mut other = Connection::open(&path).unwrap();
        let checkpoint = thread::spawn(move || {
            let wait = |_| {
                HAS_STARTED.store(true, Ordering::SeqCst);
                while !MAY_END.load(Ordering::SeqCst) {
                    thread::sleep(Duration::from_millis(1));
                }
                true
            };
            other.busy_handler(Some(wait)).unwrap();
            other.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        });
        until(&HAS_STARTED);
        writer.execute_batch("COMMIT").unwrap();
        let rewrite = Rewrite { commits: vec![row(1)], ..Rewrite::default() };
        let (tenant, reader) = (tenant(), open(&path).await);
        let done = async {
            match is_removed {
                true => store.remove(&tenant, "a").await,
                false => store.rewrite(id(1), 1, rewrite).await,
            }
        };
        let release = async {
            // The rows are replaced or removed, and the log has to be truncated.
            while reader
                .commits(id(1), None)
                .await
                .is_ok_and(|rows| rows.len() == 2 && (is_removed || rows[1] != row(1)))
            {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
            MAY_END.store(true, Ordering::SeqCst);
        };
        let (done, ()) = tokio::join!(done, release);
        checkpoint.join().unwrap();
        assert_eq!(done, Ok(()), "removed: {is_removed}");
        assert_eq!(traces(folder.path()), 0);
    }
}
