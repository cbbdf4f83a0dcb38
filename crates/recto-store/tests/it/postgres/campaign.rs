//! A server that is killed, stopped, frozen and cut off at random moments while several writers use it: every
//! acknowledged commit is stored once, and no request waits forever. At the same time, another task creates,
//! forks, erases, prunes and removes conversations: each of these operations is applied completely or not at
//! all.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use recto_store::{
    Ancestor, CommitRow, ConversationId, Error, NewConversation, PostgresOptions, PostgresStore,
    Rewrite, Store, StoreFuture,
};
use testserver::{Cut, PostgresServer, Proxy};

use super::{commit, create, keyed, new, tenant, texts, version};
use crate::faults::{Dice, note, setting};

const WRITERS: usize = 6;

/// Longer than any time limit of the stores together: a request that takes longer waits without an end.
const LONGEST: Duration = Duration::from_secs(20);

#[test]
fn a_server_that_is_killed_stopped_frozen_and_cut_stores_every_commit_once() {
    run(setting("RECTO_SIM_SEED", 1), &[Event::Kill, Event::Freeze, Event::Stop, Event::Cut]);
}

/// The long run of `cargo xtask sim faults`.
#[test]
#[ignore = "runs as long as RECTO_SIM_SECONDS says; use `cargo xtask sim`"]
fn simulation() {
    let end = Instant::now() + Duration::from_secs(setting("RECTO_SIM_SECONDS", 60));
    let first = setting("RECTO_SIM_SEED", 1);
    let mut seed = first;
    while Instant::now() < end {
        note(&format!("seed {seed}"));
        let mut dice = Dice(seed);
        let kinds = [Event::Kill, Event::Stop, Event::Freeze, Event::Cut, Event::FreezeConnections];
        let events: Vec<Event> = (0..12).map(|_| kinds[dice.below(5) as usize]).collect();
        run(seed, &events);
        seed += 1;
    }
    note(&format!("seeds {first} to {}: nothing was lost", seed - 1));
}

/// What happens to the server.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// All its processes are killed, and it is started again.
    Kill,
    /// The server is stopped normally and started again.
    Stop,
    /// All its processes are stopped for a while.
    Freeze,
    /// A connection is cut while a request is on its way.
    Cut,
    /// No byte gets through for a while.
    FreezeConnections,
}

#[derive(Default)]
struct Counts {
    unknown: AtomicU32,
    failed: AtomicU32,
    /// Rounds of [`change_others`].
    rounds: AtomicU32,
}

/// Runs the events one after the other, under load.
fn run(seed: u64, events: &[Event]) {
    note(&format!("PostgreSQL: seed {seed}, {events:?}"));
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let server = PostgresServer::start();
    let proxy = Proxy::to(server.port());
    let address = server.database();
    let through = address.replace(&server.port().to_string(), &proxy.port().to_string());
    // One machine is connected directly, the other through the proxy.
    let machines: Vec<Arc<PostgresStore>> = [&address, &through]
        .map(|address| {
            let limits =
                "connect_timeout=2&lock_timeout=300ms&statement_timeout=400ms&answer_timeout=600ms\
                 &erase_wait=500ms";
            let address = format!("{address}?{limits}");
            let opened = PostgresStore::open(&address, PostgresOptions::default());
            Arc::new(runtime.block_on(opened).unwrap())
        })
        .into();
    let id = runtime.block_on(create(&*machines[0], "shared"));
    let (over, counts) = (Arc::new(AtomicBool::new(false)), Arc::new(Counts::default()));
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let (store, over) = (machines[writer % 2].clone(), over.clone());
            let counts = counts.clone();
            runtime.spawn(async move {
                let mut acknowledged = Vec::new();
                while !over.load(Ordering::SeqCst) {
                    let text = format!("writer {writer} request {}", acknowledged.len());
                    apply(&store, id, &text, &counts).await;
                    acknowledged.push(text);
                }
                acknowledged
            })
        })
        .collect();
    let others = {
        let (store, over, counts) = (machines[1].clone(), over.clone(), counts.clone());
        runtime.spawn(async move {
            let mut round = 0;
            while !over.load(Ordering::SeqCst) {
                change_others(&store, round, &counts).await;
                round += 1;
                counts.rounds.store(round, Ordering::SeqCst);
            }
        })
    };
    let mut dice = Dice(seed);
    let mut pause = |longest: u64| {
        std::thread::sleep(Duration::from_millis(20 + dice.below(longest)));
    };
    for event in events {
        pause(150);
        match event {
            Event::Kill => {
                server.kill();
                pause(100);
                server.restart();
            }
            Event::Stop => {
                server.stop();
                pause(100);
                server.restart();
            }
            Event::Freeze => {
                server.freeze();
                pause(1_000);
                server.thaw();
            }
            Event::Cut => {
                let cut = [Cut::BeforeTheServer, Cut::BeforeTheClient][proxy.cuts() as usize % 2];
                proxy.cut_at(b"writer ", cut);
                pause(100);
            }
            Event::FreezeConnections => {
                proxy.freeze(true);
                pause(1_000);
                proxy.freeze(false);
            }
        }
    }
    pause(150);
    over.store(true, Ordering::SeqCst);
    runtime.block_on(async {
        let mut acknowledged = Vec::new();
        for writer in writers {
            acknowledged.extend(writer.await.unwrap());
        }
        others.await.unwrap();
        let names = machines[0].list(&tenant(), None, 100).await.unwrap();
        assert_eq!(names.len(), 1, "seed {seed}: the others are removed");
        let stored = texts(&*machines[0], id).await;
        let once: BTreeSet<&String> = stored.iter().collect();
        assert_eq!(once.len(), stored.len(), "seed {seed}: no commit is stored twice");
        assert_eq!(once, acknowledged.iter().collect(), "seed {seed}: each is acknowledged");
        for text in &stored {
            assert!(machines[1].key(id, text).await.unwrap().is_some(), "seed {seed}: {text}");
        }
        assert_eq!(version(&*machines[1], id).await as usize, stored.len());
        assert_eq!(machines[1].check().await, Ok(Vec::new()), "seed {seed}");
        let Counts { unknown, failed, rounds } = &*counts;
        let commits = stored.len();
        note(&format!(
            "{commits} commits, {rounds:?} rounds of create, fork, erase, prune and remove, \
             {unknown:?} unknown, {failed:?} failed"
        ));
    });
}

/// Applies a request once, as a client with a key does: before each attempt it looks for the key.
async fn apply(store: &PostgresStore, id: ConversationId, text: &str, counts: &Counts) {
    loop {
        // The newest version first: what is stored after it is refused.
        let start = Instant::now();
        let rows = store.commits(id, None).await;
        let key = store.key(id, text).await;
        let (Ok(rows), Ok(key)) = (rows, key) else {
            assert!(start.elapsed() < LONGEST, "two reads took {:?}", start.elapsed());
            continue;
        };
        if key.is_some() {
            return;
        }
        let at = rows.last().expect("the newest row is never packed").head.version;
        let start = Instant::now();
        let done = store.commit(keyed(id, at + 1, text)).await;
        assert!(start.elapsed() < LONGEST, "a commit took {:?}", start.elapsed());
        match done {
            Ok(()) => return,
            Err(Error::VersionConflict { .. }) => {}
            Err(Error::UnknownOutcome) => {
                counts.unknown.fetch_add(1, Ordering::SeqCst);
            }
            Err(Error::Failed { .. }) => {
                counts.failed.fetch_add(1, Ordering::SeqCst);
            }
            Err(other) => panic!("{other}"),
        }
    }
}

/// Creates a conversation and a fork of it, erases and prunes messages, and removes both.
async fn change_others(store: &PostgresStore, round: u32, counts: &Counts) {
    let origin = new(&format!("origin {round}"));
    let id = origin.id;
    let lineage = vec![Ancestor { id, versions: 1, entries: 1 }];
    let fork = NewConversation { lineage, ..new(&format!("fork {round}")) };
    let exists = |error: &Error| matches!(error, Error::ConversationExists { .. });
    repeat(counts, exists, || store.create(origin.clone())).await;
    for version in 1..=2 {
        let stored = |error: &Error| matches!(error, Error::VersionConflict { .. });
        repeat(counts, stored, || store.commit(commit(id, version, "secret"))).await;
    }
    repeat(counts, exists, || store.create(fork.clone())).await;
    // Version 1 is erased, version 2 is pruned.
    for (version, forks) in [(1, None), (2, Some(vec![fork.id]))] {
        let rows = read(store, id).await.expect("it is not removed");
        let before = &rows[version as usize];
        let mut rewrite = Rewrite { forks, forget: vec![version], ..Rewrite::default() };
        rewrite.replace_commit(before, b"gone".to_vec());
        loop {
            let start = Instant::now();
            let done = store.rewrite(id, 2, rewrite.clone()).await;
            assert!(start.elapsed() < LONGEST, "a rewrite took {:?}", start.elapsed());
            let rows = read(store, id).await.expect("it is not removed");
            let body = &rows[version as usize].body;
            match done {
                // The server was stopped before it wrote the tables again.
                Ok(()) | Err(Error::CopiesLeft { .. }) => {
                    assert_eq!(body, b"gone", "acknowledged");
                    break;
                }
                Err(error) => {
                    count(&error, counts);
                    assert!(body == b"gone" || *body == before.body, "{body:?}");
                }
            }
        }
    }
    let is_removed = |error: &Error| matches!(error, Error::ConversationNotFound { .. });
    let tenant = tenant();
    repeat(counts, is_removed, || store.remove(&tenant, &origin.name)).await;
    assert!(read(store, id).await.is_some(), "the fork shares its rows");
    repeat(counts, is_removed, || store.remove(&tenant, &fork.name)).await;
    assert!(read(store, id).await.is_none(), "no row is left");
}

/// The commits of a conversation. `None` if there is none.
async fn read(store: &PostgresStore, id: ConversationId) -> Option<Vec<CommitRow>> {
    loop {
        match store.commits(id, None).await {
            Ok(rows) => return Some(rows),
            Err(Error::ConversationNotFound { .. }) => return None,
            Err(Error::Failed { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
}

/// Repeats a write until it is stored, or until an error says that an earlier attempt was.
async fn repeat<'a>(
    counts: &Counts,
    is_stored: impl Fn(&Error) -> bool,
    mut write: impl FnMut() -> StoreFuture<'a, ()>,
) {
    loop {
        let start = Instant::now();
        let done = write().await;
        assert!(start.elapsed() < LONGEST, "a write took {:?}", start.elapsed());
        match done {
            Ok(()) => return,
            Err(error) if is_stored(&error) => return,
            Err(error) => count(&error, counts),
        }
    }
}

fn count(error: &Error, counts: &Counts) {
    let counter = match error {
        Error::UnknownOutcome => &counts.unknown,
        Error::Failed { .. } | Error::VersionConflict { .. } => &counts.failed,
        other => panic!("{other}"),
    };
    counter.fetch_add(1, Ordering::SeqCst);
}
