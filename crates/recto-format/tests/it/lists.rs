//! Formats that are lists of messages: conversion of their messages.

use recto_core::Message;
use recto_format::{Container, ExportOptions, Format, export};
use serde_json::{Value, json};

use crate::files::{exported, imported, messages, visible};

fn corpus(name: &str) -> String {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/");
    std::fs::read_to_string(format!("{root}{name}")).unwrap()
}

/// Role and content of messages, without the data for export.
fn read(file: &str, format: Format) -> Vec<(String, Value)> {
    contents(&messages(file, format).0)
}

fn contents(messages: &[Message]) -> Vec<(String, Value)> {
    let content = |message: &Message| {
        let mut json: Value = serde_json::from_str(message.json()).unwrap();
        (message.role().as_str().to_owned(), json["content"].take())
    };
    messages.iter().map(content).collect()
}

fn roles(file: &str, format: Format) -> Vec<String> {
    read(file, format).into_iter().map(|(role, _)| role).collect()
}

fn source(message: &Message) -> Value {
    let json: Value = serde_json::from_str(message.json()).unwrap();
    json["metadata"]["source"].clone()
}

fn places(file: &str, format: Format) -> Vec<(u64, String)> {
    imported(file, format).warnings.into_iter().map(|it| (it.line, it.field)).collect()
}

#[test]
fn results_in_anthropic_messages_become_messages_from_the_tool() {
    let file = corpus("anthropic/request.json");
    let read = read(&file, Format::Anthropic);
    let roles: Vec<&str> = read.iter().map(|(role, _)| &**role).collect();
    assert_eq!(
        roles,
        [
            "system",
            "user",
            "assistant",
            "tool",
            "user",
            "assistant",
            "user",
            "assistant",
            "tool",
            "assistant",
        ]
    );
    assert_eq!(
        read[2].1[0],
        json!({"type": "thinking", "text": "Two logs to read.", "signature": "EqQBCgYIAxgCIkA+/w=="})
    );
    assert_eq!(read[2].1[1]["type"], "redacted_thinking");
    assert_eq!(read[3].1[0]["tool_use_id"], "toolu_01B");
    assert_eq!(read[3].1[1]["is_error"], true);
    assert_eq!(read[4].1, json!([{"type": "text", "text": "Look at eu-1 as well."}]));
    let document = json!({"type": "file", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}, "name": "Report", "citations": {"enabled": true}});
    assert_eq!(read[6].1[1], document);
    let (messages, warnings) = messages(&file, Format::Anthropic);
    assert_eq!(warnings, []);
    assert_eq!(source(&messages[2])["provider"], "anthropic");
    assert_eq!(source(&messages[1]), Value::Null, "a plain message is kept as it is");
}

#[test]
fn items_of_responses_become_messages_and_keep_what_only_openai_reads() {
    let file = corpus("openai-responses/items.json");
    let read = read(&file, Format::OpenAiResponses);
    assert_eq!(read[0], ("system".into(), json!("You are on call.")));
    assert_eq!(read[2].1[0]["type"], "reasoning");
    assert_eq!(
        read[3].1[0],
        json!({"type": "tool_use", "id": "call_A", "name": "read_logs", "input": {"n": 1}, "item_id": "fc_1"})
    );
    assert_eq!(read[4].1[0]["input"], "{broken");
    assert_eq!(
        read[5].1[0],
        json!({"type": "tool_result", "tool_use_id": "call_B", "content": ""})
    );
    assert_eq!(read[6].1[0]["content"][1]["source"]["media_type"], "image/png");
    assert_eq!(read[9].1[0], json!({"type": "refusal", "refusal": "I cannot say more."}));
    assert_eq!(read[10].0, "system", "the role developer becomes system");
    assert_eq!(read[12].1[0]["kind"], "custom");
    let (messages, _) = messages(&file, Format::OpenAiResponses);
    assert_eq!(source(&messages[2])["provider"], "openai");
    let more = r#"{"previous_response_id":"resp_1","input":[{"role":"user","content":"hi"}]}"#;
    assert_eq!(places(more, Format::OpenAiResponses), [(1, "previous_response_id".to_owned())]);
    assert_eq!(roles(r#"{"input":"hi"}"#, Format::OpenAiResponses), ["user"]);
}

#[test]
fn calls_of_gemini_without_ids_find_their_responses_by_name_and_order() {
    let file = corpus("gemini/request.json");
    let (messages, warnings) = messages(&file, Format::Gemini);
    assert_eq!(warnings, []);
    let calls: Vec<String> =
        messages.iter().flat_map(Message::tool_calls).map(|call| call.id.into_owned()).collect();
    let answers: Vec<String> =
        messages.iter().flat_map(Message::tool_result_ids).map(|id| id.into_owned()).collect();
    assert_eq!(calls, answers);
    assert_eq!(calls[2], "fc-3");
    let read = contents(&messages);
    assert_eq!(read[2].1[0], json!({"type": "thinking", "text": "Two logs to read."}));
    assert_eq!(read[2].1[1]["signature"], "CiQB0e2KbQ==");
    assert_eq!(read[3].1[0]["content"], "eu-1 slow");
    assert_eq!(read[3].1[1]["content"], r#"{"output":{"lines":[1,2]}}"#);
    assert_eq!(read[3].1[2]["is_error"], true);
    assert_eq!(read[5].1[0]["type"], "gemini_part");
    assert_eq!(source(&messages[2])["provider"], "google");
}

#[test]
fn a_langchain_call_that_is_listed_twice_is_one_call() {
    let file = corpus("langchain/messages_to_dict.json");
    let replay = imported(&file, Format::LangChain);
    let fields: Vec<&str> = replay.warnings.iter().map(|warning| &*warning.field).collect();
    assert_eq!(fields, ["[7]", "around the messages"], "a RemoveMessage is not a message");
    let messages: Vec<Message> =
        replay.conversations[0].branches[0].conversation.messages().cloned().collect();
    let read = contents(&messages);
    assert_eq!(read[1].1[1]["source"]["media_type"], "image/png");
    let inputs: Vec<&Value> = (0..3).map(|at| &read[2].1[at]["input"]).collect();
    assert_eq!(inputs, [&json!({"n": 1}), &json!({}), &json!("{broken")]);
    assert_eq!(source(&messages[2])["model"], "gpt-4o");
    assert_eq!(read[3].1[0]["content"], "eu-1 slow");
    assert_eq!(read[4].1[0]["is_error"], true);
    assert_eq!(read[5].1[0], json!({"type": "thinking", "text": "hm", "signature": "EqQB"}));
    let dumps = self::read(&corpus("langchain/dumps.json"), Format::LangChain);
    assert_eq!(dumps[2].1.as_array().unwrap().len(), 2, "the content already has the call");
}

#[test]
fn sharegpt_calls_are_read_from_texts() {
    let replay = imported(&corpus("sharegpt/conversations.jsonl"), Format::ShareGpt);
    let fields: Vec<&str> = replay.warnings.iter().map(|warning| &*warning.field).collect();
    assert_eq!(fields, ["around the messages"]);
    assert_eq!(replay.conversations.len(), 3);
    let messages: Vec<Message> =
        replay.conversations[1].branches[0].conversation.messages().cloned().collect();
    let read = contents(&messages);
    let call = messages[1].tool_calls().next().unwrap();
    assert_eq!((&*call.name, call.input), ("ls", r#"{"path": "/"}"#));
    assert_eq!(messages[2].tool_result_ids().next(), Some(call.id.clone()));
    assert_eq!(read[5], ("assistant".into(), json!("not json")));
    assert_eq!(read[8].0, "user");
    let named: Value = serde_json::from_str(messages[8].json()).unwrap();
    assert_eq!(named["name"], "narrator");
}

#[test]
fn each_step_of_a_vercel_message_is_a_message() {
    let file = corpus("vercel/messages.json");
    let replay = imported(&file, Format::Vercel);
    let fields: Vec<&str> = replay.warnings.iter().map(|warning| &*warning.field).collect();
    assert_eq!(fields, ["[5].parts"], "a message without parts is skipped");
    let messages: Vec<Message> =
        replay.conversations[0].branches[0].conversation.messages().cloned().collect();
    let read = contents(&messages);
    let roles: Vec<&str> = read.iter().map(|(role, _)| &**role).collect();
    assert_eq!(
        roles,
        ["system", "user", "assistant", "tool", "assistant", "user", "assistant", "tool", "user"]
    );
    assert_eq!(read[2].1[0]["signature"], "EqQB");
    assert_eq!(read[3].1[0]["content"], r#"{"lines":["eu-1 slow"]}"#);
    assert_eq!(
        read[3].1[1],
        json!({"type": "tool_result", "tool_use_id": "call_B", "content": "denied", "is_error": true})
    );
    let calls: Vec<_> = messages[6].tool_calls().map(|call| call.id.into_owned()).collect();
    assert_eq!(calls, ["call_C", "call_D", "call_E", "call_F"]);
    let answered: Vec<_> = messages[7].tool_result_ids().collect();
    assert_eq!(answered, ["call_E", "call_F"], "an unanswered call has no result");
    assert_eq!(read[6].1[3]["input"], "{broken");
}

#[test]
fn system_messages_are_written_where_the_format_allows_them() {
    let view = [Message::system("Be brief."), Message::user("hi")];
    let envelope = r#"{"model":"m","messages":null}"#;
    let written = exported(&view, Format::Anthropic, Container::Envelope(envelope));
    let expected =
        r#"{"model":"m","system":"Be brief.","messages":[{"role":"user","content":"hi"}]}"#;
    assert_eq!(written.trim_end(), expected);
    // A message that is removed from the view is not in the request.
    let file = corpus("anthropic/request.json");
    let replay = imported(&file, Format::Anthropic);
    let replayed = &replay.conversations[0];
    let rest: Vec<Message> =
        replayed.branches[0].conversation.messages().skip(1).cloned().collect();
    let container = Container::Envelope(replayed.envelope.as_deref().unwrap());
    let written: Value =
        serde_json::from_str(&exported(&rest, Format::Anthropic, container)).unwrap();
    assert_eq!(written.get("system"), None);
    assert_eq!(written["messages"].as_array().unwrap().len(), 8);
    let written = exported(
        &messages_with_system(),
        Format::Gemini,
        Container::Envelope(r#"{"contents":null}"#),
    );
    let written: Value = serde_json::from_str(&written).unwrap();
    assert_eq!(written["systemInstruction"]["parts"][0]["text"], "Be brief.");
}

#[test]
fn a_request_with_a_system_field_is_written_as_one() {
    let files = [
        (
            Format::Anthropic,
            r#"{"system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":"hi"}]}"#,
        ),
        (
            Format::Gemini,
            r#"{"systemInstruction":{"parts":[{"text":"Be brief."}]},"contents":[{"role":"user","parts":[{"text":"hi"}]}]}"#,
        ),
        (
            Format::OpenAiResponses,
            r#"{"instructions":"Be brief.","input":[{"type":"message","role":"developer","content":[{"type":"input_text","text":"You fix code."}]},{"role":"user","content":"hi"}]}"#,
        ),
    ];
    for (format, file) in files {
        let (view, _) = messages(file, format);
        let written = exported(&view, format, Container::List);
        assert_eq!(Format::recognise(written.as_bytes()).unwrap(), format);
        let same: Value = serde_json::from_str(&written).unwrap();
        assert_eq!(same, serde_json::from_str::<Value>(file).unwrap());
        let (again, warnings) = messages(&written, format);
        assert_eq!((again, warnings), (view.clone(), vec![]));
        // The original envelope already contains it.
        let replay = imported(file, format);
        let container = replay.conversations[0].container();
        assert_eq!(exported(&view, format, container).trim_end(), file);
    }
    // Several system messages are merged. A list that may contain them stays a list.
    let view = [Message::system("a"), Message::system("b"), Message::user("hi")];
    let mut written = Vec::new();
    let warnings = export(&view, Format::Anthropic, &ExportOptions::default(), &mut written);
    assert_eq!(warnings.unwrap()[0].message, "2 system messages are merged into one");
    let (again, _) = messages(&String::from_utf8(written).unwrap(), Format::Anthropic);
    assert_eq!(again.len(), 2);
    assert_eq!(again[0].text(), "a\nb");
    let (again, _) = messages(
        &exported(&view, Format::OpenAiResponses, Container::List),
        Format::OpenAiResponses,
    );
    assert_eq!(again, view);
    // JSON lines stay JSON lines.
    let lines = exported(&view, Format::Gemini, Container::Lines);
    assert_eq!(lines.lines().count(), 3);
}

fn messages_with_system() -> Vec<Message> {
    vec![
        Message::system("Be brief."),
        Message::user("hi"),
        Message::tool_call("a", "f", &json!({})),
        Message::tool_call("b", "f", &json!({})),
        Message::tool_result("a", "1"),
        Message::tool_result("b", "2"),
        Message::assistant("done"),
    ]
}

#[test]
fn a_conversation_keeps_its_content_in_every_format() {
    let view = &messages_with_system()[1..];
    let content_of = |messages: &[Message]| -> Vec<String> {
        // Some formats merge messages; texts and calls keep their order.
        let texts = messages.iter().map(|message| message.text().into_owned());
        texts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
    };
    for format in Format::ALL.iter().copied() {
        let container = match format {
            Format::ShareGpt => Container::Envelope(r#"{"conversations":null}"#),
            _ => Container::List,
        };
        let file = exported(view, format, container);
        let replay = imported(&file, format);
        assert_eq!(replay.warnings, [], "{format}: {file}");
        let messages: Vec<Message> =
            replay.conversations[0].branches[0].conversation.messages().cloned().collect();
        let mut expected = content_of(view);
        let mut found = content_of(&messages);
        // The two results may be beside their calls.
        if format == Format::Vercel {
            expected.sort();
            found.sort();
        }
        assert_eq!(found, expected, "{format}: {file}");
    }
}

#[test]
fn the_envelope_of_the_messages_is_returned_and_exported() {
    let (one, two) = (r#"{"role":"user","content":"a"}"#, r#"{"role":"assistant","content":"b"}"#);
    let request = format!(r#"{{"model":"m","messages":[{one},{two}]}}"#);
    for (file, conversations) in [
        (format!("[{one},\n{two}]\n"), 1),
        (format!("{one}\n{two}\n"), 1),
        (format!("{one}\n"), 1),
        (format!("{request}\n"), 1),
        (format!("{request}\n{request}\n"), 2),
        (format!("[{one},\n{two}]\n[{two}]\n"), 2),
    ] {
        for format in [Format::OpenAiChat, Format::Anthropic, Format::Recto] {
            let replay = imported(&file, format);
            assert_eq!(replay.conversations.len(), conversations, "{file}");
            let written: String = replay
                .conversations
                .iter()
                .map(|replayed| exported(&visible(replayed), format, replayed.container()))
                .collect();
            assert_eq!(written, file, "{format}");
        }
    }
}

#[test]
fn results_of_other_formats_are_exported_to_gemini_with_their_function() {
    let file = r#"[{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"read_logs","arguments":"{}"}}]},
{"role":"tool","tool_call_id":"c1","content":"08:02 timeout"},{"role":"tool","tool_call_id":"c2","content":"?"}]"#;
    let (messages, _) = messages(file, Format::OpenAiChat);
    let mut written = Vec::new();
    let options = recto_format::ExportOptions { container: Container::List, ..Default::default() };
    let warnings = recto_format::export(&messages, Format::Gemini, &options, &mut written).unwrap();
    let written: Value = serde_json::from_slice(&written).unwrap();
    let name = |part: usize| written[1]["parts"][part]["functionResponse"]["name"].clone();
    assert_eq!((name(0), name(1)), (json!("read_logs"), json!("c2")));
    // Only the unknown name causes a warning.
    assert_eq!(warnings.len(), 1, "{warnings:?}");
}

#[test]
fn langchain_models_and_states_of_langgraph_are_read() {
    let models = r#"[{"content": "Be brief.", "additional_kwargs": {}, "type": "system", "id": null}, {"content": "hi", "type": "human", "name": null, "id": "h1"}, {"content": "", "type": "ai", "tool_calls": [{"name": "add", "args": {"a": 1}, "id": "c1", "type": "tool_call"}], "invalid_tool_calls": []}, {"content": "2", "type": "tool", "name": "add", "tool_call_id": "c1", "status": "success"}]"#;
    for file in [models.to_owned(), format!(r#"{{"messages": {models}}}"#)] {
        assert_eq!(Format::recognise(file.as_bytes()).unwrap(), Format::LangChain);
        let (view, warnings) = messages(&file, Format::LangChain);
        let fields: Vec<&str> = warnings.iter().map(|warning| &*warning.field).collect();
        assert_eq!(fields, ["around the messages"]);
        let found: Vec<String> = view
            .iter()
            .map(|message| format!("{}: {}", message.role().as_str(), message.text()))
            .collect();
        assert_eq!(
            found,
            ["system: Be brief.", "user: hi", r#"assistant: add {"a":1}"#, "tool: 2"]
        );
        let written = exported(&view, Format::LangChain, Container::List);
        let same: Value = serde_json::from_str(&written).unwrap();
        assert_eq!(same, serde_json::from_str::<Value>(models).unwrap());
    }
}

/// An invalid part is replaced; the rest of the message is read.
#[test]
fn the_readable_parts_of_a_message_are_imported() {
    let readable = "I look.";
    for (format, foreign, field) in [
        (
            Format::OpenAiChat,
            r#"{"role":"user","content":[{"type":"text","text":"I look."},{"type":"image_url"}]}"#,
            "[0].content[1].image_url",
        ),
        (
            Format::OpenAiChat,
            r#"{"role":"assistant","content":"I look.","tool_calls":[{"id":"c","type":"function","function":{"arguments":"{}"}}]}"#,
            "[0].tool_calls[0].function.name",
        ),
        (
            Format::Anthropic,
            r#"{"role":"assistant","content":[{"type":"text","text":"I look."},{"type":"tool_use","name":"f","input":{}}]}"#,
            "[0].content[1].id",
        ),
        (
            Format::Anthropic,
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"x"},{"type":"text","text":7},{"type":"text","text":"I look."}]}"#,
            "[0].content[1].text",
        ),
        (
            Format::Gemini,
            r#"{"role":"model","parts":[{"text":"I look."},{"functionCall":{"args":{}}}]}"#,
            "[0].parts[1].functionCall.name",
        ),
        (
            Format::Vercel,
            r#"{"id":"m","role":"assistant","parts":[{"type":"text","text":"I look."},{"text":"?"}]}"#,
            "[0].parts[1].type",
        ),
        (
            Format::Recto,
            r#"{"role":"assistant","content":[{"type":"text","text":"I look."},{"type":"tool_use"}]}"#,
            "[0].content[1].id",
        ),
    ] {
        let (messages, warnings) = messages(&format!("[{foreign}]"), format);
        let text: Vec<String> = messages.iter().map(|it| it.text().into_owned()).collect();
        assert!(text.join("\n").contains(readable), "{format}: {text:?}");
        let [warning] = &warnings[..] else { panic!("{format}: {warnings:?}") };
        assert_eq!((warning.line, &*warning.field), (1, field), "{format}: {warning:?}");
        let again = exported(&messages, format, Container::List);
        assert_eq!(again, format!("[{foreign}]\n"), "{format}");
    }
}

#[test]
fn only_the_first_of_many_broken_parts_are_reported() {
    let broken = vec![r#"{"type":"text"}"#; 20_000].join(",");
    let file = format!(
        r#"[{{"role":"assistant","content":[{{"type":"text","text":"a"}},{broken}],"model":"m"}}]"#
    );
    let (messages, warnings) = messages(&file, Format::Anthropic);
    assert_eq!(messages[0].text(), "a");
    assert_eq!(warnings.len(), 9, "{warnings:?}");
}

/// A part of another provider is omitted with a warning.
#[test]
fn parts_of_other_providers_are_omitted_in_langchain_and_vercel() {
    let own = r#"{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"server_tool_use","id":"s","name":"web_search","input":{}}]}"#;
    let result = r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"search_result","title":"t"},{"type":"text","text":"b"}]}]}"#;
    let (view, _) = messages(&format!("[{own},{result}]"), Format::Anthropic);
    for format in [Format::LangChain, Format::Vercel] {
        let mut written = Vec::new();
        let options = ExportOptions::default();
        let warnings = export(&view, format, &options, &mut written).unwrap();
        let written = String::from_utf8(written).unwrap();
        assert!(!written.contains("server_tool_use"), "{written}");
        assert!(!written.contains("search_result"), "{written}");
        assert!(warnings.iter().any(|it| it.message.contains("server_tool_use")), "{warnings:?}");
    }
    // A part of this format is restored.
    let foreign = r#"{"type":"ai","data":{"content":[{"type":"text","text":"a"},{"type":"server_tool_use","id":"s"}],"type":"ai"}}"#;
    let (view, _) = messages(&format!("[{foreign}]"), Format::LangChain);
    assert!(exported(&view, Format::LangChain, Container::List).contains("server_tool_use"));
}

/// A message without supported content is omitted, because an empty message is not valid.
#[test]
fn a_message_without_supported_content_is_omitted() {
    let (view, _) = messages("0\n{\"role\":\"user\",\"content\":\"a\"}", Format::Recto);
    for format in [Format::Anthropic, Format::Gemini, Format::Vercel] {
        let mut written = Vec::new();
        let lost = export(&view, format, &ExportOptions::default(), &mut written).unwrap();
        let written = String::from_utf8(written).unwrap();
        let (again, warnings) = messages(&written, format);
        assert_eq!((again.len(), warnings), (1, Vec::new()), "{format}: {written}");
        assert!(lost[0].message.contains("unread"), "{format}: {lost:?}");
    }
}

/// Export writes one line break between the messages of a list.
#[test]
fn white_space_that_export_does_not_restore_is_reported() {
    let message = r#"{"role":"user","content":"a b"}"#;
    let remarks = |file: &str| {
        let (_, warnings) = messages(file, Format::OpenAiChat);
        warnings.iter().map(|warning| warning.field.clone()).collect::<Vec<_>>()
    };
    for file in [
        format!("[{message},\n{message}]\n"),
        format!("[{message},{message}]"),
        format!("{message}\n{message}\n"),
        format!(r#"{{"model":"m","messages":[{message},{message}]}}"#),
    ] {
        assert_eq!(remarks(&file), [""; 0], "{file}");
    }
    for file in [
        format!("[\n  {message},\n  {message}\n]\n"),
        format!("[{message}, {message}]"),
        format!("{message}\r\n{message}\r\n"),
        message.replace(',', ",\n"),
        format!(r#"{{"model": "m", "messages": [{message}]}}"#),
    ] {
        assert_eq!(remarks(&file), ["around the messages"], "{file}");
    }
}
