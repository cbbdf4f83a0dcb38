//! Hostile messages, requests and queries, and the verdict on each: the same bytes back, or a typed
//! error. Every surface and every store must come to the same verdicts.

mod messages;
mod requests;

pub use messages::{MESSAGES, made_messages};
pub use requests::{QUERIES, REQUESTS};

/// What is said of an accepted input; anything else is the code of the error.
pub const KEPT: &str = "kept";

/// The short conversation that the requests and queries meet: requests that are all accepted.
pub const START: &[&str] = &[
    r#"{"operation":"APPEND","messages":[
        {"role":"system","content":"be brief"},
        {"role":"user","content":"a\u0000\ud800"},
        {"role":"user","content":"b"}]}"#,
    r#"{"operation":"BATCH_START"}"#,
];

/// All messages: those that are written down, then the long ones.
pub fn all_messages() -> impl Iterator<Item = (String, &'static str)> {
    let written = MESSAGES.iter().map(|&(json, verdict)| (json.to_owned(), verdict));
    written.chain(made_messages())
}

/// The start of an input, for messages to people.
pub fn name(input: &str) -> String {
    input.chars().take(120).collect()
}

/// A message as it is kept: without the space around it.
pub fn without_space_around(json: &str) -> &str {
    json.trim_matches([' ', '\t', '\r', '\n'])
}
