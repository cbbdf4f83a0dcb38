//! What a character is to the patterns of the encodings: one bit each, so that a set of kinds is a
//! mask. The build script makes tables of them.

pub(crate) const UPPER: u8 = 1;
pub(crate) const LOWER: u8 = 2;
/// Letters without case, such as 中.
pub(crate) const CASELESS: u8 = 4;
pub(crate) const MARK: u8 = 8;
pub(crate) const NUMBER: u8 = 16;
pub(crate) const SPACE: u8 = 32;
pub(crate) const LINE_END: u8 = 64;
pub(crate) const OTHER: u8 = 128;

/// So many characters share a run of kinds, if their kinds are the same.
pub(crate) const BLOCK: usize = 256;
