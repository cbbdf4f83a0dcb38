//! Benchmarks of Recto: `cargo xtask bench`. They are in a package of their own, so that the libraries' tests
//! do not build what only a benchmark needs.
//!
//! | benchmark | measures |
//! |---|---|
//! | `engine` | operations and queries beside a plain list, at up to 10⁶ messages |
//! | `counts` | instructions of the commonest requests; fails above a limit |
//! | `store` | durable appends, sizes, opening and reads, beside bare SQLite and PostgreSQL |
//! | `format` | render and lint, beside parsing the same JSON |
//! | `import` | each transcript format, beside parsing the same JSON |
//! | `loop` | Recto's own work for a turn of the model loop |
//! | `cli` | whole commands, from start to end |
//!
//! The library holds only what several of them print with.

/// Lays lines of cells out in columns of equal width. `is_number` names the columns that are aligned to the
/// right. A line of one cell is a heading and does not widen its column.
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
