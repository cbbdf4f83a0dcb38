//! Writes fresh conformance cases to the standard output, one per line:
//!
//! ```text
//! cargo run -p testkit --bin random-cases -- --seed 1 --count 300
//! ```
//!
//! The cases are those of the seeds `SEED`, `SEED + 1`, and so on.

use std::io::{BufWriter, Write, stdout};

use testkit::random_case::random_case;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (mut seed, mut count) = (1_u64, 300_u64);
    for pair in arguments.chunks(2) {
        match pair {
            [name, value] if name == "--seed" => seed = value.parse()?,
            [name, value] if name == "--count" => count = value.parse()?,
            _ => return Err("usage: random-cases [--seed SEED] [--count COUNT]".into()),
        }
    }
    let mut output = BufWriter::new(stdout().lock());
    for offset in 0..count {
        writeln!(output, "{}", random_case(seed.wrapping_add(offset)))?;
    }
    output.flush()?;
    Ok(())
}
