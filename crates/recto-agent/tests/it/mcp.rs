//! MCP servers as tools: real processes, with correct and incorrect servers.

use std::time::Duration;

use recto::Message;
use recto_agent::{
    CancelToken, Error, McpServer, McpTool, RunTool as _, Stop, ToolInput, ToolOutput,
};
use serde_json::{Value, json};
use testserver::{ModelServer, Reply};

use crate::streams::ScriptedReply;
use crate::{TARGETS, agent, check, example};

fn server(kind: &str) -> McpServer {
    let mut server = McpServer::program("s", example("mcp_server")).arguments([kind]);
    // Long enough on a busy machine.
    server.call_timeout = Duration::from_secs(20);
    server
}

async fn tools(kind: &str) -> Vec<McpTool> {
    server(kind).tools().await.unwrap()
}

async fn call(tool: &McpTool, input: &str) -> ToolOutput {
    tool.run(ToolInput::new("c", input)).await
}

async fn failing(kind: &str, timeout: Duration) -> String {
    let mut server = server(kind);
    server.call_timeout = timeout;
    server.max_message_bytes = 1 << 20;
    let output = call(&server.tools().await.unwrap()[0], "{}").await;
    assert!(output.is_error, "{kind}: {output:?}");
    output.text
}

#[tokio::test]
async fn tools_of_a_server_are_listed_and_called_with_exact_bytes() {
    for kind in ["good", "strict", "noisy"] {
        let tools = tools(kind).await;
        let names: Vec<String> = tools.iter().map(|tool| tool.describe().name().into()).collect();
        // Two pages. Duplicates and tools that cannot be parsed are dropped.
        assert_eq!(names, ["s__echo", "s__variables"], "{kind}");
        let described: Value = serde_json::from_str(tools[0].describe().json()).unwrap();
        assert_eq!(described["description"], "Says what it is given.");
        assert_eq!(described["input_schema"]["properties"]["limit"]["maximum"], 1.5);
        let input =
            r#"{"n": 1.50, "big": 123456789012345678901234567890, "n": 1E+2, "é": "\u00e9"}"#;
        assert_eq!(call(&tools[0], input).await, ToolOutput::ok(input), "{kind}");
        assert_eq!(call(&tools[0], "{\n}").await, ToolOutput::ok("{ }"), "{kind}");
        let list = call(&tools[0], "[1]").await;
        assert_eq!(list, ToolOutput::error("the input must be a JSON object"));
    }
}

#[tokio::test]
async fn a_server_without_a_handshake_may_be_slow_to_start() {
    for kind in ["modern", "slow modern"] {
        let mut server = server(kind);
        // The client waits a third of this time for the first response.
        server.start_timeout = Duration::from_millis(4_500);
        let tools = server.tools().await.unwrap();
        let output = call(&tools[1], "{}").await;
        assert!(!output.is_error && output.text.contains("PATH"), "{kind}: {output:?}");
    }
}

#[tokio::test]
async fn a_server_inherits_only_basic_variables() {
    let tools = server("good").variable("TOKEN", "t").tools().await.unwrap();
    let names = call(&tools[1], "{}").await.text;
    let names: Vec<&str> = names.split(' ').collect();
    assert!(names.contains(&"TOKEN") && names.contains(&"PATH"), "{names:?}");
    // Other variables of this process, which may be keys, are not inherited.
    let usual = "APPDATA HOME LANG LOGNAME PATH SHELL SYSTEMROOT TEMP TERM TMPDIR USER USERPROFILE";
    let is_known = |name: &&str| *name == "TOKEN" || usual.split(' ').any(|it| it == *name);
    assert!(names.iter().all(is_known), "{names:?}");
}

#[tokio::test]
async fn a_call_has_an_output_after_every_fault_of_a_server() {
    let long = Duration::from_secs(20);
    let died = failing("dies", long).await;
    assert!(died.contains("exit status: 9") && died.contains("segmentation fault"), "{died}");
    let closed = failing("closes", long).await;
    assert!(closed.contains("has exited"), "{closed}");
    let refused = failing("refuses", long).await;
    assert!(refused.contains("it returned an error: no such host (-32602)"), "{refused}");
    assert_eq!(failing("fails", long).await, "disk full");
    let odd = failing("odd result", long).await;
    assert!(odd.contains("the result of the call cannot be read"), "{odd}");
    let too_long = failing("long", long).await;
    assert!(too_long.contains("longer than 1048576 bytes"), "{too_long}");
    let short = Duration::from_millis(300);
    let late = failing("late", short).await;
    assert!(late.contains("took longer than 0.3 s"), "{late}");
    let rubbish = failing("rubbish", short).await;
    assert!(rubbish.contains("Traceback") || rubbish.contains("took longer"), "{rubbish}");
    // A large result loses its middle, between whole characters.
    let large = call(&tools("large").await[0], "{}").await;
    assert!(large.text.len() < (64 << 10) + 100 && large.text.contains("bytes omitted]"));
}

#[tokio::test]
async fn the_next_call_restarts_a_server_that_has_exited() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("died").to_str().unwrap().to_owned();
    let tools = server("dies once").arguments([file]).tools().await.unwrap();
    let first = call(&tools[0], r#"{"n":1}"#).await;
    assert!(first.is_error, "{first:?}");
    // Concurrent calls start it once.
    let both = tokio::join!(call(&tools[0], r#"{"n":2}"#), call(&tools[0], r#"{"n":3}"#));
    assert_eq!(both, (ToolOutput::ok(r#"{"n":2}"#), ToolOutput::ok(r#"{"n":3}"#)));
}

#[tokio::test]
async fn a_server_without_tools_is_no_error_and_one_that_does_not_start_is() {
    for kind in ["nothing", "no tools"] {
        assert_eq!(tools(kind).await.len(), 0, "{kind}");
    }
    for (kind, reason) in [
        ("no start", "there is no such database"),
        ("odd list", "its list of tools cannot be read"),
        ("endless", "more than 100 pages"),
        ("deaf", "took longer than 0.3 s"),
    ] {
        let mut server = server(kind);
        server.start_timeout = Duration::from_millis(if kind == "deaf" { 300 } else { 30_000 });
        let error = server.tools().await.unwrap_err();
        assert!(matches!(&error, Error::McpServer { name, .. } if name == "s"), "{error:?}");
        assert!(error.to_string().contains(reason), "{kind}: {error}");
    }
    let error = McpServer::program("s", "no-such-program").tools().await.unwrap_err();
    assert!(error.to_string().contains("could not be run"), "{error}");
}

#[tokio::test]
async fn a_cancelled_call_ends_without_a_response_and_the_server_stays_usable() {
    let tools = tools("late once").await;
    let cancel = CancelToken::new();
    let mut input = ToolInput::new("c", "{}");
    input.cancel = cancel.clone();
    let (output, ()) = tokio::join!(tools[0].run(input), async { cancel.cancel() });
    assert_eq!(output, ToolOutput::error("the tool was cancelled before it was done"));
    assert_eq!(call(&tools[0], r#"{"n":1}"#).await, ToolOutput::ok(r#"{"n":1}"#));
}

#[tokio::test]
async fn a_server_of_the_official_sdk_works_with_and_without_a_handshake() {
    for arguments in [&[][..], &["handshake"]] {
        let server = McpServer::program("math", example("mcp_sdk_server"));
        let tools = server.arguments(arguments.iter().copied()).tools().await.unwrap();
        assert_eq!(tools[0].describe().name(), "math__sum", "{arguments:?}");
        let sum = call(&tools[0], r#"{"numbers": [1, 2.5]}"#).await;
        assert_eq!(sum, ToolOutput::ok("3.5"), "{arguments:?}");
        let wrong = call(&tools[0], "{}").await;
        assert!(wrong.is_error && wrong.text.contains("numbers is a list"), "{wrong:?}");
        // The server receives the cancellation.
        let cancel = CancelToken::new();
        let mut input = ToolInput::new("c", r#"{"numbers":[]}"#);
        input.cancel = cancel.clone();
        let (cancelled, ()) = tokio::join!(tools[0].run(input), async { cancel.cancel() });
        assert!(cancelled.is_error);
        assert_eq!(call(&tools[0], r#"{"numbers": [7]}"#).await, ToolOutput::ok("7"));
    }
}

/// A server at a URL, with or without a handshake, with JSON or event streams.
fn at_url(has_handshake: bool, is_stream: bool) -> ModelServer {
    ModelServer::answering(move |received| {
        let request: Value = serde_json::from_slice(&received.body).unwrap();
        let method = request["method"].as_str().unwrap();
        assert_eq!(received.header("mcp-method"), Some(method));
        assert_eq!(received.header("authorization"), Some("Bearer t"));
        let version = received.header("mcp-protocol-version");
        let Some(id) = request.get("id") else { return Reply::json(202, "") };
        let answer = |result: Value| {
            let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
            let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress"});
            match is_stream {
                true => Reply::stream(format!("data: {progress}\n\ndata: {answer}\n\n")),
                false => Reply::json(200, answer.to_string()),
            }
        };
        match (method, has_handshake) {
            ("server/discover", false) => answer(json!({"supportedVersions": ["2026-07-28"]})),
            ("initialize", true) => {
                answer(json!({"protocolVersion": "2025-03-26"})).header("mcp-session-id", "s-1")
            }
            ("server/discover" | "initialize", _) => Reply::json(400, "no"),
            (_, true) => {
                assert_eq!(received.header("mcp-session-id"), Some("s-1"));
                assert_eq!(version, Some("2025-03-26"));
                tools_at_url(method, &answer)
            }
            (_, false) => {
                assert_eq!(version, Some("2026-07-28"));
                let about = &request["params"]["_meta"];
                assert_eq!(about["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
                tools_at_url(method, &answer)
            }
        }
    })
}

fn tools_at_url(method: &str, answer: &dyn Fn(Value) -> Reply) -> Reply {
    match method {
        "tools/list" => answer(json!({"tools": [{"name": "hi", "inputSchema": {}}]})),
        _ => answer(json!({"content": [{"type": "text", "text": "hello"}]})),
    }
}

#[tokio::test]
async fn a_server_at_a_url_works_with_and_without_a_handshake() {
    for has_handshake in [false, true] {
        for is_stream in [false, true] {
            let web = at_url(has_handshake, is_stream);
            let server = McpServer::url("web", format!("{}/mcp", web.url()));
            let tools = server.header("authorization", "Bearer t").tools().await.unwrap();
            assert_eq!(tools[0].describe().name(), "web__hi");
            let output = call(&tools[0], "{}").await;
            assert_eq!(output, ToolOutput::ok("hello"), "{has_handshake} {is_stream}");
            let last = web.received().pop().unwrap();
            assert_eq!(last.header("mcp-name"), Some("hi"));
        }
    }
    let closed = McpServer::url("web", "http://127.0.0.1:1/mcp").tools().await.unwrap_err();
    assert!(matches!(closed, Error::McpServer { .. }), "{closed}");
}

#[tokio::test]
async fn a_model_calls_tools_of_a_server_and_a_crash_is_a_result() {
    for target in TARGETS {
        for (kind, said) in [("plain", "web-1"), ("dies", "exit status: 9")] {
            let model = ModelServer::replying([
                ScriptedReply::call("c1", "s__echo", r#"{"host":"web-1"}"#).streamed(target),
                ScriptedReply::text("I see.").streamed(target),
            ]);
            let agent = agent(target, &model).await.tools(tools(kind).await);
            let run = agent.send(Message::user("Echo.")).await.unwrap();
            assert_eq!((run.stop, run.text.as_str()), (Stop::Done, "I see."), "{kind}");
            let second = model.received()[1].body.clone();
            check(target, &second);
            let second = String::from_utf8(second).unwrap();
            assert!(second.contains(said), "{kind}: {second}");
        }
    }
}

#[tokio::test]
async fn a_tool_that_no_provider_accepts_is_omitted_and_the_others_are_kept() {
    let (tools, warnings) = server("odd schema").tools_with_warnings().await.unwrap();
    let names: Vec<String> = tools.iter().map(|tool| tool.describe().name().into()).collect();
    assert_eq!(names, ["s__echo"]);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("s__list") && warnings[0].contains("object"), "{warnings:?}");
}
