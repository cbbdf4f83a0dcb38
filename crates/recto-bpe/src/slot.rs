//! Slots of the hash tables of a vocabulary. The build script writes them, `vocabulary.rs` reads them.

#![allow(dead_code, reason = "the build script uses some items, the crate the others")]

/// Size of a stored rank.
pub(crate) const RANK_BYTES: usize = 3;

/// The value that stands for the rank of bytes that are not a token. Greater than the rank of every token.
pub(crate) const NONE: u32 = (1 << (8 * RANK_BYTES)) - 1;

/// A token of three to five bytes in one number: its bytes, its length and its rank. A look-up reads
/// only the slot. Most look-ups during merging are for tokens of this length.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct ShortSlot(pub(crate) u64);

/// Maximum length of a token that is stored in its slot, in bytes.
pub(crate) const MAX_SHORT: usize = 5;

/// A short token without its rank; never 0.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct ShortKey(u64);

const LEN_SHIFT: u32 = 8 * MAX_SHORT as u32;
const RANK_SHIFT: u32 = LEN_SHIFT + 3;

impl ShortKey {
    /// The key of the first `len` bytes; `len` is at most [`MAX_SHORT`].
    #[inline]
    pub(crate) fn new(bytes: [u8; 8], len: usize) -> ShortKey {
        let bytes = u64::from_le_bytes(bytes) & ((1 << (8 * len)) - 1);
        ShortKey(bytes | (len as u64) << LEN_SHIFT)
    }

    #[inline]
    pub(crate) fn hash(self) -> u64 {
        self.0.wrapping_mul(ODD)
    }
}

impl ShortSlot {
    pub(crate) const EMPTY: ShortSlot = ShortSlot(0);

    pub(crate) fn new(key: ShortKey, rank: u32) -> ShortSlot {
        assert!(rank < 1 << (64 - RANK_SHIFT), "the vocabulary is too large for its slots");
        ShortSlot(key.0 | u64::from(rank) << RANK_SHIFT)
    }

    #[inline]
    pub(crate) fn key(self) -> ShortKey {
        ShortKey(self.0 & ((1 << RANK_SHIFT) - 1))
    }

    #[inline]
    pub(crate) fn rank(self) -> u32 {
        (self.0 >> RANK_SHIFT) as u32
    }
}

/// The offset of a longer token, and some bits of its hash. Comparing those bits rules out most other
/// tokens without reading them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot(pub(crate) u32);

const OFFSET_BITS: u32 = 21;

/// Size of the header before the bytes of a token: its rank and its length.
pub(crate) const HEAD: usize = RANK_BYTES + 1;

impl Slot {
    pub(crate) const EMPTY: Slot = Slot(0);

    pub(crate) fn new(hash: u64, offset: usize) -> Slot {
        // The slot holds the offset plus one, so that no used slot is 0.
        assert!(offset + 1 < 1 << OFFSET_BITS, "the vocabulary is too large for its slots");
        Slot(tag(hash) << OFFSET_BITS | (offset as u32 + 1))
    }

    /// The offset of the token; `None` if the stored bits of its hash differ from those of `hash`.
    #[inline]
    pub(crate) fn offset(self, hash: u64) -> Option<usize> {
        (self.0 >> OFFSET_BITS == tag(hash))
            .then(|| (self.0 & ((1 << OFFSET_BITS) - 1)).wrapping_sub(1) as usize)
    }
}

/// The upper bits of the lower half of the hash. The upper half determines the index in the table.
fn tag(hash: u64) -> u32 {
    hash as u32 >> OFFSET_BITS
}

const ODD: u64 = 0x9E37_79B9_7F4A_7C15;

/// The hash of a token that is longer than [`MAX_SHORT`].
#[inline]
pub(crate) fn hash(token: &[u8]) -> u64 {
    let mix = |hash: u64, part: u64| (hash ^ part).wrapping_mul(ODD).rotate_left(29);
    let parts = token.as_chunks::<8>().0.iter().map(|part| u64::from_le_bytes(*part));
    let hash = parts.fold(token.len() as u64, mix);
    // The last eight bytes, which may overlap with the chunks above. Of a shorter token: the first four and
    // the last four.
    let half = |half: Option<&[u8; 4]>| half.map_or(0, |half| u32::from_le_bytes(*half).into());
    let last = match token.last_chunk() {
        Some(last) => u64::from_le_bytes(*last),
        None => half(token.first_chunk()) | half(token.last_chunk()) << 32,
    };
    mix(hash, last).wrapping_mul(ODD)
}

/// The index at which a table of `slots` slots is searched for a hash, from the upper bits of the hash.
#[inline]
pub(crate) fn table_index(hash: u64, slots: usize) -> usize {
    (((hash >> 32) * slots as u64) >> 32) as usize
}
