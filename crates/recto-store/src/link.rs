//! The hash chain over the versions of a conversation.
//!
//! ```text
//!   link(−1) = H( settings )
//!   link(v)  = H( link(v − 1) · v · H(record of v) · H(entry) … )     entries that v adds
//!   H(entry) = H( index · role · tokens · timestamp · H(body) )
//! ```
//!
//! H is SHA-256. One known link shows whether anything at or before its version was changed, dropped,
//! reordered or inserted. The hash of an erased message stays stored, so erasing does not break the
//! chain.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::EntryMeta;

/// The hash of a version of a conversation and of all versions before it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Link(pub [u8; 32]);

impl Link {
    /// The link before version 0: the hash of the settings.
    pub fn start(settings: &str) -> Link {
        Link(hash_of(settings.as_bytes()))
    }

    /// The link of the next version.
    pub fn next<'a>(
        self,
        version: u32,
        record: &[u8],
        entries: impl IntoIterator<Item = (u32, &'a EntryMeta, [u8; 32])>,
    ) -> Link {
        let mut chain = Sha256::new();
        chain.update(self.0);
        chain.update(version.to_le_bytes());
        chain.update(hash_of(record));
        for (index, meta, body) in entries {
            let mut entry = Sha256::new();
            entry.update(index.to_le_bytes());
            entry.update([meta.role]);
            entry.update(meta.tokens.to_le_bytes());
            entry.update(meta.timestamp.to_le_bytes());
            entry.update(body);
            chain.update(entry.finalize());
        }
        Link(chain.finalize().into())
    }
}

/// SHA-256 of bytes, such as those of a record, a message or a request.
pub fn hash_of(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Link({self})")
    }
}
