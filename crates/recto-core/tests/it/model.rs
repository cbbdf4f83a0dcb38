//! Random requests to the engine and to the plain model, whose responses must be equal.

use proptest::prelude::*;
use testkit::generate::{self, Choices, Step};

use crate::driver::Pair;

/// Steps as lists of numbers. A list is converted to a step when the model reaches it, so a sequence from
/// which lists are removed, or whose numbers are smaller, still consists of meaningful steps.
fn steps() -> impl Strategy<Value = Vec<Vec<u16>>> {
    prop::collection::vec(prop::collection::vec(any::<u16>(), 0..80), 1..60)
}

fn start(numbers: &[u16]) -> Pair {
    Pair::new(generate::conversation(&mut Choices::new(numbers), 0), 0)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn the_engine_responds_like_the_model(
        settings in prop::collection::vec(any::<u16>(), 0..60),
        steps in steps(),
    ) {
        let mut pair = start(&settings);
        for numbers in steps {
            let step = generate::step(&mut Choices::new(&numbers), &pair.model);
            pair.step(&step);
        }
        pair.compare_all();
    }
}

/// Runs `count` random steps. Returns the number of accepted requests.
fn run(seed: u64, count: usize) -> usize {
    let mut pair = start(&generate::numbers(seed, 60));
    for number in 0..count {
        let numbers =
            generate::numbers(seed.wrapping_mul(1_000_003).wrapping_add(number as u64), 120);
        let step = generate::step(&mut Choices::new(&numbers), &pair.model);
        let print = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| pair.step(&step)));
        if let Err(panic) = print {
            eprint_failure(seed, number, &step);
            std::panic::resume_unwind(panic);
        }
        if number % 97 == 96 {
            pair.reload();
        }
    }
    pair.compare_all();
    pair.model.version() as usize
}

#[allow(clippy::print_stderr, reason = "a failure must name its seed")]
fn eprint_failure(seed: u64, number: usize, step: &Step) {
    eprintln!("seed {seed}, step {number}: {step:?}");
}

#[test]
fn long_conversations_respond_like_the_model() {
    let accepted: usize = (0..8).map(|seed| run(seed, 600)).sum();
    assert!(accepted > 8 * 200, "most requests are accepted, not {accepted}");
}

/// The long run of `cargo xtask sim`: as many conversations as fit into the time.
#[test]
#[ignore = "runs as long as RECTO_SIM_SECONDS says; use `cargo xtask sim`"]
#[allow(clippy::print_stderr, reason = "the run reports what it compared")]
fn simulation() {
    let setting = |name: &str, usual: u64| {
        std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(usual)
    };
    let first = setting("RECTO_SIM_SEED", 1);
    let seconds = setting("RECTO_SIM_SECONDS", 60);
    let end = std::time::Instant::now() + std::time::Duration::from_secs(seconds);
    let (mut seed, mut steps, mut accepted) = (first, 0, 0);
    while std::time::Instant::now() < end {
        // Many short conversations and some long ones: the model copies its lists with every step.
        let length = [40, 150, 150, 600][seed as usize % 4];
        accepted += run(seed, length);
        steps += length;
        seed += 1;
    }
    let conversations = seed - first;
    eprintln!("seeds {first} to {}: {conversations} conversations", seed - 1);
    eprintln!("{steps} steps compared with the model, {accepted} requests accepted, no difference");
}
