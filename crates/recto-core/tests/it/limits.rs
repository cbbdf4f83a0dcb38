//! Input at the limits: the largest numbers, the deepest JSON, the longest lists. Everything is
//! answered or refused with a typed error; nothing panics or overruns the stack.

use recto_core::{
    Append, Approx, BatchIndex, BatchStart, Code, Compress, Conversation, Delete, Error, Fit,
    Limits, LogIndex, Mark, Message, Moment, Operation, PINNED, Pick, Position, Query, Redo,
    Request, Restore, Role, RoleSet, Rollback, Settings, Tool, Truncate, Undo, Unmark, Version,
    WarningCode,
};

use crate::driver::fingerprint;
use crate::talk::{after, append, fresh, send, tools, view, with_tools};

/// Runs with a stack so small that recursion over deep input would overrun it.
fn on_a_small_stack(test: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(256 << 10);
    thread.spawn(test).expect("a thread can be started").join().expect("it does not panic");
}

/// A conversation of `count` user messages that share one body.
fn long(count: usize) -> Conversation {
    let messages = vec![Message::user("word of a message"); count];
    fresh().append(messages, 1).expect("it is accepted").0
}

/// `ok`, or the code of the error.
fn verdict<T>(result: &Result<T, Error>) -> &'static str {
    match result {
        Ok(_) => "ok",
        Err(error) => error.code().as_str(),
    }
}

mod numbers {
    use super::*;

    const THIRTY_DIGITS: &str = "999999999999999999999999999999";

    /// Numbers that no conversation here reaches.
    const HUGE: [&str; 6] = [
        "4294967294",
        "4294967295",
        "4294967296",
        "18446744073709551615",
        "18446744073709551616",
        THIRTY_DIGITS,
    ];

    /// Requests with a number at `#`, and the verdict if it is huge.
    const REQUESTS: &[(&str, &str)] = &[
        (
            r#"{"operation":"INSERT","position":#,"messages":[{"role":"user","content":"x"}]}"#,
            "position_out_of_range",
        ),
        (
            r#"{"operation":"insert","insert":{"position":#,"messages":[{"role":"user","content":"x"}]}}"#,
            "position_out_of_range",
        ),
        (
            r#"{"operation":"REPLACE","index":#,"message":{"role":"user","content":"x"}}"#,
            "index_out_of_range",
        ),
        (
            r#"{"operation":"replace","replace":{"index":#,"message":{"role":"user","content":"x"}}}"#,
            "index_out_of_range",
        ),
        (
            r#"{"operation":"replace","indices":[#],"data":{"role":"user","content":"x"}}"#,
            "index_out_of_range",
        ),
        (r#"{"operation":"DELETE","indices":[0,#]}"#, "index_out_of_range"),
        (r#"{"operation":"delete","indices":[#]}"#, "index_out_of_range"),
        (r#"{"operation":"RESTORE","indices":[#,0]}"#, "index_out_of_range"),
        (r#"{"operation":"COMPRESS","indices":[#]}"#, "index_out_of_range"),
        (r#"{"operation":"compress","indices":[#]}"#, "index_out_of_range"),
        (r#"{"operation":"MARK","indices":[#],"mark":"x"}"#, "index_out_of_range"),
        (r#"{"operation":"UNMARK","indices":[#],"mark":"x"}"#, "index_out_of_range"),
        (r#"{"operation":"BATCH_START","boundary":#}"#, "index_out_of_range"),
        (r#"{"operation":"batch_start","indices":[#]}"#, "index_out_of_range"),
        (r#"{"operation":"BATCH_END","targetBatchIndex":#}"#, "batch_not_found"),
        (r#"{"operation":"BATCH_END","targetBatchIndex":#,"carry":"all"}"#, "batch_not_found"),
        (r#"{"operation":"batch_end","indices":[#]}"#, "batch_not_found"),
        (r#"{"operation":"ROLLBACK","targetBatchIndex":#}"#, "batch_not_found"),
        (r#"{"operation":"ROLLBACK","targetVersion":#}"#, "version_not_found"),
        (r#"{"operation":"TRUNCATE","keepFirst":#}"#, "ok"),
        (r#"{"operation":"TRUNCATE","keepLast":#}"#, "ok"),
        (r#"{"operation":"TRUNCATE","removeFirst":#}"#, "ok"),
        (r#"{"operation":"TRUNCATE","removeLast":#}"#, "ok"),
        (
            r#"{"operation":"TRUNCATE","keepFirst":#,"keepLast":#,"removeFirst":#,"removeLast":#}"#,
            "ok",
        ),
        (r#"{"operation":"TRUNCATE","removeFirst":#,"role":"user","keepOthers":true}"#, "ok"),
        (r#"{"operation":"TRUNCATE","keepLast":#,"role":"user","scope":"all"}"#, "ok"),
        (r#"{"operation":"TRUNCATE","range":{"start":0,"end":#}}"#, "ok"),
        (r#"{"operation":"TRUNCATE","range":{"start":#,"end":#}}"#, "ok"),
        (r#"{"operation":"TRUNCATE","keepLast":2,"range":{"start":1,"end":#}}"#, "ok"),
        (r#"{"operation":"TRUNCATE","range":{"start":#,"end":1}}"#, "invalid_range"),
        (r#"{"operation":"truncate","truncate":{"keepLast":#}}"#, "ok"),
        (r#"{"operation":"FIT","maxTokens":#}"#, "ok"),
        (r#"{"operation":"FIT","maxTokens":#,"keepSystem":false,"startOn":"user"}"#, "ok"),
    ];

    /// Queries with a number at `#`, and the verdict if it is huge.
    const QUERIES: &[(&str, &str)] = &[
        (r#"{"first":#}"#, "ok"),
        (r#"{"last":#}"#, "ok"),
        (r#"{"role":"user","first":#}"#, "ok"),
        (r#"{"contains":"e","last":#}"#, "ok"),
        (r#"{"range":{"start":0,"end":#}}"#, "ok"),
        (r#"{"range":{"start":#,"end":#}}"#, "ok"),
        (r#"{"range":{"start":#,"end":#},"contains":"e"}"#, "ok"),
        (r#"{"range":{"start":#,"end":1}}"#, "invalid_range"),
        (r#"{"from":#}"#, "ok"),
        (r#"{"to":#,"scope":"all"}"#, "ok"),
        (r#"{"batchIndex":#}"#, "batch_not_found"),
        (r#"{"version":#}"#, "version_not_found"),
    ];

    fn worked() -> Conversation {
        after(
            fresh(),
            &[
                &append(5),
                r#"{"operation":"MARK","indices":[2],"mark":"pinned"}"#,
                r#"{"operation":"TRUNCATE","keepLast":2}"#,
            ],
        )
    }

    #[test]
    fn a_huge_number_is_answered_wherever_a_number_stands() {
        for talk in [fresh(), worked()] {
            for (template, expected) in REQUESTS {
                for number in HUGE {
                    let request = template.replace('#', number);
                    let answer = send(&talk, &request, 9);
                    assert_eq!(verdict(&answer), *expected, "{request}");
                    if let Ok((next, outcome)) = answer {
                        next.verify().unwrap_or_else(|fault| panic!("{request}: {fault}"));
                        outcome.to_json();
                    }
                }
            }
            for (template, expected) in QUERIES {
                for number in HUGE {
                    let query = template.replace('#', number);
                    let answer = Query::from_json(&query).and_then(|query| talk.ask(&query));
                    assert_eq!(verdict(&answer), *expected, "{query}");
                }
            }
        }
    }

    #[test]
    fn zero_is_a_number_like_any_other() {
        for talk in [fresh(), worked()] {
            for (template, _) in REQUESTS {
                let request = template.replace('#', "0");
                if let Ok((next, _)) = send(&talk, &request, 9) {
                    next.verify().unwrap_or_else(|fault| panic!("{request}: {fault}"));
                }
            }
            for (template, _) in QUERIES {
                let query = template.replace('#', "0");
                let answer = Query::from_json(&query).and_then(|query| talk.ask(&query));
                assert_eq!(verdict(&answer), "ok", "{query}");
            }
        }
    }

    #[test]
    fn the_last_number_that_fits_and_the_first_that_does_not() {
        // Version 3, batches 0 and 1, log of 5, view of 3: the pinned entry and the last two.
        let talk = worked();
        assert_eq!(view(&talk), [2, 3, 4]);
        let cases = [
            (
                r#"{"operation":"INSERT","position":#,"messages":[{"role":"user","content":"x"}]}"#,
                3,
            ),
            (r#"{"operation":"REPLACE","index":#,"message":{"role":"user","content":"x"}}"#, 2),
            (r#"{"operation":"RESTORE","indices":[#]}"#, 4),
            (r#"{"operation":"DELETE","indices":[#]}"#, 4),
            (r#"{"operation":"BATCH_START","boundary":#}"#, 5),
            (r#"{"operation":"ROLLBACK","targetBatchIndex":#}"#, 1),
            (r#"{"operation":"ROLLBACK","targetVersion":#}"#, 3),
        ];
        for (template, last) in cases {
            let ask = |number: i32| send(&talk, &template.replace('#', &number.to_string()), 9);
            assert_eq!(verdict(&ask(last)), "ok", "{template} {last}");
            assert_ne!(verdict(&ask(last + 1)), "ok", "{template} {}", last + 1);
        }
    }

    #[test]
    fn a_timestamp_is_any_whole_number_of_64_bits() {
        let cases = [
            ("0", "ok"),
            ("-1", "ok"),
            ("9223372036854775807", "ok"),
            ("-9223372036854775808", "ok"),
            ("9223372036854775808", "invalid_message"),
            (THIRTY_DIGITS, "invalid_message"),
            ("1e3", "invalid_message"),
            ("1.0", "invalid_message"),
            ("\"1\"", "invalid_message"),
        ];
        for (number, expected) in cases {
            let json = format!(r#"{{"role":"user","content":"x","timestamp":{number}}}"#);
            let message = Message::from_json(&json);
            assert_eq!(verdict(&message), expected, "{json}");
            if let Ok(message) = message {
                let (talk, _) = fresh().append([message], i64::MIN).expect("it is accepted");
                let all = talk.by_time_range(i64::MIN..i64::MAX).expect("it is a range");
                assert_eq!(all.len(), usize::from(number != "9223372036854775807"), "{number}");
            }
        }
    }

    #[test]
    fn rust_may_ask_for_places_that_do_not_exist() {
        for talk in [fresh(), worked()] {
            let view = talk.view();
            let len = view.len();
            assert_eq!(view.get(Position(usize::MAX)), None);
            assert_eq!(view.position_of(LogIndex(u32::MAX)), None);
            assert_eq!(view.nth_of(RoleSet::ALL, usize::MAX), None);
            assert_eq!(view.tokens_in(..=usize::MAX), view.tokens());
            assert_eq!(view.tokens_in(usize::MAX..), 0);
            assert_eq!(view.tokens_in(usize::MAX..=usize::MAX), 0);
            assert_eq!(view.count_of(RoleSet::NONE), 0);
            assert!(talk.log().get(LogIndex(u32::MAX)).is_none());
            assert!(talk.log().tokens(LogIndex(u32::MAX)).is_none());
            assert_eq!(talk.recent(usize::MAX).map(|hits| hits.len()), Ok(len));
            assert_eq!(talk.recent(0).map(|hits| hits.len()), Ok(0));
            assert_eq!(talk.range(usize::MAX..usize::MAX).map(|hits| hits.len()), Ok(0));
            assert_eq!(talk.range(0..usize::MAX).map(|hits| hits.len()), Ok(len));
            for pick in
                [Pick::First(usize::MAX), Pick::Last(usize::MAX), Pick::Range(0..usize::MAX)]
            {
                for contains in [None, Some(vec!["x".to_owned()])] {
                    let query = Query { contains, pick: pick.clone(), ..Query::default() };
                    assert_eq!(talk.ask(&query).map(|hits| hits.len()), Ok(len), "{query:?}");
                }
            }
        }
    }

    #[test]
    fn counts_that_overflow_are_cut_not_wrapped() {
        let settings = Settings { media_tokens: u64::MAX, ..Settings::counting_with(Approx) };
        let start = Conversation::new(settings, 0).expect("the settings are right");
        let image = r#"{"role":"user","content":[{"type":"image"},{"type":"audio"}]}"#;
        let image = Message::from_json(image).expect("it is well-formed");
        let (talk, _) = start.append(vec![image; 3], 1).expect("it is accepted");
        assert_eq!(talk.view().tokens(), 3 * recto_core::MAX_MESSAGE_TOKENS);
        let (cut, _) = talk.apply(Fit::into_tokens(1 << 31), 2).expect("two of them fit");
        assert_eq!(view(&cut), [1, 2]);
        cut.verify().expect("it holds together");
    }
}

mod depth {
    use super::*;

    const DEEP: usize = 100_000;

    fn nested(depth: usize) -> String {
        "[".repeat(depth) + &"]".repeat(depth)
    }

    fn nested_objects(depth: usize) -> String {
        r#"{"a":"#.repeat(depth) + "1" + &"}".repeat(depth)
    }

    /// Messages with JSON this deep in every place that takes any.
    fn messages(depth: usize) -> Vec<String> {
        [nested(depth), nested_objects(depth)]
            .iter()
            .flat_map(|deep| {
                [
                    format!(r#"{{"role":"user","content":"x","metadata":{deep}}}"#),
                    format!(r#"{{"role":"user","content":"x","unknown":{deep}}}"#),
                    format!(r#"{{"role":"user","content":[{{"type":"hologram","x":{deep}}}]}}"#),
                    format!(r#"{{"role":"user","content":[{{"type":"image","x":{deep}}}]}}"#),
                    format!(
                        r#"{{"role":"assistant","content":[{{"type":"tool_use","id":"c","name":"n","input":{deep}}}]}}"#
                    ),
                ]
            })
            .collect()
    }

    /// Tool results inside tool results.
    fn results_in_results(depth: usize) -> String {
        let open = r#"[{"type":"tool_result","tool_use_id":"c","content":"#;
        let close = "}]";
        let inner = open.repeat(depth) + "\"x\"" + &close.repeat(depth);
        format!(r#"{{"role":"tool","content":{inner}}}"#)
    }

    #[test]
    fn deep_messages_are_too_large_by_default() {
        on_a_small_stack(|| {
            for json in messages(DEEP).iter().chain([&results_in_results(DEEP)]) {
                assert_eq!(verdict(&Message::from_json(json)), "too_large");
                let request = format!(r#"{{"operation":"APPEND","messages":[{json}]}}"#);
                assert_eq!(verdict(&Request::from_json(&request)), "too_large");
            }
        });
    }

    #[test]
    fn without_limits_deep_messages_are_kept_as_they_came() {
        on_a_small_stack(|| {
            for json in messages(DEEP) {
                let message =
                    Message::from_json_within(&json, &Limits::NONE).expect("there is no limit");
                assert_eq!(message.json(), json);
                let (talk, _) = fresh().append([message], 1).expect("it is accepted");
                let searched = talk.search("[[[[").expect("it is a question").len();
                let is_input = json.contains("tool_use") && json.contains("[[[[");
                assert_eq!(searched, usize::from(is_input), "only an input has a text");
                assert_eq!(talk.messages().next().map(Message::json), Some(&*json));
            }
        });
    }

    #[test]
    fn without_limits_results_in_results_do_not_overrun_the_stack() {
        on_a_small_stack(|| {
            let json = results_in_results(1_000);
            let message = Message::from_json_within(&json, &Limits::NONE).expect("no limit");
            assert_eq!(message.json(), json);
            assert_eq!(message.text(), "x");
        });
    }

    #[test]
    fn deep_content_that_is_no_part_is_refused() {
        on_a_small_stack(|| {
            let deep = format!(r#"{{"role":"user","content":{}}}"#, nested(DEEP));
            assert_eq!(verdict(&Message::from_json(&deep)), "too_large");
            let read = Message::from_json_within(&deep, &Limits::NONE);
            assert_eq!(verdict(&read), "invalid_message");
        });
    }

    #[test]
    fn deep_requests_and_queries_are_refused() {
        on_a_small_stack(|| {
            let (lists, objects) = (nested(DEEP), nested_objects(DEEP));
            for deep in [&lists, &objects] {
                let requests = [
                    deep.clone(),
                    format!(r#"{{"op":{deep}}}"#),
                    format!(r#"{{"ops":{deep}}}"#),
                    format!(r#"{{"ops":[{deep}]}}"#),
                    format!(r#"{{"operation":{deep}}}"#),
                    format!(r#"{{"operation":"CLEAR","description":{deep}}}"#),
                    format!(r#"{{"operation":"CLEAR","x":{deep}}}"#),
                    format!(r#"{{"operation":"DELETE","indices":{deep}}}"#),
                    format!(r#"{{"operation":"DELETE","indices":[{deep}]}}"#),
                    format!(r#"{{"operation":"TRUNCATE","keepLast":{deep}}}"#),
                    format!(r#"{{"operation":"TRUNCATE","range":{deep}}}"#),
                    format!(r#"{{"operation":"FILTER","contentContains":{deep}}}"#),
                    format!(r#"{{"operation":"truncate","truncate":{deep}}}"#),
                    format!(r#"{{"operation":"BATCH_END","targetBatchIndex":0,"carry":{deep}}}"#),
                ];
                for request in requests {
                    for limits in [Limits::default(), Limits::NONE] {
                        let read = Request::from_json_within(&request, &limits);
                        let start: String = request.chars().take(60).collect();
                        assert_eq!(verdict(&read), "invalid_operation", "{start}");
                        let error = read.expect_err("it was refused").to_string();
                        assert!(error.len() < 1_000, "{start}: {} bytes", error.len());
                    }
                }
                for query in [deep.clone(), format!(r#"{{"contains":{deep}}}"#)] {
                    assert_eq!(verdict(&Query::from_json(&query)), "invalid_operation");
                }
                let cut = &deep[..deep.len() - 1];
                assert_eq!(verdict(&Request::from_json(cut)), "invalid_json");
                assert_eq!(verdict(&Message::from_json(cut)), "invalid_json");
                assert_eq!(verdict(&Query::from_json(cut)), "invalid_json");
            }
        });
    }

    #[test]
    fn deep_tools_are_refused() {
        for deep in [nested(DEEP), nested_objects(DEEP)] {
            let schema = format!(r#"[{{"name":"a","description":"b","schema":{deep}}}]"#);
            for list in [deep, schema] {
                assert_eq!(verdict(&Tool::list_from_json(&list)), "too_large");
            }
        }
    }
}

mod sizes {
    use super::*;

    fn of_size(bytes: usize) -> String {
        let frame = r#"{"role":"user","content":""}"#.len();
        format!(r#"{{"role":"user","content":"{}"}}"#, "x".repeat(bytes - frame))
    }

    fn of_depth(depth: usize) -> String {
        let inner = (1..depth).fold("1".to_owned(), |inner, _| format!("[{inner}]"));
        format!(r#"{{"role":"user","content":"x","y":{inner}}}"#)
    }

    #[test]
    fn a_limit_is_what_is_still_allowed() {
        let request = |messages: &[String]| {
            Request::from_json(&format!(
                r#"{{"operation":"APPEND","messages":[{}]}}"#,
                messages.join(",")
            ))
        };
        let small = || of_depth(1);
        let cases = [
            (request(&[of_size(4 << 20)]), "ok"),
            (request(&[of_size((4 << 20) + 1)]), "too_large"),
            (request(&[of_depth(64)]), "ok"),
            (request(&[of_depth(65)]), "too_large"),
            (request(&vec![small(); 10_000]), "ok"),
            (request(&vec![small(); 10_001]), "too_large"),
        ];
        for (number, (read, expected)) in cases.iter().enumerate() {
            assert_eq!(verdict(read), *expected, "case {number}");
        }
    }

    #[test]
    fn the_messages_of_all_operations_count_together() {
        let one = append(1);
        let list = |count: usize| format!(r#"{{"ops":[{}]}}"#, vec![&*one; count].join(","));
        assert_eq!(verdict(&Request::from_json(&list(10_000))), "ok");
        assert_eq!(verdict(&Request::from_json(&list(10_001))), "too_large");
    }

    #[test]
    fn limits_of_zero_refuse_every_message() {
        let zero = Limits { message_bytes: 0, depth: 0, messages: 0 };
        let json = of_depth(1);
        assert_eq!(verdict(&Message::from_json_within(&json, &zero)), "too_large");
        let read = Request::from_json_within(&append(1), &zero);
        assert_eq!(verdict(&read), "too_large");
        let clear = Request::from_json_within(r#"{"operation":"CLEAR"}"#, &zero);
        assert_eq!(verdict(&clear), "ok");
    }

    #[test]
    fn a_million_messages_are_too_many_for_one_request() {
        let zeros = vec!["0"; 1_000_000].join(",");
        let request = format!(r#"{{"operation":"APPEND","messages":[{zeros}]}}"#);
        assert_eq!(verdict(&Request::from_json(&request)), "too_large", "before any is read");
    }

    #[test]
    fn without_limits_a_hundred_thousand_messages_are_one_request() {
        let request =
            Request::from_json_within(&append(100_000), &Limits::NONE).expect("there is no limit");
        let (talk, _) = fresh().apply(request, 1).expect("it is accepted");
        assert_eq!(talk.view().len(), 100_000);
    }

    /// A tool may print more than a message from outside may hold, and its input may be deep: the
    /// limits are for what is read from JSON.
    #[test]
    fn large_texts_of_the_programs_own_do_not_panic() {
        let text = "x".repeat(5 << 20);
        assert_eq!(Message::tool_result("c", &text).text().len(), text.len());
        assert_eq!(Message::user(&text).text().len(), text.len());
        assert_eq!(Message::assistant(&text).text().len(), text.len());
        assert_eq!(Message::system(&text).text().len(), text.len());
        let deep = (0..100).fold(serde_json::json!(1), |inner, _| serde_json::json!([inner]));
        let call = Message::tool_call("c", "f", &deep);
        assert_eq!(call.tool_calls().map(|call| call.id).collect::<Vec<_>>(), ["c"]);
        let long = Message::tool_call("c", "f", &serde_json::json!(text));
        assert_eq!(long.tool_calls().count(), 1);
    }

    #[test]
    fn an_unknown_field_of_a_megabyte_is_named_in_short() {
        let name = "k".repeat(1 << 20);
        let error = Request::from_json(&format!(r#"{{"operation":"CLEAR","{name}":1}}"#))
            .expect_err("there is no such field");
        assert_eq!(error.code(), Code::InvalidOperation);
        assert!(error.to_json().to_string().len() < 1_000, "an error is for reading");
    }
}

mod nothing {
    use super::*;

    /// Every operation on an empty conversation: refused, or the length of the view afterwards.
    const OPERATIONS: &[(&str, Result<usize, &str>)] = &[
        (r#"{"operation":"APPEND","messages":[{"role":"tool","content":""}]}"#, Ok(1)),
        (
            r#"{"operation":"INSERT","position":0,"messages":[{"role":"user","content":"x"}]}"#,
            Ok(1),
        ),
        (
            r#"{"operation":"REPLACE","index":0,"message":{"role":"user","content":"x"}}"#,
            Err("index_out_of_range"),
        ),
        (r#"{"operation":"DELETE","indices":[0]}"#, Err("index_out_of_range")),
        (r#"{"operation":"COMPRESS","indices":[0]}"#, Err("index_out_of_range")),
        (
            r#"{"operation":"COMPRESS","indices":[0],"summary":{"role":"user","content":"x"}}"#,
            Err("index_out_of_range"),
        ),
        (r#"{"operation":"TRUNCATE","keepFirst":1}"#, Ok(0)),
        (r#"{"operation":"TRUNCATE","keepLast":0}"#, Ok(0)),
        (r#"{"operation":"TRUNCATE","range":{"start":0,"end":0}}"#, Ok(0)),
        (r#"{"operation":"TRUNCATE","role":"user","keepOthers":true,"scope":"all"}"#, Ok(0)),
        (r#"{"operation":"FILTER","roles":["user"]}"#, Ok(0)),
        (r#"{"operation":"FILTER","contentContains":["x"],"scope":"all"}"#, Ok(0)),
        (r#"{"operation":"CLEAR"}"#, Ok(0)),
        (r#"{"operation":"CLEAR","keepSystemMessage":false,"scope":"all"}"#, Ok(0)),
        (r#"{"operation":"RESTORE","indices":[0]}"#, Err("index_out_of_range")),
        (r#"{"operation":"FIT","maxTokens":0}"#, Ok(0)),
        (r#"{"operation":"BATCH_START"}"#, Ok(0)),
        (r#"{"operation":"BATCH_START","boundary":0}"#, Ok(0)),
        (r#"{"operation":"BATCH_START","boundary":1}"#, Err("index_out_of_range")),
        (r#"{"operation":"BATCH_END","targetBatchIndex":0,"carry":"all"}"#, Ok(0)),
        (r#"{"operation":"BATCH_END","targetBatchIndex":1}"#, Err("batch_not_found")),
        (r#"{"operation":"ROLLBACK","targetBatchIndex":0}"#, Ok(0)),
        (r#"{"operation":"ROLLBACK","targetVersion":0}"#, Ok(0)),
        (r#"{"operation":"ROLLBACK","targetVersion":1}"#, Err("version_not_found")),
        (r#"{"operation":"MARK","indices":[0],"mark":"x"}"#, Err("index_out_of_range")),
        (r#"{"operation":"UNMARK","indices":[0],"mark":"x"}"#, Err("index_out_of_range")),
        (r#"{"operation":"UNDO"}"#, Err("nothing_to_undo")),
        (r#"{"operation":"REDO"}"#, Err("nothing_to_redo")),
    ];

    #[test]
    fn every_operation_is_answered_in_an_empty_conversation() {
        for (request, expected) in OPERATIONS {
            let answer = send(&fresh(), request, 1);
            let found = answer.as_ref().map(|(next, _)| next.view().len());
            assert_eq!(found.map_err(|error| error.code().as_str()), *expected, "{request}");
            if let Ok((next, outcome)) = answer {
                next.verify().unwrap_or_else(|fault| panic!("{request}: {fault}"));
                outcome.to_json();
            }
        }
    }

    #[test]
    fn every_question_is_answered_in_an_empty_conversation() {
        let talk = fresh();
        let queries = [
            "{}",
            r#"{"scope":"all"}"#,
            r#"{"role":"user","last":3}"#,
            r#"{"roles":["user","tool"],"first":0}"#,
            r#"{"contains":"x","excludes":["y"]}"#,
            r#"{"mark":"pinned"}"#,
            r#"{"from":0,"to":9}"#,
            r#"{"range":{"start":0,"end":0}}"#,
            r#"{"batchIndex":0}"#,
            r#"{"version":0,"scope":"all"}"#,
        ];
        for query in queries {
            let answer = Query::from_json(query).and_then(|query| talk.ask(&query));
            assert_eq!(answer.map(|hits| hits.len()), Ok(0), "{query}");
        }
        assert_eq!(talk.view().tokens(), 0);
        assert_eq!(talk.messages().count(), 0);
        assert_eq!(talk.versions().count(), 1);
        assert_eq!(talk.diff(Version(0), Version(0)), Ok(recto_core::Diff::default()));
        assert!(talk.blame(LogIndex(0)).is_err());
        assert_eq!(talk.snapshot(BatchIndex(0)).map(|batch| batch.view.len()), Ok(0));
        assert_eq!(talk.mark_map().unwrap().batch_boundaries, [LogIndex(0)]);
        assert!(talk.set_tools(tools(&[]), 1).is_ok());
        let at = talk.at(Version(0)).expect("it always exists");
        assert_eq!(fingerprint(&at), fingerprint(&talk));
        talk.verify().expect("it holds together");
    }
}

mod lists {
    use super::*;

    const VIEW: usize = 100_000;

    /// A million numbers that name every entry of [`VIEW`] ten times, in no good order.
    fn million() -> Vec<LogIndex> {
        (0..1_000_000).map(|number| LogIndex((number * 7_919 % VIEW) as u32)).collect()
    }

    #[test]
    fn a_million_indices_are_one_request() {
        let talk = long(VIEW);
        let listed: Vec<String> = million().iter().map(LogIndex::to_string).collect();
        let request = format!(r#"{{"operation":"DELETE","indices":[{}]}}"#, listed.join(","));
        let (empty, outcome) = send(&talk, &request, 2).expect("it is accepted");
        assert_eq!((empty.view().len(), outcome.hidden().len()), (0, VIEW));

        let ask = |talk: &Conversation, operation: Operation| {
            talk.apply(operation, 2).expect("it is accepted")
        };
        let (back, outcome) = ask(&empty, Restore { indices: million() }.into());
        assert_eq!((back.view().len(), outcome.shown().len()), (VIEW, VIEW));
        assert!(back.view().iter().eq(talk.view().iter()), "all are where they were");
        let summary = Some(Message::user("s"));
        let (one, outcome) = ask(&talk, Compress { indices: million(), summary }.into());
        assert_eq!((view(&one), outcome.hidden().len()), (vec![VIEW], VIEW));
        let mark = PINNED.to_owned();
        let (marked, _) = ask(&talk, Mark { indices: million(), mark: mark.clone() }.into());
        assert_eq!(marked.marks().with(PINNED).count(), VIEW);
        let none = Truncate { keep_last: Some(0), ..Truncate::default() };
        let (kept, _) = ask(&marked, none.into());
        assert_eq!(kept.view().len(), VIEW, "pinned entries stay");
        let (bare, _) = ask(&marked, Unmark { indices: million(), mark }.into());
        assert_eq!(bare.marks().labels().count(), 0);
    }

    #[test]
    fn one_wrong_index_in_a_million_is_found() {
        let talk = long(VIEW);
        let mut indices = million();
        indices[500_000] = LogIndex(VIEW as u32);
        assert_eq!(verdict(&talk.apply(Delete { indices }, 2)), "index_out_of_range");
        assert_eq!((talk.version(), talk.view().len()), (Version(1), VIEW));
    }

    #[test]
    fn a_hundred_thousand_words_are_sought_at_once() {
        let talk = after(
            fresh(),
            &[r#"{"operation":"APPEND","messages":[
                {"role":"user","content":"it is word99999 that is sought"},
                {"role":"user","content":"nothing here"},
                {"role":"user","content":"nor word here"}]}"#],
        );
        let words: Vec<String> = (10_000..110_000).map(|n| format!("\"word{n}\"")).collect();
        let words = words.join(",");
        for (field, left) in [("contentContains", vec![0]), ("contentExcludes", vec![1, 2])] {
            let request = format!(r#"{{"operation":"FILTER","{field}":[{words}]}}"#);
            let (next, _) = send(&talk, &request, 2).expect("it is accepted");
            assert_eq!(view(&next), left, "{field}");
            let described = next.versions().next_back().expect("it has versions").description;
            assert!(described.len() < 1_000, "a description is for reading");
        }
        let query = format!(r#"{{"contains":[{words}]}}"#);
        let hits = Query::from_json(&query).and_then(|query| talk.ask(&query)).expect("an answer");
        assert_eq!(hits.len(), 1);
    }

    #[test]
    fn ten_thousand_operations_are_one_version() {
        let operations = [
            append(1),
            r#"{"operation":"DELETE","indices":[0]}"#.to_owned(),
            r#"{"operation":"BATCH_START"}"#.to_owned(),
            r#"{"operation":"MARK","indices":[0],"mark":"m"}"#.to_owned(),
        ];
        let list: Vec<&str> = operations.iter().map(|op| &**op).cycle().take(10_000).collect();
        let request = format!(r#"{{"ops":[{}]}}"#, list.join(","));
        let (talk, outcome) = send(&fresh(), &request, 1).expect("it is accepted");
        assert_eq!(talk.version(), Version(1));
        assert_eq!(outcome.stats().total_messages, 2_500);
        assert_eq!(outcome.stats().total_batches, 5_001);
        assert_eq!(outcome.added().len(), 2_500);
        assert_eq!(talk.blame(LogIndex(2_499)).map(|blame| blame.len()), Ok(1));
        let (back, _) = talk.apply(Undo, 2).expect("it can be taken back");
        assert_eq!((back.view().len(), back.stats().total_batches), (0, 1));
    }
}

mod crowds {
    use super::*;

    fn parts(count: usize, part: impl Fn(usize) -> String) -> String {
        (0..count).map(part).collect::<Vec<_>>().join(",")
    }

    fn call(number: usize) -> String {
        format!(r#"{{"type":"tool_use","id":"c{number}","name":"f","input":{{}}}}"#)
    }

    fn result(number: usize) -> String {
        format!(r#"{{"type":"tool_result","tool_use_id":"c{number}","content":"r"}}"#)
    }

    fn message(role: &str, parts: &str) -> Message {
        let json = format!(r#"{{"role":"{role}","content":[{parts}]}}"#);
        Message::from_json_within(&json, &Limits::NONE).expect("it is well-formed")
    }

    fn torn(outcome: &recto_core::Outcome) -> Vec<(WarningCode, usize)> {
        outcome.warnings().iter().map(|warning| (warning.code, warning.indices.len())).collect()
    }

    #[test]
    fn a_message_of_a_hundred_thousand_parts_is_a_message() {
        let text = message("user", &parts(100_000, |_| r#"{"type":"text","text":"a"}"#.into()));
        assert_eq!(text.text().len(), 199_999);
        let (talk, _) = fresh().append([text], 1).expect("it is accepted");
        assert_eq!(talk.view().tokens(), 50_003);
    }

    #[test]
    fn every_image_of_a_hundred_thousand_counts() {
        let json = format!(
            r#"{{"role":"user","content":[{}]}}"#,
            parts(100_000, |_| r#"{"type":"file"}"#.into())
        );
        let files = Message::from_json(&json).expect("it is below the default limits");
        assert_eq!(files.media(), 100_000);
        let (talk, _) = fresh().append([files], 1).expect("it is accepted");
        assert_eq!(talk.view().tokens(), 100_000 * 1_000 + 3);
    }

    #[test]
    fn a_hundred_thousand_calls_in_one_message_keep_their_results() {
        const CALLS: usize = 100_000;
        let calls = message("assistant", &parts(CALLS, call));
        let results = message("tool", &parts(CALLS, result));
        let talk = fresh();
        let (talk, outcome) = talk.append([calls, results, Message::user("x")], 1).expect("ok");
        assert_eq!(torn(&outcome), []);
        let tokens = talk.view().tokens();
        let (fitted, _) = talk.apply(Fit::into_tokens(tokens - 1), 2).expect("something fits");
        assert_eq!(view(&fitted), [2], "a run does not start between a call and its result");
        let (cut, outcome) =
            send(&talk, r#"{"operation":"DELETE","indices":[1]}"#, 2).expect("it is accepted");
        assert_eq!(torn(&outcome), [(WarningCode::TornCall, 1)]);
        let (cut, outcome) =
            send(&cut, r#"{"ops":[{"operation":"RESTORE","indices":[1]},{"operation":"DELETE","indices":[0]}]}"#, 3)
                .expect("it is accepted");
        assert_eq!(torn(&outcome), [(WarningCode::TornResult, 1)]);
        cut.verify().expect("it holds together");
    }

    #[test]
    fn ten_thousand_torn_exchanges_are_warned_of_and_edited() {
        const EXCHANGES: usize = 10_000;
        let calls = (0..EXCHANGES).map(|n| message("assistant", &call(n)));
        let results = (0..EXCHANGES).map(|n| message("tool", &result(n)));
        let (talk, outcome) = fresh().append(calls.chain(results), 1).expect("it is accepted");
        assert_eq!(torn(&outcome), []);
        // All calls first, then all results: every start between them is inside an exchange.
        let budget = Fit::into_tokens(talk.view().tokens() - 1);
        let (fitted, _) = talk.apply(budget, 2).expect("the newest fit");
        assert!(fitted.view().is_empty(), "no run can start anywhere: {}", fitted.view().len());

        let truncate = Truncate { keep_first: Some(EXCHANGES), ..Truncate::default() };
        let (calls, outcome) = talk.apply(truncate.clone(), 2).expect("it is accepted");
        assert_eq!(torn(&outcome), [(WarningCode::TornCall, EXCHANGES)]);
        let last = Truncate { keep_last: Some(EXCHANGES), ..Truncate::default() };
        let (results, outcome) = talk.apply(last, 2).expect("it is accepted");
        assert_eq!(torn(&outcome), [(WarningCode::TornResult, EXCHANGES)]);

        for torn_talk in [calls, results] {
            let tokens = torn_talk.view().tokens();
            let (half, _) = torn_talk.apply(Fit::into_tokens(tokens / 2), 3).expect("half fits");
            assert_eq!(half.view().len(), EXCHANGES / 2, "a torn exchange is no obstacle");
            let middle = format!(
                r#"{{"operation":"INSERT","position":{},"messages":[{{"role":"user","content":"x"}}]}}"#,
                EXCHANGES / 2
            );
            let (edited, outcome) = send(&torn_talk, &middle, 3).expect("it is accepted");
            assert_eq!(outcome.warnings()[0].indices.len(), EXCHANGES);
            assert_eq!(
                edited.view().get(Position(EXCHANGES / 2)),
                Some(LogIndex(2 * EXCHANGES as u32))
            );
        }
    }

    #[test]
    fn a_thousand_calls_of_one_id_are_paired_off() {
        const COUNT: usize = 1_000;
        let calls = (0..COUNT).map(|_| message("assistant", &call(0)));
        let results = (0..COUNT).map(|_| message("tool", &result(0)));
        let (talk, outcome) = fresh().append(calls.chain(results), 1).expect("it is accepted");
        assert_eq!(torn(&outcome), []);
        let (fitted, _) = talk.apply(Fit::into_tokens(100), 2).expect("something fits");
        assert!(fitted.view().is_empty());
        let (cut, outcome) =
            send(&talk, r#"{"operation":"DELETE","indices":[0]}"#, 2).expect("it is accepted");
        assert_eq!(torn(&outcome), [(WarningCode::TornResult, 1)]);
        cut.verify().expect("it holds together");
    }
}

mod histories {
    use super::*;

    const LONG: usize = 100_000;

    fn repeat(
        start: Conversation,
        times: usize,
        request: impl Into<Request> + Clone,
    ) -> Conversation {
        (0..times).fold(start, |talk, _| talk.apply(request.clone(), 1).expect("it is accepted").0)
    }

    #[test]
    fn a_hundred_thousand_batches_can_be_left_and_reached() {
        on_a_small_stack(|| {
            let talk = repeat(fresh(), LONG, BatchStart::default());
            assert_eq!(talk.stats().total_batches, LONG + 1);
            for batch in [0, 1, LONG / 2, LONG - 1, LONG] {
                let (back, _) = talk
                    .apply(Rollback::ToBatch(BatchIndex(batch)), 2)
                    .expect("it is on the live path");
                assert_eq!(back.stats().current_batch_index, BatchIndex(batch));
                assert_eq!(talk.snapshot(BatchIndex(batch)).map(|found| found.batch.0), Ok(batch));
            }
            assert_eq!(talk.mark_map().unwrap().boundary_to_batch.len(), LONG + 1);
            let early = talk.at(Version(10)).expect("it exists");
            drop(talk);
            assert_eq!(early.stats().total_batches, 11);
        });
    }

    #[test]
    fn a_hundred_thousand_requests_can_be_taken_back_and_put_back() {
        on_a_small_stack(|| {
            let append = Append { messages: vec![Message::user("x")] };
            let full = repeat(fresh(), LONG, append);
            let empty = repeat(full.clone(), LONG, Undo);
            assert_eq!((empty.view().len(), empty.version()), (0, Version(2 * LONG as u32)));
            assert_eq!(verdict(&empty.apply(Undo, 1)), "nothing_to_undo");
            let again = repeat(empty, LONG, Redo);
            assert_eq!(again.view().len(), LONG);
            assert_eq!(verdict(&again.apply(Redo, 1)), "nothing_to_redo");
            assert!(again.view().iter().eq(full.view().iter()));
            let (back, _) = again.apply(Undo, 1).expect("the newest can be taken back");
            assert_eq!(back.view().len(), LONG - 1);
            assert_eq!(again.blame(LogIndex(0)).map(|blame| blame.len()), Ok(3));
        });
    }

    #[test]
    fn a_hundred_thousand_edits_of_one_view_are_all_kept() {
        let mut talk = long(1_000);
        for number in 0..LONG as u32 {
            let index = number % 1_000;
            let name = if number / 1_000 % 2 == 0 { "DELETE" } else { "RESTORE" };
            let request = format!(r#"{{"operation":"{name}","indices":[{index}]}}"#);
            talk = send(&talk, &request, 1).expect("it is accepted").0;
        }
        assert_eq!(talk.view().len(), 1_000);
        assert_eq!(talk.at(Version(1_001)).map(|at| at.view().len()), Ok(0));
        assert_eq!(talk.at(Version(501)).map(|at| at.view().len()), Ok(500));
        let diff = talk.diff(Version(1), Version(501)).expect("both exist");
        assert_eq!(diff.hidden.indices.len(), 500);
        let query = Query { moment: Moment::Version(Version(501)), ..Query::default() };
        assert_eq!(talk.ask(&query).map(|hits| hits.len()), Ok(500));
        assert_eq!(talk.blame(LogIndex(7)).map(|blame| blame.len()), Ok(101));
    }

    #[test]
    fn tools_may_change_ten_thousand_times() {
        let names: Vec<String> = (0..10_000).map(|number| format!("tool{number}")).collect();
        let mut talk = with_tools(&["first"]);
        for name in &names {
            talk = talk.set_tools(tools(&[name]), 1).expect("it is accepted").0;
        }
        assert_eq!((talk.view().len(), talk.log().len()), (1, 10_001));
        assert_eq!(talk.count_by_role(Role::System), 1);
    }
}
