//! The tokens of an encoding, and how many of them a piece is.
//!
//! Byte-pair encoding: of all neighbours that make a token together, those with the lowest rank are
//! joined, the leftmost first, until none are left.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::slot::{Slot, hash};

/// The tokens of an encoding, as tables that the build script wrote.
pub(super) struct Vocabulary {
    bytes: &'static [u8],
    /// Where the token of each rank ends in `bytes`.
    ends: &'static [[u8; 4]],
    /// At the place that its hash says, or behind it, is the rank of a token.
    slots: &'static [[u8; 4]],
}

macro_rules! vocabulary {
    ($name:literal) => {
        Vocabulary {
            bytes: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".bytes")),
            ends: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".ends")).as_chunks().0,
            slots: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".slots")).as_chunks().0,
        }
    };
}

pub(super) static O200K_BASE: Vocabulary = vocabulary!("o200k_base");
pub(super) static CL100K_BASE: Vocabulary = vocabulary!("cl100k_base");

/// No rank: the bytes are no token.
const NONE: u32 = u32::MAX;

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

    fn token(&self, rank: u32) -> &[u8] {
        let end = |rank: usize| u32::from_le_bytes(self.ends[rank]) as usize;
        let rank = rank as usize;
        let start = if rank == 0 { 0 } else { end(rank - 1) };
        &self.bytes[start..end(rank)]
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
            match slot.rank(hash) {
                Some(rank) if self.token(rank) == bytes => return rank,
                _ => place += 1,
            }
        }
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
        for (part, with_next) in ranks[..parts].iter_mut().enumerate() {
            *with_next = rank(&starts, part, parts);
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
        let mut ranks: Vec<u32> = piece.windows(2).map(|pair| self.rank(pair)).collect();
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
        for vocabulary in [&O200K_BASE, &CL100K_BASE] {
            for rank in 0..vocabulary.ends.len() as u32 {
                assert_eq!(vocabulary.rank(vocabulary.token(rank)), rank);
            }
            assert_eq!(vocabulary.rank(b""), NONE);
            assert_eq!(vocabulary.rank(b"no token is like this"), NONE);
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
