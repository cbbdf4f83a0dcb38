//! Parses and prints times.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, Zoned};

/// Prints a time in the user's time zone: `2026-01-31 17:05`.
pub(crate) fn shown(milliseconds: i64) -> String {
    match Timestamp::from_millisecond(milliseconds) {
        Ok(time) => time.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string(),
        Err(_) => format!("{milliseconds} ms"),
    }
}

/// Parses a time: milliseconds since 1970, a date, a date and a time (in the user's time zone unless it
/// has one), or a duration before now (`2h`, `3 days`).
pub(crate) fn read(text: &str) -> Result<i64, String> {
    let text = text.trim();
    if let Ok(number) = text.parse::<i64>() {
        return Ok(number);
    }
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time.as_millisecond());
    }
    if let Ok(time) = text.parse::<Zoned>() {
        return Ok(time.timestamp().as_millisecond());
    }
    if let Ok(local) = text.parse::<DateTime>()
        && let Ok(time) = local.to_zoned(TimeZone::system())
    {
        return Ok(time.timestamp().as_millisecond());
    }
    let ago = text.strip_suffix("ago").unwrap_or(text).trim();
    if let Ok(span) = ago.parse::<Span>()
        && let Ok(time) = Zoned::now().checked_sub(span.abs())
    {
        return Ok(time.timestamp().as_millisecond());
    }
    Err("use a date (2026-01-31), a time (2026-01-31T17:05), a duration before now (2h, 3 days), \
         or milliseconds since 1970"
        .to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_parsed_in_all_forms() {
        assert_eq!(read("1767225600000"), Ok(1_767_225_600_000));
        assert_eq!(read("2026-01-01T00:00:00Z"), Ok(1_767_225_600_000));
        assert_eq!(read("2026-01-01T01:00:00+01:00"), Ok(1_767_225_600_000));
        let local = read("2026-01-01").unwrap();
        assert!((local - 1_767_225_600_000).abs() <= 14 * 3_600_000);
        assert_eq!(read("2026-01-01T00:00"), Ok(local));
        let now = Timestamp::now().as_millisecond();
        for ago in ["2h", "2 hours", "2h ago"] {
            assert!((now - read(ago).unwrap() - 7_200_000).abs() < 60_000, "{ago}");
        }
        assert!((now - read("1 day").unwrap() - 86_400_000).abs() <= 3_700_000);
        for nonsense in ["", "yesterday", "2026-13-01", "12:00"] {
            assert!(read(nonsense).unwrap_err().contains("a duration before now"), "{nonsense:?}");
        }
    }
}
