//! `recto::blocking` has every async method of `Recto` and `Conversation`.

/// The files with async methods of the two types.
const SOURCES: [&str; 16] = [
    include_str!("../../src/apply.rs"),
    include_str!("../../src/backup.rs"),
    include_str!("../../src/bound_thinking.rs"),
    include_str!("../../src/conversation.rs"),
    include_str!("../../src/erase.rs"),
    include_str!("../../src/examination.rs"),
    include_str!("../../src/fork.rs"),
    include_str!("../../src/import.rs"),
    include_str!("../../src/policy.rs"),
    include_str!("../../src/prune.rs"),
    include_str!("../../src/recto.rs"),
    include_str!("../../src/remove.rs"),
    include_str!("../../src/salvage.rs"),
    include_str!("../../src/search.rs"),
    include_str!("../../src/temporary.rs"),
    include_str!("../../src/verify.rs"),
];

fn names<'a>(source: &'a str, before: &str) -> Vec<&'a str> {
    let lines = source.lines().filter_map(|line| line.trim_start().strip_prefix(before));
    lines.filter_map(|line| line.split(['(', '<']).next()).collect()
}

#[test]
fn every_async_method_has_a_blocking_form() {
    let blocking = include_str!("../../src/blocking.rs");
    let blocking = [names(blocking, "fn "), names(blocking, "pub fn ")].concat();
    let methods: Vec<&str> =
        SOURCES.iter().flat_map(|source| names(source, "pub async fn ")).collect();
    assert!(methods.len() > 50, "only {methods:?}");
    for method in methods {
        assert!(blocking.contains(&method), "recto::blocking has no `{method}`");
    }
}
