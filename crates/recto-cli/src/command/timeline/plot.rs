//! Draws the timeline as text.

use super::{Event, Point};
use crate::numbers::grouped;

/// A row of the plot.
pub(super) struct Row {
    pub(super) axis: String,
    pub(super) drawing: String,
}

/// Width of the axis in columns.
const AXIS: usize = 11;

/// The versions that one column shows.
struct Column {
    tokens: u64,
    log_tokens: u64,
    event: Event,
    versions: (u32, u32),
}

/// One column per version. If there are more versions than columns, several versions share a column.
fn columns(points: &[Point], width: usize) -> Vec<Column> {
    let available = width.saturating_sub(AXIS + 1).max(10);
    let count = points.len().min(available);
    let column = |number: usize| {
        let (start, end) = (number * points.len() / count, (number + 1) * points.len() / count);
        let points = &points[start..end.max(start + 1)];
        let last = points.last()?;
        Some(Column {
            tokens: last.tokens,
            log_tokens: last.log_tokens,
            event: points.iter().map(|point| point.event).max().unwrap_or(Event::None),
            versions: (points.first()?.version, last.version),
        })
    };
    (0..count).filter_map(column).collect()
}

/// The width of a column: 1 to 4, so that a plot of few versions is not too narrow.
fn column_width(columns: &[Column], width: usize) -> usize {
    (width.saturating_sub(AXIS + 1) / columns.len().max(1)).clamp(1, 4)
}

pub(super) fn rows(points: &[Point], width: usize, height: usize) -> Vec<Row> {
    const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let columns = columns(points, width);
    let wide = column_width(&columns, width);
    let max_tokens = columns.iter().map(|column| column.tokens.max(column.log_tokens)).max();
    let max_tokens = max_tokens.unwrap_or(0).max(1);
    let eighths =
        |tokens: u64| (tokens as u128 * height as u128 * 8).div_ceil(max_tokens.into()) as usize;
    (0..height)
        .rev()
        .map(|row| {
            let tokens = max_tokens * (row as u64 + 1) / height as u64;
            let is_labelled = row + 1 == height || row + 1 == height / 2;
            let label = if is_labelled { grouped(tokens) } else { String::new() };
            let sign = |column: &Column| {
                let filled = eighths(column.tokens).saturating_sub(row * 8).min(8);
                let log = eighths(column.log_tokens).saturating_sub(1) / 8;
                match (filled, log == row && column.log_tokens > column.tokens) {
                    (0, true) => '·',
                    (filled, _) => EIGHTHS[filled],
                }
            };
            let drawing = columns.iter().flat_map(|column| std::iter::repeat_n(sign(column), wide));
            Row { axis: format!("{label:>10}│"), drawing: drawing.collect() }
        })
        .collect()
}

/// The two rows below the plot: events, and the first and last version.
pub(super) fn axis_rows(points: &[Point], width: usize) -> (String, String) {
    let columns = columns(points, width);
    let wide = column_width(&columns, width);
    let sign = |column: &Column| match column.event {
        Event::Batch => 'b',
        Event::Back => 'r',
        Event::Compression => 'c',
        _ => '─',
    };
    let signs = columns.iter().flat_map(|column| {
        let rest = std::iter::repeat_n('─', wide - 1);
        std::iter::once(sign(column)).chain(rest)
    });
    let marks = format!("{}└{}", " ".repeat(AXIS - 1), signs.collect::<String>());
    let (first, last) = match (columns.first(), columns.last()) {
        (Some(first), Some(last)) => (first.versions.0, last.versions.1),
        _ => (0, 0),
    };
    let (first, last) = (format!("v{first}"), format!("v{last}"));
    let drawn = columns.len() * wide;
    let space = " ".repeat(drawn.saturating_sub(first.len() + last.len()).max(1));
    let versions = match first == last {
        true => format!("{}{first}", " ".repeat(AXIS)),
        false => format!("{}{first}{space}{last}", " ".repeat(AXIS)),
    };
    (marks, versions)
}

#[cfg(test)]
mod tests {
    use recto::OperationKind;

    use super::*;

    fn point(version: u32, tokens: u64, log_tokens: u64, event: Event) -> Point {
        let mut point = Point::new(version, OperationKind::Append, tokens, log_tokens);
        point.event = event;
        point
    }

    #[test]
    fn a_plot_fits_its_width_for_any_number_of_versions() {
        for versions in [1, 2, 7, 60, 61, 5_000] {
            let points: Vec<Point> = (0..versions)
                .map(|n| point(n, u64::from(n % 9), u64::from(n), Event::None))
                .collect();
            for width in [20, 80, 200] {
                let rows = rows(&points, width, 8);
                assert_eq!(rows.len(), 8);
                let widest =
                    rows.iter().map(|row| crate::printable::width(&row.drawing) + AXIS).max();
                assert!(widest.unwrap() <= width.max(AXIS + 12), "{versions} {width}");
            }
        }
    }

    #[test]
    fn the_view_is_filled_and_the_log_is_dotted_above_it() {
        let points = [
            point(0, 0, 0, Event::None),
            point(1, 8, 8, Event::None),
            point(2, 2, 16, Event::Compression),
        ];
        let drawn: Vec<String> = rows(&points, 15, 2).into_iter().map(|row| row.drawing).collect();
        assert_eq!(drawn, ["  ·", " █▂"]);
        let (marks, versions) = axis_rows(&points, 15);
        assert_eq!(marks, "          └──c");
        assert_eq!(versions, "           v0 v2");
    }

    #[test]
    fn the_most_important_event_of_a_column_is_shown() {
        let mut points: Vec<Point> = (0..100).map(|n| point(n, 1, 1, Event::None)).collect();
        points[5].event = Event::Compression;
        points[6].event = Event::Batch;
        assert!(axis_rows(&points, 22).0.starts_with("          └c─"));
    }
}
