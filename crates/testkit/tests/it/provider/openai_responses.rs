use serde_json::{Value, json};
use testkit::provider::Provider::OpenAiResponses;

use super::{Refused, accepts, covers, refuses};

fn user() -> Value {
    json!({"role": "user", "content": "hi"})
}

fn answer() -> Value {
    json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "x"}]})
}

fn call(id: &str) -> Value {
    json!({"type": "function_call", "call_id": id, "name": "read", "arguments": "{}"})
}

fn output(id: &str) -> Value {
    json!({"type": "function_call_output", "call_id": id, "output": "done"})
}

fn reasoning() -> Value {
    json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "AAAA"})
}

fn request(items: Vec<Value>) -> Value {
    json!({"input": items})
}

fn changed(mut item: Value, field: &str, value: Value) -> Value {
    item[field] = value;
    item
}

#[test]
fn valid_requests_are_accepted() {
    accepts(
        OpenAiResponses,
        vec![
            json!({"input": "hi", "instructions": "be kind"}),
            request(vec![user(), answer()]),
            request(vec![call("a"), call("b"), output("b"), output("a"), user()]),
            request(vec![reasoning(), call("a"), output("a"), reasoning(), answer()]),
            json!({"store": false, "input": [reasoning(), answer()]}),
            json!({"previous_response_id": "resp_1", "input": [output("a")]}),
            request(vec![
                reasoning(),
                changed(answer(), "id", json!("msg_1")),
                changed(call("a"), "id", json!("fc_1")),
                changed(output("a"), "output", json!("")),
            ]),
            request(vec![json!({"role": "user", "content": [
                {"type": "input_text", "text": "see"},
                {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "auto"},
                {"type": "input_file", "file_id": "file-1"},
            ]})]),
            request(vec![
                json!({"type": "custom_tool_call", "call_id": "a", "name": "sh", "input": "ls"}),
                json!({"type": "custom_tool_call_output", "call_id": "a", "output": [{"type": "input_text", "text": "x"}]}),
            ]),
            request(vec![
                json!({"type": "web_search_call", "id": "ws_1", "status": "completed"}),
                answer(),
            ]),
        ],
    );
}

#[test]
fn every_rule_refuses_a_request_that_breaks_it() {
    let cases = vec![
        Refused("input", "input", json!({"input": []})),
        Refused("instructions", "instructions", json!({"input": "hi", "instructions": []})),
        Refused("item", "input[0]", request(vec![json!({"type": "tool_use"})])),
        Refused("item", "input[0]", request(vec![json!({"content": "hi"})])),
        Refused("role", "input[0]", request(vec![json!({"role": "tool", "content": "hi"})])),
        Refused(
            "field",
            "input[0].timestamp",
            request(vec![changed(user(), "timestamp", json!(1))]),
        ),
        Refused(
            "field",
            "input[0].output",
            request(vec![changed(call("a"), "output", json!("x"))]),
        ),
        Refused(
            "content",
            "input[0].content",
            request(vec![json!({"role": "user", "content": []})]),
        ),
        Refused(
            "content",
            "input[0].content",
            request(vec![json!({"role": "user", "content": null})]),
        ),
        Refused(
            "part",
            "input[0].content[0]",
            request(vec![
                json!({"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}),
            ]),
        ),
        Refused(
            "part",
            "input[0].content[0]",
            request(vec![
                json!({"role": "user", "content": [{"type": "output_text", "text": "x"}]}),
            ]),
        ),
        Refused(
            "part",
            "input[0].content[0]",
            request(vec![
                json!({"role": "user", "content": [{"type": "input_image", "image_url": {"url": "https://x"}}]}),
            ]),
        ),
        Refused(
            "part",
            "input[0].content[0]",
            request(vec![json!({"role": "user", "content": [{"type": "input_image"}]})]),
        ),
        Refused(
            "item_id",
            "input[0].id",
            request(vec![changed(call("a"), "id", json!("call_1")), output("a")]),
        ),
        Refused(
            "item_id",
            "input[0].id",
            request(vec![changed(answer(), "id", json!(format!("msg_{}", "x".repeat(61))))]),
        ),
        Refused(
            "call_id",
            "input[0].call_id",
            request(vec![changed(call("a"), "call_id", json!(""))]),
        ),
        Refused("call_id", "input[0]", request(vec![call(&"x".repeat(65))])),
        Refused(
            "function_name",
            "input[0]",
            request(vec![changed(call("a"), "name", json!("a b"))]),
        ),
        Refused(
            "arguments",
            "input[0].arguments",
            request(vec![changed(call("a"), "arguments", json!({}))]),
        ),
        Refused(
            "output",
            "input[1].output",
            request(vec![call("a"), changed(output("a"), "output", json!({}))]),
        ),
        Refused(
            "output",
            "input[1].output",
            request(vec![call("a"), changed(output("a"), "output", json!([]))]),
        ),
        Refused("unanswered_call", "input[1]", request(vec![call("a")])),
        Refused("unanswered_call", "input[1]", request(vec![call("a"), user(), output("a")])),
        Refused("unknown_result", "input[0]", request(vec![output("a"), call("a")])),
        Refused(
            "unknown_result",
            "input[1]",
            request(vec![
                call("a"),
                json!({"type": "custom_tool_call_output", "call_id": "a", "output": "x"}),
            ]),
        ),
        Refused(
            "duplicate_call",
            "input[2]",
            request(vec![call("a"), output("a"), call("a"), output("a")]),
        ),
        Refused("duplicate_result", "input[2]", request(vec![call("a"), output("a"), output("a")])),
        Refused(
            "reasoning",
            "input[0].summary",
            request(vec![json!({"type": "reasoning", "id": "rs_1"}), answer()]),
        ),
        Refused(
            "reasoning",
            "input[0].id",
            request(vec![json!({"type": "reasoning", "summary": []}), answer()]),
        ),
        Refused("reasoning_alone", "input[0]", request(vec![reasoning()])),
        Refused("reasoning_alone", "input[0]", request(vec![reasoning(), user()])),
        Refused("reasoning_alone", "input[1]", request(vec![call("a"), reasoning(), output("a")])),
        Refused(
            "not_stored",
            "input[0]",
            json!({"store": false, "input": [{"type": "reasoning", "id": "rs_1", "summary": []}, answer()]}),
        ),
        Refused(
            "not_stored",
            "input[0]",
            json!({"store": false, "input": [{"type": "item_reference", "id": "msg_1"}]}),
        ),
        Refused(
            "duplicate_item",
            "input[2]",
            request(vec![
                reasoning(),
                changed(call("a"), "id", json!("fc_1")),
                changed(call("b"), "id", json!("fc_1")),
                output("a"),
                output("b"),
            ]),
        ),
    ];
    covers(OpenAiResponses, &cases, &[]);
    refuses(OpenAiResponses, cases);
}
