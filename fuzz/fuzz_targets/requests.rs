//! Arbitrary sequences of requests for the engine and the plain model. Both must give the same results.
//!
//! The bytes are a stream of numbers from which `testkit::generate` makes steps, so every input is a
//! conversation. The engine is built with tiny nodes, so that short conversations make deep trees.
#![cfg_attr(fuzzing, no_main)]

#[allow(dead_code, reason = "the engine's tests use more of it")]
#[path = "../../crates/recto-core/tests/it/driver.rs"]
mod driver;

use testkit::generate::{self, Choices};

use driver::Pair;

/// Maximum number of steps. The model copies its lists with every step, so long conversations are slow.
const MAX_STEPS: usize = 60;

recto_fuzz::target!(run);

fn run(data: &[u8]) {
    let numbers: Vec<u16> =
        data.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
    let mut choices = Choices::new(&numbers);
    let mut pair = Pair::new(generate::conversation(&mut choices, 0), 0);
    for _ in 0..MAX_STEPS {
        if choices.is_exhausted() {
            break;
        }
        let step = generate::step(&mut choices, &pair.model);
        pair.step(&step);
    }
    pair.compare_all();
}
