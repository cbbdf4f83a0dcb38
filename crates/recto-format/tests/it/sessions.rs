//! Sessions of agents: records, some of which contain messages.

use std::fs;
use std::path::Path;

use recto_core::{Append, Compress, Delete, Insert, LogIndex, Message, Position, Role};
use recto_format::{Container, Error, Format, ImportOptions, MessageParts, Part, Replay, import};
use serde_json::json;

use crate::files::{exported, exported_log, imported, visible};

/// The formats that `session.rs` reads.
const SESSIONS: [Format; 9] = [
    Format::ClaudeStream,
    Format::Pi,
    Format::OpenHands,
    Format::GeminiResponses,
    Format::GeminiCli,
    Format::QwenCode,
    Format::OpenCode,
    Format::Copilot,
    Format::LibreChat,
];

/// True if a format is not a list of messages.
pub(crate) fn is_session(format: Format) -> bool {
    SESSIONS.contains(&format)
        || matches!(format, Format::ClaudeCode | Format::Codex | Format::ChatGpt)
}

fn corpus() -> Vec<(Format, String, String)> {
    let mut files = Vec::new();
    for format in SESSIONS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(format.name());
        for file in fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            let text = fs::read_to_string(&path).unwrap();
            files.push((format, path.display().to_string(), text));
        }
    }
    files
}

fn file(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(name);
    fs::read_to_string(path).unwrap()
}

fn logs(replay: &Replay) -> Vec<Vec<Message>> {
    let branches = replay.conversations.iter().flat_map(|replayed| &replayed.branches);
    let log = |branch: &recto_format::Branch| {
        branch.conversation.log().iter().map(|entry| entry.message.clone()).collect()
    };
    branches.map(log).collect()
}

/// Messages as `role: text`, with `call ID` and `result ID`.
fn shown(messages: &[Message]) -> Vec<String> {
    let part = |part: &Part<'_>| match *part {
        Part::Text { text, .. } => text.text().into_owned(),
        Part::Thinking { text, .. } => format!("thinks {}", text.text()),
        Part::ToolUse { id, name, input, .. } => {
            format!("call {} {} {input}", id.text(), name.text())
        }
        Part::ToolResult { id, content, is_error, .. } => {
            let failed = if is_error { " failed" } else { "" };
            format!("result {}{failed} {}", id.text(), content.unwrap_or_default())
        }
        Part::Media(media) => format!("{:?}", media.kind),
        _ => "other".to_owned(),
    };
    let message = |message: &Message| {
        let parts = MessageParts::of(message);
        let texts: Vec<String> = parts.parts.iter().map(part).collect();
        format!("{}: {}", message.role().as_str(), texts.join(" | "))
    };
    messages.iter().map(message).collect()
}

/// A text without the numbers of generated ids, which depend on the position of their message.
fn without_generated_ids(text: &str) -> String {
    let mut parts = text.split("gemini_call_");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str("gemini_call");
        out.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit() || c == '_'));
    }
    out
}

fn shown_file(name: &str, format: Format) -> Vec<String> {
    let replay = imported(&file(name), format);
    shown(&visible(&replay.conversations[0]))
}

#[test]
fn a_session_is_exported_byte_for_byte() {
    for (format, path, text) in corpus() {
        let replay = imported(&text, format);
        let written: String =
            logs(&replay).iter().map(|log| exported_log(log, format, Container::List)).collect();
        assert_eq!(written, text, "{path}");
    }
}

#[test]
fn only_unknown_records_and_other_branches_are_reported() {
    for (format, path, text) in corpus() {
        let replay = imported(&text, format);
        let warnings: Vec<&str> = replay.warnings.iter().map(|warning| &*warning.message).collect();
        let expected: &[&str] = match path {
            _ if path.ends_with("pi/session.jsonl") => {
                &[r#"records of type "future_kind": preserved for export, not messages"#]
            }
            _ if path.ends_with("librechat/nested.json") => {
                &["the newest branch is imported; the others are preserved for export"]
            }
            _ => &[],
        };
        assert_eq!(warnings, expected, "{path}");
    }
}

/// Edits of every view: the exported file, imported again, shows the same messages.
#[test]
fn an_edited_view_is_exported_and_read_again() {
    for (format, path, text) in corpus() {
        let replay = imported(&text, format);
        let whole = &replay.conversations[0].branches[0].conversation;
        let view: Vec<LogIndex> = whole.view().iter().collect::<Vec<_>>();
        let new = || Message::new(Role::User, "Something else.").unwrap();
        let mut edited = vec![whole.clone()];
        for &index in &view {
            edited.push(whole.apply(Delete { indices: vec![index] }, 0).unwrap().0);
            let compress = Compress { indices: vec![index], summary: Some(new()) };
            edited.push(whole.apply(compress, 0).unwrap().0);
        }
        for position in 0..=view.len() {
            let insert = Insert { position: Position(position), messages: vec![new()] };
            edited.push(whole.apply(insert, 0).unwrap().0);
        }
        edited.push(whole.apply(Append { messages: vec![new()] }, 0).unwrap().0);
        for conversation in edited {
            let messages: Vec<Message> = conversation.messages().cloned().collect();
            let written = exported(&messages, format, Container::List);
            let again = imported(&written, format);
            let read = again.conversations.first().map(visible).unwrap_or_default();
            let texts = |messages: &[Message]| without_generated_ids(&shown(messages).join("\n"));
            assert_eq!(texts(&read), texts(&messages), "{path}\n{written}");
        }
    }
}

#[test]
fn a_truncated_session_keeps_its_whole_lines() {
    for (format, path, text) in corpus().into_iter().filter(|(_, path, _)| path.ends_with('l')) {
        let cut = text.trim_end().len() - 5;
        let (kept, _) = text[..cut].rsplit_once('\n').unwrap();
        let replay = imported(&text[..cut], format);
        let last = replay.warnings.last().map(|warning| &*warning.message).unwrap_or_default();
        assert!(last.starts_with("skipped: "), "{path}: {last}");
        let written: String =
            logs(&replay).iter().map(|log| exported_log(log, format, Container::List)).collect();
        assert_eq!(written.trim_end(), kept, "{path}");
    }
}

#[test]
fn an_empty_file_has_no_format() {
    for empty in ["", " \n", "{}"] {
        let read =
            import(empty, None, &ImportOptions::default(), &mut recto_format::Collected::default());
        assert!(matches!(read, Err(Error::UnknownFormat { .. })), "{empty:?}: {read:?}");
    }
}

#[test]
fn pi_branches_compactions_and_commands() {
    assert_eq!(
        shown_file("pi/session.jsonl", Format::Pi),
        [
            "user: The user asked about the checkout.",
            "user: Another way, please.",
            "user: Ran `uptime`\n```\nup 4 days\n```",
        ]
    );
    let replay = imported(&file("pi/session.jsonl"), Format::Pi);
    assert_eq!(
        shown(&logs(&replay)[0])[1..4],
        [
            "assistant: thinks The log first. | I read the log. | call toolu_1 read {\"path\":\"app.log\"}",
            "tool: result toolu_1 \"08:02 timeout\"",
            "assistant: The gateway times out.",
        ]
    );
    assert_eq!(
        shown_file("pi/first_version.jsonl", Format::Pi),
        [
            "user: List the files. | Image",
            "assistant: call call_1|fc_1 ls {}",
            "tool: result call_1|fc_1 \"app.log\"",
        ]
    );
}

#[test]
fn openhands_events_become_calls_and_results() {
    assert_eq!(
        shown_file("openhands/events.jsonl", Format::OpenHands),
        [
            "system: You fix shops.",
            "user: Why does the checkout fail?",
            "user: The log shows a timeout.",
            "assistant: The gateway times out.",
        ]
    );
    let replay = imported(&file("openhands/events.jsonl"), Format::OpenHands);
    assert_eq!(
        shown(&logs(&replay)[0])[2..4],
        [
            "assistant: thinks The log first. | I read the log. | call call_1 terminal {\"command\": \"cat app.log\"}",
            "tool: result call_1 \"08:02 timeout\"",
        ]
    );
    assert_eq!(
        shown_file("openhands/trajectory.json", Format::OpenHands),
        [
            "user: List the files.",
            "assistant: I list them. | call toolu_1 execute_bash {\"command\": \"ls\"}",
            "tool: result toolu_1 \"app.log\"",
            "assistant: I read it. | call event_4 read {\"path\":\"app.log\",\"thought\":\"I read it.\"}",
            "tool: result event_4 \"08:02 timeout\"",
            "assistant: One file.",
        ]
    );
    let replay = imported(&file("openhands/output.jsonl"), Format::OpenHands);
    assert_eq!(
        shown(&visible(&replay.conversations[1])),
        [
            "user: Fix that.",
            "assistant: I look. | call event_at1 run {\"command\":\"ls\"}",
            "tool: result event_at1 \"app.log\"",
        ]
    );
}

#[test]
fn the_stream_of_claude_code_and_its_web_sessions() {
    assert_eq!(
        shown_file("claude-stream/stream.jsonl", Format::ClaudeStream),
        [
            "assistant: thinks The log first.",
            "assistant: call toolu_1 Read {\"file_path\":\"/srv/shop/app.log\"}",
            "tool: result toolu_1 \"08:02 timeout\"",
            "assistant: The gateway times out.",
        ]
    );
    assert_eq!(
        shown_file("claude-stream/web.json", Format::ClaudeStream),
        [
            "user: Add a test for the cart.",
            "assistant: I look at the cart first. | call toolu_7 Read {\"file_path\":\"cart.rs\"}",
            "tool: result toolu_7 \"fn total() {}\"",
        ]
    );
}

#[test]
fn the_messages_of_a_subagent_are_a_fork() {
    let line = |parent: &str, kind: &str, text: &str| {
        format!(
            r#"{{"type":"{kind}","message":{{"role":"{kind}","content":[{{"type":"text","text":"{text}"}}]}},"parent_tool_use_id":{parent},"session_id":"s"}}"#
        )
    };
    let text = [
        line("null", "user", "one"),
        line("\"toolu_1\"", "user", "two"),
        line("\"toolu_1\"", "assistant", "three"),
        line("null", "assistant", "four"),
    ]
    .join("\n");
    let replay = imported(&text, Format::ClaudeStream);
    let branches = &replay.conversations[0].branches;
    let views: Vec<Vec<String>> = branches
        .iter()
        .map(|branch| shown(&branch.conversation.messages().cloned().collect::<Vec<_>>()))
        .collect();
    assert_eq!(views, [["user: one", "assistant: four"], ["user: two", "assistant: three"]]);
    assert_eq!(branches[1].name, "toolu_1");
}

#[test]
fn gemini_responses_join_the_chunks_of_a_stream() {
    assert_eq!(
        shown_file("gemini-responses/recorded.jsonl", Format::GeminiResponses),
        [
            "assistant: thinks The log first. | I read it. | call gemini_call_1_2 read_file {\"path\":\"app.log\"}",
            "assistant: The gateway times out.",
        ]
    );
}

#[test]
fn gemini_cli_records_are_replaced_and_rewound() {
    let answer = "assistant: I list them. | call run-1 run_shell_command {\"command\":\"ls\"}";
    assert_eq!(
        shown_file("gemini-cli/session.jsonl", Format::GeminiCli),
        ["user: List the files.", answer, "tool: result run-1 \"app.log\"", "user: Thanks.",]
    );
    assert_eq!(
        shown_file("gemini-cli/session.json", Format::GeminiCli)[1],
        answer.replace(": I", ": thinks Listing\nA shell command does it. | I")
    );
}

#[test]
fn qwen_code_rewinds_and_compresses() {
    assert_eq!(
        shown_file("qwen-code/session.jsonl", Format::QwenCode),
        [
            "user: The user asks for files and folders.",
            "assistant: Understood.",
            "assistant: There are none.",
        ]
    );
    let replay = imported(&file("qwen-code/session.jsonl"), Format::QwenCode);
    let conversation = &replay.conversations[0].branches[0].conversation;
    let view_at = |version: u32| {
        let conversation = conversation.at(recto_core::Version(version)).unwrap();
        shown(&conversation.messages().cloned().collect::<Vec<_>>())
    };
    assert_eq!(
        view_at(4)[1..],
        [
            "assistant: thinks A command does it.",
            "assistant: call call-1 run_shell_command {\"command\":\"ls\"}",
            "tool: result call-1 \"{\\\"output\\\":\\\"app.log\\\"}\"",
        ]
    );
    assert_eq!(view_at(7), ["user: List the files.", "user: And the folders?"]);
}

#[test]
fn opencode_steps_become_messages() {
    assert_eq!(
        shown_file("opencode/session.json", Format::OpenCode),
        [
            "user: Why does the checkout fail? | Image",
            "assistant: thinks The log first. | I read the log. | call toolu_1 read {\"filePath\":\"app.log\"} | call toolu_2 read {\"filePath\":\"b.log\"}",
            "tool: result toolu_1 \"08:02 timeout\" | result toolu_2 failed \"there is no b.log\"",
            "assistant: The gateway times out.",
        ]
    );
    let replay = imported(&file("opencode/session.json"), Format::OpenCode);
    assert_eq!(replay.conversations[0].start.name.as_deref(), Some("Failing checkout"));
}

#[test]
fn every_session_of_a_file_with_many_sessions_has_its_compaction() {
    let message = |role: &str, is_summary: bool| json!({"info": {"role": role, "summary": is_summary}, "parts": [{"type": "text", "text": "a"}]});
    let mut messages = vec![message("user", false); 40];
    messages.push(message("assistant", true));
    let session = json!({"info": {"id": "ses_1"}, "messages": messages}).to_string();
    let replay = imported(&[session.as_str(); 200].join("\n"), Format::OpenCode);
    let views = replay.conversations.iter().map(|it| it.branches[0].conversation.view().len());
    assert_eq!(views.collect::<Vec<_>>(), [1; 200]);
}

#[test]
fn copilot_events_become_messages() {
    assert_eq!(
        shown_file("copilot/events.jsonl", Format::Copilot),
        [
            "system: You help with shops.",
            "user: <time>10:00</time> List the files",
            "assistant: thinks A command does it. | I list them. | call call-1 shell {\"command\":\"ls\"} | call call-2 shell {\"command\":\"ls /nope\"}",
            "tool: result call-1 \"app.log\"",
            "tool: result call-2 failed \"no such folder\"",
            "assistant: One file.",
        ]
    );
}

#[test]
fn librechat_branches_are_rewinds() {
    assert_eq!(
        shown_file("librechat/branches.json", Format::LibreChat),
        [
            "user: List the files.",
            "assistant: thinks A command does it. | I list them. | call call_1 ls {\"path\":\"/\"}",
            "tool: result call_1 \"app.log\"",
            "user: Thanks.",
        ]
    );
    assert_eq!(
        shown_file("librechat/nested.json", Format::LibreChat),
        ["user: List the files.", "assistant: One file.", "user: Thanks."]
    );
    let replay = imported(&file("librechat/branches.json"), Format::LibreChat);
    assert_eq!(replay.conversations[0].start.name.as_deref(), Some("Files"));
}

#[test]
fn a_record_with_an_unknown_parent_follows_the_record_before_it() {
    let line = |id: &str, parent: &str, text: &str| {
        format!(
            r#"{{"type":"message","id":"{id}","parentId":{parent},"timestamp":"2026-05-01T10:00:00.000Z","message":{{"role":"user","content":"{text}"}}}}"#
        )
    };
    let text =
        [line("b", "\"lost\"", "one"), line("c", "\"b\"", "two"), line("d", "\"tc\"", "three")]
            .join("\n");
    let replay = imported(&text, Format::Pi);
    let [only] = &replay.conversations[..] else { panic!() };
    assert_eq!(only.branches.len(), 1);
    assert_eq!(shown(&visible(only)), ["user: one", "user: two", "user: three"]);
}

#[test]
fn logs_of_similar_unknown_formats_are_refused() {
    let droid = r#"{"type":"session_start","id":"d","title":"t","cwd":"/"}
{"type":"message","id":"m","timestamp":"2026-05-01T10:00:00.000Z","message":{"role":"user","content":[{"type":"text","text":"hi"}]}}"#;
    let grok = r#"{"type":"system","content":"You are an agent."}
{"type":"reasoning","id":"rs_1","summary":[]}
{"type":"assistant","content":"hi","model_id":"m"}"#;
    let kimi = r#"{"type":"context.append_loop_event","event":{"type":"step.begin"},"time":1,"agentId":"main"}
{"type":"loop","kind":"loop","action":"x","time":2}"#;
    for text in [droid, grok, kimi] {
        let found = Format::recognise(text.as_bytes());
        assert!(matches!(found, Err(Error::UnknownFormat { .. })), "{found:?}: {text}");
    }
}

/// The lines after the last message are stored with it, also in sessions of older formats.
#[test]
fn the_lines_after_the_last_message_are_exported() {
    let codex = concat!(
        r#"{"type":"response_item","payload":{"type":"message","role":"user","content":"One"}}"#,
        "\n",
        r#"{"type":"event_msg","payload":{"type":"token_count"}}"#,
        "\n",
    );
    let claude = concat!(
        r#"{"parentUuid":null,"uuid":"a","sessionId":"s","type":"user","message":{"role":"user","content":"One"}}"#,
        "\n",
        r#"{"type":"last-prompt","lastPrompt":"One"}"#,
        "\n",
    );
    for (text, format) in [(codex, Format::Codex), (claude, Format::ClaudeCode)] {
        let replay = imported(text, format);
        assert_eq!(replay.conversations[0].envelope, None);
        let written = exported_log(&logs(&replay)[0], format, Container::Lines);
        assert_eq!(written, text);
    }
}

#[test]
fn the_white_space_of_a_document_is_restored() {
    let record = |id: &str| {
        format!(
            "{{\n      \"id\": \"{id}\",\n      \"timestamp\": \"2026-05-01T10:00:00.000Z\",\n      \"type\": \"user\",\n      \"content\": \"{id}\"\n    }}"
        )
    };
    let (one, two) = (record("m1"), record("m2"));
    let document = format!(
        "{{\n  \"sessionId\": \"s\",\n  \"projectHash\": \"p\",\n  \"startTime\": \"2026-05-01T10:00:00.000Z\",\n  \"messages\": [\n    {one},\n    {two}\n  ],\n  \"lastUpdated\": \"x\"\n}}\n"
    );
    let replay = imported(&document, Format::GeminiCli);
    assert_eq!(replay.warnings, []);
    assert_eq!(exported_log(&logs(&replay)[0], Format::GeminiCli, Container::Lines), document);
    // Irregular white space is reported.
    let irregular = document.replace(&format!(",\n    {two}"), &format!(",\n\n{two},{one}"));
    let replay = imported(&irregular, Format::GeminiCli);
    assert_eq!(replay.warnings.len(), 1, "{:?}", replay.warnings);
    assert!(replay.warnings[0].message.contains("white space"));
}

#[test]
fn two_records_on_one_line_are_reported() {
    let file = file("qwen-code/session.jsonl");
    let (first, rest) = file.split_once('\n').unwrap();
    let replay = imported(&format!("{first} {rest}"), Format::QwenCode);
    assert!(replay.warnings[0].message.contains("second record"), "{:?}", replay.warnings);
}
