//! What the tests of formats share: a file in, and out again.

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

/// The messages of a file that holds a single conversation, and what could not be represented.
pub(crate) fn messages(file: &str, format: Format) -> (Vec<Message>, Vec<TranscriptWarning>) {
    let replay = imported(file, format);
    let [only] = &replay.conversations[..] else { panic!("{} talks", replay.conversations.len()) };
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

/// A whole log, with its rewinds and compactions.
pub(crate) fn exported_log(log: &[Message], format: Format, container: Container<'_>) -> String {
    let mut file = Vec::new();
    export_log(log, format, &ExportOptions { container, ..Default::default() }, &mut file).unwrap();
    String::from_utf8(file).unwrap()
}

/// Imports a message alone and says what became of it, after the round trip was checked: the message
/// comes back byte for byte.
pub(crate) fn round_trip(foreign: &str, format: Format) -> Vec<Message> {
    let (messages, warnings) = messages(&format!("[{foreign}]"), format);
    assert_eq!(warnings, [], "{foreign}");
    assert_eq!(exported(&messages, format, Container::List), format!("[{foreign}]\n"));
    messages
}
