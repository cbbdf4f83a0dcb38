//! Numbers that must not mix: what counts in the log, what counts in the view, and what counts
//! batches and versions.

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
    /// The number of a log entry. It never changes.
    LogIndex(u32)
}

number! {
    /// A place in the view, from 0. It changes with every edit before it.
    Position(usize)
}

number! {
    /// The number of a batch on the live path. After a rollback it is used again, so it is no key.
    BatchIndex(usize)
}

number! {
    /// How many requests were accepted before; 0 is the conversation as it was created.
    Version(u32)
}

impl LogIndex {
    /// The entries from one number up to, not including, another.
    pub fn range(range: std::ops::Range<u32>) -> Vec<LogIndex> {
        range.map(LogIndex).collect()
    }

    /// As an index into something that holds an entry for each log entry.
    pub fn as_usize(self) -> usize {
        self.0 as usize
    }
}

impl Version {
    pub(crate) fn as_usize(self) -> usize {
        self.0 as usize
    }
}

/// Milliseconds since 1970. The engine has no clock: whoever calls it says what time it is.
pub type Timestamp = i64;
