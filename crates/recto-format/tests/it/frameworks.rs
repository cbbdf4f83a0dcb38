//! Conversion of the message lists of frameworks.

use recto_core::Message;
use recto_format::{Container, Format};
use serde_json::{Value, json};

use crate::files::{exported, imported};

fn messages(path: &str, format: Format) -> Vec<Message> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/");
    let file = std::fs::read_to_string(format!("{root}{path}")).unwrap();
    let replay = imported(&file, format);
    assert_eq!(replay.warnings, []);
    replay.conversations[0].branches[0].conversation.messages().cloned().collect()
}

fn content(message: &Message) -> Value {
    serde_json::from_str::<Value>(message.json()).unwrap()["content"].clone()
}

#[test]
fn items_of_the_agents_sdk_are_messages_calls_and_results() {
    let read = messages("openai-agents-js/items.json", Format::OpenAiAgentsJs);
    let roles: Vec<&str> = read.iter().map(|message| message.role().as_str()).collect();
    let calls = ["assistant", "assistant", "tool", "tool", "assistant", "tool", "assistant"];
    assert_eq!(roles[..4], ["system", "user", "user", "assistant"]);
    assert_eq!(roles[4..11], calls);
    assert_eq!(roles[11..], ["assistant", "assistant"]);
    assert_eq!(
        (read[2].text().into_owned(), read[2].media_count()),
        ("See the screenshot.".into(), 2)
    );
    let inputs: Vec<_> = read.iter().flat_map(Message::tool_calls).map(|it| it.input).collect();
    assert_eq!(inputs, [r#"{"path": "a.log"}"#, r#""{broken""#, r#"{"commands":["ls"]}"#]);
    let results: Vec<_> = read.iter().flat_map(Message::tool_result_ids).collect();
    assert_eq!(results, ["call_1", "call_2", "call_3"]);
    let first = json!([{"type": "text", "text": "timeout in eu-1"}]);
    assert_eq!(content(&read[6])[0]["content"], first);
    assert_eq!(read[11].text(), "The service eu-1 is slow.");
}

#[test]
fn model_messages_of_the_ai_sdk_keep_calls_with_their_results() {
    let read = messages("vercel-model/messages.json", Format::VercelModel);
    let calls: Vec<_> = read.iter().flat_map(Message::tool_calls).map(|it| it.id).collect();
    assert_eq!(calls, ["c1", "c2", "c3"], "not s1: the provider executed it");
    let results: Vec<_> = read.iter().flat_map(Message::tool_result_ids).collect();
    assert_eq!(results, ["c1", "c2", "c3"]);
    assert_eq!(read[1].media_count(), 2);
    assert_eq!(content(&read[3])[0]["content"], r#"{"lines":["timeout"]}"#);
    assert_eq!(content(&read[3])[1]["is_error"], true);
    assert_eq!(content(&read[5])[1]["content"][0]["text"], "done");
}

#[test]
fn requests_of_pydantic_ai_are_regrouped_on_export() {
    let read = messages("pydantic-ai/messages.json", Format::PydanticAi);
    let roles: Vec<&str> = read.iter().map(|message| message.role().as_str()).collect();
    let first = ["system", "system", "user", "assistant"];
    let second = ["tool", "user", "assistant", "user", "assistant"];
    assert_eq!(roles, [&first[..], &second[..]].concat());
    assert_eq!(
        read[0].text(),
        "Answer in English.",
        "the instructions are one message, although the next request repeats them"
    );
    let calls: Vec<_> = read.iter().flat_map(Message::tool_calls).map(|it| it.input).collect();
    assert_eq!(calls, [r#"{"path":"/"}"#, r#"{"path": "/home"}"#]);
    let results: Vec<_> = read.iter().flat_map(Message::tool_result_ids).collect();
    assert_eq!(results, ["c1", "c2"]);
    assert_eq!(content(&read[4])[0]["content"], r#"{"used":81}"#);
    assert_eq!(content(&read[4])[1]["is_error"], true, "a retry prompt is a failed result");
    assert_eq!((read[5].media_count(), read[6].media_count()), (2, 1));
    // Without the user's message, the request is written again from its other parts.
    let mut edited = read.clone();
    edited.remove(5);
    let file = exported(&edited, Format::PydanticAi, Container::List);
    let value: Value = serde_json::from_str(&file).unwrap();
    assert_eq!(value.as_array().unwrap().len(), 6);
    assert_eq!(value[2]["parts"][1]["outcome"], "failed");
    assert_eq!(value[2]["kind"], "request");
    let parts = content(&read[3]);
    assert_eq!(parts[0]["signature"], "c2ln");
    assert_eq!(parts[1]["text"], "I look.");
}

#[test]
fn messages_of_other_formats_become_requests_and_responses_of_pydantic_ai() {
    let list = r#"[{"role":"system","content":"s"},{"role":"user","content":"q"},{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"r"},{"role":"user","content":"go on"}]"#;
    let replay = imported(list, Format::OpenAiChat);
    let read: Vec<Message> =
        replay.conversations[0].branches[0].conversation.messages().cloned().collect();
    let file = exported(&read, Format::PydanticAi, Container::List);
    assert_eq!(
        file.trim_end().replace(",\n", ","),
        concat!(
            r#"[{"parts":[{"content":"s","part_kind":"system-prompt"},{"content":"q","part_kind":"user-prompt"}],"kind":"request"},"#,
            r#"{"parts":[{"tool_name":"f","args":{},"tool_call_id":"c","part_kind":"tool-call"}],"kind":"response"},"#,
            r#"{"parts":[{"tool_name":"f","content":"r","tool_call_id":"c","part_kind":"tool-return"},{"content":"go on","part_kind":"user-prompt"}],"kind":"request"}]"#,
        )
    );
}
