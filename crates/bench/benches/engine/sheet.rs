//! Measures the rows of one implementation at one size.

use std::io::{IsTerminal, Write};

use crate::stopwatch::Sampling;
use crate::table::{Table, Way};

pub(crate) struct Sheet<'a> {
    pub(crate) table: &'a mut Table,
    pub(crate) way: Way,
    pub(crate) size: usize,
    pub(crate) sampling: Sampling,
    /// Words that select rows by name. Empty: all rows.
    pub(crate) words: &'a [String],
}

impl Sheet<'_> {
    pub(crate) fn wants(&self, row: &str) -> bool {
        let is_in = |word: &String| row.to_lowercase().contains(&word.to_lowercase());
        self.words.is_empty() || self.words.iter().any(is_in)
    }

    /// Measures a row.
    pub(crate) fn row(&mut self, row: &'static str, measure: impl FnOnce(Sampling) -> f64) {
        self.rows(&[row], measure);
    }

    /// Measures a value that several rows share. Returns it; `None` if none of the rows is selected.
    pub(crate) fn rows(
        &mut self,
        rows: &[&'static str],
        measure: impl FnOnce(Sampling) -> f64,
    ) -> Option<f64> {
        let wanted: Vec<&'static str> =
            rows.iter().copied().filter(|row| self.wants(row)).collect();
        let first = wanted.first()?;
        note(&format!("{} messages: {first}", self.size));
        let value = measure(self.sampling);
        for row in wanted {
            self.table.put(row, self.way, self.size, value);
        }
        Some(value)
    }
}

/// Prints the current step on standard error, if it is a terminal. Each step overwrites the one before it.
pub(crate) fn note(what: &str) {
    let mut out = std::io::stderr();
    if out.is_terminal() {
        let _ = write!(out, "\r\x1b[K{what}");
        let _ = out.flush();
    }
}
