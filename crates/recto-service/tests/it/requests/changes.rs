//! Requests that change a store or a conversation, and searches of a store.

use serde_json::{Value, json};

use super::{append, user};
use crate::Session;

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

#[tokio::test]
async fn append_converts_messages_of_a_provider() {
    let session = Session::new().await;
    session.query(json!({ "create": "a", "messages": [user("2 + 3?")] })).await;
    let call = json!({ "role": "assistant", "content": null, "tool_calls": [
        { "id": "c1", "type": "function", "function": { "name": "add", "arguments": "{\"a\":2,\"b\":3}" } }] });
    let of = |fields: Value| {
        let mut request = json!({ "conversation": "a", "format": "openai-chat" });
        request.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        request
    };
    let dry = session.query(of(json!({ "append": call, "dryRun": true }))).await;
    assert_eq!((&dry["version"], &dry["dryRun"]), (&json!(1), &json!(true)));
    let appended = session
        .query(of(json!({ "append": call, "expectedVersion": 0, "idempotencyKey": "k",
            "description": "the answer", "note": { "run": 7 }, "return": ["state"] })))
        .await;
    assert_eq!((&appended["version"], &appended["added"]), (&json!(1), &json!([1])));
    assert_eq!((&appended["warnings"], &appended["remarks"]), (&json!([]), &json!([])));
    assert_eq!(appended["state"]["messages"][1]["content"][0]["type"], "tool_use");
    let again = session
        .query(of(json!({ "append": call, "expectedVersion": 0, "idempotencyKey": "k",
        "description": "the answer", "note": { "run": 7 } })))
        .await;
    assert_eq!(again["version"], 1, "the repeated request has the first result");
    let result = json!([{ "role": "tool", "tool_call_id": "c1", "content": "5" }]);
    let appended = session.query(of(json!({ "append": result }))).await;
    assert_eq!(appended["warnings"], json!([]), "the exchange is complete");
    let versions = &session.of("log", json!(true)).await["versions"];
    assert_eq!(
        (&versions[1]["description"], &versions[1]["note"]),
        (&json!("the answer"), &json!({ "run": 7 }))
    );
    // The same bytes go back to the provider.
    let request = &session.of("render", json!("openai-chat")).await["request"];
    assert_eq!((&request["messages"][1], &request["messages"][2]), (&call, &result[0]));
}

#[tokio::test]
async fn append_has_no_remark_about_white_space_between_messages() {
    let session = Session::with_conversation().await;
    let request = r#"{"conversation": "a", "format": "openai-chat", "append": [
        {"role": "user", "content": "one"},   {"role": "user", "content": "two"} ]}"#;
    let response: Value = serde_json::from_str(&session.0.request(request).await).unwrap();
    assert_eq!(response["added"], json!([0, 1]));
    assert_eq!(response["remarks"], json!([]));
}

#[tokio::test]
async fn append_needs_a_format_and_messages() {
    let session = Session::new().await;
    session.query(json!({ "create": "a" })).await;
    let message = json!({ "role": "user", "content": "hi" });
    for (request, code, field) in [
        (json!({ "conversation": "a", "append": message }), "invalid_operation", Some("format")),
        (
            json!({ "conversation": "a", "append": message, "format": "morse" }),
            "invalid_operation",
            Some("format"),
        ),
        (
            json!({ "conversation": "a", "append": [], "format": "openai-chat" }),
            "empty_content",
            None,
        ),
        (
            json!({ "conversation": "a", "append": message, "format": "openai-chat", "expectedVersion": 4 }),
            "version_conflict",
            Some("expectedVersion"),
        ),
    ] {
        let error = session.refused(&request.to_string()).await;
        assert_eq!((&error["code"], error["field"].as_str()), (&json!(code), field), "{error}");
    }
    assert_eq!(session.of("stats", json!(true)).await["totalMessages"], 0);
}
