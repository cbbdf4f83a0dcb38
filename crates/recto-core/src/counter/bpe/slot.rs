//! A place of a vocabulary's hash table. The build script fills it, `vocabulary.rs` reads it.

#![allow(dead_code, reason = "each of them needs one half")]

/// Where a token is written, and some bits of its hash: most tokens that are not the one that is
/// looked for are told by those, without reading them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot(pub(crate) u32);

const PLACE_BITS: u32 = 22;

/// How a rank is written.
pub(crate) const RANK_BYTES: usize = 3;

/// No rank: the bytes are no token. Greater than every rank.
pub(crate) const NONE: u32 = (1 << (8 * RANK_BYTES)) - 1;

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

/// The upper bits: the lower ones say where it is in the table.
fn tag(hash: u64) -> u32 {
    (hash >> (32 + PLACE_BITS)) as u32
}

#[inline]
pub(crate) fn hash(token: &[u8]) -> u64 {
    const ODD: u64 = 0x9E37_79B9_7F4A_7C15;
    let mix = |hash: u64, bytes: [u8; 8]| {
        (hash ^ u64::from_le_bytes(bytes)).wrapping_mul(ODD).rotate_left(29)
    };
    let (chunks, rest) = token.as_chunks::<8>();
    let hash = chunks.iter().fold(token.len() as u64, |hash, chunk| mix(hash, *chunk));
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    mix(hash, last).wrapping_mul(ODD)
}
