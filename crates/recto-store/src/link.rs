//! The chain that ties every version to all before it.
//!
//! ```text
//!   link(−1) = H( settings )
//!   link(v)  = H( link(v − 1) · v · H(record of v) · H(entry) … )     entries that v adds
//!   H(entry) = H( index · role · tokens · timestamp · H(body) )
//! ```
//!
//! H is SHA-256. So whoever remembers one link can tell whether anything at or before that version
//! was changed, dropped, swapped or put in between. The hash of a body outlives the body: erasing a
//! message does not break the chain.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::EntryMeta;

/// What the chain of a conversation has come to at a version.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Link(pub [u8; 32]);

impl Link {
    /// What stands before version 0: how the conversation is set up.
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

/// SHA-256: of a record, of a body (whose hash outlives it), of a request.
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
