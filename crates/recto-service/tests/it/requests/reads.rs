//! Requests that read a conversation.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{append, user};
use crate::Session;

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
        "threshold": null, "targetTokens": null, "exceeded": false, "compressionRequested": false })
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
        (&check["threshold"], &check["targetTokens"], &check["compressionRequested"]),
        (&json!(sum - 1), &json!(1), &json!(true))
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
