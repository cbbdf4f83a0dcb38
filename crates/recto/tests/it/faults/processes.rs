//! Two processes on one file: what one of them erases is gone for the other, a killed restoration is completed
//! by the next one, and a killed salvage leaves no part of a copy.

use std::sync::Arc;
use std::time::Duration;

use recto::{Approx, Delete, LogIndex, Message, Query, Settings, Version};
use serde_json::json;

use super::child::{self, Worker};

fn settings() -> Settings {
    Settings::counting_with(Approx)
}

#[tokio::test]
async fn what_another_process_erases_or_prunes_is_gone_at_the_next_request() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.db");
    let recto = child::open(&file, &Arc::default()).await.unwrap();
    let conversation = recto.create("a", settings()).await.unwrap();
    for number in 0..80 {
        conversation.append([Message::user(&format!("secret {number}"))]).await.unwrap();
    }
    let fork = conversation.fork("b", Version(70)).await.unwrap();
    conversation.apply(Delete { indices: vec![LogIndex(75)] }).await.unwrap();
    // Everything is loaded.
    assert_eq!(conversation.messages().await.unwrap().len(), 79);
    assert_eq!(fork.messages().await.unwrap().len(), 70);
    let text = async |handle: &recto::Conversation, index| {
        let message = handle.message(LogIndex(index)).await.unwrap().unwrap();
        message.text().into_owned()
    };
    let mut other = Worker::ready(&file);
    let mut request = |command| {
        other.begin(&command);
        assert_eq!(other.done().code, "ok", "{command}");
    };
    // In a packed row that the fork shares, and in a row that is not packed.
    request(json!({"now": 0, "do": "erase", "name": "a", "index": 5}));
    let secret = Query { contains: Some(vec!["secret 5".into()]), ..Query::default() };
    let found = fork.query(&secret).await.unwrap();
    assert_eq!(numbers(&found), LogIndex::range(50..60), "the first request of the fork");
    assert_eq!(text(&conversation, 5).await, "[erased]");
    request(json!({"now": 0, "do": "erase", "name": "a", "index": 79}));
    let messages = conversation.messages().await.unwrap();
    assert_eq!(messages.last().unwrap().message.text(), "[erased]");
    assert_eq!(text(&conversation, 75).await, "secret 75");
    request(json!({"now": 0, "do": "prune", "name": "a", "lastVersions": 1, "version": 81}));
    assert_eq!(text(&conversation, 75).await, "[pruned]");
    assert_eq!(text(&fork, 69).await, "secret 69");
    other.kill();
}

fn numbers(entries: &[recto::Entry]) -> Vec<LogIndex> {
    entries.iter().map(|entry| entry.index).collect()
}

#[tokio::test]
async fn a_killed_restoration_is_completed_by_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    let recto = child::open(&folder.path().join("a.db"), &Arc::default()).await.unwrap();
    let root = recto.create("root", settings()).await.unwrap();
    root.append([Message::user("first")]).await.unwrap();
    root.fork("child", Version(1)).await.unwrap();
    recto.remove("root").await.unwrap();
    for number in 0..40 {
        let conversation = recto.create(&format!("c{number:02}"), settings()).await.unwrap();
        conversation.append([Message::user("first")]).await.unwrap();
    }
    let backup = folder.path().join("backup.db");
    recto.backup(&backup).await.unwrap();
    let target = folder.path().join("target.db");
    let unused = folder.path().join("unused.db");
    let restore = json!({"now": 0, "do": "restore", "path": backup, "to": target});
    let mut last = 0;
    let mut was_partial = false;
    for round in 0.. {
        let mut worker = Worker::ready(&unused);
        worker.begin(&restore);
        std::thread::sleep(Duration::from_millis(3 * round));
        let is_done = worker.kill().is_some();
        let target = child::open(&target, &Arc::default()).await.unwrap();
        let listed = target.list(None, 100).await.unwrap();
        for info in &listed {
            assert!(info.name == "child" || info.name.starts_with('c'), "{:?}", info.name);
            let conversation = target.conversation(&info.name).await.unwrap();
            assert_eq!(conversation.messages().await.unwrap().len(), 1, "{}", info.name);
            assert!(conversation.verify().await.unwrap().is_sound(), "{}", info.name);
        }
        assert!(listed.len() >= last, "none is lost");
        assert_eq!(target.check().await.unwrap(), Vec::<String>::new());
        last = listed.len();
        was_partial |= (1..41).contains(&last);
        if is_done {
            break;
        }
    }
    assert_eq!(last, 41);
    assert!(was_partial, "it was killed between two conversations");
}

#[tokio::test]
async fn a_killed_salvage_leaves_no_copy_or_a_complete_one() {
    const MESSAGES: usize = 6_000;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.db");
    let recto = child::open(&file, &Arc::default()).await.unwrap();
    let conversation = recto.create("damaged", settings()).await.unwrap();
    conversation.append((0..MESSAGES).map(|n| Message::user(&n.to_string()))).await.unwrap();
    conversation.apply(Delete { indices: vec![LogIndex(0)] }).await.unwrap();
    let salvage = json!({"now": 0, "do": "salvage", "name": "damaged", "to": "copy"});
    for round in 0.. {
        let mut worker = Worker::ready(&file);
        worker.begin(&salvage);
        std::thread::sleep(Duration::from_millis(20 * round));
        let is_done = worker.kill().is_some();
        let copy = recto.conversation("copy").await;
        assert!(copy.is_ok() || !is_done);
        if let Ok(copy) = copy {
            assert_eq!(copy.stats().await.unwrap().total_messages, MESSAGES);
            assert_eq!(copy.messages().await.unwrap().len(), MESSAGES - 1);
            recto.remove("copy").await.unwrap();
        }
        if is_done {
            break;
        }
    }
}
