//! Backups: complete, or absent.

use recto::{Message, Tenant, Truncate, Version, WriteOptions};

use super::{say, settings, texts};
use crate::places::{Place, memory, on_every_store, sqlite};

on_every_store! {
    a_backup_can_be_opened_and_restored
    a_damaged_backup_is_not_restored
    a_backup_of_a_conversation_that_exists_under_another_name_is_not_restored
    an_incomplete_backup_is_removed
    long_work_reports_its_progress
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
    let refused = fresh.recto().restore(&path).await.unwrap_err();
    assert_eq!(refused.code(), "conversation_exists");
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
    assert_eq!(fresh.recto().restore(&path).await.unwrap_err().code(), "storage");
    assert!(fresh.recto().list(None, 10).await.unwrap().is_empty());
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
