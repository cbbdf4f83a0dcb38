//! Persistent sequence.
