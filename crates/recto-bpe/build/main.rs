//! Build script: writes the vocabularies as tables that the crate includes in the binary. The tables are
//! read without unpacking, so a process needs no start-up time before its first count.
//!
//! ```text
//!   ENCODING.pairs    rank of every pair of bytes
//!   ENCODING.short    hash table of the tokens of three to five bytes (see `slot.rs`)
//!   ENCODING.tokens   the longer tokens, concatenated: rank (3 bytes), length (1 byte), bytes
//!   ENCODING.long     hash table of the offsets in `ENCODING.tokens`
//!   kinds.blocks      index of the run of kinds of each block of 256 characters
//!   kinds.runs        the distinct runs: the kinds of 256 characters each; ASCII first
//! ```
//!
//! Numbers are little-endian.

#![allow(clippy::print_stdout, reason = "cargo reads the output")]

#[path = "../src/kind.rs"]
mod kind;
#[path = "../src/slot.rs"]
mod slot;
mod tables;

fn main() {
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-changed=src/kind.rs");
    println!("cargo::rerun-if-changed=src/slot.rs");
    tables::write();
}
