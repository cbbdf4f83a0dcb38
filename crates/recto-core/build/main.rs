//! Writes the tables of the exact counters, so that no process has to unpack or sort anything before
//! its first count: they are part of the binary as they are used.
//!
//! ```text
//!   ENCODING.pairs    the rank of every two bytes
//!   ENCODING.short    a hash table of the tokens of three to five bytes (see `slot.rs`)
//!   ENCODING.tokens   the longer ones, one behind the other: rank (3 bytes), length (1 byte), bytes
//!   ENCODING.long     a hash table of where those are
//!   kinds.blocks      which run of kinds a block of 256 characters has
//!   kinds.runs        the kinds of 256 characters each, every run once; ASCII first
//! ```
//!
//! Numbers are little-endian.

#![allow(clippy::print_stdout, reason = "cargo reads it")]

#[cfg(feature = "bpe")]
#[path = "../src/counter/bpe/kind.rs"]
mod kind;
#[cfg(feature = "bpe")]
#[path = "../src/counter/bpe/slot.rs"]
mod slot;
#[cfg(feature = "bpe")]
mod tables;

fn main() {
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-changed=src/counter/bpe/kind.rs");
    println!("cargo::rerun-if-changed=src/counter/bpe/slot.rs");
    #[cfg(feature = "bpe")]
    tables::write();
}
