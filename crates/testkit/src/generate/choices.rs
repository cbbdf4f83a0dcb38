//! Choices from a stream of small numbers.

/// Choices from a list of numbers. After the end of the list, every choice is the simplest one.
#[derive(Debug, Clone)]
pub struct Choices<'a> {
    numbers: &'a [u16],
}

impl<'a> Choices<'a> {
    /// Choices made by these numbers.
    pub fn new(numbers: &'a [u16]) -> Choices<'a> {
        Choices { numbers }
    }

    /// The next number, 0 when there is none left.
    pub fn number(&mut self) -> u16 {
        match self.numbers {
            [first, rest @ ..] => {
                self.numbers = rest;
                *first
            }
            [] => 0,
        }
    }

    /// Whether all numbers are used up.
    pub fn is_exhausted(&self) -> bool {
        self.numbers.is_empty()
    }

    /// A number below `limit`; 0 if the limit is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        usize::from(self.number()).checked_rem(limit).unwrap_or(0)
    }

    /// True in `sixteenths` of 16 cases; false for the number 0.
    pub fn chance(&mut self, sixteenths: usize) -> bool {
        self.below(16) >= 16 - sixteenths.min(16)
    }

    /// One of the options; the first for the number 0.
    ///
    /// # Panics
    /// If there are no options.
    pub fn pick<'b, T>(&mut self, options: &'b [T]) -> &'b T {
        &options[self.below(options.len())]
    }
}

/// `count` numbers from a seed, for loops that need no other source (splitmix64).
pub fn numbers(seed: u64, count: usize) -> Vec<u16> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed >> 48) as u16
    };
    (0..count).map(|_| next()).collect()
}
