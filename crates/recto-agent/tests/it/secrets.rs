//! Errors and manifests contain no keys, even if a provider or server repeats a key.

use recto::Message;
use recto_agent::{Agent, Endpoint, HttpModel, McpServer, RunTool as _, Target, ToolInput};
use serde_json::{Value, json};
use testserver::{ModelServer, Reply};

use crate::{TARGETS, conversation, model};

const KEY: &str = "sk-very-secret";

/// Sends a message to a model that fails. Returns the error and everything that was stored.
async fn error_and_log(agent: Agent) -> String {
    let error = agent.send(Message::user("Hi!")).await.unwrap_err();
    let calls = agent.calls().await.unwrap();
    let log = agent.conversation().stats().await.unwrap().total_messages;
    let log: Vec<_> = (0..log).map(|index| recto::LogIndex(index as u32)).collect();
    let entries = agent.conversation().entries(&log).await.unwrap();
    let entries: Vec<&str> = entries.iter().map(|entry| entry.message.json()).collect();
    format!("{error} {error:?} {calls:?} {}", entries.join(" "))
}

#[tokio::test]
async fn a_key_that_a_provider_repeats_in_a_stream_is_redacted() {
    for target in TARGETS {
        let complaint = format!("you sent Bearer {KEY}");
        let (error, kind) =
            (json!({"message": complaint, "type": "invalid_request_error"}), "error");
        let error = match target {
            Target::OpenAiResponses => {
                json!({"type": kind, "code": "invalid_prompt", "message": complaint})
            }
            _ => json!({"type": kind, "error": error}),
        };
        // The key is at the position at which the quoted text might be cut.
        let half = format!("{}{KEY}", "x".repeat(69));
        for event in [error.to_string(), format!("{{{KEY}"), format!("{{{half}")] {
            let server = ModelServer::replying([Reply::stream(format!("data: {event}\n\n"))]);
            let text =
                error_and_log(Agent::new(conversation().await, model(target, &server))).await;
            assert!(text.contains('…') && !text.contains("sk-very"), "{target}: {text}");
        }
    }
}

#[tokio::test]
async fn a_key_in_the_url_is_in_no_error_and_no_manifest() {
    let server =
        ModelServer::replying([Reply::json(400, r#"{"error":{"message":"bad key=abc"}}"#)]);
    let base = |url: &str| format!("{}/v1?key=abc", url.replace("//", "//user:pass-word@"));
    let endpoint = Endpoint::new(base(&server.url()), "m");
    let agent = Agent::new(conversation().await, HttpModel::openai_chat(endpoint).unwrap());
    let text = error_and_log(agent).await;
    assert!(!text.contains("key=abc") && !text.contains("pass-word"), "{text}");
    assert_eq!(server.received()[0].path, "/v1/chat/completions?key=abc");

    let mut endpoint = Endpoint::new(base("http://127.0.0.1:1"), "m");
    endpoint.retry.max_attempts = 1;
    let agent = Agent::new(conversation().await, HttpModel::openai_chat(endpoint).unwrap());
    let text = error_and_log(agent).await;
    assert!(text.contains("http://127.0.0.1:1/v1"), "{text}");
    assert!(!text.contains("key=abc") && !text.contains("pass-word"), "{text}");
}

#[tokio::test]
async fn a_key_that_an_mcp_server_repeats_is_redacted() {
    let refuses = |only: Option<&'static str>| {
        ModelServer::answering(move |received| {
            let request: Value = serde_json::from_slice(&received.body).unwrap();
            let Some(id) = request.get("id") else { return Reply::json(202, "") };
            let header = received.header("authorization").unwrap();
            let method = request["method"].as_str().unwrap();
            if only.is_none_or(|only| only == method) {
                let error = json!({"code": -32001, "message": format!("wrong: {header}")});
                let answer = json!({"jsonrpc": "2.0", "id": id, "error": error});
                return Reply::json(401, answer.to_string());
            }
            let result = json!({"supportedVersions": ["2026-07-28"], "tools": [{"name": "t"}]});
            Reply::json(200, json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string())
        })
    };
    let server = |web: &ModelServer| {
        let server = McpServer::url("web", format!("{}/mcp?key=abc", web.url()));
        let server = server.header("authorization", format!("Bearer {KEY}"));
        assert!(!format!("{server:?}").contains("abc"), "{server:?}");
        server
    };
    let error = server(&refuses(None)).tools().await.unwrap_err().to_string();
    assert!(error.contains("wrong: …") && !error.contains(KEY), "{error}");
    let web = refuses(Some("tools/call"));
    let tools = server(&web).tools().await.unwrap();
    let input = ToolInput::new("c", "{}");
    let output = tools[0].run(input).await.text;
    assert!(output.contains("wrong: …") && !output.contains(KEY), "{output}");
}
