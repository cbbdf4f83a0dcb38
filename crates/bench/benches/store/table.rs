//! A table of measurements, comparisons and limits, as text and as JSON.

use bench::aligned;
use serde_json::{Value, json};

/// The unit of a measurement.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Unit {
    Seconds,
    Bytes,
    PerSecond,
    Count,
}

/// The limit of a row.
#[derive(Clone, Copy)]
pub(crate) enum Bar {
    /// Maximum ratio of Recto's value to the compared one.
    AtMost(f64),
    /// Minimum ratio of Recto's value to the compared one.
    AtLeast(f64),
    /// Upper bound of Recto's value.
    Under(f64),
    /// Recto's value must equal the compared one.
    Same,
}

/// One measurement.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) unit: Unit,
    pub(crate) recto: f64,
    /// The baseline: its name and its value.
    pub(crate) beside: Option<(&'static str, f64)>,
    /// The median of the ratios of the rounds, if both values were measured in rounds. Otherwise the ratio is
    /// computed from the two values.
    pub(crate) ratio: Option<f64>,
    pub(crate) bar: Option<Bar>,
}

impl Row {
    pub(crate) fn new(name: impl Into<String>, unit: Unit, recto: f64) -> Row {
        Row { name: name.into(), unit, recto, beside: None, ratio: None, bar: None }
    }

    pub(crate) fn beside(mut self, what: &'static str, figure: f64) -> Row {
        self.beside = Some((what, figure));
        self
    }

    pub(crate) fn ratio(mut self, ratio: f64) -> Row {
        self.ratio = Some(ratio);
        self
    }

    pub(crate) fn bar(mut self, bar: Bar) -> Row {
        self.bar = Some(bar);
        self
    }

    fn compared(&self) -> Option<f64> {
        self.ratio.or_else(|| Some(self.recto / self.beside?.1))
    }

    fn is_met(&self) -> Option<bool> {
        let compared = self.compared().unwrap_or(f64::NAN);
        Some(match self.bar? {
            Bar::AtMost(limit) => compared <= limit,
            Bar::AtLeast(limit) => compared >= limit,
            Bar::Under(limit) => self.recto < limit,
            Bar::Same => compared == 1.0,
        })
    }

    fn line(&self) -> Vec<String> {
        let beside = |(what, figure)| format!("{} {what}", self.unit.show(figure));
        let bar = self.bar.map_or_else(String::new, |bar| bar.show(self.unit));
        let verdict = self.is_met().map_or("", |met| if met { "ok" } else { "MISSED" });
        vec![
            self.name.clone(),
            self.unit.show(self.recto),
            self.beside.map_or_else(String::new, beside),
            self.compared().map_or_else(String::new, |ratio| format!("{ratio:.2} ×")),
            bar,
            verdict.to_owned(),
        ]
    }

    fn to_json(&self, part: &str) -> Value {
        json!({
            "part": part,
            "name": self.name.trim(),
            "unit": self.unit.name(),
            "recto": self.recto,
            "beside": self.beside.map(|(what, figure)| json!({"what": what, "figure": figure})),
            "ratio": self.compared(),
            "bar": self.bar.map(|bar| bar.show(self.unit)),
            "met": self.is_met(),
        })
    }
}

/// The parts and their rows.
#[derive(Default)]
pub(crate) struct Table(Vec<(String, Vec<Row>)>);

impl Table {
    /// Starts a part.
    pub(crate) fn part(&mut self, title: impl Into<String>) {
        self.0.push((title.into(), Vec::new()));
    }

    pub(crate) fn row(&mut self, row: Row) {
        self.0.last_mut().expect("a part was started").1.push(row);
    }

    fn rows(&self) -> impl Iterator<Item = &Row> {
        self.0.iter().flat_map(|(_, rows)| rows)
    }

    fn score(&self) -> [usize; 2] {
        [true, false].map(|met| self.rows().filter(|row| row.is_met() == Some(met)).count())
    }

    pub(crate) fn to_text(&self) -> String {
        let mut lines =
            vec![["", "Recto", "compared with", "ratio", "limit", ""].map(str::to_owned).to_vec()];
        for (title, rows) in &self.0 {
            lines.push(vec![title.to_uppercase()]);
            lines.extend(rows.iter().map(Row::line));
        }
        let [met, missed] = self.score();
        format!(
            "{}\n{met} limits met, {missed} missed",
            aligned(&lines, |column| column == 1 || column == 3)
        )
    }

    pub(crate) fn to_json(&self) -> Value {
        let rows = self.0.iter().flat_map(|(part, rows)| rows.iter().map(|row| row.to_json(part)));
        let rows: Vec<Value> = rows.collect();
        let [met, missed] = self.score();
        json!({ "rows": rows, "met": met, "missed": missed })
    }
}

impl Unit {
    fn name(self) -> &'static str {
        match self {
            Unit::Seconds => "seconds",
            Unit::Bytes => "bytes",
            Unit::PerSecond => "per second",
            Unit::Count => "count",
        }
    }

    fn show(self, value: f64) -> String {
        let scales: &[(f64, &str)] = match self {
            Unit::Seconds => &[(1.0, " s"), (1e-3, " ms"), (1e-6, " µs")],
            Unit::Bytes => &[(1e9, " GB"), (1e6, " MB"), (1e3, " KB")],
            Unit::PerSecond => &[(1.0, "/s")],
            Unit::Count => &[(1.0, "")],
        };
        let fitting = scales.iter().find(|(scale, _)| value >= *scale);
        let (scale, unit) = fitting.or(scales.last()).expect("every unit has a scale");
        let number = value / scale;
        let places = if self == Unit::Count || number >= 99.95 {
            0
        } else if number >= 9.995 {
            1
        } else {
            2
        };
        format!("{number:.places$}{unit}")
    }
}

impl Bar {
    fn show(self, unit: Unit) -> String {
        match self {
            Bar::AtMost(limit) => format!("≤ {limit} ×"),
            Bar::AtLeast(limit) => format!("≥ {limit} ×"),
            Bar::Under(limit) => format!("< {}", unit.show(limit)),
            Bar::Same => "all".to_owned(),
        }
    }
}
