//! Computes the tables and writes them to `OUT_DIR`.

use std::path::PathBuf;

use regex_syntax::hir::{Class, HirKind};
use tiktoken::CoreBpe;

use crate::kind::*;
use crate::slot::{MAX_SHORT, NONE, RANK_BYTES, ShortKey, ShortSlot, Slot, hash, table_index};

pub(crate) fn write() {
    write_vocabulary("o200k_base", &tiktoken::encoding::o200k_base());
    write_vocabulary("cl100k_base", &tiktoken::encoding::cl100k_base());
    write_kinds();
}

fn write_file(name: &str, bytes: impl IntoIterator<Item = u8>) {
    let folder = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let bytes: Vec<u8> = bytes.into_iter().collect();
    std::fs::write(folder.join(name), bytes).expect("OUT_DIR is writable");
}

fn write_vocabulary(name: &str, encoding: &CoreBpe) {
    // In these encodings the number of a token is its rank, and the numbers have no gaps.
    let tokens: Vec<Vec<u8>> =
        (0..encoding.vocab_size() as u32).map(|rank| encoding.decode(&[rank])).collect();
    assert!(tokens.iter().all(|token| !token.is_empty()), "{name} has gaps");
    let mut pairs = vec![NONE; 1 << 16];
    let (mut short, mut long, mut written) = (Vec::new(), Vec::new(), Vec::new());
    for (token, rank) in tokens.iter().zip(0_u32..) {
        match **token {
            // Every single byte is a token, and no code reads its rank.
            [_] => {}
            [first, second] => pairs[usize::from(u16::from_be_bytes([first, second]))] = rank,
            _ if token.len() <= MAX_SHORT => {
                let mut bytes = [0; 8];
                bytes[..token.len()].copy_from_slice(token);
                let key = ShortKey::new(bytes, token.len());
                short.push((key.hash(), ShortSlot::new(key, rank).0));
            }
            _ => {
                let hash = hash(token);
                long.push((hash, Slot::new(hash, written.len()).0));
                let [rank @ .., 0] = rank.to_le_bytes() else { panic!("{name} is too large") };
                written.extend(rank);
                written.push(u8::try_from(token.len()).expect("a token is shorter than 256 bytes"));
                written.extend(token);
            }
        }
    }
    let pairs = pairs.iter().flat_map(|rank| rank.to_le_bytes().into_iter().take(RANK_BYTES));
    write_file(&format!("{name}.pairs"), pairs);
    let short = hash_table(&short).into_iter().flat_map(u64::to_le_bytes);
    write_file(&format!("{name}.short"), short);
    let long = hash_table(&long).into_iter().flat_map(u32::to_le_bytes);
    write_file(&format!("{name}.long"), long);
    write_file(&format!("{name}.tokens"), written);
}

/// An open-addressing hash table: each slot is at the index of its hash, or at the next free one.
/// About three in ten slots are empty. An empty slot is 0.
fn hash_table<S: Copy + Default + PartialEq>(slots: &[(u64, S)]) -> Vec<S> {
    let mut table = vec![S::default(); slots.len() * 10 / 7];
    for &(hash, slot) in slots {
        let mut index = table_index(hash, table.len());
        while table[index] != S::default() {
            index = (index + 1) % table.len();
        }
        table[index] = slot;
    }
    table
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
        blocks.extend(
            u16::try_from(run).expect("there are far fewer runs than 65,536").to_le_bytes(),
        );
    }
    write_file("kinds.blocks", blocks);
    write_file("kinds.runs", runs.concat());
}

/// The kind of every character, indexed by code point.
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
        let parsed = regex_syntax::parse(class).expect("the classes are constants");
        let HirKind::Class(Class::Unicode(class)) = parsed.kind() else {
            panic!("{class} is a class of characters");
        };
        for range in class.ranges() {
            kinds[range.start() as usize..=range.end() as usize].fill(kind);
        }
    }
    kinds
}
