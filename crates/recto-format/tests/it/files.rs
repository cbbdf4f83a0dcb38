//! Import and export functions that the tests of formats share.

use recto_core::{Approx, Message, Settings};
use recto_format::{
    Container, ExportOptions, Format, ImportOptions, Replay, Replayed, TranscriptWarning, export,
    export_log, import,
};

/// Imports a file of a known format into conversations.
pub(crate) fn imported(file: &str, format: Format) -> Replay {
    let mut replay = Replay::new(Settings::counting_with(Approx), 0);
    import(file, Some(format), &ImportOptions::default(), &mut replay).unwrap();
    replay
}

/// The messages of a file with a single conversation, and the warnings.
pub(crate) fn messages(file: &str, format: Format) -> (Vec<Message>, Vec<TranscriptWarning>) {
    let replay = imported(file, format);
    let [only] = &replay.conversations[..] else {
        panic!("{} conversations", replay.conversations.len())
    };
    (visible(only), replay.warnings)
}

pub(crate) fn visible(replayed: &Replayed) -> Vec<Message> {
    replayed.branches[0].conversation.messages().cloned().collect()
}

pub(crate) fn exported(messages: &[Message], format: Format, container: Container<'_>) -> String {
    let mut file = Vec::new();
    export(messages, format, &ExportOptions { container, ..Default::default() }, &mut file)
        .unwrap();
    String::from_utf8(file).unwrap()
}

/// Exports a whole log, with its rewinds and compactions.
pub(crate) fn exported_log(log: &[Message], format: Format, container: Container<'_>) -> String {
    let mut file = Vec::new();
    export_log(log, format, &ExportOptions { container, ..Default::default() }, &mut file).unwrap();
    String::from_utf8(file).unwrap()
}

/// Imports a single message and returns the result. Checks that export restores the message byte for
/// byte.
pub(crate) fn round_trip(foreign: &str, format: Format) -> Vec<Message> {
    let (messages, warnings) = messages(&format!("[{foreign}]"), format);
    assert_eq!(warnings, [], "{foreign}");
    assert_eq!(exported(&messages, format, Container::List), format!("[{foreign}]\n"));
    messages
}
