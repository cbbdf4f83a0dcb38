//! Import, export, and requests for providers.

use serde_json::{Value, json};

use super::{append, user};
use crate::Session;

#[tokio::test]
async fn a_view_is_rendered_linted_and_planned() {
    let session = Session::new().await;
    session.query(json!({ "create": "a", "settings": { "counter": "approx",
        "tools": [{ "name": "ls", "description": "lists", "input_schema": { "type": "object" } }] } })).await;
    session.of("op", append(json!([
        user("list"),
        { "role": "assistant", "content": [{ "type": "tool_use", "id": "c", "name": "ls", "input": {} }] },
    ]))).await;
    let rendered = session
        .query(json!({ "conversation": "a", "render": "anthropic",
        "model": "claude-x", "fields": { "max_tokens": 9 } }))
        .await;
    assert_eq!(
        (&rendered["request"]["model"], &rendered["request"]["max_tokens"]),
        (&json!("claude-x"), &json!(9))
    );
    assert!(rendered["request"].get("system").is_none(), "the description is not sent");
    // The tool description is not sent, but it has position 0 in the view.
    let findings = session.of("lint", json!("anthropic")).await;
    let finding = findings["findings"]
        .as_array()
        .unwrap()
        .iter()
        .find(|finding| finding["severity"] == "error")
        .unwrap_or_else(|| panic!("{findings}"));
    assert_eq!((&finding["index"], &finding["entry"]), (&json!(2), &json!(2)), "{finding}");
    assert_eq!(rendered["repairs"][0]["entry"], 2);
    let empty = session.refused(r#"{"conversation": "a", "render": "anthropic", "at": 0}"#).await;
    assert_eq!(empty["code"], "empty_content", "{empty}");
    let plan = session.of("cachePlan", json!({ "from": 1, "for": "anthropic", "turns": 3 })).await;
    assert_eq!(
        (&plan["from"], &plan["to"], &plan["over"]["turns"]),
        (&json!(1), &json!(1), &json!(3))
    );
    let unknown = json!({ "conversation": "a", "cachePlan": { "from": 0, "model": "nothing" } });
    assert_eq!(session.refused(&unknown.to_string()).await["code"], "invalid_operation");
    let calls = session.of("calls", json!(true)).await;
    assert_eq!(calls, json!({ "conversation": "a", "calls": [], "older": 0, "models": [] }));
}

#[tokio::test]
async fn the_version_of_the_api_decides_which_rules_apply() {
    let session = Session::new().await;
    session.query(json!({ "create": "a" })).await;
    let cited = json!({ "type": "text", "text": "a", "citations": [{ "type": "char_location" }] });
    let message = json!({ "role": "user", "content": [cited],
        "metadata": { "source": { "provider": "anthropic" } } });
    session.of("op", append(json!([message]))).await;
    session.of("op", append(json!([user("b")]))).await;
    let rule = "citations_from_the_assistant";
    let mut tokens = Vec::new();
    for (version, is_new) in [(json!(null), false), (json!("2026-10-21"), true)] {
        let rendered = session
            .query(json!({ "conversation": "a", "render": "anthropic", "apiVersion": version }))
            .await;
        assert_eq!(rendered["request"].to_string().contains("char_location"), !is_new);
        assert_eq!(rendered["repairs"].to_string().contains(rule), is_new, "{rendered}");
        let findings = session
            .query(json!({ "conversation": "a", "lint": "anthropic", "apiVersion": version }))
            .await;
        assert_eq!(findings.to_string().contains(rule), is_new, "{findings}");
        let plan = json!({ "from": 1, "for": "anthropic", "apiVersion": version });
        tokens.push(session.of("cachePlan", plan).await["oldTokens"].as_u64());
    }
    assert!(tokens[0] > tokens[1], "{tokens:?}");
}

#[tokio::test]
async fn messages_inside_a_larger_document_are_imported() {
    let session = Session::with_conversation().await;
    let log = json!({ "id": 7, "run": {
        "request": { "model": "gpt-5", "instructions": "Be brief.", "input": [user("one")] },
        "steps": [{ "query": [user("two")] }],
    } });
    let imported = session.query(json!({ "import": "b", "data": log })).await;
    assert_eq!(imported["format"], "openai-responses");
    assert_eq!(imported["conversations"][0]["messages"], 2, "the instructions are a message");
    assert_eq!(imported["remarks"][0]["field"], "run.request.input");
    let other = "1 list of messages was found here; others: run.steps[*].query";
    assert_eq!(imported["remarks"][0]["message"], other);
    let selected =
        json!({ "import": "c", "data": log, "select": "run.steps[0].query", "return": ["state"] });
    assert_eq!(session.query(selected).await["state"]["messages"], json!([user("two")]));
    let empty = json!({ "model": "gpt-5", "input": [], "previous_response_id": "resp_1" });
    let imported = session.query(json!({ "import": "e", "data": empty })).await;
    assert_eq!(imported["conversations"][0]["messages"], 0, "a request without messages");
    for select in ["id", "run[", "nowhere"] {
        let request = json!({ "import": "d", "data": log, "select": select });
        let refused = session.refused(&request.to_string()).await;
        assert!(refused["message"].as_str().unwrap().contains("run.request.input"), "{refused}");
    }
}

#[tokio::test]
async fn an_exported_conversation_can_be_imported() {
    let session = Session::with_conversation().await;
    session.say(&["one", "two"]).await;
    let exported = session.of("export", json!({ "format": "openai-chat", "lines": true })).await;
    assert_eq!(exported["data"].as_str().unwrap().lines().count(), 2);
    let exported = session.of("export", json!(true)).await;
    assert_eq!(exported["format"], "recto");
    let data = &exported["data"];
    let imported = session.query(json!({ "import": "b", "data": data, "return": ["state"] })).await;
    assert_eq!(imported["state"]["messages"], json!([user("one"), user("two")]));
    assert_eq!(
        (&imported["conversation"], &imported["conversations"][0]["messages"]),
        (&json!("b"), &json!(2))
    );
    let data: Value = serde_json::from_str(data.as_str().unwrap()).unwrap();
    session
        .query(json!({ "import": "c", "data": data, "format": "recto",
        "settings": { "tokenLimit": 5 } }))
        .await;
    let settings = session.query(json!({ "conversation": "c", "settings": true })).await;
    assert_eq!(settings["tokenLimit"], 5);
    let log = session.query(json!({ "conversation": "a", "export": { "scope": "all" } })).await;
    assert_eq!(log["messages"], 2);
    for (request, code) in [
        (json!({ "import": "b", "data": data }), "conversation_exists"),
        (json!({ "import": "d", "data": [] }), "empty_content"),
        (json!({ "import": "d", "data": "{" , "format": "recto" }), "invalid_json"),
        (json!({ "import": "d" }), "invalid_operation"),
        (json!({ "import": "d", "data": data, "format": "mine" }), "invalid_operation"),
        (
            json!({ "conversation": "a", "export": { "scope": "all" }, "at": 1 }),
            "invalid_operation",
        ),
    ] {
        assert_eq!(session.refused(&request.to_string()).await["code"], code, "{request}");
    }
    let names = session.query(json!({ "list": true })).await;
    assert_eq!(
        names["conversations"].as_array().unwrap().len(),
        3,
        "a refused import creates nothing"
    );
}

/// With thinking, the last message must be from the user.
#[tokio::test]
async fn lint_applies_the_rules_that_depend_on_other_fields() {
    let session = Session::new().await;
    session.query(json!({ "create": "a", "messages": [user("hi"), { "role": "assistant", "content": "a" }] })).await;
    let thinking = json!({ "thinking": { "type": "enabled", "budget_tokens": 1024 } });
    for (fields, is_found) in [(json!({}), false), (thinking, true)] {
        let lint = json!({ "conversation": "a", "lint": "anthropic", "model": "claude-sonnet-4-5", "fields": fields });
        let findings = session.query(lint).await;
        assert_eq!(findings.to_string().contains("last_from_the_user"), is_found, "{findings}");
    }
}
