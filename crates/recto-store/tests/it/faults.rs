//! Tests of a SQLite file under faults (killed processes, failing disks, power losses, changed bits) and with
//! many writers.
//!
//! Most faults happen in a child process: this test binary, started again for one of the tests in
//! `child.rs`. Longer runs are `faults::simulation`, which `cargo xtask sim` starts.

mod bit_flips;
mod chain;
mod child;
mod failing_disk;
mod kills;
mod power_loss;
mod shim;
mod writers;

use std::time::{Duration, Instant};

/// Pseudo-random numbers from a seed (SplitMix64).
#[derive(Debug)]
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % end
    }
}

/// Prints a note about a test. The test harness shows it if the test fails or with `--nocapture`.
#[allow(clippy::print_stderr, reason = "a failure must name its seed")]
pub(crate) fn note(text: &str) {
    eprintln!("{text}");
}

pub(crate) fn setting(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(usual)
}

/// The long run of `cargo xtask sim faults`: kills, power losses, a failing disk and changed bits, one after
/// the other with a new seed in each round, until the given time is over.
#[test]
#[ignore = "runs as long as RECTO_SIM_SECONDS says; use `cargo xtask sim`"]
fn simulation() {
    let end = Instant::now() + Duration::from_secs(setting("RECTO_SIM_SECONDS", 60));
    let first = setting("RECTO_SIM_SEED", 1);
    let mut seed = first;
    while Instant::now() < end {
        note(&format!("seed {seed}"));
        kills::run(seed, 500);
        power_loss::run(seed, 800);
        failing_disk::run(seed, 20);
        bit_flips::run(seed, 200);
        seed += 1;
    }
    note(&format!("seeds {first} to {}: nothing was lost", seed - 1));
}
