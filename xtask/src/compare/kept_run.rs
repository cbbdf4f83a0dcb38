//! The cost of storing a run: `{"messages": …, "done": …, "bytes": …, "seconds": …, …}`.

use anyhow::Context as _;
use serde_json::{Value, json};

/// How the bytes and seconds of a run grow with its length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Growth {
    Linear,
    /// Every step writes all previous messages, or a part of them.
    Quadratic,
}

/// A stored run, or the part that was stored before the time limit.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct KeptRun {
    messages: f64,
    done: f64,
    bytes: f64,
    seconds: f64,
    /// Seconds of one append, and of loading the newest state and the one in the middle.
    append: f64,
    newest: f64,
    middle: Option<f64>,
    growth: Growth,
    /// The line that the program printed.
    reported: Value,
}

impl KeptRun {
    /// Reads the last line that is a JSON object. Programs may print other lines before it.
    pub(super) fn from_output(output: &str, growth: Growth) -> anyhow::Result<Self> {
        let mut lines = output.lines().rev();
        let value: Value = lines
            .find_map(|line| serde_json::from_str(line).ok().filter(Value::is_object))
            .context("printed no line of JSON")?;
        let number = |key: &str| {
            let number = value[key].as_f64();
            number.with_context(|| format!("printed no number {key:?}"))
        };
        let run = Self {
            messages: number("messages")?,
            done: number("done")?,
            bytes: number("bytes")?,
            seconds: number("seconds")?,
            append: number("append")?,
            newest: number("newest")?,
            middle: value["middle"].as_f64(),
            growth,
            reported: value,
        };
        anyhow::ensure!(run.done >= 1.0, "stored no message");
        Ok(run)
    }

    /// The seconds that were measured.
    pub(super) fn took(&self) -> f64 {
        self.seconds
    }

    /// The faster of two runs of the same kind.
    pub(super) fn or_faster(self, other: Option<Self>) -> Self {
        other.filter(|other| other.seconds < self.seconds).unwrap_or(self)
    }

    fn is_estimated(&self) -> bool {
        self.done < self.messages
    }

    /// The factor from the stored part to the whole run.
    fn scale(&self) -> f64 {
        let more = self.messages / self.done;
        match self.growth {
            Growth::Linear => more,
            Growth::Quadratic => more * more,
        }
    }

    fn bytes(&self) -> f64 {
        self.bytes * self.scale()
    }

    fn seconds(&self) -> f64 {
        self.seconds * self.scale()
    }

    pub(super) fn to_json(&self, name: &str, raw: u64) -> Value {
        json!({
            "name": name,
            "bytes": self.bytes(),
            "ratio": self.bytes() / raw as f64,
            "seconds": self.seconds(),
            "estimated": self.is_estimated(),
            "measured": self.reported,
        })
    }

    fn line(&self, name: &str, raw: u64) -> [String; 7] {
        let about = if self.is_estimated() { "~" } else { "" };
        let milliseconds = |seconds: f64| format!("{:.2} ms", seconds * 1e3);
        let stopped = match self.is_estimated() {
            true => format!("{name} (stopped at {})", self.done),
            false => name.to_owned(),
        };
        [
            stopped,
            format!("{about}{:.2} MB", self.bytes() / 1e6),
            format!("{about}{:.2} ×", self.bytes() / raw as f64),
            format!("{about}{:.1} s", self.seconds()),
            milliseconds(self.append),
            milliseconds(self.newest),
            self.middle.map_or_else(|| "no versions".to_owned(), milliseconds),
        ]
    }
}

/// A table with one row per run. The ratio is relative to the bytes of the messages as JSON.
pub(super) fn table(runs: &[(&str, KeptRun)], raw: u64) -> String {
    let heads = ["", "on disk", "of JSON", "the run", "an append", "load newest", "load middle"];
    let mut lines = vec![heads.map(str::to_owned)];
    lines.extend(runs.iter().map(|(name, run)| run.line(name, raw)));
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max();
    let widths: Vec<usize> = (0..heads.len()).filter_map(width).collect();
    let mut text = String::new();
    for line in &lines {
        let cells = line.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
            if column == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    if runs.iter().any(|(_, run)| run.is_estimated()) {
        text.push_str("~ is estimated from the part that was stored before the time limit\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(done: u32, growth: Growth) -> KeptRun {
        let line = json!({
            "messages": 1_000, "done": done, "bytes": 4_000_000, "seconds": 2,
            "append": 0.001, "newest": 0.01, "middle": null,
        });
        KeptRun::from_output(&line.to_string(), growth).expect("the line is complete")
    }

    #[test]
    fn a_stopped_run_is_marked_as_an_estimate() {
        let table = table(&[("slow", kept(500, Growth::Quadratic))], 1_000_000);
        let row = table.lines().nth(1).expect("there is a row");
        assert!(row.starts_with("slow (stopped at 500)"), "{table}");
        assert!(row.contains("~16.00 MB") && row.contains("~16.00 ×"), "{table}");
        assert!(row.contains("~8.0 s") && row.ends_with("no versions"), "{table}");
    }

    #[test]
    fn a_whole_run_is_shown_as_it_was_measured() {
        let table = table(&[("quick", kept(1_000, Growth::Linear))], 8_000_000);
        assert!(table.contains("4.00 MB") && table.contains("0.50 ×"), "{table}");
        assert!(!table.contains('~'), "{table}");
    }

    #[test]
    fn a_missing_number_is_named() {
        let error = KeptRun::from_output("{\"messages\": 1}", Growth::Linear)
            .expect_err("a number is missing");
        assert_eq!(error.to_string(), "printed no number \"done\"");
    }
}
