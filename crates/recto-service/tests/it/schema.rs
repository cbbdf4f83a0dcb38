//! The schema covers all requests, and refuses the requests that the service refuses.

use serde_json::json;

use crate::{SCHEMA, Session, all_names, validator};

#[test]
fn the_schema_has_a_row_for_every_request() {
    let rows = SCHEMA["requests"].as_array().unwrap();
    let names: Vec<&str> = rows
        .iter()
        .flat_map(|row| row["names"].as_array().unwrap())
        .map(|name| name.as_str().unwrap())
        .collect();
    assert_eq!(names, all_names());
    for row in rows {
        for side in ["request", "response"] {
            let path = row[side]["$ref"].as_str().unwrap().strip_prefix('#').unwrap();
            let definition = SCHEMA.pointer(path).unwrap();
            assert!(definition["description"].is_string(), "{path} is not described");
        }
        let request = SCHEMA.pointer(&row["request"]["$ref"].as_str().unwrap()[1..]).unwrap();
        assert_eq!(request["additionalProperties"], false, "{row}");
        for (name, property) in request["properties"].as_object().unwrap() {
            assert!(property["description"].is_string(), "{name} of {row} is not described");
        }
    }
}

#[tokio::test]
async fn the_schema_and_the_service_refuse_the_same_requests() {
    let session = Session::with_conversation().await;
    for wrong in [
        json!({ "conversation": "a", "stats": false }),
        json!({ "conversation": "a", "stat": true }),
        json!({ "conversation": "a", "stats": true, "at": 1 }),
        json!({ "conversation": "a", "log": { "limit": -1 } }),
        json!({ "conversation": "a", "log": { "limits": 1 } }),
        json!({ "conversation": "a", "render": "somebody" }),
        json!({ "conversation": "a" }),
        json!({ "create": 7 }),
        json!({ "create": "b", "settings": { "counter": "abacus" } }),
        json!({ "list": { "after": 1 } }),
        json!({ "search": true }),
        json!({}),
    ] {
        assert!(validator::check(&wrong, &SCHEMA, &SCHEMA).is_err(), "{wrong}");
        let error = session.refused(&wrong.to_string()).await;
        assert_eq!(error["code"], "invalid_operation", "{wrong}: {error}");
    }
}

#[test]
fn the_page_about_requests_has_every_request_and_no_other() {
    let page = include_str!("../../../../docs/exec.md");
    let mut found: Vec<&str> = Vec::new();
    for line in page.lines().filter(|line| line.starts_with("| `")) {
        let cell = line.split('|').nth(1).unwrap();
        found.extend(cell.split('`').skip(1).step_by(2));
    }
    let mut names = all_names();
    for name in &names {
        assert!(found.contains(name), "docs/exec.md lacks {name}");
    }
    names.push("conversation");
    for name in found {
        assert!(names.contains(&name), "docs/exec.md has {name}, which is no request");
    }
}
