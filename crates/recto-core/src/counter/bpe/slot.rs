//! The places of a vocabulary's hash tables. The build script fills them, `vocabulary.rs` reads them.

#![allow(dead_code, reason = "each of them needs one half")]

/// How a rank is written.
pub(crate) const RANK_BYTES: usize = 3;

/// No rank: the bytes are no token. Greater than every rank.
pub(crate) const NONE: u32 = (1 << (8 * RANK_BYTES)) - 1;

/// A token of three to five bytes as one number: its bytes, its length and its rank. It is all
/// there is to read, and most of what is looked up while joining is so short.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct ShortSlot(pub(crate) u64);

/// The longest token that is written in its slot, in bytes.
pub(crate) const MAX_SHORT: usize = 5;

/// A short token without its rank; never 0.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct ShortKey(u64);

const LEN_SHIFT: u32 = 8 * MAX_SHORT as u32;
const RANK_SHIFT: u32 = LEN_SHIFT + 3;

impl ShortKey {
    /// The first `len` of some bytes, up to [`MAX_SHORT`].
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

/// Where a longer token is written, and some bits of its hash: most tokens that are not the one that
/// is looked for are told by those, without reading them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot(pub(crate) u32);

const PLACE_BITS: u32 = 21;

/// What stands before the bytes of a token: its rank, and how long it is.
pub(crate) const HEAD: usize = RANK_BYTES + 1;

impl Slot {
    pub(crate) const EMPTY: Slot = Slot(0);

    pub(crate) fn new(hash: u64, place: usize) -> Slot {
        // One more than the place, so that no slot in use is 0.
        assert!(place + 1 < 1 << PLACE_BITS, "the vocabulary is too large for its slots");
        Slot(tag(hash) << PLACE_BITS | (place as u32 + 1))
    }

    /// Where the token is written, if it may be one with this hash.
    #[inline]
    pub(crate) fn place(self, hash: u64) -> Option<usize> {
        (self.0 >> PLACE_BITS == tag(hash))
            .then(|| (self.0 & ((1 << PLACE_BITS) - 1)).wrapping_sub(1) as usize)
    }
}

/// The lower bits: the upper ones say where it is in the table.
fn tag(hash: u64) -> u32 {
    hash as u32 >> PLACE_BITS
}

const ODD: u64 = 0x9E37_79B9_7F4A_7C15;

/// The hash of a token that is longer than [`MAX_SHORT`].
#[inline]
pub(crate) fn hash(token: &[u8]) -> u64 {
    let mix = |hash: u64, part: u64| (hash ^ part).wrapping_mul(ODD).rotate_left(29);
    let parts = token.as_chunks::<8>().0.iter().map(|part| u64::from_le_bytes(*part));
    let hash = parts.fold(token.len() as u64, mix);
    // Its end, some of which may have been read already.
    let half = |half: Option<&[u8; 4]>| half.map_or(0, |half| u32::from_le_bytes(*half).into());
    let last = match token.last_chunk() {
        Some(last) => u64::from_le_bytes(*last),
        None => half(token.first_chunk()) | half(token.last_chunk()) << 32,
    };
    mix(hash, last).wrapping_mul(ODD)
}

/// A hash as a place among so many, by its upper bits.
#[inline]
pub(crate) fn place(hash: u64, slots: usize) -> usize {
    (((hash >> 32) * slots as u64) >> 32) as usize
}
