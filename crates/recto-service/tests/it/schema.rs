//! The schema covers all requests, and refuses the requests that the service refuses.

use std::collections::BTreeMap;

use serde_json::{Value, json};

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

/// A request on the page about requests.
struct PageRow {
    /// `store` or `conversation`.
    about: &'static str,
    names: Vec<&'static str>,
    fields: &'static str,
    response: &'static str,
}

/// The two tables of the page about requests.
fn rows_of_the_page() -> Vec<PageRow> {
    let page = include_str!("../../../../docs/exec.md");
    let tables = page.split_once("## Requests about a conversation").unwrap();
    let mut found = Vec::new();
    for (about, table) in [("store", tables.0), ("conversation", tables.1)] {
        for row in table.lines().filter_map(|line| line.strip_prefix("| `")) {
            let mut cells = row.split(" | ");
            let mut cell = || cells.next().unwrap_or_else(|| panic!("{row} has too few cells"));
            let names = cell().trim_end_matches('`').split("`, `").collect();
            let (fields, response) = (cell(), cell().trim_end_matches(" |"));
            found.push(PageRow { about, names, fields, response });
        }
    }
    found
}

#[test]
fn the_page_about_requests_has_every_request_and_no_other() {
    let found: Vec<&str> = rows_of_the_page().into_iter().flat_map(|row| row.names).collect();
    let names = all_names();
    for name in &names {
        assert!(found.contains(name), "docs/exec.md lacks {name}");
    }
    for name in found {
        assert!(names.contains(&name), "docs/exec.md has {name}, which is no request");
    }
}

/// The fields of an object in the form of the page, `{name, at?, from: {…}}`: each with whether it may be
/// missing.
fn fields_of(object: &str) -> BTreeMap<String, bool> {
    let inner = object.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
    let mut depth = 0;
    let mut fields = vec![String::new()];
    for letter in inner.unwrap_or_else(|| panic!("{object} is no object")).chars() {
        match letter {
            '{' | '[' => depth += 1,
            '}' | ']' => depth -= 1,
            ',' if depth == 0 => fields.push(String::new()),
            letter if depth == 0 => fields.last_mut().unwrap().push(letter),
            _ => {}
        }
    }
    fields.iter().map(|field| option(field.split(':').next().unwrap().trim())).collect()
}

/// The name of a field, and whether it may be missing.
fn option(written: &str) -> (String, bool) {
    (written.trim_end_matches('?').to_owned(), written.ends_with('?'))
}

/// The parts of a text in backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The fields of a definition of the schema: each with whether it may be missing.
fn fields_in_schema(definition: &Value) -> BTreeMap<String, bool> {
    let required = definition["required"].as_array();
    let is_required = |name: &str| required.is_some_and(|all| all.iter().any(|one| one == name));
    let properties = definition["properties"].as_object().unwrap();
    properties.keys().map(|name| (name.clone(), !is_required(name))).collect()
}

/// The definition that a schema refers to; the last one if it allows several.
fn definition(schema: &Value) -> &Value {
    if let Some(path) = schema["$ref"].as_str() {
        return definition(SCHEMA.pointer(path.strip_prefix('#').unwrap()).unwrap());
    }
    let several = schema["anyOf"].as_array().into_iter().flatten();
    let is_object = |one: &&Value| one["$ref"].is_string() || one["properties"].is_object();
    several.rev().find(is_object).map_or(schema, definition)
}

#[test]
fn the_page_about_requests_has_every_field_and_no_other() {
    let rows = SCHEMA["requests"].as_array().unwrap();
    let mut of_op = BTreeMap::new();
    let (mut options, mut objects, mut responses) = (0, 0, 0);
    for PageRow { about, names, fields, response } in rows_of_the_page() {
        let is_same = |row: &&Value| row["about"] == about && row["names"] == json!(names);
        let row = rows.iter().find(is_same).unwrap_or_else(|| panic!("no request {names:?}"));
        let request = definition(&row["request"]);
        let mut known = fields_in_schema(request);
        known.retain(|name, _| name != "conversation" && !names.contains(&name.as_str()));
        let (value, written) = fields.split_once("; ").unwrap_or((fields, ""));
        let mut documented: BTreeMap<String, bool> = quoted(written).map(option).collect();
        if written.contains("the options of `op`") {
            documented.remove("op");
            documented.append(&mut of_op.clone());
        }
        assert_eq!(documented, known, "the fields of {names:?}: the page, the schema");
        options += known.len();
        if names.contains(&"op") {
            of_op = known;
        }
        let value_in_schema = definition(&request["properties"][names[0]]);
        let is_object = value_in_schema["properties"].is_object();
        // Operations and queries are described in the contract.
        let is_of_contract = ["op", "ask", "count"].contains(&names[0]);
        if is_object && !is_of_contract {
            let object = quoted(value).find(|text| text.starts_with('{')).unwrap_or_default();
            let known = fields_in_schema(value_in_schema);
            assert_eq!(fields_of(object), known, "the object of {names:?}: the page, the schema");
            objects += 1;
        }
        let in_schema = definition(&row["response"]);
        // The command `export -o` returns `file`, and a JSON request always `data`.
        if names == ["export"] {
            continue;
        }
        if let [object] = *quoted(response).collect::<Vec<_>>()
            && response.starts_with("`{")
            && !response.contains("the fields of")
            && in_schema["properties"].is_object()
        {
            let known = fields_in_schema(in_schema);
            assert_eq!(fields_of(object), known, "the response to {names:?}: the page, the schema");
            responses += 1;
        }
    }
    assert!(options > 60 && objects > 9 && responses > 20, "{options} {objects} {responses}");
}
