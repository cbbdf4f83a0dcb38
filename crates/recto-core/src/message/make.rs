//! Constructors of messages, and placeholders of erased and pruned messages.
//!
//! No constructor panics. `Message::new` and `Message::assistant_with_calls` return an error for content
//! that the contract refuses. The other constructors return a message, so that they can be used in
//! lists; if its content is refused, the request that adds the message returns that error.

use serde_json::{Value, json};
use triomphe::Arc;

use super::{Content, Header, Message};
use crate::edges::Edges;
use crate::{Error, Limits, Role};

/// Text of the placeholder of an erased message.
const ERASED: &str = "[erased]";
/// Text of the placeholder of a pruned message.
const PRUNED: &str = "[pruned]";

impl Message {
    /// A message with a text.
    pub fn new(role: Role, text: &str) -> Result<Message, Error> {
        Self::try_make(&json!({ "role": role, "content": text }))
    }

    /// A system message. If the text is empty, adding the message to a conversation fails with
    /// [`EmptyContent`](Error::EmptyContent).
    pub fn system(text: &str) -> Message {
        Self::make(Role::System, json!(text))
    }

    /// A user message. If the text is empty, adding the message to a conversation fails with
    /// [`EmptyContent`](Error::EmptyContent).
    ///
    /// ```
    /// use recto_core::{Approx, Code, Conversation, Message, Settings};
    ///
    /// let start = Conversation::new(Settings::counting_with(Approx), 0)?;
    /// assert!(start.append([Message::user("hello")], 1).is_ok());
    /// let error = start.append([Message::user("")], 1).unwrap_err();
    /// assert_eq!(error.code(), Code::EmptyContent);
    /// # Ok::<(), recto_core::Error>(())
    /// ```
    pub fn user(text: &str) -> Message {
        Self::make(Role::User, json!(text))
    }

    /// An assistant message. If the text is empty, adding the message to a conversation fails with
    /// [`EmptyContent`](Error::EmptyContent).
    pub fn assistant(text: &str) -> Message {
        Self::make(Role::Assistant, json!(text))
    }

    /// An assistant message with one tool call. `input` is any JSON value.
    pub fn tool_call(id: &str, name: &str, input: &Value) -> Message {
        Self::make(Role::Assistant, json!([call_part(id, name, input)]))
    }

    /// An assistant message with a text, which may be empty, and tool calls, each with its id, the name of
    /// the tool and the input. A message with neither text nor calls is an error.
    ///
    /// ```
    /// use recto_core::Message;
    /// use serde_json::json;
    ///
    /// let (hosts, load) = (json!({}), json!({ "host": "web-1" }));
    /// let calls = [("call_1", "hosts", &hosts), ("call_2", "load", &load)];
    /// let answer = Message::assistant_with_calls("Let me see.", calls)?;
    /// assert_eq!(answer.tool_calls().count(), 2);
    /// # Ok::<(), recto_core::Error>(())
    /// ```
    pub fn assistant_with_calls<'a>(
        text: &str,
        calls: impl IntoIterator<Item = (&'a str, &'a str, &'a Value)>,
    ) -> Result<Message, Error> {
        let text = (!text.is_empty()).then(|| json!({ "type": "text", "text": text }));
        let calls = calls.into_iter().map(|(id, name, input)| call_part(id, name, input));
        let parts: Vec<Value> = text.into_iter().chain(calls).collect();
        Self::try_make(&json!({ "role": Role::Assistant, "content": parts }))
    }

    /// The result of the tool call `id`.
    pub fn tool_result(id: &str, text: &str) -> Message {
        Self::make(Role::Tool, json!([result_part(id, text)]))
    }

    /// The result of the tool call `id`, which failed.
    pub fn tool_error(id: &str, text: &str) -> Message {
        let mut part = result_part(id, text);
        part["is_error"] = true.into();
        Self::make(Role::Tool, json!([part]))
    }

    /// The placeholder of this message after it is erased. It keeps the role, the ids and names of tool
    /// calls and the ids of tool results, so that tool exchanges stay complete, and nothing else.
    ///
    /// ```
    /// let secret = recto_core::Message::user("my password is hunter2");
    /// assert_eq!(secret.erased().json(), r#"{"role":"user","content":"[erased]"}"#);
    /// ```
    pub fn erased(&self) -> Message {
        self.placeholder(ERASED)
    }

    /// The placeholder of this message after it is pruned; see [`erased`](Self::erased).
    pub fn pruned(&self) -> Message {
        self.placeholder(PRUNED)
    }

    /// Whether this is the placeholder of an erased or pruned message. The placeholder of a message that had
    /// only tool calls is not recognised: it has no text, like a message whose calls have no input.
    ///
    /// ```
    /// let secret = recto_core::Message::user("my password is hunter2");
    /// assert!(secret.erased().is_placeholder() && !secret.is_placeholder());
    /// ```
    pub fn is_placeholder(&self) -> bool {
        let mut texts = [ERASED, PRUNED].into_iter().filter(|text| self.json().contains(text));
        texts.any(|text| self.placeholder(text).json() == self.json())
    }

    fn placeholder(&self, text: &str) -> Message {
        let calls = self.tool_calls().map(|call| call_part(&call.id, &call.name, &json!({})));
        let results = self.tool_result_ids().map(|id| result_part(&id, text));
        let parts: Vec<Value> = calls.chain(results).collect();
        let content = if parts.is_empty() { json!(text) } else { json!(parts) };
        Self::make(self.role(), content)
    }

    /// A message from JSON that this crate wrote, without [`Limits`], which are for external input.
    fn try_make(message: &Value) -> Result<Message, Error> {
        Self::from_checked_json(&message.to_string(), &Limits::NONE)
    }

    /// A message with this content. If the content is refused, the message keeps the error; see
    /// [`check_content`](Self::check_content).
    fn make(role: Role, content: Value) -> Message {
        Self::try_make(&json!({ "role": role, "content": content })).unwrap_or_else(|error| {
            let header = Header {
                content: Content::Refused(Box::new(error)),
                edges: Edges::default(),
                timestamp_at: 0,
                role,
                uses_minimal_escapes: true,
                is_foreign: false,
            };
            let json = json!({ "role": role, "content": "" }).to_string();
            Message(Arc::from_header_and_str(header, &json))
        })
    }

    /// Returns the error of the constructor, if the content was refused.
    pub(crate) fn check_content(&self) -> Result<(), Error> {
        match &self.header().content {
            Content::Refused(error) => Err(Error::clone(error)),
            _ => Ok(()),
        }
    }
}

fn call_part(id: &str, name: &str, input: &Value) -> Value {
    json!({ "type": "tool_use", "id": id, "name": name, "input": input })
}

fn result_part(id: &str, text: &str) -> Value {
    json!({ "type": "tool_result", "tool_use_id": id, "content": text })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Append, Approx, Code, Compress, Conversation, Insert, LogIndex, Position, Replace, Request,
        Settings,
    };

    #[test]
    fn an_empty_text_is_refused_by_the_request_that_adds_it() {
        let empty = [Message::user(""), Message::assistant(""), Message::system("")];
        for message in empty {
            assert_eq!(message.text(), "");
            assert_eq!(message.json(), format!(r#"{{"role":"{}","content":""}}"#, message.role()));
            let settings = || Settings::counting_with(Approx);
            let created =
                Conversation::with_messages(settings(), std::slice::from_ref(&message), 0);
            assert_eq!(created.unwrap_err().code(), Code::EmptyContent);
            let start = Conversation::new(settings(), 0).unwrap();
            let (start, _) = start.append([Message::user("a")], 1).unwrap();
            let messages = vec![message.clone()];
            let requests: [Request; 4] = [
                Append { messages: messages.clone() }.into(),
                Insert { position: Position(0), messages }.into(),
                Replace { index: Position(0), message: message.clone() }.into(),
                Compress { indices: vec![LogIndex(0)], summary: Some(message.clone()) }.into(),
            ];
            for request in requests {
                let error = start.apply(request, 2).unwrap_err();
                assert_eq!(error.code(), Code::EmptyContent);
                assert!(error.field().is_some_and(|field| field.ends_with("content")), "{error:?}");
            }
        }
    }

    #[test]
    fn a_tool_that_prints_nothing_has_a_result() {
        let start = Conversation::new(Settings::counting_with(Approx), 0).unwrap();
        assert!(
            start.append([Message::tool_result("", ""), Message::tool_error("a", "")], 0).is_ok()
        );
        assert!(start.append([Message::tool_call("", "", &json!(null))], 0).is_ok());
    }

    #[test]
    fn an_answer_has_a_text_or_calls_or_both() {
        let input = json!({ "host": "web-1" });
        let calls = [("a", "load", &input), ("b", "disk", &input)];
        let both = Message::assistant_with_calls("I look.", calls).unwrap();
        assert_eq!(both.role(), Role::Assistant);
        assert_eq!(both.text(), "I look.\nload {\"host\":\"web-1\"}\ndisk {\"host\":\"web-1\"}");
        let silent = Message::assistant_with_calls("", calls).unwrap();
        assert_eq!(silent.tool_calls().map(|call| call.id).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(Message::assistant_with_calls("Done.", []).unwrap().text(), "Done.");
        let nothing = Message::assistant_with_calls("", []).unwrap_err();
        assert_eq!(nothing.code(), Code::EmptyContent);
    }

    #[test]
    fn a_failed_tool_has_a_result_with_is_error() {
        let failure = Message::tool_error("a", "no such host");
        assert_eq!(failure.tool_result_ids().collect::<Vec<_>>(), ["a"]);
        assert_eq!(failure.text(), "no such host");
        assert!(failure.json().contains(r#""is_error":true"#));
    }
}
