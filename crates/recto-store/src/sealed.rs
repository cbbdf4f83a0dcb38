//! The supertrait that seals [`Store`](crate::Store): outside of this crate, only tests implement it. So
//! methods can be added to `Store` without breaking other crates.

/// Implemented by the stores of this crate. Not part of the public API.
pub trait Sealed {}
