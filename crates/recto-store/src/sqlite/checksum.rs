//! Checksums of rows. They detect changed bits when a row is read.
//!
//! SQLite has no checksums: with most changed bits it returns wrong rows without an error.

use sha2::{Digest, Sha256};

/// A checksum, computed column by column.
pub(super) struct Checksum(Sha256);

impl Checksum {
    /// Starts the checksum of a row with its place (of a conversation or a key: with the number of the
    /// conversation). So a row that was moved to another place is detected too.
    pub(super) fn at(place: i64) -> Checksum {
        Checksum(Sha256::new()).number(place)
    }

    pub(super) fn number(mut self, number: i64) -> Checksum {
        self.0.update(number.to_le_bytes());
        self
    }

    pub(super) fn bytes(self, bytes: &[u8]) -> Checksum {
        let mut sum = self.number(bytes.len() as i64);
        sum.0.update(bytes);
        sum
    }

    pub(super) fn get(self) -> i64 {
        let hash: [u8; 32] = self.0.finalize().into();
        i64::from_le_bytes(*hash.first_chunk().expect("a hash has 32 bytes"))
    }
}
