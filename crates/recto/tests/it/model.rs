//! Random requests on stored conversations and on the plain model: the results must be the same, whichever
//! handle writes and whenever the store is opened again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use recto::Store;
use testkit::generate::{self, Choices};

use crate::driver::Pair;
use crate::forgetting_model::{self, Counts};
use crate::places::{self, Place};

/// Runs `count` random steps and returns how many requests were accepted.
async fn run(store: Arc<dyn Store>, seed: u64, count: u64) -> u64 {
    let model = generate::conversation(&mut Choices::new(&generate::numbers(seed, 60)), 0);
    let mut pair = Pair::new(store, &format!("conversation {seed}"), model).await;
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

async fn behaves_like_the_model(place: Place, seeds: std::ops::Range<u64>) {
    let mut accepted = 0;
    let conversations = seeds.end - seeds.start;
    for seed in seeds {
        accepted += run(place.store.clone(), seed, 300).await;
    }
    assert!(accepted > conversations * 100, "most requests are accepted, not {accepted}");
}

#[tokio::test]
async fn the_store_in_memory_behaves_like_the_model() {
    behaves_like_the_model(places::memory().await, 0..12).await;
}

#[tokio::test]
async fn the_store_in_a_file_behaves_like_the_model() {
    behaves_like_the_model(places::sqlite().await, 100..103).await;
}

#[cfg(all(unix, feature = "postgres"))]
#[tokio::test]
async fn the_store_on_a_server_behaves_like_the_model() {
    behaves_like_the_model(places::postgres().await, 200..203).await;
}

/// The long run of `cargo xtask sim`: as many conversations as fit into the time, on every store.
#[tokio::test]
#[ignore = "runs as long as RECTO_SIM_SECONDS says; use `cargo xtask sim`"]
#[allow(clippy::print_stderr, reason = "the run reports what it compared")]
async fn simulation() {
    let setting = |name: &str, usual: u64| {
        std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(usual)
    };
    let first = setting("RECTO_SIM_SEED", 1);
    let end = Instant::now() + Duration::from_secs(setting("RECTO_SIM_SECONDS", 60));
    let places = [
        places::memory().await,
        places::sqlite().await,
        #[cfg(all(unix, feature = "postgres"))]
        places::postgres().await,
    ];
    let (mut seed, mut steps, mut accepted) = (first, 0, 0);
    let mut counts = Counts::default();
    while Instant::now() < end {
        let length = [40, 150, 150, 600][seed as usize % 4];
        eprintln!("seed {seed}");
        for place in &places {
            accepted += run(place.store.clone(), seed, length).await;
            steps += length;
        }
        // These need stores without other conversations.
        counts += forgetting_model::run(&places::memory().await, seed, 60).await;
        counts += forgetting_model::run(&places::sqlite().await, seed, 60).await;
        steps += 120;
        #[cfg(all(unix, feature = "postgres"))]
        if seed.is_multiple_of(4) {
            counts += forgetting_model::run(&places::postgres().await, seed, 60).await;
            steps += 60;
        }
        seed += 1;
    }
    eprintln!("seeds {first} to {} on {} stores", seed - 1, places.len());
    eprintln!("{steps} steps compared with the model, {accepted} requests accepted, no difference");
    eprintln!("{counts:?}");
}
