//! The page that lists the files of each crate, and the map in `ARCHITECTURE.md`: every file that they name
//! exists, and the page names every file that is directly in the folder `src` of a crate, or its folder.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The files below a folder, without those of other projects and of builds.
fn files(folder: &Path, all: &mut Vec<String>) {
    for entry in fs::read_dir(folder).expect("it is a folder") {
        let path = entry.expect("the folder can be read").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("names are Unicode");
        if path.is_file() {
            all.push(path.to_str().expect("names are Unicode").to_owned());
        } else if !["target", "node_modules", "dist"].contains(&name) && !name.starts_with('.') {
            files(&path, all);
        }
    }
}

/// The names of files in a text, with the folders that precede them.
fn named(text: &str) -> Vec<&str> {
    let is_part = |c: char| c.is_alphanumeric() || "_-./".contains(c);
    let words = text.split(|c: char| !is_part(c)).map(|word| word.trim_end_matches('.'));
    let ends = [".rs", ".py", ".mjs", ".ts"];
    words.filter(|word| ends.iter().any(|end| word.ends_with(end))).collect()
}

#[test]
fn every_file_that_the_maps_name_exists() {
    let mut all = Vec::new();
    files(&root(), &mut all);
    for name in ["ARCHITECTURE.md", "docs/files.md"] {
        let text = page(name);
        let named = named(&text);
        assert!(named.len() > 40, "{name}: {named:?}");
        // A list of files to change has NAME in the place of the new name.
        for file in named.into_iter().filter(|file| !file.contains("NAME")) {
            let end = format!("/{file}");
            assert!(all.iter().any(|path| path.ends_with(&end)), "{name} names {file}");
        }
    }
}

#[test]
fn the_page_names_every_source_file() {
    let text = page("docs/files.md");
    let crates = fs::read_dir(root().join("crates")).expect("it is a folder");
    let mut count = 0;
    for folder in crates.map(|entry| entry.expect("the folder can be read").path()) {
        let source = folder.join("src");
        if folder.ends_with("bench") {
            continue; // it has no library
        }
        for entry in fs::read_dir(&source).expect("it is a folder") {
            let path = entry.expect("the folder can be read").path();
            let stem = path.file_stem().and_then(|stem| stem.to_str()).expect("it has a name");
            let is_rust = path.extension().is_some_and(|extension| extension == "rs");
            if !is_rust || ["lib", "main", "tests"].contains(&stem) {
                continue;
            }
            count += 1;
            let is_named = named(&text).iter().any(|file| {
                file.strip_suffix(".rs").is_some_and(|file| file.rsplit('/').next() == Some(stem))
            });
            let is_folder = text.contains(&format!("{stem}/"));
            assert!(is_named || is_folder, "docs/files.md does not name {}", path.display());
        }
    }
    assert!(count > 150, "{count}");
}

/// An item of `ARCHITECTURE.md` that names a macro also names the file that defines the macro.
#[test]
fn a_macro_that_a_list_names_is_defined_in_a_file_of_the_same_item() {
    let mut all = Vec::new();
    files(&root(), &mut all);
    let text = page("ARCHITECTURE.md");
    let mut count = 0;
    for line in text.lines() {
        for name in line.split('`').filter_map(|word| word.strip_suffix('!')) {
            let definition = format!("macro_rules! {name}");
            let is_defined = named(line).into_iter().any(|file| {
                let end = format!("/{file}");
                let mut paths = all.iter().filter(|path| path.ends_with(&end));
                paths.any(|path| fs::read_to_string(path).is_ok_and(|it| it.contains(&definition)))
            });
            assert!(is_defined, "no file of this item defines {name}!: {line}");
            count += 1;
        }
    }
    assert!(count >= 3, "{count}");
}
