//! Every request with its response.

mod changes;
mod lists;
mod reads;
mod transcripts;

use serde_json::{Value, json};

fn user(text: &str) -> Value {
    json!({ "role": "user", "content": text })
}

fn append(messages: Value) -> Value {
    json!({ "operation": "APPEND", "messages": messages })
}
