//! Newtypes for numbers that must not be mixed up: log indices, positions, batches and versions.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl From<$inner> for $name {
            fn from(number: $inner) -> Self {
                $name(number)
            }
        }
    };
}

number! {
    /// The index of a log entry, from 0. It never changes.
    LogIndex(u32)
}

number! {
    /// A position in the view, from 0. Every edit of the view can change the position of an entry.
    Position(usize)
}

number! {
    /// The number of a batch on the live path. It is reused after a rollback, so it does not identify a
    /// batch.
    BatchIndex(usize)
}

number! {
    /// The number of requests that have changed the conversation; 0 for a new conversation.
    Version(u32)
}

impl LogIndex {
    /// The indices in a range, without its end.
    pub fn range(range: std::ops::Range<u32>) -> Vec<LogIndex> {
        range.map(LogIndex).collect()
    }

    /// The index as a `usize`, for a list with one element per log entry.
    pub fn as_usize(self) -> usize {
        self.0 as usize
    }
}

impl Version {
    pub(crate) fn as_usize(self) -> usize {
        self.0 as usize
    }
}

/// An optional version in four bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OptVersion(u32);

impl OptVersion {
    pub(crate) const NONE: OptVersion = OptVersion(u32::MAX);

    pub(crate) fn get(self) -> Option<Version> {
        (self != OptVersion::NONE).then_some(Version(self.0))
    }
}

impl From<Version> for OptVersion {
    fn from(version: Version) -> Self {
        OptVersion(version.0)
    }
}

impl From<Option<Version>> for OptVersion {
    fn from(version: Option<Version>) -> Self {
        version.map_or(OptVersion::NONE, OptVersion::from)
    }
}

/// Milliseconds since 1970. The engine has no clock; the caller passes the time.
pub type Timestamp = i64;
