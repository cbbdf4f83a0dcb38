//! Makes and writes the tables.

use std::path::PathBuf;

use regex_syntax::hir::{Class, HirKind};
use tiktoken::CoreBpe;

use crate::kind::*;
use crate::slot::{NONE, RANK_BYTES, Slot, hash};

pub(crate) fn write() {
    write_vocabulary("o200k_base", &tiktoken::encoding::o200k_base());
    write_vocabulary("cl100k_base", &tiktoken::encoding::cl100k_base());
    write_kinds();
}

fn write_file(name: &str, bytes: impl IntoIterator<Item = u8>) {
    let folder = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo says where"));
    let bytes: Vec<u8> = bytes.into_iter().collect();
    std::fs::write(folder.join(name), bytes).expect("the folder can be written");
}

fn write_vocabulary(name: &str, encoding: &CoreBpe) {
    // In these encodings a token's number is its rank, and no number is left out.
    let tokens: Vec<Vec<u8>> =
        (0..encoding.vocab_size() as u32).map(|rank| encoding.decode(&[rank])).collect();
    assert!(tokens.iter().all(|token| !token.is_empty()), "{name} has gaps");
    let mut slots = vec![Slot::EMPTY; (tokens.len() * 5 / 4).next_power_of_two()];
    let mut written = Vec::new();
    let mut pairs = vec![NONE; 1 << 16];
    for (token, rank) in tokens.iter().zip(0_u32..) {
        let hash = hash(token);
        let mut place = hash as usize % slots.len();
        while slots[place] != Slot::EMPTY {
            place = (place + 1) % slots.len();
        }
        slots[place] = Slot::new(hash, written.len());
        let [low, middle, high, 0] = rank.to_le_bytes() else { panic!("{name} is too large") };
        let len = u8::try_from(token.len()).expect("a token is short");
        written.extend([low, middle, high, len]);
        written.extend(token);
        if let &[first, second] = &**token {
            pairs[usize::from(u16::from_be_bytes([first, second]))] = rank;
        }
    }
    write_file(&format!("{name}.tokens"), written);
    write_file(&format!("{name}.slots"), slots.iter().flat_map(|slot| slot.0.to_le_bytes()));
    let pairs = pairs.iter().flat_map(|rank| rank.to_le_bytes().into_iter().take(RANK_BYTES));
    write_file(&format!("{name}.pairs"), pairs);
}

fn write_kinds() {
    let kinds = kinds();
    let mut runs: Vec<&[u8]> = Vec::new();
    let mut blocks = Vec::new();
    for block in kinds.chunks(BLOCK) {
        let known = runs.iter().position(|run| *run == block);
        let run = known.unwrap_or_else(|| {
            runs.push(block);
            runs.len() - 1
        });
        blocks.extend(u16::try_from(run).expect("blocks are much alike").to_le_bytes());
    }
    write_file("kinds.blocks", blocks);
    write_file("kinds.runs", runs.concat());
}

/// The kind of every character, by its number.
fn kinds() -> Vec<u8> {
    let mut kinds = vec![OTHER; char::MAX as usize + 1];
    let classes = [
        (r"[\p{Lu}\p{Lt}]", UPPER),
        (r"\p{Ll}", LOWER),
        (r"[\p{Lm}\p{Lo}]", CASELESS),
        (r"\p{M}", MARK),
        (r"\p{N}", NUMBER),
        (r"\s", SPACE),
        (r"[\r\n]", LINE_END),
    ];
    for (class, kind) in classes {
        let parsed = regex_syntax::parse(class).expect("the classes are constants that parse");
        let HirKind::Class(Class::Unicode(class)) = parsed.kind() else {
            panic!("{class} is a class of characters");
        };
        for range in class.ranges() {
            kinds[range.start() as usize..=range.end() as usize].fill(kind);
        }
    }
    kinds
}
