//! Conversions of columns: unsigned 32-bit numbers are `bigint` in the tables.

use tokio_postgres::Row;

use super::fault::Fault;
use crate::{Head, Link, PageKind};

/// Reads a number.
pub(super) fn number(row: &Row, column: &str) -> Result<u32, Fault> {
    let value: i64 = row.try_get(column)?;
    value
        .try_into()
        .map_err(|_| Fault::Failed(format!("the column {column} is out of range").into()))
}

/// The columns `version`, `entries`, `link` and `committed`.
pub(super) fn head(row: &Row) -> Result<Head, Fault> {
    Ok(Head {
        version: number(row, "version")?,
        entries: number(row, "entries")?,
        link: Link(hash(row, "link")?),
        committed: row.try_get("committed")?,
    })
}

/// Reads a hash of 32 bytes.
pub(super) fn hash(row: &Row, column: &str) -> Result<[u8; 32], Fault> {
    let bytes: &[u8] = row.try_get(column)?;
    bytes.try_into().map_err(|_| Fault::Failed(format!("the column {column} holds no hash").into()))
}

/// Reads a text that is stored as bytes.
pub(super) fn text(row: &Row, column: &str) -> Result<String, Fault> {
    let bytes: Vec<u8> = row.try_get(column)?;
    let text = String::from_utf8(bytes);
    text.map_err(|_| Fault::Failed(format!("the column {column} holds no UTF-8").into()))
}

/// The stored number of a page kind.
pub(super) fn kind(kind: PageKind) -> i16 {
    match kind {
        PageKind::Records => 0,
        PageKind::Entries => 1,
    }
}

/// Converts a limit to `bigint`.
pub(super) fn limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
