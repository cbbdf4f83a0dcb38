//! Claude Code sessions: every state of the session is a version.

use recto_core::{Conversation, Message, Role, Version};
use recto_format::{Container, ExportOptions, Format, export};
use serde_json::{Value, json};

use crate::files::{exported, exported_log, imported};

const CODE: Format = Format::ClaudeCode;

fn session() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/claude-code/session.jsonl");
    std::fs::read_to_string(path).unwrap()
}

/// Role and first line of each visible message.
fn texts_by_role(conversation: &Conversation) -> Vec<String> {
    let describe = |message: &Message| {
        let text = message.text();
        format!("{}: {}", message.role().as_str(), text.lines().next().unwrap_or_default())
    };
    conversation.messages().map(describe).collect()
}

/// A line of a session with its uuid, the uuid of its parent, and its message.
fn line(uuid: &str, parent: &str, kind: &str, message: &str) -> String {
    let parent = if parent.is_empty() { "null".to_owned() } else { format!("\"{parent}\"") };
    format!(
        r#"{{"parentUuid":{parent},"isSidechain":false,"sessionId":"s","type":"{kind}","message":{message},"uuid":"{uuid}"}}"#
    )
}

fn user_line(uuid: &str, parent: &str, text: &str) -> String {
    line(uuid, parent, "user", &format!(r#"{{"role":"user","content":"{text}"}}"#))
}

fn call_line(uuid: &str, parent: &str, response: &str, id: &str) -> String {
    let block = format!(r#"{{"type":"tool_use","id":"{id}","name":"f","input":{{}}}}"#);
    let message = format!(r#"{{"id":"{response}","role":"assistant","content":[{block}]}}"#);
    line(uuid, parent, "assistant", &message)
}

fn result_line(uuid: &str, parent: &str, id: &str) -> String {
    let block = format!(r#"{{"type":"tool_result","tool_use_id":"{id}","content":"of {id}"}}"#);
    line(uuid, parent, "user", &format!(r#"{{"role":"user","content":[{block}]}}"#))
}

fn last_view(lines: &[String]) -> Vec<String> {
    let replay = imported(&lines.join("\n"), CODE);
    assert_eq!(replay.warnings, []);
    texts_by_role(&replay.conversations[0].branches[0].conversation)
}

#[test]
fn the_last_view_is_the_one_from_which_claude_code_would_continue() {
    let replay = imported(&session(), CODE);
    let [replayed] = &replay.conversations[..] else { panic!("one conversation") };
    assert_eq!(replayed.start.name.as_deref(), Some("eu-1 restarted"));
    let main = &replayed.branches[0].conversation;
    main.verify().unwrap();
    assert_eq!(
        texts_by_role(main),
        [
            "user: This session is being continued from a previous conversation. eu-1 was restarted.",
            "user: Is it stable?",
            "assistant: Yes.",
        ]
    );
}

#[test]
fn rewinds_compactions_and_replacements_are_versions() {
    let replay = imported(&session(), CODE);
    let main = &replay.conversations[0].branches[0].conversation;
    let kinds: Vec<&str> = (1..=main.version().0)
        .map(|version| main.version_info(Version(version)).unwrap().operation.as_str())
        .collect();
    assert_eq!(
        kinds,
        [
            // the question, thinking, a text, a call and its result
            "APPEND", "APPEND", "APPEND", "APPEND", "APPEND",
            // the second call of the same response, its result, the answer
            "INSERT", "APPEND", "APPEND",
            // the wrong question and its answer, rolled back
            "APPEND", "APPEND", "ROLLBACK", "APPEND", "APPEND", "REPLACE", "APPEND", "COMPRESS",
            "APPEND", "APPEND",
        ]
    );
    let before_rewind = main.at(Version(10)).unwrap();
    assert_eq!(texts_by_role(&before_rewind).last().unwrap(), "assistant: Really?");
    let before_compaction = main.at(Version(15)).unwrap();
    assert_eq!(
        texts_by_role(&before_compaction),
        [
            "user: Why does checkout fail?",
            "assistant: ",
            "assistant: I read both logs.",
            r#"assistant: Read {"file_path":"/var/log/eu-1"}"#,
            r#"assistant: Read {"file_path":"/var/log/eu-2"}"#,
            "tool: <persisted-output>eu-1 log</persisted-output>",
            "tool: eu-2 fine",
            "assistant: eu-1 is slow.",
            "user: Restart eu-1 only",
            "assistant: It is back.",
            "user: <local-command-caveat>Caveat</local-command-caveat>",
        ]
    );
    let first = main.log().iter().next().unwrap();
    assert_eq!(first.message.timestamp(), Some(1_777_629_600_000));
}

#[test]
fn a_sidechain_is_a_fork_that_starts_empty() {
    let replay = imported(&session(), CODE);
    let [_, fork] = &replay.conversations[0].branches[..] else { panic!("there is one fork") };
    assert_eq!(fork.name, "a1");
    assert_eq!(
        texts_by_role(&fork.conversation),
        ["user: Look at the gateway", "assistant: The gateway is fine."]
    );
}

#[test]
fn lines_without_a_message_are_reported_by_line() {
    let replay = imported(&session(), CODE);
    let places: Vec<(u64, &str)> =
        replay.warnings.iter().map(|warning| (warning.line, &*warning.field)).collect();
    assert_eq!(places, [(4, ""), (25, "uuid")]);
}

#[test]
fn a_session_that_starts_with_its_title_has_an_id_and_a_time() {
    let text = session();
    assert!(text.starts_with(r#"{"type":"summary""#), "no sessionId and no time in the first line");
    let replay = imported(&text, CODE);
    let start = &replay.conversations[0].start;
    assert_eq!(start.id.as_deref(), Some("5e551011-0000-4000-8000-000000000000"));
    assert_eq!(
        start.created,
        replay.conversations[0].branches[0]
            .conversation
            .log()
            .iter()
            .next()
            .and_then(|first| first.message.timestamp())
    );
    assert!(start.created.is_some());

    let title = r#"{"type":"custom-title","customTitle":"Alone","sessionId":"s1"}"#;
    let alone = imported(title, CODE);
    let [only] = &alone.conversations[..] else { panic!("{alone:?}") };
    assert_eq!((only.start.name.as_deref(), only.start.id.as_deref()), (Some("Alone"), Some("s1")));
    let container = Container::Envelope(only.envelope.as_deref().unwrap());
    assert_eq!(exported(&[], CODE, container), format!("{title}\n"));
}

#[test]
fn every_line_is_exported_byte_for_byte() {
    let text = session();
    let replay = imported(&text, CODE);
    let replayed = &replay.conversations[0];
    let container = replayed.container();
    let log = |branch: usize| -> Vec<Message> {
        replayed.branches[branch]
            .conversation
            .log()
            .iter()
            .map(|entry| entry.message.clone())
            .collect()
    };
    let is_side = |line: &&str| line.contains("\"isSidechain\":true");
    let main: Vec<&str> = text.lines().filter(|line| !is_side(line)).collect();
    let written = exported_log(&log(0), CODE, container);
    assert_eq!(written.lines().collect::<Vec<_>>(), main);
    let side: Vec<&str> = text.lines().filter(is_side).collect();
    let written = exported_log(&log(1), CODE, Container::Lines);
    assert_eq!(written.lines().collect::<Vec<_>>(), side);
}

#[test]
fn an_edited_session_is_written_as_a_chain_without_gaps() {
    let lines = [user_line("1", "", "a"), user_line("2", "1", "b"), user_line("3", "2", "c")];
    let replay = imported(&lines.join("\n"), CODE);
    let mut messages: Vec<Message> =
        replay.conversations[0].branches[0].conversation.messages().cloned().collect();
    messages.remove(1);
    messages.push(Message::assistant("d"));
    let written = exported(&messages, CODE, Container::Lines);
    let again = imported(&written, CODE);
    assert_eq!(again.warnings, []);
    assert_eq!(
        texts_by_role(&again.conversations[0].branches[0].conversation),
        ["user: a", "user: c", "assistant: d"]
    );
    assert_eq!(
        again.conversations[0].branches[0].conversation.version(),
        Version(3),
        "there is no rewind"
    );
}

#[test]
fn pieces_of_a_response_stay_together_in_any_order_of_results() {
    let expected = [
        "user: q",
        "assistant: f {}",
        "assistant: f {}",
        "tool: of x",
        "tool: of y",
        "user: thanks",
    ];
    let (q, x, y) =
        (user_line("q", "", "q"), call_line("x", "q", "m", "x"), call_line("y", "x", "m", "y"));
    let (rx, ry) = (result_line("rx", "x", "x"), result_line("ry", "y", "y"));
    for order in [
        vec![
            q.clone(),
            x.clone(),
            rx.clone(),
            y.clone(),
            ry.clone(),
            user_line("t", "ry", "thanks"),
        ],
        vec![
            q.clone(),
            x.clone(),
            y.clone(),
            rx.clone(),
            ry.clone(),
            user_line("t", "ry", "thanks"),
        ],
        vec![q, x, y, rx, ry, user_line("t", "rx", "thanks")],
    ] {
        assert_eq!(last_view(&order), expected);
    }
}

#[test]
fn a_child_of_an_inserted_piece_follows_it() {
    let lines = [
        user_line("u", "", "go"),
        call_line("a0", "u", "m", "c0"),
        result_line("r0", "a0", "c0"),
        call_line("a1", "a0", "m", "c1"),
        call_line("a2", "a1", "m", "c2"),
        result_line("r1", "a1", "c1"),
        result_line("r2", "a2", "c2"),
    ];
    let replay = imported(&lines.join("\n"), CODE);
    let conversation = &replay.conversations[0].branches[0].conversation;
    let roles: Vec<&str> = conversation.messages().map(|message| message.role().as_str()).collect();
    let expected = ["user", "assistant", "assistant", "assistant", "tool", "tool", "tool"];
    assert_eq!(roles, expected);
}

#[test]
fn a_text_that_looks_like_json_between_strings_is_kept_as_text() {
    let space = " ".repeat(130);
    let file = format!(
        r#"{{"type":"user","parentUuid":null,"a":"v",{space}"uuid":"u","message":{{"role":"user","content":",{space}"}}}}"#
    );
    let replay = imported(&file, CODE);
    let messages: Vec<Message> =
        replay.conversations[0].branches[0].conversation.messages().cloned().collect();
    serde_json::from_str::<serde_json::Value>(messages[0].json()).unwrap();
    assert_eq!(messages[0].text(), format!(",{space}"));
    assert_eq!(exported(&messages, CODE, Container::Lines).trim_end(), file);
}

#[test]
fn a_retried_answer_replaces_the_first_one() {
    let answer_line = |uuid: &str, response: &str, text: &str| {
        let message = format!(
            r#"{{"id":"{response}","role":"assistant","content":[{{"type":"text","text":"{text}"}}]}}"#
        );
        line(uuid, "q", "assistant", &message)
    };
    let lines = [
        user_line("q", "", "q"),
        answer_line("a", "m1", "first"),
        answer_line("b", "m2", "second"),
    ];
    assert_eq!(last_view(&lines), ["user: q", "assistant: second"]);
}

#[test]
fn a_second_root_hides_all_earlier_messages() {
    assert_eq!(last_view(&[user_line("1", "", "a"), user_line("2", "", "b")]), ["user: b"]);
}

#[test]
fn messages_that_a_compaction_preserves_follow_the_summary() {
    let boundary = r#"{"parentUuid":null,"logicalParentUuid":"3","type":"system","subtype":"compact_boundary","compactMetadata":{"preservedMessages":{"anchorUuid":"s","uuids":["2","3"]}},"uuid":"c"}"#;
    let summary =
        user_line("s", "c", "in short").replace("\"type\"", "\"isCompactSummary\":true,\"type\"");
    let lines = [
        user_line("1", "", "a"),
        user_line("2", "1", "b"),
        user_line("3", "2", "c"),
        boundary.to_owned(),
        summary,
        user_line("4", "3", "d"),
    ];
    assert_eq!(last_view(&lines), ["user: in short", "user: b", "user: c", "user: d"]);
    // A rewind to a preserved line keeps the summary.
    let mut lines = lines.to_vec();
    lines.push(user_line("5", "3", "e"));
    assert_eq!(last_view(&lines), ["user: in short", "user: b", "user: c", "user: e"]);
    // A rewind to any other line restores the messages before the compaction.
    lines.push(user_line("6", "1", "f"));
    assert_eq!(last_view(&lines), ["user: a", "user: f"]);
}

#[test]
fn a_segment_that_a_compaction_preserves_follows_the_summary() {
    let boundary = r#"{"parentUuid":null,"logicalParentUuid":"4","type":"system","subtype":"compact_boundary","compactMetadata":{"trigger":"auto","preservedSegment":{"headUuid":"HEAD","anchorUuid":"s","tailUuid":"TAIL"}},"uuid":"c"}"#;
    let summary =
        user_line("s", "c", "in short").replace("\"type\"", "\"isCompactSummary\":true,\"type\"");
    let progress = r#"{"type":"progress","parentUuid":"1","uuid":"p"}"#;
    let compacted = |head: &str, tail: &str| {
        vec![
            user_line("1", "", "a"),
            progress.to_owned(),
            call_line("2", "p", "m", "x"),
            result_line("3", "2", "x"),
            user_line("4", "3", "b"),
            boundary.replace("HEAD", head).replace("TAIL", tail),
            summary.clone(),
            user_line("5", tail, "c"),
        ]
    };
    let short = "user: in short";
    let whole = [short, "assistant: f {}", "tool: of x", "user: b", "user: c"];
    assert_eq!(last_view(&compacted("2", "4")), whole);
    // A line without a message can be the first one.
    assert_eq!(last_view(&compacted("p", "4")), whole);
    assert_eq!(last_view(&compacted("4", "4")), [short, "user: b", "user: c"]);
    // A rewind to a preserved line keeps the summary.
    let mut lines = compacted("2", "4");
    lines.push(user_line("6", "4", "d"));
    assert_eq!(last_view(&lines), [&whole[..4], &["user: d"]].concat());
    // An unknown line preserves nothing, and its child follows the summary.
    let replay = imported(&compacted("2", "nowhere").join("\n"), CODE);
    assert_eq!(
        texts_by_role(&replay.conversations[0].branches[0].conversation),
        [short, "user: c"]
    );
}

#[test]
fn a_boundary_without_a_summary_hides_all_earlier_messages() {
    let boundary = r#"{"parentUuid":null,"type":"system","subtype":"compact_boundary","uuid":"c"}"#;
    let lines = [user_line("1", "", "a"), boundary.to_owned(), user_line("2", "c", "b")];
    assert_eq!(last_view(&lines), ["user: b"]);
}

#[test]
fn the_file_of_a_subagent_is_a_separate_conversation() {
    let side = |text: String| text.replace("\"isSidechain\":false", "\"isSidechain\":true");
    let replay =
        imported(&[side(user_line("1", "", "a")), side(user_line("2", "1", "b"))].join("\n"), CODE);
    assert_eq!(replay.conversations[0].branches.len(), 1);
    assert_eq!(
        texts_by_role(&replay.conversations[0].branches[0].conversation),
        ["user: a", "user: b"]
    );
}

#[test]
fn malformed_and_unknown_lines_are_reported_and_the_rest_is_read() {
    let api_error = line("e", "1", "assistant", r#"{"role":"assistant","content":"API Error"}"#)
        .replace("\"type\"", "\"isApiErrorMessage\":true,\"type\"");
    let lines = [
        user_line("1", "", "a"),
        "{\"type\":\"user\",\"uuid".to_owned(),
        api_error,
        line("2", "e", "user", r#"{"role":"wizard","content":"b"}"#),
        "[1]".to_owned(),
        r#"{"type":"hologram"}"#.to_owned(),
        user_line("3", "9", "c"),
        user_line("4", "2", "d"),
    ];
    let replay = imported(&lines.join("\n"), CODE);
    let places: Vec<(u64, &str)> =
        replay.warnings.iter().map(|warning| (warning.line, &*warning.field)).collect();
    assert_eq!(
        places,
        [(2, ""), (3, ""), (4, "message.role"), (5, ""), (6, "type"), (7, "parentUuid")]
    );
    assert_eq!(
        texts_by_role(&replay.conversations[0].branches[0].conversation),
        ["user: a", "user: d"]
    );
}

#[test]
fn thinking_keeps_its_signature_and_its_model() {
    let replay = imported(&session(), CODE);
    let main = &replay.conversations[0].branches[0].conversation;
    let thought = &main.log().iter().nth(1).unwrap().message;
    assert_eq!(thought.role(), Role::Assistant);
    let json: serde_json::Value = serde_json::from_str(thought.json()).unwrap();
    assert_eq!(json["content"][0]["signature"], "EqQBCgYIAxgCIkA+/w==");
    assert_eq!(json["metadata"]["source"]["model"], "claude-sonnet-4-5");
    assert_eq!(json["metadata"]["source"]["provider"], "anthropic");
}

#[test]
fn a_long_content_is_not_stored_twice() {
    let long = "eu-1 is slow. ".repeat(100);
    let result = format!(r#"[{{"type":"tool_result","tool_use_id":"a","content":"{long}"}}]"#);
    let lines = [
        user_line("1", "", &long),
        line("2", "1", "user", &format!(r#"{{"role":"user","content":{result}}}"#)),
        line(
            "3",
            "2",
            "user",
            &format!(r#"{{"role":"user","content":[{{"type":"text","text":"{long}"}}]}}"#),
        ),
        // Another layout, and a converted block whose whole line is stored.
        line(
            "4",
            "3",
            "user",
            &format!(
                r#"{{"role":"user","content":[ {{"type":"tool_result","tool_use_id":"b","content":"{long}"}}]}}"#
            ),
        ),
        line(
            "5",
            "4",
            "assistant",
            &format!(
                r#"{{"role":"assistant","content":[{{"type":"thinking","thinking":"{long}","signature":"x"}}]}}"#
            ),
        ),
    ];
    let replay = imported(&lines.join("\n"), CODE);
    let messages: Vec<Message> =
        replay.conversations[0].branches[0].conversation.messages().cloned().collect();
    let sizes: Vec<bool> = messages.iter().map(|it| it.json().len() < 2 * long.len()).collect();
    assert_eq!(sizes, [true, true, true, true, false]);
    let written = exported(&messages, CODE, Container::Lines);
    assert_eq!(written.lines().collect::<Vec<_>>(), lines);
}

#[test]
fn a_message_that_was_not_imported_has_its_given_time_or_none() {
    let view = [
        Message::user("One"),
        Message::from_json(r#"{"role":"assistant","content":"Two","timestamp":1777629600250}"#)
            .unwrap(),
        Message::user("Three"),
    ];
    let times = |given: &[i64]| -> Vec<Value> {
        let mut file = Vec::new();
        let options = ExportOptions { times: given, ..ExportOptions::default() };
        export(&view, Format::ClaudeCode, &options, &mut file).unwrap();
        let file = String::from_utf8(file).unwrap();
        file.lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["timestamp"].clone())
            .collect()
    };
    let own = json!("2026-05-01T10:00:00.250Z");
    assert_eq!(times(&[]), [Value::Null, own.clone(), Value::Null]);
    let one = json!("2026-05-01T09:59:59.000Z");
    assert_eq!(times(&[1_777_629_599_000, 5]), [one, own, Value::Null]);
}

/// A placeholder replaces an unreadable block; the other blocks of the line are imported.
#[test]
fn the_readable_blocks_of_a_line_are_imported() {
    let line = r#"{"parentUuid":null,"isSidechain":false,"sessionId":"s","type":"assistant","uuid":"a","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"I look."},{"type":"tool_use","name":"f","input":{}}]}}"#;
    let replay = imported(line, Format::ClaudeCode);
    let conversation = &replay.conversations[0].branches[0].conversation;
    assert_eq!(
        conversation.messages().map(|it| it.text().into_owned()).collect::<Vec<_>>(),
        ["I look."]
    );
    let [warning] = &replay.warnings[..] else { panic!("{:?}", replay.warnings) };
    assert_eq!((warning.line, &*warning.field), (1, "message.content[1].id"));
    let messages: Vec<Message> = conversation.messages().cloned().collect();
    assert_eq!(exported_log(&messages, Format::ClaudeCode, Container::List), format!("{line}\n"));
}

#[test]
fn a_line_before_its_parent_is_imported_after_it() {
    let file = [
        user_line("a", "", "One"),
        user_line("c", "b", "Three"),
        user_line("d", "c", "Four"),
        user_line("b", "a", "Two"),
        user_line("e", "d", "Five"),
    ];
    let replay = imported(&file.join("\n"), CODE);
    assert_eq!(replay.warnings, []);
    let conversation = &replay.conversations[0].branches[0].conversation;
    let texts: Vec<String> = conversation.messages().map(|it| it.text().into_owned()).collect();
    assert_eq!(texts, ["One", "Two", "Three", "Four", "Five"]);
    // Two lines whose parent uuids form a cycle are imported.
    let cycle = [user_line("a", "b", "One"), user_line("b", "a", "Two")];
    let replay = imported(&cycle.join("\n"), CODE);
    let conversation = &replay.conversations[0].branches[0].conversation;
    assert_eq!(conversation.log().len(), 2);
}

#[test]
fn a_repeated_uuid_with_another_message_is_another_branch() {
    let file = [
        user_line("a", "", "One"),
        user_line("b", "a", "Two"),
        user_line("b", "a", "Two"),
        user_line("b", "a", "Two, better"),
        user_line("c", "b", "Three"),
    ];
    let replay = imported(&file.join("\n"), CODE);
    let warnings: Vec<(u64, &str)> =
        replay.warnings.iter().map(|it| (it.line, it.message.as_str())).collect();
    assert_eq!(
        warnings,
        [
            (3, "skipped: a duplicate of an earlier line"),
            (4, "an earlier line has the same uuid and another message; both are imported"),
        ]
    );
    let conversation = &replay.conversations[0].branches[0].conversation;
    let texts: Vec<String> = conversation.messages().map(|it| it.text().into_owned()).collect();
    assert_eq!(texts, ["One", "Two, better", "Three"]);
    assert_eq!(conversation.log().len(), 4, "the replaced message is in the log");
}
