//! Requests that look right and are refused, and content that looks foreign and is not: one view each.

use recto_core::Message;
use recto_format::{
    ExportOptions, Format, ImportOptions, RenderOptions, Replay, Target, export, import, render,
};
use serde_json::{Value, json};

use crate::render::{check, check_fix, provider};

fn message(value: Value) -> Message {
    crate::render::message(&value)
}

fn image(media_type: &str, data: &str) -> Message {
    let source = json!({"type": "base64", "media_type": media_type, "data": data});
    message(json!({"role": "user", "content": [
        {"type": "text", "text": "Look"},
        {"type": "image", "source": source},
    ]}))
}

fn body(view: &[Message], target: Target) -> Value {
    let rendered = check(view, target, None).unwrap();
    check_fix(view, target, None);
    serde_json::from_str(&rendered.body).unwrap()
}

#[test]
fn slashes_that_are_escaped_are_slashes() {
    let json = r#"{"role":"user","content":[
        {"type":"image","source":{"type":"base64","media_type":"image\/png","data":"AA\/A"}},
        {"type":"image","source":{"type":"url","url":"https:\/\/a.b\/c.png"}},
        {"type":"image","image_url":{"url":"data:image\/png;base64,BB\/B"}}]}"#;
    let view = [Message::from_json(json).unwrap()];
    for target in Target::ALL {
        let rendered = check(&view, target, None).unwrap();
        assert_eq!(rendered.findings, [], "{target}");
        let said = body(&view, target).to_string();
        for wanted in ["AA/A", "https://a.b/c.png", "BB/B"] {
            assert!(said.contains(wanted), "{target}: {said}");
        }
    }
}

#[test]
fn base64_goes_out_plain_and_padded_but_to_google() {
    let view = [image("image/png", "AA-_AA")];
    for target in Target::ALL {
        let said = body(&view, target).to_string();
        let wanted = if target == Target::Gemini { "AA-_AA" } else { "AA+/AA==" };
        assert!(said.contains(wanted), "{target}: {said}");
    }
}

#[test]
fn drawings_are_no_images_for_openai_and_anthropic() {
    let view = [image("image/svg+xml", "AAAA")];
    for target in [Target::OpenAiChat, Target::OpenAiResponses, Target::Anthropic] {
        let rendered = check(&view, target, None).unwrap();
        assert_eq!(rendered.findings[0].rule.name, "media_has_a_form", "{target}");
    }
}

#[test]
fn what_google_cannot_read_as_an_object_stays_text() {
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(90), "]".repeat(90));
    for result in
        [r#"{"a":"\ud800"}"#, r#"{"a":1e400}"#, &format!("{{\"a\":{}}}", "9".repeat(400)), &deep]
    {
        let view = [
            Message::user("Go"),
            Message::tool_call("c", "f", &json!({})),
            Message::tool_result("c", result),
        ];
        let said = body(&view, Target::Gemini);
        let response = &said["contents"][2]["parts"][0]["functionResponse"]["response"];
        assert_eq!(response["output"], json!(result));
    }
}

#[test]
fn an_input_with_a_number_that_nobody_reads_is_wrapped() {
    let json = r#"{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{"n":1e400,"m":12345678901234567890123}}]}"#;
    let view = [Message::user("Go"), Message::from_json(json).unwrap()];
    for target in Target::ALL {
        let said = body(&view, target).to_string();
        assert!(said.contains("1e400") && said.contains("12345678901234567890123"), "{said}");
    }
}

#[test]
fn a_refusal_beside_a_text_has_its_own_field_in_chat() {
    let view = [
        Message::user("Go"),
        message(json!({"role": "assistant", "content": [
            {"type": "text", "text": "Well"},
            {"type": "refusal", "refusal": "No"},
            {"type": "refusal", "refusal": "Never"},
        ]})),
    ];
    let said = body(&view, Target::OpenAiChat);
    assert_eq!(
        said["messages"][1],
        json!({"role": "assistant", "content": "Well", "refusal": "No\nNever"})
    );
}

#[test]
fn marks_for_the_cache_are_counted_wherever_they_stand() {
    let short = json!({"type": "ephemeral"});
    let text =
        |text: &str, mark: &Value| json!({"type": "text", "text": text, "cache_control": mark});
    let found = json!({"type": "search_result", "source": "s", "title": "t",
        "content": [{"type": "text", "text": "x"}], "cache_control": short});
    let source = json!({"source": {"provider": "anthropic"}});
    let view = [message(json!({"role": "user", "content": [
        found, text("1", &short), text("2", &short), text("3", &short), found,
    ], "metadata": source}))];
    let said = body(&view, Target::Anthropic);
    assert_eq!(said.to_string().matches("cache_control").count(), 4);
    assert_eq!(said["messages"][0]["content"][4]["source"], "s");

    // Those of the tools count as well.
    let tools = json!([{"name": "f", "input_schema": {"type": "object"}, "cache_control": short}]);
    let tools = tools.to_string();
    let options = RenderOptions { fields: &[("tools", &tools)], ..RenderOptions::default() };
    let rendered = render(&view, Target::Anthropic, &options).unwrap();
    let request = serde_json::from_str(&rendered.body).unwrap();
    provider(Target::Anthropic).check(&request).unwrap();
    assert_eq!(rendered.body.matches("cache_control").count(), 4);
}

#[test]
fn a_mark_of_an_hour_does_not_stand_behind_one_of_five_minutes() {
    let long = json!({"type": "ephemeral", "ttl": "1h"});
    let text =
        |text: &str, mark: &Value| json!({"type": "text", "text": text, "cache_control": mark});
    let short = json!({"type": "ephemeral"});
    let view = [message(json!({"role": "user", "content": [
        text("1", &long), text("2", &short), text("3", &long), text("4", &short),
    ]}))];
    let said = body(&view, Target::Anthropic);
    let marks: Vec<&Value> =
        (0..4).map(|at| &said["messages"][0]["content"][at]["cache_control"]).collect();
    assert_eq!(marks, [&long, &short, &Value::Null, &short]);
}

#[test]
fn documents_and_searches_inside_results_stay() {
    let file = r#"[{"role":"user","content":"q"},
{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"f","input":{}}]},
{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"AAAA"},"title":"a"},{"type":"search_result","source":"s","title":"t","content":[{"type":"text","text":"x"}]},{"type":"image","source":{"type":"file","file_id":"file_1"}},{"type":"tool_reference","tool_name":"f"}],"is_error":false}]}]
"#;
    let settings = recto_core::Settings::counting_with(recto_core::Approx);
    let mut replay = Replay::new(settings, 0);
    import(file, Some(Format::Anthropic), &ImportOptions::default(), &mut replay).unwrap();
    let view: Vec<Message> = replay.conversations[0].lines[0].1.messages().cloned().collect();
    let original: Value = serde_json::from_str(file).unwrap();
    let said = body(&view, Target::Anthropic);
    let result = |request: &Value| request[2]["content"][0]["content"].clone();
    assert_eq!(result(&said["messages"]), result(&original));
    // Others have a place for the document.
    for target in [Target::OpenAiChat, Target::OpenAiResponses, Target::Gemini] {
        let said = body(&view, target).to_string();
        assert!(said.contains("AAAA"), "{target}: {said}");
    }
    let mut written = Vec::new();
    export(&view, Format::Anthropic, &ExportOptions::default(), &mut written).unwrap();
    assert_eq!(String::from_utf8(written).unwrap(), file);
    assert!(!view[2].json().contains("original"), "{}", view[2].json());
}

#[test]
fn who_shows_only_what_one_provider_understands_speaks_first_there() {
    let found = json!({"type": "search_result", "source": "s", "title": "t",
        "content": [{"type": "text", "text": "x"}]});
    let source = json!({"source": {"provider": "anthropic"}});
    let view = [
        message(json!({"role": "user", "content": [found], "metadata": source})),
        Message::assistant("It says x."),
        Message::user("Thanks"),
    ];
    let said = body(&view, Target::Anthropic);
    assert_eq!(said["messages"][1]["role"], "assistant");
}

#[test]
fn a_message_of_rectos_own_is_what_it_says() {
    let file = r#"[{"role":"user","content":"x","metadata":{"source":{"format":"recto","original":{"role":"system","content":"y"}}}}]
"#;
    let settings = recto_core::Settings::counting_with(recto_core::Approx);
    let mut replay = Replay::new(settings, 0);
    import(file, Some(Format::Recto), &ImportOptions::default(), &mut replay).unwrap();
    let mut written = Vec::new();
    let messages = replay.conversations[0].lines[0].1.messages();
    export(messages, Format::Recto, &ExportOptions::default(), &mut written).unwrap();
    assert_eq!(String::from_utf8(written).unwrap(), file);
}

#[test]
fn images_in_a_gemini_response_are_seen_and_come_back() {
    let file = r#"[{"role":"user","parts":[{"text":"q"}]},
{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]},
{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"a":1},"parts":[{"inlineData":{"mimeType":"image/png","data":"AAAA"}}]}}]}]
"#;
    let (view, remarks) = crate::files::messages(file, Format::Gemini);
    assert_eq!(remarks, []);
    for target in Target::ALL {
        let said = body(&view, target).to_string();
        assert!(said.contains("AAAA"), "{target}: {said}");
    }
    let written = crate::files::exported(&view, Format::Gemini, recto_format::Container::List);
    assert_eq!(written, file);
}

#[test]
fn gemini_gets_only_data_of_types_that_it_takes() {
    for (media_type, is_taken) in [
        ("image/png", true),
        ("image/heic", true),
        ("image/tiff", false),
        ("image/gif", false),
        ("image/svg+xml", false),
        ("nonsense/png", false),
    ] {
        let view = [image(media_type, "AAAA")];
        let rendered = check(&view, Target::Gemini, None).unwrap();
        assert_eq!(rendered.body.contains("inlineData"), is_taken, "{media_type}");
        assert_eq!(rendered.findings.is_empty(), is_taken, "{media_type}");
    }
}
