//! Requests to Amazon Bedrock's Converse API.

use recto_core::{Message, Tool};
use recto_format::{Format, RenderOptions, Severity, Target, lint, render};
use serde_json::{Value, json};
use testkit::provider::Provider;

use crate::files::messages;

const MODEL: &str = "us.anthropic.claude-sonnet-4-5-20250929-v1:0";

fn body(view: &[Message], tools: &[Tool]) -> (Value, Vec<&'static str>) {
    let options = RenderOptions { model: Some(MODEL), tools, ..RenderOptions::default() };
    let rendered = render(view, Target::BedrockConverse, &options).unwrap();
    let body: Value = serde_json::from_str(&rendered.body).unwrap();
    if let Err(violation) = Provider::BedrockConverse.check(&body) {
        panic!("{violation}: {body}");
    }
    (body, rendered.findings.iter().map(|finding| finding.rule.name).collect())
}

fn message(value: &Value) -> Message {
    Message::from_json(&value.to_string()).unwrap()
}

/// The messages of a request of this format.
fn imported(list: &str) -> Vec<Message> {
    let request = format!(r#"{{"inferenceConfig":{{"maxTokens":9}},"messages":{list}}}"#);
    messages(&request, Format::BedrockConverse).0
}

#[test]
fn an_imported_request_is_rendered_byte_for_byte() {
    let list = r#"[{"role":"user","content":[{"text":"Look."},{"document":{"name":"Doc 1","format":"txt","source":{"bytes":"aGk="}}},{"cachePoint":{"type":"default"}}]},{"content":[{"reasoningContent":{"reasoningText":{"text":"I look.","signature":"AAAA"}}},{"toolUse":{"input":{"at": 1},"name":"look","toolUseId":"t1"}}],"role":"assistant"},{"role":"user","content":[{"toolResult":{"toolUseId":"t1","content":[{"json":{"n":1}}],"status":"success"}}]}]"#;
    let view = imported(list);
    let fields = [("toolConfig", r#"{"tools":[]}"#)];
    let options = RenderOptions { model: Some(MODEL), fields: &fields, ..RenderOptions::default() };
    assert_eq!(lint(&view, Target::BedrockConverse, &options), []);
    let rendered = render(&view, Target::BedrockConverse, &options).unwrap();
    let expected = format!(r#"{{"toolConfig":{{"tools":[]}},"messages":{list}}}"#);
    assert_eq!(rendered.body, expected);
}

#[test]
fn messages_of_one_role_are_joined_also_if_they_were_imported() {
    let mut view = imported(
        r#"[{"role":"user","content":[{"text":"a"}]},{"role":"assistant","content":[{"toolUse":{"toolUseId":"t1","name":"look","input":{}}}]},{"role":"user","content":[{"toolResult":{"toolUseId":"t1","content":[{"text":"x"}]}}]},{"role":"assistant","content":[{"text":"b"}]}]"#,
    );
    view.insert(3, Message::user("And?"));
    let (rendered, _) = body(&view, &[Tool::new("look", "looks")]);
    assert_eq!(
        rendered["messages"][2],
        json!({"role": "user", "content": [
            {"toolResult": {"toolUseId": "t1", "content": [{"text": "x"}]}}, {"text": "And?"}]})
    );
    // Without the answer between them, two user messages are adjacent.
    let mut view = imported(
        r#"[{"role":"user","content":[{"text":"a"}]},{"role":"assistant","content":[{"text":"b"}]},{"role":"user","content":[{"text":"c"}]}]"#,
    );
    view.remove(1);
    let (rendered, findings) = body(&view, &[]);
    assert_eq!(
        rendered["messages"],
        json!([{"role": "user", "content": [{"text": "a"}, {"text": "c"}]}])
    );
    assert_eq!(findings, ["alternation"]);
}

#[test]
fn the_tools_of_calls_are_added_if_the_request_has_none() {
    let view = [
        Message::user("go"),
        Message::tool_call("c1", "look", &json!({"at": 1})),
        Message::tool_result("c1", "done"),
    ];
    let (rendered, findings) = body(&view, &[]);
    assert_eq!(
        rendered["toolConfig"]["tools"],
        json!([{"toolSpec": {"name": "look", "inputSchema": {"json": {"type": "object"}}}}])
    );
    assert_eq!(findings, ["calls_have_tools"]);
    let (_, findings) = body(&view, &[Tool::new("look", "looks")]);
    assert!(findings.is_empty(), "{findings:?}");
}

#[test]
fn a_document_has_a_valid_name_and_a_text_beside_it() {
    let file = |name: &str| {
        json!({"type": "file", "name": name,
            "source": {"type": "base64", "media_type": "application/pdf", "data": "AAAA"}})
    };
    let content = json!([file("a_report.v2.pdf"), file("a report v2 pdf")]);
    let view = [message(&json!({"role": "user", "content": content}))];
    let (rendered, findings) = body(&view, &[]);
    let content = &rendered["messages"][0]["content"];
    assert_eq!(content[0], json!({"text": "[document]"}));
    assert_eq!(content[1]["document"]["name"], "a report v2 pdf");
    assert_eq!(content[2]["document"]["name"], "a report v2 pdf (2)");
    assert_eq!(findings, ["documents_have_a_text"]);
}

#[test]
fn video_and_files_in_s3_are_errors_for_claude() {
    for block in [
        r#"{"video":{"format":"mp4","source":{"bytes":"AAAA"}}}"#,
        r#"{"image":{"format":"png","source":{"s3Location":{"uri":"s3://b/k"}}}}"#,
        r#"{"document":{"format":"pdf","name":"d","source":{"s3Location":{"uri":"s3://b/k"}}}}"#,
    ] {
        let inside = format!(
            r#"[{{"role":"user","content":[{{"text":"a"}}]}},{{"role":"assistant","content":[{{"toolUse":{{"toolUseId":"t1","name":"look","input":{{}}}}}}]}},{{"role":"user","content":[{{"toolResult":{{"toolUseId":"t1","content":[{block}]}}}}]}}]"#
        );
        for list in [format!(r#"[{{"role":"user","content":[{{"text":"a"}},{block}]}}]"#), inside] {
            let view = imported(&list);
            let errors = |model| {
                let options = RenderOptions { model, ..RenderOptions::default() };
                let mut found = lint(&view, Target::BedrockConverse, &options);
                found.retain(|finding| finding.rule.severity == Severity::Error);
                found.iter().map(|finding| finding.rule.name).collect::<Vec<_>>()
            };
            assert_eq!(errors(Some(MODEL)), ["media_for_the_model"], "{list}");
            assert!(errors(Some("us.amazon.nova-pro-v1:0")).is_empty(), "{list}");
        }
    }
}

#[test]
fn a_first_message_of_the_assistant_stays_if_it_was_imported() {
    let list = r#"[{"role":"assistant","content":[{"text":"Hello."}]},{"role":"user","content":[{"text":"Hi"}]}]"#;
    let (rendered, findings) = body(&imported(list), &[]);
    assert_eq!(rendered["messages"], serde_json::from_str::<Value>(list).unwrap());
    assert!(findings.is_empty(), "{findings:?}");
    let view = [Message::assistant("Hello."), Message::user("Hi")];
    let (rendered, findings) = body(&view, &[]);
    assert_eq!(rendered["messages"][0]["content"], json!([{"text": "[no message]"}]));
    assert_eq!(findings, ["first_from_the_user"]);
}

#[test]
fn thinking_of_bedrock_is_rendered_for_bedrock_only() {
    let mut view = imported(
        r#"[{"role":"user","content":[{"text":"a"}]},{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"I look.","signature":"AAAA"}}},{"text":"b"}]},{"role":"user","content":[{"text":"c"}]}]"#,
    );
    let (rendered, _) = body(&view, &[]);
    let block = &rendered["messages"][1]["content"][0];
    assert_eq!(block["reasoningContent"]["reasoningText"]["signature"], "AAAA");
    let rendered = render(&view, Target::Anthropic, &RenderOptions::default()).unwrap();
    assert!(!rendered.body.contains("I look."), "{}", rendered.body);
    // An assistant message before the thinking would be joined with it.
    view.insert(1, Message::assistant("Well."));
    let (rendered, findings) = body(&view, &[]);
    assert_eq!(rendered["messages"][2]["content"], json!([{"text": "[no message]"}]));
    assert_eq!(findings, ["thinking_first"]);
}

#[test]
fn rules_of_claude_do_not_apply_to_other_models() {
    let call = r#"{"toolUse":{"toolUseId":"t1","name":"look","input":{}}}"#;
    let result = r#"{"toolResult":{"toolUseId":"t1","content":[],"status":"error"}}"#;
    let list = format!(
        r#"[{{"role":"user","content":[{{"text":"a"}}]}},{{"role":"assistant","content":[{{"text":"b"}},{{"reasoningContent":{{"reasoningText":{{"text":"c"}}}}}}]}},{{"role":"user","content":[{{"text":"d"}}]}},{{"role":"assistant","content":[{call}]}},{{"role":"user","content":[{result}]}},{{"role":"assistant","content":[{{"text":"e "}}]}}]"#
    );
    let found = |model: &str| {
        let mut view = imported(&list);
        // Not imported, so the rules apply to its texts.
        *view.last_mut().unwrap() = Message::assistant("e ");
        let options = RenderOptions { model: Some(model), ..RenderOptions::default() };
        let found = lint(&view, Target::BedrockConverse, &options);
        let names = ["thinking_is_not_last", "errors_say_something", "no_trailing_space"];
        let names = names.into_iter();
        names.filter(|name| found.iter().any(|it| it.rule.name == *name)).count()
    };
    assert!(found(MODEL) > 0);
    // The profile may be one of Claude.
    let profile = "arn:aws:bedrock:us-east-1:012345678901:application-inference-profile/abcd";
    assert_eq!(found(profile), found(MODEL));
    assert_eq!(found("us.amazon.nova-pro-v1:0"), 0);
}

#[test]
fn a_request_is_recognised_by_its_system_text() {
    let request = r#"{"system":[{"text":"Be brief."}],"messages":[{"role":"user","content":[{"text":"hi"}]}]}"#;
    assert_eq!(Format::recognise(request.as_bytes()).unwrap(), Format::BedrockConverse);
    let other = r#"{"system":[{"type":"text","text":"Be brief."}],"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}"#;
    assert_eq!(Format::recognise(other.as_bytes()).unwrap(), Format::Anthropic);
}
