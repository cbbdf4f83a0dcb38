//! To come.
pub(super) fn run(_seed: u64, _count: u32) {}
