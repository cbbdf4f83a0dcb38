//! Tables with aligned columns.

use anstyle::Style;

use crate::page::{FAINT, Line, Page};
use crate::printable;

/// A table. The last column is not padded; a narrow terminal cuts it first.
#[derive(Debug)]
pub(crate) struct Table {
    headings: Vec<&'static str>,
    /// Whether each column is aligned to the right.
    right: Vec<bool>,
    rows: Vec<Vec<(Style, String)>>,
}

impl Table {
    /// A table with these columns. A column whose heading starts with `>` is aligned to the right.
    pub(crate) fn new(headings: &[&'static str]) -> Table {
        let right = headings.iter().map(|heading| heading.starts_with('>')).collect();
        let headings = headings.iter().map(|heading| heading.trim_start_matches('>')).collect();
        Table { headings, right, rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = (Style, String)>) {
        // Escaped here, because the width of a column is that of the escaped text.
        let cells = cells.into_iter();
        let cells = cells.map(|(style, text)| (style, printable::escaped(&text).into_owned()));
        self.rows.push(cells.collect());
    }

    pub(crate) fn show(&self, page: &mut Page) {
        let headings: Vec<(Style, String)> =
            self.headings.iter().map(|heading| (FAINT, (*heading).to_owned())).collect();
        let has_headings = self.headings.iter().any(|heading| !heading.is_empty());
        let mut widths: Vec<usize> = (0..self.headings.len())
            .map(|column| {
                let cells = self.rows.iter().filter_map(|row| row.get(column));
                let cells = cells.map(|(_, text)| printable::width(text));
                cells.chain([self.headings[column].len()]).max().unwrap_or(0)
            })
            .collect();
        if page.cuts_lines() {
            self.narrow(&mut widths, page.columns());
        }
        for row in has_headings.then_some(&headings).into_iter().chain(&self.rows) {
            let mut line = Line::new();
            for (column, (style, text)) in row.iter().enumerate() {
                let is_cut = column + 1 < row.len() && printable::width(text) > widths[column];
                let text = match is_cut {
                    true => &*printable::cut(text, widths[column]),
                    false => text,
                };
                let space = " ".repeat(widths[column].saturating_sub(printable::width(text)));
                let is_last = column + 1 == row.len();
                line = match (self.right[column], is_last) {
                    (true, _) => line.text(space).styled(*style, text),
                    (false, true) => line.styled(*style, text),
                    (false, false) => line.styled(*style, text).text(space),
                };
                if !is_last {
                    line = line.text("  ");
                }
            }
            page.line(line);
        }
    }

    /// Narrows the widest text column if the columns after it would not fit. The last column may be cut
    /// at the terminal's edge.
    fn narrow(&self, widths: &mut [usize], columns: usize) {
        let last = widths.len() - 1;
        let kept = if self.right[last] { widths.len() } else { last };
        let used: usize = widths[..kept].iter().map(|width| width + 2).sum();
        let texts = (0..last).filter(|column| !self.right[*column]);
        let widest = texts.max_by_key(|column| widths[*column]);
        if let Some(widest) = widest.filter(|_| used > columns) {
            let narrow = widths[widest].saturating_sub(used - columns).max(MIN_WIDTH);
            widths[widest] = narrow.min(widths[widest]);
        }
    }
}

/// Minimum width of a narrowed column.
const MIN_WIDTH: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_is_cut_if_the_columns_after_it_do_not_fit() {
        let shown = |columns: Option<usize>| {
            let plain = Style::new();
            let mut table = Table::new(&["name", ">count", "text"]);
            table.row([(plain, "a".repeat(30)), (plain, "1,234".into()), (plain, "more".into())]);
            table.row([(plain, "b".into()), (plain, "7".into()), (plain, "".into())]);
            let mut page = Page::new(columns);
            table.show(&mut page);
            page.render(false).lines().map(str::to_owned).collect::<Vec<_>>()
        };
        let whole = format!("{}  1,234  more", "a".repeat(30));
        assert_eq!(shown(None)[1], whole);
        assert_eq!(shown(Some(80))[1], whole);
        let narrow = shown(Some(20));
        assert!(narrow[0].starts_with("name         count"), "{narrow:?}");
        assert!(narrow[1].starts_with("aaaaaaaaaa…  1,234"), "{narrow:?}");
        assert_eq!(narrow[2], "b                7");
        assert!(shown(Some(12))[1].starts_with("aaaaaaa…"));
    }

    #[test]
    fn columns_are_aligned_with_wide_and_escaped_characters() {
        let mut table = Table::new(&["name", ">count", "text"]);
        let plain = Style::new();
        table.row([(plain, "中文".into()), (plain, "7".into()), (plain, "x".into())]);
        table.row([(plain, "a\n".into()), (plain, "1234567".into()), (plain, "".into())]);
        let mut page = Page::new(None);
        table.show(&mut page);
        assert_eq!(page.render(false), "name    count  text\n中文        7  x\na\\n   1234567\n");
    }
}
