//! A checksum beside every row, so that a changed bit is noticed when the row is read.
//!
//! SQLite keeps none of its own: most changed bits in a file give other rows without an error.

use sha2::{Digest, Sha256};

/// A checksum that grows column by column.
pub(super) struct Checksum(Sha256);

impl Checksum {
    /// Of a row at this place: a row that was moved is noticed too.
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
