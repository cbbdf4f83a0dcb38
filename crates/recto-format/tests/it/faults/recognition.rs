//! Files whose format or structure an earlier version of the importers did not recognise.

use recto_core::{Approx, Message, Settings};
use recto_format::{Container, EnvelopeInfo, Format, ImportOptions, Replay, Target, import};
use serde_json::json;

use super::{check_round_trip, rendered, text, view_of};
use crate::files::{exported, exported_log, imported, messages};

#[test]
fn a_string_as_input_keeps_its_instructions() {
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
fn requests_to_the_responses_api_are_recognised() {
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
fn requests_to_bedrock_have_their_own_format() {
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
fn anthropics_requests_and_responses_are_recognised_by_their_envelope() {
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
fn rollouts_of_mid_2025_are_codex_rollouts() {
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
fn a_session_of_a_subagent_with_a_missing_parent_is_one_conversation() {
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
fn an_empty_system_prompt_is_imported() {
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
fn a_request_with_a_large_first_part_is_recognised() {
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
fn a_wrong_format_is_refused_with_a_description_of_the_file() {
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
fn a_list_of_records_is_not_read_as_messages_without_text() {
    let log = r#"[{"task_id":1,"traj":[{"role":"user","content":"hi"}]},{"task_id":2,"traj":[{"role":"user","content":"yo"}]}]"#;
    for format in [Format::OpenAiChat, Format::Anthropic, Format::Gemini, Format::BedrockConverse] {
        let mut replay = Replay::new(Settings::counting_with(Approx), 0);
        let read = import(log, Some(format), &ImportOptions::default(), &mut replay);
        assert!(read.is_err(), "{format}");
    }
}
