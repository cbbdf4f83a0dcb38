//! codex rollouts: compactions and rollbacks are versions.

use recto_core::{Conversation, Message, Version};
use recto_format::{
    Collected, Container, ExportOptions, Format, ImportOptions, Replay, Step, export, import,
};

use crate::files::{exported_log, imported};

const CODEX: Format = Format::Codex;

fn corpus(name: &str) -> String {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/codex/");
    std::fs::read_to_string(format!("{root}{name}")).unwrap()
}

fn texts_by_role(conversation: &Conversation) -> Vec<String> {
    let describe = |message: &Message| {
        let text = message.text();
        format!("{}: {}", message.role().as_str(), text.lines().next().unwrap_or_default())
    };
    conversation.messages().map(describe).collect()
}

fn only(replay: &Replay) -> &Conversation {
    &replay.conversations[0].branches[0].conversation
}

fn log(replay: &Replay) -> Vec<Message> {
    only(replay).log().iter().map(|entry| entry.message.clone()).collect()
}

fn user(text: &str) -> String {
    format!(
        r#"{{"timestamp":"2026-05-01T10:00:00.000Z","type":"response_item","payload":{{"type":"message","role":"user","content":[{{"type":"input_text","text":"{text}"}}]}}}}"#
    )
}

fn back(turns: usize) -> String {
    format!(
        r#"{{"timestamp":"2026-05-01T10:00:00.000Z","type":"event_msg","payload":{{"type":"thread_rolled_back","num_turns":{turns}}}}}"#
    )
}

fn compacted(texts: &[&str]) -> String {
    let items: Vec<String> = texts
        .iter()
        .map(|text| format!(r#"{{"type":"message","role":"user","content":[{{"type":"input_text","text":"{text}"}}]}}"#))
        .collect();
    let items = items.join(",");
    format!(
        r#"{{"timestamp":"2026-05-01T10:00:00.000Z","type":"compacted","payload":{{"message":"","replacement_history":[{items}]}}}}"#
    )
}

#[test]
fn the_last_view_of_a_rollout_is_what_the_model_reads() {
    let replay = imported(&corpus("rollout.jsonl"), CODEX);
    assert_eq!(replay.warnings, []);
    let start = &replay.conversations[0].start;
    assert_eq!(start.id.as_deref(), Some("0196a000-0000-7000-8000-000000000000"));
    assert_eq!(start.created, Some(1_777_629_600_000));
    only(&replay).verify().unwrap();
    assert_eq!(
        texts_by_role(only(&replay)),
        [
            "user: Why does checkout fail?",
            "user: eu-1 was restarted.",
            "user: Is it stable?",
            "assistant: Yes.",
        ]
    );
}

#[test]
fn messages_of_the_user_survive_any_number_of_old_compactions() {
    let summary =
        |text: &str| format!(r#"{{"type":"compacted","payload":{{"message":"{text}"}}}}"#);
    let says = r#"{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"x"}]}}"#;
    let lines = [
        user("a"),
        says.into(),
        summary("s1"),
        user("b"),
        says.into(),
        summary("s2"),
        user("c"),
        summary("s3"),
        back(2),
        user("d"),
        says.into(),
        summary("s4"),
    ];
    let replay = imported(&lines.join("\n"), CODEX);
    only(&replay).verify().unwrap();
    let expected = ["user: a", "user: s1", "user: b", "user: s2", "user: d", "user: s4"];
    assert_eq!(texts_by_role(only(&replay)), expected);
}

#[test]
fn every_step_of_a_rollout_is_a_version() {
    let replay = imported(&corpus("rollout.jsonl"), CODEX);
    let conversation = only(&replay);
    let kinds: Vec<&str> = conversation.versions().map(|info| info.operation.as_str()).collect();
    assert_eq!(
        kinds,
        ["CREATE", "APPEND", "APPEND", "APPEND", "ROLLBACK", "APPEND", "LIST", "APPEND"]
    );
    let at = |version: u32| texts_by_role(&conversation.at(Version(version)).unwrap());
    assert_eq!(at(3).last().unwrap(), "assistant: Really?");
    assert_eq!(at(4), at(2));
    assert_eq!(
        at(5),
        [
            "system: Sandbox rules",
            "user: <environment_context>",
            "user: Why does checkout fail?",
            "assistant: ",
            r#"assistant: shell {"command":["cat","log"]}"#,
            r#"tool: {"output":"slow","metadata":{"exit_code":0}}"#,
            "assistant: eu-1 is slow.",
            "user: Restart eu-1 only",
            r#"assistant: apply_patch "*** Begin Patch""#,
            "tool: ok",
            "assistant: ",
        ]
    );
    let answer: serde_json::Value = serde_json::from_str(log(&replay)[6].json()).unwrap();
    assert_eq!(answer["metadata"]["source"]["model"], "gpt-5-codex");
    assert_eq!(answer["metadata"]["source"]["provider"], "openai");
}

#[test]
fn every_line_is_exported_byte_for_byte() {
    for name in ["rollout.jsonl", "old_compaction.jsonl"] {
        let text = corpus(name);
        let replay = imported(&text, CODEX);
        let envelope = replay.conversations[0].envelope.as_deref();
        let container = envelope.map_or(Container::Lines, Container::Envelope);
        assert_eq!(exported_log(&log(&replay), CODEX, container), text, "{name}");
    }
}

#[test]
#[cfg(feature = "zstd")]
fn compressed_rollouts_are_recognised_and_read() {
    let text = corpus("rollout.jsonl");
    let packed = zstd::encode_all(text.as_bytes(), 3).unwrap();
    let mut collected = Collected::default();
    let format = import(&packed, None, &ImportOptions::default(), &mut collected).unwrap();
    assert_eq!(format, CODEX);
    let mut plain = Collected::default();
    import(&*text, None, &ImportOptions::default(), &mut plain).unwrap();
    assert_eq!(collected.steps, plain.steps);
}

#[test]
#[cfg(feature = "zstd")]
fn a_decompression_bomb_is_rejected() {
    let packed =
        zstd::encode_all(std::io::Read::take(std::io::repeat(b'\n'), 64 << 20), 3).unwrap();
    let mut sink = Collected::default();
    let error = import(&packed, Some(CODEX), &ImportOptions::default(), &mut sink).unwrap_err();
    assert!(matches!(error, recto_format::Error::TooLarge { .. }), "{error}");
}

#[test]
fn an_old_compaction_keeps_messages_of_the_user() {
    let replay = imported(&corpus("old_compaction.jsonl"), CODEX);
    assert_eq!(texts_by_role(only(&replay)), ["user: One", "user: They counted.", "user: Three"]);
}

#[test]
fn turns_are_rolled_back_across_compactions() {
    let last = |lines: &[String]| {
        let replay = imported(&lines.join("\n"), CODEX);
        assert_eq!(replay.warnings, []);
        texts_by_role(only(&replay))
    };
    assert_eq!(
        last(&[user("a"), user("b"), user("c"), back(2), user("d")]),
        ["user: a", "user: d"]
    );
    assert_eq!(last(&[user("a"), back(9), user("b")]), ["user: b"]);
    assert_eq!(last(&[back(1), user("b"), back(0)]), ["user: b"]);
    let context = user("<environment_context>x");
    assert_eq!(
        last(&[user("a"), context.clone(), back(1)]),
        Vec::<String>::new(),
        "a message of the program is not a turn"
    );
    // Into the history of a compaction.
    let lines = [user("a"), compacted(&["a", "sum"]), user("b"), back(2), user("c")];
    assert_eq!(last(&lines), ["user: a", "user: c"]);
    let lines =
        [user("a"), user("b"), compacted(&["sum"]), back(1), compacted(&["x", "y"]), user("c")];
    assert_eq!(last(&lines), ["user: x", "user: y", "user: c"]);
}

#[test]
fn unreadable_lines_are_reported_and_the_rest_is_imported() {
    let lines = [
        r#"{"type":"session_meta","payload":{"id":"x","history_base":{"path":"/other"}}}"#
            .to_owned(),
        user("a"),
        "{\"type\":".to_owned(),
        r#"{"type":"response_item","payload":{"type":"function_call","name":"f"}}"#.to_owned(),
        r#"{"type":"compacted","payload":{"replacement_history":[{"role":"wizard"}]}}"#.to_owned(),
        "7".to_owned(),
        user("b"),
    ];
    let replay = imported(&lines.join("\n"), CODEX);
    let places: Vec<(u64, &str)> =
        replay.warnings.iter().map(|warning| (warning.line, &*warning.field)).collect();
    assert_eq!(
        places,
        [
            (1, "payload.history_base"),
            (3, ""),
            (4, "payload.call_id"),
            (5, "payload.replacement_history[0].role"),
            (6, ""),
        ]
    );
    assert_eq!(texts_by_role(only(&replay)), ["user: b"]);
}

#[test]
fn the_oldest_rollouts_have_items_without_an_envelope() {
    let file = concat!(
        r#"{"id":"x","timestamp":"2025-05-01T10:00:00.000Z","instructions":null}"#,
        "\n",
        r#"{"record_type":"state"}"#,
        "\n",
        r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"a"}]}"#,
        "\n",
    );
    let replay = imported(file, CODEX);
    assert_eq!(texts_by_role(only(&replay)), ["user: a"]);
    assert_eq!(exported_log(&log(&replay), CODEX, Container::Lines), file);
}

#[test]
fn messages_that_were_not_imported_are_exported_as_items() {
    let messages = [Message::user("a"), Message::tool_result("c", "done")];
    let mut file = Vec::new();
    export(&messages, CODEX, &Default::default(), &mut file).unwrap();
    let file = String::from_utf8(file).unwrap();
    let replay = imported(&file, CODEX);
    assert_eq!(replay.warnings, []);
    assert_eq!(texts_by_role(only(&replay)), ["user: a", "tool: done"]);
}

#[test]
fn steps_of_a_long_rollout_are_emitted_before_its_end() {
    let lines: Vec<String> = (0..10).map(|number| user(&number.to_string())).collect();
    let mut collected = Collected::default();
    import(&*lines.join("\n"), Some(CODEX), &ImportOptions::default(), &mut collected).unwrap();
    let appends = collected.steps.iter().filter(|step| matches!(step, Step::Append(_))).count();
    assert_eq!(appends, 10, "every turn is a version");
}

#[test]
fn a_long_text_or_output_is_not_stored_twice() {
    let long = "eu-1 is slow. ".repeat(100);
    let output = format!(
        r#"{{"timestamp":"2026-05-01T10:00:00.000Z","type":"response_item","payload":{{"type":"function_call_output","call_id":"a","output":"{long}"}}}}"#
    );
    let bare =
        format!(r#"{{"type":"response_item","payload":{{"role":"user","content":"{long}"}}}}"#);
    let lines = [user(&long), output, bare];
    let replay = imported(&lines.join("\n"), CODEX);
    assert!(log(&replay).iter().all(|message| message.json().len() < 2 * long.len()));
    let written = exported_log(&log(&replay), CODEX, Container::Lines);
    assert_eq!(written.lines().collect::<Vec<_>>(), lines);
}

#[test]
fn lines_of_another_format_are_reported_and_exported() {
    let chat = r#"{"messages":[{"role":"user","content":"hi"}]}"#;
    let file = [chat.to_owned(), user("a"), chat.to_owned()].join("\n");
    let replay = imported(&file, Format::Codex);
    let places: Vec<(u64, &str)> =
        replay.warnings.iter().map(|warning| (warning.line, &*warning.field)).collect();
    assert_eq!(places, [(1, "type"), (3, "type")]);
    let container = replay.conversations[0].container();
    assert_eq!(exported_log(&log(&replay), Format::Codex, container).trim_end(), file);
}

/// codex reads only lists, and requires a valid time.
#[test]
fn a_message_that_was_not_imported_is_exported_with_a_list_and_a_time() {
    let view = [Message::user("One"), Message::assistant("Two")];
    let written = |times: &[i64]| {
        let mut file = Vec::new();
        let options = ExportOptions { times, ..ExportOptions::default() };
        export(&view, Format::Codex, &options, &mut file).unwrap();
        String::from_utf8(file).unwrap()
    };
    assert_eq!(
        written(&[1_777_629_600_250, 1_777_629_601_000]),
        r#"{"timestamp":"2026-05-01T10:00:00.250Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"One"}]}}
{"timestamp":"2026-05-01T10:00:01.000Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Two"}]}}
"#
    );
    assert!(!written(&[]).contains("timestamp"), "the time is not known");
}

#[test]
fn events_are_messages_in_a_rollout_without_items() {
    let event = |kind: &str, text: &str| {
        format!(
            r#"{{"timestamp":"2026-05-01T10:00:00.000Z","type":"event_msg","payload":{{"type":"{kind}","message":"{text}"}}}}"#
        )
    };
    let lines = [
        r#"{"timestamp":"2026-05-01T10:00:00.000Z","type":"session_meta","payload":{"id":"s"}}"#
            .to_owned(),
        event("user_message", "q"),
        event("agent_message", "a"),
        event("token_count", "b"),
    ];
    let file = lines.join("\n") + "\n";
    let replay = imported(&file, CODEX);
    assert_eq!(replay.warnings, []);
    assert_eq!(texts_by_role(only(&replay)), ["user: q", "assistant: a"]);
    assert_eq!(exported_log(&log(&replay), CODEX, Container::Lines), file);
    // If a new message is exported, which is an item, the events are exported as items too.
    let mut longer = log(&replay);
    longer.push(Message::user("more"));
    let replay = imported(&exported_log(&longer, CODEX, Container::Lines), CODEX);
    assert_eq!(texts_by_role(only(&replay)), ["user: q", "assistant: a", "user: more"]);
    // In a file with an item, the events only repeat items.
    let replay = imported(&(file + &user("item") + "\n"), CODEX);
    assert_eq!(texts_by_role(only(&replay)), ["user: item"]);
}
