//! Parts of a provider request that strategies keep.

use std::fmt;

/// A part of a provider request that strategies keep, and its tokens. Only `keep-recent` hides messages of
/// such a part: system messages before the newest exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FloorPart {
    /// A description of the part, such as `pinned messages`.
    pub name: &'static str,
    /// The tokens of the part.
    pub tokens: u64,
}

impl fmt::Display for FloorPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.tokens)
    }
}
