//! Every request with its response.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::Session;

fn user(text: &str) -> Value {
    json!({ "role": "user", "content": text })
}

fn append(messages: Value) -> Value {
    json!({ "operation": "APPEND", "messages": messages })
}

#[tokio::test]
async fn create_takes_settings_and_messages() {
    let session = Session::new().await;
    let created = session.query(json!({ "create": "plain" })).await;
    assert_eq!((&created["conversation"], &created["version"]), (&json!("plain"), &json!(0)));
    assert_eq!(created.as_object().unwrap().len(), 3);

    let foreign = json!({ "role": "assistant", "content": "x", "tool_calls": [{ "id": "c" }] });
    let created = session
        .query(json!({
            "create": "a",
            "settings": { "counter": "approx", "tools": [{ "name": "ls", "description": "lists" }] },
            "messages": [user("one"), foreign],
            "return": ["state"],
        }))
        .await;
    assert_eq!(created["version"], 0);
    assert_eq!(created["warnings"][0]["code"], "foreign_message");
    assert_eq!(created["warnings"][0]["indices"], json!([2]));
    assert_eq!(created["state"]["totalMessageCount"], 3);
    assert_eq!(created["state"]["messages"][1], user("one"));

    let empty = session.query(json!({ "create": "empty", "messages": [], "settings": null })).await;
    assert_eq!(empty.as_object().unwrap().len(), 3);
}

#[tokio::test]
async fn compression_has_a_second_name_and_a_default_strategy() {
    let session = Session::new().await;
    for (name, field) in [("a", "compression"), ("b", "compressionConfig")] {
        let compression = json!({ "enabled": true, "threshold": 100, "targetTokens": 50 });
        session.query(json!({ "create": name, "settings": { field: compression } })).await;
        let settings = session.query(json!({ "conversation": name, "settings": true })).await;
        assert_eq!(
            settings["compression"],
            json!({ "enabled": true, "threshold": 100, "targetTokens": 50,
                "strategy": "clear-tool-results,keep-system-and-recent" })
        );
    }
    let both = json!({ "enabled": true, "threshold": 100, "targetTokens": 50 });
    let request =
        json!({ "create": "c", "settings": { "compression": both, "compressionConfig": both } });
    let error = session.refused(&request.to_string()).await;
    assert_eq!(error["code"], "invalid_operation");
    let unknown = json!({ "create": "c", "settings": { "compression":
        { "enabled": true, "threshold": 1, "targetTokens": 1, "strategy": "magic" } } });
    let error = session.refused(&unknown.to_string()).await;
    assert_eq!(error["field"], "settings.compression.strategy");
    let settings = json!({ "compressionConfig": { "enabled": false, "threshold": 9, "targetTokens": 3,
        "strategy": "keepRecent" }, "tokenLimit": 10 });
    let changed = session.of("settings", settings).await;
    assert_eq!(
        (&changed["compression"]["strategy"], &changed["tokenLimit"]),
        (&json!("keep-recent"), &json!(10))
    );
    let changed = session.of("settings", json!({ "tokenLimit": null })).await;
    assert_eq!(
        (changed.get("tokenLimit"), &changed["compression"]["threshold"]),
        (None, &json!(9))
    );
}

#[tokio::test]
async fn conversations_are_listed_searched_and_verified() {
    let session = Session::with_conversation().await;
    session.say(&["The Gateway answers", "nothing"]).await;
    for name in ["b", "c"] {
        session.query(json!({ "create": name })).await;
    }
    let all = session.query(json!({ "list": true })).await;
    let names = |list: &Value| -> Vec<String> {
        let list = list["conversations"].as_array().unwrap();
        list.iter().map(|info| info["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(
        (names(&all), &all["more"]),
        (vec!["a".into(), "b".into(), "c".into()], &json!(false))
    );
    let some = session.query(json!({ "list": { "after": "a", "limit": 1 } })).await;
    assert_eq!((names(&some), &some["more"]), (vec!["b".into()], &json!(true)));

    let found = session.query(json!({ "search": "gateway the", "limit": 3 })).await;
    assert_eq!(found["messages"].as_array().unwrap().len(), 1);
    let hit = &found["messages"][0];
    assert_eq!((&hit["conversation"], &hit["index"]), (&json!("a"), &json!(0)));
    assert_eq!(session.query(json!({ "search": "gate" })).await["messages"], json!([]));

    let verified = session.query(json!({ "verify": true })).await;
    assert_eq!(
        (&verified["sound"], verified["conversations"].as_array().unwrap().len()),
        (&json!(true), 3)
    );
    let one = session.of("verify", json!(true)).await;
    assert_eq!(
        (&one["name"], &one["entries"], &one["sound"]),
        (&json!("a"), &json!(2), &json!(true))
    );
}

#[tokio::test]
async fn a_store_without_an_index_is_searched_too() {
    let options = recto::Options { search: false, ..recto::Options::default() };
    let recto = recto::Recto::open_with("memory:", options).await.unwrap();
    let session = Session(recto_service::Service::exclusive(recto));
    session
        .query(json!({ "create": "a", "messages": [user("The Gateway"), user("gateways")] }))
        .await;
    let found = session.query(json!({ "search": "gateway" })).await;
    assert_eq!(found["messages"].as_array().unwrap().len(), 1);
    assert_eq!(found["messages"][0]["index"], 0);
}

#[tokio::test]
async fn operations_are_applied_once_and_return_the_state_of_their_version() {
    let session = Session::with_conversation().await;
    let done = session
        .query(json!({ "conversation": "a", "op": append(json!([user("one")])),
        "expectedVersion": 0, "idempotencyKey": "k", "return": ["state"] }))
        .await;
    assert_eq!((&done["version"], &done["added"]), (&json!(1), &json!([0])));
    assert_eq!(done["state"]["messages"], json!([user("one")]));
    session.say(&["two"]).await;
    // The repetition returns the first result, and the state of that version.
    let again = session
        .query(json!({ "conversation": "a", "op": append(json!([user("one")])),
        "idempotencyKey": "k", "return": ["state"] }))
        .await;
    assert_eq!(again, done);
    let listed = session
        .of(
            "ops",
            json!([append(json!([user("three")])),
        { "operation": "DELETE", "indices": [0] }]),
        )
        .await;
    assert_eq!((&listed["version"], &listed["hidden"]), (&json!(3), &json!([0])));
    assert!(listed.get("state").is_none() && listed.get("dryRun").is_none());

    let dry = session
        .query(json!({ "conversation": "a", "dryRun": true,
        "op": { "operation": "CLEAR" } }))
        .await;
    assert_eq!((&dry["dryRun"], &dry["version"]), (&json!(true), &json!(4)));
    assert_eq!(session.of("stats", json!(true)).await["currentBatchMessages"], 2);
    for other in [json!({ "idempotencyKey": "x" }), json!({ "return": ["state"] })] {
        let mut request =
            json!({ "conversation": "a", "dryRun": true, "op": { "operation": "CLEAR" } });
        request.as_object_mut().unwrap().extend(other.as_object().unwrap().clone());
        assert_eq!(session.refused(&request.to_string()).await["code"], "invalid_operation");
    }
}

#[tokio::test]
async fn tools_are_set_and_read() {
    let session = Session::with_conversation().await;
    let tools = json!([{ "name": "ls", "description": "lists", "more": [1] }]);
    let dry =
        session.query(json!({ "conversation": "a", "setTools": tools, "dryRun": true })).await;
    assert_eq!((&dry["dryRun"], &dry["added"]), (&json!(true), &json!([0])));
    let set = session
        .query(json!({ "conversation": "a", "setTools": tools, "expectedVersion": 0,
        "idempotencyKey": "k", "return": ["state"] }))
        .await;
    assert_eq!((&set["version"], &set["toolsChanged"]), (&json!(1), &json!(true)));
    assert_eq!(set["state"]["messages"][0]["content"], "Available tools:\n- ls: lists");
    assert_eq!(session.of("tools", json!(true)).await, json!({ "tools": tools }));
    let before = session.query(json!({ "conversation": "a", "tools": true, "at": 0 })).await;
    assert_eq!(before, json!({ "tools": [] }));
    assert_eq!(session.of("settings", json!(true)).await["tools"], tools);
    let none = session.of("settings", json!({ "tools": null })).await;
    assert_eq!((&none["version"], &none["tools"]), (&json!(2), &json!([])));
    let conflict = session
        .refused(&json!({ "conversation": "a", "setTools": [], "expectedVersion": 1 }).to_string())
        .await;
    assert_eq!(conflict["code"], "version_conflict");
    let malformed = session.refused(r#"{"conversation": "a", "setTools": [7]}"#).await;
    assert_eq!(malformed["code"], "invalid_operation");
}

#[tokio::test]
async fn an_entry_has_the_same_fields_in_every_response() {
    let session = Session::with_conversation().await;
    session.say(&["one", "two", "three"]).await;
    session.of("op", json!({ "operation": "MARK", "indices": [1], "mark": "kept" })).await;
    session.of("op", json!({ "operation": "DELETE", "indices": [0] })).await;
    let asked = session.of("ask", json!({ "scope": "all", "contains": ["one", "two"] })).await;
    let (one, two) = (&asked["messages"][0], &asked["messages"][1]);
    let keys = |entry: &Value| entry.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(one), ["index", "tokens", "timestamp", "message"]);
    assert_eq!(keys(two), ["index", "position", "tokens", "timestamp", "marks", "message"]);
    assert_eq!((&two["position"], &two["marks"]), (&json!(0), &json!(["kept"])));
    assert_eq!(two["message"], user("two"));
    assert_eq!(
        session.of("query", json!({ "scope": "all", "contains": ["one", "two"] })).await,
        asked
    );

    let shown = session.of("show", json!([1, 0])).await;
    assert_eq!(shown["messages"], json!([two, one]));
    assert_eq!((&shown["conversation"], &shown["version"]), (&json!("a"), &json!(3)));
    let view = session.of("show", json!(true)).await;
    assert_eq!(view["messages"].as_array().unwrap().len(), 2);
    let before = session.query(json!({ "conversation": "a", "show": [1, 0], "at": 1 })).await;
    assert_eq!(before["messages"][0].get("marks"), None);
    assert_eq!(
        (&before["messages"][0]["position"], &before["messages"][1]["position"]),
        (&json!(1), &json!(0))
    );
    let before = session.query(json!({ "conversation": "a", "show": true, "at": 2 })).await;
    assert_eq!(before["messages"].as_array().unwrap().len(), 3);
    let missing = session.refused(r#"{"conversation": "a", "show": [0], "at": 0}"#).await;
    assert_eq!(missing["code"], "index_out_of_range");
    let missing = session.refused(r#"{"conversation": "a", "show": [9]}"#).await;
    assert_eq!(missing["code"], "index_out_of_range");
    assert_eq!(
        session.of("marks", json!(true)).await["marks"],
        json!([{ "mark": "kept", "indices": [1] }])
    );
    let blamed = session.of("blame", json!(0)).await;
    assert_eq!(blamed["entry"], *one);
    assert_eq!(blamed["history"][1]["effect"], "hidden");
}

#[tokio::test]
async fn a_message_is_returned_byte_for_byte_on_one_line() {
    let session = Session::with_conversation().await;
    let message = "{ \"content\" : \"a\\u000Ab\\ud800\" ,\n \"role\":\"user\", \"n\": 1e400, \"index\": 99, \
                   \"big\": 123456789012345678901234567890}";
    let request = format!(
        "{{\"conversation\":\"a\",\"op\":{{\"operation\":\"APPEND\",\"messages\":[{message}]}},\"return\":[\"state\"]}}"
    );
    let line = message.replace('\n', " ");
    let answer = session.0.request(&request).await;
    assert!(answer.contains(&format!("\"messages\":[{line}]")), "{answer}");
    for read in [r#""ask":{}"#, r#""show":[0]"#, r#""state":true"#, r#""snapshot":0"#] {
        let answer = session.0.request(&format!("{{\"conversation\":\"a\",{read}}}")).await;
        assert!(answer.contains(&line) && !answer.contains('\n'), "{answer}");
    }
}

#[tokio::test]
async fn entries_are_counted_by_role() {
    let session = Session::with_conversation().await;
    let messages = json!([user("a"), { "role": "assistant", "content": "b" }, user("c")]);
    session.of("op", append(messages)).await;
    session.of("op", json!({ "operation": "DELETE", "indices": [0] })).await;
    for (query, count) in [
        (json!({}), 2),
        (json!({ "role": "user" }), 1),
        (json!({ "roles": ["user", "assistant"] }), 2),
        (json!({ "roles": ["user"], "scope": "all" }), 2),
        (json!({ "contains": "b" }), 1),
    ] {
        assert_eq!(session.of("count", query.clone()).await, json!({ "count": count }), "{query}");
    }
}

#[tokio::test]
async fn the_history_is_listed_in_pages() {
    let session = Session::with_conversation().await;
    session.say(&["one"]).await;
    session.say(&["two"]).await;
    session.of("op", json!({ "operation": "UNDO" })).await;
    let numbers = |log: &Value| -> Vec<u64> {
        let versions = log["versions"].as_array().unwrap();
        versions.iter().map(|version| version["version"].as_u64().unwrap()).collect()
    };
    let log = session.of("log", json!(true)).await;
    assert_eq!((numbers(&log), &log["older"]), (vec![3, 2, 1, 0], &json!(0)));
    assert_eq!(
        (&log["versions"][0]["parent"], &log["versions"][0]["operation"]),
        (&json!(1), &json!("UNDO"))
    );
    assert!(log["versions"][1]["saidAt"].is_i64());
    assert_eq!(session.of("history", json!(true)).await, log);
    let page = session.of("log", json!({ "limit": 2, "before": 3 })).await;
    assert_eq!((numbers(&page), &page["older"]), (vec![2, 1], &json!(1)));
    assert_eq!(numbers(&session.of("log", json!({ "before": 0 })).await), Vec::<u64>::new());
    let line = session.of("timeline", json!(true)).await;
    assert_eq!(line["versions"][3]["event"], "back");
    let diff = session.of("diff", json!({ "from": 2, "to": 3 })).await;
    assert_eq!(diff["hidden"]["indices"], json!([1]));
}

#[tokio::test]
async fn tokens_are_listed_by_role_and_checked_against_the_limit() {
    let session = Session::with_conversation().await;
    session.say(&["one", "two two two"]).await;
    let tokens = session.of("tokens", json!({ "largest": 1 })).await;
    assert_eq!((&tokens["messages"], &tokens["largest"][0]["index"]), (&json!(2), &json!(1)));
    assert_eq!(tokens["byRole"][0]["name"], "user");
    let sum = tokens["tokens"].as_u64().unwrap();
    let before = session.query(json!({ "conversation": "a", "tokens": true, "at": 0 })).await;
    assert_eq!(before["tokens"], 0);

    let check = session.of("tokenCheck", json!(true)).await;
    assert_eq!(
        check,
        json!({ "conversation": "a", "version": 1, "tokens": sum, "limit": null,
        "threshold": null, "exceeded": false, "compressionRequested": false })
    );
    session
        .of(
            "settings",
            json!({ "tokenLimit": sum, "compression":
        { "enabled": true, "threshold": sum - 1, "targetTokens": 1 } }),
        )
        .await;
    let check = session.of("tokenCheck", json!(true)).await;
    assert_eq!((&check["limit"], &check["exceeded"]), (&json!(sum), &json!(false)));
    assert_eq!(
        (&check["threshold"], &check["compressionRequested"]),
        (&json!(sum - 1), &json!(true))
    );
    session.say(&["three"]).await;
    assert_eq!(session.of("tokenCheck", json!(true)).await["exceeded"], true);
    assert_eq!(session.of("stats", json!(true)).await["currentBatchMessages"], 3, "it only reads");
}

#[tokio::test]
async fn states_mark_maps_and_snapshots_are_read() {
    let session = Session::with_conversation().await;
    session.say(&["one", "two"]).await;
    session.of("op", json!({ "operation": "TRUNCATE", "keepLast": 1 })).await;
    let state = session.of("state", json!(true)).await;
    assert_eq!(state["messages"], json!([user("two")]));
    assert_eq!((&state["totalMessageCount"], &state["currentBatchIndex"]), (&json!(1), &json!(1)));
    assert_eq!(state["batchSnapshots"][0], session.of("snapshot", json!(0)).await);
    let before = session.query(json!({ "conversation": "a", "state": true, "at": 1 })).await;
    assert_eq!((&before["totalMessageCount"], &before["batchSnapshots"]), (&json!(2), &json!([])));
    let map = session.of("markMap", json!(true)).await;
    assert_eq!((&map["originalIndices"], &map["typeIndices"]["user"]), (&json!([1]), &json!([1])));
    let all = session.of("markMap", json!({ "scope": "all" })).await;
    assert_eq!(
        (&all["originalIndices"], &all["typeIndices"]["user"]),
        (&json!([1]), &json!([0, 1]))
    );
    let before = session.query(json!({ "conversation": "a", "markMap": true, "at": 1 })).await;
    assert_eq!(before["originalIndices"], json!([0, 1]));
    let missing = session.refused(r#"{"conversation": "a", "snapshot": 9}"#).await;
    assert_eq!(missing["code"], "batch_not_found");
    let info = session.of("info", json!(true)).await;
    assert_eq!((&info["name"], &info["stats"]["totalMessages"]), (&json!("a"), &json!(2)));
}

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

#[tokio::test]
async fn conversations_are_forked_renamed_and_removed() {
    for exclusive in [false, true] {
        let recto = recto::Recto::open("memory:").await.unwrap();
        let service = match exclusive {
            true => recto_service::Service::exclusive(recto),
            false => recto_service::Service::new(recto),
        };
        let session = Session(service);
        session.query(json!({ "create": "a" })).await;
        session.say(&["one"]).await;
        session.say(&["two"]).await;
        let fork = session
            .query(json!({ "conversation": "a", "fork": { "name": "f", "at": 1 },
            "return": ["state"] }))
            .await;
        assert_eq!(
            (&fork["from"], &fork["state"]["messages"]),
            (&json!({ "conversation": "a", "version": 1 }), &json!([user("one")]))
        );
        let dry =
            session.query(json!({ "conversation": "a", "rename": "z", "dryRun": true })).await;
        assert_eq!(dry, json!({ "from": "a", "to": "z", "dryRun": true }));
        let taken =
            session.refused(r#"{"conversation": "a", "rename": "f", "dryRun": true}"#).await;
        assert_eq!(taken["code"], "conversation_exists");
        let renamed =
            session.query(json!({ "conversation": "a", "rename": "z", "return": ["state"] })).await;
        assert_eq!(renamed["state"]["totalMessageCount"], 2);
        let gone = session.refused(r#"{"conversation": "a", "stats": true}"#).await;
        assert_eq!(gone["code"], "conversation_not_found");
        let id = session.query(json!({ "conversation": "z", "info": true })).await["id"].clone();
        assert_eq!(session.query(json!({ "conversation": id, "info": true })).await["name"], "z");
        let dry =
            session.query(json!({ "conversation": "z", "remove": true, "dryRun": true })).await;
        assert_eq!((&dry["forks"], &dry["messages"]), (&json!(["f"]), &json!(2)));
        let conflict =
            session.refused(r#"{"conversation": "z", "remove": true, "expectedVersion": 1}"#).await;
        assert_eq!(conflict["code"], "version_conflict");
        let removed = session
            .query(json!({ "conversation": "z", "remove": true, "expectedVersion": 2 }))
            .await;
        assert_eq!(removed, json!({ "removed": "z" }));
        let gone = session.refused(r#"{"conversation": "z", "stats": true}"#).await;
        assert_eq!(gone["code"], "conversation_not_found");
        assert_eq!(
            session.query(json!({ "conversation": "f", "stats": true })).await["totalMessages"],
            1
        );
    }
}

#[tokio::test]
async fn messages_are_pruned_and_erased() {
    let session = Session::with_conversation().await;
    session.say(&["one", "two", "three"]).await;
    session.of("op", json!({ "operation": "DELETE", "indices": [0] })).await;
    let prune =
        |dry: bool| json!({ "conversation": "a", "prune": { "keepVersions": 1 }, "dryRun": dry });
    assert_eq!(session.query(prune(true)).await["entries"], json!([0]));
    let pruned = session.query(prune(false)).await;
    assert_eq!(
        (&pruned["entries"], &pruned["dryRun"], &pruned["keptVersions"]),
        (&json!([0]), &json!(false), &json!(1))
    );
    let nothing = session.refused(r#"{"conversation": "a", "prune": {}}"#).await;
    assert_eq!(nothing["code"], "invalid_operation");
    let dry = session.query(json!({ "conversation": "a", "erase": [2], "dryRun": true })).await;
    assert_eq!(dry["entries"][0]["message"], user("three"));
    let erased = session
        .query(json!({ "conversation": "a", "erase": [2], "expectedVersion": 2,
        "return": ["state"] }))
        .await;
    assert_eq!(
        (&erased["erased"][0]["index"], &erased["erased"][0]["wasGone"]),
        (&json!(2), &json!(false))
    );
    assert_ne!(erased["state"]["messages"][1], user("three"));
    for (request, code) in [
        (r#"{"conversation": "a", "erase": []}"#, "invalid_operation"),
        (r#"{"conversation": "a", "erase": [1, 9]}"#, "index_out_of_range"),
        (r#"{"conversation": "a", "erase": [1], "expectedVersion": 0}"#, "version_conflict"),
    ] {
        assert_eq!(session.refused(request).await["code"], code, "{request}");
    }
    let shown = session.of("show", json!([1])).await;
    assert_eq!(shown["messages"][0]["message"], user("two"), "a refused request erases nothing");
}

#[tokio::test]
async fn requests_run_concurrently() {
    let session = std::sync::Arc::new(Session::with_conversation().await);
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let session = session.clone();
            tokio::spawn(async move {
                session.say(&["x"]).await;
                session.of("stats", json!(true)).await
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(session.of("stats", json!(true)).await["totalMessages"], 8);
}

#[tokio::test]
async fn settings_are_changed_only_at_the_expected_version() {
    let session = Session::new().await;
    let tools = json!([{ "name": "ls", "description": "lists" }]);
    session.query(json!({ "create": "a", "settings": { "tools": tools } })).await;
    let change = |version: u32| json!({ "conversation": "a", "settings": { "tokenLimit": 5 }, "expectedVersion": version });
    let error = session.refused(&change(3).to_string()).await;
    assert_eq!(error["code"], "version_conflict");
    let settings = session.query(json!({ "conversation": "a", "settings": true })).await;
    assert_eq!(settings["tokenLimit"], Value::Null);
    assert_eq!(session.query(change(0)).await["tokenLimit"], 5);
    let same = session.query(json!({ "conversation": "a", "settings": { "tools": tools } })).await;
    assert_eq!(same["version"], Value::Null, "the same tools make no version");
}

#[tokio::test]
async fn every_entry_has_its_marks_and_every_version_its_warnings() {
    let session = Session::new().await;
    let call = json!({ "role": "assistant", "content": [{ "type": "tool_use", "id": "c", "name": "f", "input": {} }] });
    let result = json!({ "role": "tool", "content": [{ "type": "tool_result", "tool_use_id": "c", "content": "found" }] });
    session
        .query(json!({ "create": "a", "messages": [user("needle"), call, result], "return": null }))
        .await;
    let op = |op: Value| json!({ "conversation": "a", "op": op });
    session.query(op(json!({ "operation": "MARK", "indices": [0], "mark": "kept" }))).await;
    let blame = session.query(json!({ "conversation": "a", "blame": 0 })).await;
    assert_eq!(blame["entry"]["marks"], json!(["kept"]));
    let found = session.query(json!({ "search": "needle" })).await;
    assert_eq!(found["messages"][0]["marks"], json!(["kept"]));
    let erase = session.query(json!({ "conversation": "a", "erase": [0], "dryRun": true })).await;
    assert_eq!(erase["entries"][0]["marks"], json!(["kept"]));

    session.query(op(json!({ "operation": "DELETE", "indices": [2] }))).await;
    session.query(op(json!({ "operation": "UNDO" }))).await;
    let render =
        |version: u32| json!({ "conversation": "a", "render": "anthropic", "at": version });
    assert_eq!(session.query(render(2)).await["warnings"][0]["code"], "torn_call");
    assert_eq!(session.query(render(3)).await["warnings"], json!([]));
}

#[tokio::test]
async fn create_refuses_more_messages_than_a_request_may_have() {
    let session = Session::new().await;
    let request = json!({ "create": "a", "messages": vec![user("x"); 10_001] });
    let error = session.refused(&request.to_string()).await;
    assert_eq!((&error["code"], &error["field"]), (&json!("too_large"), &json!("messages")));
    let error = session.refused(r#"{"conversation":"a","list":true}"#).await;
    assert!(error["message"].as_str().unwrap().contains("about the store"), "{error}");
}

#[tokio::test]
async fn a_note_is_stored_with_a_version() {
    let session = Session::with_conversation().await;
    let note = json!({ "run": "r-17", "steps": [1, null] });
    let op = append(json!([user("one")]));
    session.query(json!({ "conversation": "a", "op": op, "note": note })).await;
    session
        .query(json!({ "conversation": "a", "op": { "operation": "CLEAR" }, "note": null }))
        .await;
    session.query(json!({ "conversation": "a", "setTools": [{ "name": "x", "description": "y" }], "note": 7 })).await;
    let versions = session.of("log", json!(true)).await["versions"].clone();
    assert_eq!((&versions[0]["note"], &versions[2]["note"]), (&json!(7), &note));
    assert!(versions[1].get("note").is_none());
    let large =
        json!({ "conversation": "a", "op": { "operation": "CLEAR" }, "note": "x".repeat(20_000) });
    let refused = session.refused(&large.to_string()).await;
    assert_eq!((&refused["code"], &refused["field"]), (&json!("too_large"), &json!("note")));
}

#[tokio::test]
async fn a_list_is_fitted_and_repaired_without_a_conversation() {
    let session = Session::new().await;
    let call = json!({ "role": "assistant", "content": [{ "type": "tool_use", "id": "c", "name": "read", "input": {} }] });
    let list = json!([user(&"long ".repeat(50)), user("next"), call, user("never mind")]);
    let fitted = session
        .query(json!({ "fit": list, "maxTokens": 60, "targetTokens": 40, "counter": "approx", "repairFor": "anthropic" }))
        .await;
    assert_eq!(fitted["dropped"], json!([0]));
    let messages = fitted["messages"].as_array().unwrap();
    let kept: Vec<&Value> = messages.iter().filter_map(|message| message.get("from")).collect();
    assert_eq!(kept, [&json!(1), &json!(2), &json!(3)]);
    assert_eq!(messages[2]["made"]["content"][0]["tool_use_id"], "c");
    assert!(fitted["tokensBefore"].as_u64() > Some(60) && fitted["repairs"][0]["index"] == 2);

    let responses = json!([
        { "type": "function_call", "call_id": "c", "name": "read", "arguments": "{}" },
        { "role": "user", "content": "never mind" },
    ]);
    let repaired = session
        .query(
            json!({ "repair": responses, "for": "openai-responses", "format": "openai-responses" }),
        )
        .await;
    assert_eq!(repaired["messages"][1]["made"]["type"], "function_call_output");
    let counted = session.query(json!({ "countTokens": list, "counter": "approx" })).await;
    assert_eq!(counted["tokens"], fitted["tokensBefore"]);
    assert_eq!(counted["each"].as_array().unwrap().len(), 4);
    assert_eq!(session.query(json!({ "list": true })).await["conversations"], json!([]));

    for (request, field) in [
        (json!({ "fit": [7], "maxTokens": 1 }), "fit[0]"),
        (json!({ "fit": [], "maxTokens": 1, "targetTokens": 2 }), "targetTokens"),
        (json!({ "fit": [], "maxTokens": 1, "keep": [0] }), "keep"),
        (json!({ "fit": [], "maxTokens": 1, "startOn": "x" }), "startOn"),
        (json!({ "fit": [], "maxTokens": 1, "counter": "x" }), "counter"),
        (json!({ "repair": [], "for": "x" }), "for"),
        (json!({ "countTokens": [{ "role": "critic", "content": "a" }] }), "[0].role"),
    ] {
        assert_eq!(session.refused(&request.to_string()).await["field"], field, "{request}");
    }
}

#[tokio::test]
async fn the_name_of_an_operation_in_place_of_a_request_is_explained() {
    let session = Session::new().await;
    session.query(json!({ "create": "a" })).await;
    for (name, operation) in
        [("undo", "UNDO"), ("FIT", "FIT"), ("pin", "MARK"), ("messages", "APPEND")]
    {
        let request = json!({ "conversation": "a", name: true }).to_string();
        let refused = session.refused(&request).await;
        let (message, op) = (refused["message"].to_string(), format!(r#"\"{operation}\""#));
        assert!(message.contains("an operation is sent as"), "{message}");
        assert!(message.contains(&op), "{message}");
    }
    let refused = session.refused(r#"{"conversation": "a", "sow": true}"#).await;
    assert!(refused["message"].as_str().unwrap().contains("did you mean show?"), "{refused}");
}

/// Without their format, the calls would be neither counted nor paired.
#[tokio::test]
async fn a_list_of_another_format_is_refused_with_the_format_to_give() {
    let session = Session::new().await;
    let call = json!({ "role": "assistant", "content": "Let me look.", "tool_calls": [{ "id": "c", "type": "function",
        "function": { "name": "read", "arguments": "{}" } }] });
    let result = json!({ "role": "tool", "tool_call_id": "c", "content": "08:02 timeout" });
    for messages in [json!([user("q"), call, result]), json!([user("q"), result])] {
        for (field, mut request) in [
            ("fit", json!({ "fit": messages, "maxTokens": 100 })),
            ("repair", json!({ "repair": messages, "for": "openai-chat" })),
            ("countTokens", json!({ "countTokens": messages })),
        ] {
            let refused = session.refused(&request.to_string()).await;
            assert_eq!(refused["code"], "invalid_message", "{refused}");
            assert_eq!(refused["field"], format!("{field}[1]"), "{refused}");
            assert_eq!(refused["details"]["format"], "openai-chat", "{refused}");
            let message = refused["message"].as_str().unwrap();
            assert!(message.ends_with(r#"give the format "openai-chat""#), "{message}");
            request["format"] = refused["details"]["format"].clone();
            session.query(request).await;
        }
    }
}

/// The list is small enough as it is, and too large with the placeholder for the missing result.
#[tokio::test]
async fn the_repairs_of_a_fitted_list_are_part_of_its_budget() {
    let session = Session::new().await;
    let call = json!({ "role": "assistant", "content": [{ "type": "tool_use", "id": "c", "name": "read", "input": {} }] });
    let list = json!([user("first"), user("second"), call]);
    let counted = session.query(json!({ "countTokens": list, "counter": "approx" })).await;
    let max = counted["tokens"].as_u64().unwrap();
    let fit = |max: u64| json!({ "fit": list, "maxTokens": max, "counter": "approx", "repairFor": "openai-chat" });
    let fitted = session.query(fit(max)).await;
    assert!(fitted["tokens"].as_u64().unwrap() <= max, "{fitted}");
    assert_eq!(fitted["dropped"][0], 0, "{fitted}");
    assert!(fitted["repairs"].to_string().contains("answered_calls"), "{fitted}");
    let refused = session.refused(&fit(5).to_string()).await;
    assert_eq!(refused["code"], "budget_too_small", "{refused}");
    let needed = refused["details"]["needed"].as_u64().unwrap();
    let fitted = session.query(fit(needed)).await;
    assert!(fitted["tokens"].as_u64().unwrap() <= needed, "{fitted}");
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

/// Each version of the conversation has one message more, so a response whose entries are of another version than
/// the one it names has a wrong number of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_response_has_the_entries_of_the_version_that_it_names() {
    let session = Arc::new(Session::with_conversation().await);
    session.say(&["one"]).await;
    let writer = Arc::clone(&session);
    let writing = tokio::spawn(async move {
        for _ in 0..300 {
            writer.say(&["more"]).await;
        }
    });
    while !writing.is_finished() {
        let shown = session.of("show", json!(true)).await;
        assert_eq!(shown["messages"].as_array().unwrap().len() as u64, shown["version"]);
        let newest = shown["version"].as_u64().unwrap();
        let shown = session.query(json!({"conversation": "a", "show": true, "at": newest})).await;
        assert_eq!(shown["messages"].as_array().unwrap().len() as u64, newest);
        let tokens = session.of("tokens", json!(true)).await;
        assert_eq!(tokens["messages"], tokens["version"]);
    }
    writing.await.unwrap();
}
