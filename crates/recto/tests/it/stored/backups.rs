//! Backups and restorations: a backup is complete or does not exist.

use recto::{Message, Tenant, Truncate, Version, WriteOptions};

use recto_store::PageKind;

use super::{say, settings, texts};
use crate::places::{Place, memory, on_every_store, sqlite};

on_every_store! {
    a_backup_can_be_opened_and_restored
    a_damaged_backup_is_not_restored
    a_backup_of_a_conversation_that_exists_under_another_name_is_not_restored
    an_incomplete_backup_is_removed
    an_interrupted_restoration_leaves_whole_conversations_and_is_completed
    long_work_reports_its_progress
    a_conversation_that_is_restored_at_an_older_version_is_read_again
    a_backup_copies_no_damaged_row
    a_conversation_with_an_unknown_counter_is_verified_copied_and_salvaged
}

async fn a_backup_can_be_opened_and_restored(place: Place) {
    let recto = place.recto();
    let conversation = recto.create("a", settings()).await.unwrap();
    for number in 0..150 {
        conversation.append([say(number)]).await.unwrap();
    }
    let write = WriteOptions { idempotency_key: Some("k".into()), ..WriteOptions::default() };
    let cut = Truncate { keep_last: Some(4), ..Default::default() };
    let first = conversation.apply_with(cut.clone(), write.clone()).await.unwrap();
    conversation
        .fork("b", Version(70))
        .await
        .unwrap()
        .append([Message::user("only here")])
        .await
        .unwrap();
    let shared = recto.create("c", settings()).await.unwrap();
    shared.append([say(1)]).await.unwrap();
    shared.fork("d", Version(1)).await.unwrap();
    recto.remove("c").await.unwrap();
    let other = recto.for_tenant(Tenant("other".into()));
    other.create("a", settings()).await.unwrap().append([say(7)]).await.unwrap();

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("backup.db");
    recto.backup(&path).await.unwrap();
    assert_eq!(recto.backup(&path).await.unwrap_err().code(), "storage", "it is not overwritten");
    conversation.append([say(999)]).await.unwrap();

    let fresh = sqlite().await;
    let restored = fresh.recto().restore(&path).await.unwrap();
    assert_eq!(restored.conversations, 4);
    let names: Vec<String> =
        fresh.recto().list(None, 10).await.unwrap().into_iter().map(|info| info.name).collect();
    assert_eq!(names, ["a", "b", "d"]);
    let again = fresh.recto().conversation("a").await.unwrap();
    assert_eq!(texts(&again).await.len(), 4);
    assert_eq!(again.apply_with(cut, write).await.unwrap().to_json(), first.to_json());
    for name in ["a", "b", "d"] {
        let conversation = fresh.recto().conversation(name).await.unwrap();
        assert!(conversation.verify().await.unwrap().is_sound(), "{name}");
    }
    let found = fresh.recto().search("only here", 10).await.unwrap();
    assert_eq!(found.len(), 1);
    // The second restoration finds everything, also a conversation that was continued.
    again.append([say(1)]).await.unwrap();
    let repeated = fresh.recto().restore(&path).await.unwrap();
    assert_eq!((repeated.conversations, repeated.already_there), (0, 4));
    let missing = fresh.recto().restore(folder.path().join("nothing.db")).await.unwrap_err();
    assert_eq!(missing.code(), "storage");
}

async fn a_damaged_backup_is_not_restored(place: Place) {
    let recto = place.recto();
    let conversation = recto.create("a", settings()).await.unwrap();
    conversation.append((0..200).map(say)).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("backup.db");
    recto.backup(&path).await.unwrap();
    // One bit in every page of the file except the first, which has the header of SQLite.
    let mut bytes = std::fs::read(&path).unwrap();
    for page in bytes.chunks_mut(4096).skip(1) {
        page[4_090] ^= 4;
    }
    std::fs::write(&path, bytes).unwrap();
    let fresh = memory().await;
    match fresh.recto().restore(&path).await {
        Ok(restored) => assert_eq!((restored.conversations, restored.damaged.len()), (0, 1)),
        Err(error) => assert_eq!(error.code(), "storage"),
    }
    assert!(fresh.recto().list(None, 10).await.unwrap().is_empty());
}

/// A restoration is stopped at every point, and repeated until it is complete.
async fn an_interrupted_restoration_leaves_whole_conversations_and_is_completed(place: Place) {
    let source = sqlite().await;
    let recto = source.recto();
    let root = recto.create("root", settings()).await.unwrap();
    root.append([say(1)]).await.unwrap();
    root.fork("child", Version(1)).await.unwrap().append([say(2)]).await.unwrap();
    recto.remove("root").await.unwrap();
    for number in 0..20 {
        let conversation = recto.create(&format!("c{number:02}"), settings()).await.unwrap();
        conversation.append([say(number)]).await.unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("backup.db");
    recto.backup(&path).await.unwrap();
    let target = place.recto();
    let mut seen = std::collections::BTreeSet::new();
    for wait in (0..).map(|round| std::time::Duration::from_millis(round * 2)) {
        let restored = tokio::time::timeout(wait, target.restore(&path)).await;
        let names: Vec<String> =
            target.list(None, 100).await.unwrap().into_iter().map(|info| info.name).collect();
        assert!(names.iter().all(|name| name == "child" || name.starts_with('c')), "{names:?}");
        for name in &names {
            let conversation = target.conversation(name).await.unwrap();
            assert!(conversation.verify().await.unwrap().is_sound(), "{name}");
            assert!(
                conversation.messages().await.unwrap().len() == 1 + usize::from(name == "child")
            );
        }
        seen.insert(names.len());
        if let Ok(restored) = restored {
            let restored = restored.unwrap();
            assert_eq!(restored.conversations + restored.already_there, 21);
            assert_eq!(names.len(), 21);
            break;
        }
    }
    assert_eq!(target.store().survey().await.unwrap().len(), 22, "the removed one has no name");
    assert_eq!(target.store().check().await, Ok(vec![]));
}

/// Changes a byte in the body of one row of a conversation: in a page of this kind, or in a commit.
async fn damage_row(store: &dyn recto::Store, name: &str, page: Option<PageKind>) {
    let row = store.find(&Tenant::default(), name).await.unwrap().unwrap();
    let mut rewrite = recto_store::Rewrite::default();
    let damage = |body: &mut Vec<u8>| {
        let middle = body.len() / 2;
        body[middle] ^= 1;
    };
    match page {
        Some(kind) => {
            let mut pages = store.pages(row.id, kind, 0..u32::MAX, true).await.unwrap();
            let mut page = pages.pop().unwrap();
            damage(&mut page.body);
            rewrite.pages.push(page);
        }
        None => {
            let mut rows = store.commits(row.id, None).await.unwrap();
            let mut commit = rows.pop().unwrap();
            damage(&mut commit.body);
            rewrite.commits.push(commit);
        }
    }
    store.rewrite(row.id, row.head.version, rewrite).await.unwrap();
}

async fn a_backup_copies_no_damaged_row(place: Place) {
    check_backup_of_damaged_rows(place.store.clone(), place.is_file()).await;
}

#[tokio::test]
async fn a_backup_of_a_store_without_a_search_index_copies_no_damaged_row() {
    let store = std::sync::Arc::new(recto::MemoryStore::without_search());
    check_backup_of_damaged_rows(store, false).await;
}

async fn check_backup_of_damaged_rows(store: std::sync::Arc<dyn recto::Store>, is_file: bool) {
    let recto = recto::Recto::with_store(store.clone(), recto::Options::default());
    let damages = [("b", Some(PageKind::Records)), ("c", Some(PageKind::Entries)), ("d", None)];
    for name in ["a", "b", "c", "d", "e"] {
        let conversation = recto.create(name, settings()).await.unwrap();
        for number in 0..100 {
            conversation.append([say(number)]).await.unwrap();
        }
    }
    for (name, page) in damages {
        damage_row(&*store, name, page).await;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("backup.db");
    if !is_file {
        // A file is copied as it is, and its own checksums belong to the new bytes.
        assert_eq!(recto.backup(&path).await.unwrap_err().code(), "storage");
        assert!(!path.exists());
    }
    let made = recto.backup_damaged(&path, &mut |_| {}).await.unwrap();
    let is_listed = |name: &str| {
        made.damage.iter().any(|damage| damage.starts_with(&format!("{name:?} is not in")))
    };
    let fresh = memory().await;
    let restored = fresh.recto().restore(&path).await.unwrap();
    assert_eq!(restored.conversations, 2, "{restored:?}");
    assert_eq!(restored.entries, 200);
    for (name, page) in damages {
        assert_eq!(is_listed(name), !is_file, "{page:?}: {:?}", made.damage);
        let is_found = restored.damaged.iter().any(|damaged| damaged.name == name);
        assert_eq!(is_found, is_file, "{page:?}: {restored:?}");
    }
    for name in ["a", "e"] {
        let conversation = fresh.recto().conversation(name).await.unwrap();
        assert!(conversation.verify().await.unwrap().is_sound(), "{name}");
    }
}

#[derive(Debug)]
struct OwnCounter;

impl recto::Counter for OwnCounter {
    fn name(&self) -> &str {
        "own"
    }
    fn count(&self, text: &str) -> u64 {
        text.len() as u64
    }
}

/// Two programs use the store, and one of them lacks a counter of the other.
async fn a_conversation_with_an_unknown_counter_is_verified_copied_and_salvaged(place: Place) {
    let with = |store: &std::sync::Arc<dyn recto::Store>| {
        let counters: Vec<std::sync::Arc<dyn recto::Counter>> =
            vec![std::sync::Arc::new(OwnCounter)];
        recto::Recto::with_store(
            store.clone(),
            recto::Options { counters, ..recto::Options::default() },
        )
    };
    let owner = with(&place.store);
    for name in ["a", "b", "c"] {
        let settings =
            if name == "b" { recto::Settings::counting_with(OwnCounter) } else { settings() };
        let conversation = owner.create(name, settings).await.unwrap();
        for number in 0..70 {
            conversation.append([say(number)]).await.unwrap();
        }
        conversation.apply(Truncate { keep_last: Some(3), ..Default::default() }).await.unwrap();
    }
    owner.conversation("b").await.unwrap().fork("fork", Version(9)).await.unwrap();
    let expected = owner.conversation("b").await.unwrap().stats().await.unwrap().tokens;

    let recto = place.recto();
    for (name, report) in recto.verify_all(&mut |_, _| {}).await.unwrap() {
        assert!(report.is_sound(), "{name}: {report:?}");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("backup.db");
    recto.backup(&path).await.unwrap();
    let fresh = memory().await;
    assert_eq!(fresh.recto().restore(&path).await.unwrap().conversations, 4);
    let restored = with(&fresh.store).conversation("b").await.unwrap();
    assert_eq!(restored.stats().await.unwrap().tokens, expected);
    // Also if the conversation was continued since.
    restored.append([say(70)]).await.unwrap();
    let again = fresh.recto().restore(&path).await.unwrap();
    assert_eq!((again.already_there, again.newer.len()), (4, 1));

    let salvaged = recto.salvage("b", "copy").await.unwrap();
    assert_eq!((salvaged.messages, salvaged.faults.len()), (70, 1), "{salvaged:?}");
    assert!(salvaged.faults[0].contains("counts with \"approx\""), "{salvaged:?}");
    assert_eq!(texts(&recto.conversation("copy").await.unwrap()).await.len(), 3);
}

/// One damaged conversation of three.
async fn damaged_store() -> (Place, tempfile::TempDir, std::path::PathBuf) {
    let source = sqlite().await;
    let recto = source.recto();
    for name in ["a", "b", "c"] {
        let conversation = recto.create(name, settings()).await.unwrap();
        for number in 0..10 {
            conversation
                .append([Message::user(&format!("{name} says {number} loudly"))])
                .await
                .unwrap();
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.db");
    recto.backup(&path).await.unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    let text = b"b says 4 loudly";
    let at = bytes.windows(text.len()).position(|found| found == text).unwrap();
    bytes[at] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    (source, folder, path)
}

#[tokio::test]
async fn a_damaged_conversation_does_not_stop_the_others() {
    let (_source, folder, path) = damaged_store().await;
    let recto = recto::Recto::open(&format!("sqlite:{}", path.display())).await.unwrap();
    let reports = recto.verify_all(&mut |_, _| {}).await.unwrap();
    let sound: Vec<bool> = reports.iter().map(|(_, report)| report.is_sound()).collect();
    assert_eq!(sound, [true, false, true]);
    assert!(!recto.check().await.unwrap().is_empty());
    // A backup fails without `backup_damaged`.
    let copy = folder.path().join("copy.db");
    let refused = recto.backup(&copy).await.unwrap_err();
    assert_eq!(refused.code(), "storage");
    assert!(!copy.exists());
    let copied = recto.backup_damaged(&copy, &mut |_| {}).await.unwrap();
    assert!(!copied.damage.is_empty());
    // A restoration restores the others.
    let fresh = memory().await;
    let restored = fresh.recto().restore(&copy).await.unwrap();
    assert_eq!(restored.conversations, 2);
    assert_eq!(restored.damaged[0].name, "b");
    // Versions before the damaged one can be read, and forked.
    let conversation = recto.conversation("b").await.unwrap();
    assert_eq!(conversation.messages_at(Version(4)).await.unwrap().len(), 4);
    assert_eq!(conversation.version_info(Version(4)).await.unwrap().messages, 4);
    let fork = conversation.fork("before", Version(4)).await.unwrap();
    assert_eq!(fork.messages().await.unwrap().len(), 4);
    assert_eq!(conversation.messages_at(Version(5)).await.unwrap_err().code(), "storage");
}

#[tokio::test]
async fn everything_readable_of_a_damaged_conversation_is_salvaged() {
    let (_source, _folder, path) = damaged_store().await;
    let recto = recto::Recto::open(&format!("sqlite:{}", path.display())).await.unwrap();
    let salvaged = recto.salvage("b", "rescued").await.unwrap();
    assert_eq!(salvaged.messages, 9);
    assert_eq!(salvaged.missing_messages, [recto::LogIndex(4)]);
    assert!(!salvaged.faults.is_empty());
    let rescued = recto.conversation("rescued").await.unwrap();
    let expected: Vec<String> =
        [0, 1, 2, 3, 5, 6, 7, 8, 9].map(|n| format!("b says {n} loudly")).into();
    assert_eq!(texts(&rescued).await, expected);
    assert!(rescued.verify().await.unwrap().is_sound());
    assert_eq!(recto.salvage("nothing", "x").await.unwrap_err().code(), "conversation_not_found");
}

#[tokio::test]
async fn a_message_of_a_damaged_conversation_is_erased_in_its_copy() {
    let (_source, _folder, path) = damaged_store().await;
    let recto = recto::Recto::open(&format!("sqlite:{}", path.display())).await.unwrap();
    let conversation = recto.conversation("b").await.unwrap();
    let refused = conversation.erase(recto::LogIndex(2)).await.unwrap_err();
    assert_eq!(refused.code(), "storage");
    assert!(refused.to_string().contains("salvage the conversation"), "{refused}");
    assert_eq!(conversation.messages_at(Version(3)).await.unwrap().len(), 3, "nothing is lost");
    // As the error says.
    recto.salvage("b", "copy").await.unwrap();
    let copy = recto.conversation("copy").await.unwrap();
    copy.erase(recto::LogIndex(2)).await.unwrap();
    recto.remove("b").await.unwrap();
    recto.clean().await.unwrap();
    assert_eq!(texts(&copy).await[2], "[erased]");
    let bytes = std::fs::read(&path).unwrap();
    let erased = b"b says 2 loudly";
    assert!(!bytes.windows(erased.len()).any(|found| found == erased));
}

#[tokio::test]
async fn damage_of_an_origin_behind_the_fork_point_is_none_of_its_fork() {
    for (table, bits) in [("commits", 32), ("pages", 33)] {
        let source = sqlite().await;
        let recto = source.recto();
        let origin = recto.create("a", settings()).await.unwrap();
        for number in 0..300 {
            origin.append([Message::user(&format!("a says {number} loudly"))]).await.unwrap();
        }
        let fork = origin.fork("f", Version(100)).await.unwrap();
        fork.append([say(1)]).await.unwrap();
        let deep = fork.fork("g", Version(101)).await.unwrap();
        deep.append((2..90).map(say)).await.unwrap();
        let views = [texts(&fork).await, texts(&deep).await];
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("damaged.db");
        recto.backup(&path).await.unwrap();
        let newest = format!("(SELECT max(place) FROM {table} WHERE place >> {bits} = 1)");
        let change = format!("UPDATE {table} SET body = x'00' WHERE place = {newest}");
        rusqlite::Connection::open(&path).unwrap().execute_batch(&change).unwrap();
        let copy = recto::Recto::open(&format!("sqlite:{}", path.display())).await.unwrap();
        let reports = copy.verify_all(&mut |_, _| {}).await.unwrap();
        let sound: Vec<bool> = reports.iter().map(|(_, report)| report.is_sound()).collect();
        assert_eq!(sound, [false, true, true], "{table}: {reports:?}");
        assert!(copy.conversation("f").await.unwrap().verify().await.unwrap().is_sound());
        let fresh = sqlite().await;
        let restored = fresh.recto().restore(&path).await.unwrap();
        assert_eq!(restored.conversations, 2, "{table}: {restored:?}");
        assert_eq!(restored.damaged.len(), 1);
        for (name, view) in ["f", "g"].into_iter().zip(&views) {
            let restored = fresh.recto().conversation(name).await.unwrap();
            assert_eq!(texts(&restored).await, *view);
            assert_eq!(restored.messages_at(Version(50)).await.unwrap().len(), 50);
            assert!(restored.verify().await.unwrap().is_sound());
        }
        assert_eq!(fresh.recto().check().await.unwrap(), Vec::<String>::new());
        assert!(!fresh.recto().search("says", 1_000).await.unwrap().is_empty());
        // A second restoration finds them.
        assert_eq!(fresh.recto().restore(&path).await.unwrap().already_there, 2);
    }
}

#[tokio::test]
async fn lost_rows_of_the_search_index_are_noticed() {
    for change in [
        "DELETE FROM waiting",
        "UPDATE waiting SET words = CAST(words AS BLOB)",
        "UPDATE waiting SET words = 'other' WHERE place = (SELECT max(place) FROM waiting)",
        "INSERT INTO words (rowid, word) SELECT place, 'other' FROM waiting; DELETE FROM waiting",
    ] {
        let source = sqlite().await;
        let recto = source.recto();
        let conversation = recto.create("a", settings()).await.unwrap();
        conversation.append((0..5).map(say)).await.unwrap();
        conversation.erase(recto::LogIndex(2)).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("copy.db");
        recto.backup(&path).await.unwrap();
        assert_eq!(recto.check().await.unwrap(), Vec::<String>::new());
        rusqlite::Connection::open(&path).unwrap().execute_batch(change).unwrap();
        let recto = recto::Recto::open(&format!("sqlite:{}", path.display())).await.unwrap();
        let found = recto.check().await.unwrap();
        assert!(found.iter().any(|fault| fault.contains("search index")), "{change}: {found:?}");
        recto.clean().await.unwrap();
        assert_eq!(recto.check().await.unwrap(), Vec::<String>::new(), "{change}");
        assert_eq!(recto.search(&say(4).text(), 10).await.unwrap().len(), 1, "{change}");
    }
}

/// A copy of a file with 300 messages, whose words are in the index, not in the waiting table, after a change.
async fn indexed_file(folder: &tempfile::TempDir, change: &str) -> recto::Recto {
    let source = sqlite().await;
    let recto = source.recto();
    recto.create("a", settings()).await.unwrap().append((0..300).map(say)).await.unwrap();
    recto.create("short", settings()).await.unwrap().append([say(1_000)]).await.unwrap();
    let path = folder.path().join("copy.db");
    recto.backup(&path).await.unwrap();
    let db = rusqlite::Connection::open(&path).unwrap();
    let indexed: u32 =
        db.query_row("SELECT count(*) FROM words_docsize", [], |row| row.get(0)).unwrap();
    assert_eq!(indexed, 300);
    db.execute_batch(change).unwrap();
    recto::Recto::open(&format!("sqlite:{}", path.display())).await.unwrap()
}

/// The number of words in the index, not in the waiting table.
fn indexed_words(folder: &tempfile::TempDir) -> u32 {
    let db = rusqlite::Connection::open(folder.path().join("copy.db")).unwrap();
    db.execute_batch("CREATE VIRTUAL TABLE temp.listed USING fts5vocab(main, words, instance)")
        .unwrap();
    db.query_row("SELECT count(*) FROM temp.listed", [], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn a_message_that_a_damaged_search_index_would_keep_is_not_erased_or_removed() {
    for change in [
        "DELETE FROM words_docsize WHERE id & 4294967295 = 7",
        "DELETE FROM words_docsize",
        "UPDATE words_docsize SET id = id + 1000 WHERE id & 4294967295 = 7",
        "UPDATE words_docsize SET origin = 99 WHERE id & 4294967295 = 7",
        "UPDATE words_docsize SET origin = 0 WHERE id & 4294967295 = 7",
        "UPDATE words_docsize SET origin = NULL WHERE id & 4294967295 = 7",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let recto = indexed_file(&folder, change).await;
        let found = recto.check().await.unwrap();
        assert!(found.iter().any(|fault| fault.contains("search index")), "{change}: {found:?}");
        let conversation = recto.conversation("a").await.unwrap();
        let refused = conversation.erase(recto::LogIndex(7)).await.unwrap_err();
        assert_eq!(refused.code(), "storage", "{change}: {refused}");
        assert!(refused.to_string().contains("`clean` builds it again"), "{change}: {refused}");
        assert_eq!(recto.remove("a").await.unwrap_err().code(), "storage", "{change}");
        assert_eq!(texts(&conversation).await[7], say(7).text(), "{change}: nothing was changed");
        // No word of this one was moved into the index.
        recto.remove("short").await.unwrap();
        // As the error says.
        recto.clean().await.unwrap();
        assert_eq!(recto.check().await.unwrap(), Vec::<String>::new(), "{change}");
        conversation.erase(recto::LogIndex(7)).await.unwrap();
        assert_eq!(texts(&conversation).await[7], "[erased]", "{change}");
        recto.remove("a").await.unwrap();
        drop((conversation, recto));
        assert_eq!(indexed_words(&folder), 0, "{change}");
    }
}

async fn a_backup_of_a_conversation_that_exists_under_another_name_is_not_restored(place: Place) {
    let recto = place.recto();
    for name in ["a", "b", "c"] {
        recto.create(name, settings()).await.unwrap().append([say(1)]).await.unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("backup.db");
    recto.backup(&path).await.unwrap();
    recto.remove("a").await.unwrap();
    recto.rename("b", "other").await.unwrap();
    recto.remove("c").await.unwrap();
    assert_eq!(recto.restore(&path).await.unwrap_err().code(), "conversation_exists");
    let names: Vec<String> =
        recto.list(None, 10).await.unwrap().into_iter().map(|info| info.name).collect();
    assert_eq!(names, ["other"], "nothing is copied");
}

async fn an_incomplete_backup_is_removed(place: Place) {
    let recto = place.recto();
    recto.create("a", settings()).await.unwrap();
    recto.create("b", settings()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("backup.db");
    let files = || std::fs::read_dir(folder.path()).unwrap().count();
    {
        // The future is dropped before it completes.
        let mut backup = std::pin::pin!(recto.backup(&path));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let _ = backup.as_mut().poll(&mut context);
    }
    // A SQLite store copies itself on its own thread, which continues to the end.
    let is_left = |_: &u32| files() > 0 && !place.is_file();
    let waited = (0..200).take_while(is_left).map(|_| std::thread::sleep(PAUSE)).count();
    assert!(waited < 200, "{} files", files());
    let second = folder.path().join("second.db");
    recto.backup(&second).await.unwrap();
    assert_eq!(memory().await.recto().restore(&second).await.unwrap().conversations, 2);
}

#[tokio::test]
async fn the_source_of_a_failed_backup_is_the_error_of_the_file_system() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("backup.db");
    std::fs::create_dir(folder.path().join("backup.db.partial")).unwrap();
    let error = memory().await.recto().backup(&path).await.unwrap_err();
    assert!(error.to_string().contains("making a backup"), "{error}");
    let source = std::error::Error::source(&error).expect("a folder has the name of the file");
    let cause = source.downcast_ref::<recto_store::Cause>().unwrap();
    let expected = std::fs::remove_file(folder.path().join("backup.db.partial")).unwrap_err();
    assert_eq!(cause.downcast_ref::<std::io::Error>().unwrap().kind(), expected.kind());
}

/// Another process has newer versions in memory, which were removed with the conversation.
async fn a_conversation_that_is_restored_at_an_older_version_is_read_again(place: Place) {
    let recto = place.recto();
    let conversation = recto.create("a", settings()).await.unwrap();
    conversation.append([say(0)]).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("backup.db");
    recto.backup(&path).await.unwrap();
    conversation.append([say(1)]).await.unwrap();
    let elsewhere = place.recto();
    let handle = elsewhere.conversation("a").await.unwrap();
    assert_eq!(texts(&handle).await.len(), 2);
    recto.remove("a").await.unwrap();
    recto.restore(&path).await.unwrap();
    assert_eq!(texts(&handle).await, [say(0).text()]);
    let outcome = handle.append([say(2)]).await.unwrap();
    assert_eq!(outcome.version, Version(2));
    assert_eq!(texts(&recto.conversation("a").await.unwrap()).await.len(), 2);
}

/// A process that is killed at the right moment leaves the complete file with two names.
#[cfg(unix)]
#[tokio::test]
async fn the_second_name_of_a_complete_backup_is_removed() {
    let source = sqlite().await;
    let recto = source.recto();
    recto.create("a", settings()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("backup.db");
    recto.backup(&path).await.unwrap();
    let partial = folder.path().join("backup.db.partial");
    std::fs::hard_link(&path, &partial).unwrap();
    assert_eq!(recto.backup(&path).await.unwrap_err().code(), "storage");
    assert!(!partial.exists() && path.exists());
    // The partial file of a backup that another process makes stays.
    std::fs::write(&partial, "other").unwrap();
    assert_eq!(recto.backup(&path).await.unwrap_err().code(), "storage");
    assert!(partial.exists());
}

const PAUSE: std::time::Duration = std::time::Duration::from_millis(10);

async fn long_work_reports_its_progress(place: Place) {
    let recto = place.recto();
    for name in ["a", "b"] {
        let conversation = recto.create(name, settings()).await.unwrap();
        // Enough for several pages.
        for number in 0..200 {
            conversation.append([say(number)]).await.unwrap();
        }
    }
    let mut reported = Vec::new();
    let conversation = recto.conversation("a").await.unwrap();
    conversation.verify_with_progress(&mut |progress| reported.push(progress)).await.unwrap();
    assert!(reported.len() > 1 && reported.is_sorted_by_key(|progress| progress.done));
    assert_eq!(reported.last(), Some(&recto::Progress::new(201, 201)));

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("backup.db");
    let mut reported = Vec::new();
    recto.backup_with_progress(&path, &mut |progress| reported.push(progress)).await.unwrap();
    let ends = Some(&recto::Progress::new(2, 2));
    assert!(place.is_file() && reported.is_empty() || reported.last() == ends, "{reported:?}");
    let mut reported = Vec::new();
    let fresh = memory().await;
    fresh
        .recto()
        .restore_with_progress(&path, &mut |progress| reported.push(progress))
        .await
        .unwrap();
    assert_eq!(reported.iter().map(|progress| progress.done).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert!(reported.iter().all(|progress| progress.total == 4));
}
