//! Random numbers from a seed, and a new seed if none is given.

use std::time::{SystemTime, UNIX_EPOCH};

/// A seed from the clock; it is always printed, so that a run can be repeated.
pub(crate) fn fresh() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // 31 bits, because libFuzzer accepts no more, and a short number is easy to type.
    u64::from(since.subsec_nanos() ^ since.as_secs() as u32) & 0x7fff_ffff
}

/// The generator `splitmix64`: the same numbers on every machine.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 to `end - 1`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// One of the choices, each as likely as the others.
    pub(crate) fn pick<'a, T: ?Sized>(&mut self, choices: &[&'a T]) -> &'a T {
        choices[self.below(choices.len())]
    }
}
