//! The tokens of an encoding, and how many of them a piece is.
//!
//! Byte-pair encoding: of all neighbours that make a token together, those with the lowest rank are
//! joined, the leftmost first, until none are left.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::slot::{HEAD, NONE, RANK_BYTES, Slot, hash};

/// The tokens of an encoding, as tables that the build script wrote.
pub(super) struct Vocabulary {
    /// The tokens, each behind its rank and length.
    tokens: &'static [u8],
    /// At the place that its hash says, or behind it, is where a token is written.
    slots: &'static [[u8; 4]],
    /// The ranks of all tokens of two bytes: joining begins with those.
    pairs: &'static [[u8; RANK_BYTES]],
}

macro_rules! vocabulary {
    ($name:literal) => {
        Vocabulary {
            tokens: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".tokens")),
            slots: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".slots")).as_chunks().0,
            pairs: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".pairs")).as_chunks().0,
        }
    };
}

pub(super) static O200K_BASE: Vocabulary = vocabulary!("o200k_base");
pub(super) static CL100K_BASE: Vocabulary = vocabulary!("cl100k_base");

/// Up to so many bytes, looking at all neighbours for each join is quicker than keeping them sorted.
const FEW: usize = 64;

impl Vocabulary {
    /// How many tokens a piece is.
    pub(super) fn count(&self, piece: &[u8]) -> u64 {
        if self.rank(piece) != NONE {
            return 1;
        }
        let joins = match piece.len() {
            ..=FEW => self.joins_of_few(piece),
            _ => self.joins_of_many(piece),
        };
        (piece.len() - joins) as u64
    }

    #[inline]
    fn rank(&self, bytes: &[u8]) -> u32 {
        let hash = hash(bytes);
        let mut place = hash as usize;
        loop {
            // At least a fifth of them are empty.
            place &= self.slots.len() - 1;
            let slot = Slot(u32::from_le_bytes(self.slots[place]));
            if slot == Slot::EMPTY {
                return NONE;
            }
            if let Some(token) = slot.place(hash) {
                let (rank, token) = self.token(token);
                if token == bytes {
                    return rank;
                }
            }
            place += 1;
        }
    }

    /// The token that is written there, and its rank.
    #[inline]
    fn token(&self, place: usize) -> (u32, &[u8]) {
        let written = &self.tokens[place..];
        let [low, middle, high, len] = *written.first_chunk::<HEAD>().expect("a token is there");
        let rank = u32::from_le_bytes([low, middle, high, 0]);
        (rank, &written[HEAD..HEAD + usize::from(len)])
    }

    #[inline]
    fn rank_of_pair(&self, first: u8, second: u8) -> u32 {
        let [low, middle, high] = self.pairs[usize::from(u16::from_be_bytes([first, second]))];
        u32::from_le_bytes([low, middle, high, 0])
    }

    /// How often neighbours are joined in a short piece.
    fn joins_of_few(&self, piece: &[u8]) -> usize {
        // Where each part starts, and the rank of it with the next one; one behind the last part.
        let mut starts: [u8; FEW + 1] = std::array::from_fn(|start| start as u8);
        let mut ranks = [NONE; FEW];
        let mut parts = piece.len();
        let rank = |starts: &[u8], part: usize, parts: usize| match part + 2 <= parts {
            true => self.rank(&piece[starts[part].into()..starts[part + 2].into()]),
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

    /// The same for a long one, in n log n time.
    fn joins_of_many(&self, piece: &[u8]) -> usize {
        let len = piece.len();
        // By where a part starts: where the parts beside it do, and its rank with the next one.
        let mut next: Vec<u32> = (1..=len as u32 + 1).collect();
        let mut before: Vec<u32> = (0..=len as u32).map(|start| start.wrapping_sub(1)).collect();
        let mut ranks: Vec<u32> =
            piece.array_windows().map(|[a, b]| self.rank_of_pair(*a, *b)).collect();
        ranks.push(NONE);
        let known = ranks.iter().zip(0_u32..).filter(|(rank, _)| **rank != NONE);
        let mut lowest: BinaryHeap<_> = known.map(|(&rank, part)| Reverse((rank, part))).collect();
        let mut joins = 0;
        while let Some(Reverse((rank, part))) = lowest.pop() {
            let at = part as usize;
            if ranks[at] != rank {
                // It has been joined otherwise since.
                continue;
            }
            joins += 1;
            let joined = next[at] as usize;
            ranks[joined] = NONE;
            next[at] = next[joined];
            before[next[at] as usize] = part;
            for part in [part, before[at]] {
                let Some(old) = ranks.get_mut(part as usize) else { continue };
                let behind = next[part as usize] as usize;
                let new = match behind < len {
                    true => self.rank(&piece[part as usize..next[behind] as usize]),
                    false => NONE,
                };
                *old = new;
                if new != NONE {
                    lowest.push(Reverse((new, part)));
                }
            }
        }
        joins
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_token_is_found_by_its_bytes() {
        for (vocabulary, count) in [(&O200K_BASE, 199_998), (&CL100K_BASE, 100_256)] {
            let mut place = 0;
            let mut found = 0;
            while place < vocabulary.tokens.len() {
                let (rank, token) = vocabulary.token(place);
                assert_eq!((rank, vocabulary.rank(token)), (found, found));
                if let &[first, second] = token {
                    assert_eq!(vocabulary.rank_of_pair(first, second), found);
                }
                found += 1;
                place += HEAD + token.len();
            }
            assert_eq!(found, count);
            assert_eq!(vocabulary.rank(b""), NONE);
            assert_eq!(vocabulary.rank(b"no token is like this"), NONE);
        }
    }

    #[test]
    fn two_bytes_have_the_rank_that_the_table_of_all_tokens_says() {
        for vocabulary in [&O200K_BASE, &CL100K_BASE] {
            for pair in (0..=u16::MAX).map(u16::to_be_bytes) {
                assert_eq!(vocabulary.rank_of_pair(pair[0], pair[1]), vocabulary.rank(&pair));
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn long_pieces_are_joined_as_short_ones_are(
            piece in proptest::collection::vec(
                proptest::prop_oneof![
                    proptest::sample::select(b"aabcdehilmnorstu -=_".to_vec()),
                    proptest::num::u8::ANY,
                ],
                1..=FEW,
            ),
        ) {
            for vocabulary in [&O200K_BASE, &CL100K_BASE] {
                let (few, many) =
                    (vocabulary.joins_of_few(&piece), vocabulary.joins_of_many(&piece));
                assert_eq!(few, many);
            }
        }
    }
}
