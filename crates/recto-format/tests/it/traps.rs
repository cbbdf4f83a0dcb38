//! Special cases: requests that look valid but are rejected, and content that looks foreign but is not.

use recto_core::Message;
use recto_format::{
    Container, ExportOptions, Format, ImportOptions, RenderOptions, Replay, Target, export, import,
    render,
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
fn escaped_slashes_are_read_as_slashes() {
    let json = r#"{"role":"user","content":[
        {"type":"image","source":{"type":"base64","media_type":"image\/png","data":"AA\/A"}},
        {"type":"image","source":{"type":"url","url":"https:\/\/a.b\/c.png"}},
        {"type":"image","image_url":{"url":"data:image\/png;base64,BB\/B"}}]}"#;
    let view = [Message::from_json(json).unwrap()];
    // Bedrock accepts no URLs.
    for target in Target::ALL.into_iter().filter(|it| *it != Target::BedrockConverse) {
        let rendered = check(&view, target, None).unwrap();
        assert_eq!(rendered.findings, [], "{target}");
        let sent_body = body(&view, target).to_string();
        for wanted in ["AA/A", "https://a.b/c.png", "BB/B"] {
            assert!(sent_body.contains(wanted), "{target}: {sent_body}");
        }
    }
}

#[test]
fn base64_is_sent_in_the_standard_alphabet_with_padding_except_to_gemini() {
    let view = [image("image/png", "AA-_AA")];
    for target in Target::ALL {
        let sent_body = body(&view, target).to_string();
        let wanted = if target == Target::Gemini { "AA-_AA" } else { "AA+/AA==" };
        assert!(sent_body.contains(wanted), "{target}: {sent_body}");
    }
}

#[test]
fn svg_is_not_sent_as_an_image_to_openai_and_anthropic() {
    let view = [image("image/svg+xml", "AAAA")];
    for target in [Target::OpenAiChat, Target::OpenAiResponses, Target::Anthropic] {
        let rendered = check(&view, target, None).unwrap();
        assert_eq!(rendered.findings[0].rule.name, "media_has_a_form", "{target}");
    }
}

#[test]
fn a_tool_result_that_gemini_cannot_read_as_an_object_stays_text() {
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(90), "]".repeat(90));
    for result in
        [r#"{"a":"\ud800"}"#, r#"{"a":1e400}"#, &format!("{{\"a\":{}}}", "9".repeat(400)), &deep]
    {
        let view = [
            Message::user("Go"),
            Message::tool_call("c", "f", &json!({})),
            Message::tool_result("c", result),
        ];
        let sent_body = body(&view, Target::Gemini);
        let response = &sent_body["contents"][2]["parts"][0]["functionResponse"]["response"];
        assert_eq!(response["output"], json!(result));
    }
}

#[test]
fn an_input_with_a_number_that_exceeds_a_double_is_wrapped() {
    let json = r#"{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{"n":1e400,"m":12345678901234567890123}}]}"#;
    let view = [Message::user("Go"), Message::from_json(json).unwrap()];
    for target in Target::ALL {
        let sent_body = body(&view, target).to_string();
        assert!(
            sent_body.contains("1e400") && sent_body.contains("12345678901234567890123"),
            "{sent_body}"
        );
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
    let sent_body = body(&view, Target::OpenAiChat);
    assert_eq!(
        sent_body["messages"][1],
        json!({"role": "assistant", "content": "Well", "refusal": "No\nNever"})
    );
}

#[test]
fn cache_marks_are_counted_in_all_positions() {
    let short = json!({"type": "ephemeral"});
    let text =
        |text: &str, mark: &Value| json!({"type": "text", "text": text, "cache_control": mark});
    let found = json!({"type": "search_result", "source": "s", "title": "t",
        "content": [{"type": "text", "text": "x"}], "cache_control": short});
    let source = json!({"source": {"provider": "anthropic"}});
    let view = [message(json!({"role": "user", "content": [
        found, text("1", &short), text("2", &short), text("3", &short), found,
    ], "metadata": source}))];
    let sent_body = body(&view, Target::Anthropic);
    assert_eq!(sent_body.to_string().matches("cache_control").count(), 4);
    assert_eq!(sent_body["messages"][0]["content"][4]["source"], "s");

    // Marks of tools count too.
    let tools = json!([{"name": "f", "input_schema": {"type": "object"}, "cache_control": short}]);
    let tools = tools.to_string();
    let options = RenderOptions { fields: &[("tools", &tools)], ..RenderOptions::default() };
    let rendered = render(&view, Target::Anthropic, &options).unwrap();
    let request = serde_json::from_str(&rendered.body).unwrap();
    provider(Target::Anthropic).check(&request).unwrap();
    assert_eq!(rendered.body.matches("cache_control").count(), 4);
}

#[test]
fn a_mark_of_one_hour_does_not_follow_one_of_five_minutes() {
    let long = json!({"type": "ephemeral", "ttl": "1h"});
    let text =
        |text: &str, mark: &Value| json!({"type": "text", "text": text, "cache_control": mark});
    let short = json!({"type": "ephemeral"});
    let view = [message(json!({"role": "user", "content": [
        text("1", &long), text("2", &short), text("3", &long), text("4", &short),
    ]}))];
    let sent_body = body(&view, Target::Anthropic);
    let marks: Vec<&Value> =
        (0..4).map(|at| &sent_body["messages"][0]["content"][at]["cache_control"]).collect();
    assert_eq!(marks, [&long, &short, &Value::Null, &short]);
}

#[test]
fn documents_and_search_results_inside_tool_results_are_kept() {
    let file = r#"[{"role":"user","content":"q"},
{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"f","input":{}}]},
{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"AAAA"},"title":"a"},{"type":"search_result","source":"s","title":"t","content":[{"type":"text","text":"x"}]},{"type":"image","source":{"type":"file","file_id":"file_1"}},{"type":"tool_reference","tool_name":"f"}],"is_error":false}]}]
"#;
    let settings = recto_core::Settings::counting_with(recto_core::Approx);
    let mut replay = Replay::new(settings, 0);
    import(file, Some(Format::Anthropic), &ImportOptions::default(), &mut replay).unwrap();
    let view: Vec<Message> =
        replay.conversations[0].branches[0].conversation.messages().cloned().collect();
    let original: Value = serde_json::from_str(file).unwrap();
    let sent_body = body(&view, Target::Anthropic);
    let result = |request: &Value| request[2]["content"][0]["content"].clone();
    assert_eq!(result(&sent_body["messages"]), result(&original));
    // Other providers accept the document.
    for target in [Target::OpenAiChat, Target::OpenAiResponses, Target::Gemini] {
        let sent_body = body(&view, target).to_string();
        assert!(sent_body.contains("AAAA"), "{target}: {sent_body}");
    }
    let mut written = Vec::new();
    export(&view, Format::Anthropic, &ExportOptions::default(), &mut written).unwrap();
    assert_eq!(String::from_utf8(written).unwrap(), file);
    assert!(!view[2].json().contains("original"), "{}", view[2].json());
}

#[test]
fn a_first_message_with_only_a_provider_part_counts_for_its_provider() {
    let found = json!({"type": "search_result", "source": "s", "title": "t",
        "content": [{"type": "text", "text": "x"}]});
    let source = json!({"source": {"provider": "anthropic"}});
    let view = [
        message(json!({"role": "user", "content": [found], "metadata": source})),
        Message::assistant("It says x."),
        Message::user("Thanks"),
    ];
    let sent_body = body(&view, Target::Anthropic);
    assert_eq!(sent_body["messages"][1]["role"], "assistant");
}

#[test]
fn a_message_of_recto_is_read_unchanged() {
    let file = r#"[{"role":"user","content":"x","metadata":{"source":{"format":"recto","original":{"role":"system","content":"y"}}}}]
"#;
    let settings = recto_core::Settings::counting_with(recto_core::Approx);
    let mut replay = Replay::new(settings, 0);
    import(file, Some(Format::Recto), &ImportOptions::default(), &mut replay).unwrap();
    let mut written = Vec::new();
    let messages = replay.conversations[0].branches[0].conversation.messages();
    export(messages, Format::Recto, &ExportOptions::default(), &mut written).unwrap();
    assert_eq!(String::from_utf8(written).unwrap(), file);
}

#[test]
fn images_in_a_gemini_tool_response_are_rendered_and_exported_unchanged() {
    let file = r#"[{"role":"user","parts":[{"text":"q"}]},
{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]},
{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"a":1},"parts":[{"inlineData":{"mimeType":"image/png","data":"AAAA"}}]}}]}]
"#;
    let (view, warnings) = crate::files::messages(file, Format::Gemini);
    assert_eq!(warnings, []);
    for target in Target::ALL {
        let sent_body = body(&view, target).to_string();
        assert!(sent_body.contains("AAAA"), "{target}: {sent_body}");
    }
    let written = crate::files::exported(&view, Format::Gemini, Container::List);
    assert_eq!(written, file);
}

#[test]
fn gemini_receives_only_media_types_that_it_accepts() {
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

/// OpenAI rejects reasoning without its output item, and that item without its reasoning.
#[test]
fn a_call_keeps_its_item_id_only_together_with_its_reasoning() {
    let reasoning = r#"{"type":"reasoning","id":"rs_1","summary":[]}"#;
    let call = r#"{"type":"function_call","id":"fc_1","call_id":"c1","name":"f","arguments":"{}"}"#;
    let custom =
        r#"{"type":"custom_tool_call","id":"ctc_1","call_id":"c2","name":"g","input":"x"}"#;
    let outputs = r#"{"type":"function_call_output","call_id":"c1","output":"1"},
{"type":"custom_tool_call_output","call_id":"c2","output":"2"}"#;
    let user = r#"{"role":"user","content":"q"}"#;
    let file = format!("[{user},\n{reasoning},\n{call},\n{custom},\n{outputs}]\n");
    let (view, warnings) = crate::files::messages(&file, Format::OpenAiResponses);
    assert_eq!(warnings, []);
    let ids = |view: &[Message]| {
        let sent_body = body(view, Target::OpenAiResponses);
        let items = sent_body["input"].as_array().unwrap().clone();
        let calls = items.into_iter().filter(|item| item["name"].is_string());
        calls.map(|call| call["id"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(ids(&view), [json!("fc_1"), json!("ctc_1")]);
    let without: Vec<Message> =
        view.iter().filter(|message| !message.json().contains("summary")).cloned().collect();
    assert_eq!(ids(&without), [json!(null), json!(null)]);
    // A message built from the same parts is rendered in the same way.
    let written = crate::files::exported(&view, Format::OpenAiResponses, Container::List);
    assert_eq!(written, file);
    let made = message(json!({"role": "assistant", "content":
        [{"type": "tool_use", "id": "c1", "name": "f", "input": {}, "item_id": "fc_1"}]}));
    let written = crate::files::exported(&[made], Format::OpenAiResponses, Container::List);
    assert_eq!(written, format!("[{call}]\n"));
    // Requests to other providers do not contain the item id.
    assert!(!body(&view, Target::OpenAiChat).to_string().contains("fc_1"));
}

/// Newer models of Anthropic do not continue a message of the assistant.
#[test]
fn the_last_message_is_from_the_user_where_a_model_requires_it() {
    let view = [Message::user("q"), Message::assistant("The answer is ")];
    let rendered = |model: Option<&str>, fields: &[(&str, &str)]| {
        let options = RenderOptions { model, fields, ..RenderOptions::default() };
        render(&view, Target::Anthropic, &options).unwrap()
    };
    for (model, fields) in [
        (Some("claude-sonnet-4-6"), &[][..]),
        (None, &[("model", r#""claude-opus-4-6-20260205""#)]),
        (Some("claude-sonnet-4-5"), &[("thinking", r#"{"type":"enabled","budget_tokens":1024}"#)]),
    ] {
        let rendered = rendered(model, fields);
        let end = r#"{"role":"assistant","content":"The answer is "},{"role":"user","content":[{"type":"text","text":"[no message]"}]}]}"#;
        assert!(rendered.body.ends_with(end), "{}", rendered.body);
        let names: Vec<&str> = rendered.findings.iter().map(|it| it.rule.name).collect();
        assert_eq!(names, ["last_from_the_user"]);
        // An appended message replaces the placeholder.
        assert!(rendered.body[..rendered.stable].ends_with(r#"The answer is "}"#));
    }
    for (model, fields) in [
        (Some("claude-sonnet-4-5"), &[][..]),
        (Some("claude-haiku-4-5"), &[("thinking", r#"{"type":"disabled"}"#)]),
        (None, &[]),
    ] {
        let rendered = rendered(model, fields);
        assert!(rendered.body.ends_with(r#"{"type":"text","text":"The answer is"}]}]}"#));
    }
    check_fix(&view, Target::Anthropic, Some("claude-opus-4-7"));
    // The fix adds a message and leaves the others unchanged.
    let start =
        recto_core::Conversation::new(recto_core::Settings::counting_with(recto_core::Approx), 0);
    let (conversation, _) = start.unwrap().append(view.to_vec(), 1).unwrap();
    let entries = conversation.entries().map(|entry| (entry.index, entry.message));
    let options = RenderOptions { model: Some("claude-opus-4-7"), ..RenderOptions::default() };
    let request = recto_format::fix(entries, Target::Anthropic, &options).unwrap().unwrap();
    let (fixed, outcome) = conversation.apply(request, 2).unwrap();
    assert_eq!((fixed.view().len(), outcome.hidden().len()), (3, 0));
}

#[test]
fn documents_keep_their_title_context_and_citations_at_anthropic() {
    let document = r#"{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"AAAA"},"title":"T","context":"C","citations":{"enabled":true}}"#;
    let file = format!(r#"[{{"role":"user","content":[{document}]}}]"#);
    let (view, warnings) = crate::files::messages(&file, Format::Anthropic);
    assert_eq!(warnings, []);
    let rendered = check(&view, Target::Anthropic, None).unwrap();
    assert!(rendered.body.contains(document), "{}", rendered.body);
    assert_eq!(rendered.findings, []);
    // Inside a result too.
    let result = format!(
        r#"[{{"role":"user","content":"q"}},{{"role":"assistant","content":[{{"type":"tool_use","id":"c","name":"f","input":{{}}}}]}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"c","content":[{document}]}}]}}]"#
    );
    let (view, _) = crate::files::messages(&result, Format::Anthropic);
    let rendered = check(&view, Target::Anthropic, None).unwrap();
    assert!(rendered.body.contains(document), "{}", rendered.body);
}

#[test]
fn all_documents_have_the_citation_setting_of_the_first_one() {
    let document = |data: &str, on: Option<bool>| {
        let mut part = json!({"type": "file",
            "source": {"type": "base64", "media_type": "application/pdf", "data": data}});
        if let Some(on) = on {
            part["citations"] = json!({ "enabled": on });
        }
        message(json!({"role": "user", "content": [part]}))
    };
    for (first, second) in [(Some(true), None), (None, Some(true)), (Some(false), Some(true))] {
        let view = [document("AAAA", first), document("BBBB", second)];
        let sent_body = body(&view, Target::Anthropic);
        let settings: Vec<bool> = sent_body["messages"][0]["content"]
            .as_array()
            .unwrap()
            .iter()
            .map(|block| block["citations"]["enabled"] == true)
            .collect();
        assert_eq!(settings, [first == Some(true); 2]);
        let findings = check(&view, Target::Anthropic, None).unwrap().findings;
        let names: Vec<&str> = findings.iter().map(|finding| finding.rule.name).collect();
        assert!(names.contains(&"citations_agree"), "{names:?}");
    }
}

#[test]
fn media_types_are_sent_as_they_are_registered() {
    for (written, sent) in [
        ("image/jpg", "image/jpeg"),
        ("IMAGE/PNG", "image/png"),
        ("image/png; charset=binary", "image/png"),
        ("image/x-png", "image/png"),
    ] {
        let view = [image(written, "AAAA")];
        for target in Target::ALL {
            let rendered = check(&view, target, None).unwrap();
            // Bedrock has names of forms: `png`.
            let is_bedrock = target == Target::BedrockConverse;
            let sent = if is_bedrock { sent.trim_start_matches("image/") } else { sent };
            assert!(rendered.body.contains(sent), "{target}: {}", rendered.body);
            assert_eq!(rendered.findings, [], "{target} {written}");
        }
    }
}

/// A note means that nothing is lost, so there is nothing to fix.
#[test]
fn findings_that_are_notes_are_not_fixed() {
    let named = json!({"role": "user", "content": "One.", "name": "ada"});
    let view = [message(named), Message::user("Two.")];
    let options = RenderOptions::default();
    let findings = recto_format::lint(&view, Target::Anthropic, &options);
    assert_eq!(findings[0].rule.name, "speakers");
    let entries = view.iter().enumerate();
    let entries = entries.map(|(at, message)| (recto_core::LogIndex(at as u32), message));
    assert_eq!(recto_format::fix(entries, Target::Anthropic, &options).unwrap(), None);
}

/// All operations of a fix have the same reason.
#[test]
fn a_fix_has_one_reason() {
    let mut view = Vec::new();
    for number in 0..3 {
        let call = format!("c{number}");
        view.push(Message::user("q"));
        view.push(Message::tool_call(&call, "f", &json!({})));
        view.push(Message::user("never mind"));
        view.push(Message::assistant("As you like."));
    }
    let settings = recto_core::Settings::counting_with(recto_core::Approx);
    let start = recto_core::Conversation::new(settings, 0).unwrap();
    let (conversation, _) = start.append(view, 1).unwrap();
    let entries = conversation.entries().map(|entry| (entry.index, entry.message));
    let request = recto_format::fix(entries, Target::Anthropic, &RenderOptions::default());
    let request = request.unwrap().unwrap();
    assert!(request.steps.len() > 3, "{request:?}");
    let (fixed, _) = conversation.apply(request, 2).unwrap();
    let reason = fixed.versions().last().unwrap().reason;
    assert_eq!(reason, "fixed for anthropic");
}

/// Calls of OpenAI's built-in tools are ordinary calls for other providers; OpenAI receives its items.
#[test]
fn calls_of_openais_built_in_tools_are_rendered_as_calls() {
    let call = r#"{"type":"local_shell_call","id":"lsh_1","call_id":"c1","status":"completed","action":{"type":"exec","command":["ls"]}}"#;
    let output =
        r#"{"type":"local_shell_call_output","id":"lsho_1","call_id":"c1","output":"a.txt"}"#;
    let answer = r#"{"type":"function_call_output","call_id":"c1","output":"a.txt"}"#;
    let reasoning = r#"{"type":"reasoning","id":"rs_1","summary":[]}"#;
    let user = r#"{"role":"user","content":"q"}"#;
    let file = format!("[{user},\n{reasoning},\n{call},\n{output}]\n");
    let (view, warnings) = crate::files::messages(&file, Format::OpenAiResponses);
    assert_eq!(warnings, []);
    let rendered = check(&view, Target::OpenAiResponses, None).unwrap();
    assert_eq!(rendered.findings, []);
    for item in [call, output, reasoning] {
        assert!(rendered.body.contains(item), "{}", rendered.body);
    }
    for target in [Target::OpenAiChat, Target::Anthropic, Target::Gemini] {
        let sent_body = body(&view, target).to_string();
        assert!(
            sent_body.contains("local_shell") && sent_body.contains("a.txt"),
            "{target}: {sent_body}"
        );
    }
    let written = crate::files::exported(&view, Format::OpenAiResponses, Container::List);
    assert_eq!(written, file);
    // codex writes their results like those of functions; an edit can remove the result.
    for file in [format!("[{user},{call},{answer}]"), format!("[{user},{call}]")] {
        let (view, _) = crate::files::messages(&file, Format::OpenAiResponses);
        let sent_body = body(&view, Target::OpenAiResponses);
        assert_eq!(sent_body["input"][1]["type"], "function_call", "{sent_body}");
        assert_eq!(sent_body["input"][2]["type"], "function_call_output", "{sent_body}");
    }
}

#[test]
fn audio_is_sent_by_its_id_to_openai_chat_and_as_a_transcript_to_other_providers() {
    let file = r#"[{"role":"user","content":"q"},{"role":"assistant","content":null,"audio":{"id":"audio_1","expires_at":9,"data":"AAAA","transcript":"Hello there"}},{"role":"user","content":"more"}]"#;
    let (view, warnings) = crate::files::messages(file, Format::OpenAiChat);
    assert_eq!(warnings, []);
    let sent_body = body(&view, Target::OpenAiChat);
    assert_eq!(
        sent_body["messages"][1],
        json!({"role": "assistant", "content": null, "audio": {"id": "audio_1"}})
    );
    assert_eq!(check(&view, Target::OpenAiChat, None).unwrap().findings, []);
    for target in [Target::OpenAiResponses, Target::Anthropic, Target::Gemini] {
        let sent_body = body(&view, target).to_string();
        assert!(sent_body.contains("Hello there"), "{target}: {sent_body}");
    }
}

#[test]
fn a_text_keeps_its_item_id_only_together_with_its_reasoning() {
    let reasoning = r#"{"type":"reasoning","id":"rs_1","summary":[]}"#;
    let answer = r#"{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"4","annotations":[]}]}"#;
    let user = r#"{"role":"user","content":"q"}"#;
    let file = format!("[{user},\n{reasoning},\n{answer}]\n");
    let (view, warnings) = crate::files::messages(&file, Format::OpenAiResponses);
    assert_eq!(warnings, []);
    let rendered = check(&view, Target::OpenAiResponses, None).unwrap();
    assert!(rendered.body.contains(answer), "{}", rendered.body);
    let without = [view[0].clone(), view[2].clone()];
    let rendered = check(&without, Target::OpenAiResponses, None).unwrap();
    assert!(!rendered.body.contains("msg_1"), "{}", rendered.body);
    check_fix(&view, Target::OpenAiResponses, None);
    let written = crate::files::exported(&view, Format::OpenAiResponses, Container::List);
    assert_eq!(written, file);
}
