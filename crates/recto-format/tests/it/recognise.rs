//! Recognition of formats.

use proptest::prelude::*;
use recto_core::{Approx, Message, Settings};
use recto_format::{Container, Format, ImportOptions, Replay, import};

use crate::files::{exported, visible};
use crate::render::{shown, view};

fn read(file: &str) -> (Format, Replay) {
    let mut replay = Replay::new(Settings::counting_with(Approx), 0);
    let format = import(file, None, &ImportOptions::default(), &mut replay).unwrap();
    (format, replay)
}

/// A file in Recto's format is read unchanged without naming the format.
fn check(messages: &[Message]) {
    let file = exported(messages, Format::Recto, Container::List);
    let (_, replay) = read(&file);
    let [replayed] = &replay.conversations[..] else { panic!("one conversation in {file}") };
    let found = visible(replayed);
    assert_eq!(shown(&found), shown(messages), "{file}");
    let again = exported(&found, Format::Recto, replayed.container());
    assert_eq!(again.replace(",\n{", ",{"), file.replace(",\n{", ",{"));
}

#[test]
fn files_of_recto_are_not_recognised_as_another_format() {
    let call =
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}}]}"#;
    let redacted = r#"{"role":"assistant","content":[{"type":"redacted_thinking","data":"b3A="}]}"#;
    let made = r#"{"role":"assistant","content":[{"type":"redacted_thinking","data":"b3A="}],"metadata":{"source":{"format":"anthropic","provider":"anthropic"}}}"#;
    let result =
        r#"{"role":"tool","content":[{"type":"tool_result","tool_use_id":"c","content":"x"}]}"#;
    let from_user =
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"x"}]}"#;
    let file = r#"{"role":"user","content":[{"type":"file","source":{"type":"text","text":"a"}}]}"#;
    let timed = r#"{"role":"user","content":"a","timestamp":1719000000000,"id":"7"}"#;
    let empty_result = r#"{"role":"tool","content":"done"}"#;
    for messages in [
        &[call, result][..],
        &[call, empty_result],
        &[redacted, result],
        &[redacted],
        &[made],
        &[call, made, result],
        &[call, from_user],
        &[file],
        &[timed],
        &[call],
        &[],
    ] {
        let messages: Vec<Message> =
            messages.iter().map(|json| Message::from_json(json).unwrap()).collect();
        check(&messages);
    }
}

#[test]
fn a_file_with_tool_messages_is_not_anthropics() {
    let file = r#"[{"role":"user","content":"q"},
{"role":"assistant","content":[{"type":"redacted_thinking","data":"b3A="},{"type":"tool_use","id":"c","name":"f","input":{}}]},
{"role":"tool","content":[{"type":"tool_result","tool_use_id":"c","content":"x"}]}]"#;
    assert_eq!(read(file).0, Format::Recto);
    // Without a message of a tool, it is Anthropic's.
    let file = file.replace("\"tool\"", "\"user\"");
    assert_eq!(read(&file).0, Format::Anthropic);
}

/// The identifying feature is far from the start of a long list.
#[test]
fn the_feature_that_identifies_recto_may_be_far_from_the_start() {
    let mut messages: Vec<Message> =
        (0..400).map(|number| Message::user(&format!("{number} {}", "x".repeat(1_000)))).collect();
    messages.push(Message::tool_call("c", "f", &serde_json::json!({})));
    messages.push(Message::tool_result("c", "x"));
    check(&messages);
}

#[test]
fn lists_that_several_formats_share_stay_lists() {
    let messages = [Message::user("2 + 2?"), Message::assistant("4")];
    assert!(exported(&messages, Format::Recto, Container::List).starts_with("[{"));
    let torn = [Message::user("q"), Message::tool_result("c", "x")];
    assert!(exported(&torn, Format::Recto, Container::List).starts_with("[{"));
}

#[test]
fn an_empty_list_is_a_conversation_without_messages() {
    for file in ["[]", " [ ]\n", r#"{"messages":[]}"#, r#"{"model":"m","messages":[]}"#] {
        let (format, replay) = read(file);
        assert_eq!(format, Format::Recto, "{file}");
        let [replayed] = &replay.conversations[..] else { panic!("one conversation in {file}") };
        assert!(replayed.branches[0].conversation.log().is_empty(), "{file}");
        assert_eq!(replay.warnings, [], "{file}");
    }
}

/// Its first message may be missing, but its system text is a message.
#[test]
fn a_request_with_a_system_text_alone_is_a_conversation_with_that_text() {
    let request =
        r#"{"model":"claude-sonnet-4-5","max_tokens":9,"system":"Be brief.","messages":[]}"#;
    let (format, replay) = read(request);
    assert_eq!(format, Format::Anthropic);
    let [replayed] = &replay.conversations[..] else { panic!("one conversation") };
    let view = visible(replayed);
    assert_eq!(view.iter().map(|it| it.text().into_owned()).collect::<Vec<_>>(), ["Be brief."]);
    assert_eq!(view[0].role(), recto_core::Role::System);
    let options = recto_format::RenderOptions::default();
    let error = recto_format::render(&view, recto_format::Target::Anthropic, &options).unwrap_err();
    assert_eq!(error.code(), "empty_content");
    let missing = "it needs a text, an image or a file from the user or the model";
    assert!(error.to_string().contains(missing), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn every_export_in_the_format_recto_is_imported_unchanged(
        numbers in prop::collection::vec(any::<u16>(), 0..200),
    ) {
        check(&view(&numbers, 6));
    }
}

fn recognised(file: &str) -> Format {
    Format::recognise(file.as_bytes()).unwrap()
}

/// The fields that identify a request follow 600 KB of short messages.
#[test]
fn fields_behind_long_lists_identify_a_request() {
    let text = "x".repeat(3_000);
    let list = |message: &dyn Fn(usize) -> String| {
        let messages: Vec<String> = (0..201).map(message).collect();
        messages.join(",")
    };
    let role = |number: usize| ["user", "assistant"][number % 2];
    let plain = list(&|number| format!(r#"{{"role":"{}","content":"{text}"}}"#, role(number)));
    let user = list(&|_| format!(r#"{{"role":"user","content":"{text}"}}"#));
    let untyped =
        list(&|number| format!(r#"{{"role":"{}","content":[{{"text":"{text}"}}]}}"#, role(number)));
    for (file, format) in [
        (
            format!(r#"{{"messages":[{plain}],"model":"claude-3-haiku","max_tokens":9}}"#),
            Format::Anthropic,
        ),
        (format!(r#"{{"messages":[{plain}],"model":"gpt-5","max_tokens":9}}"#), Format::OpenAiChat),
        (format!("\u{feff}{{\"input\":[{user}],\"model\":\"gpt-5\"}}"), Format::OpenAiResponses),
        (format!(r#"{{"messages":[{untyped}],"inferenceConfig":{{}}}}"#), Format::BedrockConverse),
    ] {
        assert_eq!(recognised(&file), format);
    }
}

/// Requests that two formats could claim, with the format of the provider that accepts them.
#[test]
fn requests_are_recognised_by_what_one_provider_accepts() {
    let chat = Format::OpenAiChat;
    for (file, format) in [
        // Thinking without a signature: Cohere and Mistral.
        (
            r#"{"model":"command-a","messages":[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"thinking","thinking":"t"},{"type":"text","text":"a"}]}]}"#,
            chat,
        ),
        (
            r#"{"model":"command-a","max_tokens":9,"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"t"}]}]}"#,
            chat,
        ),
        (
            r#"{"model":"magistral","messages":[{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"t"}]}]}]}"#,
            chat,
        ),
        (
            r#"{"model":"command-r","messages":[{"role":"user","content":"q"}],"stop_sequences":["x"]}"#,
            chat,
        ),
        (
            r#"{"model":"command-a","max_tokens":9,"documents":[],"messages":[{"role":"user","content":"q"}],"stop_sequences":["x"]}"#,
            chat,
        ),
        // Servers that are compatible with chat completions.
        (
            r#"{"model":"claude-3-haiku","max_tokens":9,"messages":[{"role":"user","content":"q"}],"stream":true,"stream_options":{"include_usage":true}}"#,
            chat,
        ),
        (
            r#"{"model":"claude-3-haiku","max_tokens":9,"messages":[{"role":"system","content":"s"},{"role":"user","content":"q"}]}"#,
            chat,
        ),
        (
            r#"{"model":"claude-3-haiku","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://a/b.png"}},{"type":"text","text":"q"}]}]}"#,
            chat,
        ),
        (
            r#"{"model":"llama3","system":"s","options":{"seed":1},"messages":[{"role":"user","content":"q"}]}"#,
            chat,
        ),
        (
            r#"{"model":"claude-3-haiku","max_tokens":9,"user":"u1","messages":[{"role":"user","content":"q"}]}"#,
            chat,
        ),
        (
            r#"{"model":"claude-3-haiku","max_tokens":9,"min_p":0.1,"messages":[{"role":"user","content":"q"}]}"#,
            chat,
        ),
        (
            r#"{"model":"claude-3-haiku","max_tokens":9,"provider":{"order":["a"]},"messages":[{"role":"user","content":"q"}]}"#,
            chat,
        ),
        // Cohere, and a server with the interface of Anthropic.
        (
            r#"{"model":"command-a","max_tokens":9,"messages":[{"role":"user","content":"q"}],"stop_sequences":["x"]}"#,
            chat,
        ),
        (
            r#"{"model":"command-a","max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"q"}]}],"stop_sequences":["x"]}"#,
            chat,
        ),
        (
            r#"{"model":"MiniMax-M2","max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"q"}]}],"stop_sequences":["x"]}"#,
            Format::Anthropic,
        ),
        // Anthropic rejects a system message in front, also for models that accept later ones.
        (
            r#"{"model":"claude-opus-4-8","max_tokens":9,"messages":[{"role":"system","content":"s"},{"role":"user","content":"q"}]}"#,
            chat,
        ),
        (
            r#"{"model":"claude-opus-4-8","max_tokens":9,"messages":[{"role":"system","content":"s"},{"role":"user","content":"q"}],"tools":[{"name":"t","input_schema":{}}]}"#,
            Format::Anthropic,
        ),
        // A request that counts tokens.
        (
            r#"{"model":"claude-3-haiku","messages":[{"role":"user","content":[{"type":"text","text":"q"}]}]}"#,
            Format::Anthropic,
        ),
        (r#"{"model":"claude-3-haiku","messages":[{"role":"user","content":"q"}]}"#, chat),
        (
            r#"{"model":"MiniMax-M2","max_tokens":9,"system":"s","messages":[{"role":"user","content":"q"}]}"#,
            Format::Anthropic,
        ),
        (
            r#"{"messages":[{"role":"user","content":[{"searchResult":{"source":"a","title":"b","content":[{"text":"c"}]}},{"text":"q"}]}]}"#,
            Format::BedrockConverse,
        ),
        (
            r#"{"messages":[{"role":"user","content":[{"audio":{"format":"mp3","source":{"bytes":"AAAA"}}},{"text":"q"}]}]}"#,
            Format::BedrockConverse,
        ),
        (
            r#"{"output":{"message":{"role":"assistant","content":[{"text":"a"}]}},"stopReason":"end_turn","usage":{"inputTokens":1}}"#,
            Format::BedrockConverse,
        ),
        (r#"{"prompt":{"id":"pmpt_1"},"input":"hi"}"#, Format::OpenAiResponses),
        (
            r#"{"conversation":"conv_1","input":[{"role":"user","content":"q"}]}"#,
            Format::OpenAiResponses,
        ),
        (r#"{"input":"hi","max_output_tokens":9}"#, Format::OpenAiResponses),
        (r#"{"input":"hi","store":false}"#, Format::OpenAiResponses),
        (r#"{"input":"hi","truncation":"auto"}"#, Format::OpenAiResponses),
        (
            r#"{"type":"response.create","model":"gpt-5","input":[{"role":"user","content":"q"}]}"#,
            Format::OpenAiResponses,
        ),
        (r#"{"contents":{"role":"user","parts":[{"text":"q"}]}}"#, Format::Gemini),
        (r#"{"contents":{"parts":{"text":"q"}}}"#, Format::Gemini),
    ] {
        let (found, replay) = read(file);
        assert_eq!(found, format, "{file}");
        assert_eq!(replay.warnings, [], "{file}");
        let found = visible(&replay.conversations[0]);
        let has_text = found.iter().any(|message| !message.text().is_empty());
        assert!(has_text || file.contains("thinking"), "{file}");
    }
}

/// Records of other programs have fields of these names too.
#[test]
fn a_record_with_an_input_is_not_a_request() {
    for record in [
        r#"{"input":"hi","conversation":"a talk"}"#,
        r#"{"input":"hi","store":"a shop","text":"t"}"#,
        r#"{"input":"hi","truncation":true,"max_output_tokens":null}"#,
    ] {
        assert!(Format::recognise(record.as_bytes()).is_err(), "{record}");
    }
}

#[test]
fn thinking_of_chat_completions_is_thinking() {
    for thinking in [r#""t""#, r#"[{"type":"text","text":"t"}]"#] {
        let message = format!(
            r#"{{"role":"assistant","content":[{{"type":"thinking","thinking":{thinking}}},{{"type":"text","text":"a"}}]}}"#
        );
        let (format, replay) = read(&format!(r#"{{"model":"m","messages":[{message}]}}"#));
        let found = visible(&replay.conversations[0]);
        let content: serde_json::Value = serde_json::from_str(found[0].json()).unwrap();
        assert_eq!(content["content"][0]["text"], "t", "{message}");
        let again = exported(&found, format, Container::List);
        assert_eq!(again, format!("[{message}]\n"));
    }
}

#[test]
fn parts_of_gemini_may_be_an_object() {
    let file = r#"{"systemInstruction":{"parts":{"text":"s"}},"contents":{"role":"user","parts":{"text":"q"}}}"#;
    let (_, replay) = read(file);
    assert_eq!(replay.warnings, []);
    let found = visible(&replay.conversations[0]);
    let texts: Vec<_> = found.iter().map(|message| message.text().into_owned()).collect();
    assert_eq!(texts, ["s", "q"]);
}

#[test]
fn a_session_file_with_the_ids_of_a_stream_is_a_session_file() {
    let file = r#"{"parentUuid":null,"isSidechain":false,"sessionId":"s","session_id":"s","type":"user","message":{"role":"user","content":"q"},"uuid":"u1","timestamp":"2026-05-01T10:00:00.000Z"}"#;
    assert_eq!(recognised(file), Format::ClaudeCode);
    let stream =
        r#"{"type":"user","message":{"role":"user","content":"q"},"session_id":"s","uuid":"u1"}"#;
    assert_eq!(recognised(stream), Format::ClaudeStream);
}
