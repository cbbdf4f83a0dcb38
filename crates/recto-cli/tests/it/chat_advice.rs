//! What `recto chat` prints about a message without an answer: the printed commands do what the text says.

use serde_json::json;
use testserver::{ModelServer, Reply};

use crate::chat::{call_reply, text_reply};
use crate::chat_trouble::{chat, recto, staged, url, with_tools};
use crate::stage::{Ran, Stage};

fn refusal() -> Reply {
    Reply::json(400, r#"{"error":{"message":"not today"}}"#)
}

/// Runs the command with these first words that a text of standard error names between backquotes.
fn run_advice(stage: &Stage, ran: &Ran, first: &str) {
    let advised = ran.errors.split('`').find(|part| part.starts_with(first));
    let advised = advised.unwrap_or_else(|| panic!("no `{first} …` in {ran:?}"));
    let words: Vec<&str> = advised.split_whitespace().skip(1).collect();
    assert_eq!(stage.run(&words).code, 0, "{advised}");
}

/// The texts of the view.
fn texts(stage: &Stage) -> Vec<String> {
    let shown = stage.json(&["show"]);
    let messages = shown["messages"].as_array().unwrap().iter();
    messages.map(|it| it["message"]["content"].as_str().unwrap_or("…").to_owned()).collect()
}

#[test]
fn a_message_without_an_answer_can_be_hidden() {
    let server = ModelServer::replying([text_reply("One."), refusal()]);
    let stage = staged();
    stage.plain(&chat(&url(&server), &["Hi!"]));
    let before = texts(&stage);
    let ran = stage.run(&chat(&url(&server), &["And now?"]));
    assert!(ran.code == 1 && ran.errors.contains("The message is stored: `recto chat --again`"));
    run_advice(&stage, &ran, "recto delete");
    assert_eq!(texts(&stage), before);
}

#[test]
fn messages_of_failed_calls_can_be_hidden_after_the_next_one_was_answered() {
    let server = ModelServer::replying([refusal(), refusal(), text_reply("Here I am.")]);
    let stage = staged();
    let url = url(&server);
    let first = stage.run(&chat(&url, &["One"]));
    assert!(!first.errors.contains("before this one"), "{first:?}");
    let second = stage.run(&chat(&url, &["Two"]));
    assert!(second.errors.contains("2 messages without an answer are stored"), "{second:?}");
    let third = stage.run(&chat(&url, &["Three"]));
    assert!(third.errors.contains("2 messages without an answer before this one"), "{third:?}");
    run_advice(&stage, &third, "recto delete");
    assert_eq!(texts(&stage), ["Three", "Here I am."]);
}

#[test]
fn a_failure_between_tool_calls_names_the_whole_turn() {
    let server = ModelServer::replying([text_reply("One."), call_reply("t", "{}"), refusal()]);
    let stage = staged();
    let tool = json!({"name": "t", "description": "d", "command": ["true"]});
    let file = with_tools(&stage, &server, &json!([tool]));
    stage.run(&["chat", "--config", &file, "Hi!"]);
    let before = texts(&stage);
    let ran = stage.run(&["chat", "--config", &file, "Use the tool."]);
    assert!(ran.errors.contains("3 messages without an answer are stored"), "{ran:?}");
    run_advice(&stage, &ran, "recto delete");
    assert_eq!(texts(&stage), before);
    assert_eq!(stage.run(&["lint", "--for", "openai-chat"]).code, 0);
}

#[test]
fn the_received_part_of_an_answer_can_be_hidden_and_asked_for_again() {
    let text = json!({"choices": [{"delta": {"content": "The first half"}}]});
    let event = format!("data: {text}\n\n");
    let cut = Reply::stream(&event).cut_at(event.len());
    let server = ModelServer::replying([cut, text_reply("All of it.")]);
    let stage = staged();
    let ran = stage.run(&chat(&url(&server), &["Hi!"]));
    assert!(ran.code == 1 && ran.errors.contains("The received part of the answer"), "{ran:?}");
    run_advice(&stage, &ran, "recto delete");
    let again = stage.run(&chat(&url(&server), &["--again"]));
    assert_eq!((again.code, again.out.as_str()), (0, "All of it.\n"), "{again:?}");
    assert_eq!(texts(&stage), ["Hi!", "All of it."]);
}

#[test]
fn a_message_that_does_not_fit_is_a_hidden_entry_and_the_error_names_commands() {
    let server = ModelServer::replying([text_reply("Fine.")]);
    let stage = staged();
    stage.plain(&["settings", "--token-limit", "200"]);
    let url = url(&server);
    let long = "far too long ".repeat(500);
    for entry in 0..2 {
        let ran = stage.run(&chat(&url, &[&long]));
        assert!(ran.code == 1 && ran.errors.contains("recto settings --token-limit"), "{ran:?}");
        let kept = format!("Your message is kept as hidden entry #{entry}; `recto erase {entry}`");
        assert!(ran.errors.contains(&kept), "{ran:?}");
    }
    assert!(texts(&stage).is_empty());
    stage.plain(&["erase", "0", "1", "--yes"]);
    assert!(!stage.plain(&["show", "--all", "--full"]).contains("far too long"));
    let ran = stage.run(&chat(&url, &["Short."]));
    assert_eq!((ran.code, ran.out.as_str()), (0, "Fine.\n"), "{ran:?}");
    stage.plain(&["append", "--text", &long]);
    stage.plain(&["append", "--role", "assistant", "--text", "ok"]);
    let ran = stage.run(&chat(&url, &["More."]));
    assert!(ran.errors.contains("recto settings --compress-over"), "{ran:?}");
    for empty in ["", "   "] {
        let ran = stage.run(&chat(&url, &[empty]));
        assert!(ran.code == 1 && ran.errors.contains("content"), "{ran:?}");
    }
    let ran = stage.run(&chat("ftp://127.0.0.1/v1", &["Hi"]));
    assert!(ran.code == 2 && ran.errors.contains("http"), "{ran:?}");
}

#[test]
fn the_result_of_a_tool_that_does_not_fit_leaves_the_question_visible() {
    let server = ModelServer::replying([call_reply("t", "{}")]);
    let stage = staged();
    stage.plain(&["settings", "--token-limit", "400"]);
    let script = "i=0; while [ $i -lt 999 ]; do echo line $i; i=$((i+1)); done";
    let tool = json!({"name": "t", "description": "d", "command": ["sh", "-c", script]});
    let file = with_tools(&stage, &server, &json!([tool]));
    let ran = stage.run(&["chat", "--config", &file, "Count."]);
    assert!(ran.code == 1 && !ran.errors.contains("is kept as hidden entry"), "{ran:?}");
    assert!(ran.errors.contains("3 messages without an answer are stored"), "{ran:?}");
}

#[test]
fn a_tool_that_fails_is_reported_on_standard_error() {
    let server = ModelServer::replying([call_reply("disk", "{}"), text_reply("I cannot tell.")]);
    let stage = staged();
    let tool = json!({"name": "disk", "description": "d", "command": ["nope-df"]});
    let file = with_tools(&stage, &server, &json!([tool]));
    let ran = stage.run(&["chat", "--config", &file, "How full?"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "I cannot tell.\n"), "{ran:?}");
    assert!(ran.errors.contains("disk failed: nope-df could not be run"), "{ran:?}");
}

#[test]
fn the_default_key_is_sent_only_to_the_providers_own_host() {
    let refusal = || Reply::json(401, r#"{"error":{"message":"no key"}}"#);
    let server = ModelServer::replying([refusal(), refusal()]);
    let stage = staged();
    let url = url(&server);
    let run = |more: &[&str]| {
        let mut command = recto(&stage, &chat(&url, more));
        let ran = command.env("OPENAI_API_KEY", "sk-very-secret").output().unwrap();
        String::from_utf8(ran.stderr).unwrap()
    };
    let errors = run(&["Hi"]);
    assert!(errors.contains("`--key-variable OPENAI_API_KEY` sends it"), "{errors}");
    let errors = run(&["--key-variable", "OPENAI_API_KEY", "Hi"]);
    assert!(!errors.contains("sends it"), "{errors}");
    let received = server.received();
    let keys: Vec<_> = received.iter().map(|it| it.header("authorization")).collect();
    assert_eq!(keys, [None, Some("Bearer sk-very-secret")]);
}

#[test]
fn the_help_lists_the_providers_that_have_a_client() {
    let help = staged().plain(&["chat", "--help"]);
    assert!(help.contains("openai-responses"), "{help}");
    assert!(!help.contains("gemini") && !help.contains("bedrock"), "{help}");
}

#[test]
fn the_figures_of_a_compression_count_messages_and_tools() {
    let server = ModelServer::replying([text_reply("Fine.")]);
    let stage = staged();
    for _ in 0..5 {
        stage.plain(&["append", "--text", &"why is that so ".repeat(5)]);
        stage.plain(&["append", "--role", "assistant", "--text", "because it is"]);
    }
    stage.plain(&[
        "settings",
        "--compress-over",
        "100",
        "--compress-to",
        "80",
        "--compress-with",
        "keep-system-and-recent",
    ]);
    let tool = json!({"name": "disk", "description": "How full the disks are.", "command": ["df"]});
    let file = with_tools(&stage, &server, &json!([tool]));
    let ran = stage.run(&["chat", "--config", &file, "And?"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let figures = ran.errors.split("keep-system-and-recent: ").nth(1).unwrap();
    assert!(figures.contains(" tokens of messages and tools"), "{ran:?}");
    let before = figures.split(' ').next().unwrap();
    let log = stage.plain(&["log", "--full"]);
    let reason = format!("keep-system-and-recent: {before} tokens are over the threshold of 100");
    assert!(log.contains(&reason), "{reason}: {log}");
}
