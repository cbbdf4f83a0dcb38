//! Times in the form of session files: RFC 3339 in UTC.

use recto_core::Timestamp;

/// Parses a time such as `2026-05-01T10:00:00.250Z`. Returns milliseconds since 1970.
pub(crate) fn parse_time(text: &str) -> Option<Timestamp> {
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<i64>().ok();
    let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    let bytes = text.as_bytes();
    if !marks.iter().all(|&(at, mark)| bytes.get(at) == Some(&mark)) {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let is_date = (1..=12).contains(&month) && (1..=31).contains(&day);
    if !is_date || hour > 23 || minute > 59 || second > 60 || !text.ends_with('Z') {
        return None;
    }
    let digits = text.get(19..)?.trim_end_matches('Z').strip_prefix('.').unwrap_or("");
    let mut millis = 0;
    for place in 0..3 {
        let digit =
            digits.as_bytes().get(place).map_or(0, |byte| i64::from(byte.wrapping_sub(b'0')));
        millis = millis * 10 + digit.min(9);
    }
    // Days since 1970. Years start on 1 March, so that a leap day is the last day of its year.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1_000 + millis)
}

/// Formats a time; see [`parse_time`].
pub(crate) fn format_time(timestamp: Timestamp) -> String {
    // The form has four digits for the year.
    let timestamp = timestamp.clamp(-62_135_596_800_000, 253_402_300_799_999);
    let (days, millis) = (timestamp.div_euclid(86_400_000), timestamp.rem_euclid(86_400_000));
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = era * 400 + year + i64::from(month <= 2);
    let (hour, minute) = (millis / 3_600_000, millis / 60_000 % 60);
    let (second, millis) = (millis / 1_000 % 60, millis % 1_000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_round_trip() {
        for time in
            ["1970-01-01T00:00:00.000Z", "2000-02-29T12:30:45.678Z", "1969-12-31T23:59:59.999Z"]
        {
            assert_eq!(format_time(parse_time(time).unwrap()), time);
        }
        assert_eq!(format_time(i64::MAX), "9999-12-31T23:59:59.999Z");
        assert_eq!(format_time(i64::MIN), "0001-01-01T00:00:00.000Z");
    }

    #[test]
    fn times_are_parsed() {
        assert_eq!(parse_time("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(parse_time("2000-02-29T12:30:45.678Z"), Some(951_827_445_678));
        assert_eq!(parse_time("2026-05-01T10:00:00.250Z"), Some(1_777_629_600_250));
        assert_eq!(parse_time("2026-05-01T10:00:00.2501234Z"), Some(1_777_629_600_250));
        for text in ["", "today", "2026-05-01", "2026-13-01T10:00:00Z", "2026-05-01T10:00:00+02:00"]
        {
            assert_eq!(parse_time(text), None, "{text}");
        }
    }
}
