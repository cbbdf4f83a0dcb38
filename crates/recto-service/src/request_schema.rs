//! The JSON Schema of all requests and responses, generated from their types.

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::request::{RequestKind, Scoped};
use crate::schema::ErrorResponse;

/// The JSON Schema (draft 2020-12) of all requests and responses.
///
/// The schema accepts every request. `requests` lists them: `{names, about, request, response}`,
/// where the last two point into `$defs`. `error` points to the schema of errors.
pub fn schema() -> Value {
    // A field with a default may be missing in a request, and is always there in a response.
    let mut requests = SchemaSettings::draft2020_12().for_deserialize().into_generator();
    let mut responses = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut rows = Vec::new();
    let mut any_of = Vec::new();
    for kind in RequestKind::ALL {
        let request = (kind.request_schema)(&mut requests).to_value();
        let response = (kind.response_schema)(&mut responses).to_value();
        require_name(kind, &request, requests.definitions_mut());
        any_of.push(request.clone());
        let about = match kind.scoped {
            Scoped::Creating | Scoped::Store => "store",
            Scoped::Conversation => "conversation",
        };
        rows.push(json!({
            "names": kind.names, "about": about, "request": request, "response": response,
        }));
    }
    let error = responses.subschema_for::<ErrorResponse>().to_value();
    let mut definitions = requests.take_definitions(true);
    for (name, definition) in responses.take_definitions(true) {
        let known = definitions.insert(name.clone(), definition.clone());
        let is_same = known.is_none_or(|known| known == definition);
        assert!(is_same, "{name} is the name of a type of requests and of another of responses");
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Requests of Recto",
        "description": "The schema accepts every request. `requests` lists them with their responses.",
        "type": "object",
        "anyOf": any_of,
        "requests": rows,
        "error": error,
        "$defs": definitions,
    })
}

/// Changes the schema of a request so that one of its names is required. A name that is no field of the type
/// is an alias of the first name, and gets its schema.
fn require_name(kind: &RequestKind, reference: &Value, definitions: &mut Map<String, Value>) {
    let name = reference["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/"));
    let definition = definitions.get_mut(name.expect("requests have names"));
    let definition = definition.and_then(Value::as_object_mut).expect("requests are objects");
    let properties = definition["properties"].as_object_mut().expect("requests have fields");
    let first = properties[kind.names[0]].clone();
    for name in &kind.names[1..] {
        properties.entry(*name).or_insert_with(|| first.clone());
    }
    if kind.names.len() > 1 {
        if let Some(Value::Array(required)) = definition.get_mut("required") {
            required.retain(|field| *field != kind.names[0]);
        }
        let any: Vec<Value> = kind.names.iter().map(|name| json!({ "required": [name] })).collect();
        definition.insert("anyOf".to_owned(), any.into());
    }
}
