use serde_json::{Value, json};
use testkit::provider::{Provider::Gemini, gemini::check_signatures};

use super::{Refused, accepts, covers, refuses};

fn text(text: &str) -> Value {
    json!({"text": text})
}

fn user(parts: Vec<Value>) -> Value {
    json!({"role": "user", "parts": parts})
}

fn hi() -> Value {
    user(vec![text("hi")])
}

fn model(parts: Vec<Value>) -> Value {
    json!({"role": "model", "parts": parts})
}

fn call(name: &str) -> Value {
    json!({"functionCall": {"name": name, "args": {}}})
}

fn response(name: &str) -> Value {
    json!({"functionResponse": {"name": name, "response": {"result": "done"}}})
}

fn request(contents: Vec<Value>) -> Value {
    json!({"contents": contents})
}

#[test]
fn valid_requests_are_accepted() {
    accepts(
        Gemini,
        vec![
            request(vec![hi()]),
            json!({"systemInstruction": {"parts": [text("be kind")]}, "contents": [hi(), model(vec![text("x")])]}),
            json!({"system_instruction": {"role": "user", "parts": [text("be kind")]}, "contents": [hi()]}),
            request(vec![
                hi(),
                model(vec![text("x"), call("f"), call("g")]),
                user(vec![response("g"), response("f")]),
            ]),
            request(vec![
                hi(),
                model(vec![call("f"), call("f")]),
                user(vec![response("f"), response("f"), text("and?")]),
            ]),
            request(vec![
                hi(),
                model(vec![
                    json!({"functionCall": {"id": "1", "name": "f", "args": {}}, "thoughtSignature": "AAAA"}),
                ]),
                user(vec![json!({"functionResponse": {"id": "1", "name": "f", "response": {}}})]),
            ]),
            request(vec![
                hi(),
                model(vec![
                    json!({"text": "hm", "thought": true}),
                    json!({"text": "", "thoughtSignature": "AAAA"}),
                ]),
            ]),
            request(vec![user(vec![
                json!({"inlineData": {"mimeType": "image/png", "data": "AAAA"}}),
                json!({"inline_data": {"mime_type": "image/png", "data": "AAAA"}}),
                json!({"fileData": {"fileUri": "https://x/y"}}),
            ])]),
        ],
    );
}

#[test]
fn every_rule_refuses_a_request_that_breaks_it() {
    let with_ids = |call: &str, response: &str| {
        request(vec![
            hi(),
            model(vec![json!({"functionCall": {"id": call, "name": "f", "args": {}}})]),
            user(vec![json!({"functionResponse": {"id": response, "name": "f", "response": {}}})]),
        ])
    };
    let cases = vec![
        Refused("contents", "contents", json!({"contents": []})),
        Refused(
            "role",
            "contents[0]",
            request(vec![json!({"role": "system", "parts": [{"text": "x"}]})]),
        ),
        Refused(
            "role",
            "contents[1]",
            request(vec![hi(), json!({"role": "assistant", "parts": [{"text": "x"}]})]),
        ),
        Refused(
            "field",
            "contents[0].id",
            request(vec![json!({"role": "user", "parts": [{"text": "x"}], "id": 1})]),
        ),
        Refused(
            "field",
            "contents[0].parts[0].type",
            request(vec![user(vec![json!({"type": "text", "text": "x"})])]),
        ),
        Refused("first_content", "contents[0]", request(vec![model(vec![text("x")])])),
        Refused("parts", "contents[0]", request(vec![user(vec![])])),
        Refused("parts", "contents[0]", request(vec![json!({"role": "user"})])),
        Refused("part", "contents[0].parts[0]", request(vec![user(vec![json!({})])])),
        Refused(
            "part",
            "contents[0].parts[0]",
            request(vec![user(vec![json!({"text": "x", "fileData": {"fileUri": "y"}})])]),
        ),
        Refused("part", "contents[0].parts[0]", request(vec![user(vec![call("f")])])),
        Refused("part", "contents[1].parts[0]", request(vec![hi(), model(vec![response("f")])])),
        Refused(
            "part",
            "contents[0].parts[0]",
            request(vec![user(vec![
                json!({"inlineData": {"mimeType": "image/png", "data": "%"}}),
            ])]),
        ),
        Refused(
            "media_type",
            "contents[0].parts[0]",
            request(vec![user(vec![
                json!({"inlineData": {"mimeType": "application/zip", "data": "AAAA"}}),
            ])]),
        ),
        Refused(
            "system",
            "systemInstruction",
            json!({"systemInstruction": "be kind", "contents": [hi()]}),
        ),
        Refused(
            "system",
            "systemInstruction.parts[0]",
            json!({"systemInstruction": {"parts": [{"inlineData": {}}]}, "contents": [hi()]}),
        ),
        Refused(
            "function_name",
            "contents[1].parts[0]",
            request(vec![hi(), model(vec![call("1f")])]),
        ),
        Refused(
            "function_name",
            "contents[1].parts[0]",
            request(vec![hi(), model(vec![call(&"f".repeat(65))])]),
        ),
        Refused(
            "args",
            "contents[1].parts[0]",
            request(vec![hi(), model(vec![json!({"functionCall": {"name": "f", "args": "{}"}})])]),
        ),
        Refused(
            "response",
            "contents[2].parts[0]",
            request(vec![
                hi(),
                model(vec![call("f")]),
                user(vec![json!({"functionResponse": {"name": "f", "response": "done"}})]),
            ]),
        ),
        Refused("unanswered_call", "contents[2]", request(vec![hi(), model(vec![call("f")])])),
        Refused(
            "unanswered_call",
            "contents[2]",
            request(vec![hi(), model(vec![call("f")]), hi()]),
        ),
        Refused("unknown_result", "contents[0]", request(vec![user(vec![response("f")])])),
        Refused(
            "unknown_result",
            "contents[2]",
            request(vec![hi(), model(vec![text("x")]), user(vec![response("f")])]),
        ),
        Refused(
            "response_count",
            "contents[2]",
            request(vec![hi(), model(vec![call("f"), call("g")]), user(vec![response("f")])]),
        ),
        Refused(
            "response_count",
            "contents[2]",
            request(vec![hi(), model(vec![call("f")]), user(vec![response("f"), response("f")])]),
        ),
        Refused(
            "response_match",
            "contents[2]",
            request(vec![hi(), model(vec![call("f")]), user(vec![response("g")])]),
        ),
        Refused("response_match", "contents[2]", with_ids("1", "2")),
        Refused(
            "signature",
            "contents[1].parts[0]",
            request(vec![hi(), model(vec![json!({"text": "x", "thoughtSignature": "a b"})])]),
        ),
    ];
    covers(Gemini, &cases, &["missing_signature"]);
    refuses(Gemini, cases);
}

#[test]
fn newer_models_require_a_signature_on_the_first_call_of_every_content_of_the_current_turn() {
    let mut signed = call("f");
    signed["thoughtSignature"] = json!("AAAA");
    let step = |first: Value| {
        vec![model(vec![first, call("g")]), user(vec![response("f"), response("g")])]
    };
    let turn = |calls: &[Value]| {
        let mut contents = vec![hi()];
        contents.extend(calls.iter().cloned().flat_map(step));
        contents
    };
    assert_eq!(check_signatures(&request(turn(&[signed.clone(), signed.clone()]))), Ok(()));
    let bare = request(turn(&[signed.clone(), call("f")]));
    let violation = check_signatures(&bare).unwrap_err();
    assert_eq!(
        (violation.rule, violation.at.as_str()),
        ("missing_signature", "contents[3].parts[0]")
    );
    // Contents before the last user message are not checked.
    let mut older = turn(&[call("f")]);
    older.push(model(vec![text("x")]));
    older.extend(turn(&[signed]));
    assert_eq!(check_signatures(&request(older)), Ok(()));
}
