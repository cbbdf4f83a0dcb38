//! Kinds of characters that the patterns of the encodings distinguish. Each kind is one bit, so a set
//! of kinds is a bit mask. The build script writes tables of them.

pub(crate) const UPPER: u8 = 1;
pub(crate) const LOWER: u8 = 2;
/// Letters without case, such as 中.
pub(crate) const CASELESS: u8 = 4;
pub(crate) const MARK: u8 = 8;
pub(crate) const NUMBER: u8 = 16;
pub(crate) const SPACE: u8 = 32;
pub(crate) const LINE_END: u8 = 64;
pub(crate) const OTHER: u8 = 128;

/// Number of characters in a block. The kinds of the characters of a block are a run; blocks with equal kinds
/// share one run.
pub(crate) const BLOCK: usize = 256;
