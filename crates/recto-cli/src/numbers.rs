//! Parses log entries, versions and ranges, and formats numbers.

use std::ops::Range;
use std::str::FromStr;

use recto::{LogIndex, Position, Version};

use crate::failure::Failure;

/// A range of log entries: `3`, `#3`, or `3-7` for 3 to 7.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EntryRange(pub(crate) Range<u32>);

/// Maximum number of entries in one range.
const MAX_ENTRIES: u32 = 10_000_000;

impl FromStr for EntryRange {
    type Err = String;

    fn from_str(text: &str) -> Result<EntryRange, String> {
        let wrong = || format!("{text:?} is not a log entry; use a number, or 3-7 for 3 to 7");
        let number = |text: &str| text.trim_start_matches('#').parse::<u32>().map_err(|_| wrong());
        let (first, last) = match text.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(text)?, number(text)?),
        };
        if first > last {
            return Err(format!("{text:?} ends before it starts; write the smaller number first"));
        }
        if last - first >= MAX_ENTRIES {
            return Err(format!("{text:?} has more than {MAX_ENTRIES} entries"));
        }
        Ok(EntryRange(first..last.saturating_add(1)))
    }
}

impl EntryRange {
    pub(crate) fn all(lists: &[EntryRange]) -> Vec<LogIndex> {
        lists.iter().flat_map(|entries| entries.0.clone()).map(LogIndex).collect()
    }
}

/// A version: `12` or `v12`, `now` for the newest, `now-2` for two versions before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VersionArgument {
    Number(u32),
    Back(u32),
}

impl FromStr for VersionArgument {
    type Err = String;

    fn from_str(text: &str) -> Result<VersionArgument, String> {
        let wrong = || {
            format!(
                "{text:?} is not a version; use 12, v12, now, or now-2 for two before the newest{}",
                if text.starts_with('#') { "; # precedes log entries" } else { "" }
            )
        };
        let number = |digits: &str| digits.parse::<u32>().map_err(|_| wrong());
        match text.strip_prefix("now") {
            Some("") => Ok(VersionArgument::Back(0)),
            Some(back) => {
                number(back.strip_prefix('-').ok_or_else(wrong)?).map(VersionArgument::Back)
            }
            None => number(text.strip_prefix('v').unwrap_or(text)).map(VersionArgument::Number),
        }
    }
}

impl VersionArgument {
    /// The version, relative to `newest`. The engine checks whether an absolute number exists.
    pub(crate) fn from(self, newest: Version) -> Result<Version, Failure> {
        match self {
            VersionArgument::Number(number) => Ok(Version(number)),
            VersionArgument::Back(back) => {
                let number = newest.0.checked_sub(back);
                let missing = Failure::BeforeStart { back, newest: newest.0 };
                number.map(Version).ok_or(missing)
            }
        }
    }

    pub(crate) fn is_relative(self) -> bool {
        matches!(self, VersionArgument::Back(_))
    }
}

/// A position in the view: `3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PositionArgument(pub(crate) Position);

impl FromStr for PositionArgument {
    type Err = String;

    fn from_str(text: &str) -> Result<PositionArgument, String> {
        if text.starts_with('#') {
            return Err(format!(
                "{text} is a log entry; give its position in the view, the first column of `recto show`"
            ));
        }
        let wrong = |_| format!("{text:?} is not a position; use a number from 0");
        text.parse().map(|position| PositionArgument(Position(position))).map_err(wrong)
    }
}

/// One log entry: `3` or `#3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EntryArgument(pub(crate) LogIndex);

impl FromStr for EntryArgument {
    type Err = String;

    fn from_str(text: &str) -> Result<EntryArgument, String> {
        let number = text.strip_prefix('#').unwrap_or(text).parse();
        number
            .map(|index| EntryArgument(LogIndex(index)))
            .map_err(|_| format!("{text:?} is not a log entry; use 3 or #3"))
    }
}

/// A range of positions: `3..7` is 3 to 6. Either end may be missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PositionRange(pub(crate) Range<usize>);

impl FromStr for PositionRange {
    type Err = String;

    fn from_str(text: &str) -> Result<PositionRange, String> {
        let wrong =
            || format!("{text:?} is not a range; use 3..7 for the positions 3 to 6, or 3.. or ..7");
        let (start, end) = text.split_once("..").ok_or_else(wrong)?;
        let number = |text: &str, missing: usize| match text {
            "" => Ok(missing),
            digits => digits.parse().map_err(|_| wrong()),
        };
        Ok(PositionRange(number(start, 0)?..number(end, usize::MAX)?))
    }
}

/// Formats log indices as ranges: `#0 #6-#10`.
pub(crate) fn runs(indices: impl IntoIterator<Item = LogIndex>) -> String {
    let mut runs: Vec<(LogIndex, LogIndex)> = Vec::new();
    for index in indices {
        match runs.last_mut() {
            Some((_, end)) if end.0 + 1 == index.0 => *end = index,
            _ => runs.push((index, index)),
        }
    }
    let written = runs.iter().map(|(start, end)| match start == end {
        true => format!("#{start}"),
        false => format!("#{start}-#{end}"),
    });
    written.collect::<Vec<_>>().join(" ")
}

/// Groups digits: `1,234,567`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number with a noun: `1 message`, `2 messages`.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    let plural = match noun.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None => format!("{noun}s"),
    };
    format!("{} {}", grouped(count), if count == 1 { noun.to_owned() } else { plural })
}

/// A number of bytes: `12.3 MB`.
pub(crate) fn bytes(count: u64) -> String {
    match count {
        0..1_000 => format!("{count} bytes"),
        1_000..1_000_000 => format!("{:.1} kB", count as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", count as f64 / 1e6),
        _ => format!("{:.1} GB", count as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_numbers_or_runs() {
        assert_eq!("3".parse(), Ok(EntryRange(3..4)));
        assert_eq!("#3-#7".parse(), Ok(EntryRange(3..8)));
        assert_eq!("#4".parse(), Ok(EntryArgument(LogIndex(4))));
        assert_eq!("4".parse(), Ok(PositionArgument(Position(4))));
        let refused = "#4".parse::<PositionArgument>().unwrap_err();
        assert!(refused.starts_with("#4 is a log entry"), "{refused}");
        let refused = "#4".parse::<VersionArgument>().unwrap_err();
        assert!(refused.ends_with("# precedes log entries"), "{refused}");
        for wrong in ["", "-", "3-", "-1", "x", "7-3", "1.5", "0-4294967295"] {
            assert!(wrong.parse::<EntryRange>().is_err(), "{wrong}");
        }
        let all = EntryRange::all(&[EntryRange(0..1), EntryRange(6..9)]);
        assert_eq!(runs(all), "#0 #6-#8");
    }

    #[test]
    fn versions_count_from_the_start_or_back_from_the_newest() {
        let newest = Version(10);
        for (text, version) in [("3", 3), ("v3", 3), ("now", 10), ("now-3", 7), ("now-10", 0)] {
            assert_eq!(
                text.parse::<VersionArgument>().unwrap().from(newest).unwrap(),
                Version(version),
                "{text}"
            );
        }
        assert!(VersionArgument::Back(11).from(newest).is_err());
        for wrong in ["", "v", "-1", "vv3", "now-", "now-x", "now3", "1.0"] {
            assert!(wrong.parse::<VersionArgument>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn either_end_of_a_range_may_be_missing() {
        assert_eq!("3..7".parse(), Ok(PositionRange(3..7)));
        assert_eq!("..7".parse(), Ok(PositionRange(0..7)));
        assert_eq!("3..".parse(), Ok(PositionRange(3..usize::MAX)));
        for wrong in ["", "3", "3-7", "a..b", "3...7"] {
            assert!(wrong.parse::<PositionRange>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn numbers_are_formatted_with_separators_and_units() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(counted(1, "message"), "1 message");
        assert_eq!(counted(2, "entry"), "2 entries");
        assert_eq!([999, 1_000, 2_500_000].map(bytes), ["999 bytes", "1.0 kB", "2.5 MB"]);
    }
}
