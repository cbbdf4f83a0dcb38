//! Hostile messages, requests and queries with the expected result of each: the same bytes, or a typed
//! error. Every surface and every store must give the same results.

mod messages;
mod requests;

pub use messages::{MESSAGES, made_messages};
pub use requests::{QUERIES, REQUESTS};

/// The result for an accepted input; any other result is the code of the error.
pub const KEPT: &str = "kept";

/// Requests that make the short conversation to which the requests and queries are applied.
pub const START: &[&str] = &[
    r#"{"operation":"APPEND","messages":[
        {"role":"system","content":"be brief"},
        {"role":"user","content":"a\u0000\ud800"},
        {"role":"user","content":"b"}]}"#,
    r#"{"operation":"BATCH_START"}"#,
];

/// All messages: those of [`MESSAGES`], then those of [`made_messages`].
pub fn all_messages() -> impl Iterator<Item = (String, &'static str)> {
    let written = MESSAGES.iter().map(|&(json, expected)| (json.to_owned(), expected));
    written.chain(made_messages())
}

/// The first 120 characters of an input, for failure messages.
pub fn name(input: &str) -> String {
    input.chars().take(120).collect()
}

/// The JSON of a message without the space around it, which is what is stored.
pub fn without_space_around(json: &str) -> &str {
    json.trim_matches([' ', '\t', '\r', '\n'])
}
