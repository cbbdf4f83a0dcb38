//! Faults of a SQLite file under the public API: processes killed during erase, prune, fork, backup and
//! restore, and changed bits in every table and index.
//!
//! `cargo xtask sim faults` runs the long versions.

mod bit_flips;
mod child;
mod family;
mod kill_counts;
mod kills;
mod processes;

use std::time::{Duration, Instant};

use testkit::generate;

use kill_counts::KillCounts;

/// Numbers that follow from a seed.
struct Dice {
    seed: u64,
    drawn: u64,
}

impl Dice {
    fn new(seed: u64) -> Dice {
        Dice { seed, drawn: 0 }
    }

    fn numbers(&mut self, count: usize) -> Vec<u16> {
        self.drawn += 1;
        generate::numbers(self.seed.wrapping_mul(1_000_003).wrapping_add(self.drawn), count)
    }

    fn below(&mut self, end: usize) -> usize {
        let numbers = self.numbers(4);
        let number = numbers.iter().fold(0, |all, part| all << 16 | u64::from(*part));
        (number % end.max(1) as u64) as usize
    }
}

/// Prints a note about a test. The test harness shows it if the test fails or with `--nocapture`.
#[allow(clippy::print_stderr, reason = "a failure must name its seed")]
fn note(text: &str) {
    eprintln!("{text}");
}

fn setting(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(usual)
}

/// The long run of `cargo xtask sim faults`: every fault in turn, for the given time.
#[test]
#[ignore = "runs as long as RECTO_SIM_SECONDS says; use `cargo xtask sim`"]
fn simulation() {
    let end = Instant::now() + Duration::from_secs(setting("RECTO_SIM_SECONDS", 60));
    let first = setting("RECTO_SIM_SEED", 1);
    let (mut seed, mut kills) = (first, KillCounts::default());
    while Instant::now() < end {
        note(&format!("seed {seed}"));
        kills += kills::run(seed, 120);
        note(&format!("so far: {kills}"));
        bit_flips::run(seed, 150);
        seed += 1;
    }
    kills.check();
    note(&format!("seeds {first} to {}: nothing was lost; {kills}", seed - 1));
}
