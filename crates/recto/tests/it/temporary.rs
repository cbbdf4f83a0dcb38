//! Temporary scopes: leases by the clock of the store.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use recto::{
    Approx, Clock, Conversation, MemoryStore, Message, Options, Recto, Settings, Store, Temporary,
};
use serde_json::Value;

/// A store whose clock shows the time that a test sets.
fn recto_at(time: &Arc<AtomicI64>, store: &Arc<dyn Store>) -> Recto {
    let time = time.clone();
    let clock = Clock::new(move || time.load(Ordering::Relaxed));
    Recto::with_store(store.clone(), Options { clock, ..Options::default() })
}

/// The content of the lease note of a scope.
async fn lease(conversation: &Conversation) -> Value {
    let marks = conversation.marks().await.unwrap();
    let (_, notes) = marks.into_iter().find(|(mark, _)| mark == "lease").unwrap();
    let note = conversation.message(notes[0]).await.unwrap().unwrap();
    let note: Value = serde_json::from_str(note.json()).unwrap();
    note["metadata"]["lease"].clone()
}

/// A scope whose holder is on another machine: no lock file is here.
async fn scope_of_another_machine(conversation: &Conversation, lease_time: Duration) {
    let scope = Temporary { lease: lease_time, ..Temporary::default() };
    let work = async {
        conversation.append([Message::user("inside")]).await.unwrap();
        std::future::pending::<()>().await;
    };
    let held = conversation.with_temporary(scope, work);
    // The future is dropped while the work runs.
    tokio::time::timeout(Duration::from_millis(300), held).await.unwrap_err();
    let id = lease(conversation).await["scope"].as_str().unwrap().to_owned();
    std::fs::remove_file(std::env::temp_dir().join("recto-scopes").join(id)).unwrap();
}

#[tokio::test]
async fn a_lease_ends_by_the_clock_of_the_options() {
    let time = Arc::new(AtomicI64::new(1_000));
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let recto = recto_at(&time, &store);
    let conversation = recto.create("a", Settings::counting_with(Approx)).await.unwrap();
    conversation.append([Message::user("before")]).await.unwrap();
    scope_of_another_machine(&conversation, Duration::from_secs(60)).await;
    assert_eq!(lease(&conversation).await["until"], 61_000);

    time.store(60_999, Ordering::Relaxed);
    assert_eq!(conversation.end_expired_scopes().await.unwrap(), 0);
    assert_eq!(conversation.messages().await.unwrap().len(), 2);
    time.store(61_000, Ordering::Relaxed);
    // Another process opens the conversation after the lease.
    let other = recto_at(&time, &store).conversation("a").await.unwrap();
    assert_eq!(other.messages().await.unwrap().len(), 1);
    assert_eq!(other.end_expired_scopes().await.unwrap(), 0);
}

#[tokio::test]
async fn all_scopes_can_be_ended_before_their_time() {
    let time = Arc::new(AtomicI64::new(1_000));
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let recto = recto_at(&time, &store);
    let conversation = recto.create("a", Settings::counting_with(Approx)).await.unwrap();
    scope_of_another_machine(&conversation, Duration::from_secs(60)).await;
    assert_eq!(conversation.end_all_scopes().await.unwrap(), 1);
    assert!(conversation.messages().await.unwrap().is_empty());
    assert!(conversation.verify().await.unwrap().is_sound());
}

#[cfg(feature = "blocking")]
#[test]
fn a_blocking_scope_is_renewed_and_ends_also_after_a_panic() {
    let recto = recto::blocking::Recto::open("memory:").unwrap();
    let conversation = recto.create("a", Settings::counting_with(Approx)).unwrap();
    conversation.append([Message::user("before")]).unwrap();
    let scope = || Temporary { lease: Duration::from_millis(40), ..Temporary::default() };
    let version = conversation
        .with_temporary(scope(), || {
            conversation.append([Message::user("inside")]).unwrap();
            let version = conversation.version().unwrap();
            std::thread::sleep(Duration::from_millis(150));
            assert_eq!(conversation.messages().unwrap().len(), 2);
            version
        })
        .unwrap();
    assert!(conversation.version().unwrap().0 > version.0 + 1, "the lease was not renewed");
    assert_eq!(conversation.messages().unwrap().len(), 1);
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        conversation.with_temporary(scope(), || {
            conversation.append([Message::user("inside")]).unwrap();
            panic!("the work panics");
        })
    }));
    assert!(panic.is_err());
    assert_eq!(conversation.messages().unwrap().len(), 1);
}
