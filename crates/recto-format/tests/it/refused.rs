//! Requests that a provider rejects for the form of their messages: lint reports an error and rendering
//! repairs it, even for messages that were imported from that provider's format. Each of them has a
//! counterpart, a similar request that the provider accepts, which has no error and keeps its bytes.

use recto_core::Message;
use recto_format::{Format, RenderOptions, Severity, Target, lint, render};
use serde_json::{Value, json};

use crate::files::messages;

struct Case {
    rule: &'static str,
    target: Target,
    model: &'static str,
    rejected: Value,
    accepted: Value,
}

fn format_of(target: Target) -> Format {
    Format::named(target.name()).unwrap()
}

fn list_of(target: Target) -> &'static str {
    match target {
        Target::OpenAiResponses => "input",
        Target::Gemini => "contents",
        _ => "messages",
    }
}

fn view(target: Target, list: &Value) -> Vec<Message> {
    let request = json!({ list_of(target): list });
    messages(&request.to_string(), format_of(target)).0
}

fn errors(view: &[Message], target: Target, model: &str) -> Vec<&'static str> {
    let options = RenderOptions { model: Some(model), ..RenderOptions::default() };
    let findings = lint(view, target, &options);
    let is_error = |severity: Severity| severity == Severity::Error;
    findings.iter().filter(|it| is_error(it.rule.severity)).map(|it| it.rule.name).collect()
}

/// A user's question, a call and its result at Anthropic.
fn claude_call(call: Value, result: Value) -> Value {
    claude_turn(json!([call]), result)
}

/// A user's question, an answer with a call, and its result at Anthropic.
fn claude_turn(answer: Value, result: Value) -> Value {
    json!([
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": answer},
        {"role": "user", "content": [result]},
    ])
}

/// A user's question, a message with a call and its result in chat completions.
fn chat_call(id: &str, name: &str) -> Value {
    json!([
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": id, "type": "function", "function": {"name": name, "arguments": "{}"}},
        ]},
        {"role": "tool", "tool_call_id": id, "content": "done"},
    ])
}

fn anthropic_cases() -> Vec<Case> {
    let case = |rule, rejected, accepted| Case {
        rule,
        target: Target::Anthropic,
        model: "claude-sonnet-4-5",
        rejected,
        accepted,
    };
    let user = |content: Value| json!([{"role": "user", "content": content}]);
    let text = |text: &str| json!({"type": "text", "text": text});
    let call = |id: &str, name: &str, input: Value| json!({"type": "tool_use", "id": id, "name": name, "input": input});
    let result = |id: &str| json!({"type": "tool_result", "tool_use_id": id, "content": "done"});
    let failed = |content: &str| json!({"type": "tool_result", "tool_use_id": "c1", "content": content, "is_error": true});
    vec![
        case(
            "no_empty_text",
            claude_turn(json!([text(""), call("c1", "f", json!({}))]), result("c1")),
            claude_turn(json!([text(" "), call("c1", "f", json!({}))]), result("c1")),
        ),
        case("no_empty_text", user(json!([text(" \n")])), user(json!([text(" \nHi")]))),
        case(
            "has_content",
            json!([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": []}, {"role": "user", "content": "?"}]),
            json!([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": []}]),
        ),
        case(
            "ids_fit",
            claude_call(call("functions.f:0", "f", json!({})), result("functions.f:0")),
            claude_call(call("functions_f-0", "f", json!({})), result("functions_f-0")),
        ),
        case(
            "names_fit",
            claude_call(call("c1", "my tool", json!({})), result("c1")),
            claude_call(call("c1", "my-tool", json!({})), result("c1")),
        ),
        case(
            "input_is_an_object",
            claude_call(call("c1", "f", json!("{}")), result("c1")),
            claude_call(call("c1", "f", json!({})), result("c1")),
        ),
        case(
            "errors_say_something",
            claude_call(call("c1", "f", json!({})), failed("")),
            claude_call(call("c1", "f", json!({})), failed("no")),
        ),
        case(
            "calls_from_the_assistant",
            user(json!([text("Hi"), call("c1", "f", json!({}))])),
            user(json!([text("Hi")])),
        ),
        case(
            "system_for_the_model",
            json!([{"role": "user", "content": "Hi"}, {"role": "system", "content": "Be brief."}, {"role": "user", "content": "?"}]),
            json!([{"role": "user", "content": "Hi"}, {"role": "user", "content": "?"}]),
        ),
    ]
}

fn openai_cases() -> Vec<Case> {
    let chat = |rule, rejected, accepted| Case {
        rule,
        target: Target::OpenAiChat,
        model: "gpt-4o-mini",
        rejected,
        accepted,
    };
    let responses = |rule, rejected, accepted| Case {
        rule,
        target: Target::OpenAiResponses,
        model: "gpt-5.2",
        rejected,
        accepted,
    };
    let answered = |extra: Value| {
        let mut answer = json!({"role": "assistant", "content": "Hello."});
        answer.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        json!([{"role": "user", "content": "Hi"}, answer, {"role": "user", "content": "?"}])
    };
    let item = |role: &str, kind: &str| json!([{"role": role, "content": [{"type": kind, "text": "Hi"}]}, {"role": "user", "content": "?"}]);
    let image = json!([
        {"type": "text", "text": "Look."},
        {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
    ]);
    let long = "c".repeat(41);
    let with_id = |kind: &str, id: &str| {
        let message = json!({"type": "message", "id": id, "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": "Yes?", "annotations": []}]});
        let call = json!({"type": "function_call", "id": id, "call_id": "c1", "name": "f",
            "arguments": "{}"});
        let output = json!({"type": "function_call_output", "call_id": "c1", "output": "1"});
        let user = json!({"role": "user", "content": "Hi"});
        match kind {
            "message" => json!([user, message, user]),
            _ => json!([user, call, output]),
        }
    };
    let parallel = |one: &str, other: &str| {
        let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}});
        let result = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": "1"});
        json!([
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "", "tool_calls": [call(one), call(other)]},
            result(one),
            result(other),
        ])
    };
    vec![
        chat(
            "no_empty_lists",
            answered(json!({"tool_calls": []})),
            answered(json!({"tool_calls": null})),
        ),
        chat("no_empty_lists", answered(json!({"content": []})), answered(json!({"content": ""}))),
        chat("has_content", answered(json!({"content": null})), answered(json!({"content": ""}))),
        chat("ids_fit", chat_call(&long, "f"), chat_call(&long[1..], "f")),
        chat("names_fit", chat_call("c1", "my.tool"), chat_call("c1", "my_tool")),
        chat(
            "media_where_it_may_stand",
            json!([{"role": "system", "content": image}, {"role": "user", "content": "?"}]),
            json!([{"role": "user", "content": image}, {"role": "user", "content": "?"}]),
        ),
        responses(
            "parts_of_the_role",
            item("assistant", "input_text"),
            item("assistant", "output_text"),
        ),
        responses("parts_of_the_role", item("user", "output_text"), item("user", "input_text")),
        responses("item_ids", with_id("message", "__fake_id__"), with_id("message", "msg_1")),
        responses("item_ids", with_id("function_call", ""), with_id("function_call", "fc_1")),
        chat("unique_ids", parallel("c1", "c1"), parallel("c1", "c2")),
    ]
}

fn other_cases() -> Vec<Case> {
    let bedrock =
        |text: &str| json!([{"role": "user", "content": [{"text": "Hi"}, {"text": text}]}]);
    let file = |data: &str| json!([{"role": "user", "content": [{"type": "file", "file": {"filename": "f", "file_data": data}}]}]);
    let linked =
        |url: &str| json!([{"role": "user", "content": [{"type": "input_file", "file_url": url}]}]);
    let gemini = |role: &str| json!([{"role": role, "parts": [{"text": "Be brief."}]}, {"role": "user", "parts": [{"text": "Hi"}]}]);
    vec![
        Case {
            rule: "no_empty_text",
            target: Target::BedrockConverse,
            model: "us.amazon.nova-lite-v1:0",
            rejected: bedrock(" "),
            accepted: bedrock("?"),
        },
        Case {
            rule: "media_for_the_model",
            target: Target::OpenAiChat,
            model: "gpt-4o",
            rejected: file("data:AUDIO/MPEG;base64,AAAA"),
            accepted: file("data:application/pdf;base64,AAAA"),
        },
        Case {
            rule: "media_for_the_model",
            target: Target::OpenAiResponses,
            model: "gpt-5",
            rejected: linked("https://a.b/c.M4A?download=1"),
            accepted: linked("https://a.b/c.pdf?name=c.mp3"),
        },
        Case {
            rule: "system_for_the_model",
            target: Target::Gemini,
            model: "gemini-2.5-flash",
            rejected: gemini("system"),
            accepted: gemini("user"),
        },
    ]
}

fn cases() -> Vec<Case> {
    [anthropic_cases(), openai_cases(), other_cases()].into_iter().flatten().collect()
}

#[test]
fn a_rejected_form_is_an_error_and_a_similar_accepted_one_is_not() {
    for Case { rule, target, model, rejected, accepted } in cases() {
        let found = lint(
            &view(target, &rejected),
            target,
            &RenderOptions { model: Some(model), ..RenderOptions::default() },
        );
        assert!(found.iter().any(|it| it.rule.name == rule), "{rule} {rejected}: {found:?}");
        let has_error = found.iter().any(|it| it.rule.severity == Severity::Error);
        assert!(has_error, "{rule} {rejected}: {found:?}");
        let found = errors(&view(target, &accepted), target, model);
        assert!(found.is_empty(), "{rule} {accepted}: {found:?}");
    }
}

#[test]
fn a_rejected_form_is_repaired_and_an_accepted_one_keeps_its_bytes() {
    for Case { rule, target, model, rejected, accepted } in cases() {
        let options = RenderOptions { model: Some(model), ..RenderOptions::default() };
        let body = |messages: &Value| -> Value {
            let rendered = render(&view(target, messages), target, &options);
            rendered.map_or(Value::Null, |it| serde_json::from_str(&it.body).unwrap())
        };
        let repaired = body(&rejected);
        assert_ne!(repaired[list_of(target)], rejected, "{rule}");
        if !repaired.is_null() {
            let again = errors(&view(target, &repaired[list_of(target)]), target, model);
            assert!(again.is_empty(), "{rule} {repaired}: {again:?}");
        }
        assert_eq!(body(&accepted)[list_of(target)], accepted, "{rule}");
    }
}

#[test]
fn compatible_servers_and_routers_accept_more() {
    let cases = cases();
    let is_openai = |target| matches!(target, Target::OpenAiChat | Target::OpenAiResponses);
    for case in cases.iter().filter(|case| is_openai(case.target)) {
        for model in ["openai/gpt-4o", "mistral-small-latest", "gpt-oss-120b"] {
            let found = errors(&view(case.target, &case.rejected), case.target, model);
            assert!(found.is_empty(), "{} for {model}: {found:?}", case.rule);
        }
    }
}
