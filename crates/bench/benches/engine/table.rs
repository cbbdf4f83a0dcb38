//! A table of measurements and limits, as text and as JSON.

use std::collections::BTreeMap;

use bench::aligned;
use serde_json::{Value, json};

/// The unit of a row.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Unit {
    Seconds,
    EntriesPerSecond,
    BytesPerSecond,
    Bytes,
}

/// The limit of a row.
#[derive(Clone, Copy)]
pub(crate) enum Bar {
    /// Upper bound of the value at the largest size.
    Under(f64),
    /// Lower bound of the value at the largest size.
    Over(f64),
    /// Upper bound of the growth: the value at the largest size divided by the value at the smallest.
    GrowthUnder(f64),
    /// Minimum ratio to the plain list at 10⁵ messages.
    TimesBetter(f64),
}

/// One measurement.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) unit: Unit,
    pub(crate) bars: &'static [Bar],
}

/// A heading and its rows.
pub(crate) struct Section {
    pub(crate) title: &'static str,
    pub(crate) rows: &'static [Row],
}

/// The implementation that is measured: Recto, or the plain list.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Way {
    Recto,
    Plain,
}

/// The size at which ratios are computed.
const RATIO_AT: usize = 100_000;

/// The values, by row, implementation and size.
pub(crate) struct Table {
    sections: &'static [Section],
    sizes: Vec<usize>,
    cells: BTreeMap<(&'static str, Way, usize), f64>,
}

impl Table {
    pub(crate) fn new(sections: &'static [Section], sizes: Vec<usize>) -> Table {
        Table { sections, sizes, cells: BTreeMap::new() }
    }

    pub(crate) fn put(&mut self, name: &'static str, way: Way, size: usize, value: f64) {
        let is_row = self.rows().any(|row| row.name == name);
        assert!(is_row, "{name:?} is not in the table");
        self.cells.insert((name, way, size), value);
    }

    fn rows(&self) -> impl Iterator<Item = &'static Row> + use<> {
        self.sections.iter().flat_map(|section| section.rows)
    }

    fn get(&self, row: &Row, way: Way, size: usize) -> Option<f64> {
        self.cells.get(&(row.name, way, size)).copied()
    }

    fn is_measured(&self, row: &Row) -> bool {
        self.sizes.iter().any(|&size| self.get(row, Way::Recto, size).is_some())
    }

    fn at_largest(&self, row: &Row) -> Option<f64> {
        self.get(row, Way::Recto, *self.sizes.last()?)
    }

    fn growth(&self, row: &Row) -> Option<f64> {
        let is_cost = matches!(row.unit, Unit::Seconds | Unit::Bytes);
        let first = self.get(row, Way::Recto, *self.sizes.first()?)?;
        is_cost.then_some(self.at_largest(row)? / first)
    }

    fn ratio(&self, row: &Row) -> Option<f64> {
        let recto = self.get(row, Way::Recto, RATIO_AT)?;
        let plain = self.get(row, Way::Plain, RATIO_AT)?;
        Some(if row.unit.less_is_better() { plain / recto } else { recto / plain })
    }

    /// Whether the row meets the limit. `None` if the value was not measured.
    fn meets(&self, row: &Row, bar: Bar) -> Option<bool> {
        Some(match bar {
            Bar::Under(limit) => self.at_largest(row)? < limit,
            Bar::Over(limit) => self.at_largest(row)? > limit,
            Bar::GrowthUnder(limit) => self.growth(row)? < limit,
            Bar::TimesBetter(limit) => self.ratio(row)? >= limit,
        })
    }

    /// The limits that the row does not meet, or whose value was not measured.
    fn missed(&self, row: &Row) -> Vec<Bar> {
        row.bars.iter().copied().filter(|&bar| self.meets(row, bar) != Some(true)).collect()
    }

    fn verdict(&self, row: &Row) -> String {
        let missed = self.missed(row);
        if row.bars.is_empty() {
            String::new()
        } else if missed.is_empty() {
            "ok".to_owned()
        } else {
            format!("MISSED {}", listed(&missed, row.unit))
        }
    }

    pub(crate) fn to_text(&self) -> String {
        let mut header = vec![String::new()];
        header.extend(self.sizes.iter().map(|&size| power(size)));
        header.extend(self.sizes.iter().map(|&size| format!("plain {}", power(size))));
        header.extend(["ratio 10⁵", "growth", "target", ""].map(str::to_owned));
        let mut lines = vec![header];
        for section in self.sections {
            let measured = section.rows.iter().filter(|row| self.is_measured(row));
            let rows: Vec<_> = measured.map(|row| self.line(row)).collect();
            if !rows.is_empty() {
                lines.push(vec![section.title.to_uppercase()]);
                lines.extend(rows);
            }
        }
        let columns = lines[0].len();
        let is_number = |column| column > 0 && column + 2 < columns;
        let (met, missed) = self.score();
        format!("{}\n{met} ok, {missed} missed", aligned(&lines, is_number))
    }

    fn line(&self, row: &Row) -> Vec<String> {
        let shown = |value: Option<f64>, show: &dyn Fn(f64) -> String| {
            value.map_or_else(|| "–".to_owned(), show)
        };
        let mut line = vec![row.name.to_owned()];
        for way in [Way::Recto, Way::Plain] {
            line.extend(
                self.sizes.iter().map(|&n| shown(self.get(row, way, n), &|v| row.unit.show(v))),
            );
        }
        line.push(shown(self.ratio(row), &|ratio| format!("{} ×", rounded(ratio))));
        line.push(shown(self.growth(row), &rounded));
        line.push(listed(row.bars, row.unit));
        line.push(self.verdict(row));
        line
    }

    fn score(&self) -> (usize, usize) {
        let judged = self.rows().filter(|row| !row.bars.is_empty() && self.is_measured(row));
        let (missed, met): (Vec<_>, Vec<_>) = judged.partition(|row| !self.missed(row).is_empty());
        (met.len(), missed.len())
    }

    pub(crate) fn to_json(&self) -> Value {
        let values = |row: &Row, way| {
            let cells = self.sizes.iter().filter_map(|&n| Some((n, self.get(row, way, n)?)));
            Value::Object(cells.map(|(n, value)| (n.to_string(), json!(value))).collect())
        };
        let row_json = |section: &Section, row: &Row| {
            json!({
                "section": section.title,
                "name": row.name,
                "unit": row.unit.name(),
                "recto": values(row, Way::Recto),
                "plain": values(row, Way::Plain),
                "ratio": self.ratio(row),
                "growth": self.growth(row),
                "target": listed(row.bars, row.unit),
                "missed": self.missed(row).iter().map(|bar| bar.show(row.unit)).collect::<Vec<_>>(),
            })
        };
        let rows: Vec<Value> = self
            .sections
            .iter()
            .flat_map(|section| section.rows.iter().map(move |row| (section, row)))
            .filter(|(_, row)| self.is_measured(row))
            .map(|(section, row)| row_json(section, row))
            .collect();
        let (met, missed) = self.score();
        json!({ "sizes": self.sizes, "rows": rows, "ok": met, "missed": missed })
    }
}

impl Unit {
    fn less_is_better(self) -> bool {
        matches!(self, Unit::Seconds | Unit::Bytes)
    }

    fn name(self) -> &'static str {
        match self {
            Unit::Seconds => "seconds",
            Unit::EntriesPerSecond => "entries per second",
            Unit::BytesPerSecond => "bytes of text per second",
            Unit::Bytes => "bytes",
        }
    }

    fn show(self, value: f64) -> String {
        let scales: &[(f64, &str)] = match self {
            Unit::Seconds => &[(1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")],
            Unit::EntriesPerSecond => &[(1e9, "G/s"), (1e6, "M/s"), (1e3, "k/s")],
            Unit::BytesPerSecond => &[(1e9, "GB/s"), (1e6, "MB/s")],
            Unit::Bytes if value < 1e4 => &[(1.0, "B")],
            Unit::Bytes => &[(1e9, "GB"), (1e6, "MB"), (1e3, "KB")],
        };
        let fitting = scales.iter().find(|(scale, _)| value >= *scale * 0.9995);
        let (scale, unit) = fitting.or(scales.last()).expect("every unit has a scale");
        format!("{} {unit}", rounded(value / scale))
    }
}

impl Bar {
    fn show(self, unit: Unit) -> String {
        match self {
            Bar::Under(limit) => format!("< {}", unit.show(limit)),
            Bar::Over(limit) => format!("> {}", unit.show(limit)),
            Bar::GrowthUnder(limit) => format!("growth < {limit}"),
            Bar::TimesBetter(limit) => format!("≥ {} ×", rounded(limit)),
        }
    }
}

fn listed(bars: &[Bar], unit: Unit) -> String {
    bars.iter().map(|bar| bar.show(unit)).collect::<Vec<_>>().join(", ")
}

fn power(size: usize) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    match size.ilog10() {
        exponent if 10_usize.pow(exponent) == size => format!("10{}", DIGITS[exponent as usize]),
        _ => size.to_string(),
    }
}

/// A number with two decimals below 10, with one below 100, and with none above. Commas separate the
/// thousands.
fn rounded(value: f64) -> String {
    if value < 99.95 {
        let places = if value < 9.995 { 2 } else { 1 };
        return format!("{value:.places$}");
    }
    let digits = format!("{value:.0}");
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}
