//! Tests of SQLite files only: format, group commit, erasing, backup.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use recto_store::{
    Commit, Error, NewConversation, PageKind, RestoredConversation, Rewrite, Seal, SqliteOptions,
    SqliteStore, Store, StoredRows,
};
use rusqlite::Connection;

use crate::sample::{commit, fork, grown, id, key, new, page, row, row_with_body, tenant, words};

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
async fn a_reopened_file_has_all_rows() {
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
    assert!(
        !beside(&path, "-wal").exists(),
        "the log is removed when the last store closes the file"
    );
    let store = open(&path).await;
    assert_eq!(store.commits(id(1), None).await, Ok(vec![row(2), row(3), row(4)]));
    assert_eq!(store.pages(id(1), PageKind::Entries, 0..9, true).await, Ok(pages));
    assert_eq!(store.key(id(1), "k").await, Ok(Some(key("k", 4))));
    assert_eq!(store.search(&tenant(), &["red".into()], 9).await.unwrap().len(), 1);
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
async fn a_file_of_a_newer_format_is_refused_and_unchanged() {
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
async fn a_file_that_is_not_a_store_is_refused_and_unchanged() {
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
    // An empty file is treated as a missing one.
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
    assert_eq!(store.search(&tenant(), &["red".into()], 9).await, Err(Error::NoSearch));
    drop(store);
    let store = open(&path).await;
    assert_eq!(store.search(&tenant(), &["red".into()], 9).await, Err(Error::NoSearch));
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
    // A file with an index keeps it, because an index with gaps would give wrong results.
    let path = folder.path().join("b.db");
    grown(&open(&path).await, 1, "a", 0).await;
    let store = SqliteStore::open(&path, options).await.unwrap();
    let words = vec![crate::sample::words(1, "red")];
    store.commit(Commit { words, ..commit(id(1), 1) }).await.unwrap();
    assert_eq!(store.search(&tenant(), &["red".into()], 9).await.unwrap().len(), 1);
}

/// Blocks the writer of a store until the transaction of the connection ends.
fn hold(path: &Path) -> Connection {
    let db = Connection::open(path).unwrap();
    db.execute_batch("BEGIN IMMEDIATE").unwrap();
    db
}

#[tokio::test]
async fn requests_of_one_group_are_independent() {
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
async fn a_failed_request_is_rolled_back_without_the_others_of_its_group() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let store = open(&path).await;
    grown(&store, 1, "a", 0).await;
    let held = hold(&path);
    let release = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        held.execute_batch("COMMIT").unwrap();
    };
    // The second of the two keys is refused after the other rows were written.
    let twice = StoredRows { keys: vec![key("k", 1), key("k", 1)], ..StoredRows::default() };
    let (first, restored, second, ()) = tokio::join!(
        store.commit(commit(id(1), 1)),
        store.restore(vec![RestoredConversation {
            new: new(id(2), "b"),
            is_removed: false,
            rows: twice,
        }]),
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
async fn a_request_dropped_before_its_turn_is_not_stored() {
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
async fn a_moved_row_is_detected() {
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
    // Rows with a changed bit in their key, and missing rows.
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

/// Every bit of a page that leads to conversations.
#[tokio::test]
async fn a_changed_bit_in_an_index_never_leads_to_another_conversation() {
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let path = folder.path().join("a.db");
    let names = ["a", "b", "c", "d", "e", "f"];
    {
        let store = open(&path).await;
        for (number, name) in (1..).zip(names) {
            let first = row_with_body(0, &format!("only in {name}"));
            let new = NewConversation { first, ..new(id(number), name) };
            store.create(new).await.unwrap();
        }
        store.clean().await.unwrap();
    }
    let pages: Vec<usize> = {
        let db = Connection::open(&path).unwrap();
        let select = "SELECT rootpage FROM sqlite_schema WHERE tbl_name = 'conversations'";
        let mut select = db.prepare(select).unwrap();
        let pages = select.query_map([], |row| row.get::<_, u32>(0)).unwrap();
        pages.map(|page| page.unwrap() as usize).collect()
    };
    assert_eq!(pages.len(), 3, "the table and two indexes, each on one page");
    let bytes = fs::read(&path).unwrap();
    let copy = folder.path().join("copy.db");
    let (mut noticed, mut flips) = (0, 0);
    for page in pages {
        // The used parts of a page: its header, the places of its cells, and the cells at its end.
        let mut page = (page - 1) * 4096..page * 4096;
        let used: Vec<usize> = page.by_ref().filter(|&at| bytes[at] != 0).collect();
        for (at, bit) in used.iter().flat_map(|&at| (0..8).map(move |bit| (at, bit))) {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1 << bit;
            fs::write(&copy, &bytes).unwrap();
            flips += 1;
            let Ok(store) = SqliteStore::open(&copy, SqliteOptions::default()).await else {
                noticed += 1;
                continue;
            };
            let place = format!("byte {at}, bit {bit}");
            let mut is_right = true;
            for (number, name) in (1..).zip(names) {
                let body = format!("only in {name}").into_bytes();
                let found = store.find(&tenant(), name).await;
                is_right &= found.is_ok();
                match found {
                    Ok(found) => assert_eq!(found.map(|row| row.id), Some(id(number)), "{place}"),
                    Err(error) => assert!(is_damage(&error), "{place}: {error}"),
                }
                let commits = store.commits(id(number), None).await;
                is_right &= commits.is_ok();
                match commits {
                    Ok(commits) => assert_eq!(commits[0].body, body, "{place}"),
                    Err(error) => assert!(is_damage(&error), "{place}: {error}"),
                }
            }
            match store.list(&tenant(), None, 99).await {
                Ok(all) => assert!(all.iter().map(|row| &*row.name).eq(names), "{place}"),
                Err(error) => {
                    is_right = false;
                    assert!(is_damage(&error), "{place}: {error}");
                }
            }
            // A write reaches its own conversation or none.
            let said = Commit { row: row_with_body(1, "next"), ..commit(id(2), 1) };
            if store.commit(said).await.is_ok() {
                for other in [1, 3, 4, 5, 6] {
                    let rows = store.commits(id(other), None).await;
                    let is_untouched = rows.is_err() || rows.is_ok_and(|rows| rows.len() == 1);
                    assert!(is_untouched, "{place}: written to {other}");
                }
            } else {
                is_right = false;
            }
            let damage = store.check().await;
            let is_found = damage.as_ref().map_or(true, |damage| !damage.is_empty());
            assert!(is_right || is_found, "{place}: {damage:?}");
            noticed += u32::from(is_found);
        }
    }
    assert!(noticed * 10 > flips * 8, "{noticed} of {flips} flips are noticed");
}

fn is_damage(error: &Error) -> bool {
    matches!(error, Error::Damaged { .. } | Error::Failed { .. })
}

#[tokio::test]
async fn a_fork_is_found_by_its_lineage_or_there_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    {
        let store = open(&path).await;
        grown(&store, 1, "a", 3).await;
        let first = row(2);
        store.create(NewConversation { first, ..fork(id(2), "b", &[id(1)], 3) }).await.unwrap();
        assert_eq!(store.forks(id(1)).await.unwrap().len(), 1);
        store.clean().await.unwrap();
    }
    for (number, change) in [
        "UPDATE conversations SET lineage = '[]' WHERE number = 2",
        "UPDATE conversations SET lineage = replace(lineage, '1', '3') WHERE number = 2",
        "UPDATE conversations SET name = NULL WHERE number = 2",
    ]
    .into_iter()
    .enumerate()
    {
        let copy = folder.path().join(format!("{number}.db"));
        fs::copy(&path, &copy).unwrap();
        assert_eq!(Connection::open(&copy).unwrap().execute(change, []).unwrap(), 1, "{change}");
        let store = open(&copy).await;
        let rewrite = Rewrite { forks: Some(Vec::new()), ..Rewrite::default() };
        for refused in [
            store.forks(id(1)).await.map(drop),
            store.rewrite(id(1), 3, rewrite).await,
            store.remove(&tenant(), "a").await,
        ] {
            assert!(matches!(refused, Err(Error::Damaged { .. })), "{change}: {refused:?}");
        }
        assert_eq!(store.commits(id(1), None).await.unwrap().len(), 4, "nothing is deleted");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn only_its_owner_can_read_a_new_file() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let store = open(&path).await;
    grown(&store, 1, "a", 1).await;
    let copy = folder.path().join("copy.db");
    store.backup(&copy).await.unwrap();
    for file in [path.clone(), beside(&path, "-wal"), beside(&path, "-shm"), copy] {
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", file.display());
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_that_was_deleted_or_replaced_accepts_no_writes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    for is_replaced in [false, true] {
        let store = open(&path).await;
        grown(&store, 1, "a", 1).await;
        for suffix in ["", "-wal", "-shm"] {
            fs::rename(beside(&path, suffix), beside(&path, &format!("{suffix}.old"))).unwrap();
        }
        if is_replaced {
            drop(open(&path).await);
        }
        let refused = store.commit(commit(id(1), 2)).await.unwrap_err();
        assert!(refused.to_string().contains("deleted or replaced"), "{refused}");
        drop(store);
        let _ = fs::remove_file(&path);
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_whose_log_was_deleted_or_replaced_accepts_no_writes_and_keeps_the_earlier_ones() {
    let folder = tempfile::tempdir().unwrap();
    for (number, suffix) in ["-wal", "-shm"].into_iter().enumerate() {
        for is_replaced in [false, true] {
            let path = folder.path().join(format!("{number} {is_replaced}.db"));
            let store = open(&path).await;
            grown(&store, 1, "a", 3).await;
            let file = beside(&path, suffix);
            let old = fs::read(&file).unwrap();
            fs::remove_file(&file).unwrap();
            if is_replaced {
                fs::write(&file, old).unwrap();
            }
            let refused = store.commit(commit(id(1), 4)).await.unwrap_err();
            let refused = refused.to_string();
            assert!(refused.contains("deleted or replaced"), "{refused}");
            assert!(refused.contains(suffix), "{refused}");
            // As after a kill: the store is not closed before another one opens the file.
            let copy = folder.path().join("copy.db");
            for suffix in ["", "-wal"] {
                let _ = fs::remove_file(beside(&copy, suffix));
                if fs::exists(beside(&path, suffix)).unwrap() {
                    fs::copy(beside(&path, suffix), beside(&copy, suffix)).unwrap();
                }
            }
            let rows = open(&copy).await.commits(id(1), None).await;
            assert_eq!(rows.map(|rows| rows.len()), Ok(4), "{suffix}");
        }
    }
}

#[tokio::test]
async fn a_damaged_number_of_rewrites_keeps_nothing_from_being_read_and_is_replaced_by_clean() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let store = open(&path).await;
    let other = open(&path).await;
    grown(&store, 1, "a", 3).await;
    let rewrite = Rewrite { commits: vec![row_with_body(2, "nothing")], ..Rewrite::default() };
    for damage in
        ["UPDATE rewrites SET copy = 4", "UPDATE rewrites SET count = 'x'", "DELETE FROM rewrites"]
    {
        let before = other.unpacked(id(1), None).await.unwrap().rewrites;
        Connection::open(&path).unwrap().execute_batch(damage).unwrap();
        let damaged = other.unpacked(id(1), None).await.unwrap();
        assert_eq!(damaged.commits.len(), 4, "{damage}");
        assert_ne!(damaged.rewrites, before, "{damage}: what is loaded is dropped");
        assert_eq!(store.check().await.unwrap().len(), 1, "{damage}");
        let refused = store.rewrite(id(1), 3, rewrite.clone()).await.unwrap_err();
        assert!(refused.is_damage(), "{damage}: {refused}");
        store.clean().await.unwrap();
        assert_eq!(store.check().await, Ok(vec![]), "{damage}");
        let cleaned = other.unpacked(id(1), None).await.unwrap().rewrites;
        assert!(cleaned != before && cleaned != damaged.rewrites, "{damage}");
        store.rewrite(id(1), 3, rewrite.clone()).await.unwrap();
        assert_ne!(other.unpacked(id(1), None).await.unwrap().rewrites, cleaned, "{damage}");
    }
}
