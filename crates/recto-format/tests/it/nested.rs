//! Nested tool parts have the same meaning as flat ones.

use proptest::prelude::*;
use recto_core::{LogIndex, Message};
use recto_format::{
    Collected, Container, ExportOptions, Format, ImportOptions, RenderOptions, Target, export,
    export_log, fix, import, lint, render,
};
use serde_json::{Value, json};
use testkit::generate::{self, Choices};
use testkit::tool_form;

use crate::render::{message, shown};

/// An exchange with nested tool parts: a signed call, and a result that is an error.
const NESTED: [&str; 3] = [
    r#"{"role":"user","content":"Is a idle?"}"#,
    r#"{"role":"assistant","content":[{"type":"tool_use","tool_use":{"id":"c1","name":"load","input":{"host":"a","n":1.50}},"signature":"c2ln","cache_control":{"type":"ephemeral"}}],"metadata":{"source":{"provider":"google"}}}"#,
    r#"{"role":"tool","content":[{"type":"tool_result","tool_result":{"tool_use_id":"c1","content":[{"type":"text","text":"no host"},{"type":"tool_use","tool_use":{"id":"q","name":"f","input":{}}}],"is_error":true}}]}"#,
];

fn nested_view() -> Vec<Message> {
    NESTED.iter().map(|json| Message::from_json(json).unwrap()).collect()
}

fn rendered(view: &[Message], target: Target) -> String {
    render(view, target, &RenderOptions::default()).unwrap().body
}

fn exported(view: &[Message], format: Format, options: &ExportOptions<'_>) -> (String, String) {
    let (mut file, mut log) = (Vec::new(), Vec::new());
    let warnings = export(view, format, options, &mut file).unwrap();
    export_log(view, format, options, &mut log).unwrap();
    let text = |file| String::from_utf8(file).unwrap();
    (format!("{}{warnings:?}", text(file)), text(log))
}

#[test]
fn chat_completions_receive_nested_parts_as_calls_and_results() {
    assert_eq!(
        rendered(&nested_view(), Target::OpenAiChat),
        r#"{"messages":[{"role":"user","content":"Is a idle?"},{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"load","arguments":"{\"host\":\"a\",\"n\":1.50}"}}]},{"role":"tool","tool_call_id":"c1","content":[{"type":"text","text":"no host"},{"type":"text","text":"f {}"}]}]}"#
    );
}

#[test]
fn responses_receive_nested_parts_as_calls_and_outputs() {
    let body = rendered(&nested_view(), Target::OpenAiResponses);
    assert!(body.contains(r#"{"type":"function_call","call_id":"c1","name":"load","#), "{body}");
    assert!(body.contains(r#"{"type":"function_call_output","call_id":"c1","#), "{body}");
}

#[test]
fn anthropic_receives_nested_parts_flat_with_their_outer_fields() {
    let body = rendered(&nested_view(), Target::Anthropic);
    let call = r#"{"type":"tool_use","id":"c1","name":"load","input":{"host":"a","n":1.50},"cache_control":{"type":"ephemeral"}}"#;
    assert!(body.contains(call), "{body}");
    assert!(body.contains(r#""tool_use_id":"c1""#), "{body}");
    assert!(body.contains(r#""is_error":true"#), "{body}");
}

#[test]
fn gemini_receives_the_signature_of_a_nested_call() {
    let body = rendered(&nested_view(), Target::Gemini);
    assert!(body.contains(r#""functionCall":{"#) && body.contains(r#""functionResponse""#));
    assert!(body.contains(r#""thoughtSignature":"c2ln""#), "{body}");
}

#[test]
fn an_incomplete_nested_exchange_is_found_and_fixed() {
    let (view, options) = (nested_view(), RenderOptions::default());
    let findings = lint(&view[..2], Target::OpenAiChat, &options);
    assert!(findings.iter().any(|it| it.message == "the call \"c1\" has no result"));
    let entries = view[..2].iter().enumerate().map(|(at, it)| (LogIndex(at as u32), it));
    let request = fix(entries, Target::OpenAiChat, &options).unwrap().unwrap().to_json();
    assert!(request.contains(r#""tool_use_id":"c1""#), "{request}");
    let findings = lint(&view[2..], Target::OpenAiChat, &options);
    assert_eq!(findings[0].message, "there is no call \"c1\" before its result");
}

#[test]
fn rectos_own_format_keeps_nested_parts_and_is_recognised_by_them() {
    let view = nested_view();
    let list = format!("[{}]\n", NESTED.join(",\n"));
    assert!(exported(&view, Format::Recto, &ExportOptions::default()).0.starts_with(&list));
    let call_alone =
        format!("[{}]", NESTED[1].replace(r#","metadata":{"source":{"provider":"google"}}"#, ""));
    for file in [&list, &call_alone] {
        assert_eq!(Format::recognise(file.as_bytes()).unwrap(), Format::Recto);
    }
    let mut collected = Collected::default();
    import(list.as_bytes(), None, &ImportOptions::default(), &mut collected).unwrap();
    let lines = ExportOptions { container: Container::Lines, ..ExportOptions::default() };
    let (text, _) = exported(&view, Format::Recto, &lines);
    assert!(text.starts_with(&NESTED.join("\n")));
}

#[test]
fn no_other_format_receives_a_nested_part() {
    let mut view = nested_view();
    // A message without a producer is treated as Anthropic's, and its parts are copied.
    let made_here = NESTED[1].replace(r#","metadata":{"source":{"provider":"google"}}"#, "");
    view[1] = Message::from_json(&made_here).unwrap();
    for &format in Format::ALL.iter().filter(|format| **format != Format::Recto) {
        let (text, log) = exported(&view, format, &ExportOptions::default());
        for text in [text, log] {
            let is_key = |name: &str| text.contains(&format!("\"{name}\":{{"));
            assert!(!is_key("tool_use") && !is_key("tool_result"), "{format:?}: {text}");
        }
    }
    let (text, _) = exported(&view[1..2], Format::Anthropic, &ExportOptions::default());
    assert!(text.contains(r#""id":"c1","name":"load","input":{"host":"a","n":1.50}"#), "{text}");
}

fn check(transcript: &[Value], model: Option<&str>) {
    let nested: Vec<Value> = transcript.iter().map(tool_form::nested).collect();
    // Derived from the nested form, so that copied fields have the same order.
    let flat: Vec<Message> = nested.iter().map(|it| message(&tool_form::flat(it))).collect();
    let nested: Vec<Message> = nested.iter().map(message).collect();
    let options = RenderOptions { model, ..RenderOptions::default() };
    for target in Target::ALL {
        let (one, other) = (render(&flat, target, &options), render(&nested, target, &options));
        match (one, other) {
            (Ok(one), Ok(other)) => {
                // Cache plans compare these request bodies.
                assert_eq!(one, other, "{target}\n{}", shown(&nested));
            }
            (one, other) => assert_eq!(one.is_err(), other.is_err(), "{}", shown(&nested)),
        }
        let found = lint(&nested, target, &options);
        assert_eq!(lint(&flat, target, &options), found, "{target}\n{}", shown(&nested));
        let fixed = |view: &[Message]| {
            let entries = view.iter().enumerate().map(|(at, it)| (LogIndex(at as u32), it));
            fix(entries, target, &options).unwrap().map(|request| request.to_json())
        };
        assert_eq!(fixed(&flat), fixed(&nested), "{target}\n{}", shown(&nested));
    }
    let options = ExportOptions::default();
    for &format in Format::ALL.iter().filter(|format| **format != Format::Recto) {
        let (one, other) = (exported(&flat, format, &options), exported(&nested, format, &options));
        assert_eq!(one, other, "{format:?}\n{}", shown(&nested));
    }
    let own = exported(&nested, Format::Recto, &options).0;
    assert!(nested.iter().all(|message| own.contains(message.json())));
}

#[test]
fn only_a_flat_call_with_anthropics_id_keeps_its_bytes_until_a_converted_result_follows() {
    let flat = r#"{"role":"assistant","content":[{"type":"tool_use","id":"toolu_01","name" : "load","input":{"a":1}}]}"#;
    let nested = tool_form::nested(&serde_json::from_str(flat).unwrap());
    let result = json!({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "toolu_01", "content": "found"},
    ]});
    let options = RenderOptions { model: Some("claude-a"), ..RenderOptions::default() };
    let rendered = |view: &[Message]| render(view, Target::Anthropic, &options).unwrap();
    let view = [Message::from_json(flat).unwrap(), message(&result)];
    let (open, closed) = (rendered(&view[..1]), rendered(&view));
    assert!(open.body.contains(flat) && !closed.body.contains(flat), "{}", closed.body);
    // The bytes of the flat call change with the result, so they are not part of the stable prefix.
    assert_eq!(open.body[..open.stable], closed.body[..open.stable]);
    assert!(open.stable <= open.body.find(flat).unwrap());

    let nested = [message(&nested), message(&result)];
    let (open, same) = (rendered(&nested[..1]), rendered(&nested));
    assert_eq!(same.body, closed.body);
    assert_eq!(open.body[..open.stable], closed.body[..open.stable]);
    assert!(open.body[..open.stable].contains(r#""name":"load","input":{"a":1}}"#));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn nested_parts_are_rendered_linted_and_exported_like_flat_ones(
        numbers in prop::collection::vec(any::<u16>(), 0..200),
        model in 0..4_usize,
    ) {
        let transcript = generate::transcript(&mut Choices::new(&numbers), 12);
        // A flat message whose calls have Anthropic's ids is Anthropic's message and keeps its bytes, a
        // nested one is converted: see the test of their difference.
        let transcript = Value::from(transcript).to_string().replace("\"toolu_", "\"call_");
        let transcript: Vec<Value> = serde_json::from_str(&transcript).unwrap();
        let models = [None, Some("claude-a"), Some("gemini-3-pro"), Some("gpt-b")];
        check(&transcript, models[model]);
    }
}
