//! Clocks that jump back, stop, and differ between processes: the store orders versions, and times are only
//! recorded.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use recto::{
    Approx, BatchIndex, BatchStart, Clock, Conversation, Keep, LogIndex, Mark, Message, Options,
    Query, Recto, Rollback, Settings, Store, Timestamp, Truncate, Undo, Version,
};
use serde_json::{Value, json};

use crate::places::{Place, memory, on_every_store};

on_every_store! {
    nothing_is_ordered_by_the_clock
    queries_by_time_use_the_recorded_times
}

/// Times that jump forwards and back, by little and by much.
const JUMPS: [Timestamp; 9] =
    [1_000, 2_000, 500, 500, -7, Timestamp::MAX, Timestamp::MIN, 0, 1_500];

fn jumping() -> Clock {
    let at = AtomicUsize::new(0);
    Clock::new(move || JUMPS[at.fetch_add(1, Ordering::Relaxed) % JUMPS.len()])
}

fn steady() -> Clock {
    let at = AtomicUsize::new(0);
    Clock::new(move || at.fetch_add(1, Ordering::Relaxed) as Timestamp)
}

fn recto(store: &Arc<dyn Store>, clock: Clock) -> Recto {
    Recto::with_store(store.clone(), Options { clock, ..Options::default() })
}

/// The requests of an agent, on two machines in turns.
async fn work(store: &Arc<dyn Store>, clocks: [Clock; 2]) -> Conversation {
    let [first, second] = clocks.map(|clock| recto(store, clock));
    first.create("a", Settings::counting_with(Approx)).await.unwrap();
    let conversations =
        [first.conversation("a").await.unwrap(), second.conversation("a").await.unwrap()];
    for number in 0..150_u32 {
        let conversation = &conversations[number as usize / 2 % 2];
        conversation.append([Message::user(&format!("message number {number}"))]).await.unwrap();
        match number % 25 {
            5 => drop(conversation.apply(BatchStart::default()).await.unwrap()),
            9 => {
                let keep = Truncate { keep_last: Some(4), ..Default::default() };
                conversation.apply(keep).await.unwrap();
            }
            12 => drop(conversation.apply(Undo).await.unwrap()),
            15 => {
                let mark = Mark { indices: vec![LogIndex(number)], mark: "m".into() };
                conversation.apply(mark).await.unwrap();
            }
            20 => drop(conversation.apply(Rollback::ToBatch(BatchIndex(1))).await.unwrap()),
            _ => {}
        }
    }
    conversations[1]
        .fork("b", Version(60))
        .await
        .unwrap()
        .append([Message::user("else")])
        .await
        .unwrap();
    recto(store, Clock::default()).conversation("a").await.unwrap()
}

/// Everything that can be read, without times.
async fn all_but_times(conversation: &Conversation) -> Value {
    let newest = conversation.version().await.unwrap();
    let mut versions = Vec::new();
    for info in conversation.versions(Version(0)..Version(newest.0 + 1)).await.unwrap() {
        let entries = conversation.messages_at(info.version).await.unwrap();
        let view: Vec<u32> = entries.iter().map(|entry| entry.index.0).collect();
        versions.push(json!([info.version, info.reason, info.batch, view]));
    }
    let blame = conversation.blame(LogIndex(3)).await.unwrap();
    let blame: Vec<String> = blame.iter().map(|step| step.version.to_string()).collect();
    let batches = conversation.stats().await.unwrap().current_batch_index.0;
    let mut views = Vec::new();
    for batch in 0..=batches {
        let snapshot = conversation.snapshot(BatchIndex(batch)).await.unwrap();
        views.push(snapshot.view.iter().map(|index| index.0).collect::<Vec<u32>>());
    }
    let last = Query::from_json(r#"{"last":5}"#).unwrap();
    let last = conversation.query(&last).await.unwrap();
    let last: Vec<u32> = last.iter().map(|entry| entry.index.0).collect();
    json!({ "versions": versions, "blame": blame, "batches": views, "last": last })
}

async fn nothing_is_ordered_by_the_clock(place: Place) {
    let jumped = work(&place.store, [jumping(), jumping()]).await;
    let plain = memory().await;
    let expected = work(&plain.store, [steady(), steady()]).await;
    assert_eq!(all_but_times(&jumped).await, all_but_times(&expected).await);
    assert!(jumped.verify().await.unwrap().is_sound());
    let fork = place.recto().conversation("b").await.unwrap();
    let same = plain.recto().conversation("b").await.unwrap();
    assert_eq!(all_but_times(&fork).await, all_but_times(&same).await);
    let names = |infos: Vec<recto::ConversationInfo>| {
        infos.into_iter().map(|info| info.name).collect::<Vec<_>>()
    };
    assert_eq!(names(place.recto().list(None, 9).await.unwrap()), ["a", "b"]);
    // The clock has jumped, and its times were recorded.
    let versions = jumped.versions(Version(0)..Version(100)).await.unwrap();
    let times: Vec<Timestamp> = versions.iter().map(|info| info.timestamp).collect();
    assert!(!times.is_sorted() && JUMPS.iter().all(|time| times.contains(time)), "{times:?}");
}

async fn queries_by_time_use_the_recorded_times(place: Place) {
    let conversation = work(&place.store, [jumping(), jumping()]).await;
    let newest = conversation.version().await.unwrap();
    let versions = conversation.versions(Version(0)..Version(newest.0 + 1)).await.unwrap();
    // An entry has the time of the version that added it.
    let mut arrived: Vec<(LogIndex, Timestamp)> = Vec::new();
    let mut seen = 0;
    for info in &versions {
        let entries = conversation.messages_at(info.version).await.unwrap();
        let end = entries.iter().map(|entry| entry.index.0 + 1).max().unwrap_or(0);
        arrived.extend((seen..end).map(|index| (LogIndex(index), info.timestamp)));
        seen = seen.max(end);
    }
    let visible: Vec<LogIndex> =
        conversation.messages().await.unwrap().iter().map(|entry| entry.index).collect();
    for (from, to) in [(None, Some(500)), (Some(500), None), (Some(0), Some(1_500))] {
        let found = conversation.query(&Query { from, to, ..Query::default() }).await.unwrap();
        let found: Vec<LogIndex> = found.iter().map(|entry| entry.index).collect();
        let is_in =
            |time: Timestamp| from.is_none_or(|from| from <= time) && to.is_none_or(|to| time < to);
        let shown = visible.iter().filter(|index| is_in(arrived[index.as_usize()].1));
        assert!(shown.eq(&found), "{from:?} {to:?}: {found:?}");
    }
    for since in [Timestamp::MIN, 0, 1_000, Timestamp::MAX] {
        let late = |info: &&recto::VersionInfo| info.timestamp >= since || info.version == newest;
        let kept = versions.iter().filter(late).count();
        // The first prune keeps the most versions, so it deletes no message that a later prune keeps.
        let pruned = conversation.prune(&Keep::since(since)).await.unwrap();
        assert_eq!(pruned.kept_versions as usize, kept, "since {since}");
        for info in versions.iter().filter(late) {
            for entry in conversation.messages_at(info.version).await.unwrap() {
                assert_ne!(entry.message.text(), "[pruned]", "since {since}: {}", info.version);
            }
        }
    }
}
