//! What is wrong with a request: the code, the field, and a name that was meant.

use serde_json::json;

use crate::Session;

#[tokio::test]
async fn an_error_names_the_field_and_what_is_allowed() {
    let session = Session::with_conversation().await;
    for (request, field, part) in [
        (r#"{"create": 7}"#, "create", "expected a string"),
        (r#"{"create": "b", "create": "c"}"#, "create", "given twice"),
        (r#"{"create": "b", "conversation": "a"}"#, "create", "exclude each other"),
        (r#"{"create": "b", "setting": {}}"#, "setting", "did you mean settings?"),
        (
            r#"{"create": "b", "settings": {"counters": "approx"}}"#,
            "settings.counters",
            "did you mean counter?",
        ),
        (r#"{"create": "b", "settings": {"counter": "abacus"}}"#, "counter", "o200k_base"),
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
            "return",
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
    let list = session.ask(json!({ "list": true })).await;
    assert_eq!(list["conversations"].as_array().unwrap().len(), 1);
    assert_eq!(list["conversations"][0]["version"], 0, "nothing was done");
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
