//! A one-line progress bar that erases itself on completion.

use std::io::Write;
use std::time::{Duration, Instant};

use recto::Progress;

/// A progress bar on standard error. Nothing is drawn if that is not a terminal, or if the work ends
/// within [`SHOW_AFTER`].
#[derive(Debug)]
pub(crate) struct Bar {
    label: String,
    is_shown: bool,
    is_drawn: bool,
    started: Instant,
    drawn: Option<Instant>,
    columns: usize,
}

/// Delay before the bar appears.
const SHOW_AFTER: Duration = Duration::from_millis(150);
/// Minimum time between two redraws.
const REDRAW_INTERVAL: Duration = Duration::from_millis(50);

impl Bar {
    pub(crate) fn new(label: impl Into<String>, size: Option<(usize, usize)>) -> Bar {
        Bar {
            label: label.into(),
            is_shown: size.is_some(),
            is_drawn: false,
            started: Instant::now(),
            drawn: None,
            columns: size.map_or(80, |(columns, _)| columns),
        }
    }

    /// Changes the label.
    pub(crate) fn label(&mut self, label: impl Into<String>) {
        self.label = label.into();
    }

    /// Draws the progress, unless the last redraw was less than [`REDRAW_INTERVAL`] ago.
    pub(crate) fn update(&mut self, progress: Progress) {
        let is_due = self.drawn.map_or(self.started.elapsed() >= SHOW_AFTER, |drawn| {
            drawn.elapsed() >= REDRAW_INTERVAL
        });
        if self.is_shown && is_due {
            self.drawn = Some(Instant::now());
            self.is_drawn = true;
            let line = draw(&self.label, progress, self.columns);
            // The work continues if the bar cannot be drawn.
            let _ = write!(std::io::stderr(), "\r\u{1b}[2K{line}");
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if self.is_drawn {
            let _ = write!(std::io::stderr(), "\r\u{1b}[2K");
        }
    }
}

fn draw(label: &str, Progress { done, total: all, .. }: Progress, columns: usize) -> String {
    let share = if all == 0 { 1.0 } else { (done as f64 / all as f64).min(1.0) };
    let label = crate::printable::one_line(label, columns.saturating_sub(30).max(10));
    let room = columns.saturating_sub(crate::printable::width(&label) + 9).min(40);
    let filled = (share * room as f64).round() as usize;
    let bar = format!("{}{}", "━".repeat(filled), "─".repeat(room - filled));
    format!("{label} {bar} {:>3} %", (share * 100.0) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_fits_the_terminal_and_escapes_its_label() {
        let half = Progress::new(1, 2);
        assert_eq!(draw("a", half, 20), "a ━━━━━─────  50 %");
        assert_eq!(draw("\u{1b}c", Progress::new(9, 3), 24), r"\u{1b}c ━━━━━━━━ 100 %");
        for columns in [20, 40, 80, 200] {
            assert!(
                crate::printable::width(&draw(&"x".repeat(300), half, columns)) < columns.max(28)
            );
        }
    }
}
