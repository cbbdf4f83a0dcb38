//! Files of agents: each is imported, and its log is exported again in the format of the file.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};

use recto_core::{Approx, Message, Settings};
use recto_format::{
    Container, ExportOptions, Format, ImportOptions, Replay, export_log, find_messages, import,
};
use serde_json::Value;

use super::Result;

/// What import and export of a file give.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// The same bytes, except for line breaks at the end.
    SameBytes,
    /// The same JSON, with other white space.
    SameJson,
    /// The same JSON without some of its white space, and no remark says so.
    LostSpace,
    /// Other content, and the import has remarks.
    OtherWithRemarks,
    /// Other content without a remark.
    Other,
    /// The messages inside a larger document were imported.
    Selected,
    /// The format is not known.
    NotRecognised,
    /// The import failed.
    Refused,
}

impl Outcome {
    const ALL: [(Outcome, &str); 8] = [
        (Outcome::SameBytes, "the same bytes"),
        (Outcome::SameJson, "the same JSON, with other white space"),
        (Outcome::LostSpace, "less white space without a remark"),
        (Outcome::OtherWithRemarks, "other content, with remarks"),
        (Outcome::Other, "other content without a remark"),
        (Outcome::Selected, "messages inside a larger document"),
        (Outcome::NotRecognised, "not recognised"),
        (Outcome::Refused, "refused"),
    ];
}

/// The outcomes of a folder.
#[derive(Default)]
pub(crate) struct Sessions {
    counts: BTreeMap<Outcome, usize>,
    /// The files with other content or less white space, without a remark.
    failures: Vec<String>,
}

impl Sessions {
    /// Imports and exports every file below a folder.
    pub(crate) fn check(folder: &Path, show: bool) -> Result<Sessions> {
        let mut sessions = Sessions::default();
        let mut files = Vec::new();
        collect(folder, &mut files)?;
        for file in files {
            let bytes = std::fs::read(&file)?;
            let (outcome, detail) = outcome_of(&bytes);
            *sessions.counts.entry(outcome).or_default() += 1;
            let name = file.strip_prefix(folder).unwrap_or(&file).display().to_string();
            if show && outcome != Outcome::SameBytes {
                let (_, text) = Outcome::ALL[outcome as usize];
                println!("{name}: {text}: {detail}");
            }
            if matches!(outcome, Outcome::Other | Outcome::LostSpace) {
                sessions.failures.push(format!("{name}: {detail}"));
            }
        }
        Ok(sessions)
    }

    pub(crate) fn has_failed(&self) -> bool {
        !self.failures.is_empty()
    }
}

impl fmt::Display for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "sessions, imported and exported")?;
        for (outcome, text) in Outcome::ALL {
            let count = self.counts.get(&outcome).copied().unwrap_or(0);
            writeln!(f, "  {text:<40}{count}")?;
        }
        self.failures.iter().try_for_each(|failure| writeln!(f, "    {failure}"))
    }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    let mut paths =
        folder.read_dir()?.map(|it| Ok(it?.path())).collect::<std::io::Result<Vec<_>>>()?;
    paths.sort();
    for path in paths {
        match path.is_dir() {
            true => collect(&path, files)?,
            false => files.push(path),
        }
    }
    Ok(())
}

fn outcome_of(bytes: &[u8]) -> (Outcome, String) {
    let Ok(format) = Format::recognise(bytes) else {
        return match find_messages(&bytes.to_vec(), None, None) {
            Ok(Some(_)) => (Outcome::Selected, String::new()),
            Ok(None) => (Outcome::NotRecognised, String::new()),
            Err(error) => (Outcome::NotRecognised, error.to_string()),
        };
    };
    let mut replay = Replay::new(Settings::counting_with(Approx), 0);
    let options = ImportOptions::default();
    if let Err(error) = import(bytes, Some(format), &options, &mut replay) {
        return (Outcome::Refused, error.to_string());
    }
    let given = String::from_utf8_lossy(bytes);
    let mut exported = Vec::new();
    for replayed in &replay.conversations {
        for branch in &replayed.branches {
            let log: Vec<Message> =
                branch.conversation.log().iter().map(|entry| entry.message.clone()).collect();
            let container: Container<'_> = replayed.container();
            let options = ExportOptions { container, ..ExportOptions::default() };
            let mut file = Vec::new();
            if let Err(error) = export_log(&log, format, &options, &mut file) {
                return (Outcome::Other, format!("{format}: the export failed: {error}"));
            }
            exported.push(String::from_utf8_lossy(&file).into_owned());
        }
    }
    let difference = match difference(&given, &exported) {
        None => return (Outcome::SameBytes, String::new()),
        Some(difference) => difference,
    };
    let is_same_json = match &exported[..] {
        [one] => {
            let values = |text: &str| -> Option<Vec<Value>> {
                let values = serde_json::Deserializer::from_str(text).into_iter();
                values.collect::<std::result::Result<_, _>>().ok()
            };
            let (before, after) = (values(&given), values(one));
            // A file is one JSON value, or several: JSON lines.
            before.is_some() && (before == after)
        }
        _ => false,
    };
    let remarks = replay.warnings.len();
    let detail = format!("{format}: {remarks} remarks; {difference}");
    // Line breaks that export adds are no loss.
    let is_shorter = exported.iter().any(|file| file.trim_end().len() < given.trim_end().len());
    match (is_same_json, remarks) {
        (true, 0) if is_shorter => (Outcome::LostSpace, detail),
        (true, _) => (Outcome::SameJson, detail),
        (false, 0) => (Outcome::Other, detail),
        (false, _) => (Outcome::OtherWithRemarks, detail),
    }
}

/// The first difference. A conversation and its forks are separate files, so each line of the given file
/// must be in one of them.
fn difference(given: &str, exported: &[String]) -> Option<String> {
    let short = |text: &str| text.chars().take(160).collect::<String>();
    if let [one] = exported {
        let (before, after) = (given.trim_end(), one.trim_end());
        if before == after {
            return None;
        }
        let is_same = |(a, b): &(u8, u8)| a == b;
        let same = before.bytes().zip(after.bytes()).take_while(is_same).count();
        let start = same.saturating_sub(40);
        let from =
            |text: &str| short(&String::from_utf8_lossy(&text.as_bytes()[start.min(text.len())..]));
        return Some(format!("at byte {same}: was {:?}, is {:?}", from(before), from(after)));
    }
    let mut lines: HashMap<&str, usize> = HashMap::new();
    for line in exported.iter().flat_map(|file| file.lines()) {
        *lines.entry(line.trim_end()).or_default() += 1;
    }
    let is_missing = |line: &&str| !line.trim().is_empty() && !lines.contains_key(line.trim_end());
    given.lines().find(is_missing).map(|line| format!("no file has the line {:?}", short(line)))
}
