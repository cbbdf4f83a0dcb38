//! Groups remarks and repairs: equal texts about several lines are printed as one line.

use recto_service::ShownRemark;

use crate::page::{Line, NOTE};

/// Maximum number of ranges that a group lists.
const MAX_RANGES: usize = 5;

/// Groups items with equal keys, in the order of the first item of each group.
pub(crate) fn groups<'a, K: PartialEq, T>(
    items: &'a [T],
    key: impl Fn(&'a T) -> K,
) -> Vec<(K, Vec<&'a T>)> {
    let mut groups: Vec<(K, Vec<&T>)> = Vec::new();
    for item in items {
        let key = key(item);
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, group)) => group.push(item),
            None => groups.push((key, vec![item])),
        }
    }
    groups
}

/// Formats numbers as ranges: `3-9, 12`. If there are more than five ranges, `…` stands for the others.
pub(crate) fn ranges(numbers: impl IntoIterator<Item = u64>, prefix: &str) -> String {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, end)) if *end == number || *end + 1 == number => *end = number,
            _ => ranges.push((number, number)),
        }
    }
    let written = ranges.iter().take(MAX_RANGES).map(|(start, end)| match start == end {
        true => format!("{prefix}{start}"),
        false => format!("{prefix}{start}-{prefix}{end}"),
    });
    let more = if ranges.len() > MAX_RANGES { ", …" } else { "" };
    format!("{}{more}", written.collect::<Vec<_>>().join(", "))
}

/// The number of repetitions: ` (×30)`; empty for 1.
pub(crate) fn times(count: usize) -> String {
    if count == 1 { String::new() } else { format!(" (×{count})") }
}

/// One line per group of equal remarks. `noun` is the unit of `ShownRemark::line`: `line` or `message`.
pub(crate) fn remark_lines(remarks: &[ShownRemark], noun: &str) -> Vec<Line> {
    let groups = groups(remarks, |remark| (&*remark.field, &*remark.message, remark.line == 0));
    let line = |((field, message, is_about_the_whole_file), group): (
        (&str, &str, bool),
        Vec<&ShownRemark>,
    )| {
        let numbers = ranges(group.iter().map(|remark| remark.line), "");
        let plural = if group.len() == 1 { "" } else { "s" };
        let place = match (is_about_the_whole_file, field) {
            (true, field) => field.to_owned(),
            (false, "") => format!("{noun}{plural} {numbers}"),
            (false, field) => format!("{noun}{plural} {numbers}, {field}"),
        };
        Line::wrapping().styled(NOTE, place).text(": ").text(message).text(times(group.len()))
    };
    groups.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remark(line: u64, field: &str, message: &str) -> ShownRemark {
        ShownRemark::new(line, field, message)
    }

    #[test]
    fn equal_remarks_are_one_line() {
        let remarks = [
            remark(3, "", "kept, but no message"),
            remark(4, "model", "lost"),
            remark(4, "", "kept, but no message"),
            remark(9, "", "kept, but no message"),
            remark(0, "tools", "lost"),
        ];
        let lines = remark_lines(&remarks, "line");
        let lines: Vec<String> = lines.iter().map(|line| line.render(None, false)).collect();
        assert_eq!(
            lines,
            ["lines 3-4, 9: kept, but no message (×3)", "line 4, model: lost", "tools: lost",]
        );
        assert_eq!(ranges([1, 3, 5, 7, 9, 11], "#"), "#1, #3, #5, #7, #9, …");
    }
}
