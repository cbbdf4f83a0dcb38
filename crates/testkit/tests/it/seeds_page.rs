//! `docs/seeds.md` names a proof for every requirement of the founding documents. These tests check
//! that the page is complete and that everything it names exists.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use testkit::conformance::all_cases;

/// The number of requirements of each seed.
const REQUIREMENTS: [(&str, usize); 5] =
    [("000", 52), ("001", 22), ("002", 39), ("003", 37), ("004", 42)];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The cells of every requirement: number, requirement, in Recto, proof.
fn rows(page: &str) -> Vec<Vec<&str>> {
    let is_row =
        |line: &&str| REQUIREMENTS.iter().any(|(seed, _)| line.starts_with(&format!("| {seed}-")));
    page.lines()
        .filter(is_row)
        .map(|line| line.trim_matches(['|', ' ']).split(" | ").collect())
        .collect()
}

/// All words of the Rust sources below a folder.
fn words_below(folder: &Path, words: &mut BTreeSet<String>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries {
        let path = entry.expect("the folder can be read").path();
        if path.is_dir() {
            words_below(&path, words);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("a source is text");
            let parts = text.split(|c: char| !c.is_alphanumeric() && c != '_');
            words.extend(parts.map(str::to_owned));
        }
    }
}

#[test]
fn every_requirement_has_one_row_in_order() {
    let page = read("docs/seeds.md");
    let numbers: Vec<String> = rows(&page).iter().map(|row| row[0].to_owned()).collect();
    let expected: Vec<String> = REQUIREMENTS
        .iter()
        .flat_map(|(seed, count)| (1..=*count).map(move |number| format!("{seed}-{number}")))
        .collect();
    assert_eq!(numbers, expected);
}

#[test]
fn every_proof_exists() {
    let page = read("docs/seeds.md");
    let cases: BTreeSet<String> = all_cases().into_iter().map(|case| case.name).collect();
    let bench = read("crates/bench/benches/engine/rows.rs");
    let node = read("node/test/message-array.test.mjs");
    // Many proofs are in the same package, so the words of each package are collected once.
    let mut packages: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let mut missing = Vec::new();
    for row in rows(&page) {
        let proofs: Vec<&str> = row[3].split('`').skip(1).step_by(2).collect();
        assert!(!proofs.is_empty(), "{} has no proof", row[0]);
        for proof in proofs {
            let (source, name) = proof.split_once(": ").expect("a proof names its source");
            let exists = match source {
                "conformance" => cases.contains(name),
                "node" => node.contains(&format!("test(\"{name}\"")),
                "bench engine" => {
                    bench.contains(&format!("row(\"{name}\""))
                        || bench.contains(&format!("row(\"  {name}\""))
                }
                package => {
                    let words = packages.entry(package).or_insert_with(|| {
                        let mut words = BTreeSet::new();
                        words_below(&root().join("crates").join(package), &mut words);
                        words
                    });
                    let function = name.trim_end_matches(" (doc test)").rsplit("::").next();
                    function.is_some_and(|function| words.contains(function))
                }
            };
            if !exists {
                missing.push(format!("{}: {proof}", row[0]));
            }
        }
    }
    assert_eq!(missing, Vec::<String>::new());
}

#[test]
fn every_difference_has_a_row_in_the_contract() {
    let (page, contract) = (read("docs/seeds.md"), read("docs/spec.md"));
    let (_, section) = contract.split_once("## 12.").expect("the contract has a section 12");
    for row in rows(&page) {
        for start in ["**differs**: *", "ection 12, *"] {
            for named in row[2].split(start).skip(1) {
                let topic = named.split('*').next().unwrap_or_default();
                assert!(section.contains(&format!("| {topic} |")), "{}: {topic}", row[0]);
            }
        }
    }
}
