//! Recognition of formats.

use proptest::prelude::*;
use recto_core::{Approx, Message, Settings};
use recto_format::{Container, Format, ImportOptions, Replay, import};

use crate::files::{exported, visible};
use crate::render::{shown, view};

fn read(file: &str) -> (Format, Replay) {
    let mut replay = Replay::new(Settings::counting_with(Approx), 0);
    let format = import(file, None, &ImportOptions::default(), &mut replay).unwrap();
    (format, replay)
}

/// A file in Recto's format is read unchanged without naming the format.
fn check(messages: &[Message]) {
    let file = exported(messages, Format::Recto, Container::List);
    let (_, replay) = read(&file);
    let [replayed] = &replay.conversations[..] else { panic!("one conversation in {file}") };
    let found = visible(replayed);
    assert_eq!(shown(&found), shown(messages), "{file}");
    let again = exported(&found, Format::Recto, replayed.container());
    assert_eq!(again.replace(",\n{", ",{"), file.replace(",\n{", ",{"));
}

#[test]
fn files_of_recto_are_not_recognised_as_another_format() {
    let call =
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}}]}"#;
    let redacted = r#"{"role":"assistant","content":[{"type":"redacted_thinking","data":"b3A="}]}"#;
    let made = r#"{"role":"assistant","content":[{"type":"redacted_thinking","data":"b3A="}],"metadata":{"source":{"format":"anthropic","provider":"anthropic"}}}"#;
    let result =
        r#"{"role":"tool","content":[{"type":"tool_result","tool_use_id":"c","content":"x"}]}"#;
    let from_user =
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"x"}]}"#;
    let file = r#"{"role":"user","content":[{"type":"file","source":{"type":"text","text":"a"}}]}"#;
    let timed = r#"{"role":"user","content":"a","timestamp":1719000000000,"id":"7"}"#;
    let empty_result = r#"{"role":"tool","content":"done"}"#;
    for messages in [
        &[call, result][..],
        &[call, empty_result],
        &[redacted, result],
        &[redacted],
        &[made],
        &[call, made, result],
        &[call, from_user],
        &[file],
        &[timed],
        &[call],
        &[],
    ] {
        let messages: Vec<Message> =
            messages.iter().map(|json| Message::from_json(json).unwrap()).collect();
        check(&messages);
    }
}

#[test]
fn a_file_with_tool_messages_is_not_anthropics() {
    let file = r#"[{"role":"user","content":"q"},
{"role":"assistant","content":[{"type":"redacted_thinking","data":"b3A="},{"type":"tool_use","id":"c","name":"f","input":{}}]},
{"role":"tool","content":[{"type":"tool_result","tool_use_id":"c","content":"x"}]}]"#;
    assert_eq!(read(file).0, Format::Recto);
    // Without a message of a tool, it is Anthropic's.
    let file = file.replace("\"tool\"", "\"user\"");
    assert_eq!(read(&file).0, Format::Anthropic);
}

/// The identifying feature is far from the start of a long list.
#[test]
fn the_feature_that_identifies_recto_may_be_far_from_the_start() {
    let mut messages: Vec<Message> =
        (0..400).map(|number| Message::user(&format!("{number} {}", "x".repeat(1_000)))).collect();
    messages.push(Message::tool_call("c", "f", &serde_json::json!({})));
    messages.push(Message::tool_result("c", "x"));
    check(&messages);
}

#[test]
fn lists_that_several_formats_share_stay_lists() {
    let messages = [Message::user("2 + 2?"), Message::assistant("4")];
    assert!(exported(&messages, Format::Recto, Container::List).starts_with("[{"));
    let torn = [Message::user("q"), Message::tool_result("c", "x")];
    assert!(exported(&torn, Format::Recto, Container::List).starts_with("[{"));
}

#[test]
fn an_empty_list_is_a_conversation_without_messages() {
    for file in ["[]", " [ ]\n", r#"{"messages":[]}"#, r#"{"model":"m","messages":[]}"#] {
        let (format, replay) = read(file);
        assert_eq!(format, Format::Recto, "{file}");
        let [replayed] = &replay.conversations[..] else { panic!("one conversation in {file}") };
        assert!(replayed.branches[0].conversation.log().is_empty(), "{file}");
        assert_eq!(replay.warnings, [], "{file}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn every_export_in_the_format_recto_is_imported_unchanged(
        numbers in prop::collection::vec(any::<u16>(), 0..200),
    ) {
        check(&view(&numbers, 6));
    }
}
