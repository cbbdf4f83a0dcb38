//! Work on a whole conversation takes time in proportion to its stored size, not to versions × length:
//! four times the size may take about four times as long, not sixteen.

use std::time::{Duration, Instant};

use recto::{
    Approx, BatchIndex, BatchStart, Conversation, Delete, Keep, LogIndex, Mark, Message, Query,
    QueryAt, Request, Rollback, Scope, Settings, Version,
};

use crate::interrupted_store::InterruptedStore;
use crate::places::{Place, memory};

const SHORT: u32 = 1_000;
const LONG: u32 = 4 * SHORT;
/// Between the linear factor 4 and the quadratic factor 16.
const MOST: f64 = 8.0;

async fn conversation(place: &Place, name: &str) -> Conversation {
    place.recto().create(name, Settings::counting_with(Approx)).await.unwrap()
}

fn say(number: u32) -> Message {
    Message::user(&format!("message number {number}"))
}

/// Compares the shortest of several times, because other work of the machine only makes times longer. A
/// quadratic cost never passes.
async fn assert_in_proportion(
    what: &str,
    mut short: impl AsyncFnMut(),
    mut long: impl AsyncFnMut(),
) {
    let mut least = [Duration::MAX; 2];
    let mut ratio = f64::INFINITY;
    for _ in 0..20 {
        least[0] = least[0].min(time(&mut short).await);
        least[1] = least[1].min(time(&mut long).await);
        ratio = least[1].as_secs_f64() / least[0].as_secs_f64();
        if ratio < MOST {
            return;
        }
    }
    panic!("{what}: {:?}, four times as much {:?}: {ratio:.1} ×", least[0], least[1]);
}

async fn time(what: &mut impl AsyncFnMut()) -> Duration {
    let start = Instant::now();
    what().await;
    start.elapsed()
}

/// A conversation with one version for each message.
async fn long_conversation(place: &Place, name: &str, count: u32) -> Conversation {
    let conversation = conversation(place, name).await;
    for number in 0..count {
        conversation.append([say(number)]).await.unwrap();
        if number % 100 == 99 {
            conversation.apply(Delete { indices: vec![LogIndex(number - 50)] }).await.unwrap();
            conversation
                .apply(Mark { indices: vec![LogIndex(number)], mark: "m".into() })
                .await
                .unwrap();
        }
    }
    conversation
}

/// One request of many operations that hide every other entry.
async fn alternating(place: &Place, name: &str, count: u32) -> Conversation {
    let conversation = conversation(place, name).await;
    conversation.append((0..2 * count).map(say)).await.unwrap();
    let deletes = (0..count).map(|number| Delete { indices: vec![LogIndex(2 * number)] }.into());
    conversation.apply(Request { steps: deletes.collect() }).await.unwrap();
    conversation
}

#[tokio::test]
async fn storing_and_opening_a_request_of_many_operations_is_linear() {
    let place = memory().await;
    let mut sizes = Vec::new();
    for count in [SHORT, LONG] {
        let name = format!("{count}");
        let conversation = alternating(&place, &name, count).await;
        let rows = place.store.commits(conversation.id(), Some(1)).await.unwrap();
        let record = recto_store::CommitBody::unpack(&rows[0].body).unwrap().record;
        sizes.push(record.len());
        let again = place.recto().conversation(&name).await.unwrap();
        assert_eq!(again.stats().await.unwrap().current_batch_messages, count as usize);
        let blame = again.blame(LogIndex(10)).await.unwrap();
        assert_eq!(blame.len(), 2);
        assert_eq!(blame[1].reason, "DELETE 1 entry");
        assert!(again.verify().await.unwrap().is_sound());
    }
    assert!(sizes[1] < 5 * sizes[0], "{sizes:?} bytes");
    let open = async |count: u32| {
        let conversation = place.recto().conversation(&count.to_string()).await.unwrap();
        conversation.stats().await.unwrap();
    };
    assert_in_proportion("opening", async || open(SHORT).await, async || open(LONG).await).await;
}

#[tokio::test]
async fn verifying_and_pruning_are_linear() {
    let place = memory().await;
    let short = long_conversation(&place, "short", SHORT).await;
    let long = long_conversation(&place, "long", LONG).await;
    let verify = async |conversation: &Conversation| {
        assert!(conversation.verify().await.unwrap().is_sound());
    };
    assert_in_proportion("verifying", async || verify(&short).await, async || verify(&long).await)
        .await;
    // All versions are kept, so nothing is pruned, and each version is read.
    let prune = async |conversation: &Conversation, keep: &Keep| {
        assert!(conversation.prune(keep).await.unwrap().entries.is_empty());
    };
    let all = Keep::since(0);
    let kept = (async || prune(&short, &all).await, async || prune(&long, &all).await);
    assert_in_proportion("keeping since", kept.0, kept.1).await;
    for conversation in [&short, &long] {
        let newest = conversation.version().await.unwrap();
        for number in 0..3 {
            let name = format!("{newest} fork {number}");
            conversation.fork(&name, Version(newest.0 - number)).await.unwrap();
        }
    }
    let newest = Keep::newest();
    let kept = (async || prune(&short, &newest).await, async || prune(&long, &newest).await);
    assert_in_proportion("keeping forks", kept.0, kept.1).await;
}

/// A conversation with this many edits, each of which opens a batch, in a store that counts reads.
async fn edited(count: u32) -> std::sync::Arc<InterruptedStore> {
    let place = memory().await;
    let conversation = conversation(&place, "edited").await;
    conversation.append((0..100).map(say)).await.unwrap();
    for _ in 0..count {
        conversation.apply(BatchStart::default()).await.unwrap();
    }
    InterruptedStore::counting(place.store.clone())
}

#[tokio::test]
async fn every_row_is_read_once_on_the_way_to_the_lowest_batch() {
    const COUNT: u32 = 6_000;
    /// Versions in a page of records.
    const PAGE: u32 = 64;
    let store = edited(COUNT).await;
    for part in 0..3 {
        let options = recto::Options::default();
        let recto = recto::Recto::with_store(store.clone(), options);
        let conversation = recto.conversation("edited").await.unwrap();
        conversation.stats().await.unwrap();
        let before = store.reads();
        match part {
            0 => drop(conversation.mark_map(Scope::Visible).await.unwrap()),
            1 => {
                let at = QueryAt::Batch(BatchIndex(0));
                conversation.query(&Query { at, ..Query::default() }).await.unwrap();
            }
            _ => drop(conversation.preview(Rollback::ToBatch(BatchIndex(0))).await.unwrap()),
        }
        let read = store.reads() - before;
        assert!(read <= (COUNT / PAGE) as usize + 10, "part {part}: {read} reads");
    }
}
