//! Requests and their responses, errors, and the schema.

mod errors;
mod requests;
mod schema;
mod validator;

use std::sync::LazyLock;

use recto::Recto;
use recto_service::{RequestKind, Service};
use serde_json::{Value, json};

/// The schema, generated once.
pub(crate) static SCHEMA: LazyLock<Value> = LazyLock::new(recto_service::schema);

/// A service over a store in memory. Every request that succeeds is compared with the schema, and so
/// is its response.
pub(crate) struct Session(pub(crate) Service);

impl Session {
    pub(crate) async fn new() -> Session {
        Session(Service::new(Recto::open("memory:").await.unwrap()))
    }

    /// A session with one conversation, `a`, counted by `approx`.
    pub(crate) async fn with_conversation() -> Session {
        let session = Session::new().await;
        session.query(json!({ "create": "a", "settings": { "counter": "approx" } })).await;
        session
    }

    /// The response to a request, which must succeed.
    pub(crate) async fn query(&self, request: Value) -> Value {
        let text = self.0.request(&request.to_string()).await;
        assert!(!text.contains('\n'), "an answer is one line: {text}");
        let response: Value = serde_json::from_str(&text).unwrap();
        assert!(response.get("error").is_none(), "{request}: {response}");
        validator::check(&request, &SCHEMA, &SCHEMA)
            .unwrap_or_else(|why| panic!("{request}: {why}"));
        let row = row_of(&request);
        validator::check(&response, &row["response"], &SCHEMA)
            .unwrap_or_else(|why| panic!("{request}: {response}: {why}"));
        response
    }

    /// [`query`](Self::query) about the conversation `a`.
    pub(crate) async fn of(&self, name: &str, value: Value) -> Value {
        self.query(json!({ "conversation": "a", name: value })).await
    }

    /// Appends messages of the user.
    pub(crate) async fn say(&self, texts: &[&str]) -> Value {
        let messages: Vec<Value> =
            texts.iter().map(|text| json!({ "role": "user", "content": text })).collect();
        self.of("op", json!({ "operation": "APPEND", "messages": messages })).await
    }

    /// The error that a request is refused with.
    pub(crate) async fn refused(&self, request: &str) -> Value {
        let text = self.0.request(request).await;
        let response: Value = serde_json::from_str(&text).unwrap();
        validator::check(&response, &SCHEMA["error"], &SCHEMA)
            .unwrap_or_else(|why| panic!("{request}: {response}: {why}"));
        response["error"].clone()
    }
}

/// The row of the schema that describes a request.
fn row_of(request: &Value) -> &'static Value {
    let about = if request.get("conversation").is_some() { "conversation" } else { "store" };
    let rows = SCHEMA["requests"].as_array().unwrap();
    let has_name = |row: &Value| {
        row["names"]
            .as_array()
            .unwrap()
            .iter()
            .any(|name| request.get(name.as_str().unwrap()).is_some())
    };
    rows.iter().find(|row| row["about"] == about && has_name(row)).expect("a row for the request")
}

/// The names of all requests.
pub(crate) fn all_names() -> Vec<&'static str> {
    RequestKind::ALL.iter().flat_map(|kind| kind.names).copied().collect()
}
