//! Requests that providers accept: they have no errors, and rendering keeps their bytes.

use recto_core::Message;
use recto_format::{Container, Format, RenderOptions, Target, render};
use serde_json::json;

use super::{check_round_trip, rendered, text, view_of};
use crate::files::exported;

#[test]
fn reasoning_content_is_returned_to_the_model_that_produced_it() {
    for request in [
        r#"{"model":"deepseek-v4-flash","messages":[{"role":"user","content":"Weather?"},{"role":"assistant","content":"","reasoning_content":"I call it.","tool_calls":[{"id":"c1","type":"function","function":{"name":"w","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c1","content":"sun"}]}"#,
        r#"{"model":"anthropic/claude-haiku-4.5","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"yo","reasoning":"short","reasoning_details":[{"type":"reasoning.text","text":"short","signature":"AAAA"}]},{"role":"user","content":"more"}]}"#,
    ] {
        check_round_trip(request, Format::OpenAiChat, Target::OpenAiChat, "messages");
    }
    // An answer that the model loop stored.
    let made = |model: &str| {
        let source = json!({"source": {"provider": "openai", "model": model}});
        let content = json!([{"type": "thinking", "text": "I call it."},
            {"type": "tool_use", "id": "c1", "name": "w", "input": {}}]);
        Message::from_json(
            &json!({"role": "assistant", "content": content, "metadata": source}).to_string(),
        )
        .unwrap()
    };
    for (made_by, model, expected) in [
        ("deepseek-v4-flash", "deepseek-v4-flash", Some("I call it.")),
        ("kimi-k2-thinking", "kimi-k2-thinking", Some("I call it.")),
        // Kimi rejects calls without reasoning.
        ("deepseek-v4-flash", "kimi-k2-thinking", Some(" ")),
        ("deepseek-v4-flash", "qwen3-max", None),
        ("gpt-5", "gpt-5", None),
    ] {
        let view = [text("user", "Weather?"), made(made_by), Message::tool_result("c1", "sun")];
        let (body, _) = rendered(&view, Target::OpenAiChat, Some(model));
        let sent = body["messages"][1]["reasoning_content"].as_str();
        assert_eq!(sent, expected, "{made_by} to {model}: {body}");
    }
}

#[test]
fn newer_items_of_responses_are_sent_again() {
    let request = r#"{"model":"gpt-5.4","input":[{"role":"user","content":"Find a tool"},{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"AAAA"},{"type":"tool_search_call","id":"ts_1","call_id":"call_1","execution":"client","arguments":{"query":"rate"},"status":"completed"},{"type":"tool_search_output","call_id":"call_1","execution":"client","tools":[{"type":"function","name":"rate","parameters":{"type":"object","properties":{}}}]},{"type":"function_call","id":"fc_1","call_id":"call_2","name":"rate","namespace":"money","arguments":"{}"},{"type":"function_call_output","call_id":"call_2","output":"1.1"}]}"#;
    check_round_trip(request, Format::OpenAiResponses, Target::OpenAiResponses, "input");
    for item in [
        r#"{"type":"additional_tools","tools":[]}"#,
        r#"{"type":"agent_message","id":"am_1","content":[{"type":"output_text","text":"done"}]}"#,
    ] {
        let request = format!(
            r#"{{"model":"gpt-5.4","input":[{{"role":"user","content":"go"}},{item},{{"role":"user","content":"on"}}]}}"#
        );
        check_round_trip(&request, Format::OpenAiResponses, Target::OpenAiResponses, "input");
    }
    // The call of the result is stored at the provider.
    let stored = r#"{"model":"gpt-5.4","previous_response_id":"resp_1","input":[{"type":"function_call_output","call_id":"call_2","output":"1.1"}]}"#;
    let view = view_of(stored, Format::OpenAiResponses);
    let fields = [("previous_response_id", "\"resp_1\"")];
    let options = RenderOptions { fields: &fields, ..RenderOptions::default() };
    let body = render(&view, Target::OpenAiResponses, &options).unwrap().body;
    assert!(body.contains(r#"{"type":"function_call_output","call_id":"call_2""#), "{body}");
}

#[test]
fn a_system_message_inside_the_list_stays_one_at_anthropic() {
    let request = r#"{"model":"claude-opus-4-8","max_tokens":9,"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"yo"},{"role":"user","content":"go on"},{"role":"system","content":"Answer in French."}]}"#;
    check_round_trip(request, Format::Anthropic, Target::Anthropic, "messages");
    let view = view_of(request, Format::Anthropic);
    let file = exported(&view, Format::Anthropic, Container::List);
    assert!(file.contains(r#"{"role":"system","content":"Answer in French."}"#), "{file}");
}

#[test]
fn blocks_of_newer_versions_of_anthropics_api_are_sent_again() {
    let request = r#"{"model":"claude-opus-5","max_tokens":9,"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"text","text":"yo"}]},{"role":"system","content":[{"type":"tool_addition","tools":[{"name":"t","input_schema":{"type":"object"}}]},{"type":"tool_removal","names":["u"]}]},{"role":"user","content":"go"},{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_1","name":"advisor","input":{}},{"type":"advisor_tool_result","tool_use_id":"srvtoolu_1","content":{"type":"advisor_result","text":"ok"}},{"type":"text","text":"done"}]},{"role":"user","content":"thanks"}]}"#;
    check_round_trip(request, Format::Anthropic, Target::Anthropic, "messages");
}

#[test]
fn fields_that_recto_does_not_know_are_sent_to_the_same_provider() {
    for message in [
        r#"{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},{"type":"text","text":"b"}]}"#,
        r#"{"role":"user","content":[{"type":"text","text":"a","prompt_cache_breakpoint":{"type":"ephemeral"}}]}"#,
        r#"{"content":"x","prefix":false,"role":"user"}"#,
        r#"{"role":"user","content":"x","name":null,"tool_calls":null}"#,
        r#"{"role":"user","name":"ada","content":"x"}"#,
        r#"{"role":"user","content":[{"type":"document_url","document_url":"https://a.b/c.pdf"},{"type":"text","text":"Sum up"}]}"#,
        r#"{"role":"user","content":[{"type":"input_audio","input_audio":"AAAA"},{"type":"text","text":"What?"}]}"#,
    ] {
        let request = format!(r#"{{"model":"m","messages":[{message}]}}"#);
        check_round_trip(&request, Format::OpenAiChat, Target::OpenAiChat, "messages");
    }
    // Servers that omit the ids of calls.
    let request = r#"{"model":"m","messages":[{"role":"user","content":"go"},{"role":"assistant","content":null,"tool_calls":[{"type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","name":"f","content":"done"},{"role":"user","content":"and?"}]}"#;
    check_round_trip(request, Format::OpenAiChat, Target::OpenAiChat, "messages");
    let unnamed = request.replace(r#""name":"f","content":"done""#, r#""content":"done""#);
    check_round_trip(&unnamed, Format::OpenAiChat, Target::OpenAiChat, "messages");
    for item in [
        r#"{"type":"message","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"hm"}]}"#,
        r#"{"role":"user","content":[{"type":"input_text","text":"a","prompt_cache_breakpoint":true}]}"#,
    ] {
        let request = format!(
            r#"{{"model":"gpt-5.4","input":[{{"role":"user","content":"go"}},{item},{{"role":"user","content":"on"}}]}}"#
        );
        check_round_trip(&request, Format::OpenAiResponses, Target::OpenAiResponses, "input");
    }
    for message in [
        r#"{"role":"assistant","content":[{"type":"text","text":"a","citations":null}]}"#,
        r#"{"role":"assistant","content":[{"text":"a","type":"text","citations":[{"type":"char_location","cited_text":"a","document_index":0,"document_title":null,"start_char_index":0,"end_char_index":1}]}]}"#,
        r#"{"role":"user","content":[{"type":"image","source":{"data":"AAAA","media_type":"image/png","type":"base64"},"cache_control":null}]}"#,
    ] {
        let request = format!(
            r#"{{"model":"claude-haiku-4-5","max_tokens":9,"messages":[{{"role":"user","content":"go"}},{message},{{"role":"user","content":"on"}}]}}"#
        );
        check_round_trip(&request, Format::Anthropic, Target::Anthropic, "messages");
    }
    let calls = r#"{"model":"claude-haiku-4-5","max_tokens":9,"messages":[{"role":"user","content":"go"},{"content":[{"id":"search_1","input":{"q": "x"},"name":"search","type":"tool_use","caller":{"type":"direct"}}],"role":"assistant"},{"role":"user","content":[{"type":"tool_result","tool_use_id":"search_1","content":[{"type":"text","text":"found"}]}]}]}"#;
    check_round_trip(calls, Format::Anthropic, Target::Anthropic, "messages");
    for request in [
        r#"{"contents":[{"role":"user","parts":[{"fileData":{"fileUri":"https://a.b/v.mp4","mimeType":"video/mp4"},"videoMetadata":{"fps":2}},{"text":"Watch"}]}]}"#,
        r#"{"contents":[{"role":"user","parts":[{"text":"go"}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"result":"ok"}}}]}]}"#,
        r#"{"system_instruction":{"parts":[{"text":"Be brief."}],"role":"user"},"contents":[{"parts":[{"inline_data":{"mime_type":"image/png","data":"AAAA"}}],"role":"user"}]}"#,
    ] {
        check_round_trip(request, Format::Gemini, Target::Gemini, "contents");
    }
}

#[test]
fn an_empty_text_is_accepted_by_google_and_openai() {
    for request in [
        r#"{"contents":[{"role":"user","parts":[{"text":""}]}]}"#,
        r#"{"contents":[{"role":"user","parts":[{"text":""}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{}},"thoughtSignature":"AAAA"}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"ok"}}}]}]}"#,
    ] {
        check_round_trip(request, Format::Gemini, Target::Gemini, "contents");
    }
    let chat = r#"{"model":"gpt-5","messages":[{"role":"user","content":"go"},{"role":"assistant","content":""},{"role":"user","content":"on"}]}"#;
    check_round_trip(chat, Format::OpenAiChat, Target::OpenAiChat, "messages");
    let responses = r#"{"model":"gpt-5","input":[{"role":"user","content":[{"type":"input_text","text":""}]},{"role":"assistant","content":""},{"role":"user","content":"on"}]}"#;
    check_round_trip(responses, Format::OpenAiResponses, Target::OpenAiResponses, "input");
}

#[test]
fn anthropic_accepts_a_first_message_of_the_assistant() {
    for request in [
        r#"{"model":"claude-sonnet-4-5","max_tokens":9,"messages":[{"role":"assistant","content":"Hello."},{"role":"user","content":"hi"}]}"#,
        r#"{"model":"claude-sonnet-4-5","max_tokens":9,"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"notify","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"sent"}]}]}"#,
    ] {
        check_round_trip(request, Format::Anthropic, Target::Anthropic, "messages");
    }
    // Messages that were not imported keep their role too.
    let view = [
        Message::tool_call("c1", "notify", &json!({})),
        Message::tool_result("c1", "sent"),
        text("assistant", "Shall I restart?"),
        text("user", "Yes"),
    ];
    let (body, _) = rendered(&view, Target::Anthropic, Some("claude-sonnet-4-5"));
    assert_eq!(body["messages"][0]["content"][0]["type"], "tool_use", "{body}");
    assert_eq!(body["messages"][2]["role"], "assistant", "{body}");
}

#[test]
fn lint_has_no_errors_for_requests_that_providers_accept() {
    // A call of the server is in flight while the client answers the call beside it.
    let in_flight = r#"{"model":"claude-sonnet-4-5","max_tokens":9,"messages":[{"role":"user","content":"go"},{"role":"assistant","content":[{"type":"mcp_tool_use","id":"mcptoolu_1","name":"m","server_name":"s","input":{}},{"type":"tool_use","id":"toolu_1","name":"t","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"ok"}]}]}"#;
    check_round_trip(in_flight, Format::Anthropic, Target::Anthropic, "messages");
    // The id of a call may occur again in a later turn.
    let repeated = r#"{"model":"m","messages":[{"role":"user","content":"go"},{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c1","content":"1"},{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c1","content":"2"}]}"#;
    check_round_trip(repeated, Format::OpenAiChat, Target::OpenAiChat, "messages");
    let long = "c".repeat(60);
    let ids = format!(
        r#"{{"model":"openai/gpt-5","messages":[{{"role":"user","content":"go"}},{{"role":"assistant","content":null,"tool_calls":[{{"id":"{long}","type":"function","function":{{"name":"f","arguments":"{{}}"}}}}]}},{{"role":"tool","tool_call_id":"{long}","content":"1"}}]}}"#
    );
    check_round_trip(&ids, Format::OpenAiChat, Target::OpenAiChat, "messages");
    let space = r#"{"model":"claude-sonnet-4-5","max_tokens":9,"messages":[{"role":"user","content":"go"},{"role":"assistant","content":[{"type":"text","text":" "},{"type":"tool_use","id":"toolu_1","name":"t","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"ok"}]}]}"#;
    check_round_trip(space, Format::Anthropic, Target::Anthropic, "messages");
}

#[test]
fn parallel_calls_in_two_messages_are_accepted_by_anthropic_and_google() {
    let anthropic = r#"{"model":"claude-haiku-4-5","max_tokens":9,"messages":[{"role":"user","content":"go"},{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"a","input":{}}]},{"role":"assistant","content":[{"type":"tool_use","id":"toolu_2","name":"b","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"1"}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_2","content":"2"}]}]}"#;
    check_round_trip(anthropic, Format::Anthropic, Target::Anthropic, "messages");
    let gemini = r#"{"contents":[{"role":"user","parts":[{"text":"go"}]},{"role":"model","parts":[{"functionCall":{"name":"a","args":{}}}]},{"role":"model","parts":[{"functionCall":{"name":"b","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"a","response":{"output":"1"}}}]},{"role":"user","parts":[{"functionResponse":{"name":"b","response":{"output":"2"}}}]}]}"#;
    check_round_trip(gemini, Format::Gemini, Target::Gemini, "contents");
}

#[test]
fn consecutive_messages_of_one_role_keep_their_bytes_at_anthropic_and_google() {
    let anthropic = r#"{"model":"claude-haiku-4-5","max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"user","content":[{"type":"text","text":"b"}]},{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"1"}]},{"role":"user","content":"go on"}]}"#;
    check_round_trip(anthropic, Format::Anthropic, Target::Anthropic, "messages");
    let gemini = r#"{"contents":[{"role":"user","parts":[{"text":"a"}]},{"role":"user","parts":[{"text":"b"}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"1"}}}]},{"role":"user","parts":[{"text":"go on"}]}]}"#;
    check_round_trip(gemini, Format::Gemini, Target::Gemini, "contents");
}

#[test]
fn a_signed_compaction_block_and_changes_of_tools_stay_where_they_are() {
    let request = r#"{"model":"claude-opus-5","max_tokens":9,"messages":[{"role":"assistant","content":[{"type":"compaction","content":"So far.","signature":"AAAA"}]},{"role":"user","content":"go on"},{"role":"system","content":[{"type":"tool_addition","tool":{"type":"tool_reference","tool_name":"t"}}]}]}"#;
    check_round_trip(request, Format::Anthropic, Target::Anthropic, "messages");
    // An edit elsewhere leaves them.
    let mut view = view_of(request, Format::Anthropic);
    view[1] = text("user", "go on, please");
    let (body, _) = rendered(&view, Target::Anthropic, Some("claude-opus-5"));
    assert_eq!(body["messages"][0]["content"][0]["signature"], "AAAA", "{body}");
    assert_eq!(body["messages"][2]["content"][0]["type"], "tool_addition", "{body}");
}

#[test]
fn items_that_are_not_known_keep_their_bytes_for_every_model() {
    for model in ["gpt-5.4", "deepseek-v4-flash", "grok-4.3"] {
        let request = format!(
            r#"{{"model":"{model}","input":[{{"role":"user","content":"hi"}},{{"type":"brand_new_item","id":"bn_1","data":"x"}},{{"role":"user","content":"ok"}}]}}"#
        );
        check_round_trip(&request, Format::OpenAiResponses, Target::OpenAiResponses, "input");
    }
}

#[test]
fn an_original_that_agrees_with_its_message_is_sent() {
    // Calls without ids get generated ones, which depend on the messages before.
    let chat = r#"{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"},"x":1},{"role":"function","name":"f","content":"1","x":1},{"role":"user","content":[{"type":"text","text":"b"},{"type":"text"}]}]}"#;
    check_round_trip(chat, Format::OpenAiChat, Target::OpenAiChat, "messages");
    let gemini = r#"{"contents":[{"parts":[{"text":"a"}],"role":"user"},{"parts":[{"functionCall":{"name":"f","args":{}}}],"role":"model"},{"parts":[{"functionResponse":{"name":"f","response":{"output":"1"}}}],"role":"user"}]}"#;
    check_round_trip(gemini, Format::Gemini, Target::Gemini, "contents");
    let anthropic = r#"{"max_tokens":9,"system":[{"text":"s","type":"text"}],"messages":[{"content":[{"text":"q","type":"text"}],"role":"user"},{"content":[{"type":"tool_use","id":"toolu_1","name":"f","input":{}}],"role":"assistant"},{"content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"1"},{"type":"text","text":"b"}],"role":"user"}]}"#;
    check_round_trip(anthropic, Format::Anthropic, Target::Anthropic, "messages");
}
