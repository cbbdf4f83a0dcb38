//! An MCP server for the tests. The first argument selects its behaviour: correct, or one of many
//! faults.
//!
//! `good` answers the handshake, lists its tools in two pages, and sends two requests to the client before
//! it answers a call.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a server prints its messages")]

use std::io::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

fn main() {
    let kind = std::env::args().nth(1).unwrap_or_else(|| "good".into());
    if kind == "no start" {
        eprintln!("there is no such database");
        std::process::exit(3);
    }
    let mut has_shaken_hands = false;
    // `slow modern` sends the response to the first request only after the second request has come.
    let mut held_back = None;
    let mut is_first = true;
    while let Some(line) = hear() {
        let message: Value = serde_json::from_str(&line).expect("a client sends JSON");
        if kind == "deaf" {
            continue;
        }
        if kind == "strict" && message["method"] != "initialize" && !has_shaken_hands {
            eprintln!("a handshake was expected");
            std::process::exit(1);
        }
        has_shaken_hands |= message["method"] == "initialize";
        if kind == "noisy" {
            say("Server starting up…");
            say("{\"half\": ");
            say("[1, 2, 3]");
            say(json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {}}));
            say(json!({"jsonrpc": "2.0", "id": 4_000_000, "result": {}}));
        }
        let answer = answer(&kind, &message, &line);
        if kind == "slow modern" && std::mem::take(&mut is_first) {
            held_back = answer;
            continue;
        }
        for answer in held_back.take().into_iter().chain(answer) {
            say(&answer);
        }
    }
}

/// Reads the next line.
fn hear() -> Option<String> {
    let mut line = String::new();
    let len = std::io::stdin().read_line(&mut line).ok()?;
    (len > 0).then(|| line.trim_end().to_owned())
}

fn say(what: impl std::fmt::Display) {
    let mut out = std::io::stdout().lock();
    // The client may have exited.
    let _ = writeln!(out, "{what}").and_then(|()| out.flush());
}

fn answer(kind: &str, message: &Value, line: &str) -> Option<Value> {
    let id = message.get("id")?;
    let result = |result: Value| Some(json!({"jsonrpc": "2.0", "id": id, "result": result}));
    let error = |code: i64, text: &str| {
        Some(json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": text}}))
    };
    let echo = json!({"name": "echo", "description": "Says what it is given.", "inputSchema":
        {"type": "object", "properties": {"limit": {"type": "number", "maximum": 1.5}}}});
    let is_modern = kind.ends_with("modern");
    let version = &message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
    match message["method"].as_str()? {
        "server/discover" if is_modern => {
            result(json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}))
        }
        _ if is_modern && version != "2026-07-28" => {
            error(-32602, "the protocol version is missing")
        }
        "initialize" => result(json!({"protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}}, "serverInfo": {"name": kind, "version": "1"}})),
        "tools/list" => match kind {
            "nothing" => result(json!({"tools": []})),
            "no tools" => error(-32601, "Method not found"),
            "odd list" => result(json!({"tools": "none"})),
            "odd schema" => result(json!({"tools": [
                {"name": "list", "inputSchema": {"type": "array"}}, echo]})),
            "endless" => result(json!({"tools": [], "nextCursor": "again"})),
            _ if message["params"]["cursor"] == "2" => result(json!({"tools": [
                {"name": "variables", "inputSchema": {"type": "object"}}, {"name": 7}, echo]})),
            _ => result(json!({"tools": [echo], "nextCursor": "2"})),
        },
        "tools/call" => {
            let text = match message["params"]["name"].as_str() {
                Some("variables") => {
                    let mut names: Vec<String> = std::env::vars().map(|(name, _)| name).collect();
                    names.sort();
                    names.join(" ")
                }
                // The bytes of `arguments`, which is the last field of the request after a handshake. All
                // braces at its end are replaced by one, so its last value must not be an object.
                _ => {
                    let at = line.find("\"arguments\":")? + "\"arguments\":".len();
                    line[at..].trim_end_matches('}').to_owned() + "}"
                }
            };
            call(kind, &text, &result, &error)
        }
        "ping" => result(json!({})),
        _ => error(-32601, "Method not found"),
    }
}

fn call(
    kind: &str,
    text: &str,
    result: &dyn Fn(Value) -> Option<Value>,
    error: &dyn Fn(i64, &str) -> Option<Value>,
) -> Option<Value> {
    let said = |text: &str| json!({"content": [{"type": "text", "text": text}]});
    match kind {
        "dies" => {
            eprintln!("segmentation fault");
            std::process::exit(9);
        }
        // Exits in the first process only. A file, the second argument, shows that it has run.
        "dies once" => {
            let file = std::env::args().nth(2).expect("a file");
            if !std::fs::exists(&file).unwrap_or(true) {
                std::fs::write(&file, "").expect("it can be written");
                std::process::exit(9);
            }
            result(said(text))
        }
        "late" => None,
        // The first call of the process gets no response.
        "late once" => {
            static CALLS: AtomicUsize = AtomicUsize::new(0);
            match CALLS.fetch_add(1, Ordering::Relaxed) {
                0 => None,
                _ => result(said(text)),
            }
        }
        "rubbish" => {
            say("Traceback (most recent call last):");
            None
        }
        "long" => result(said(&"x".repeat(3 << 20))),
        "large" => result(said(&"é".repeat(100_000))),
        "refuses" => error(-32602, "no such host"),
        "fails" => {
            result(json!({"content": [{"type": "text", "text": "disk full"}], "isError": true}))
        }
        "odd result" => result(json!(7)),
        "closes" => {
            std::process::exit(0);
        }
        "good" => {
            say(json!({"jsonrpc": "2.0", "id": "q1", "method": "ping"}));
            say(
                json!({"jsonrpc": "2.0", "id": "q2", "method": "sampling/createMessage", "params": {}}),
            );
            let (ping, sampling) = (hear()?, hear()?);
            assert!(ping.contains(r#""id":"q1","result":{}"#), "{ping}");
            assert!(sampling.contains(r#""id":"q2","error":{"code":-32601"#), "{sampling}");
            result(said(text))
        }
        _ => result(said(text)),
    }
}
