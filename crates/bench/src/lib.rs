//! Benchmarks of Recto: `cargo xtask bench`. They are a separate package, so that the tests of the libraries
//! do not build the dependencies of the benchmarks.
//!
//! | benchmark | measures |
//! |---|---|
//! | `engine` | operations and queries compared with a plain list, at up to 10⁶ messages |
//! | `counts` | instructions of the most frequent requests; the benchmark fails above a limit |
//! | `store` | durable appends, sizes, opening and reads, compared with bare SQLite and PostgreSQL |
//! | `format` | render and lint, compared with parsing the same JSON |
//! | `import` | each transcript format, compared with parsing the same JSON |
//! | `loop` | Recto's own work for a turn of the model loop |
//! | `cli` | whole commands, from start to end |
//!
//! The library contains only the output function that several benchmarks share.

/// Formats lines of cells as a table. Each column is as wide as its widest cell, and is aligned to the right
/// if `is_number` returns true for its index. A line of one cell is a heading and does not widen its column.
pub fn aligned(lines: &[Vec<String>], is_number: impl Fn(usize) -> bool) -> String {
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let rows = lines.iter().filter(|line| line.len() > 1);
        rows.filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for line in lines {
        let cells = line.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
            if is_number(column) { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
        });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}
