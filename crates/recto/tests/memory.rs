//! The memory of an open conversation stays bounded. A separate program, because its allocator counts
//! bytes.

use std::alloc::System;

use cap::Cap;
use recto::{Approx, LogIndex, Message, Options, Query, Recto, Settings, Truncate, Version};

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// Twice the bytes that an open conversation may load, because old and new data exist at the same time.
const MAX_BYTES: usize = 128 << 20;

/// Checks how many bytes were allocated since `before`.
fn assert_small(before: usize, when: &str) {
    let more = ALLOCATOR.allocated().saturating_sub(before);
    assert!(more < MAX_BYTES, "{when}: {} MB", more >> 20);
}

#[tokio::test]
async fn an_open_conversation_stays_small_however_much_is_written_and_read() {
    let folder = tempfile::tempdir().unwrap();
    let address = format!("sqlite:{}", folder.path().join("a.db").display());
    let options = Options { search: false, ..Options::default() };
    let recto = Recto::open_with(&address, options).await.unwrap();
    let conversation = recto.create("a", Settings::counting_with(Approx)).await.unwrap();
    let before = ALLOCATOR.allocated();
    // 200 MB of messages, of which few are visible.
    let long = "all work and no play ".repeat(12_000);
    for number in 0..800_u32 {
        conversation.append([Message::user(&format!("{number} {long}"))]).await.unwrap();
        if number % 50 == 49 {
            conversation
                .apply(Truncate { keep_last: Some(10), ..Default::default() })
                .await
                .unwrap();
            assert_small(before, &format!("after {number} messages were written"));
        }
    }
    for number in 0..800 {
        let message = conversation.message(LogIndex(number)).await.unwrap().unwrap();
        assert!(message.text().starts_with(&format!("{number} ")));
    }
    assert_small(before, "after all messages were read");
    let newest = conversation.version().await.unwrap();
    for version in (0..newest.0).step_by(23).map(Version) {
        let at = recto::QueryAt::Version(version);
        conversation.query(&Query { at, ..Query::default() }).await.unwrap();
    }
    assert_small(before, "after many versions were read");
    assert_eq!(conversation.messages().await.unwrap().len(), 10);
}
