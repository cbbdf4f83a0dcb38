//! The segments of the search index, and the entries that FTS5 cannot remove from them.
//!
//! FTS5 keeps words in segments and, for each entry, its origin in `words_docsize`. Each segment has a range of
//! origins. To remove an entry, FTS5 marks it in the segments whose range contains its origin. With another
//! origin it removes nothing and reports no error, and SQLite's own check does not compare origins and ranges.

use std::ops::RangeInclusive;

use rusqlite::Connection;

use super::fault::Fault;
use crate::Error;

/// The number of entries that are in no segment, according to their origins.
pub(super) fn entries_outside(db: &Connection) -> Result<usize, Fault> {
    // The row of the structure record.
    let select = "SELECT block FROM words_data WHERE id = 10";
    let record: Vec<u8> = db.query_row(select, [], |row| row.get(0))?;
    let ranges = origins(&record).ok_or_else(|| {
        let damage = "the list of segments of the search index cannot be read".to_owned();
        Error::DamagedStore { damage: vec![damage] }
    })?;
    let mut select = db.prepare("SELECT origin FROM words_docsize")?;
    let mut rows = select.query([])?;
    let mut outside = 0;
    while let Some(row) = rows.next()? {
        let origin = row.get_ref(0)?.as_i64().ok().and_then(|origin| u64::try_from(origin).ok());
        let is_inside =
            origin.is_some_and(|origin| ranges.iter().any(|range| range.contains(&origin)));
        outside += usize::from(!is_inside);
    }
    Ok(outside)
}

/// The origins of each segment in a structure record: a cookie of 4 bytes, the mark of a record with origins,
/// the numbers of levels and segments, a counter of writes, and the levels. Numbers have a variable length.
fn origins(record: &[u8]) -> Option<Vec<RangeInclusive<u64>>> {
    const WITH_ORIGINS: &[u8] = &[0xFF, 0, 0, 1];
    let mut rest = record.get(4..)?.strip_prefix(WITH_ORIGINS)?;
    let (levels, _segments, _writes) = (number(&mut rest)?, number(&mut rest)?, number(&mut rest)?);
    let mut origins = Vec::new();
    for _ in 0..levels {
        let (_merged, segments) = (number(&mut rest)?, number(&mut rest)?);
        for _ in 0..segments {
            let (_id, _first, _last) = (number(&mut rest)?, number(&mut rest)?, number(&mut rest)?);
            origins.push(number(&mut rest)?..=number(&mut rest)?);
            let (_pages, _removed, _entries) =
                (number(&mut rest)?, number(&mut rest)?, number(&mut rest)?);
        }
    }
    Some(origins)
}

/// Reads a number of SQLite's variable length: 7 bits per byte, the highest first, and 8 bits in a ninth byte.
fn number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for count in 1..=9 {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        if count == 9 {
            return Some(number << 8 | u64::from(byte));
        }
        number = number << 7 | u64::from(byte & 0x7F);
        if byte < 0x80 {
            break;
        }
    }
    Some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_length_are_read() {
        for (bytes, expected) in [
            (&[0x07][..], 7),
            (&[0x81, 0x00], 128),
            (&[0xFF, 0x7F], 0x3FFF),
            (&[0x81, 0x80, 0x00], 1 << 14),
            (&[0xFF; 9], u64::MAX),
        ] {
            let mut rest = bytes;
            assert_eq!((number(&mut rest), rest), (Some(expected), &[][..]), "{bytes:?}");
        }
        assert_eq!(number(&mut &[0x81][..]), None);
    }

    #[test]
    fn every_prefix_of_a_record_is_refused() {
        // One level with two segments.
        let record = [
            0, 0, 0, 9, 0xFF, 0, 0, 1, 1, 2, 5, 0, 2, 1, 1, 4, 1, 3, 0, 0, 40, 2, 1, 1, 4, 4, 0, 0,
            7,
        ];
        assert_eq!(origins(&record), Some(vec![1..=3, 4..=4]));
        for end in 0..record.len() {
            assert_eq!(origins(&record[..end]), None, "{end} bytes");
        }
    }
}
