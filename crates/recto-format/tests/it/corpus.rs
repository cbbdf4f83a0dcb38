//! Every file of `tests/corpus`: its format is recognised, and export restores its bytes.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use recto_core::{Approx, Message, Settings};
use recto_format::{Collected, Container, Format, ImportOptions, Input, Replay, import};
use serde_json::value::RawValue;

use crate::files::{exported, imported};

/// The files of the corpus, with the format that their folder names.
fn files() -> Vec<(PathBuf, Format)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut files = Vec::new();
    for folder in fs::read_dir(root).unwrap() {
        let folder = folder.unwrap().path();
        let name = folder.file_name().unwrap().to_str().unwrap();
        let format = Format::named(name).unwrap_or_else(|| panic!("no format {name}"));
        files.extend(fs::read_dir(&folder).unwrap().map(|file| (file.unwrap().path(), format)));
    }
    files.sort_by(|a, b| a.0.cmp(&b.0));
    files
}

#[test]
fn the_corpus_has_files_of_every_format() {
    let files = files();
    for format in Format::ALL {
        assert!(files.iter().any(|(_, of)| of == format), "no file of {format}");
    }
}

#[test]
fn a_file_is_imported_like_its_bytes() {
    for (path, format) in files() {
        let steps = |input: &dyn Input| {
            let mut collected = Collected::default();
            import(input, Some(format), &ImportOptions::default(), &mut collected).unwrap();
            collected.steps
        };
        let (file, bytes) = (fs::File::open(&path).unwrap(), fs::read(&path).unwrap());
        assert_eq!(steps(&file), steps(&bytes), "{}", path.display());
    }
}

#[test]
fn readers_of_one_file_do_not_change_each_other() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("readers_of_one_file.jsonl");
    // Longer than any buffer.
    let start =
        r#"{"timestamp":"2026-01-01T00:00:00Z","type":"session_meta","payload":{"id":"s"}}"#;
    let mut lines = vec![start.to_owned()];
    lines.extend((0..500).map(|at| {
        let text = "word ".repeat(60);
        format!(r#"{{"timestamp":"2026-01-01T00:00:00Z","type":"response_item","payload":{{"type":"message","role":"user","content":[{{"type":"input_text","text":"{at} {text}"}}]}}}}"#)
    }));
    fs::write(&path, lines.join("\n")).unwrap();
    let file = fs::File::open(&path).unwrap();
    let mut replay = Replay::new(Settings::counting_with(Approx), 0);
    import(&file, None, &ImportOptions::default(), &mut replay).unwrap();
    assert_eq!(replay.conversations[0].branches[0].conversation.messages().count(), 500);

    let (mut one, mut other) = (file.open().unwrap(), file.open().unwrap());
    let (mut whole, mut byte) = (String::new(), [0]);
    one.read_exact(&mut byte).unwrap();
    other.read_to_string(&mut whole).unwrap();
    let mut rest = String::new();
    one.read_to_string(&mut rest).unwrap();
    assert!(whole == lines.join("\n") && rest == whole[1..]);
}

#[test]
fn the_format_of_every_file_is_recognised() {
    for (path, format) in files() {
        let file = fs::File::open(&path).unwrap();
        let found = Format::recognise(file);
        assert!(matches!(found, Ok(found) if found == format), "{}: {found:?}", path.display());
    }
}

/// The foreign messages of a file that is a list of them, one list for each conversation.
fn foreign(text: &str, keys: &[&str]) -> Vec<Vec<String>> {
    let list = |raw: &str| -> Option<Vec<String>> {
        let items: Vec<Box<RawValue>> = serde_json::from_str(raw).ok()?;
        Some(items.iter().map(|item| item.get().to_owned()).collect())
    };
    let held = |raw: &str| -> Option<Vec<String>> {
        let fields: std::collections::HashMap<String, Box<RawValue>> =
            serde_json::from_str(raw).ok()?;
        keys.iter().find_map(|key| list(fields.get(*key)?.get()))
    };
    if let Some(items) = list(text) {
        return match items.iter().map(|item| held(item)).collect::<Option<Vec<_>>>() {
            Some(lists) => lists,
            None => vec![items],
        };
    }
    if let Some(items) = held(text) {
        return vec![items];
    }
    let lines: Vec<&str> = text.lines().collect();
    match lines.iter().map(|line| held(line)).collect::<Option<Vec<_>>>() {
        Some(lists) => lists,
        None => vec![lines.into_iter().map(str::to_owned).collect()],
    }
}

#[test]
fn every_message_of_a_list_is_exported_byte_for_byte() {
    for (path, format) in files() {
        if crate::sessions::is_session(format) {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let replay = imported(&text, format);
        let keys = ["messages", "input", "contents", "conversations"];
        let expected = foreign(&text, &keys);
        assert_eq!(replay.conversations.len(), expected.len(), "{}", path.display());
        for (replayed, expected) in replay.conversations.iter().zip(expected) {
            let container = match replayed.envelope.as_deref() {
                Some(envelope) => Container::Envelope(envelope),
                None => Container::List,
            };
            let messages: Vec<Message> =
                replayed.branches[0].conversation.messages().cloned().collect();
            let written = exported(&messages, format, container);
            let found = foreign(&written, &keys);
            assert_eq!(found, [expected], "{}", path.display());
        }
    }
}

#[test]
fn in_json_lines_every_message_stays_on_its_line() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/gemini/contents.json");
    let replay = imported(&fs::read_to_string(path).unwrap(), Format::Gemini);
    let messages: Vec<Message> =
        replay.conversations[0].branches[0].conversation.messages().cloned().collect();
    let written = exported(&messages, Format::Gemini, Container::Lines);
    let first = r#"{"role":"user","parts":[{"text":"hi"}]}"#;
    assert_eq!((written.lines().count(), written.lines().next()), (4, Some(first)));
}

#[test]
fn white_space_between_lines_that_export_does_not_restore_is_reported() {
    for (path, format) in files() {
        let is_lines = path.extension().is_some_and(|it| it == "jsonl");
        // Each line of this file is a document.
        if !is_lines || !crate::sessions::is_session(format) || path.ends_with("output.jsonl") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let reports = |text: &str| {
            let warnings = imported(text, format).warnings;
            warnings.iter().filter(|warning| warning.field == "around the lines").count()
        };
        assert_eq!(reports(&text), 0, "{}", path.display());
        assert_eq!(reports(text.trim_end()), 0, "{}", path.display());
        let (line_ends, blank_lines) = (text.replace('\n', "\r\n"), text.replace('\n', "\n\n"));
        let spaces = text.replace("}\n", "} \n");
        for changed in [line_ends, blank_lines, spaces, format!("\u{feff}{text}")] {
            assert_eq!(reports(&changed), 1, "{}", path.display());
        }
    }
}

#[test]
fn compact_files_and_json_lines_are_exported_byte_for_byte() {
    for name in [
        "anthropic/request.json",
        "anthropic/messages.jsonl",
        "openai-responses/items.json",
        "openai-responses/items.jsonl",
        "gemini/request.json",
        "recto/messages.jsonl",
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(name);
        let text = fs::read_to_string(path).unwrap();
        let format = Format::named(name.split('/').next().unwrap()).unwrap();
        let replay = imported(&text, format);
        let [replayed] = &replay.conversations[..] else { panic!("{name}: one conversation") };
        let container = match replayed.envelope.as_deref() {
            Some(envelope) => Container::Envelope(envelope),
            None => Container::Lines,
        };
        let messages: Vec<Message> =
            replayed.branches[0].conversation.messages().cloned().collect();
        assert_eq!(exported(&messages, format, container), text, "{name}");
    }
}
