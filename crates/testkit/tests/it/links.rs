//! Links of the documentation: every relative link leads to a file, and every fragment to a heading.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The pages in the root of the repository and in `docs/`.
fn pages() -> Vec<PathBuf> {
    let folders = [root(), root().join("docs")];
    let entries = folders.iter().flat_map(|folder| fs::read_dir(folder).expect("it is a folder"));
    let paths = entries.map(|entry| entry.expect("the folder can be read").path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect()
}

/// The text of a page without its code blocks.
fn prose(page: &Path) -> String {
    let text =
        fs::read_to_string(page).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
    let mut is_code = false;
    let lines = text.lines().filter(|line| {
        let is_fence = line.starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    });
    lines.map(|line| format!("{line}\n")).collect()
}

/// The targets of all links.
fn links(prose: &str) -> Vec<&str> {
    let ends = prose.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    ends.map(|(target, _)| target).collect()
}

/// The fragment that a heading has on GitHub.
fn fragment(heading: &str) -> String {
    let kept = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = kept.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for page in pages() {
        let text = prose(&page);
        for link in links(&text).into_iter().filter(|link| !link.starts_with("http")) {
            count += 1;
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match path {
                "" => page.clone(),
                path => page.parent().expect("a page is in a folder").join(path),
            };
            let has_heading = |anchor: &str| {
                let text = prose(&target);
                text.lines().filter(|line| line.starts_with('#')).any(|it| fragment(it) == anchor)
            };
            if !target.exists() || !anchor.is_empty() && !has_heading(anchor) {
                wrong.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(count > 50, "{count}");
}
