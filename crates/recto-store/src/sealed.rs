//! The supertrait that keeps [`Store`](crate::Store) closed: methods can be added to it without
//! breaking other crates.

/// Implemented by the stores of this crate. Not part of the public API.
pub trait Sealed {}
