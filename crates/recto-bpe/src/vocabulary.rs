//! The tokens of an encoding, and the number of tokens in a piece.
//!
//! Byte-pair encoding starts with single bytes. It repeatedly merges two neighbours that together form a
//! token: the pair whose token has the lowest rank, and of several such pairs the leftmost. It stops when
//! no two neighbours form a token.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::slot::{
    HEAD, MAX_SHORT, NONE, RANK_BYTES, ShortKey, ShortSlot, Slot, hash, table_index,
};

/// The tokens of an encoding, as tables that the build script writes. Every single byte is a token, so
/// single bytes need no table.
pub(crate) struct Vocabulary {
    /// The ranks of all tokens of two bytes, with which merging begins.
    pairs: &'static [[u8; RANK_BYTES]],
    /// Hash table of the tokens of three to [`MAX_SHORT`] bytes.
    short: &'static [[u8; 8]],
    /// Hash table of the offsets of longer tokens in `tokens`.
    long: &'static [[u8; 4]],
    /// The longer tokens, each after its rank and length.
    tokens: &'static [u8],
}

macro_rules! vocabulary {
    ($name:literal) => {
        Vocabulary {
            pairs: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".pairs")).as_chunks().0,
            short: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".short")).as_chunks().0,
            long: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".long")).as_chunks().0,
            tokens: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".tokens")),
        }
    };
}

pub(crate) static O200K_BASE: Vocabulary = vocabulary!("o200k_base");
pub(crate) static CL100K_BASE: Vocabulary = vocabulary!("cl100k_base");

/// Maximum length of a piece for which all neighbours are scanned for each merge, in bytes. For longer
/// pieces, a priority queue is faster.
const MAX_SCANNED: usize = 64;

impl Vocabulary {
    /// Number of tokens in a piece; 0 for an empty one.
    pub(crate) fn count(&self, piece: &[u8]) -> u64 {
        if piece.len() < 2 {
            return piece.len() as u64; // every byte is a token
        }
        if self.rank(piece, piece.len()) != NONE {
            return 1;
        }
        let merges = match piece.len() {
            ..=MAX_SCANNED => self.merges_by_scan(piece),
            _ => self.merges_by_heap(piece),
        };
        (piece.len() - merges) as u64
    }

    /// The rank of the first `len` bytes, at least two.
    #[inline]
    fn rank(&self, bytes: &[u8], len: usize) -> u32 {
        match len {
            2 => self.rank_of_pair(bytes[0], bytes[1]),
            ..=MAX_SHORT => self.rank_of_short(ShortKey::new(first_eight(bytes), len)),
            _ => self.rank_of_long(&bytes[..len]),
        }
    }

    #[inline]
    fn rank_of_pair(&self, first: u8, second: u8) -> u32 {
        let [low, middle, high] = self.pairs[usize::from(u16::from_be_bytes([first, second]))];
        u32::from_le_bytes([low, middle, high, 0])
    }

    #[inline]
    fn rank_of_short(&self, key: ShortKey) -> u32 {
        for slot in probe(self.short, key.hash()) {
            let slot = ShortSlot(u64::from_le_bytes(*slot));
            if slot.key() == key {
                return slot.rank();
            }
            if slot == ShortSlot::EMPTY {
                break;
            }
        }
        NONE
    }

    fn rank_of_long(&self, bytes: &[u8]) -> u32 {
        let hash = hash(bytes);
        for slot in probe(self.long, hash) {
            let slot = Slot(u32::from_le_bytes(*slot));
            if slot == Slot::EMPTY {
                break;
            }
            if let Some(offset) = slot.offset(hash) {
                let (rank, token) = self.token(offset);
                if token == bytes {
                    return rank;
                }
            }
        }
        NONE
    }

    /// The token at an offset, and its rank.
    #[inline]
    fn token(&self, offset: usize) -> (u32, &[u8]) {
        let written = &self.tokens[offset..];
        let [low, middle, high, len] = *written.first_chunk::<HEAD>().expect("a token is there");
        let rank = u32::from_le_bytes([low, middle, high, 0]);
        (rank, &written[HEAD..HEAD + usize::from(len)])
    }

    /// Number of merges in a short piece.
    fn merges_by_scan(&self, piece: &[u8]) -> usize {
        // With padding, so that eight bytes can be read at every part.
        let mut bytes = [0; MAX_SCANNED + 8];
        bytes[..piece.len()].copy_from_slice(piece);
        // Start of each part, and its rank when merged with the next one. The last start is the end.
        let mut starts: [u8; MAX_SCANNED + 1] = std::array::from_fn(|start| start as u8);
        let mut ranks = [NONE; MAX_SCANNED];
        let mut parts = piece.len();
        let rank = |starts: &[u8], part: usize, parts: usize| match part + 2 <= parts {
            true => {
                let (start, end) = (usize::from(starts[part]), usize::from(starts[part + 2]));
                self.rank(&bytes[start..], end - start)
            }
            false => NONE,
        };
        for (with_next, pair) in ranks.iter_mut().zip(piece.array_windows()) {
            let [first, second] = *pair;
            *with_next = self.rank_of_pair(first, second);
        }
        loop {
            let lowest = (0..parts).min_by_key(|&part| ranks[part]);
            let Some(part) = lowest.filter(|&part| ranks[part] != NONE) else { break };
            starts.copy_within(part + 2..=parts, part + 1);
            ranks.copy_within(part + 1..parts, part);
            parts -= 1;
            ranks[part] = rank(&starts, part, parts);
            if part > 0 {
                ranks[part - 1] = rank(&starts, part - 1, parts);
            }
        }
        piece.len() - parts
    }

    /// Number of merges in a long piece, in n log n time.
    fn merges_by_heap(&self, piece: &[u8]) -> usize {
        let len = piece.len();
        // Indexed by the start of a part: the starts of its neighbours, and its rank when merged with
        // the next one.
        let mut next: Vec<u32> = (1..=len as u32 + 1).collect();
        let mut before: Vec<u32> = (0..=len as u32).map(|start| start.wrapping_sub(1)).collect();
        let mut ranks: Vec<u32> =
            piece.array_windows().map(|[a, b]| self.rank_of_pair(*a, *b)).collect();
        ranks.push(NONE);
        let known = ranks.iter().zip(0_u32..).filter(|(rank, _)| **rank != NONE);
        let mut lowest: BinaryHeap<_> = known.map(|(&rank, part)| Reverse((rank, part))).collect();
        let mut merges = 0;
        while let Some(Reverse((rank, part))) = lowest.pop() {
            let at = part as usize;
            if ranks[at] != rank {
                // The part has been merged since this entry was added.
                continue;
            }
            merges += 1;
            let joined = next[at] as usize;
            ranks[joined] = NONE;
            next[at] = next[joined];
            before[next[at] as usize] = part;
            for part in [part, before[at]] {
                let Some(old) = ranks.get_mut(part as usize) else { continue };
                let after = next[part as usize] as usize;
                let new = match after < len {
                    true => self.rank(&piece[part as usize..], (next[after] - part) as usize),
                    false => NONE,
                };
                *old = new;
                if new != NONE {
                    lowest.push(Reverse((new, part)));
                }
            }
        }
        merges
    }
}

/// The slots of a hash table, starting at the index of a hash and wrapping around.
#[inline]
fn probe<T>(slots: &[T], hash: u64) -> impl Iterator<Item = &T> {
    let (before, after) = slots.split_at(table_index(hash, slots.len()));
    after.iter().chain(before)
}

/// The first eight bytes, padded with zeros.
#[inline]
fn first_eight(bytes: &[u8]) -> [u8; 8] {
    bytes.first_chunk().copied().unwrap_or_else(|| {
        let mut eight = [0; 8];
        eight[..bytes.len()].copy_from_slice(bytes);
        eight
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn every_token_has_its_rank_and_nothing_else_has_one() {
        let encodings = [
            (&O200K_BASE, tiktoken_rs::o200k_base_singleton(), 199_998),
            (&CL100K_BASE, tiktoken_rs::cl100k_base_singleton(), 100_256),
        ];
        for (vocabulary, encoding, count) in encodings {
            let tokens = (0..count).map(|rank| encoding.decode_bytes(&[rank]).unwrap());
            let ranks: HashMap<Vec<u8>, u32> = tokens.zip(0..).collect();
            let rank = |bytes: &[u8]| ranks.get(bytes).copied().unwrap_or(NONE);
            for token in ranks.keys().filter(|token| token.len() > 1) {
                // The prefixes of the token, then the same with another last byte.
                let mut bytes = token.clone();
                for _ in 0..2 {
                    for len in 2..=bytes.len() {
                        assert_eq!(vocabulary.rank(&bytes, len), rank(&bytes[..len]), "{bytes:?}");
                    }
                    *bytes.last_mut().unwrap() ^= 1;
                }
            }
            for pair in (0..=u16::MAX).map(u16::to_be_bytes) {
                assert_eq!(vocabulary.rank(&pair, 2), rank(&pair));
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn long_pieces_are_merged_like_short_ones(
            piece in proptest::collection::vec(
                proptest::prop_oneof![
                    proptest::sample::select(b"aabcdehilmnorstu -=_".to_vec()),
                    proptest::num::u8::ANY,
                ],
                1..=MAX_SCANNED,
            ),
        ) {
            for vocabulary in [&O200K_BASE, &CL100K_BASE] {
                let (by_scan, by_heap) =
                    (vocabulary.merges_by_scan(&piece), vocabulary.merges_by_heap(&piece));
                assert_eq!(by_scan, by_heap);
            }
        }
    }
}
