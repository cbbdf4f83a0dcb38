//! Lists of foreign messages: which positions stay, and which messages are made.

use std::sync::Arc;

use recto_core::{Approx, Fit};
use recto_format::{Error, ForeignList, Format, ListItem, Target};

/// Two tool exchanges in each format that is a list: the user asks, a tool is called, its result is long,
/// and the user asks again. The result of the second call is missing.
fn lists() -> Vec<(Format, Target, Vec<String>)> {
    let long = "timeout ".repeat(100);
    let openai_chat = vec![
        r#"{"role":"system","content":"Be brief."}"#.to_owned(),
        r#"{"role":"user","content":"first"}"#.to_owned(),
        r#"{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"read","arguments":"{}"}}]}"#.to_owned(),
        format!(r#"{{"role":"tool","tool_call_id":"a","content":"{long}"}}"#),
        r#"{"role":"user","content":"second"}"#.to_owned(),
        r#"{"role":"assistant","content":null,"tool_calls":[{"id":"b","type":"function","function":{"name":"read","arguments":"{}"}}]}"#.to_owned(),
    ];
    let responses = vec![
        r#"{"role":"system","content":"Be brief."}"#.to_owned(),
        r#"{"role":"user","content":"first"}"#.to_owned(),
        r#"{"type":"function_call","call_id":"a","name":"read","arguments":"{}"}"#.to_owned(),
        format!(r#"{{"type":"function_call_output","call_id":"a","output":"{long}"}}"#),
        r#"{"role":"user","content":"second"}"#.to_owned(),
        r#"{"type":"function_call","call_id":"b","name":"read","arguments":"{}"}"#.to_owned(),
    ];
    let langchain = vec![
        r#"{"type":"system","data":{"content":"Be brief."}}"#.to_owned(),
        r#"{"type":"human","data":{"content":"first","id":"1"}}"#.to_owned(),
        r#"{"type":"ai","data":{"content":"","tool_calls":[{"id":"a","name":"read","args":{}}]}}"#
            .to_owned(),
        format!(r#"{{"type":"tool","data":{{"content":"{long}","tool_call_id":"a"}}}}"#),
        r#"{"type":"human","data":{"content":"second"}}"#.to_owned(),
        r#"{"type":"ai","data":{"content":"","tool_calls":[{"id":"b","name":"read","args":{}}]}}"#
            .to_owned(),
    ];
    let recto = vec![
        r#"{"role":"system","content":"Be brief."}"#.to_owned(),
        r#"{"role":"user","content":"first"}"#.to_owned(),
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"read","input":{}}]}"#.to_owned(),
        format!(r#"{{"role":"tool","content":[{{"type":"tool_result","tool_use_id":"a","content":"{long}"}}]}}"#),
        r#"{"role":"user","content":"second"}"#.to_owned(),
        r#"{"role":"assistant","content":[{"type":"tool_use","tool_use":{"id":"b","name":"read","input":{}}}]}"#.to_owned(),
    ];
    let agents_js = vec![
        r#"{"type":"message","role":"system","content":"Be brief."}"#.to_owned(),
        r#"{"role":"user","content":"first"}"#.to_owned(),
        r#"{"type":"function_call","callId":"a","name":"read","arguments":"{}"}"#.to_owned(),
        format!(
            r#"{{"type":"function_call_result","name":"read","callId":"a","status":"completed","output":{{"type":"text","text":"{long}"}}}}"#
        ),
        r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"second"}]}"#
            .to_owned(),
        r#"{"type":"function_call","callId":"b","name":"read","arguments":"{}"}"#.to_owned(),
    ];
    let vercel_model = vec![
        r#"{"role":"system","content":"Be brief."}"#.to_owned(),
        r#"{"role":"user","content":"first"}"#.to_owned(),
        r#"{"role":"assistant","content":[{"type":"tool-call","toolCallId":"a","toolName":"read","input":{}}]}"#.to_owned(),
        format!(r#"{{"role":"tool","content":[{{"type":"tool-result","toolCallId":"a","toolName":"read","output":{{"type":"text","value":"{long}"}}}}]}}"#),
        r#"{"role":"user","content":[{"type":"text","text":"second"}]}"#.to_owned(),
        r#"{"role":"assistant","content":[{"type":"tool-call","toolCallId":"b","toolName":"read","input":{}}]}"#.to_owned(),
    ];
    vec![
        (Format::OpenAiAgentsJs, Target::OpenAiResponses, agents_js),
        (Format::VercelModel, Target::OpenAiChat, vercel_model),
        (Format::OpenAiChat, Target::OpenAiChat, openai_chat),
        (Format::OpenAiResponses, Target::OpenAiResponses, responses),
        (Format::LangChain, Target::Anthropic, langchain),
        (Format::Recto, Target::Gemini, recto),
    ]
}

fn read(messages: &[String], format: Format) -> ForeignList {
    let messages: Vec<&str> = messages.iter().map(String::as_str).collect();
    ForeignList::read(&messages, format, Arc::new(Approx)).expect("it is a list")
}

#[test]
fn a_cut_keeps_positions_and_a_repair_makes_only_what_is_missing() {
    for (format, target, messages) in lists() {
        let mut list = read(&messages, format);
        let all: Vec<ListItem> = (0..messages.len()).map(ListItem::Kept).collect();
        assert_eq!(list.items().unwrap(), all, "{format}");
        assert_eq!(list.tokens(), list.tokens_of_each().iter().sum::<u64>());

        list.fit(&Fit::within(60), &[]).unwrap();
        let kept = [0, 4, 5].map(ListItem::Kept);
        assert_eq!(list.items().unwrap(), kept, "{format}");
        let findings = list.repair(target, None).unwrap();
        assert!(findings.iter().any(|it| it.rule.name == "answered_calls" && it.index == 5));
        let items = list.items().unwrap();
        assert_eq!(items[..3], kept, "{format}");
        let [ListItem::Made(made)] = &items[3..] else { panic!("{format}: {items:?}") };
        assert!(made.contains("[no result]") && made.contains("\"b\""), "{format}: {made}");
    }
}

/// Some formats write the name of the tool with its result.
#[test]
fn a_made_result_has_the_name_of_its_tool() {
    for (format, made) in [
        (
            Format::OpenAiAgentsJs,
            r#"{"type":"function_call_result","name":"read","callId":"b","status":"completed","output":"[no result]"}"#,
        ),
        (
            Format::VercelModel,
            r#"{"role":"tool","content":[{"type":"tool-result","toolCallId":"b","toolName":"read","output":{"type":"text","value":"[no result]"}}]}"#,
        ),
    ] {
        let (_, target, messages) = lists().into_iter().find(|list| list.0 == format).unwrap();
        let mut list = read(&messages, format);
        list.repair(target, None).unwrap();
        assert_eq!(list.items().unwrap()[6], ListItem::Made(made.to_owned()), "{format}");
    }
}

#[test]
fn a_position_that_is_kept_stays_and_may_be_repaired() {
    for (format, target, messages) in lists() {
        let mut list = read(&messages, format);
        list.fit(&Fit::within(80), &[1]).unwrap();
        assert_eq!(list.items().unwrap(), [0, 1, 4, 5].map(ListItem::Kept), "{format}");
        list.repair(target, None).unwrap();
        assert_eq!(list.items().unwrap().len(), 5, "{format}");
    }
}

#[test]
fn a_foreign_message_with_several_pieces_is_kept_or_dropped_as_a_whole() {
    // Anthropic's user message has the result of a call and a text: two messages of Recto.
    let messages = [
        r#"{"role":"user","content":"first"}"#.to_owned(),
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"read","input":{}}]}"#
            .to_owned(),
        format!(
            r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"a","content":"{}"}},{{"type":"text","text":"and then?"}}]}}"#,
            "timeout ".repeat(50)
        ),
        r#"{"role":"assistant","content":"It times out."}"#.to_owned(),
    ];
    let list = read(&messages, Format::Anthropic);
    for budget in 5..200 {
        let mut fitted = list.clone();
        let Ok(()) = fitted.fit(&Fit::within(budget), &[]) else { continue };
        let items = fitted.items().unwrap();
        let positions: Vec<usize> = items
            .iter()
            .map(|item| match item {
                ListItem::Kept(at) => *at,
                item => panic!("{item:?} was made without a repair"),
            })
            .collect();
        assert!(positions == [3] || positions == [1, 2, 3] || positions == [0, 1, 2, 3]);
    }
}

#[test]
fn sessions_are_not_lists_and_unreadable_messages_stay() {
    let counter = || Arc::new(Approx);
    for format in [Format::ClaudeCode, Format::Codex, Format::ChatGpt] {
        let error = ForeignList::read(&["{}"], format, counter()).unwrap_err();
        assert!(error.to_string().contains("a list of messages"), "{error}");
    }
    let list = ForeignList::read(&["{}", r#"{"role":7}"#], Format::OpenAiChat, counter()).unwrap();
    assert_eq!(list.items().unwrap(), [0, 1].map(ListItem::Kept));
    let empty = ForeignList::read(&[], Format::Recto, counter()).unwrap();
    assert_eq!((empty.items().unwrap(), empty.tokens()), (Vec::new(), 0));
}

#[test]
fn a_message_without_content_stays_in_a_cut_and_a_repair_omits_it_if_the_provider_refuses_it() {
    let messages = [
        r#"{"type":"human","data":{"content":"hi"}}"#.to_owned(),
        r#"{"type":"ai","data":{"content":""}}"#.to_owned(),
        r#"{"type":"human","data":{"content":"again"}}"#.to_owned(),
    ];
    let mut list = read(&messages, Format::LangChain);
    list.fit(&Fit::within(1_000), &[]).unwrap();
    assert_eq!(list.items().unwrap(), [0, 1, 2].map(ListItem::Kept));
    list.repair(Target::Anthropic, None).unwrap();
    assert_eq!(list.items().unwrap(), [0, 2].map(ListItem::Kept));
}

#[test]
fn the_messages_that_repairs_add_are_part_of_the_budget() {
    let mut too_large = 0;
    for (format, target, messages) in lists() {
        let fitted = |max_tokens: u64| {
            let mut list = read(&messages, format);
            let result = list.fit_and_repair(&Fit::within(max_tokens), &[], target, None);
            result.map(|findings| (list, findings))
        };
        for budget in 1..200 {
            let mut separate = read(&messages, format);
            let is_fitted = separate.fit(&Fit::within(budget), &[]).is_ok();
            separate.repair(target, None).unwrap();
            too_large += usize::from(is_fitted && separate.tokens() > budget);
            match fitted(budget) {
                Ok((list, findings)) => {
                    assert!(list.tokens() <= budget, "{format}: {} > {budget}", list.tokens());
                    assert!(findings.iter().any(|it| it.rule.name == "answered_calls"));
                }
                Err(recto_format::Error::Engine(recto_core::Error::BudgetTooSmall {
                    needed,
                    max_tokens,
                })) => {
                    assert_eq!(max_tokens, budget, "{format}");
                    assert!(needed > budget && fitted(needed).is_ok(), "{format}: {needed}");
                }
                Err(error) => panic!("{format}, {budget}: {error}"),
            }
        }
    }
    assert!(too_large > 0, "no budget was exceeded by a repair alone");
}

/// The text of such a message would not be counted.
#[test]
fn a_list_with_an_unknown_role_is_refused() {
    for (format, message) in [
        (Format::Recto, r#"{"role":"critic","content":"a long text"}"#),
        (Format::OpenAiChat, r#"{"role":"critic","content":"a long text"}"#),
        (Format::OpenAiResponses, r#"{"role":"critic","content":"a long text"}"#),
        (Format::Anthropic, r#"{"role":"critic","content":"a long text"}"#),
        (Format::Gemini, r#"{"role":"critic","parts":[{"text":"a long text"}]}"#),
        (Format::BedrockConverse, r#"{"role":"critic","content":[{"text":"a long text"}]}"#),
        (Format::VercelModel, r#"{"role":"critic","content":"a long text"}"#),
        (Format::OpenAiAgentsJs, r#"{"role":"critic","content":"a long text"}"#),
        (Format::Vercel, r#"{"role":"critic","parts":[{"type":"text","text":"a long text"}]}"#),
        (Format::LangChain, r#"{"type":"critic","data":{"content":"a long text"}}"#),
        (Format::LangChain, r#"{"type":"critic","content":"a long text"}"#),
        (
            Format::LangChain,
            r#"{"lc":1,"type":"constructor","id":["critic"],"kwargs":{"content":"a long text"}}"#,
        ),
        (
            Format::PydanticAi,
            r#"{"kind":"critic","parts":[{"part_kind":"text","content":"a long text"}]}"#,
        ),
    ] {
        let Err(error) = ForeignList::read(&[message], format, Arc::new(Approx)) else {
            panic!("{format}: it was read");
        };
        assert_eq!(error.code(), "invalid_message", "{format}: {error}");
        let text = error.to_string();
        assert!(text.contains("critic") && text.contains(format.name()), "{format}: {text}");
    }
    // An instruction without a text.
    let removal = r#"{"type":"remove","data":{"content":"","type":"remove","id":"h1"}}"#;
    assert!(ForeignList::read(&[removal], Format::LangChain, Arc::new(Approx)).is_ok());
}

#[test]
fn a_budget_that_is_too_small_for_a_whole_message_is_reported_with_one_that_suffices() {
    let messages = [
        format!(r#"{{"role":"user","content":"{}"}}"#, "old ".repeat(40)),
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"q","name":"f","input":{}}]}"#.to_owned(),
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"q","content":"r"},{"type":"text","text":"both"}]}"#.to_owned(),
    ];
    let fitted = |max_tokens| read(&messages, Format::Anthropic).fit(&Fit::within(max_tokens), &[]);
    let needed = (1..100).find(|budget| fitted(*budget).is_ok()).unwrap();
    for given in 1..needed {
        let error = fitted(given).unwrap_err().to_string();
        assert!(error.contains(&format!("{given} tokens")), "{given}: {error}");
        assert!(error.contains(&format!("to {needed} or more")), "{given}: {error}");
    }
}

/// Read as Recto's own, their tool calls would be neither counted nor paired.
#[test]
fn messages_of_another_format_are_refused_with_their_format() {
    let own = r#"{"role":"user","content":"hi"}"#;
    for (format, _, messages) in lists() {
        if format == Format::Recto {
            continue;
        }
        // Plain texts are the same in several formats.
        let is_text =
            |it: &String| ["first", "second", "Be brief."].iter().any(|text| it.contains(text));
        for message in messages.iter().filter(|message| !is_text(message)) {
            let list = ForeignList::read(&[own, message], Format::Recto, Arc::new(Approx));
            let Err(Error::ForeignMessage { position, format: found }) = list else {
                panic!("{format}: {message}")
            };
            assert_eq!((position, found), (1, Some(format)), "{message}");
        }
    }
    let developer = r#"{"role":"developer","content":"Be brief."}"#;
    let unknown = r#"{"role":"assistant","content":"a","functionCall":{"do":"it"}}"#;
    for (message, found) in [(developer, Some(Format::OpenAiChat)), (unknown, None)] {
        let error = ForeignList::read(&[message], Format::Recto, Arc::new(Approx)).unwrap_err();
        let Error::ForeignMessage { position: 0, format } = error else { panic!("{error}") };
        assert_eq!(format, found, "{message}");
    }
}

#[test]
fn the_tokens_of_a_repaired_list_are_those_of_its_messages() {
    let messages = [
        r#"{"role":"user","content":"u u u u"}"#,
        r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c0","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]}"#,
    ];
    let read =
        |list: &[&str]| ForeignList::read(list, Format::OpenAiChat, Arc::new(Approx)).unwrap();
    let tokens_of = |list: &ForeignList| {
        let items = list.items().unwrap();
        let texts: Vec<&str> = items
            .iter()
            .map(|item| match item {
                ListItem::Kept(at) => messages[*at],
                ListItem::Made(text) => text.as_str(),
                _ => panic!("{item:?}"),
            })
            .collect();
        read(&texts).tokens()
    };
    let mut list = read(&messages);
    list.repair(Target::OpenAiChat, None).unwrap();
    let whole = tokens_of(&list);
    assert_eq!(list.tokens(), whole);
    for budget in 1..=whole {
        let mut list = read(&messages);
        match list.fit_and_repair(&Fit::within(budget), &[], Target::OpenAiChat, None) {
            Ok(_) => {
                assert!(list.tokens() <= budget, "{budget}");
                assert_eq!(list.tokens(), tokens_of(&list), "{budget}");
            }
            Err(error) => assert_eq!(error.code(), "budget_too_small"),
        }
    }
}

#[test]
fn a_role_that_the_format_does_not_have_is_an_invalid_message() {
    let messages = [r#"{"role":"bogus","content":"a"}"#, r#"{"role":"user","content":"b"}"#];
    let error = ForeignList::read(&messages, Format::OpenAiChat, Arc::new(Approx)).unwrap_err();
    let written = error.to_json();
    assert_eq!(written["error"]["code"], "invalid_message");
    assert_eq!(written["error"]["field"], "[0].role");
}

#[test]
fn a_path_without_messages_is_an_error_that_says_where_they_are() {
    let document = r#"[{"role":"user","content":"b"}]"#;
    let error = recto_format::select_messages(document, Some("x")).unwrap_err();
    let written = error.to_json();
    assert_eq!(written["error"]["field"], "select");
    let message = written["error"]["message"].as_str().unwrap();
    assert!(message.ends_with("the document is the list of messages"), "{message}");
}
