//! Columns that line up.

use anstyle::Style;

use crate::page::{FAINT, Line, Page};
use crate::printable;

/// A table in the making. The last column is not padded, and is what a narrow terminal cuts.
#[derive(Debug)]
pub(crate) struct Table {
    headings: Vec<&'static str>,
    /// Columns of numbers stand to the right.
    right: Vec<bool>,
    rows: Vec<Vec<(Style, String)>>,
}

impl Table {
    /// A table with these columns; a heading that begins with `>` stands for numbers.
    pub(crate) fn new(headings: &[&'static str]) -> Table {
        let right = headings.iter().map(|heading| heading.starts_with('>')).collect();
        let headings = headings.iter().map(|heading| heading.trim_start_matches('>')).collect();
        Table { headings, right, rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = (Style, String)>) {
        // Escaped here already, so that columns are as wide as what is printed.
        let cells = cells.into_iter();
        let cells = cells.map(|(style, text)| (style, printable::escaped(&text).into_owned()));
        self.rows.push(cells.collect());
    }

    pub(crate) fn show(&self, page: &mut Page) {
        let headings: Vec<(Style, String)> =
            self.headings.iter().map(|heading| (FAINT, (*heading).to_owned())).collect();
        let has_headings = self.headings.iter().any(|heading| !heading.is_empty());
        let widths: Vec<usize> = (0..self.headings.len())
            .map(|column| {
                let cells = self.rows.iter().filter_map(|row| row.get(column));
                let cells = cells.map(|(_, text)| printable::width(text));
                cells.chain([self.headings[column].len()]).max().unwrap_or(0)
            })
            .collect();
        for row in has_headings.then_some(&headings).into_iter().chain(&self.rows) {
            let mut line = Line::new();
            for (column, (style, text)) in row.iter().enumerate() {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_whatever_is_in_them() {
        let mut table = Table::new(&["name", ">count", "text"]);
        let plain = Style::new();
        table.row([(plain, "中文".into()), (plain, "7".into()), (plain, "x".into())]);
        table.row([(plain, "a\n".into()), (plain, "1234567".into()), (plain, "".into())]);
        let mut page = Page::new(None);
        table.show(&mut page);
        assert_eq!(page.render(false), "name    count  text\n中文        7  x\na\\n   1234567\n");
    }
}
