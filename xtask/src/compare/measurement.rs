//! The result of one side of a comparison: `{"seconds": …, "tokens": …, "bytes": …}`.

use std::fmt::Write as _;

use anyhow::Context as _;
use serde_json::{Value, json};

/// One run of one side.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Measurement {
    seconds: f64,
    tokens: u64,
    bytes: u64,
    /// The whole JSON of the program, for `--json`. It may have more fields than the table.
    reported: Value,
}

impl Measurement {
    /// Reads the last line that is a JSON object. Programs may print other lines before it.
    pub(crate) fn from_output(output: &str) -> anyhow::Result<Self> {
        let mut lines = output.lines().rev();
        let value: Value = lines
            .find_map(|line| serde_json::from_str(line).ok().filter(Value::is_object))
            .context("printed no line of JSON")?;
        let number = |key: &str| format!("printed no number {key:?}");
        let measurement = Self {
            seconds: value["seconds"].as_f64().with_context(|| number("seconds"))?,
            tokens: value["tokens"].as_u64().with_context(|| number("tokens"))?,
            bytes: value["bytes"].as_u64().with_context(|| number("bytes"))?,
            reported: value,
        };
        anyhow::ensure!(measurement.seconds > 0.0, "reported a time of 0 seconds");
        Ok(measurement)
    }

    pub(crate) fn to_json(&self) -> Value {
        let mut value = self.reported.clone();
        value["megabytesPerSecond"] = json!(self.speed());
        value
    }

    /// Megabytes per second.
    pub(crate) fn speed(&self) -> f64 {
        self.bytes as f64 / 1e6 / self.seconds
    }

    /// The faster of two runs of the same side.
    pub(crate) fn or_faster(self, other: Option<Self>) -> Self {
        other.filter(|other| other.seconds < self.seconds).unwrap_or(self)
    }

    /// Whether both read the same bytes and counted the same tokens.
    pub(crate) fn agrees_with(&self, other: &Self) -> bool {
        self.tokens == other.tokens && self.bytes == other.bytes
    }
}

/// A table with one row per side. The ratio is relative to the speed of the first row.
pub(crate) fn table(rows: &[(&str, &Measurement)]) -> String {
    let mut table = format!(
        "{:<20} {:>10} {:>10} {:>12} {:>12} {:>8}",
        "", "seconds", "MB/s", "bytes", "tokens", "ratio"
    );
    let first = rows.first().map_or(1.0, |(_, measurement)| measurement.speed());
    for (name, m) in rows {
        let (speed, ratio) = (m.speed(), m.speed() / first);
        // Writing to a String cannot fail.
        let _ = write!(
            table,
            "\n{name:<20} {:>10.3} {speed:>10.1} {:>12} {:>12} {ratio:>7.2}x",
            m.seconds, m.bytes, m.tokens
        );
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(seconds: f64) -> Measurement {
        let line = format!("{{\"seconds\": {seconds}, \"tokens\": 1000, \"bytes\": 4000000}}");
        Measurement::from_output(&line).expect("the line is complete")
    }

    #[test]
    fn the_last_line_of_json_is_the_result() {
        let output = "loading\n{\"seconds\": 9, \"tokens\": 9, \"bytes\": 9}\n\
                      {\"seconds\": 0.5, \"tokens\": 1000, \"bytes\": 4000000}\n1\n";
        assert_eq!(Measurement::from_output(output).expect("a result is there"), measured(0.5));
    }

    #[test]
    fn a_missing_number_is_named() {
        let error = Measurement::from_output("{\"seconds\": 1}").expect_err("tokens are missing");
        assert_eq!(error.to_string(), "printed no number \"tokens\"");
    }

    #[test]
    fn the_table_shows_how_many_times_faster() {
        let table = table(&[("python", &measured(2.0)), ("recto", &measured(0.5))]);
        let rows: Vec<&str> = table.lines().collect();
        assert!(rows[1].starts_with("python") && rows[1].ends_with("1.00x"), "{table}");
        assert!(rows[2].starts_with("recto") && rows[2].ends_with("4.00x"), "{table}");
    }

    #[test]
    fn the_fastest_run_is_used() {
        assert_eq!(measured(2.0).or_faster(Some(measured(0.5))), measured(0.5));
        assert_eq!(measured(0.5).or_faster(Some(measured(2.0))), measured(0.5));
        assert_eq!(measured(2.0).or_faster(None), measured(2.0));
    }

    #[test]
    fn json_keeps_what_only_one_side_reports() {
        let line = "{\"seconds\": 0.5, \"tokens\": 1, \"bytes\": 1000000, \"version\": \"0.14\"}";
        let value = Measurement::from_output(line).expect("the line is complete").to_json();
        assert_eq!(value["version"], "0.14");
        assert_eq!(value["megabytesPerSecond"], 2.0);
    }
}
