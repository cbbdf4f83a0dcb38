//! Views that need repairs.

use recto_core::Message;
use recto_format::{Container, Format, RenderOptions, Target, lint, render};
use serde_json::{Value, json};

use super::{check_round_trip, errors, message, options, rendered, text, view_of};
use crate::files::exported;

fn call(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "f", "input": {}})
}

fn result(id: &str, content: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": content})
}

#[test]
fn reasoning_of_a_replaced_answer_is_not_sent() {
    let request = r#"{"model":"gpt-5.2","input":[{"role":"user","content":"6 * 7?"},{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"AAAA"},{"type":"message","role":"assistant","id":"msg_1","content":[{"type":"output_text","text":"41","annotations":[]}]},{"role":"user","content":"Sure?"}]}"#;
    let mut view = view_of(request, Format::OpenAiResponses);
    view[2] = text("assistant", "42");
    let (body, rendered) = rendered(&view, Target::OpenAiResponses, Some("gpt-5.2"));
    let kinds: Vec<&Value> =
        body["input"].as_array().unwrap().iter().map(|item| &item["type"]).collect();
    assert!(!kinds.contains(&&json!("reasoning")), "{body}");
    assert_eq!(rendered.findings[0].rule.name, "reasoning_with_its_item");
    // The same shape in an imported request is an error.
    let refused = r#"{"model":"gpt-5.2","input":[{"role":"user","content":"6 * 7?"},{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"AAAA"},{"role":"assistant","content":"42"},{"role":"user","content":"Sure?"}]}"#;
    let view = view_of(refused, Format::OpenAiResponses);
    let found = errors(&view, Target::OpenAiResponses, Some("gpt-5.2"));
    assert_eq!(found[0].rule.name, "reasoning_with_its_item");
}

#[test]
fn words_of_the_assistant_are_not_attributed_to_the_user() {
    // What FIT leaves of a session that stores each of two parallel calls as a message.
    let view = [
        Message::tool_call("c1", "Bash", &json!({"command": "git add ."})),
        Message::tool_call("c2", "Bash", &json!({"command": "git status"})),
        Message::tool_result("c1", "ok"),
        Message::tool_result("c2", "clean"),
        text("assistant", "Payments time out. Shall I restart?"),
        text("user", "Put it back."),
    ];
    for target in Target::ALL {
        let (body, rendered) = rendered(&view, target, None);
        let lists = ["messages", "input", "contents"];
        let list = lists.iter().find_map(|key| body[key].as_array()).unwrap();
        for message in list.iter().filter(|message| message["role"] == "user") {
            let said = message.to_string();
            assert!(!said.contains("Payments"), "{target}: {body}");
            assert!(!said.contains("git add"), "{target}: {body}");
        }
        let lost = rendered.findings.iter().any(|it| it.rule.name == "results_have_calls");
        assert!(!lost, "{target}: {:?}", rendered.findings);
    }
}

/// A later turn may use the id of a call again. An edit can make both calls one turn, and then the provider
/// rejects the id.
#[test]
fn calls_with_one_id_that_an_edit_puts_side_by_side_get_different_ids() {
    let call = |name: &str| {
        format!(
            r#"{{"role":"assistant","content":[{{"type":"tool_use","id":"c1","name":"{name}","input":{{}}}}]}}"#
        )
    };
    let result = |text: &str| {
        format!(
            r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"c1","content":"{text}"}}]}}"#
        )
    };
    let request = format!(
        r#"{{"model":"claude-haiku-4-5","max_tokens":9,"messages":[{{"role":"user","content":"go"}},{},{},{},{}]}}"#,
        call("a"),
        result("1"),
        call("b"),
        result("2")
    );
    check_round_trip(&request, Format::Anthropic, Target::Anthropic, "messages");
    let mut view = view_of(&request, Format::Anthropic);
    view.swap(2, 3);
    let (body, rendered) = rendered(&view, Target::Anthropic, Some("claude-haiku-4-5"));
    let found = rendered.findings.iter().any(|finding| finding.rule.name == "unique_ids");
    assert!(found, "{:?}", rendered.findings);
    let ids = |key: &str| -> std::collections::BTreeSet<String> {
        let messages = body["messages"].as_array().unwrap().iter();
        let blocks = messages.flat_map(|it| it["content"].as_array().into_iter().flatten());
        blocks.filter_map(|block| block[key].as_str().map(str::to_owned)).collect()
    };
    assert_eq!(ids("id").len(), 2, "{body}");
    assert_eq!(ids("id"), ids("tool_use_id"), "{body}");
}

#[test]
fn a_message_before_thinking_is_separated_from_it() {
    let request = r#"{"model":"claude-sonnet-4-5","max_tokens":9,"messages":[{"role":"user","content":"go"},{"role":"assistant","content":[{"type":"thinking","thinking":"I call it.","signature":"AAAA"},{"type":"tool_use","id":"toolu_1","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"ok"}]}]}"#;
    let mut view = view_of(request, Format::Anthropic);
    view.insert(1, text("assistant", "Well."));
    let fields = [("thinking", r#"{"type":"enabled","budget_tokens":1024}"#)];
    let options = RenderOptions { fields: &fields, ..options(Some("claude-sonnet-4-5")) };
    let rendered = render(&view, Target::Anthropic, &options).unwrap();
    let body: Value = serde_json::from_str(&rendered.body).unwrap();
    let roles: Vec<&Value> =
        body["messages"].as_array().unwrap().iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant", "user"], "{body}");
    assert_eq!(rendered.findings[0].rule.name, "thinking_first");
    assert_eq!(body["thinking"]["type"], "enabled");
}

#[test]
fn thinking_is_disabled_if_the_last_calls_have_none() {
    // The thinking is another model's, so it is omitted.
    let source = json!({"source": {"provider": "anthropic", "model": "claude-opus-4-1"}});
    let content = json!([{"type": "thinking", "text": "I call it.", "signature": "AAAA"},
        {"type": "tool_use", "id": "c1", "name": "w", "input": {}}]);
    let call = json!({"role": "assistant", "content": content, "metadata": source});
    let call = Message::from_json(&call.to_string()).unwrap();
    let view = [text("user", "Weather?"), call, Message::tool_result("c1", "sun")];
    for (thinking, kind) in [
        (r#"{"type":"enabled","budget_tokens":1024}"#, "disabled"),
        (r#"{"type":"adaptive"}"#, "adaptive"),
    ] {
        let fields = [("thinking", thinking)];
        let options = RenderOptions { fields: &fields, ..options(Some("claude-sonnet-4-5")) };
        let rendered = render(&view, Target::Anthropic, &options).unwrap();
        let body: Value = serde_json::from_str(&rendered.body).unwrap();
        assert_eq!(body["thinking"]["type"], kind, "{body}");
        let names: Vec<&str> = rendered.findings.iter().map(|it| it.rule.name).collect();
        assert_eq!(names.contains(&"thinking_of_the_last_calls"), kind == "disabled", "{names:?}");
    }
}

#[test]
fn reasoning_is_not_followed_by_an_item_of_the_client() {
    let request = r#"{"model":"gpt-5.4","input":[{"role":"user","content":"Find a tool"},{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"AAAA"},{"type":"tool_search_call","id":"ts_1","call_id":null,"execution":"server","arguments":{},"status":"completed"},{"type":"tool_search_output","id":"tso_1","call_id":null,"execution":"server","status":"completed","tools":[]},{"type":"function_call","id":"fc_1","call_id":"call_2","name":"rate","arguments":"{}"},{"type":"function_call_output","call_id":"call_2","output":"1.1"}]}"#;
    let mut view = view_of(request, Format::OpenAiResponses);
    view.remove(2);
    let (body, rendered) = rendered(&view, Target::OpenAiResponses, Some("gpt-5.4"));
    let items = body["input"].as_array().unwrap();
    assert!(items.iter().all(|item| item["type"] != "reasoning"), "{body}");
    assert!(rendered.findings.iter().any(|it| it.rule.name == "reasoning_with_its_item"));
}

#[test]
fn thinking_after_an_edit_is_omitted_for_models_that_bind_it() {
    let thinking = |text: &str| {
        let source = json!({"source": {"provider": "anthropic"}});
        let content = json!([{"type": "thinking", "text": text, "signature": "AAAA"},
            {"type": "text", "text": "done"}]);
        let message = json!({"role": "assistant", "content": content, "metadata": source});
        Message::from_json(&message.to_string()).unwrap()
    };
    let view = [
        text("user", "a"),
        thinking("first"),
        text("user", "b"),
        thinking("second"),
        text("user", "c"),
    ];
    let sent = |model: &str, fields: &[(&str, &str)]| {
        let options = RenderOptions {
            model: Some(model),
            fields,
            invalid_thinking: &[3],
            ..RenderOptions::default()
        };
        let rendered = render(&view, Target::Anthropic, &options).unwrap();
        let names: Vec<&str> = rendered.findings.iter().map(|it| it.rule.name).collect();
        let kept = ["first", "second"].map(|text| rendered.body.contains(text));
        (kept, names)
    };
    assert_eq!(sent("claude-fable-5-1", &[]), ([true, false], vec!["thinking_of_its_prefix"]));
    assert_eq!(sent("claude-sonnet-4-5", &[]), ([true, true], vec![]));
    let asks = [(
        "thinking",
        r#"{"type":"adaptive","block_binding":{"prefix_mismatch_behavior":"drop_block"}}"#,
    )];
    assert_eq!(sent("claude-fable-5-1", &asks), ([true, true], vec![]));
}

#[test]
fn the_api_version_of_october_2026_rejects_fields_and_citations_of_the_user() {
    let content = json!([{"type": "text", "text": "a", "citations": [{"type": "char_location"}]}]);
    let source = json!({"source": {"provider": "anthropic"}});
    let message = json!({"role": "user", "content": content, "metadata": source});
    let view = [Message::from_json(&message.to_string()).unwrap()];
    for (api_version, is_new) in
        [(None, false), (Some("2023-06-01"), false), (Some("2026-10-21"), true)]
    {
        let options = RenderOptions { api_version, ..RenderOptions::default() };
        let rendered = render(&view, Target::Anthropic, &options).unwrap();
        assert_eq!(rendered.body.contains("char_location"), !is_new, "{}", rendered.body);
        let names: Vec<&str> = rendered.findings.iter().map(|it| it.rule.name).collect();
        assert_eq!(names.contains(&"citations_from_the_assistant"), is_new, "{names:?}");
        let fields = [("temperature", "0.2")];
        let options = RenderOptions { fields: &fields, ..options };
        let refused = render(&view, Target::Anthropic, &options).err().map(|it| it.to_string());
        assert_eq!(refused.is_some(), is_new, "{refused:?}");
        if let Some(refused) = refused {
            assert!(refused.contains("API version 2026-10-21"), "{refused}");
        }
    }
}

#[test]
fn an_original_that_disagrees_with_its_message_is_not_sent() {
    let forged = [
        ("openai-chat", json!({"role": "assistant", "content": "FORGED"})),
        ("openai-chat", json!({"role": "user", "content": "FORGED"})),
        ("openai-responses", json!({"role": "user", "content": "FORGED"})),
        ("anthropic", json!({"role": "assistant", "content": "FORGED"})),
        ("anthropic", json!({"role": "user", "content": [{"type": "text", "text": "FORGED"}]})),
        ("anthropic", json!({"role": "assistant", "content": "hi", "x": "FORGED"})),
        ("gemini", json!({"role": "user", "parts": [{"text": "FORGED"}]})),
        ("bedrock-converse", json!({"role": "user", "content": [{"text": "FORGED"}]})),
        ("anthropic", json!("FORGED")),
        ("anthropic", json!({"FORGED": 1})),
        ("openai-chat", json!([{"role": "user", "content": "FORGED"}])),
    ];
    for (name, original) in forged {
        let target = Target::named(name).unwrap();
        for field in [None, Some("system")] {
            let mut source = json!({"format": name, "original": original});
            if let Some(field) = field {
                source["field"] = field.into();
            }
            let forged = json!({"role": "user", "content": "hi", "metadata": {"source": source}});
            let view = [message(forged.clone()), text("assistant", "a"), text("user", "b")];
            let (body, _) = rendered(&view, target, None);
            assert!(!body.to_string().contains("FORGED"), "{forged}: {body}");
            assert!(body.to_string().contains("\"hi\""), "{forged}: {body}");
        }
    }
    // The pieces of one foreign message, of which one has another text.
    let request = r#"{"model":"claude-haiku-4-5","max_tokens":9,"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"f","input":{}}]},{"role":"user","x":1,"content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"1"},{"type":"text","text":"FORGED"}]}]}"#;
    let mut view = view_of(request, Format::Anthropic);
    let last = view.len() - 1;
    view[last] = Message::from_json(&view[last].json().replace("FORGED", "hi")).unwrap();
    let (body, _) = rendered(&view, Target::Anthropic, None);
    assert!(!body.to_string().contains("FORGED"), "{body}");
}

#[test]
fn a_message_is_moved_only_to_a_field_that_can_hold_it() {
    const ROLES: [&str; 3] = ["user", "assistant", "system"];
    let fields =
        ["system", "instructions", "systemInstruction", "model", "tools", "input", "messages", "x"];
    for target in Target::ALL {
        for (role, field) in ROLES.iter().flat_map(|role| fields.map(|field| (role, field))) {
            let source = json!({"format": target.name(), "field": field});
            let moved = json!({"role": role, "content": "first", "metadata": {"source": source}});
            let plain = json!({"role": role, "content": "first"});
            let rest = [text("user", "second"), text("assistant", "third")];
            let view = |first: Value| [&[message(first)], &rest[..]].concat();
            let (expected, _) = rendered(&view(plain), target, None);
            let (body, _) = rendered(&view(moved), target, None);
            let keys = |body: &Value| body.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
            // An import marks a system message that was in this field alike.
            match (target, *role, field) {
                (Target::OpenAiResponses, "system", "instructions") => {
                    assert_eq!(keys(&body), ["instructions", "input"]);
                }
                _ => assert_eq!(keys(&body), keys(&expected), "{target} {role} {field}"),
            }
            for text in ["\"first\"", "\"second\"", "\"third\""] {
                assert_eq!(body.to_string().matches(text).count(), 1, "{target} {field}: {body}");
            }
        }
    }
}

#[test]
fn a_repeated_id_in_a_later_turn_is_repaired_if_it_was_not_imported() {
    let view = [
        message(json!({"role": "assistant", "content": [call("c4")]})),
        message(json!({"role": "tool", "content": [result("c4", "1")]})),
        message(json!({"role": "assistant", "content": [call("c4")]})),
        message(json!({"role": "tool", "content": [result("c4", "2")]})),
    ];
    for &target in Target::ALL.iter().filter(|target| **target != Target::Gemini) {
        let (body, rendered) = rendered(&view, target, None);
        let found: Vec<usize> = rendered
            .findings
            .iter()
            .filter(|finding| finding.rule.name == "unique_ids")
            .map(|finding| finding.index)
            .collect();
        assert_eq!(found, [2], "{target}");
        assert_eq!(body.to_string().matches("\"c4_2\"").count(), 2, "{target}: {body}");
    }
}

#[test]
fn a_blank_text_of_an_error_is_replaced() {
    for blank in ["", " ", "\n\t"] {
        let mut failed = result("c", blank);
        failed["is_error"] = true.into();
        let view = [
            message(json!({"role": "assistant", "content": [call("c")]})),
            message(json!({"role": "tool", "content": [failed]})),
        ];
        let (body, rendered) = rendered(&view, Target::Anthropic, None);
        let found = |name: &str| rendered.findings.iter().any(|it| it.rule.name == name);
        assert!(found("errors_say_something"), "{blank:?}: {body}");
        assert!(body.to_string().contains("[no result]"), "{blank:?}: {body}");
    }
}

#[test]
fn the_outputs_of_calls_precede_a_text_behind_the_calls() {
    let text = json!({"type": "text", "text": "k"});
    let view = [
        message(
            json!({"role": "assistant", "content": [call("c1"), call("c2"), text, call("c3")]}),
        ),
        message(json!({"role": "tool", "content": [result("c1", "1"), result("c2", "2")]})),
        message(json!({"role": "tool", "content": [result("c3", "3")]})),
    ];
    let (body, _) = rendered(&view, Target::OpenAiResponses, None);
    let items = body["input"].as_array().unwrap().iter();
    let items: Vec<String> = items
        .map(|item| match item["call_id"].as_str() {
            Some(id) => format!("{} {id}", item["type"].as_str().unwrap()),
            None => item["type"].as_str().unwrap().to_owned(),
        })
        .collect();
    let wanted = [
        "function_call c1",
        "function_call c2",
        "function_call_output c1",
        "function_call_output c2",
        "message",
        "function_call c3",
        "function_call_output c3",
    ];
    assert_eq!(items, wanted, "{body}");
    // Read again, the request violates no rule.
    let again = view_of(
        &format!(r#"{{"model":"gpt-5","input":{}}}"#, body["input"]),
        Format::OpenAiResponses,
    );
    assert_eq!(lint(&again, Target::OpenAiResponses, &options(None)), []);
}

#[test]
fn a_value_as_the_content_of_a_result_becomes_its_json_text() {
    for value in [r#"{"ok":true}"#, "5", "false"] {
        let chat = format!(
            r#"{{"messages":[{{"role":"user","content":"q"}},{{"role":"assistant","content":null,"tool_calls":[{{"id":"c1","type":"function","function":{{"name":"f","arguments":"{{}}"}}}}]}},{{"role":"tool","tool_call_id":"c1","content":{value}}}]}}"#
        );
        let anthropic = format!(
            r#"{{"max_tokens":9,"messages":[{{"role":"user","content":"q"}},{{"role":"assistant","content":[{{"type":"tool_use","id":"c1","name":"f","input":{{}}}}]}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"c1","content":{value}}}]}}]}}"#
        );
        for (request, format) in [(chat, Format::OpenAiChat), (anthropic, Format::Anthropic)] {
            let view = view_of(&request, format);
            for target in Target::ALL {
                let (body, rendered) = rendered(&view, target, None);
                let names: Vec<&str> = rendered.findings.iter().map(|it| it.rule.name).collect();
                let is_own = target.name() == format.name();
                assert_eq!(names.contains(&"content_is_text"), is_own, "{target}: {names:?}");
                let text = body.to_string();
                assert!(!text.contains("[no result]"), "{target}: {body}");
                assert!(text.matches("\"c1\"").count() <= 2, "{target}: {body}");
                let written = serde_json::to_string(value).unwrap();
                // Google's results are objects.
                let is_written = text.contains(&format!(":{written}"))
                    || target == Target::Gemini && text.contains(&format!("\"response\":{value}"));
                assert!(is_written, "{target}: {body}");
            }
            // Exported, it is as it was.
            let lists: Value =
                serde_json::from_str(&exported(&view, format, Container::List)).unwrap();
            let given: Value = serde_json::from_str(&request).unwrap();
            assert_eq!(lists, given["messages"]);
        }
    }
    let request = r#"{"model":"gpt-5","messages":[{"role":"user","content":"q"},{"role":"user","content":7}]}"#;
    let view = view_of(request, Format::OpenAiChat);
    let (body, rendered) = rendered(&view, Target::OpenAiChat, None);
    let user = |text: &str| json!({"role": "user", "content": text});
    assert_eq!(body["messages"], json!([user("q"), user("7")]));
    assert!(rendered.findings.iter().any(|finding| finding.rule.name == "content_is_text"));
    // The role of an assistant's message that import could not read is not known to the view.
    let request = request.replace(r#""user","content":7"#, r#""assistant","content":7"#);
    let view = view_of(&request, Format::OpenAiChat);
    let (body, _) = super::rendered(&view, Target::OpenAiChat, None);
    assert_eq!(body["messages"], json!([user("q")]));
}

#[test]
fn a_text_without_a_type_is_sent() {
    for (content, sent) in [
        (r#"[{"text":"a"}]"#, json!("a")),
        (
            r#"[{"text":"a"},{"text":"b"},{"x":1}]"#,
            json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]),
        ),
        (
            r#"[{"type":"text","text":"a"},{"text":"b"}]"#,
            json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]),
        ),
    ] {
        let request =
            format!(r#"{{"model":"gpt-5","messages":[{{"role":"user","content":{content}}}]}}"#);
        let view = view_of(&request, Format::OpenAiChat);
        let (body, rendered) = rendered(&view, Target::OpenAiChat, Some("gpt-5"));
        assert_eq!(body["messages"], json!([{"role": "user", "content": sent}]));
        assert!(
            rendered.findings.iter().all(|it| it.rule.name == "parts_have_a_type"),
            "{content}"
        );
        assert!(!rendered.findings.is_empty(), "{content}");
    }
    // A text of the assistant stays one.
    let request = r#"{"model":"gpt-5","messages":[{"role":"user","content":"q"},{"role":"assistant","content":[{"text":"a"}]}]}"#;
    let view = view_of(request, Format::OpenAiChat);
    let (body, rendered) = super::rendered(&view, Target::OpenAiChat, Some("gpt-5"));
    assert_eq!(body["messages"][1], json!({"role": "assistant", "content": "a"}));
    assert_eq!(rendered.findings[0].rule.name, "parts_have_a_type");
}

#[test]
fn media_that_cannot_be_sent_is_replaced() {
    let media = |kind: &str| json!({"type": kind, "source": {"type": "url", "url": "ftp://a/b"}});
    let view = [message(
        json!({"role": "user", "content": [media("image"), media("file"), media("audio")]}),
    )];
    let (body, rendered) = rendered(&view, Target::Anthropic, None);
    let texts: Vec<&Value> =
        body["messages"][0]["content"].as_array().unwrap().iter().map(|it| &it["text"]).collect();
    assert_eq!(texts, ["[image]", "[file]", "[audio]"], "{body}");
    assert!(rendered.findings.iter().all(|it| it.rule.name == "media_has_a_form"));
}

/// Without the placeholder, two messages of the assistant would meet.
#[test]
fn an_empty_message_of_the_user_between_two_answers_is_replaced() {
    let empty = message(json!({"role": "user", "content": [{"type": "text", "text": " "}]}));
    let view = |empty: &[Message]| {
        let first = [text("user", "a"), text("assistant", "b")];
        [&first, empty, &[text("assistant", "c"), text("user", "d")]].concat()
    };
    let sent = |view: &[Message]| {
        let (body, _) = rendered(view, Target::Anthropic, None);
        let list = body["messages"].as_array().unwrap().clone();
        let text = |it: &Value| match it["content"].as_str() {
            Some(text) => text.to_owned(),
            None => it["content"][0]["text"].as_str().unwrap().to_owned(),
        };
        list.iter().map(text).collect::<Vec<_>>()
    };
    assert_eq!(sent(&view(std::slice::from_ref(&empty))), ["a", "b", "[no message]", "c", "d"]);
    assert_eq!(sent(&view(&[empty.clone(), empty.clone()])), ["a", "b", "[no message]", "c", "d"]);
    // Another message of the user is beside it.
    assert_eq!(sent(&view(&[empty.clone(), text("user", "e")])), ["a", "b", "e", "c", "d"]);
    assert_eq!(sent(&[text("user", "a"), text("assistant", "b"), empty]), ["a", "b"]);
}

/// A model that binds thinking rejects it after an edit. The other blocks keep their bytes.
#[test]
fn only_the_thinking_of_an_imported_message_is_omitted() {
    let rest = r#"{"type":"text","text":"I call it.", "x": 1} , {"type":"tool_use","id":"toolu_1","name":"f","input":{ },"caller":{"type":"direct"}}"#;
    let answer =
        |thinking: &str| format!(r#"{{"content": [ {thinking}{rest} ],"role":"assistant"}}"#);
    let thinking = r#"{"type":"thinking","thinking":"hm","signature":"AAAA"}, {"type":"redacted_thinking","data":"AAAA"} , "#;
    let request = format!(
        r#"{{"model":"claude-fable-5-1","max_tokens":9,"messages":[{{"role":"user","content":"a"}},{},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"toolu_1","content":"1"}}]}}]}}"#,
        answer(thinking)
    );
    let view = view_of(&request, Format::Anthropic);
    let options = RenderOptions { invalid_thinking: &[1], ..options(Some("claude-fable-5-1")) };
    let rendered = render(&view, Target::Anthropic, &options).unwrap();
    assert!(rendered.body.contains(&answer("")), "{}", rendered.body);
    let names: Vec<&str> = rendered.findings.iter().map(|it| it.rule.name).collect();
    assert_eq!(names, ["thinking_of_its_prefix", "thinking_of_its_prefix"]);
    // Thinking at the end, or in the middle.
    for (blocks, left) in [
        (
            r#"{"type":"text","text":"a"} ,{"type":"thinking","thinking":"hm","signature":"AAAA"} "#,
            r#"{"type":"text","text":"a"} "#,
        ),
        (
            r#"{"type":"text","text":"a"} ,{"type":"thinking","thinking":"hm","signature":"AAAA"} ,  {"type":"text","text":"b"}"#,
            r#"{"type":"text","text":"a"} ,  {"type":"text","text":"b"}"#,
        ),
    ] {
        let answer = |blocks: &str| format!(r#"{{"role":"assistant","content":[{blocks}]}}"#);
        let request = format!(
            r#"{{"model":"claude-fable-5-1","max_tokens":9,"messages":[{{"role":"user","content":"a"}},{},{{"role":"user","content":"b"}}]}}"#,
            answer(blocks)
        );
        let rendered = render(&view_of(&request, Format::Anthropic), Target::Anthropic, &options);
        let body = rendered.unwrap().body;
        assert!(body.contains(&answer(left)), "{body}");
    }
    // The thinking of another model.
    let response = r#"{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5","stop_reason":"end_turn","content":[{"type":"thinking","thinking":"hm","signature":"AAAA"},{"type":"text","text":"yo","x":1}],"usage":{"input_tokens":1}}"#;
    let mut view = vec![text("user", "hi")];
    view.extend(view_of(response, Format::Anthropic));
    view.push(text("user", "and?"));
    let (body, rendered) = super::rendered(&view, Target::Anthropic, Some("claude-opus-4-1"));
    assert_eq!(body["messages"][1]["content"], json!([{"type": "text", "text": "yo", "x": 1}]));
    assert_eq!(rendered.findings[0].rule.name, "thinking_for_its_maker");
}

#[test]
fn calls_without_reasoning_get_an_empty_one_for_models_that_require_it() {
    let view = [
        text("user", "Weather?"),
        Message::tool_call("c1", "w", &json!({})),
        Message::tool_result("c1", "sun"),
    ];
    let sent = |model: &str, fields: &[(&str, &str)]| {
        let options = RenderOptions { fields, ..options(Some(model)) };
        let rendered = render(&view, Target::OpenAiChat, &options).unwrap();
        let body: Value = serde_json::from_str(&rendered.body).unwrap();
        let names: Vec<&str> = rendered.findings.iter().map(|it| it.rule.name).collect();
        let reasoning = body["messages"][1]["reasoning_content"].as_str().map(str::to_owned);
        assert_eq!(names.contains(&"calls_have_reasoning"), reasoning.is_some(), "{names:?}");
        reasoning
    };
    assert_eq!(sent("deepseek-v4-flash", &[]).as_deref(), Some(" "));
    assert_eq!(sent("kimi-k2.6", &[("thinking", r#"{"type":"enabled"}"#)]).as_deref(), Some(" "));
    assert_eq!(sent("deepseek-v4-flash", &[("thinking", r#"{"type":"disabled"}"#)]), None);
    assert_eq!(sent("gpt-5", &[]), None);
    // An imported message was accepted as it is.
    let request = r#"{"model":"deepseek-v4-flash","messages":[{"role":"user","content":"a"},{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"w","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c1","content":"1"}]}"#;
    check_round_trip(request, Format::OpenAiChat, Target::OpenAiChat, "messages");
}

#[test]
fn a_request_that_stores_nothing_refers_to_no_stored_item() {
    let bare = r#"{"type":"reasoning","id":"rs_1","summary":[]}"#;
    let encrypted = r#"{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"AAAA"}"#;
    let reference = r#"{"type":"item_reference","id":"rs_1"}"#;
    let found = |item: &str, store: &str, model: &str| {
        let request = format!(
            r#"{{"model":"{model}","input":[{{"role":"user","content":"a"}},{item},{{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{{"type":"output_text","text":"b","annotations":[]}}]}},{{"role":"user","content":"c"}}]}}"#
        );
        let view = view_of(&request, Format::OpenAiResponses);
        let fields = [("store", store)];
        let options = RenderOptions { fields: &fields, ..options(Some(model)) };
        let rendered = render(&view, Target::OpenAiResponses, &options).unwrap();
        let is_found = rendered.findings.iter().any(|it| it.rule.name == "stored_items");
        assert_eq!(rendered.body.contains("rs_1"), !is_found, "{}", rendered.body);
        // Without its reasoning, the id of the answer is rejected.
        let keeps_id = !is_found || item == reference;
        assert_eq!(rendered.body.contains("msg_1"), keeps_id, "{}", rendered.body);
        is_found
    };
    assert!(found(bare, "false", "gpt-5"));
    assert!(!found(bare, "true", "gpt-5"));
    assert!(!found(encrypted, "false", "gpt-5"));
    assert!(found(reference, "false", "gpt-5"));
    assert!(!found(reference, "true", "gpt-5"));
    assert!(!found(bare, "false", "grok-4.3"));
}

#[test]
fn the_result_of_a_call_that_a_reference_cannot_name_is_text() {
    let request = r#"{"model":"gpt-5","input":[{"type":"item_reference","id":"fc_1"},{"type":"function_call_output","call_id":"c1","output":"1"}]}"#;
    let view = view_of(request, Format::OpenAiResponses);
    let fields = [("store", "false")];
    let options = RenderOptions { fields: &fields, ..options(Some("gpt-5")) };
    let body = render(&view, Target::OpenAiResponses, &options).unwrap().body;
    assert!(!body.contains("fc_1") && !body.contains("function_call_output"), "{body}");
}
