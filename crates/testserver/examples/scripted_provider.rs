//! A model provider with a script, for agents of any framework. It refuses what OpenAI refuses.
//!
//! ```text
//! cargo run -p testserver --example scripted_provider -- CALLS WINDOW
//! ```
//!
//! In each turn the model calls the tool `read` CALLS times and then answers. A request is refused with
//! status 400 if it breaks a rule of `testkit::provider`, or if its messages have more than WINDOW tokens. A
//! request without tools gets a text, as a summary. The first line of output is the URL; the server stops
//! when its standard input ends.
//!
//! | path | |
//! |---|---|
//! | `/RUN/v1/chat/completions`, `/RUN/v1/responses` | a model call of a run; RUN is any name |
//! | `/RUN/turn` | the next turn of the run begins |
//! | `/RUN/figures` | what the run has sent, as JSON |
#![allow(clippy::print_stdout, reason = "an example prints its result")]

use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::io::{Read as _, stdin};

use recto_bpe::Bpe;
use serde_json::{Value, json};
use testkit::provider::Provider;
use testserver::{ModelServer, Received, Reply};

const SUMMARY: &str = "The user asks why the checkout fails. The files that were read so far show \
                       timeouts of the payment service; no cause has been found yet.";

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<usize> =
        std::env::args().skip(1).map(|it| it.parse()).collect::<Result<_, _>>()?;
    let [calls, window] = arguments[..] else {
        return Err("usage: scripted_provider CALLS WINDOW".into());
    };
    let script = Script { calls, window: window as u64 };
    let mut runs: HashMap<String, Run> = HashMap::new();
    let server = ModelServer::answering(move |received| {
        let (name, path) = received.path[1..].split_once('/').unwrap_or_default();
        let run = runs.entry(name.to_owned()).or_default();
        match path {
            "turn" => {
                run.calls = 0;
                Reply::json(200, "{}")
            }
            "figures" => Reply::json(200, run.figures.to_json().to_string()),
            "v1/chat/completions" => script.reply(run, Provider::OpenAiChat, received),
            "v1/responses" => script.reply(run, Provider::OpenAiResponses, received),
            _ => Reply::json(404, r#"{"error":{"message":"unknown path"}}"#),
        }
    });
    println!("{}", server.url());
    stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

struct Script {
    /// Number of tool calls of a turn.
    calls: usize,
    /// The largest number of tokens of a request.
    window: u64,
}

/// An agent run.
#[derive(Default)]
struct Run {
    /// Number of tool calls in the present turn.
    calls: usize,
    /// The messages of the request before, as JSON.
    previous: Vec<String>,
    figures: Figures,
}

/// What a run has sent.
#[derive(Default)]
struct Figures {
    /// Accepted requests, without those for summaries.
    accepted: u64,
    /// Accepted requests without tools.
    summaries: u64,
    /// Refused requests, by the name of the rule.
    refused: BTreeMap<&'static str, u64>,
    /// Tokens of the messages of all accepted requests.
    tokens: u64,
    /// Those of them that are also the front of the accepted request before.
    kept_tokens: u64,
}

impl Figures {
    fn to_json(&self) -> Value {
        json!({
            "accepted": self.accepted,
            "summaries": self.summaries,
            "refused": self.refused,
            "tokens": self.tokens,
            "keptTokens": self.kept_tokens,
        })
    }
}

impl Script {
    fn reply(&self, run: &mut Run, provider: Provider, received: &Received) -> Reply {
        let refuse = |run: &mut Run, rule: &'static str, message: &str| {
            *run.figures.refused.entry(rule).or_default() += 1;
            let error = json!({"message": message, "type": "invalid_request_error", "code": rule});
            Reply::json(400, json!({"error": error}).to_string())
        };
        let Ok(request) = serde_json::from_slice::<Value>(&received.body) else {
            return refuse(run, "json", "the body is not JSON");
        };
        if let Err(violation) = provider.check(&request) {
            return refuse(run, violation.rule, &violation.to_string());
        }
        let messages = messages_of(&request);
        let tokens: Vec<u64> = messages.iter().map(|text| Bpe::O200kBase.count(text)).collect();
        let total: u64 = tokens.iter().sum();
        if total > self.window {
            let message = format!("{total} tokens are more than the {} of the model", self.window);
            return refuse(run, "context_length_exceeded", &message);
        }
        run.figures.tokens += total;
        if request.get("tools").and_then(Value::as_array).is_none_or(Vec::is_empty) {
            run.figures.summaries += 1;
            return Reply::json(200, response(provider, 0, &Said::Text(SUMMARY), total));
        }
        let same = run.previous.iter().zip(&messages).take_while(|(old, new)| old == new).count();
        run.figures.kept_tokens += tokens[..same].iter().sum::<u64>();
        run.figures.accepted += 1;
        run.previous = messages;
        let number = run.figures.accepted;
        let said = match run.calls < self.calls {
            true => Said::Call(json!({"path": format!("src/file_{number}.py")}).to_string()),
            false => Said::Text("The payment service times out after 30 s, see the log."),
        };
        run.calls += 1;
        match request.get("stream") == Some(&Value::Bool(true)) {
            true => Reply::stream(chunks(number, &said)),
            false => Reply::json(200, response(provider, number, &said, total)),
        }
    }
}

/// What the model says.
enum Said {
    Text(&'static str),
    /// A call of the tool `read`, with its arguments.
    Call(String),
}

/// The messages of a request, each as JSON. Instructions are the first.
fn messages_of(request: &Value) -> Vec<String> {
    let instructions = request.get("instructions").filter(|it| it.is_string());
    let list = ["messages", "input"].iter().find_map(|field| request.get(field));
    let items: Vec<&Value> = match list {
        Some(Value::Array(items)) => items.iter().collect(),
        Some(text) => vec![text],
        None => vec![],
    };
    instructions.into_iter().chain(items).map(Value::to_string).collect()
}

/// A successful response of chat completions as a stream: one chunk with the whole answer.
fn chunks(number: u64, said: &Said) -> String {
    let (delta, reason) = match said {
        Said::Text(text) => (json!({"role": "assistant", "content": text}), "stop"),
        Said::Call(arguments) => {
            let function = json!({"name": "read", "arguments": arguments});
            let id = format!("call_{number}");
            let call = json!({"index": 0, "id": id, "type": "function", "function": function});
            (json!({"role": "assistant", "tool_calls": [call]}), "tool_calls")
        }
    };
    let chunk = |delta: Value, reason: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": reason});
        json!({
            "id": format!("chatcmpl-{number}"),
            "object": "chat.completion.chunk",
            "created": 1_800_000_000,
            "model": "scripted",
            "choices": [choice],
        })
    };
    let (said, end) = (chunk(delta, Value::Null), chunk(json!({}), json!(reason)));
    format!("data: {said}\n\ndata: {end}\n\ndata: [DONE]\n\n")
}

/// The body of a successful response.
fn response(provider: Provider, number: u64, said: &Said, tokens: u64) -> String {
    let call_id = format!("call_{number}");
    let value = match provider {
        Provider::OpenAiChat => {
            let message = match said {
                Said::Text(text) => json!({"role": "assistant", "content": text}),
                Said::Call(arguments) => {
                    json!({"role": "assistant", "content": null, "tool_calls": [{
                        "id": call_id,
                        "type": "function",
                        "function": {"name": "read", "arguments": arguments},
                    }]})
                }
            };
            let reason = if message.get("tool_calls").is_some() { "tool_calls" } else { "stop" };
            json!({
                "id": format!("chatcmpl-{number}"),
                "object": "chat.completion",
                "created": 1_800_000_000,
                "model": "scripted",
                "choices": [{"index": 0, "message": message, "finish_reason": reason}],
                "usage": {"prompt_tokens": tokens, "completion_tokens": 20, "total_tokens": tokens + 20},
            })
        }
        _ => {
            let item = match said {
                Said::Text(text) => json!({
                    "type": "message",
                    "id": format!("msg_{number}"),
                    "role": "assistant",
                    "status": "completed",
                    "content": [{"type": "output_text", "text": text, "annotations": []}],
                }),
                Said::Call(arguments) => json!({
                    "type": "function_call",
                    "id": format!("fc_{number}"),
                    "call_id": call_id,
                    "name": "read",
                    "arguments": arguments,
                    "status": "completed",
                }),
            };
            json!({
                "id": format!("resp_{number}"),
                "object": "response",
                "created_at": 1_800_000_000,
                "model": "scripted",
                "status": "completed",
                "output": [item],
                "parallel_tool_calls": false,
                "tool_choice": "auto",
                "tools": [],
                "usage": {
                    "input_tokens": tokens,
                    "input_tokens_details": {"cached_tokens": 0},
                    "output_tokens": 20,
                    "output_tokens_details": {"reasoning_tokens": 0},
                    "total_tokens": tokens + 20,
                },
            })
        }
    };
    value.to_string()
}
