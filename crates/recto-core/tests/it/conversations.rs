//! Conversations that are built from JSON requests, for the other tests.

use recto_core::{Approx, Conversation, Error, Outcome, Request, Settings, Timestamp, Tool};

use crate::driver::numbers;

/// An empty conversation at version 0.
pub(crate) fn fresh() -> Conversation {
    with_tools(&[])
}

/// A conversation at version 0 whose tools have these names.
pub(crate) fn with_tools(names: &[&str]) -> Conversation {
    let settings = Settings { tools: tools(names), ..Settings::counting_with(Approx) };
    Conversation::new(settings, 0).expect("the tools are well-formed")
}

pub(crate) fn tools(names: &[&str]) -> Vec<Tool> {
    names.iter().map(|name| Tool::new(*name, "does it")).collect()
}

/// Reads a request and applies it.
pub(crate) fn send(
    conversation: &Conversation,
    request: &str,
    now: Timestamp,
) -> Result<(Conversation, Outcome), Error> {
    conversation.apply(Request::from_json(request)?, now)
}

/// The conversation after requests that are all accepted, at the times 1, 2, 3 …
pub(crate) fn after(start: Conversation, requests: &[&str]) -> Conversation {
    requests.iter().zip(1..).fold(start, |conversation, (request, now)| {
        send(&conversation, request, now).unwrap_or_else(|error| panic!("{request}: {error}")).0
    })
}

/// The view, as log indices.
pub(crate) fn view(conversation: &Conversation) -> Vec<usize> {
    numbers(conversation.view().iter())
}

/// An APPEND of `count` short user messages.
pub(crate) fn append(count: usize) -> String {
    let messages = vec![r#"{"role":"user","content":"x"}"#; count];
    format!(r#"{{"operation":"APPEND","messages":[{}]}}"#, messages.join(","))
}
