//! Random requests on stored conversations and on the plain model: the two must never differ,
//! whoever writes and whenever a program starts anew.

use std::sync::Arc;

use recto::{MemoryStore, Store};
use testkit::Model;
use testkit::generate::{self, Choices};

use crate::driver::Pair;

/// Runs `count` random steps and says how many requests were accepted.
async fn run(store: Arc<dyn Store>, seed: u64, count: u64) -> u64 {
    let settings = generate::settings(&mut Choices::new(&generate::numbers(seed, 8)));
    let mut pair = Pair::new(store, &format!("talk {seed}"), Model::new(settings, 0)).await;
    for number in 0..count {
        let numbers = generate::numbers(seed.wrapping_mul(1_000_003).wrapping_add(number), 120);
        match numbers[0] % 8 {
            0 => pair.restart().await,
            1 | 2 => pair.take_turns(),
            _ => {}
        }
        let step = generate::step(&mut Choices::new(&numbers), &pair.model);
        pair.step(&step).await;
    }
    pair.compare_all().await;
    pair.model.version()
}

#[tokio::test]
async fn the_store_in_a_file_answers_like_the_model() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let path = folder.path().join("talks.db");
    let store = recto_store::SqliteStore::open(&path, Default::default()).await;
    let store: Arc<dyn Store> = Arc::new(store.expect("it can be opened"));
    let mut accepted = 0;
    for seed in 100..103 {
        accepted += run(store.clone(), seed, 300).await;
    }
    assert!(accepted > 3 * 100, "most requests are accepted, not {accepted}");
}

#[tokio::test]
async fn the_store_in_memory_answers_like_the_model() {
    let mut accepted = 0;
    for seed in 0..12 {
        accepted += run(Arc::new(MemoryStore::default()), seed, 300).await;
    }
    assert!(accepted > 12 * 100, "most requests are accepted, not {accepted}");
}
