//! A call keeps its bytes when its result is replaced or deleted. A result keeps its bytes when its call is
//! replaced.

use recto_core::Message;
use recto_format::{Format, RenderOptions, Severity, Target, lint, render};
use serde_json::{Value, json};

use crate::files::messages;

struct Case {
    target: Target,
    model: &'static str,
    /// A question, a call with fields that Recto does not know, its result, and another question.
    request: Value,
    id: &'static str,
    /// The message with the result `[cleared]` or `[no result]`.
    result: fn(&str) -> Value,
}

fn cases() -> Vec<Case> {
    let chat = |model, call: Value| Case {
        target: Target::OpenAiChat,
        model,
        request: json!({"messages": [
            {"role": "user", "content": "Go."},
            call,
            {"role": "tool", "tool_call_id": "c1", "content": "done"},
            {"role": "user", "content": "More."},
        ]}),
        id: "c1",
        result: |text| json!({"role": "tool", "tool_call_id": "c1", "content": text}),
    };
    let calls =
        json!([{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{ }"}}]);
    vec![
        chat(
            "deepseek-reasoner",
            json!({"role": "assistant", "content": "", "reasoning_content": "Hm.",
            "tool_calls": calls}),
        ),
        chat(
            "anthropic/claude-4",
            json!({"role": "assistant", "content": "", "tool_calls": calls,
            "reasoning_details": [{"type": "reasoning.text", "text": "Hm.", "signature": "s"}]}),
        ),
        Case {
            target: Target::Anthropic,
            model: "claude-sonnet-4-5",
            request: json!({"messages": [
                {"role": "user", "content": "Go."},
                {"role": "assistant", "content": [
                    {"type": "thinking", "thinking": "Hm.", "signature": "AAAA"},
                    {"type": "text", "text": "I go.", "citations": null},
                    {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {},
                        "caller": {"type": "direct"}},
                ]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_1", "content": "done"}]},
                {"role": "user", "content": "More."},
            ]}),
            id: "toolu_1",
            result: |text| {
                json!({"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": text}]})
            },
        },
        Case {
            target: Target::OpenAiResponses,
            model: "gpt-5",
            request: json!({"input": [
                {"role": "user", "content": "Go."},
                {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f",
                    "arguments": "{}", "status": "completed"},
                {"type": "function_call_output", "call_id": "c1", "output": "done"},
                {"role": "user", "content": "More."},
            ]}),
            id: "c1",
            result: |text| json!({"type": "function_call_output", "call_id": "c1", "output": text}),
        },
        // The call has no id, so the response has none.
        Case {
            target: Target::Gemini,
            model: "gemini-2.5-pro",
            request: json!({"contents": [
                {"role": "user", "parts": [{"text": "Go."}]},
                {"role": "model", "parts": [
                    {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "AAAA", "more": 1}]},
                {"role": "user", "parts": [
                    {"functionResponse": {"name": "f", "response": {"result": 1}}}]},
                {"role": "user", "parts": [{"text": "More."}]},
            ]}),
            id: "gemini_call_1_0",
            result: |text| {
                json!({"role": "user", "parts": [
                {"functionResponse": {"name": "f", "response": {"output": text}}}]})
            },
        },
        Case {
            target: Target::OpenAiChat,
            model: "gpt-4o",
            request: json!({"messages": [
                {"role": "user", "content": "Go."},
                {"role": "assistant", "content": null, "function_call": {"name": "f", "arguments": "{}"}},
                {"role": "function", "name": "f", "content": "done"},
                {"role": "user", "content": "More."},
            ]}),
            id: "function_1",
            result: |text| json!({"role": "function", "name": "f", "content": text}),
        },
    ]
}

fn list_of(target: Target) -> &'static str {
    match target {
        Target::OpenAiResponses => "input",
        Target::Gemini => "contents",
        _ => "messages",
    }
}

/// The messages of the rendered request, and the names of the violated rules.
fn rendered(case: &Case, view: &[Message]) -> (Vec<String>, Vec<&'static str>) {
    let options = RenderOptions { model: Some(case.model), ..RenderOptions::default() };
    let rendered = render(view, case.target, &options).unwrap();
    let body: serde_json::Map<String, Value> = serde_json::from_str(&rendered.body).unwrap();
    let list = body[list_of(case.target)].as_array().unwrap();
    let rules = rendered.findings.iter().map(|finding| finding.rule.name).collect();
    (list.iter().map(ToString::to_string).collect(), rules)
}

fn view(case: &Case) -> Vec<Message> {
    let format = Format::named(case.target.name()).unwrap();
    messages(&case.request.to_string(), format).0
}

#[test]
fn a_call_keeps_its_bytes_when_its_result_is_replaced() {
    for case in cases() {
        let mut view = view(&case);
        view[2] = Message::tool_result(case.id, "[cleared]");
        let (list, rules) = rendered(&case, &view);
        let expected = &case.request[list_of(case.target)];
        assert_eq!(list[1], expected[1].to_string(), "{}", case.target);
        assert_eq!(list[2], (case.result)("[cleared]").to_string(), "{}", case.target);
        assert_eq!(rules, Vec::<&str>::new(), "{}", case.target);
    }
}

#[test]
fn a_call_keeps_its_bytes_when_its_result_is_deleted_and_the_repair_is_reported() {
    for case in cases() {
        let mut view = view(&case);
        view.remove(2);
        let (list, rules) = rendered(&case, &view);
        let expected = &case.request[list_of(case.target)];
        assert_eq!(list[1], expected[1].to_string(), "{}", case.target);
        assert_eq!(list[2], (case.result)("[no result]").to_string(), "{}", case.target);
        assert_eq!(rules, ["answered_calls"], "{}", case.target);
    }
}

#[test]
fn a_result_keeps_its_bytes_when_its_call_is_replaced() {
    let case = &cases()[2];
    let mut view = view(case);
    view[1] = Message::tool_call("toolu_1", "f", &json!({"to": "LIS"}));
    let mut request = case.request.clone();
    request["messages"][2]["content"][0]["more"] = json!(1);
    let result = request["messages"][2].to_string();
    view[2] = messages(&request.to_string(), Format::Anthropic).0.remove(2);
    assert_eq!(rendered(case, &view).0[2], result);
}

#[test]
fn fixing_a_missing_result_keeps_the_call() {
    for case in cases() {
        let mut view = view(&case);
        view.remove(2);
        let call = view[1].clone();
        let options = RenderOptions { model: Some(case.model), ..RenderOptions::default() };
        let start = recto_core::Conversation::new(
            recto_core::Settings::counting_with(recto_core::Approx),
            0,
        );
        let (conversation, _) = start.unwrap().append(view, 1).unwrap();
        let entries = conversation.entries().map(|entry| (entry.index, entry.message));
        let request = recto_format::fix(entries, case.target, &options).unwrap().unwrap();
        let (fixed, _) = conversation.apply(request, 2).unwrap();
        let messages: Vec<Message> = fixed.messages().cloned().collect();
        assert_eq!(messages[1].json(), call.json(), "{}", case.target);
        let left = lint(&messages, case.target, &options);
        assert!(left.iter().all(|it| it.rule.severity == Severity::Note), "{left:?}");
    }
}
