//! What takes longer in a longer conversation takes so in proportion to what is stored of it, not to
//! versions × length: four times as much of it may take about four times as long, not sixteen.

use std::time::{Duration, Instant};

use recto::{
    Approx, Delete, Keep, LogIndex, Mark, Message, Request, Settings, StoredConversation, Version,
};

use crate::places::{Place, memory};

const SHORT: u32 = 1_000;
const LONG: u32 = 4 * SHORT;
/// Halfway between what is linear and what is quadratic.
const MOST: f64 = 8.0;

async fn talk(place: &Place, name: &str) -> StoredConversation {
    place.recto().create(name, Settings::counting_with(Approx)).await.unwrap()
}

fn say(number: u32) -> Message {
    Message::user(&format!("message number {number}"))
}

/// The shortest time of a few.
async fn time<T>(mut what: impl AsyncFnMut() -> T) -> Duration {
    let mut least = Duration::MAX;
    for _ in 0..3 {
        let start = Instant::now();
        what().await;
        least = least.min(start.elapsed());
    }
    least
}

fn assert_in_proportion(what: &str, short: Duration, long: Duration) {
    let ratio = long.as_secs_f64() / short.as_secs_f64();
    assert!(ratio < MOST, "{what}: {short:?}, four times as much {long:?}: {ratio:.1} ×");
}

/// A conversation with one version for each message.
async fn long_talk(place: &Place, name: &str, count: u32) -> StoredConversation {
    let talk = talk(place, name).await;
    for number in 0..count {
        talk.append([say(number)]).await.unwrap();
        if number % 100 == 99 {
            talk.apply(Delete { indices: vec![LogIndex(number - 50)] }).await.unwrap();
            talk.apply(Mark { indices: vec![LogIndex(number)], mark: "m".into() }).await.unwrap();
        }
    }
    talk
}

/// One request of many operations, each of which leaves another view: holes all over.
async fn holes(place: &Place, name: &str, count: u32) -> StoredConversation {
    let talk = talk(place, name).await;
    talk.append((0..2 * count).map(say)).await.unwrap();
    let deletes = (0..count).map(|number| Delete { indices: vec![LogIndex(2 * number)] }.into());
    talk.apply(Request { steps: deletes.collect() }).await.unwrap();
    talk
}

#[tokio::test]
async fn a_request_of_many_operations_takes_what_it_did_to_store_and_to_open() {
    let place = memory().await;
    let mut sizes = Vec::new();
    let mut times = Vec::new();
    for count in [SHORT, LONG] {
        let name = format!("{count}");
        let talk = holes(&place, &name, count).await;
        let rows = place.store.commits(talk.id(), Some(1)).await.unwrap();
        let record = recto_store::CommitBody::unpack(&rows[0].body).unwrap().record;
        sizes.push(record.len());
        let read = async || {
            let talk = place.recto().conversation(&name).await.unwrap();
            talk.stats().await.unwrap()
        };
        times.push(time(read).await);
        let again = place.recto().conversation(&name).await.unwrap();
        assert_eq!(again.stats().await.unwrap().current_batch_messages, count as usize);
        let blame = again.blame(LogIndex(10)).await.unwrap();
        assert_eq!(blame.len(), 2);
        assert_eq!(blame[1].description, "DELETE 1 entry");
        assert!(again.verify().await.unwrap().is_sound());
    }
    assert!(sizes[1] < 5 * sizes[0], "{sizes:?} bytes");
    assert_in_proportion("opening", times[0], times[1]);
}

#[tokio::test]
async fn verifying_and_pruning_take_what_is_stored() {
    let place = memory().await;
    let mut times = [Vec::new(), Vec::new(), Vec::new()];
    for count in [SHORT, LONG] {
        let talk = long_talk(&place, &format!("{count}"), count).await;
        times[0].push(time(async || assert!(talk.verify().await.unwrap().is_sound())).await);
        // All of them are kept, so nothing is dropped, and each is looked at.
        let all = Keep::since(0);
        let prune = async || assert!(talk.prune(&all).await.unwrap().entries.is_empty());
        times[1].push(time(prune).await);
        let newest = talk.version().await.unwrap();
        for number in 0..3 {
            let at = Version(newest.0 - number);
            talk.fork(&format!("{count} fork {number}"), at).await.unwrap();
        }
        let prune = async || assert!(talk.prune(&Keep::newest()).await.unwrap().entries.is_empty());
        times[2].push(time(prune).await);
    }
    for (what, times) in ["verifying", "keeping since", "keeping forks"].iter().zip(&times) {
        assert_in_proportion(what, times[0], times[1]);
    }
}
