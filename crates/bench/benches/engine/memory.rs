//! Memory use in bytes, from an allocator that counts the allocated bytes.

use std::alloc::System;

use cap::Cap;
use recto_core::{Append, Approx, Conversation, Delete, LogIndex, Message, Settings};

use crate::sheet::Sheet;
use crate::subject::{EDITS, Subject};
use crate::transcript::Transcript;

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// Number of messages that are appended one by one.
const APPENDS: usize = 10_000;

/// The value that `make` returns, and the bytes that it holds.
fn kept<T>(make: impl FnOnce() -> T) -> (T, f64) {
    let before = ALLOCATOR.allocated();
    let made = make();
    let bytes = ALLOCATOR.allocated() as f64 - before as f64;
    (made, bytes)
}

fn appended(on: &Conversation, messages: Vec<Message>) -> Conversation {
    on.apply(Append { messages }, 0).expect("the messages are right").0
}

/// Measures the memory of Recto for a conversation of one size.
pub(crate) fn measure(subject: &Subject, sheet: &mut Sheet<'_>) {
    let Subject { fresh, edited, size, .. } = subject;
    sheet.row("a version after an edit", |_| edit(subject));
    let bytes = AppendBytes::on(fresh);
    sheet.row("a version after an APPEND", |_| bytes.version);
    sheet.row("  with its log entry", |_| bytes.with_entry);
    sheet.row("  with its log entry and message", |_| bytes.with_message);
    let bytes = AppendBytes::on(edited);
    sheet.row("a version after an APPEND, after 200 edits", |_| bytes.version);
    sheet.row("a message in addition to its JSON", |_| message(*size, false));
    sheet.row("a message in addition to its JSON, after an edit", |_| message(*size, true));
}

/// Bytes of an APPEND of one message, averaged over [`APPENDS`].
struct AppendBytes {
    /// The version alone.
    version: f64,
    /// With the entry in log and view.
    with_entry: f64,
    /// With the message.
    with_message: f64,
}

impl AppendBytes {
    fn on(start: &Conversation) -> AppendBytes {
        let small = |number| Message::user(&format!("remark {number}"));
        let (messages, all) = kept(|| (0..APPENDS).map(small).collect::<Vec<_>>());
        let bodies = all - size_of_val(&*messages) as f64;
        let one = |on: Conversation, message: &Message| appended(&on, vec![message.clone()]);
        let (_last, one_by_one) = kept(|| messages.iter().fold(start.clone(), one));
        let (_all, at_once) = kept(|| appended(start, messages.clone()));
        let each = |bytes: f64| bytes / APPENDS as f64;
        AppendBytes {
            version: each(one_by_one - at_once),
            with_entry: each(one_by_one),
            with_message: each(one_by_one + bodies),
        }
    }
}

/// Bytes of a message without its JSON, in a conversation whose messages were appended in one request.
/// After an edit the view is no longer the whole log, so the view and the log share fewer nodes.
fn message(size: usize, is_edited: bool) -> f64 {
    let mut start = Conversation::new(Settings::counting_with(Approx), 0).expect("it is right");
    if is_edited {
        start = appended(&start, vec![Message::user("hidden")]);
        start = start.apply(Delete { indices: vec![LogIndex(0)] }, 0).expect("it is visible").0;
    }
    let (conversation, bytes) = kept(|| appended(&start, Transcript::of(size).messages));
    let json: usize = conversation.messages().map(|message| message.json().len()).sum();
    (bytes - json as f64) / size as f64
}

/// Bytes of a version after an edit of one message, averaged over [`EDITS`].
fn edit(subject: &Subject) -> f64 {
    let edit = |on: Conversation, number| subject.edit(&on, number).expect("the edit is right").0;
    let (_last, bytes) = kept(|| (0..EDITS).fold(subject.fresh.clone(), edit));
    bytes / EDITS as f64
}

/// Measures the memory of the plain list.
pub(crate) fn measure_plain(subject: &Subject, sheet: &mut Sheet<'_>) {
    sheet.row("a version after an edit", |_| {
        let list = subject.plain();
        kept(|| list.messages.clone()).1
    });
}
