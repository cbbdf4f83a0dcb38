//! Requests about lists of messages that are not stored.

use serde_json::{Value, json};

use super::user;
use crate::Session;

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
        (json!({ "countTokens": [{ "role": "critic", "content": "a" }] }), "countTokens[0].role"),
    ] {
        assert_eq!(session.refused(&request.to_string()).await["field"], field, "{request}");
    }
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
