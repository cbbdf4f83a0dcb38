//! Cache of the token counts of short pieces, one per thread.
//!
//! Most of a text repeats a few thousand words. A look-up here is one read in a table of 1 MB, which stays
//! in the cache of the processor; the tables of `o200k_base` have over 3 MB.

use std::cell::RefCell;
use std::mem;
use std::ops::Range;

/// A direct-mapped cache: each piece has one slot, and a newer piece replaces an older one. (Two slots
/// per piece evict fewer pieces, but were slower at the same size.)
pub(crate) struct ShortPieces {
    slots: Box<[u128]>,
}

/// Maximum length of a cached piece, in bytes.
pub(crate) const MAX_LEN: usize = 14;

/// Number of slots. Each has 16 bytes, so the table takes 1 MB of address space per thread that counts, of
/// which only used pages take memory.
const SLOTS: usize = 1 << 16;

/// A piece as a number: its bytes, then its length and encoding in one byte, then a zero byte where
/// the slot holds the count. Different pieces have different numbers, and none is 0.
#[derive(Clone, Copy)]
pub(crate) struct Key(u128);

thread_local! {
    static CACHE: RefCell<ShortPieces> =
        RefCell::new(ShortPieces { slots: vec![0; SLOTS].into() });
}

impl ShortPieces {
    /// Calls `use_cache` with the cache of this thread.
    pub(crate) fn with<T>(use_cache: impl FnOnce(&mut ShortPieces) -> T) -> T {
        CACHE.with_borrow_mut(use_cache)
    }

    /// Sum of the tokens of all pieces in a batch, from the cache or else from `count`. The batch is
    /// empty afterwards.
    #[inline]
    pub(crate) fn count(&mut self, batch: &mut Batch, count: impl Fn(Range<usize>) -> u64) -> u64 {
        let keys = &batch.keys[..mem::take(&mut batch.len)];
        let mut slots = [0; BATCH];
        for (slot, key) in slots.iter_mut().zip(keys) {
            *slot = self.slots[key.slot()];
        }
        let mut tokens = 0;
        for ((slot, key), &start) in slots.into_iter().zip(keys).zip(&batch.starts) {
            tokens += match slot & !COUNT == key.0 {
                true => (slot >> COUNT_SHIFT) as u64,
                false => self.count_and_insert(*key, || count(start..start + key.len())),
            };
        }
        tokens
    }

    /// Counts a piece and caches the count.
    fn count_and_insert(&mut self, key: Key, count: impl FnOnce() -> u64) -> u64 {
        let tokens = count();
        // A piece has at most one token per byte, so its count fits into the byte.
        self.slots[key.slot()] = key.0 | u128::from(tokens) << COUNT_SHIFT;
        tokens
    }
}

/// Pieces that are looked up together, each with its offset in the text.
///
/// Between two messages, other work evicts most slots from the processor's caches. Single look-ups
/// would then wait for one slot after the other; the slots of a batch are fetched in parallel.
pub(crate) struct Batch {
    len: usize,
    keys: [Key; BATCH],
    starts: [usize; BATCH],
}

const BATCH: usize = 32;

impl Batch {
    pub(crate) const EMPTY: Batch = Batch { len: 0, keys: [Key(0); BATCH], starts: [0; BATCH] };

    /// Adds a piece. Returns whether the batch is full.
    #[inline]
    pub(crate) fn push(&mut self, key: Key, start: usize) -> bool {
        self.keys[self.len] = key;
        self.starts[self.len] = start;
        self.len += 1;
        self.len == BATCH
    }
}

const COUNT_SHIFT: u32 = 120;
const COUNT: u128 = 0xFF << COUNT_SHIFT;
const TAG_SHIFT: u32 = 112;

impl Key {
    /// The key of `text[start..end]`, which has from 1 to [`MAX_LEN`] bytes.
    /// `encoding` is a number below 16.
    #[inline]
    pub(crate) fn new(text: &[u8], start: usize, end: usize, encoding: u8) -> Self {
        let len = end - start;
        let bytes = match text[start..].first_chunk::<16>() {
            Some(chunk) => u128::from_le_bytes(*chunk) & ((1 << (8 * len)) - 1),
            None => {
                let mut chunk = [0; 16];
                chunk[..len].copy_from_slice(&text[start..end]);
                u128::from_le_bytes(chunk)
            }
        };
        Key(bytes | u128::from(len as u8 | encoding << 4) << TAG_SHIFT)
    }

    #[inline]
    fn len(self) -> usize {
        (self.0 >> TAG_SHIFT) as usize & 0xF
    }

    #[inline]
    fn slot(self) -> usize {
        let (low, high) = (self.0 as u64, (self.0 >> 64) as u64);
        let mixed = (low ^ high.rotate_left(29)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed >> (64 - SLOTS.ilog2())) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(piece: &str, encoding: u8) -> Key {
        Key::new(piece.as_bytes(), 0, piece.len(), encoding)
    }

    /// The count of a piece, with `vocabulary` as the source of a count that is not cached.
    fn count(pieces: &mut ShortPieces, key: Key, vocabulary: impl Fn() -> u64) -> u64 {
        let mut batch = Batch::EMPTY;
        assert!(!batch.push(key, 0));
        pieces.count(&mut batch, |_| vocabulary())
    }

    #[test]
    fn a_count_is_computed_once() {
        ShortPieces::with(|pieces| {
            assert_eq!(count(pieces, key(" word", 0), || 7), 7);
            assert_eq!(count(pieces, key(" word", 0), || unreachable!()), 7);
        });
    }

    #[test]
    fn a_batch_counts_every_piece_at_its_offset_and_is_empty_afterwards() {
        let text = "some pieces, some of them twice";
        let ranges = [(0, 4), (4, 11), (11, 12), (12, 17), (17, 20), (20, 25), (25, 31), (0, 4)];
        ShortPieces::with(|pieces| {
            let mut batch = Batch::EMPTY;
            for (start, end) in ranges {
                batch.push(Key::new(text.as_bytes(), start, end, 9), start);
            }
            assert_eq!(pieces.count(&mut batch, |piece| piece.len() as u64), 35);
            assert_eq!(pieces.count(&mut batch, |_| unreachable!()), 0);
        });
    }

    #[test]
    fn a_batch_reports_when_it_is_full() {
        let mut batch = Batch::EMPTY;
        let added = (0..BATCH).map(|start| batch.push(key("ab", 0), start));
        assert_eq!(added.filter(|is_full| *is_full).count(), 1);
    }

    #[test]
    fn a_piece_has_the_same_key_at_every_offset() {
        let text = b"one word, two words and many more words";
        let alone = key(" word", 1).0;
        assert_eq!(Key::new(text, 3, 8, 1).0, alone);
        assert_eq!(Key::new(text, 13, 18, 1).0, alone);
        assert_eq!(Key::new(text, 33, 38, 1).0, alone);
    }

    #[test]
    fn pieces_that_differ_have_keys_that_differ() {
        let pieces = ["a", "a\0", "\0a", "\0", "\0\0", "aa", "abcdefghijklmn", "abcdefghijklm"];
        let keys: Vec<u128> = pieces.iter().flat_map(|p| [key(p, 0).0, key(p, 1).0]).collect();
        for (i, one) in keys.iter().enumerate() {
            assert!(*one != 0 && !keys[..i].contains(one), "{i}");
        }
    }

    #[test]
    fn a_newer_piece_replaces_the_piece_in_its_slot() {
        ShortPieces::with(|pieces| {
            let numbers = (0..1_000_000).map(|number: u32| key(&number.to_string(), 0));
            let same_slot: Vec<Key> = numbers.filter(|key| key.slot() == 0).take(2).collect();
            assert_eq!(count(pieces, same_slot[0], || 1), 1);
            assert_eq!(count(pieces, same_slot[1], || 2), 2);
            assert_eq!(count(pieces, same_slot[1], || unreachable!()), 2);
            assert_eq!(count(pieces, same_slot[0], || 3), 3);
        });
    }
}
