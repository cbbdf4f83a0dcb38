//! Faults that were found with recorded requests of real providers. The names of the tests start with the
//! number of the fault. Every case was written for this file.

use recto_core::{Approx, Message, Settings};
use recto_format::{
    Container, EnvelopeInfo, Finding, Format, ImportOptions, RenderOptions, Rendered, Replay,
    Severity, Target, import, lint, render,
};
use serde_json::{Value, json};

use crate::files::{exported, exported_log, imported, messages};

/// The messages of a request, whose format must be recognised.
fn view_of(request: &str, format: Format) -> Vec<Message> {
    assert_eq!(Format::recognise(request.as_bytes()).unwrap(), format, "{request}");
    messages(request, format).0
}

fn options(model: Option<&str>) -> RenderOptions<'_> {
    RenderOptions { model, ..RenderOptions::default() }
}

fn rendered(view: &[Message], target: Target, model: Option<&str>) -> (Value, Rendered) {
    let rendered = render(view, target, &options(model)).unwrap();
    (serde_json::from_str(&rendered.body).unwrap(), rendered)
}

fn errors(view: &[Message], target: Target, model: Option<&str>) -> Vec<Finding> {
    let mut findings = lint(view, target, &options(model));
    findings.retain(|finding| finding.rule.severity == Severity::Error);
    findings
}

/// Checks that a request is recognised, has no errors and is rendered with the same history, byte for
/// byte.
fn check_round_trip(request: &str, format: Format, target: Target, list: &str) {
    let view = view_of(request, format);
    let value: Value = serde_json::from_str(request).unwrap();
    let model = value["model"].as_str();
    assert_eq!(errors(&view, target, model), [], "{request}");
    let (_, rendered) = rendered(&view, target, model);
    assert_eq!(rendered.findings, [], "{request}");
    let raw = |text: &str, field: &str| {
        let fields: std::collections::BTreeMap<String, Box<serde_json::value::RawValue>> =
            serde_json::from_str(text).unwrap();
        fields.get(field).map(|value| value.get().to_owned())
    };
    for field in [list, "system", "instructions", "systemInstruction", "system_instruction"] {
        assert_eq!(raw(&rendered.body, field), raw(request, field), "{field} of {request}");
    }
}

fn text(role: &str, text: &str) -> Message {
    Message::from_json(&json!({"role": role, "content": text}).to_string()).unwrap()
}

#[test]
fn f1_reasoning_of_a_replaced_answer_is_not_sent() {
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
fn f2_reasoning_content_is_returned_to_the_model_that_produced_it() {
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
    for (made_by, model, is_sent) in [
        ("deepseek-v4-flash", "deepseek-v4-flash", true),
        ("kimi-k2-thinking", "kimi-k2-thinking", true),
        ("deepseek-v4-flash", "kimi-k2-thinking", false),
        ("gpt-5", "gpt-5", false),
    ] {
        let view = [text("user", "Weather?"), made(made_by), Message::tool_result("c1", "sun")];
        let (body, _) = rendered(&view, Target::OpenAiChat, Some(model));
        let sent = body["messages"][1]["reasoning_content"].as_str();
        assert_eq!(sent, is_sent.then_some("I call it."), "{made_by} to {model}: {body}");
    }
}

#[test]
fn f3_a_string_as_input_keeps_its_instructions() {
    let request = r#"{"model":"gpt-4o","instructions":"Be brief.","input":"Say hi"}"#;
    check_round_trip(request, Format::OpenAiResponses, Target::OpenAiResponses, "input");
    let mut view = view_of(request, Format::OpenAiResponses);
    let roles: Vec<&str> = view.iter().map(|message| message.role().as_str()).collect();
    assert_eq!(roles, ["system", "user"]);
    let replay = imported(request, Format::OpenAiResponses);
    let envelope = replay.conversations[0].envelope.as_deref().unwrap();
    let file = exported(&view, Format::OpenAiResponses, Container::Envelope(envelope));
    assert_eq!(file.trim_end(), request);
    // It becomes a list as soon as a message follows.
    view.push(text("assistant", "hi"));
    let (body, _) = rendered(&view, Target::OpenAiResponses, None);
    assert_eq!(body["instructions"], "Be brief.");
    assert_eq!(body["input"][0], json!({"role": "user", "content": "Say hi"}));
}

#[test]
fn f4_requests_to_the_responses_api_are_recognised() {
    for request in [
        r#"{"model":"gpt-4o","input":[{"role":"user","content":"Hello"}]}"#,
        r#"{"model":"gpt-4o","input":"Hello"}"#,
        r#"{"input":[{"type":"message","role":"user","content":"Hello"}],"model":"gpt-4o"}"#,
        r#"{"input":[{"role":"user","content":"Hello"}],"instructions":"","model":"gpt-4o"}"#,
    ] {
        check_round_trip(request, Format::OpenAiResponses, Target::OpenAiResponses, "input");
    }
    // The input of an embedding is a list of strings.
    assert!(Format::recognise(&br#"{"model":"text-embedding-3","input":["a","b"]}"#[..]).is_err());
}

#[test]
fn f5_newer_items_of_responses_are_sent_again() {
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
fn f6_a_system_message_inside_the_list_stays_one_at_anthropic() {
    let request = r#"{"model":"claude-opus-4-8","max_tokens":9,"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"yo"},{"role":"user","content":"go on"},{"role":"system","content":"Answer in French."}]}"#;
    check_round_trip(request, Format::Anthropic, Target::Anthropic, "messages");
    let view = view_of(request, Format::Anthropic);
    let file = exported(&view, Format::Anthropic, Container::List);
    assert!(file.contains(r#"{"role":"system","content":"Answer in French."}"#), "{file}");
}

#[test]
fn f7_blocks_of_newer_versions_of_anthropics_api_are_sent_again() {
    let request = r#"{"model":"claude-opus-5","max_tokens":9,"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"text","text":"yo"}]},{"role":"system","content":[{"type":"tool_addition","tools":[{"name":"t","input_schema":{"type":"object"}}]},{"type":"tool_removal","names":["u"]}]},{"role":"user","content":"go"},{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_1","name":"advisor","input":{}},{"type":"advisor_tool_result","tool_use_id":"srvtoolu_1","content":{"type":"advisor_result","text":"ok"}},{"type":"text","text":"done"}]},{"role":"user","content":"thanks"}]}"#;
    check_round_trip(request, Format::Anthropic, Target::Anthropic, "messages");
}

#[test]
fn f8_requests_to_bedrock_have_their_own_format() {
    let request = r#"{"inferenceConfig":{"maxTokens":9},"messages":[{"role":"user","content":[{"text":"What is it?"},{"document":{"name":"Doc 1","format":"txt","source":{"bytes":"aGk="}}},{"cachePoint":{"type":"default"}}]},{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"I look.","signature":"AAAA"}}},{"toolUse":{"toolUseId":"t1","name":"look","input":{"at": 1}}}]},{"role":"user","content":[{"toolResult":{"toolUseId":"t1","content":[{"text":"a doc"},{"json":{"n":1}}],"status":"error"}}]}],"system":[{"text":"Be brief."}],"toolConfig":{"tools":[{"toolSpec":{"name":"look","description":"Looks.","inputSchema":{"json":{"type":"object"}}}}]}}"#;
    let view = view_of(request, Format::BedrockConverse);
    let shown: Vec<String> = view.iter().map(|it| format!("{} {}", it.role(), it.text())).collect();
    assert_eq!(shown[0], "system Be brief.");
    assert_eq!(shown[1], "user What is it?");
    assert!(view[3].json().contains(r#""is_error":true"#), "{}", view[3].json());
    let replay = imported(request, Format::BedrockConverse);
    assert_eq!(replay.warnings, []);
    let envelope = replay.conversations[0].envelope.as_deref().unwrap();
    let info = EnvelopeInfo::of(envelope, Format::BedrockConverse);
    assert_eq!(info.tools[0].name(), "look");
    assert_eq!(info.unsupported_fields, ["inferenceConfig"]);
    let file = exported(&view, Format::BedrockConverse, Container::Envelope(envelope));
    assert_eq!(file.trim_end(), request);
    // Every provider gets the call and its result.
    for target in Target::ALL {
        let (body, _) = rendered(&view, target, None);
        assert!(body.to_string().contains("a doc"), "{target}: {body}");
    }
}

#[test]
fn f9_anthropics_requests_and_responses_are_recognised_by_their_envelope() {
    for request in [
        r#"{"model":"claude-sonnet-4-6","max_tokens":64,"messages":[{"role":"user","content":"hi"}],"tools":[{"name":"t","input_schema":{}}]}"#,
        r#"{"anthropic_version":"bedrock-2023-05-31","max_tokens":64,"messages":[{"role":"user","content":"hi"}]}"#,
        r#"{"model":"m","system":"Be brief.","max_tokens":64,"messages":[{"role":"user","content":"hi"}]}"#,
    ] {
        check_round_trip(request, Format::Anthropic, Target::Anthropic, "messages");
    }
    let response = r#"{"id":"msg_01","type":"message","role":"assistant","model":"claude-sonnet-4-6","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}"#;
    assert_eq!(Format::recognise(response.as_bytes()).unwrap(), Format::Anthropic);
    let (view, _) = messages(response, Format::Anthropic);
    let (body, _) = rendered(&view, Target::Anthropic, None);
    let keys: Vec<&String> = body["messages"][0].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["role", "content"], "a request has only the message of a response");
}

#[test]
fn f10_fields_that_recto_does_not_know_are_sent_to_the_same_provider() {
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
fn f11_rollouts_of_mid_2025_are_codex_rollouts() {
    let rollout = concat!(
        r#"{"id":"5973b6c0-94b8-487b-a530-2aeb6098ae0e","timestamp":"2025-07-24T09:48:02.121Z","instructions":null}"#,
        "\n",
        r#"{"record_type":"state"}"#,
        "\n",
        r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"List the files"}]}"#,
        "\n",
        r#"{"record_type":"state"}"#,
        "\n",
        r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"None."}]}"#,
        "\n",
    );
    assert_eq!(Format::recognise(rollout.as_bytes()).unwrap(), Format::Codex);
    assert_eq!(messages(rollout, Format::Codex).0.len(), 2);
}

#[test]
fn f12_a_session_of_a_subagent_with_a_missing_parent_is_one_conversation() {
    let line = |uuid: &str, parent: &str, role: &str| {
        let message = json!({"role": role, "content": [{"type": "text", "text": uuid}]});
        json!({"parentUuid": parent, "isSidechain": true, "agentId": "a1", "sessionId": "s",
            "type": role, "message": message, "uuid": uuid,
            "timestamp": "2026-01-19T10:00:00.000Z"})
        .to_string()
    };
    let lines = [
        line("u1", "", "user").replace(r#""parentUuid":"""#, r#""parentUuid":null"#),
        line("u2", "u1", "assistant"),
        line("u4", "u3-lost", "user"),
        line("u5", "u4", "assistant"),
    ];
    let replay = imported(&lines.join("\n"), Format::ClaudeCode);
    assert_eq!(replay.conversations.len(), 1);
    assert_eq!(replay.conversations[0].branches.len(), 1, "no fork");
    let conversation = &replay.conversations[0].branches[0].conversation;
    assert_eq!(conversation.messages().count(), 4);
    // The whole log has the bytes of the lines, with the missing parent.
    let log: Vec<Message> = conversation.messages().cloned().collect();
    let file = exported_log(&log, Format::ClaudeCode, Container::List);
    assert_eq!(file.lines().collect::<Vec<_>>(), lines, "{:?}", replay.warnings);
}

#[test]
fn f13_an_empty_text_is_accepted_by_google_and_openai() {
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
fn f14_anthropic_accepts_a_first_message_of_the_assistant() {
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
fn f15_lint_has_no_errors_for_requests_that_providers_accept() {
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
fn f16_an_empty_system_prompt_is_imported() {
    for system in [r#""""#, "[]"] {
        let request = format!(
            r#"{{"model":"claude-sonnet-4-5","max_tokens":9,"system":{system},"messages":[{{"role":"user","content":"hi"}}]}}"#
        );
        check_round_trip(&request, Format::Anthropic, Target::Anthropic, "messages");
    }
    let request = r#"{"model":"gpt-5","instructions":"","input":[{"role":"user","content":"hi"}]}"#;
    check_round_trip(request, Format::OpenAiResponses, Target::OpenAiResponses, "input");
}

#[test]
fn f19_a_request_with_a_large_first_part_is_recognised() {
    let image = "A".repeat(400 << 10);
    let anthropic = format!(
        r#"{{"messages":[{{"role":"user","content":[{{"type":"image","source":{{"type":"base64","media_type":"image/png","data":"{image}"}}}},{{"type":"text","text":"What?"}}]}}],"model":"claude-sonnet-4-5","max_tokens":9}}"#
    );
    assert_eq!(Format::recognise(anthropic.as_bytes()).unwrap(), Format::Anthropic);
    let chat = format!(
        r#"{{"messages":[{{"content":[{{"image_url":{{"url":"data:image/png;base64,{image}"}},"type":"image_url"}},{{"type":"text","text":"What?"}}],"role":"user"}}],"model":"gpt-5"}}"#
    );
    assert_eq!(Format::recognise(chat.as_bytes()).unwrap(), Format::OpenAiChat);
    let gemini = format!(
        r#"{{"contents":[{{"parts":[{{"inlineData":{{"data":"{image}","mimeType":"image/png"}}}}],"role":"user"}}]}}"#
    );
    assert_eq!(Format::recognise(gemini.as_bytes()).unwrap(), Format::Gemini);
    let responses = format!(
        r#"{{"input":[{{"content":[{{"type":"input_image","image_url":"data:image/png;base64,{image}"}}],"role":"user"}}],"model":"gpt-5"}}"#
    );
    assert_eq!(Format::recognise(responses.as_bytes()).unwrap(), Format::OpenAiResponses);
}

#[test]
fn n1_words_of_the_assistant_are_not_attributed_to_the_user() {
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

#[test]
fn n7_a_wrong_format_is_refused_with_a_description_of_the_file() {
    let log = r#"[{"task_id":1,"reward":1.0,"traj":[{"role":"user","content":"hi"}]}]"#;
    let read = |file: &str, format| {
        let mut replay = Replay::new(Settings::counting_with(Approx), 0);
        import(file, format, &ImportOptions::default(), &mut replay).unwrap_err().to_string()
    };
    assert_eq!(
        read(log, Some(Format::OpenAiChat)),
        "nothing in the file could be read as openai-chat; the file is a JSON list of objects with \
         the fields task_id, reward, traj, and messages at [*].traj"
    );
    let unknown = read(log, None);
    assert!(
        unknown.contains("the file is a JSON list of objects with the fields task_id"),
        "{unknown}"
    );
    let lines = "{\"type\":\"session\",\"id\":1}\n{\"type\":\"event\",\"id\":2}\n";
    for format in [Format::Anthropic, Format::OpenAiChat, Format::Gemini] {
        let refused = read(lines, Some(format));
        assert!(refused.contains("JSON lines with the fields type, id"), "{format}: {refused}");
    }
    assert!(read("", None).contains("the file is empty"));
    assert!(read("hello there", None).contains("not JSON; it starts with \"hello there\""));
}

#[test]
fn parallel_calls_in_two_messages_are_accepted_by_anthropic_and_google() {
    let anthropic = r#"{"model":"claude-haiku-4-5","max_tokens":9,"messages":[{"role":"user","content":"go"},{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"a","input":{}}]},{"role":"assistant","content":[{"type":"tool_use","id":"toolu_2","name":"b","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"1"}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_2","content":"2"}]}]}"#;
    check_round_trip(anthropic, Format::Anthropic, Target::Anthropic, "messages");
    let gemini = r#"{"contents":[{"role":"user","parts":[{"text":"go"}]},{"role":"model","parts":[{"functionCall":{"name":"a","args":{}}}]},{"role":"model","parts":[{"functionCall":{"name":"b","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"a","response":{"output":"1"}}}]},{"role":"user","parts":[{"functionResponse":{"name":"b","response":{"output":"2"}}}]}]}"#;
    check_round_trip(gemini, Format::Gemini, Target::Gemini, "contents");
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
fn consecutive_messages_of_one_role_keep_their_bytes_at_anthropic_and_google() {
    let anthropic = r#"{"model":"claude-haiku-4-5","max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"user","content":[{"type":"text","text":"b"}]},{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"1"}]},{"role":"user","content":"go on"}]}"#;
    check_round_trip(anthropic, Format::Anthropic, Target::Anthropic, "messages");
    let gemini = r#"{"contents":[{"role":"user","parts":[{"text":"a"}]},{"role":"user","parts":[{"text":"b"}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"1"}}}]},{"role":"user","parts":[{"text":"go on"}]}]}"#;
    check_round_trip(gemini, Format::Gemini, Target::Gemini, "contents");
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
fn f20_a_list_of_records_is_not_read_as_messages_without_text() {
    let log = r#"[{"task_id":1,"traj":[{"role":"user","content":"hi"}]},{"task_id":2,"traj":[{"role":"user","content":"yo"}]}]"#;
    for format in [Format::OpenAiChat, Format::Anthropic, Format::Gemini, Format::BedrockConverse] {
        let mut replay = Replay::new(Settings::counting_with(Approx), 0);
        let read = import(log, Some(format), &ImportOptions::default(), &mut replay);
        assert!(read.is_err(), "{format}");
    }
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

fn message(value: Value) -> Message {
    Message::from_json(&value.to_string()).unwrap()
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
fn an_original_that_agrees_with_its_message_is_sent() {
    // Calls without ids get generated ones, which depend on the messages before.
    let chat = r#"{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"},"x":1},{"role":"function","name":"f","content":"1","x":1},{"role":"user","content":[{"type":"text","text":"b"},{"type":"text"}]}]}"#;
    check_round_trip(chat, Format::OpenAiChat, Target::OpenAiChat, "messages");
    let gemini = r#"{"contents":[{"parts":[{"text":"a"}],"role":"user"},{"parts":[{"functionCall":{"name":"f","args":{}}}],"role":"model"},{"parts":[{"functionResponse":{"name":"f","response":{"output":"1"}}}],"role":"user"}]}"#;
    check_round_trip(gemini, Format::Gemini, Target::Gemini, "contents");
    let anthropic = r#"{"max_tokens":9,"system":[{"text":"s","type":"text"}],"messages":[{"content":[{"text":"q","type":"text"}],"role":"user"},{"content":[{"type":"tool_use","id":"toolu_1","name":"f","input":{}}],"role":"assistant"},{"content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"1"},{"type":"text","text":"b"}],"role":"user"}]}"#;
    check_round_trip(anthropic, Format::Anthropic, Target::Anthropic, "messages");
}

fn call(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "f", "input": {}})
}

fn result(id: &str, content: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": content})
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
    assert_eq!(body["messages"], json!([{"role": "user", "content": "q"}]));
    assert!(rendered.findings.iter().any(|finding| finding.rule.name == "content_is_text"));
}
