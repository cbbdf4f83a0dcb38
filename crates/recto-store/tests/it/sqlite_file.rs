//! What is special about a file: its format, its copies, its traces.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use recto_store::{
    Commit, Error, NewConversation, Page, PageKind, Rewrite, Seal, SqliteOptions, SqliteStore,
    Store, StoredRows,
};
use rusqlite::Connection;

use crate::sample::{commit, fork, grown, id, key, new, page, row, row_saying, tenant, words};

async fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(path, SqliteOptions::default()).await.unwrap()
}

async fn refusal(path: &Path) -> Error {
    SqliteStore::open(path, SqliteOptions::default()).await.unwrap_err()
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    PathBuf::from(format!("{}{suffix}", path.display()))
}

#[tokio::test]
async fn all_is_there_when_the_file_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let store = open(&path).await;
    grown(&store, 1, "a", 3).await;
    let pages = vec![page(PageKind::Entries, 0, 2)];
    let sealed = Commit {
        seal: Some(Seal { below: 2, pages: pages.clone(), rows: None }),
        key: Some(key("k", 4)),
        words: vec![words(4, "red")],
        ..commit(id(1), 4)
    };
    store.commit(sealed).await.unwrap();
    drop(store);
    assert!(!beside(&path, "-wal").exists(), "the log is gone when nobody has the file open");
    let store = open(&path).await;
    assert_eq!(store.commits(id(1), None).await, Ok(vec![row(2), row(3), row(4)]));
    assert_eq!(store.pages(id(1), PageKind::Entries, 0..9, true).await, Ok(pages));
    assert_eq!(store.key(id(1), "k").await, Ok(Some(key("k", 4))));
    assert_eq!(store.search(&tenant(), &["red".into()], None, 9).await.unwrap().len(), 1);
}

#[tokio::test]
async fn two_stores_on_one_file_see_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let opened = std::array::from_fn::<_, 2, _>(|_| {
        SqliteStore::open(path.clone(), SqliteOptions::default())
    });
    let [one, other] = opened;
    let (one, other) = tokio::join!(one, other);
    let (one, other) = (one.unwrap(), other.unwrap());
    grown(&one, 1, "a", 0).await;
    for version in (1..20).step_by(2) {
        one.commit(commit(id(1), version)).await.unwrap();
        let conflict = Err(Error::VersionConflict { expected: version - 1, current: version });
        assert_eq!(other.commit(commit(id(1), version)).await, conflict);
        other.commit(commit(id(1), version + 1)).await.unwrap();
        assert_eq!(one.commits(id(1), Some(version)).await, Ok(vec![row(version + 1)]));
    }
}

#[tokio::test]
async fn a_file_of_a_newer_format_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let store = open(&path).await;
    grown(&store, 1, "a", 1).await;
    // A newer program changes the file while this one has it open.
    let newer = Connection::open(&path).unwrap();
    newer.pragma_update(None, "user_version", 99).unwrap();
    let expected = Error::NewerFormat { found: 99, known: 3 };
    assert_eq!(store.commit(commit(id(1), 2)).await, Err(expected.clone()));
    drop((store, newer));
    let before = fs::read(&path).unwrap();
    assert_eq!(refusal(&path).await, expected);
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[tokio::test]
async fn what_is_not_a_store_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text");
    fs::write(&text, "not a database ".repeat(100)).unwrap();
    let foreign = folder.path().join("foreign");
    Connection::open(&foreign).unwrap().execute_batch("CREATE TABLE t (x)").unwrap();
    for path in [&text, &foreign] {
        let before = fs::read(path).unwrap();
        let refused = refusal(path).await;
        assert!(matches!(refused, Error::NotAStore { .. }), "{refused}");
        assert_eq!(fs::read(path).unwrap(), before);
    }
    let missing = folder.path().join("no/folder/a.db");
    let hints = [(folder.path(), "is a folder; name a file"), (&missing, "does not exist; create")];
    for (path, hint) in hints {
        let refused = refusal(path).await.to_string();
        assert!(refused.contains(hint), "{refused}");
    }
    // An empty file is as good as none.
    let empty = folder.path().join("empty");
    fs::write(&empty, "").unwrap();
    grown(&open(&empty).await, 1, "a", 0).await;
}

#[tokio::test]
async fn a_file_without_an_index_stays_without() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let options = SqliteOptions { search: false, ..SqliteOptions::default() };
    let store = SqliteStore::open(&path, options.clone()).await.unwrap();
    let words = vec![words(0, "red")];
    store.create(NewConversation { words, ..new(id(1), "a") }).await.unwrap();
    assert_eq!(store.search(&tenant(), &["red".into()], None, 9).await, Err(Error::NoSearch));
    drop(store);
    let store = open(&path).await;
    assert_eq!(store.search(&tenant(), &["red".into()], None, 9).await, Err(Error::NoSearch));
    store.rewrite(id(1), 0, Rewrite { forget: vec![0], ..Rewrite::default() }).await.unwrap();
    store.remove(&tenant(), "a").await.unwrap();
    drop(store);
    let db = Connection::open(&path).unwrap();
    let tables: u32 = db
        .query_row("SELECT count(*) FROM sqlite_schema WHERE name LIKE 'words%'", [], |row| {
            row.get(0)
        })
        .unwrap();
    assert_eq!(tables, 0);
    // The other way round the index goes on: holes in it would be worse than its cost.
    let path = folder.path().join("b.db");
    grown(&open(&path).await, 1, "a", 0).await;
    let store = SqliteStore::open(&path, options).await.unwrap();
    let words = vec![crate::sample::words(1, "red")];
    store.commit(Commit { words, ..commit(id(1), 1) }).await.unwrap();
    assert_eq!(store.search(&tenant(), &["red".into()], None, 9).await.unwrap().len(), 1);
}

/// Keeps the writer of a store waiting until it is released.
fn hold(path: &Path) -> Connection {
    let db = Connection::open(path).unwrap();
    db.execute_batch("BEGIN IMMEDIATE").unwrap();
    db
}

#[tokio::test]
async fn requests_of_one_group_do_not_hurt_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let store = open(&path).await;
    grown(&store, 1, "a", 0).await;
    grown(&store, 2, "b", 0).await;
    let held = hold(&path);
    let release = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        held.execute_batch("COMMIT").unwrap();
    };
    let keyed = |number, version| Commit { key: Some(key("k", 1)), ..commit(id(number), version) };
    let mine = tenant();
    let (first, late, second, reused, other, renamed, ()) = tokio::join!(
        store.commit(keyed(1, 1)),
        store.commit(commit(id(1), 1)),
        store.commit(commit(id(1), 2)),
        store.commit(keyed(1, 3)),
        store.commit(keyed(2, 1)),
        store.rename(&mine, "b", "a"),
        release,
    );
    assert_eq!((first, second, other), (Ok(()), Ok(()), Ok(())));
    assert_eq!(late, Err(Error::VersionConflict { expected: 0, current: 1 }));
    assert_eq!(reused, Err(Error::KeyReused { key: "k".into() }));
    assert_eq!(renamed, Err(Error::ConversationExists { name: "a".into() }));
    assert_eq!(store.commits(id(1), None).await, Ok(vec![row(0), row(1), row(2)]));
    assert_eq!(store.commits(id(2), None).await, Ok(vec![row(0), row(1)]));
}

#[tokio::test]
async fn a_request_that_fails_half_way_is_taken_back_without_the_others_of_its_group() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let store = open(&path).await;
    grown(&store, 1, "a", 0).await;
    let held = hold(&path);
    let release = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        held.execute_batch("COMMIT").unwrap();
    };
    // The second of the two keys is refused when the rest is written already.
    let twice = StoredRows { keys: vec![key("k", 1), key("k", 1)], ..StoredRows::default() };
    let (first, restored, second, ()) = tokio::join!(
        store.commit(commit(id(1), 1)),
        store.restore(new(id(2), "b"), twice),
        store.commit(commit(id(1), 2)),
        release,
    );
    assert_eq!((first, second), (Ok(()), Ok(())));
    assert_eq!(restored, Err(Error::KeyReused { key: "k".into() }));
    assert_eq!(store.find(&tenant(), "b").await, Ok(None));
    assert_eq!(store.commits(id(1), None).await, Ok(vec![row(0), row(1), row(2)]));
    assert_eq!(store.check().await, Ok(Vec::new()));
}

#[tokio::test]
async fn a_request_that_nobody_waits_for_any_more_is_not_stored() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let store = open(&path).await;
    grown(&store, 1, "a", 0).await;
    grown(&store, 2, "b", 0).await;
    let held = hold(&path);
    let (left, stayed) = (store.commit(commit(id(1), 1)), store.commit(commit(id(2), 1)));
    let left = tokio::time::timeout(Duration::from_millis(50), left);
    let release = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        held.execute_batch("COMMIT").unwrap();
    };
    let (left, stayed, ()) = tokio::join!(left, stayed, release);
    assert!(left.is_err());
    assert_eq!(stayed, Ok(()));
    assert_eq!(store.commits(id(1), None).await, Ok(vec![row(0)]));
    store.commit(commit(id(1), 1)).await.unwrap();
}

const SECRET: &str = "quitesecretmarker";

/// How often the secret is in the file, its log, and what lies beside.
fn traces(folder: &Path) -> usize {
    let files = fs::read_dir(folder).unwrap().map(|file| fs::read(file.unwrap().path()).unwrap());
    let count =
        |bytes: Vec<u8>| bytes.windows(SECRET.len()).filter(|at| *at == SECRET.as_bytes()).count();
    files.map(count).sum()
}

#[tokio::test]
async fn nothing_is_left_of_what_was_erased() {
    // Few entries wait for the index; many are in it already.
    for (entries, is_packed) in [(3, false), (3, true), (900, false), (900, true)] {
        let folder = tempfile::tempdir().unwrap();
        let store = open(&folder.path().join("a.db")).await;
        store.create(new(id(1), "a")).await.unwrap();
        let secret = |version| row_saying(version, &format!("{SECRET} {version}").repeat(500));
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
        assert_eq!(store.search(&tenant(), &[SECRET.into()], None, 9).await, Ok(vec![]));
        assert_eq!(store.check().await, Ok(vec![]));
    }
}

#[tokio::test]
async fn nothing_is_left_of_what_was_removed_once_the_store_is_clean() {
    for entries in [3, 900] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        let store = open(&path).await;
        grown(&store, 1, "other", 3).await;
        store.create(new(id(2), &format!("{SECRET} name"))).await.unwrap();
        for version in 1..=entries {
            let words = vec![words(version, &format!("{SECRET} number{version}"))];
            let row = row_saying(version, &format!("{SECRET} {version}").repeat(500));
            let key = Some(key(&format!("{SECRET} {version}"), version));
            store.commit(Commit { row, words, key, ..commit(id(2), version) }).await.unwrap();
        }
        assert!(traces(folder.path()) > 500);
        let reader = Connection::open(&path).unwrap();
        if entries == 3 {
            reader.execute_batch("BEGIN; SELECT * FROM commits").unwrap();
        }
        store.remove(&tenant(), &format!("{SECRET} name")).await.unwrap();
        let cleaned = store.clean().await;
        if entries == 3 {
            assert!(matches!(cleaned, Err(Error::CopiesLeft { .. })), "{cleaned:?}");
            reader.execute_batch("COMMIT").unwrap();
            store.clean().await.unwrap();
        } else {
            cleaned.unwrap();
        }
        assert_eq!(traces(folder.path()), 0, "{entries} entries");
        assert_eq!(store.check().await, Ok(vec![]));
        assert_eq!(store.commits(id(1), None).await.unwrap().len(), 4);
    }
}

#[tokio::test]
async fn an_erasure_that_cannot_clean_up_says_so_and_can_be_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let store = open(&path).await;
    store.create(new(id(1), "a")).await.unwrap();
    let secret = Commit { row: row_saying(1, SECRET), ..commit(id(1), 1) };
    store.commit(secret).await.unwrap();
    // Somebody reads the old rows, for longer than anybody would wait.
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
async fn a_backup_is_complete_while_others_write() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("a.db")).await;
    grown(&store, 1, "a", 50).await;
    let copy = folder.path().join("copy.db");
    let write = async {
        for version in 51..150 {
            store.commit(commit(id(1), version)).await.unwrap();
        }
    };
    let (copied, ()) = tokio::join!(store.backup(&copy), write);
    copied.unwrap();
    let mut files: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    files.sort();
    assert_eq!(files, ["a.db", "a.db-shm", "a.db-wal", "copy.db"]);
    let before = fs::read(&copy).unwrap();
    let refused = store.backup(&copy).await.unwrap_err().to_string();
    assert!(refused.contains("there is a file of that name already"), "{refused}");
    assert_eq!(fs::read(&copy).unwrap(), before);
    let copy = open(&copy).await;
    let rows = copy.commits(id(1), None).await.unwrap();
    assert!(rows.len() > 50);
    assert_eq!(rows, store.commits(id(1), None).await.unwrap()[..rows.len()]);
    assert_eq!(copy.check().await, Ok(vec![]));
    copy.commit(commit(id(1), rows.len() as u32)).await.unwrap();
}

#[tokio::test]
async fn a_row_that_is_not_where_it_was_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    {
        let store = open(&path).await;
        grown(&store, 1, "a", 6).await;
        for version in [7, 8] {
            let first = (version - 7) * 3;
            let pages = vec![page(PageKind::Records, first, 3), page(PageKind::Entries, first, 3)];
            let seal = Some(Seal { below: first + 3, pages, rows: None });
            let words = vec![words(version, "red")];
            let key = Some(key(&version.to_string(), version));
            let sealed = Commit { seal, words, key, ..commit(id(1), version) };
            store.commit(sealed).await.unwrap();
        }
        let first = row(4);
        store.create(NewConversation { first, ..fork(id(2), "b", &[id(1)], 5) }).await.unwrap();
        assert_eq!(store.check().await, Ok(vec![]));
    }
    // What a changed bit in a key makes of a row, and rows that are gone.
    for (number, change) in [
        "UPDATE commits SET place = place + (64 << 32) WHERE place = (1 << 32) + 8",
        "UPDATE commits SET place = place + 64 WHERE place = (1 << 32) + 8",
        "DELETE FROM commits WHERE place = (1 << 32) + 6",
        "DELETE FROM commits WHERE place = (1 << 32) + 7",
        "UPDATE pages SET place = place + (64 << 33) WHERE place = (1 << 33) + 3",
        "DELETE FROM pages WHERE place = (1 << 33)",
        "DELETE FROM pages WHERE place = (1 << 33) + 3",
        "DELETE FROM pages WHERE place = (1 << 33) + (1 << 32)",
        "UPDATE keys SET conversation = 65 WHERE key = '7'",
        "UPDATE keys SET key = 'w' WHERE key = '7'",
        "UPDATE waiting SET place = place + (64 << 32)",
        "DELETE FROM conversations WHERE number = 2",
        "UPDATE conversations SET lineage = '[]' WHERE number = 2",
    ]
    .into_iter()
    .enumerate()
    {
        let copy = folder.path().join(format!("{number}.db"));
        fs::copy(&path, &copy).unwrap();
        let changed = Connection::open(&copy).unwrap().execute(change, []).unwrap();
        assert!(changed > 0, "{change}");
        let found = open(&copy).await.check().await;
        assert!(found.as_ref().is_ok_and(|found| !found.is_empty()), "{change}: {found:?}");
    }
}
