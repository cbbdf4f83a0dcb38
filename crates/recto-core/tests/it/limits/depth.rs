//! Deeply nested JSON.

use super::*;

const DEEP: usize = 100_000;

fn nested(depth: usize) -> String {
    "[".repeat(depth) + &"]".repeat(depth)
}

fn nested_objects(depth: usize) -> String {
    r#"{"a":"#.repeat(depth) + "1" + &"}".repeat(depth)
}

/// Messages with JSON of this depth in every field that accepts any JSON.
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
            assert_eq!(code_of(&Message::from_json(json)), "too_large");
            let request = format!(r#"{{"operation":"APPEND","messages":[{json}]}}"#);
            assert_eq!(code_of(&Request::from_json(&request)), "too_large");
        }
    });
}

#[test]
fn without_limits_deep_messages_are_kept_unchanged() {
    on_a_small_stack(|| {
        for json in messages(DEEP) {
            let message =
                Message::from_json_within(&json, &Limits::NONE).expect("there is no limit");
            assert_eq!(message.json(), json);
            let (conversation, _) = fresh().append([message], 1).expect("it is accepted");
            let searched = conversation.search("[[[[").expect("the query is valid").len();
            let is_input = json.contains("tool_use") && json.contains("[[[[");
            assert_eq!(searched, usize::from(is_input), "only an input has a text");
            assert_eq!(conversation.messages().next().map(Message::json), Some(&*json));
        }
    });
}

#[test]
fn without_limits_results_in_results_do_not_overflow_the_stack() {
    on_a_small_stack(|| {
        let json = results_in_results(1_000);
        let message = Message::from_json_within(&json, &Limits::NONE).expect("no limit");
        assert_eq!(message.json(), json);
        assert_eq!(message.text(), "x");
    });
}

#[test]
fn deep_content_that_is_not_a_part_is_refused() {
    on_a_small_stack(|| {
        let deep = format!(r#"{{"role":"user","content":{}}}"#, nested(DEEP));
        assert_eq!(code_of(&Message::from_json(&deep)), "too_large");
        let read = Message::from_json_within(&deep, &Limits::NONE);
        assert_eq!(code_of(&read), "invalid_message");
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
                    assert_eq!(code_of(&read), "invalid_operation", "{start}");
                    let error = read.expect_err("it was refused").to_string();
                    assert!(error.len() < 1_000, "{start}: {} bytes", error.len());
                }
            }
            for query in [deep.clone(), format!(r#"{{"contains":{deep}}}"#)] {
                assert_eq!(code_of(&Query::from_json(&query)), "invalid_operation");
            }
            let cut = &deep[..deep.len() - 1];
            assert_eq!(code_of(&Request::from_json(cut)), "invalid_json");
            assert_eq!(code_of(&Message::from_json(cut)), "invalid_json");
            assert_eq!(code_of(&Query::from_json(cut)), "invalid_json");
        }
    });
}

#[test]
fn deep_tools_are_refused() {
    for deep in [nested(DEEP), nested_objects(DEEP)] {
        let schema = format!(r#"[{{"name":"a","description":"b","schema":{deep}}}]"#);
        for list in [deep, schema] {
            assert_eq!(code_of(&Tool::list_from_json(&list)), "too_large");
        }
    }
}
