//! Any sequence of requests, given to the engine and to the plain model: both say the same.
//!
//! The bytes are a stream of numbers from which `testkit::generate` makes steps, so whatever the
//! fuzzer changes is still a conversation. The engine is built with tiny nodes: short conversations
//! make deep trees.
#![no_main]

#[allow(dead_code, reason = "the engine's tests use more of it")]
#[path = "../../crates/recto-core/tests/it/driver.rs"]
mod driver;

use libfuzzer_sys::fuzz_target;
use testkit::generate::{self, Choices};

use driver::Pair;

/// The model copies its lists with every step, so endless conversations would only be slow.
const MOST_STEPS: usize = 60;

fuzz_target!(|data: &[u8]| {
    let numbers: Vec<u16> =
        data.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
    let mut choices = Choices::new(&numbers);
    let mut pair = Pair::new(generate::conversation(&mut choices, 0), 0);
    for _ in 0..MOST_STEPS {
        if choices.is_exhausted() {
            break;
        }
        let step = generate::step(&mut choices, &pair.model);
        pair.step(&step);
    }
    pair.compare_all();
});
