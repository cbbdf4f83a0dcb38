use serde_json::{Value, json};
use testkit::provider::Provider::OpenAiChat;

use super::{Refused, accepts, covers, refuses};

fn user() -> Value {
    json!({"role": "user", "content": "hi"})
}

fn call(id: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": "read", "arguments": "{}"}})
}

fn calling(ids: &[&str]) -> Value {
    let calls: Vec<Value> = ids.iter().map(|id| call(id)).collect();
    json!({"role": "assistant", "content": null, "tool_calls": calls})
}

fn result(id: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": "done"})
}

fn request(messages: Vec<Value>) -> Value {
    json!({"messages": messages})
}

fn one(message: Value) -> Value {
    request(vec![message])
}

fn with_call(call: Value) -> Value {
    request(vec![json!({"role": "assistant", "tool_calls": [call]}), result("a")])
}

#[test]
fn valid_requests_are_accepted() {
    accepts(
        OpenAiChat,
        vec![
            one(user()),
            one(json!({"role": "assistant", "content": "hi"})),
            request(vec![json!({"role": "system", "content": "be kind"}), user(), user()]),
            request(vec![
                user(),
                json!({"role": "developer", "content": [{"type": "text", "text": "x"}]}),
            ]),
            request(vec![calling(&["a", "b"]), result("b"), result("a"), user()]),
            // An id may be used again in a later turn.
            request(vec![calling(&["a"]), result("a"), calling(&["a"]), result("a")]),
            request(vec![
                json!({"role": "assistant", "content": "", "tool_calls": [call("a")]}),
                json!({"role": "tool", "tool_call_id": "a", "content": ""}),
            ]),
            with_call(
                json!({"id": "a", "type": "function", "function": {"name": "f", "arguments": "{not json"}}),
            ),
            with_call(json!({"id": "a", "type": "custom", "custom": {"name": "f", "input": "ls"}})),
            one(json!({"role": "assistant", "content": null, "refusal": "no"})),
            one(json!({"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]})),
            one(json!({"role": "user", "name": "ann_1", "content": [
                {"type": "text", "text": "see"},
                {"type": "image_url", "image_url": {"url": "https://x/y.png", "detail": "low"}},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
                {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
                {"type": "file", "file": {"file_id": "file-1"}},
            ]})),
            request(vec![
                calling(&["1234567890123456789012345678901234567890"]),
                result("1234567890123456789012345678901234567890"),
            ]),
        ],
    );
}

#[test]
fn every_rule_refuses_a_request_that_breaks_it() {
    let cases = vec![
        Refused("messages", "messages", json!({"messages": []})),
        Refused("messages", "messages[0]", one(json!("hi"))),
        Refused("role", "messages[0]", one(json!({"role": "human", "content": "hi"}))),
        Refused("role", "messages[0].role", one(json!({"content": "hi"}))),
        Refused(
            "field",
            "messages[0].metadata",
            one(json!({"role": "user", "content": "hi", "metadata": {}})),
        ),
        Refused(
            "field",
            "messages[0].tool_calls",
            one(json!({"role": "user", "content": "hi", "tool_calls": [call("a")]})),
        ),
        Refused("content", "messages[0].content", one(json!({"role": "user"}))),
        Refused(
            "content",
            "messages[0].content",
            one(json!({"role": "assistant", "content": null})),
        ),
        Refused("content", "messages[0].content", one(json!({"role": "user", "content": []}))),
        Refused("content", "messages[0].content", one(json!({"role": "user", "content": 1}))),
        Refused(
            "part",
            "messages[0].content[0]",
            one(json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]})),
        ),
        Refused(
            "part",
            "messages[0].content[0]",
            one(
                json!({"role": "assistant", "content": [{"type": "image_url", "image_url": {"url": "https://x"}}]}),
            ),
        ),
        Refused(
            "part",
            "messages[0].content[0]",
            one(
                json!({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "/etc/passwd"}}]}),
            ),
        ),
        Refused(
            "part",
            "messages[0].content[0]",
            one(
                json!({"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "AAAA", "format": "ogg"}}]}),
            ),
        ),
        Refused(
            "part",
            "messages[0].content[0]",
            one(json!({"role": "user", "content": [{"type": "file", "file": {}}]})),
        ),
        Refused(
            "name",
            "messages[0].name",
            one(json!({"role": "user", "content": "hi", "name": "Ann Lee"})),
        ),
        Refused(
            "tool_calls",
            "messages[0].tool_calls",
            one(json!({"role": "assistant", "tool_calls": []})),
        ),
        Refused(
            "tool_calls",
            "messages[0].tool_calls[0]",
            with_call(json!({"id": "a", "type": "tool", "function": {}})),
        ),
        Refused("call_id", "messages[0].tool_calls[0].id", with_call(json!({"type": "function"}))),
        Refused(
            "call_id",
            "messages[0].tool_calls[0]",
            request(vec![calling(&["12345678901234567890123456789012345678901"])]),
        ),
        Refused(
            "function_name",
            "messages[0].tool_calls[0]",
            with_call(
                json!({"id": "a", "type": "function", "function": {"name": "a.b", "arguments": "{}"}}),
            ),
        ),
        Refused(
            "function_name",
            "messages[0].tool_calls[0]",
            with_call(
                json!({"id": "a", "type": "function", "function": {"name": "f".repeat(65), "arguments": "{}"}}),
            ),
        ),
        Refused(
            "arguments",
            "messages[0].tool_calls[0].arguments",
            with_call(
                json!({"id": "a", "type": "function", "function": {"name": "f", "arguments": {}}}),
            ),
        ),
        Refused("unanswered_call", "messages[1]", request(vec![calling(&["a"])])),
        Refused(
            "unanswered_call",
            "messages[2]",
            request(vec![calling(&["a", "b"]), result("a"), user(), result("b")]),
        ),
        Refused("unknown_result", "messages[1]", request(vec![user(), result("a")])),
        Refused("unknown_result", "messages[1]", request(vec![calling(&["a"]), result("b")])),
        Refused(
            "unknown_result",
            "messages[3]",
            request(vec![calling(&["a"]), result("a"), user(), result("a")]),
        ),
        Refused(
            "duplicate_call",
            "messages[0].tool_calls[1]",
            request(vec![calling(&["a", "a"]), result("a"), result("a")]),
        ),
        Refused(
            "duplicate_result",
            "messages[2]",
            request(vec![calling(&["a"]), result("a"), result("a")]),
        ),
    ];
    covers(OpenAiChat, &cases, &[]);
    refuses(OpenAiChat, cases);
}
