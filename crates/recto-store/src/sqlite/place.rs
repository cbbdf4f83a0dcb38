//! Keys of rows: one integer, ordered by conversation, then by number within it.

use std::ops::RangeInclusive;

use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, Value};

use crate::PageKind;

/// The number of a conversation in this file. If the conversation with the largest number is deleted, the
/// next new one gets this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Number(pub(super) i64);

impl Number {
    /// Largest number that fits a place.
    pub(super) const MAX: i64 = (1 << 30) - 1;

    /// The place of a commit with this version, or of a log entry.
    pub(super) fn place(self, number: u32) -> i64 {
        self.0 << 32 | i64::from(number)
    }

    pub(super) fn places(self) -> RangeInclusive<i64> {
        self.place(0)..=self.place(u32::MAX)
    }

    /// The conversation and the number of a place.
    pub(super) fn split(place: i64) -> (Number, u32) {
        (Number(place >> 32), place as u32)
    }

    /// The place of a page with this first number.
    pub(super) fn page(self, kind: PageKind, first: u32) -> i64 {
        let kind = match kind {
            PageKind::Records => 0,
            PageKind::Entries => 1,
        };
        self.0 << 33 | kind << 32 | i64::from(first)
    }

    pub(super) fn all_pages(self) -> RangeInclusive<i64> {
        self.page(PageKind::Records, 0)..=self.page(PageKind::Entries, u32::MAX)
    }
}

impl ToSql for Number {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Owned(Value::Integer(self.0)))
    }
}
