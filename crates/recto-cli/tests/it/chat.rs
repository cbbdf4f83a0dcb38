//! `recto chat` against a scripted provider, and what it leaves behind.

use recto_cli::Screen;
use serde_json::{Value, json};
use testserver::{ModelServer, Reply};

use crate::stage::Stage;

fn stream(chunks: &[Value]) -> Reply {
    let chunks: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    Reply::stream(chunks + "data: [DONE]\n\n")
}

fn says(text: &str) -> Reply {
    stream(&[
        json!({"choices": [{"delta": {"content": text}}]}),
        json!({"choices": [{"delta": {}, "finish_reason": "stop"}]}),
        json!({"choices": [], "usage": {"prompt_tokens": 1200, "completion_tokens": 7,
            "prompt_tokens_details": {"cached_tokens": 1000}}}),
    ])
}

fn calls(name: &str, arguments: &str) -> Reply {
    let function = json!({"name": name, "arguments": arguments});
    let call = json!({"index": 0, "id": "c1", "function": function});
    stream(&[
        json!({"choices": [{"delta": {"tool_calls": [call]}}]}),
        json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}),
    ])
}

#[test]
fn each_line_is_answered_and_every_call_can_be_shown() {
    let server = ModelServer::playing([says("Hello,\n\u{1b}[31mred!"), says("Bye.")]);
    let stage = Stage::new();
    stage.plain(&["new", "talk"]);
    let url = format!("{}/v1", server.url());
    let chat = ["chat", "--for", "openai-chat", "--base-url", &url, "--model", "m"];
    let ran = stage.perform(&chat, "Hi!\n\nGood bye.\n", Screen::default());
    assert_eq!((ran.code, ran.errors.as_str()), (0, ""));
    // What a terminal would obey is escaped.
    assert_eq!(ran.out, "Hello,\n\\u{1b}[31mred!\nBye.\n");
    let listed = stage.plain(&["log", "--calls"]);
    assert!(
        listed.starts_with(
            "call 2 of v3  openai-chat m  1,200 tokens read (1,000 cached), 7 written"
        ),
        "{listed}"
    );
    assert!(listed.contains("2 calls in all, 2 of them up to here: 2,400 tokens read, 14 written"));
    for (number, received) in server.received().iter().enumerate() {
        let number = (number + 1).to_string();
        // Exactly what went over the line.
        let sent = stage.plain(&["show", "--call", &number]);
        assert_eq!(sent.trim_end().as_bytes(), received.body);
        let document = stage.json(&["show", "--call", &number]);
        assert_eq!(document["request"], serde_json::from_slice::<Value>(&received.body).unwrap());
        assert_eq!(document["call"]["bytes"], received.body.len());
    }
    let calls = stage.json(&["log", "--calls", "-n", "1"]);
    assert_eq!((calls["calls"][0]["number"].as_u64(), calls["older"].as_u64()), (Some(2), Some(1)));
    let missing = stage.run(&["show", "--call", "3"]);
    assert_eq!(missing.code, 1);
    assert!(missing.errors.contains("there is no call 3"), "{missing:?}");
}

#[cfg(unix)]
#[test]
fn tools_are_programs_named_in_the_configuration() {
    let server = ModelServer::playing([calls("count", r#"{"a": "four"}"#), says("13 bytes.")]);
    let stage = Stage::new();
    stage.plain(&["new", "talk"]);
    let tool = json!({"name": "count", "description": "Counts bytes.", "command": ["wc", "-c"],
        "input_schema": {"type": "object"}});
    let configuration = json!({"provider": "openai-chat", "model": "m",
        "baseUrl": format!("{}/v1", server.url()), "fields": {"temperature": 0.5}, "tools": [tool]});
    let file = stage.file("agent.json", &configuration.to_string());
    let document = stage.json(&["chat", "--config", &file, "How long?"]);
    let answers = json!([{"said": "13 bytes.", "stop": "done", "turns": 2}]);
    assert_eq!(document["answers"], answers);
    let body = String::from_utf8(server.received()[1].body.clone()).unwrap();
    assert!(
        body.contains(r#""temperature":0.5"#) && body.contains(r#""content":"13\n""#),
        "{body}"
    );
    // The model is not told how a tool is run.
    assert!(!body.contains("wc"), "{body}");
}

#[test]
fn a_chat_that_fails_says_why_and_the_conversation_goes_on() {
    let server = ModelServer::playing([
        Reply::json(401, r#"{"error":{"message":"no such key"}}"#),
        says("Here I am."),
    ]);
    let stage = Stage::new();
    stage.plain(&["new", "talk"]);
    let url = format!("{}/v1", server.url());
    let chat = |more: &[&'static str]| -> Vec<String> {
        let given = ["chat", "--for", "openai-chat", "--base-url", &url, "--model", "m", "Hi!"];
        given.iter().chain(more).map(|word| (*word).to_owned()).collect()
    };
    let run = |words: Vec<String>| stage.run(&words.iter().map(String::as_str).collect::<Vec<_>>());
    let failed = run(chat(&["--json"]));
    let error: Value = serde_json::from_str(&failed.out).unwrap();
    assert_eq!((failed.code, error["error"]["code"].as_str()), (1, Some("upstream")));
    assert!(error["error"]["message"].as_str().unwrap().contains("no such key"), "{error}");
    let answered = run(chat(&[]));
    assert_eq!((answered.code, answered.out.as_str()), (0, "Here I am.\n"));
    let listed = stage.plain(&["log", "--calls"]);
    assert!(listed.contains("call 1 of v1") && listed.contains("no such key"), "{listed}");
    for (arguments, word) in [
        (&["chat", "Hi"][..], "which provider?"),
        (&["chat", "--for", "anthropic", "Hi"], "which model?"),
        (&["chat", "--for", "gemini", "--model", "m", "Hi"], "there is no client for gemini"),
        (&["chat", "--config", "nowhere.json", "Hi"], "cannot read nowhere.json"),
        (&["chat", "--for", "anthropic", "--model", "m", "--key-variable", "NONE", "Hi"], "NONE"),
    ] {
        let ran = stage.run(arguments);
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.errors.contains(word), "{ran:?}");
    }
}
