//! OpenAI's chat completions, with the special cases of real files.

use recto_core::{Message, Role};
use recto_format::{
    Collected, Container, Error, ExportOptions, Format, ImportOptions, MessageParts, Step, export,
    import,
};

use crate::files::{exported, imported, messages, round_trip, visible};

const CHAT: Format = Format::OpenAiChat;

fn source_of(message: &Message) -> Option<(bool, bool)> {
    let source = MessageParts::of(message).source?;
    Some((source.original.is_some(), source.layout == recto_format::Layout::Spaced))
}

#[test]
fn a_plain_message_is_kept_as_it_is() {
    let plain = r#"{"role":"user","content":"hi"}"#;
    assert_eq!(round_trip(plain, CHAT)[0].json(), plain);
    for foreign in [
        r#"{"role": "system", "content": "Be \u00e9 brief", "x": 1e400}"#,
        r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"role":"user","name":"ada"}"#,
        r#"{"role":"assistant","content":"4","refusal":null,"annotations":[],"tool_calls":[]}"#,
    ] {
        // Unknown fields are sent to the provider again.
        let messages = round_trip(foreign, CHAT);
        let fields = foreign.strip_suffix('}').unwrap();
        let source = r#""metadata":{"source":{"format":"openai-chat","verbatim":true}}"#;
        assert_eq!(messages[0].json(), format!("{fields},{source}}}"));
    }
}

#[test]
fn parallel_calls_and_their_results_are_not_stored_twice() {
    for foreign in [
        r#"{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"n\": 1.50}"}},{"id":"b","type":"function","function":{"name":"g","arguments":"{}"}}]}"#,
        r#"{"role":"assistant","content":"Let me see.","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"[1]"}}]}"#,
        r#"{"role":"tool","tool_call_id":"a","content":"a long result\n"}"#,
        r#"{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"x"}]}"#,
        r#"{"role": "tool", "tool_call_id": "a", "content": "as Python writes it"}"#,
    ] {
        let messages = round_trip(foreign, CHAT);
        let is_spaced = foreign.contains("\": ") && !foreign.contains("1.50");
        assert_eq!(source_of(&messages[0]), Some((false, is_spaced)), "{foreign}");
    }
    let read = messages(
        r#"[{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"n\": 1.50}"}}]}]"#,
        CHAT,
    );
    let call = read.0[0].tool_calls().next().unwrap();
    assert_eq!((&*call.id, &*call.name, call.input), ("a", "f", r#"{"n": 1.50}"#));
}

#[test]
fn a_message_that_cannot_be_restored_from_its_parts_keeps_its_bytes() {
    for foreign in [
        // fields in another order, unknown fields
        r#"{"tool_call_id":"a","role":"tool","content":"x"}"#,
        r#"{"role":"tool","tool_call_id":"a","content":"x","x-trace":[1e400,-0]}"#,
        // empty and missing content
        r#"{"role":"assistant","content":"","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}"#,
        r#"{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}"#,
        r#"{"role":"assistant","content":null}"#,
        r#"{"role":"user","content":[]}"#,
        // arguments that are escaped in another way
        r#"{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"a\":\"\\u00e9\\ud800\"}","x":1}}]}"#,
        // developer messages, deprecated functions, audio
        r#"{"role":"developer","content":"Be brief."}"#,
        r#"{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}"#,
        r#"{"role":"function","name":"f","content":"x"}"#,
        // fields that have another meaning in Recto
        r#"{"role":"user","content":"hi","id":7,"metadata":"x","timestamp":"today"}"#,
        r#"{"role":"user","content":"hi","name":7}"#,
    ] {
        let messages = round_trip(foreign, CHAT);
        assert_eq!(source_of(&messages[0]), Some((true, false)), "{foreign}");
    }
}

#[test]
fn a_message_that_can_be_restored_from_its_parts_does_not_keep_its_bytes() {
    for foreign in [
        r#"{"role":"user","content":""}"#,
        r#"{"role":"assistant","content":null,"audio":{"id":"audio_1"}}"#,
        r#"{"role":"user","content":[{"type":"hologram","x":1},{"type":"text","text":"a"}]}"#,
        r#"{"role":"assistant","content":null,"refusal":"I will not."}"#,
        r#"{"role":"assistant","content":"4","reasoning_content":"2 and 2"}"#,
        r#"{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"custom","custom":{"name":"sh","input":"ls \"x\"\n"}}]}"#,
        r#"{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA==","detail":"low"}}]}"#,
        r#"{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"https://a/b.png"}}]}"#,
        r#"{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"AA==","format":"mp3"}}]}"#,
        r#"{"role":"user","content":[{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,AA=="}}]}"#,
        r#"{"role":"user","content":[{"type":"file","file":{"file_id":"file-1"}}]}"#,
    ] {
        let messages = round_trip(foreign, CHAT);
        assert_eq!(source_of(&messages[0]), Some((false, false)), "{foreign}");
    }
}

#[test]
fn invalid_arguments_are_kept_as_text() {
    for (arguments, input) in [
        (r#"{\"a\":"#, r#""{\"a\":""#),
        ("", r#""""#),
        ("plain words", r#""plain words""#),
        (r#"\"quoted\""#, r#""\"quoted\"""#),
        ("[1, 2]", "[1, 2]"),
        (" {} ", r#"" {} ""#),
        ("1e400", "1e400"),
    ] {
        let foreign = format!(
            r#"{{"role":"assistant","content":null,"tool_calls":[{{"id":"a","type":"function","function":{{"name":"f","arguments":"{arguments}"}}}}]}}"#
        );
        let messages = round_trip(&foreign, CHAT);
        assert_eq!(messages[0].tool_calls().next().unwrap().input, input);
    }
}

#[test]
fn results_of_deprecated_functions_are_matched_by_name() {
    let file = r#"[
        {"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}},
        {"role":"assistant","content":null,"function_call":{"name":"g","arguments":"{}"}},
        {"role":"function","name":"g","content":"of g"},
        {"role":"function","name":"f","content":"of f"}]"#;
    let (messages, warnings) = messages(file, CHAT);
    let fields: Vec<&str> = warnings.iter().map(|warning| &*warning.field).collect();
    assert_eq!(fields, ["around the messages"]);
    let calls: Vec<_> =
        messages.iter().flat_map(|it| it.tool_calls()).map(|call| call.id.into_owned()).collect();
    let answered: Vec<_> =
        messages.iter().flat_map(|it| it.tool_result_ids()).map(|id| id.into_owned()).collect();
    assert_eq!(answered, [calls[1].clone(), calls[0].clone()]);
}

#[test]
fn unreadable_content_is_kept_and_reported_with_line_and_field() {
    let file = "[\n{\"role\":\"user\",\"content\":\"hi\"},\n{\"content\":\"stop\"},\n{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"a\"}]},\n7]";
    let (messages, warnings) = messages(file, CHAT);
    let places: Vec<(u64, &str)> =
        warnings.iter().map(|warning| (warning.line, &*warning.field)).collect();
    assert_eq!(places, [(3, "[1].role"), (4, "[2].tool_calls[0].function"), (5, "[3]")]);
    assert_eq!(messages.len(), 4);
    let written = exported(&messages, CHAT, Container::Lines);
    let expected: Vec<&str> =
        file.lines().skip(1).map(|line| line.trim_end_matches([',', ']'])).collect();
    // The bracket of the last list item is part of its line.
    assert_eq!(written.lines().nth(1), Some(expected[1]));
    assert_eq!(written.lines().nth(3), Some("7"));
}

#[test]
fn a_message_with_an_unknown_role_is_refused_with_its_line() {
    let refusal = |file: &str, format: Option<Format>| {
        import(file, format, &ImportOptions::default(), &mut Collected::default())
            .unwrap_err()
            .to_string()
    };
    let hi = r#"{"role":"user","content":"hi"}"#;
    let bot = r#"{"role":"bot","content":"the only copy"}"#;
    for format in [None, Some(CHAT)] {
        let error = refusal(&format!("{hi}\n{bot}\n{hi}\n"), format);
        assert!(error.contains("line 2") && error.contains("not \"bot\""), "{error}");
        assert!(error.contains("system, developer, user, assistant, tool or function"), "{error}");
    }
    let error = refusal(&format!("[{hi},\n{hi},\n{bot}]"), Some(Format::Anthropic));
    assert!(error.contains("line 3") && error.contains("role must be user or"), "{error}");
    assert!(error.contains("bot"), "{error}");
}

#[test]
fn requests_lines_and_lists_are_read() {
    let hi = r#"{"role":"user","content":"hi"}"#;
    let request = format!(r#"{{"model":"m","messages":[{hi},{hi}],"temperature":0.50}}"#);
    let replay = imported(&request, CHAT);
    assert_eq!(visible(&replay.conversations[0]).len(), 2);
    let envelope = replay.conversations[0].envelope.as_deref().unwrap();
    assert_eq!(envelope, r#"{"model":"m","messages":null,"temperature":0.50}"#);
    let messages = visible(&replay.conversations[0]);
    assert_eq!(exported(&messages, CHAT, Container::Envelope(envelope)), format!("{request}\n"));

    let lines = format!("{hi}\n{hi}\n\n{hi}\n");
    assert_eq!(imported(&lines, CHAT).conversations.len(), 1);
    let conversations = format!("{request}\n{request}\n");
    assert_eq!(imported(&conversations, CHAT).conversations.len(), 2);
    let nested = format!("[[{hi}],[{hi},{hi}]]");
    let sizes: Vec<usize> =
        imported(&nested, CHAT).conversations.iter().map(|it| visible(it).len()).collect();
    assert_eq!(sizes, [1, 2]);
}

#[test]
fn a_malformed_line_is_skipped_and_the_next_one_is_imported() {
    let file = "{\"role\":\"user\",\"content\":\"a\"}\n{\"role\":\"us\n{\"role\":\"user\",\"content\":\"b\"}\n";
    let (messages, warnings) = messages(file, CHAT);
    assert_eq!(messages.len(), 2);
    assert_eq!(warnings[0].line, 2);
}

#[test]
fn errors_name_the_line() {
    let read = |file: &str| {
        import(file, Some(CHAT), &ImportOptions::default(), &mut Collected::default()).unwrap_err()
    };
    let error = read("[\n{\"role\":\"user\",\"content\":\"a\"}\n{}]");
    assert!(matches!(error, Error::Malformed { line: 3, .. }), "{error}");
    let deep =
        format!("[\n{{\"role\":\"user\",\"content\":{}1{}}}]", "[".repeat(99), "]".repeat(99));
    let error = read(&deep);
    assert!(matches!(error, Error::TooLarge { line: 2, .. }), "{error}");
    let large = format!("[{{\"role\":\"user\",\"content\":\"{}\"}}]", "a".repeat(33 << 20));
    let error = read(&large);
    assert!(matches!(error, Error::TooLarge { line: 1, .. }), "{error}");
}

#[test]
fn a_request_larger_than_the_message_limit_is_read_in_pieces() {
    let message = format!(r#"{{"role":"user","content":"{}"}}"#, "a".repeat(1 << 20));
    let list = vec![message; 6].join(",");
    let file = format!(r#"{{"model":"m","messages":[{list}]}}"#);
    assert_eq!(messages(&file, CHAT).0.len(), 6);
}

#[test]
fn messages_that_were_not_imported_are_exported_as_chat_completions() {
    let message = Message::from_json(
        r#"{"role":"tool","content":[{"type":"tool_result","tool_use_id":"a","content":"1"},{"type":"tool_result","tool_use_id":"b"},{"type":"text","text":"both"}],"timestamp":5}"#,
    )
    .unwrap();
    assert_eq!(message.role(), Role::Tool);
    assert_eq!(
        exported(&[message], CHAT, Container::Lines),
        "{\"role\":\"tool\",\"tool_call_id\":\"a\",\"content\":\"1\"}\n{\"role\":\"tool\",\"tool_call_id\":\"b\",\"content\":\"\"}\n{\"role\":\"user\",\"content\":\"both\"}\n"
    );
}

#[test]
fn the_format_is_recognised() {
    for file in [
        r#"[{"role":"user","content":"hi"}]"#,
        r#"{"messages":[{"role":"user","content":"hi"}],"model":"m"}"#,
        "{\"role\":\"user\",\"content\":\"hi\"}\n{\"role\":\"assistant\",\"content\":\"yes\"}",
    ] {
        assert_eq!(Format::recognise(file.as_bytes()).unwrap(), CHAT);
    }
    for file in ["", "hello", "{}", "[1,2]", "\u{0}\u{1}"] {
        assert!(matches!(Format::recognise(file.as_bytes()), Err(Error::UnknownFormat { .. })));
    }
}

#[test]
fn steps_are_grouped() {
    let file = vec![r#"{"role":"user","content":"hi"}"#; 600].join("\n");
    let mut collected = Collected::default();
    import(&*file, None, &ImportOptions::default(), &mut collected).unwrap();
    let sizes: Vec<usize> = collected
        .steps
        .iter()
        .filter_map(|step| match step {
            Step::Append(messages) => Some(messages.len()),
            _ => None,
        })
        .collect();
    assert_eq!(sizes, [256, 256, 88]);
}

#[test]
fn a_response_of_the_api_is_imported_as_its_message() {
    let answer = |choices: &str| {
        format!(
            r#"{{"id":"chatcmpl-1","object":"chat.completion","model":"gpt-4.1-2025-04-14","choices":[{choices}],"usage":{{"total_tokens":9}}}}"#
        )
    };
    let said = answer(
        r#"{"index":0,"message":{"role":"assistant","content":"It \u00e9 times out.","refusal":null},"finish_reason":"stop"}"#,
    );
    let called = answer(
        r#"{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}"#,
    );
    assert_eq!(Format::recognise(said.as_bytes()).unwrap(), CHAT);
    assert_eq!(Format::recognise(format!("[{called}]").as_bytes()).unwrap(), CHAT);

    let messages = round_trip(&said, CHAT);
    assert_eq!((messages[0].role(), &*messages[0].text()), (Role::Assistant, "It é times out."));
    let source = MessageParts::of(&messages[0]).source.unwrap();
    assert_eq!(source.model.unwrap().text(), "gpt-4.1-2025-04-14");
    assert_eq!(round_trip(&called, CHAT)[0].tool_calls().count(), 1);

    // Other choices are stored with the first and reported.
    let choice = r#"{"message":{"role":"assistant","content":"A"}}"#;
    let two = answer(&format!("{choice},{choice}"));
    let (read, warnings) = messages_of(&two);
    assert_eq!((read.len(), &*read[0].text()), (1, "A"));
    assert_eq!(warnings[0].field, "[0].choices[1]");
    assert_eq!(exported(&read, CHAT, Container::List), format!("[{two}]\n"));
    // A response without a message is preserved, and the warning names the field.
    let (_, warnings) = messages_of(&format!("{},{said}", answer("")));
    assert_eq!(warnings[0].field, "[0].choices[0].message");
}

fn messages_of(foreign: &str) -> (Vec<Message>, Vec<recto_format::TranscriptWarning>) {
    messages(&format!("[{foreign}]"), CHAT)
}

#[test]
fn parts_of_another_provider_are_omitted_with_a_warning() {
    let file = r#"[{"role":"assistant","content":[{"type":"redacted_thinking","data":"abc"},{"type":"text","text":"A picture."}]},{"role":"assistant","content":[{"type":"text","text":"Paris 15C.","citations":[{"type":"char_location","cited_text":"15C"}]}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"search_result","title":"t"},{"type":"text","text":"boom"}]}]}]"#;
    let (view, _) = messages(file, Format::Anthropic);
    let mut written = Vec::new();
    let warnings =
        export(&view, Format::OpenAiChat, &ExportOptions::default(), &mut written).unwrap();
    let warnings: Vec<(u64, &str)> =
        warnings.iter().map(|warning| (warning.line, &*warning.message)).collect();
    assert_eq!(
        warnings,
        [
            (1, "a part of type redacted_thinking is not supported"),
            (2, "the citations of a text are not supported"),
            (3, "a part of type search_result is not supported"),
        ]
    );
    assert_eq!(
        String::from_utf8(written).unwrap(),
        r#"[{"role":"assistant","content":"A picture."},
{"role":"assistant","content":"Paris 15C."},
{"role":"tool","tool_call_id":"c","content":[{"type":"text","text":"boom"}]}]
"#
    );
    // Messages of this format are restored byte for byte.
    round_trip(
        r#"{"role":"user","content":[{"type":"text","text":"a","citations":[]}]}"#,
        Format::OpenAiChat,
    );
}

#[test]
fn calls_and_results_of_swe_agent_and_inspect_have_their_ids_and_names() {
    for (call, result) in [
        (
            r#"{"function":{"arguments":"{\"command\":\"ls\"}","name":"bash"},"id":"c1","type":"function"}"#,
            r#"{"role":"tool","content":"a.txt","message_type":"observation","tool_call_ids":["c1"]}"#,
        ),
        (
            r#"{"id":"c1","function":"bash","arguments":{"command":"ls"},"type":"function"}"#,
            r#"{"content":"a.txt","role":"tool","tool_call_id":"c1","function":"bash"}"#,
        ),
    ] {
        let foreign = format!(r#"{{"role":"assistant","content":"","tool_calls":[{call}]}}"#);
        let read = round_trip(&foreign, Format::OpenAiChat);
        let calls: Vec<_> = read[0].tool_calls().collect();
        assert_eq!((&*calls[0].name, calls[0].input), ("bash", r#"{"command":"ls"}"#));
        let read = round_trip(result, Format::OpenAiChat);
        assert_eq!(read[0].tool_result_ids().collect::<Vec<_>>(), ["c1"]);
    }
}

#[test]
fn a_text_of_a_thread_is_a_text() {
    let foreign =
        r#"{"role":"user","content":[{"type":"text","text":{"value":"hi","annotations":[]}}]}"#;
    let read = round_trip(foreign, Format::OpenAiChat);
    assert_eq!(read[0].text(), "hi");
}
