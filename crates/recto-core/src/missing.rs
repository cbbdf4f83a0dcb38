//! Names for the parts of a conversation that a store has not loaded.

use std::ops::Range;

use crate::{LogIndex, Version};

/// A part of a conversation that is not loaded. Each variant names the method that adds the part.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Missing {
    /// A version: [`crate::PartialConversation::add_version`].
    Version(Version),
    /// All versions: [`crate::PartialConversation::first`], then
    /// [`crate::PartialConversation::followed_by`] for each.
    Versions,
    /// Batches of a live path: [`crate::PartialConversation::add_batches`].
    Batches(StoredPath, Range<usize>),
    /// The openings of all batches of a live path: [`crate::PartialConversation::add_openings`].
    Openings(StoredPath),
    /// The metadata of every log entry: [`crate::PartialConversation::add_metadata`].
    Log,
    /// Messages: [`crate::PartialConversation::add_messages`].
    Messages(Vec<LogIndex>),
}

/// The identity of a batch. Batch numbers are reused after a rollback; this is not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct BatchOrigin {
    /// The version whose request opened it.
    pub(crate) version: Version,
    /// Number of batches that the request had opened before this one.
    pub(crate) ordinal: u32,
}

/// Identifies the batches below a batch, which are not loaded. Opaque to other crates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StoredPath {
    pub(crate) origin: BatchOrigin,
    pub(crate) number: usize,
}
