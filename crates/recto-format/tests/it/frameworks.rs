//! Lists of messages of JavaScript frameworks: what their items become.

use recto_core::Message;
use recto_format::Format;
use serde_json::{Value, json};

use crate::files::imported;

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
    assert_eq!(calls, ["c1", "c2", "c3"], "the provider executed the call s1");
    let results: Vec<_> = read.iter().flat_map(Message::tool_result_ids).collect();
    assert_eq!(results, ["c1", "c2", "c3"]);
    assert_eq!(read[1].media_count(), 2);
    assert_eq!(content(&read[3])[0]["content"], r#"{"lines":["timeout"]}"#);
    assert_eq!(content(&read[3])[1]["is_error"], true);
    assert_eq!(content(&read[5])[1]["content"][0]["text"], "done");
}
