use serde_json::{Value, json};
use testkit::provider::Provider::BedrockConverse;

use super::{Refused, accepts, covers, refuses};

fn text(text: &str) -> Value {
    json!({"text": text})
}

fn user(content: Vec<Value>) -> Value {
    json!({"role": "user", "content": content})
}

fn assistant(content: Vec<Value>) -> Value {
    json!({"role": "assistant", "content": content})
}

fn hi() -> Value {
    user(vec![text("hi")])
}

fn call(id: &str) -> Value {
    json!({"toolUse": {"toolUseId": id, "name": "f", "input": {}}})
}

fn result(id: &str) -> Value {
    json!({"toolResult": {"toolUseId": id, "content": [{"text": "done"}]}})
}

fn thinking(signature: &str) -> Value {
    json!({"reasoningContent": {"reasoningText": {"text": "hm", "signature": signature}}})
}

fn document(name: &str) -> Value {
    json!({"document": {"format": "pdf", "name": name, "source": {"bytes": "AAAA"}}})
}

fn request(messages: Vec<Value>) -> Value {
    json!({"messages": messages})
}

fn with_tools(messages: Vec<Value>) -> Value {
    json!({"messages": messages, "toolConfig": {"tools": []}})
}

#[test]
fn valid_requests_are_accepted() {
    accepts(
        BedrockConverse,
        vec![
            request(vec![hi()]),
            request(vec![assistant(vec![text("x")]), hi()]),
            json!({"system": [text("be kind"), {"cachePoint": {"type": "default"}}], "messages": [hi()]}),
            with_tools(vec![
                hi(),
                assistant(vec![thinking("s"), text("x"), call("a"), call("b")]),
                user(vec![result("b"), result("a"), text("and?")]),
            ]),
            request(vec![user(vec![
                text("x"),
                document("a (1)"),
                document("b"),
                json!({"image": {"format": "png", "source": {"bytes": "AAAA"}}}),
            ])]),
        ],
    );
}

#[test]
fn every_rule_refuses_a_request_that_breaks_it() {
    let called = |call: Value| with_tools(vec![hi(), assistant(vec![call])]);
    let error = json!({"toolResult": {"toolUseId": "a", "content": [], "status": "error"}});
    let second = "messages[1].content[0]";
    let cases = vec![
        Refused("messages", "messages", json!({"messages": []})),
        Refused("role", "messages[0]", request(vec![json!({"role": "tool", "content": []})])),
        Refused("alternation", "messages[1]", request(vec![hi(), hi()])),
        Refused(
            "field",
            "messages[0].id",
            request(vec![json!({"role": "user", "content": [text("x")], "id": 1})]),
        ),
        Refused("content", "messages[0].content", request(vec![user(vec![])])),
        Refused("block", "messages[0].content[0]", request(vec![user(vec![call("a")])])),
        Refused(
            "block",
            "messages[0].content[0]",
            request(vec![user(vec![json!({"type": "text", "text": "x"})])]),
        ),
        Refused("empty_text", "messages[0].content[0]", request(vec![user(vec![text(" ")])])),
        Refused("system", "system[0]", json!({"system": [call("a")], "messages": [hi()]})),
        Refused("tool_use_id", second, called(call("a.b"))),
        Refused(
            "tool_name",
            second,
            called(json!({"toolUse": {"toolUseId": "a", "name": "f g", "input": {}}})),
        ),
        Refused(
            "input",
            "messages[1].content[0].input",
            called(json!({"toolUse": {"toolUseId": "a", "name": "f", "input": "x"}})),
        ),
        Refused(
            "tool_config",
            "toolConfig",
            request(vec![hi(), assistant(vec![call("a")]), user(vec![result("a")])]),
        ),
        Refused("unanswered_call", "messages[1]", called(call("a"))),
        Refused(
            "unanswered_call",
            "messages[2]",
            with_tools(vec![hi(), assistant(vec![call("a")]), hi()]),
        ),
        Refused("unknown_result", "messages[0].content[0]", request(vec![user(vec![result("a")])])),
        Refused(
            "duplicate_call",
            "messages[1].content[1]",
            with_tools(vec![hi(), assistant(vec![call("a"), call("a")])]),
        ),
        Refused(
            "duplicate_result",
            "messages[2].content[1]",
            with_tools(vec![
                hi(),
                assistant(vec![call("a")]),
                user(vec![result("a"), result("a")]),
            ]),
        ),
        Refused(
            "error_result",
            "messages[2].content[0]",
            with_tools(vec![hi(), assistant(vec![call("a")]), user(vec![error])]),
        ),
        Refused("signature", "messages[1].content[0].signature", called(thinking(""))),
        Refused("thinking_first", "messages[1]", {
            request(vec![hi(), assistant(vec![text("x"), thinking("s"), text("y")])])
        }),
        Refused("last_thinking", "messages[1]", called(thinking("s"))),
        Refused("trailing_whitespace", "messages[1]", called(text("x "))),
        Refused("document_text", "messages[0]", request(vec![user(vec![document("a")])])),
        Refused(
            "document_name",
            "messages[0].content[1]",
            request(vec![user(vec![text("x"), document("a.pdf")])]),
        ),
        Refused(
            "document_name",
            "messages[0].content[2]",
            request(vec![user(vec![text("x"), document("a"), document("a")])]),
        ),
        Refused(
            "media",
            "messages[0].content[0]",
            request(vec![user(vec![
                json!({"image": {"format": "svg", "source": {"bytes": "AAAA"}}}),
            ])]),
        ),
    ];
    covers(BedrockConverse, &cases, &[]);
    refuses(BedrockConverse, cases);
}
