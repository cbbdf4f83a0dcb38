//! `recto chat` with a scripted provider: output, requests and stored messages.

use recto_cli::StreamInfo;
use serde_json::{Value, json};
use testserver::{ModelServer, Reply};

use crate::stage::Stage;
#[cfg(unix)]
use crate::terminal::Session;

pub(crate) fn stream(chunks: &[Value]) -> Reply {
    let chunks: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    Reply::stream(chunks + "data: [DONE]\n\n")
}

pub(crate) fn text_reply(text: &str) -> Reply {
    stream(&[
        json!({"choices": [{"delta": {"content": text}}]}),
        json!({"choices": [{"delta": {}, "finish_reason": "stop"}]}),
        json!({"choices": [], "usage": {"prompt_tokens": 1200, "completion_tokens": 7,
            "prompt_tokens_details": {"cached_tokens": 1000}}}),
    ])
}

pub(crate) fn call_reply(name: &str, arguments: &str) -> Reply {
    let function = json!({"name": name, "arguments": arguments});
    let call = json!({"index": 0, "id": "c1", "function": function});
    stream(&[
        json!({"choices": [{"delta": {"tool_calls": [call]}}]}),
        json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}),
    ])
}

#[test]
fn each_line_is_answered_and_every_call_can_be_shown() {
    let server = ModelServer::replying([text_reply("Hello,\n\u{1b}[31mred!"), text_reply("Bye.")]);
    let stage = Stage::new();
    stage.plain(&["new", "talk"]);
    let url = format!("{}/v1", server.url());
    let chat = ["chat", "--for", "openai-chat", "--base-url", &url, "--model", "m"];
    let ran = stage.perform(&chat, "Hi!\n\nGood bye.\n", StreamInfo::default());
    assert_eq!((ran.code, ran.errors.as_str()), (0, ""));
    // Escape sequences are escaped.
    assert_eq!(ran.out, "Hello,\n\\u{1b}[31mred!\nBye.\n");
    let listed = stage.plain(&["log", "--calls"]);
    assert!(
        listed.starts_with(
            "call 2 of v3  openai-chat m  1,200 tokens read (1,000 cached), 7 written"
        ),
        "{listed}"
    );
    assert!(
        listed.contains("2 calls in all, 2 of them in this branch: 2,400 tokens read, 14 written")
    );
    for (number, received) in server.received().iter().enumerate() {
        let number = (number + 1).to_string();
        // Exactly the bytes that were sent.
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
    let server =
        ModelServer::replying([call_reply("count", r#"{"a": "four"}"#), text_reply("13 bytes.")]);
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
    // The request does not contain the command of the tool.
    assert!(!body.contains("wc"), "{body}");
}

#[test]
fn a_failed_chat_prints_the_reason_and_can_be_continued() {
    let server = ModelServer::replying([
        Reply::json(401, r#"{"error":{"message":"no such key"}}"#),
        text_reply("Here I am."),
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
        (&["chat", "Hi"][..], "in the file of --config"),
        (&["chat", "--for", "anthropic", "Hi"], "use --model"),
        (&["chat", "--for", "gemini", "--model", "m", "Hi"], "there is no client for gemini"),
        (&["chat", "--config", "nowhere.json", "Hi"], "cannot read nowhere.json"),
        (&["chat", "--for", "anthropic", "--model", "m", "--key-variable", "NONE", "Hi"], "NONE"),
    ] {
        let ran = stage.run(arguments);
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.errors.contains(word), "{ran:?}");
    }
}

#[test]
fn fields_are_copied_unchanged_into_the_request() {
    let server = ModelServer::replying([text_reply("Fine.")]);
    let stage = Stage::new();
    stage.plain(&["new", "talk"]);
    let file = stage.file(
        "agent.json",
        &format!(
            r#"{{"provider": "openai-chat", "model": "m", "baseUrl": "{}/v1",
                "fields": {{"seed": 123456789012345678901234567890, "temperature": 1.50, "b": {{"z": 1E2, "a": -0}}}},
                "tools": [{{"name": "t", "description": "d", "command": ["true"],
                           "input_schema": {{"type": "object", "maximum": 0.10}}}}]}}"#,
            server.url()
        ),
    );
    stage.plain(&["chat", "--config", &file, "Hi"]);
    let body = String::from_utf8(server.received()[0].body.clone()).unwrap();
    assert!(
        body.contains(
            r#""seed":123456789012345678901234567890,"temperature":1.50,"b":{"z": 1E2, "a": -0}"#
        ),
        "{body}"
    );
    assert!(body.contains(r#""maximum":0.10"#), "{body}");
    let misspelt = stage.file("misspelt.json", r#"{"base_url": "http://127.0.0.1:9/v1"}"#);
    let refused = stage.run(&["chat", "--config", &misspelt, "Hi"]);
    assert!(refused.code == 2 && refused.errors.contains("did you mean baseUrl?"), "{refused:?}");
    let twice = stage.file(
        "twice.json",
        r#"{"provider": "openai-chat", "model": "m", "baseUrl": "http://127.0.0.1:9/v1",
            "fields": {"a": 1, "a": 2}}"#,
    );
    let refused = stage.run(&["chat", "--config", &twice, "Hi"]);
    assert!(refused.code != 0 && refused.errors.contains("\"a\""), "{refused:?}");
}

/// An MCP server as a shell script. It has one tool, which returns a greeting.
#[cfg(unix)]
pub(crate) const GREETER: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\),.*/\1/p')
  case "$line" in
    *'"method":"initialize"'*) result='"result":{"protocolVersion":"2025-06-18","capabilities":{}}' ;;
    *'"method":"tools/list"'*) result='"result":{"tools":[{"name":"greet","description":"Greets.","inputSchema":{"type":"object"}}]}' ;;
    *'"method":"tools/call"'*'"name":"Anna"'*) result='"result":{"content":[{"type":"text","text":"Good day, Anna, says '"$WHO"'."}]}' ;;
    *'"method":"tools/call"'*) exit 4 ;;
    *) result='"error":{"code":-32601,"message":"what?"}' ;;
  esac
  if [ -n "$id" ]; then printf '%s\n' '{"jsonrpc":"2.0","id":'"$id,$result"'}'; fi
done
"#;

#[cfg(unix)]
fn with_greeter(stage: &Stage, server: &ModelServer) -> String {
    let script = stage.file("greeter.sh", GREETER);
    let greeter = json!({"command": "sh", "args": [script], "env": {"WHO": "the script"}});
    let configuration = json!({"provider": "openai-chat", "model": "m",
        "baseUrl": format!("{}/v1", server.url()),
        "mcpServers": {"hall": greeter, "off": {"command": "no-such-program", "disabled": true}}});
    stage.file("agent.json", &configuration.to_string())
}

#[cfg(unix)]
#[test]
fn mcp_servers_are_named_in_the_configuration() {
    let server = ModelServer::replying([
        call_reply("hall__greet", r#"{"name":"Anna"}"#),
        text_reply("Done."),
        call_reply("hall__greet", r#"{"name":"Bob"}"#),
        text_reply("I see."),
    ]);
    let stage = Stage::new();
    stage.plain(&["new", "talk"]);
    let file = with_greeter(&stage, &server);
    let ran = stage.run(&["chat", "--config", &file, "Greet Anna."]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "Done.\n"), "{ran:?}");
    // The exit of a server is an error result for the model.
    let ran = stage.run(&["chat", "--config", &file, "Greet Bob."]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "I see.\n"), "{ran:?}");
    let body = |at: usize| String::from_utf8(server.received()[at].body.clone()).unwrap();
    assert!(body(0).contains(r#""name":"hall__greet","description":"Greets.""#), "{}", body(0));
    assert!(body(1).contains("Good day, Anna, says the script."), "{}", body(1));
    assert!(body(3).contains("exit status: 4"), "{}", body(3));

    for (servers, word) in [
        (json!({"x": {"command": "no-such-program"}}), "the MCP server \"x\" cannot be used"),
        (json!({"x": {}}), "either a command or a url"),
        (json!({"x": {"command": "sh", "variables": ["NOT_SET"]}}), "NOT_SET is not set"),
        (json!({"x": {"command": "sh", "args": "-c"}}), ": mcpServers.x.args must be a list"),
        (
            json!({"x": {"command": "sh", "arguments": []}}),
            "mcpServers.x.arguments: arguments is not",
        ),
    ] {
        let configuration = json!({"provider": "openai-chat", "model": "m",
            "baseUrl": "http://127.0.0.1:9/v1", "mcpServers": servers});
        let file = stage.file("wrong.json", &configuration.to_string());
        let ran = stage.run(&["chat", "--config", &file, "Hi"]);
        assert!(ran.code != 0 && ran.errors.contains(word), "{word}: {ran:?}");
    }
}

/// A reply that is slow enough to be interrupted.
#[cfg(unix)]
pub(crate) fn slow_reply() -> Reply {
    let chunks: String = (0..2_000)
        .map(|number| {
            format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"word{number} \"}}}}]}}\n\n")
        })
        .collect();
    Reply::stream(chunks).in_pieces(60).pausing(std::time::Duration::from_millis(20))
}

#[cfg(unix)]
#[test]
fn ctrl_c_stops_the_answer_and_the_chat_continues() {
    let server = ModelServer::replying([
        slow_reply(),
        call_reply("hall__greet", r#"{"name":"Anna"}"#),
        text_reply("Here I am."),
        slow_reply(),
    ]);
    let stage = Stage::new();
    stage.plain(&["new", "talk"]);
    let file = with_greeter(&stage, &server);
    let mut session = Session::start(&stage, &["chat", "--config", &file], &[]);
    session.wait_for("> ");
    session.press("Tell me.\r");
    session.wait_for("word3 ");
    session.press("\u{3}");
    session.wait_for("[cancelled]");
    // The next prompt works, and the MCP server still runs, because Ctrl-C is not sent to it.
    session.press("And now?\r");
    session.wait_for("Here I am.");
    assert!(!session.raw().contains("word1999"), "{}", session.raw());
    let body = String::from_utf8(server.received()[2].body.clone()).unwrap();
    assert!(body.contains("Good day, Anna") && body.contains("word3"), "{body}");
    let listed = stage.plain(&["log", "--calls"]);
    assert!(listed.contains("call 1 of v") && listed.contains("cancelled"), "{listed}");
    // The first Ctrl-C stops the answer, the second one ends the chat.
    session.press("Once more.\r");
    session.wait_for("word5 ");
    session.press("\u{3}");
    let start = std::time::Instant::now();
    while session.raw().matches("[cancelled]").count() < 2 {
        assert!(start.elapsed().as_secs() < 60, "{}", session.raw());
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    std::thread::sleep(std::time::Duration::from_millis(100));
    session.press("\u{3}");
    assert_eq!(session.end(), 130, "{}", session.raw());
    assert!(stage.plain(&["verify"]).starts_with("sound"));
    let shown = stage.plain(&["show"]);
    assert!(shown.contains("Tell me.") && shown.contains("Here I am."), "{shown}");
    assert!(shown.contains("Once more.") && shown.contains("word5"), "{shown}");
}

#[cfg(unix)]
#[test]
fn the_end_of_the_input_ends_the_chat() {
    let server = ModelServer::replying([text_reply("Bye.")]);
    let stage = Stage::new();
    stage.plain(&["new", "talk"]);
    let url = format!("{}/v1", server.url());
    let chat = ["chat", "--for", "openai-chat", "--base-url", &url, "--model", "m"];
    let mut session = Session::start(&stage, &chat, &[]);
    session.wait_for("> ");
    session.press("Hi\r");
    session.wait_for("Bye.");
    session.press("\u{4}");
    assert_eq!(session.end(), 0, "{}", session.raw());
}

#[test]
fn calls_are_listed_with_costs_and_calibration() {
    let server = ModelServer::replying([text_reply("One."), text_reply("Two.")]);
    let stage = Stage::new();
    stage.plain(&["new", "talk"]);
    let url = format!("{}/v1", server.url());
    let long = "word ".repeat(500);
    for _ in 0..2 {
        stage.run(&["chat", "--for", "openai-chat", "--base-url", &url, "--model", "gpt-5", &long]);
    }
    let listed = stage.plain(&["log", "--calls"]);
    assert!(listed.contains(" tokens per counted token"), "{listed}");
    assert!(listed.contains("(2 reports)") && listed.contains("14 written; $0.00"), "{listed}");
    let listed = stage.json(&["log", "--calls"]);
    assert_eq!(
        (&listed["models"][0]["model"], &listed["models"][0]["reports"]),
        (&json!("gpt-5"), &json!(2))
    );
}
