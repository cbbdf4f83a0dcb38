//! Parts of a request that no strategy hides.

use std::fmt;

/// A part of a request that no strategy hides, and its tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FloorPart {
    /// A description of the part: `pinned messages`.
    pub name: &'static str,
    /// The tokens of the part.
    pub tokens: u64,
}

impl fmt::Display for FloorPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.tokens)
    }
}
