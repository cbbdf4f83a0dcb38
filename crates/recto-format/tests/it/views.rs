//! Edited sessions: an exported view, imported again, shows the same messages.

use proptest::prelude::*;
use recto_core::{
    Clear, Compress, Conversation, Delete, Insert, Message, Position, Request, Truncate, Undo,
};
use recto_format::{Container, Format};
use serde_json::{Value, json};

use crate::files::{exported, imported};

/// An event in a session, or an edit of its view.
#[derive(Clone, Debug)]
enum Event {
    Says,
    Answers,
    /// Two parallel calls and their results.
    Calls,
    /// A rewind over this number of turns.
    GoesBack(usize),
    Compacts,
    /// A line without a message.
    Aside,
    /// A duplicate of the previous line.
    Again,
}

#[derive(Clone, Debug)]
enum Edit {
    Insert(usize, usize),
    Delete(usize),
    KeepLast(usize),
    KeepFirst(usize),
    Compress(usize, usize),
    Clear,
    Undo,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        4 => Just(Event::Says),
        4 => Just(Event::Answers),
        3 => Just(Event::Calls),
        2 => (1_usize..4).prop_map(Event::GoesBack),
        1 => Just(Event::Compacts),
        2 => Just(Event::Aside),
        1 => Just(Event::Again),
    ];
    prop::collection::vec(event, 1..20)
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let edit = prop_oneof![
        4 => (0_usize..40, 0_usize..4).prop_map(|(at, who)| Edit::Insert(at, who)),
        3 => (0_usize..40).prop_map(Edit::Delete),
        1 => (0_usize..8).prop_map(Edit::KeepLast),
        1 => (0_usize..8).prop_map(Edit::KeepFirst),
        2 => (0_usize..40, 1_usize..4).prop_map(|(at, count)| Edit::Compress(at, count)),
        1 => Just(Edit::Clear),
        2 => Just(Edit::Undo),
    ];
    prop::collection::vec(edit, 0..5)
}

fn codex(events: &[Event]) -> String {
    let mut lines: Vec<String> = Vec::new();
    let line = |kind: &str, payload: Value| {
        json!({"timestamp": "2026-05-01T10:00:00.000Z", "type": kind, "payload": payload})
            .to_string()
    };
    let message = |role: &str, kind: &str, text: String| json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]});
    for (at, event) in events.iter().enumerate() {
        match event {
            Event::Says => {
                lines.push(line("response_item", message("user", "input_text", format!("q{at}"))));
            }
            Event::Answers => {
                let answer = message("assistant", "output_text", format!("a{at}"));
                lines.push(line("response_item", answer));
            }
            Event::Calls => {
                for call in ["x", "y"] {
                    let id = format!("{call}{at}");
                    let call = json!({"type": "function_call", "name": "f", "arguments": "{}", "call_id": id});
                    lines.push(line("response_item", call));
                }
                for call in ["x", "y"] {
                    let id = format!("{call}{at}");
                    let output =
                        json!({"type": "function_call_output", "call_id": id, "output": id});
                    lines.push(line("response_item", output));
                }
            }
            Event::GoesBack(turns) => {
                let back = json!({"type": "thread_rolled_back", "num_turns": turns});
                lines.push(line("event_msg", back));
            }
            Event::Compacts if at % 2 == 0 => {
                let history = [
                    message("user", "input_text", format!("kept{at}")),
                    message("user", "input_text", format!("summary{at}")),
                ];
                let payload = json!({"message": "", "replacement_history": history});
                lines.push(line("compacted", payload));
            }
            Event::Compacts => {
                lines.push(line("compacted", json!({"message": format!("summary{at}")})));
            }
            Event::Aside => lines.push(line("event_msg", json!({"type": "token_count"}))),
            Event::Again => {}
        }
    }
    lines.join("\n")
}

/// Builder of a Claude Code session.
#[derive(Default)]
struct Session {
    lines: Vec<String>,
    /// The possible parents of the next line.
    path: Vec<String>,
}

impl Session {
    fn add(&mut self, uuid: &str, parent: Option<&str>, more: Value) {
        let mut line =
            json!({"parentUuid": parent, "isSidechain": false, "sessionId": "s", "uuid": uuid});
        line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.lines.push(line.to_string());
        self.path.push(uuid.to_owned());
    }

    fn next(&mut self, uuid: &str, more: Value) {
        let last = self.path.last().cloned();
        self.add(uuid, last.as_deref(), more);
    }
}

fn claude_code(events: &[Event]) -> String {
    let mut session = Session::default();
    let says =
        |content: Value| json!({"type": "user", "message": {"role": "user", "content": content}});
    let answers = |at: usize, block: Value| {
        let message = json!({"id": format!("m{at}"), "role": "assistant", "content": [block]});
        json!({"type": "assistant", "message": message})
    };
    for (at, event) in events.iter().enumerate() {
        let uuid = format!("u{at}");
        match event {
            Event::Says => session.next(&uuid, says(json!(format!("q{at}")))),
            Event::Answers => {
                let block = json!({"type": "text", "text": format!("a{at}")});
                session.next(&uuid, answers(at, block));
            }
            Event::Calls => {
                let ids = [format!("x{at}"), format!("y{at}")];
                for id in &ids {
                    let call = json!({"type": "tool_use", "id": id, "name": "f", "input": {}});
                    session.next(id, answers(at, call));
                }
                for id in &ids {
                    let result = json!({"type": "tool_result", "tool_use_id": id, "content": id});
                    session.add(&format!("r{id}"), Some(id), says(json!([result])));
                }
                if at % 3 == 0 {
                    let list = json!([{"toolUseId": ids[0], "replacement": "short"}]);
                    let line = json!({"type": "content-replacement", "replacements": list});
                    session.lines.push(line.to_string());
                }
            }
            Event::GoesBack(turns) => {
                let left = session.path.len().saturating_sub(*turns);
                session.path.truncate(left);
            }
            Event::Compacts => {
                let boundary = json!({"type": "system", "subtype": "compact_boundary"});
                session.add(&format!("b{at}"), None, boundary);
                let mut summary = says(json!(format!("summary{at}")));
                summary["isCompactSummary"] = json!(true);
                session.next(&uuid, summary);
            }
            Event::Aside => session.next(&uuid, json!({"type": "progress", "data": at})),
            Event::Again => {
                let last = session.lines.last().cloned();
                session.lines.extend(last);
            }
        }
    }
    session.lines.join("\n")
}

/// The conversation after an edit, if the edit is valid.
fn edited(conversation: &Conversation, edit: &Edit, number: usize) -> Option<Conversation> {
    let len = conversation.view().len();
    let shown: Vec<_> = conversation.view().iter().collect();
    let request: Request = match *edit {
        Edit::Insert(at, who) => {
            let message = match who {
                0 => Message::user(&format!("new{number}")),
                1 => Message::assistant(&format!("new{number}")),
                2 => Message::tool_call(&format!("n{number}"), "g", &json!({"n": number})),
                _ => Message::tool_result(&format!("n{number}"), "done"),
            };
            Insert { position: Position(at % (len + 1)), messages: vec![message] }.into()
        }
        Edit::Delete(at) => Delete { indices: vec![*shown.get(at % len.max(1))?] }.into(),
        Edit::KeepLast(count) => Truncate { keep_last: Some(count), ..Truncate::default() }.into(),
        Edit::KeepFirst(count) => {
            Truncate { keep_first: Some(count), ..Truncate::default() }.into()
        }
        Edit::Compress(at, count) => {
            let indices: Vec<_> = shown.iter().skip(at % len.max(1)).take(count).copied().collect();
            Compress { indices, summary: Some(Message::user(&format!("short{number}"))) }.into()
        }
        Edit::Clear => Clear::default().into(),
        Edit::Undo => Undo.into(),
    };
    conversation.apply(request, 1).ok().map(|(conversation, _)| conversation)
}

/// Role and content of the messages, without their source.
fn shown(conversation: &Conversation) -> Vec<(String, Value)> {
    let describe = |message: &Message| {
        let read: Value = serde_json::from_str(message.json()).unwrap();
        let content = match &read["content"] {
            Value::String(text) => json!([{"type": "text", "text": text}]),
            list => list.clone(),
        };
        (message.role().as_str().to_owned(), content)
    };
    conversation.messages().map(describe).collect()
}

/// Exports the view after every edit and imports it.
fn check(file: &str, format: Format, edits: &[Edit]) {
    let replay = imported(file, format);
    let Some(replayed) = replay.conversations.first() else { return };
    let mut conversation = replayed.branches[0].conversation.clone();
    let envelope = replayed.envelope.as_deref();
    for number in 0..=edits.len() {
        for container in [Some(Container::Lines), envelope.map(Container::Envelope)] {
            let Some(container) = container else { continue };
            let messages: Vec<Message> = conversation.messages().cloned().collect();
            let written = exported(&messages, format, container);
            let again = imported(&written, format);
            let found =
                again.conversations.first().map(|read| shown(&read.branches[0].conversation));
            assert_eq!(
                found.unwrap_or_default(),
                shown(&conversation),
                "{edits:?}\n{file}\n\n{written}"
            );
        }
        let next = edits.get(number).and_then(|edit| edited(&conversation, edit, number));
        conversation = next.unwrap_or(conversation);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn a_view_of_a_codex_rollout_is_the_same_when_it_is_read_again(
        events in events(), edits in edits(),
    ) {
        check(&codex(&events), Format::Codex, &edits);
    }

    #[test]
    fn a_view_of_a_claude_code_session_is_the_same_when_it_is_read_again(
        events in events(), edits in edits(),
    ) {
        check(&claude_code(&events), Format::ClaudeCode, &edits);
    }
}

#[test]
fn a_rollback_is_not_exported_with_a_view() {
    let events = [Event::Compacts, Event::Says, Event::Answers, Event::GoesBack(1), Event::Says];
    check(&codex(&events), Format::Codex, &[]);
    check(&claude_code(&events), Format::ClaudeCode, &[]);
}

#[test]
fn an_inserted_message_is_an_ancestor_of_the_last_line() {
    let events = [Event::Says, Event::Answers, Event::Says, Event::Calls];
    for at in 0..8 {
        check(&claude_code(&events), Format::ClaudeCode, &[Edit::Insert(at, 0)]);
    }
}

#[test]
fn an_unedited_view_has_its_original_lines() {
    let events = [Event::Says, Event::Aside, Event::Answers, Event::Says, Event::Calls];
    for (file, format) in
        [(codex(&events), Format::Codex), (claude_code(&events), Format::ClaudeCode)]
    {
        let replay = imported(&file, format);
        let messages: Vec<Message> =
            replay.conversations[0].branches[0].conversation.messages().cloned().collect();
        assert_eq!(exported(&messages, format, Container::Lines).trim_end(), file);
    }
}
