use serde_json::{Value, json};
use testkit::provider::Provider::Anthropic;

use super::{Refused, accepts, covers, refuses};

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn user(blocks: Vec<Value>) -> Value {
    json!({"role": "user", "content": blocks})
}

fn hi() -> Value {
    user(vec![text("hi")])
}

fn assistant(blocks: Vec<Value>) -> Value {
    json!({"role": "assistant", "content": blocks})
}

fn call(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "read", "input": {}})
}

fn result(id: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": "done"})
}

fn thinking() -> Value {
    json!({"type": "thinking", "thinking": "hm", "signature": "AAAA"})
}

fn request(messages: Vec<Value>) -> Value {
    json!({"messages": messages})
}

/// A user message, a call, and a user message with these blocks.
fn answered(blocks: Vec<Value>) -> Value {
    request(vec![hi(), assistant(vec![call("a")]), user(blocks)])
}

fn changed(mut block: Value, field: &str, value: Value) -> Value {
    block[field] = value;
    block
}

#[test]
fn valid_requests_are_accepted() {
    let marked = changed(text("x"), "cache_control", json!({"type": "ephemeral"}));
    accepts(
        Anthropic,
        vec![
            request(vec![json!({"role": "user", "content": "hi"})]),
            json!({"system": "be kind", "messages": [hi()]}),
            json!({"system": [marked.clone()], "messages": [user(vec![marked.clone(), marked.clone(), marked])]}),
            request(vec![hi(), hi(), assistant(vec![text("x")])]),
            answered(vec![result("a"), text("and?")]),
            answered(vec![json!({"type": "tool_result", "tool_use_id": "a"})]),
            answered(vec![
                json!({"type": "tool_result", "tool_use_id": "a", "is_error": true, "content": "no"}),
            ]),
            request(vec![
                hi(),
                assistant(vec![thinking(), text("x"), call("a"), call("b")]),
                user(vec![result("b"), result("a")]),
                assistant(vec![text("done")]),
            ]),
            request(vec![
                hi(),
                assistant(vec![json!({"type": "redacted_thinking", "data": "AAAA"}), text("x")]),
                hi(),
            ]),
            request(vec![user(vec![
                json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}),
                json!({"type": "image", "source": {"type": "url", "url": "https://x/y"}}),
            ])]),
            request(vec![
                hi(),
                assistant(vec![
                    json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}),
                    json!({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}),
                    text("found"),
                ]),
                hi(),
            ]),
            json!({"thinking": {"type": "enabled", "budget_tokens": 1024}, "messages": [
                hi(), assistant(vec![thinking(), call("a")]), user(vec![result("a")])
            ]}),
        ],
    );
}

#[test]
fn every_rule_refuses_a_request_that_breaks_it() {
    let marked = changed(text("x"), "cache_control", json!({"type": "ephemeral"}));
    let search =
        json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}});
    let source = json!({"type": "text", "media_type": "text/plain", "data": "x"});
    let document = json!({"type": "document", "source": source});
    let cases = vec![
        Refused("messages", "messages", json!({"messages": []})),
        Refused("messages", "messages[0]", request(vec![json!("hi")])),
        Refused(
            "role",
            "messages[0]",
            request(vec![json!({"role": "system", "content": "be kind"})]),
        ),
        Refused(
            "role",
            "messages[1]",
            request(vec![hi(), json!({"role": "tool", "content": "x"})]),
        ),
        Refused("field", "messages[0].id", request(vec![changed(hi(), "id", json!("m1"))])),
        Refused(
            "field",
            "messages[0].content[0].metadata",
            request(vec![user(vec![changed(text("x"), "metadata", json!({}))])]),
        ),
        Refused("content", "messages[0].content", request(vec![user(vec![])])),
        Refused(
            "content",
            "messages[0].content",
            request(vec![json!({"role": "user", "content": null})]),
        ),
        Refused(
            "empty_text",
            "messages[0].content",
            request(vec![json!({"role": "user", "content": ""})]),
        ),
        Refused("empty_text", "messages[0].content[0]", request(vec![user(vec![text("")])])),
        Refused("empty_text", "messages[0].content[0]", request(vec![user(vec![text(" \n")])])),
        Refused(
            "empty_text",
            "messages[2].content[0].content[0]",
            answered(vec![changed(result("a"), "content", json!([{"type": "text", "text": ""}]))]),
        ),
        Refused("block", "messages[0].content[0]", request(vec![user(vec![thinking()])])),
        Refused("block", "messages[0].content[0]", request(vec![user(vec![call("a")])])),
        Refused(
            "block",
            "messages[1].content[0]",
            request(vec![
                hi(),
                assistant(vec![
                    json!({"type": "image", "source": {"type": "url", "url": "https://x"}}),
                ]),
            ]),
        ),
        Refused(
            "block",
            "messages[0].content[0].source",
            request(vec![user(vec![
                json!({"type": "image", "source": {"type": "base64", "media_type": "image/bmp", "data": "AAAA"}}),
            ])]),
        ),
        Refused(
            "block",
            "messages[2].content[0].content[0]",
            answered(vec![changed(result("a"), "content", json!([{"type": "audio"}]))]),
        ),
        Refused("system", "system", json!({"system": [], "messages": [hi()]})),
        Refused("system", "system[0]", json!({"system": [{"type": "image"}], "messages": [hi()]})),
        Refused("empty_text", "system", json!({"system": "", "messages": [hi()]})),
        Refused(
            "call_id",
            "messages[1].content[0]",
            request(vec![hi(), assistant(vec![call("a.b")]), user(vec![result("a.b")])]),
        ),
        Refused(
            "call_id",
            "messages[1].content[0]",
            request(vec![hi(), assistant(vec![call("")])]),
        ),
        Refused(
            "tool_name",
            "messages[1].content[0]",
            request(vec![
                hi(),
                assistant(vec![changed(call("a"), "name", json!("x".repeat(201)))]),
            ]),
        ),
        Refused(
            "tool_name",
            "messages[1].content[0]",
            request(vec![hi(), assistant(vec![changed(call("a"), "name", json!("a b"))])]),
        ),
        Refused(
            "input",
            "messages[1].content[0].input",
            request(vec![hi(), assistant(vec![changed(call("a"), "input", json!("{}"))])]),
        ),
        Refused("unanswered_call", "messages[1]", request(vec![hi(), assistant(vec![call("a")])])),
        Refused("unanswered_call", "messages[2]", answered(vec![text("x")])),
        Refused(
            "unanswered_call",
            "messages[2]",
            request(vec![
                hi(),
                assistant(vec![call("a"), call("b")]),
                user(vec![result("a")]),
                user(vec![result("b")]),
            ]),
        ),
        Refused(
            "unanswered_call",
            "messages[2]",
            request(vec![
                hi(),
                assistant(vec![call("a")]),
                assistant(vec![text("x")]),
                user(vec![result("a")]),
            ]),
        ),
        Refused("unknown_result", "messages[0].content[0]", request(vec![user(vec![result("a")])])),
        Refused(
            "unknown_result",
            "messages[2].content[1]",
            answered(vec![result("a"), result("b")]),
        ),
        Refused(
            "duplicate_call",
            "messages[1].content[1]",
            request(vec![hi(), assistant(vec![call("a"), call("a")]), user(vec![result("a")])]),
        ),
        Refused(
            "duplicate_result",
            "messages[2].content[1]",
            answered(vec![result("a"), result("a")]),
        ),
        Refused("results_first", "messages[2].content[1]", answered(vec![text("x"), result("a")])),
        Refused(
            "error_result",
            "messages[2].content[0].content",
            answered(vec![
                json!({"type": "tool_result", "tool_use_id": "a", "is_error": true, "content": ""}),
            ]),
        ),
        Refused(
            "error_result",
            "messages[2].content[0].content[0]",
            answered(vec![json!({"type": "tool_result", "tool_use_id": "a", "is_error": true,
                "content": [{"type": "image", "source": {"type": "url", "url": "https://x"}}]})]),
        ),
        Refused(
            "signature",
            "messages[1].content[0].signature",
            request(vec![
                hi(),
                assistant(vec![json!({"type": "thinking", "thinking": "hm"}), text("x")]),
            ]),
        ),
        Refused(
            "signature",
            "messages[1].content[0].signature",
            request(vec![
                hi(),
                assistant(vec![changed(thinking(), "signature", json!("")), text("x")]),
            ]),
        ),
        Refused(
            "signature",
            "messages[1].content[0].data",
            request(vec![hi(), assistant(vec![json!({"type": "redacted_thinking"}), text("x")])]),
        ),
        Refused(
            "last_thinking",
            "messages[1]",
            request(vec![hi(), assistant(vec![text("x"), thinking()]), hi()]),
        ),
        Refused(
            "trailing_whitespace",
            "messages[1]",
            request(vec![hi(), assistant(vec![text("x ")])]),
        ),
        Refused("cache_control", "request", request(vec![user(vec![marked; 5])])),
        Refused(
            "cache_control",
            "request",
            request(vec![user(vec![changed(
                text("x"),
                "cache_control",
                json!({"type": "eternal"}),
            )])]),
        ),
        Refused(
            "server_result",
            "messages[1].content[0]",
            request(vec![
                hi(),
                assistant(vec![
                    json!({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}),
                ]),
            ]),
        ),
        Refused(
            "server_result",
            "messages[1]",
            request(vec![hi(), assistant(vec![search, text("x")]), hi()]),
        ),
        Refused(
            "thinking_first",
            "messages[1]",
            json!({"thinking": {"type": "enabled", "budget_tokens": 1024},
            "messages": [hi(), assistant(vec![call("a")]), user(vec![result("a")])]}),
        ),
        Refused(
            "citations",
            "messages",
            request(vec![user(vec![
                document.clone(),
                changed(document, "citations", json!({"enabled": true})),
            ])]),
        ),
    ];
    covers(Anthropic, &cases, &[]);
    refuses(Anthropic, cases);
}
