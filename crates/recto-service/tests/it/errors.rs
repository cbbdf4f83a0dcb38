//! Errors of requests: the code, the field, and the suggested name.

use serde_json::json;

use crate::Session;

#[tokio::test]
async fn an_error_names_the_field_and_what_is_allowed() {
    let session = Session::with_conversation().await;
    for (request, field, part) in [
        (r#"{"create": 7}"#, "create", "must be a string, not 7"),
        (r#"{"create": "b", "create": "c"}"#, "create", "given twice"),
        (r#"{"create": "b", "conversation": "a"}"#, "create", "exclude each other"),
        (r#"{"create": "b", "setting": {}}"#, "setting", "did you mean settings?"),
        (
            r#"{"create": "b", "settings": {"counters": "approx"}}"#,
            "settings.counters",
            "did you mean counter?",
        ),
        (r#"{"create": "b", "settings": {"counter": "abacus"}}"#, "settings.counter", "o200k_base"),
        (
            r#"{"create": "b", "settings": {"tokenLimit": "many"}}"#,
            "settings.tokenLimit",
            "whole number",
        ),
        (
            r#"{"create": "b", "messages": [{"role": "user", "content": "x"}, {"role": "user"}]}"#,
            "messages[1].content",
            "",
        ),
        (r#"{"conversation": "a", "ask": {}, "stats": true}"#, "stats", "exclude each other"),
        (r#"{"conversation": "a", "op": {}, "ops": []}"#, "ops", "exclude each other"),
        (r#"{"conversation": "a", "ask": {}, "asks": {}}"#, "asks", "did you mean ask?"),
        (r#"{"conversation": "a", "markmap": true}"#, "markmap", "did you mean markMap?"),
        (r#"{"conversation": "a", "markMap": false}"#, "markMap", "true"),
        (r#"{"conversation": "a", "markMap": {"scope": "some"}}"#, "markMap.scope", "visible"),
        (r#"{"conversation": "a", "snapshot": -1}"#, "snapshot", "whole number from 0"),
        (r#"{"conversation": "a", "diff": {"from": 0}}"#, "diff.to", "missing"),
        (
            r#"{"conversation": "a", "diff": {"from": 0, "to": 0.5}}"#,
            "diff.to",
            "whole number from 0",
        ),
        (r#"{"conversation": "a", "render": "claude"}"#, "render", "anthropic"),
        (
            r#"{"conversation": "a", "op": {"operation": "CLEAR"}, "expectedVersion": "1"}"#,
            "expectedVersion",
            "whole number",
        ),
        (
            r#"{"conversation": "a", "op": {"operation": "CLEAR"}, "return": ["all"]}"#,
            "return[0]",
            "state",
        ),
        (
            r#"{"conversation": "a", "op": {"operation": "CLEAR", "keep": 1}}"#,
            "keep",
            "keepSystemMessage",
        ),
        (r#"{"conversation": "a", "ask": {"first": 1, "last": 1}}"#, "last", ""),
        (
            r#"{"conversation": "a", "settings": {"counter": "approx"}}"#,
            "settings.counter",
            "tokenLimit",
        ),
        (
            r#"{"conversation": "a", "render": "gemini", "fields": {"x": 1, "x": 2}}"#,
            "fields.x",
            "given twice",
        ),
        (r#"{"list": {"limit": 1, "befor": 2}}"#, "list.befor", "after, limit"),
        (r#"{"lists": true}"#, "lists", "did you mean list?"),
        (r#"{"settings": {}}"#, "conversation", "names a conversation"),
        (r#"{}"#, "conversation", "names a conversation"),
    ] {
        let error = session.refused(request).await;
        assert_eq!(error["field"], field, "{request}: {error}");
        assert!(error["message"].as_str().unwrap().contains(part), "{request}: {error}");
        let code = match field {
            "messages[1].content" => "invalid_message",
            _ => "invalid_operation",
        };
        assert_eq!(error["code"], code, "{request}: {error}");
    }
    let list = session.query(json!({ "list": true })).await;
    assert_eq!(list["conversations"].as_array().unwrap().len(), 1);
    assert_eq!(list["conversations"][0]["version"], 0, "nothing was done");
}

#[tokio::test]
async fn a_dry_run_of_a_rename_refuses_every_name_that_the_rename_refuses() {
    let session = Session::with_conversation().await;
    let long = "x".repeat(513);
    for name in ["@", "", "a\0b", "\u{1}x", &long, "0199f3a2-7c1e-7d44-9a5b-3f0e8c2d1b6a"] {
        for dry_run in [true, false] {
            let request = json!({ "conversation": "a", "rename": name, "dryRun": dry_run });
            let error = session.refused(&request.to_string()).await;
            assert_eq!(error["code"], "invalid_operation", "{request}: {error}");
        }
    }
    let request = json!({ "conversation": "a", "rename": "b", "dryRun": true });
    assert_eq!(session.query(request).await["to"], "b");
}

#[tokio::test]
async fn tools_that_no_provider_accepts_are_refused_when_they_are_set() {
    let session = Session::with_conversation().await;
    for tools in [
        json!([{"name": "t", "description": "d"}, {"name": "t", "description": "e"}]),
        json!([{"name": "", "description": "d"}]),
        json!([{"name": "t", "description": "d", "input_schema": 5}]),
        json!([{"name": "t", "description": "d", "parameters": []}]),
    ] {
        let set = json!({ "conversation": "a", "setTools": tools });
        let previewed = json!({ "conversation": "a", "setTools": tools, "dryRun": true });
        let created = json!({ "create": "b", "settings": { "tools": tools } });
        for (request, field) in
            [(set, "setTools"), (previewed, "setTools"), (created, "settings.tools")]
        {
            let error = session.refused(&request.to_string()).await;
            assert_eq!(error["code"], "invalid_operation", "{request}: {error}");
            assert_eq!(error["field"], field, "{request}: {error}");
        }
    }
    let tools = json!([{"name": "t", "description": "d", "input_schema": null}]);
    session.query(json!({ "conversation": "a", "setTools": tools })).await;
}

#[tokio::test]
async fn more_media_tokens_than_a_message_counts_are_refused() {
    let session = Session::with_conversation().await;
    let most = (1_u64 << 30) - 1;
    for tokens in [most + 1, u64::MAX] {
        let request = json!({ "create": "b", "settings": { "mediaTokens": tokens } });
        let error = session.refused(&request.to_string()).await;
        assert_eq!(error["code"], "invalid_operation", "{error}");
        assert!(error["message"].as_str().unwrap().contains("1073741823"), "{error}");
    }
    session.query(json!({ "create": "b", "settings": { "mediaTokens": most } })).await;
}

#[tokio::test]
async fn an_error_of_the_engine_names_the_field_of_the_request() {
    let session = Session::with_conversation().await;
    session.say(&["one", "two"]).await;
    for (request, code, field) in [
        (r#""blame": 4"#, "index_out_of_range", "blame"),
        (r#""show": [0, 4]"#, "index_out_of_range", "show"),
        (r#""show": [0, 2], "at": 0"#, "index_out_of_range", "show"),
        (r#""show": [0], "at": 9"#, "version_not_found", "at"),
        (r#""show": true, "at": 9"#, "version_not_found", "at"),
        (r#""erase": [0, 4]"#, "index_out_of_range", "erase"),
        (r#""erase": [0, 4], "dryRun": true"#, "index_out_of_range", "erase"),
        (r#""erase": []"#, "invalid_operation", "erase"),
        (r#""tools": true, "at": 9"#, "version_not_found", "at"),
        (r#""marks": true, "at": 9"#, "version_not_found", "at"),
        (r#""markMap": true, "at": 9"#, "version_not_found", "at"),
        (r#""state": true, "at": 9"#, "version_not_found", "at"),
        (r#""tokens": true, "at": 9"#, "version_not_found", "at"),
        (r#""export": true, "at": 9"#, "version_not_found", "at"),
        (r#""render": "anthropic", "at": 9"#, "version_not_found", "at"),
        (r#""lint": "anthropic", "at": 9"#, "version_not_found", "at"),
        (r#""diff": {"from": 9, "to": 0}"#, "version_not_found", "diff.from"),
        (r#""diff": {"from": 0, "to": 9}"#, "version_not_found", "diff.to"),
        (r#""cachePlan": {"from": 9}"#, "version_not_found", "cachePlan.from"),
        (r#""cachePlan": {"from": 0, "to": 9}"#, "version_not_found", "cachePlan.to"),
        (r#""fork": {"name": "f", "at": 9}"#, "version_not_found", "fork.at"),
        (r#""snapshot": 9"#, "batch_not_found", "snapshot"),
        (r#""prune": {}"#, "invalid_operation", "prune"),
        (r#""prune": {"versions": [9]}"#, "version_not_found", "prune.versions"),
        (
            r#""settings": {"compression": {"enabled": true, "threshold": 9, "targetTokens": 5, "strategy": "x"}}"#,
            "invalid_operation",
            "settings.compression.strategy",
        ),
        (r#""settings": {"tools": [{"name": "t"}]}"#, "invalid_operation", "settings.tools"),
    ] {
        let error = session.refused(&format!(r#"{{"conversation": "a", {request}}}"#)).await;
        assert_eq!(
            (&error["code"], &error["field"]),
            (&json!(code), &json!(field)),
            "{request}: {error}"
        );
    }
}

#[tokio::test]
async fn error_messages_use_terms_of_json_and_not_of_the_parser() {
    let session = Session::with_conversation().await;
    for (request, field, message) in [
        (r#""log": 7"#, "log", "log must be true or an object with options, not 7"),
        (
            r#""log": {"limit": "x"}"#,
            "log.limit",
            "log.limit must be a whole number from 0, not \"x\"",
        ),
        (
            r#""log": {"before": -1}"#,
            "log.before",
            "log.before must be a whole number from 0, not -1",
        ),
        (r#""diff": [1, 2]"#, "diff", "diff must be an object, not a list"),
        (
            r#""diff": {"from": {}, "to": 0}"#,
            "diff.from",
            "diff.from must be a whole number from 0, not an object",
        ),
        (r#""erase": 7"#, "erase", "erase must be a list, not 7"),
        (r#""erase": [0, "x"]"#, "erase[1]", "erase[1] must be a whole number from 0, not \"x\""),
        (
            r#""show": {"a": 1}"#,
            "show",
            "show must be true for the view, or a list of log indices, not an object",
        ),
        (r#""show": [true]"#, "show[0]", "show[0] must be a whole number from 0, not true"),
        (
            r#""prune": {"versions": [0, null]}"#,
            "prune.versions[1]",
            "prune.versions[1] must be a whole number from 0, not null",
        ),
        (
            r#""export": {"scope": "some"}"#,
            "export.scope",
            "export.scope cannot be \"some\"; use visible, all",
        ),
        (r#""fork": "f""#, "fork", "fork must be an object, not \"f\""),
        (r#""fork": {}"#, "fork.name", "name is missing"),
        (r#""fork": {"name": 7}"#, "fork.name", "fork.name must be a string, not 7"),
        (r#""remove": "yes""#, "remove", "remove must be true, not \"yes\""),
        (r#""remove": true, "dryRun": 1"#, "dryRun", "dryRun must be true or false, not 1"),
        (
            r#""settings": {"compression": {"enabled": 1}}"#,
            "settings.compression.enabled",
            "settings.compression.enabled must be true or false, not 1",
        ),
        (
            r#""settings": {"compression": {}}"#,
            "settings.compression.enabled",
            "enabled is missing",
        ),
    ] {
        let error = session.refused(&format!(r#"{{"conversation": "a", {request}}}"#)).await;
        assert_eq!(
            (&error["field"], &error["message"]),
            (&json!(field), &json!(message)),
            "{request}"
        );
        assert_eq!(error["code"], "invalid_operation", "{request}");
    }
}

#[tokio::test]
async fn a_name_that_is_given_twice_is_refused_everywhere_but_in_messages() {
    let session = Session::with_conversation().await;
    session.say(&["one", "two"]).await;
    for (request, field) in [
        (r#""op": {"operation": "CLEAR", "operation": "UNDO"}"#, "operation"),
        (
            r#""op": {"operation": "TRUNCATE", "range": {"start": 0, "start": 1, "end": 2}}"#,
            "range.start",
        ),
        (
            r#""ops": [{"operation": "UNDO"}, {"operation": "MARK", "mark": "a", "mark": "b", "indices": [0]}]"#,
            "ops[1].mark",
        ),
        (r#""ask": {"first": 1, "first": 2}"#, "first"),
        (r#""count": {"role": "user", "role": "tool"}"#, "role"),
        (r#""setTools": [{"name": "a", "name": "b", "description": "d"}]"#, "setTools[0].name"),
        (
            r#""settings": {"tools": [{"name": "a", "description": "d", "description": "e"}]}"#,
            "settings.tools[0].description",
        ),
        (r#""settings": {"tokenLimit": 1, "tokenLimit": 2}"#, "settings.tokenLimit"),
        (r#""stats": true, "stats": true"#, "stats"),
    ] {
        let error = session.refused(&format!(r#"{{"conversation": "a", {request}}}"#)).await;
        let (code, field) = (json!("invalid_operation"), json!(field));
        assert_eq!((&error["code"], &error["field"]), (&code, &field), "{request}: {error}");
        assert!(error["message"].as_str().unwrap().contains("given twice"), "{request}: {error}");
    }
    let stats = session.of("stats", json!(true)).await;
    assert_eq!(stats["totalMessages"], 2, "nothing was done");
    // A message keeps its bytes.
    let message = r#"{"role":"user","content":"x","note":1,"note":2}"#;
    let request = format!(
        r#"{{"conversation": "a", "op": {{"operation": "APPEND", "messages": [{message}]}}}}"#
    );
    assert!(session.0.request(&request).await.starts_with(r#"{"version":2,"#));
    let shown = session.0.request(r#"{"conversation": "a", "show": [2]}"#).await;
    assert!(shown.contains(message), "{shown}");
}

#[tokio::test]
async fn errors_have_the_codes_of_the_contract() {
    let session = Session::with_conversation().await;
    session.say(&["one"]).await;
    for (request, code) in [
        ("", "invalid_json"),
        ("{", "invalid_json"),
        (r#"{"list": true} more"#, "invalid_json"),
        ("[]", "invalid_operation"),
        (r#""text""#, "invalid_operation"),
        (r#"{"conversation": "a"}"#, "invalid_operation"),
        (r#"{"conversation": "a", "op": null}"#, "invalid_operation"),
        (r#"{"create": "a"}"#, "conversation_exists"),
        (r#"{"conversation": "nobody", "ask": {}}"#, "conversation_not_found"),
        (
            r#"{"conversation": "a", "op": {"operation": "APPEND", "messages": [7]}}"#,
            "invalid_message",
        ),
        (
            r#"{"conversation": "a", "op": {"operation": "APPEND", "messages": [{"role": "user", "content": ""}]}}"#,
            "empty_content",
        ),
        (
            r#"{"conversation": "a", "op": {"operation": "UNDO"}, "expectedVersion": 9}"#,
            "version_conflict",
        ),
        (r#"{"conversation": "a", "state": true, "at": 99999999999}"#, "version_not_found"),
        (r#"{"conversation": "a", "diff": {"from": 0, "to": 9}}"#, "version_not_found"),
        (r#"{"conversation": "a", "blame": 4}"#, "index_out_of_range"),
        (r#"{"conversation": "a", "blame": 99999999999}"#, "index_out_of_range"),
        (r#"{"conversation": "a", "fork": {"name": "f", "at": 9}}"#, "version_not_found"),
        (r#"{"conversation": "a", "fork": {"name": "a"}}"#, "conversation_exists"),
        (r#"{"conversation": "a", "op": {"operation": "REDO"}}"#, "nothing_to_redo"),
    ] {
        let error = session.refused(request).await;
        assert_eq!(error["code"], code, "{request}: {error}");
        assert!(!error["message"].as_str().unwrap().is_empty());
    }
}

#[test]
fn errors_have_their_causes_as_sources() {
    use std::error::Error;

    let cause = || recto::EngineError::NothingToUndo;
    let in_list = recto::EngineError::InList { number: 1, error: Box::new(cause()) };
    let input: recto_format::Error = std::io::Error::other("the disk failed").into();
    let failure = recto_agent::Failure::Refused { status: 400, message: "no".to_owned() };
    let call = recto_agent::CallError::from(failure.clone());
    let field = || "at".to_owned();
    let in_field =
        recto_service::Error::InField { field: field(), cause: Box::new(cause().into()) };
    let list = recto_lists::Error::Engine(cause());
    let in_list_field = recto_lists::Error::InField { field: field(), cause: Box::new(list) };
    let errors: [(&dyn Error, String); 5] = [
        (&in_list, cause().to_string()),
        (&input, "the disk failed".to_owned()),
        (&call, failure.to_string()),
        (&in_field, cause().to_string()),
        (&in_list_field, cause().to_string()),
    ];
    for (error, expected) in errors {
        assert_eq!(error.source().map(ToString::to_string), Some(expected), "{error}");
    }
}
