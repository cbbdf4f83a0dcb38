//! The rows of the table, with their limits.

use crate::table::Bar::{GrowthUnder, Over, TimesBetter, Under};
use crate::table::Unit::{Bytes, BytesPerSecond, EntriesPerSecond, Seconds};
use crate::table::{Bar, Row, Section, Unit};

const fn row(name: &'static str, unit: Unit, bars: &'static [Bar]) -> Row {
    Row { name, unit, bars }
}

const KEEP: &[Bar] = &[Under(1e-6), GrowthUnder(3.0)];
const ROLLBACK: &[Bar] = &[Under(1e-6), GrowthUnder(3.0), TimesBetter(10_000.0)];
const EDIT: &[Bar] = &[Under(20e-6), GrowthUnder(5.0), TimesBetter(1_000.0)];
const LONGER_EDIT: &[Bar] = &[TimesBetter(1_000.0)];
const QUERY: &[Bar] = &[Under(5e-6)];
const FIT: &[Bar] = &[Under(200e-6)];
const TEXT: &[Bar] = &[Over(1e9)];
const DIFF: &[Bar] = &[GrowthUnder(5.0)];
// A tree of 10³ messages has only 32 leaves, so 100 edits change at most 32 leaves there, and up to 100 in
// larger trees.
const LONG_DIFF: &[Bar] = &[GrowthUnder(30.0)];

pub(crate) const SECTIONS: &[Section] = &[
    Section {
        title: "Versions",
        rows: &[
            row("keep a version", Seconds, KEEP),
            row("ROLLBACK to a batch", Seconds, ROLLBACK),
            row("ROLLBACK to a recent version", Seconds, ROLLBACK),
            row("ROLLBACK to a version", Seconds, ROLLBACK),
            // A rollback alone does not read the memory of its target version; reading the figures does.
            row("  and its figures read", Seconds, &[]),
            row("UNDO", Seconds, KEEP),
            row("REDO", Seconds, KEEP),
            row("read at a version", Seconds, &[]),
            row("diff, 1 edit", Seconds, DIFF),
            row("diff, 100 edits", Seconds, LONG_DIFF),
        ],
    },
    Section {
        title: "Edits",
        rows: &[
            row("INSERT", Seconds, EDIT),
            row("REPLACE", Seconds, EDIT),
            row("DELETE", Seconds, EDIT),
            row("RESTORE", Seconds, EDIT),
            row("reading the list of an ARRANGE", Seconds, &[]),
            row("ARRANGE one entry, beyond that", Seconds, &[Bar::Under(20e-6)]),
            row("TRUNCATE to the last half", Seconds, EDIT),
            row("CLEAR", Seconds, &[]),
            row("BATCH_START from the middle", Seconds, EDIT),
            row("COMPRESS 10 entries", Seconds, LONGER_EDIT),
            row("MARK", Seconds, &[]),
            row("INSERT, outcome read", Seconds, LONGER_EDIT),
            row("DELETE after 200 edits", Seconds, LONGER_EDIT),
            // Warnings take most of the time: they list every tool exchange that the edits have torn.
            row("INSERT after 200 edits, outcome read", Seconds, &[]),
            row("APPEND, not counted", Seconds, &[Under(1e-6)]),
            row("APPEND, approx", Seconds, &[]),
        ],
    },
    Section {
        title: "Queries",
        rows: &[
            row("n-th of a role", Seconds, QUERY),
            row("newest 10 of a role", Seconds, QUERY),
            row("newest 10 of two roles", Seconds, QUERY),
            row("count of a role", Seconds, QUERY),
            row("token sum of a range", Seconds, QUERY),
            row("position of an index", Seconds, QUERY),
            row("position of an index after 200 edits", Seconds, QUERY),
        ],
    },
    Section {
        title: "FIT and FILTER",
        rows: &[
            row("FIT into 1/2", Seconds, FIT),
            row("FIT into 1 %", Seconds, FIT),
            row("FIT into 1/2 after 200 edits", Seconds, FIT),
            row("FILTER by role", EntriesPerSecond, &[Over(20e6)]),
            row("FILTER by 1 word", BytesPerSecond, TEXT),
            row("FILTER by 10 words", BytesPerSecond, TEXT),
            row("FILTER by 100 words", BytesPerSecond, &[Over(200e6)]),
            row("FILTER by 1,000 words", BytesPerSecond, &[Over(50e6)]),
        ],
    },
    Section {
        title: "Memory",
        rows: &[
            row("a version after an edit", Bytes, &[Under(4096.0), TimesBetter(1_000.0)]),
            row("a version after an APPEND", Bytes, &[Under(300.0)]),
            row("  with its log entry", Bytes, &[]),
            row("  with its log entry and message", Bytes, &[]),
            row("a version after an APPEND, after 200 edits", Bytes, &[Under(300.0)]),
            row("a message in addition to its JSON", Bytes, &[Under(150.0)]),
            row("a message in addition to its JSON, after an edit", Bytes, &[Under(150.0)]),
        ],
    },
];
