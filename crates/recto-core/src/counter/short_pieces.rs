//! The token counts of short pieces that this thread has met.
//! Most of a text is a few thousand words that come again and again. Finding one here is one
//! read in 1 MB, which stays near the processor; the vocabulary's tables are over 8 MB.

use std::cell::RefCell;

/// A piece has one slot to be in, and the latest piece there stays. (Two slots a piece lose
/// fewer, and were slower at the same size.)
pub(super) struct ShortPieces {
    slots: Box<[u128]>,
}

/// The longest piece that is remembered, in bytes.
pub(super) const MAX_LEN: usize = 14;

// 16 bytes each: 1 MB a thread that counts, of which only what is used becomes real.
const SLOTS: usize = 1 << 16;

/// A piece as a number: its bytes, then its length and encoding in one byte, then a zero
/// where the slot holds the count. No two pieces are the same number, and none is 0.
#[derive(Clone, Copy)]
pub(super) struct Key(u128);

thread_local! {
    static HERE: RefCell<ShortPieces> =
        RefCell::new(ShortPieces { slots: vec![0; SLOTS].into() });
}

impl ShortPieces {
    /// Lends out the table of this thread.
    pub(super) fn lend<T>(to: impl FnOnce(&mut ShortPieces) -> T) -> T {
        HERE.with_borrow_mut(to)
    }

    /// The count that was remembered for `key`, else what `count` says.
    #[inline]
    pub(super) fn get_or(&mut self, key: Key, count: impl FnOnce() -> u64) -> u64 {
        let slot = &mut self.slots[key.slot()];
        if *slot & !COUNT == key.0 {
            return (*slot >> COUNT_SHIFT) as u64;
        }
        let tokens = count();
        // A piece has at most a token a byte, so its count fits.
        *slot = key.0 | u128::from(tokens) << COUNT_SHIFT;
        tokens
    }
}

const COUNT_SHIFT: u32 = 120;
const COUNT: u128 = 0xFF << COUNT_SHIFT;
const TAG_SHIFT: u32 = 112;

impl Key {
    /// The key of `text[start..end]`, which has from 1 to [`MAX_LEN`] bytes.
    /// `encoding` is a number below 16.
    #[inline]
    pub(super) fn new(text: &[u8], start: usize, end: usize, encoding: u8) -> Self {
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

    #[test]
    fn a_count_is_asked_for_once() {
        ShortPieces::lend(|pieces| {
            assert_eq!(pieces.get_or(key(" word", 0), || 7), 7);
            assert_eq!(pieces.get_or(key(" word", 0), || unreachable!()), 7);
        });
    }

    #[test]
    fn a_piece_has_the_same_key_wherever_it_stands() {
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
    fn the_latest_piece_of_a_slot_stays() {
        ShortPieces::lend(|pieces| {
            let numbers = (0..1_000_000).map(|number: u32| key(&number.to_string(), 0));
            let rivals: Vec<Key> = numbers.filter(|key| key.slot() == 0).take(2).collect();
            assert_eq!(pieces.get_or(rivals[0], || 1), 1);
            assert_eq!(pieces.get_or(rivals[1], || 2), 2);
            assert_eq!(pieces.get_or(rivals[1], || unreachable!()), 2);
            assert_eq!(pieces.get_or(rivals[0], || 3), 3);
        });
    }
}
