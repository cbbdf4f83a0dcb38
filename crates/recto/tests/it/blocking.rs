//! `recto::blocking` has every async method of `Recto` and `Conversation`.

use std::path::{Path, PathBuf};

use recto::blocking::Recto;
use recto::{Approx, Message, Settings};

/// The source files of a folder and of the folders in it.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        match path.is_dir() {
            true => found.append(&mut sources(&path)),
            false => found.push(path),
        }
    }
    found
}

/// The name of a function, if a line starts with `before` and the name.
fn name<'a>(line: &'a str, before: &str) -> Option<&'a str> {
    line.trim_start().strip_prefix(before)?.split(['(', '<']).next()
}

/// The public async methods of the two types in a source file.
fn async_methods(source: &str) -> Vec<&str> {
    let mut is_of_the_two_types = false;
    let mut found = Vec::new();
    for line in source.lines() {
        if line.starts_with("impl") {
            is_of_the_two_types = ["impl Recto {", "impl Conversation {"].contains(&line);
        }
        found.extend(name(line, "pub async fn ").filter(|_| is_of_the_two_types));
    }
    found
}

#[test]
fn every_async_method_has_a_blocking_form() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let blocking = std::fs::read_to_string(folder.join("blocking.rs")).unwrap();
    let blocking: Vec<&str> = blocking
        .lines()
        .filter_map(|line| name(line, "fn ").or_else(|| name(line, "pub fn ")))
        .collect();
    let mut count = 0;
    for file in sources(&folder) {
        let source = std::fs::read_to_string(&file).unwrap();
        for method in async_methods(&source) {
            let file = file.display();
            assert!(blocking.contains(&method), "recto::blocking has no `{method}` of {file}");
            count += 1;
        }
    }
    assert!(count > 70, "only {count} methods were found");
}

#[test]
fn a_conversation_is_salvaged_into_another_store() {
    let source = Recto::open("memory:").unwrap();
    let conversation = source.create("a", Settings::counting_with(Approx)).unwrap();
    conversation.append([Message::user("one"), Message::user("two")]).unwrap();
    let target = Recto::open("memory:").unwrap();
    let report = source.salvage_into("a", &target, "b").unwrap();
    assert_eq!((report.messages, &*report.missing_messages), (2, &[][..]));
    let texts: Vec<String> = target
        .conversation("b")
        .unwrap()
        .messages()
        .unwrap()
        .iter()
        .map(|entry| entry.message.text().into_owned())
        .collect();
    assert_eq!(texts, ["one", "two"]);
}
