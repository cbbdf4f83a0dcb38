//! Codec of responses of Google's Gemini API: objects with `candidates`, the chunks of a stream, and the
//! recordings of Gemini CLI (`{"method", "response"}`).
//!
//! | in the file | conversion |
//! |---|---|
//! | a response with `candidates` | the content of the first candidate |
//! | a recorded stream | one message; adjacent texts of its chunks are joined |
//! | a content with a list `parts` | a message, read like a content of Gemini |
//! | all other records, such as counts of tokens | stored with the next message, for export |

use recto_core::Role;

use super::gemini::Gemini;
use super::message_list::{FieldError, MessageCodec as _};
use super::qwen_code::set_model;
use super::session::{Place, Record, SessionCodec, SessionState};
use super::{Head, Likelihood};
use crate::Format;
use crate::json::{self, Str};
use crate::parts::MessageParts;

pub(crate) struct GeminiResponses;

impl SessionCodec for GeminiResponses {
    fn format(&self) -> Format {
        Format::GeminiResponses
    }

    fn recognise(&self, head: &Head) -> Likelihood {
        let mut best = Likelihood::No;
        for object in head.objects() {
            if chunks_of(object).any(|chunk| content_of(chunk).is_some()) {
                best = best.max(Likelihood::Declared);
            }
            let is_recorded = json::get(object, "method").is_some_and(|it| Str::of(it).is_some())
                && json::get(object, "response").is_some();
            if is_recorded {
                best = best.max(Likelihood::Likely);
            }
        }
        best
    }

    fn read<'a>(
        &self,
        record: &'a str,
        state: &mut SessionState,
    ) -> Result<Record<'a>, FieldError> {
        let mut read = Record::without_message(record);
        if json::get(record, "parts").is_some_and(json::is_list) {
            read.drafts = Gemini.read(record, &mut state.list)?;
            return Ok(read);
        }
        let parts = joined_parts(record);
        if !parts.is_empty() {
            let content = format!(r#"{{"role":"model","parts":[{}]}}"#, parts.join(","));
            read.drafts = Gemini.read(&content, &mut state.list)?;
            let model = chunks_of(record).find_map(|chunk| json::get_str(chunk, "modelVersion"));
            let model = model.map(|model| model.escaped().to_owned());
            read.drafts.iter_mut().for_each(|draft| set_model(draft, model.as_deref()));
        }
        Ok(read)
    }

    fn write(
        &self,
        message: &MessageParts<'_>,
        place: &Place<'_>,
        out: &mut String,
        warnings: &mut Vec<String>,
    ) {
        let mut contents = String::new();
        Gemini.write(std::slice::from_ref(message), place.names, &mut contents, warnings);
        for (number, content) in json::items(&format!("[{contents}]")).enumerate() {
            if number > 0 {
                out.push(',');
            }
            match message.role {
                Role::Assistant => {
                    out.push_str(&format!(r#"{{"candidates":[{{"content":{content}}}]}}"#));
                }
                _ => out.push_str(content),
            }
        }
    }
}

/// The responses in a record: the record itself, or those that a recording contains.
fn chunks_of(record: &str) -> impl Iterator<Item = &str> {
    let response = json::get(record, "response");
    let (one, list) = match response {
        Some(list) if json::is_list(list) => (None, list),
        Some(one) => (Some(one), "[]"),
        None => (Some(record), "[]"),
    };
    one.into_iter().chain(json::items(list))
}

/// The content of the first candidate.
fn content_of(response: &str) -> Option<&str> {
    let candidates = json::get(response, "candidates").filter(|list| json::is_list(list))?;
    json::get(json::items(candidates).next()?, "content").filter(|it| json::is_object(it))
}

/// The parts of all chunks. Adjacent texts are joined.
fn joined_parts(record: &str) -> Vec<String> {
    let mut joined: Vec<String> = Vec::new();
    // The text that is not in `joined` yet, and whether it is a thought.
    let mut open: Option<(String, bool)> = None;
    let close = |open: &mut Option<(String, bool)>, joined: &mut Vec<String>| {
        if let Some((text, is_thought)) = open.take() {
            let thought = if is_thought { ",\"thought\":true" } else { "" };
            joined.push(format!(r#"{{"text":"{text}"{thought}}}"#));
        }
    };
    for content in chunks_of(record).filter_map(content_of) {
        for (part, fields) in json::get(content, "parts").map(json::objects).into_iter().flatten() {
            let is_thought = fields.is_true("thought");
            match fields.get_str("text").filter(|_| fields.has_only(&["text", "thought"])) {
                Some(text) => match &mut open {
                    Some((before, was_thought)) if *was_thought == is_thought => {
                        before.push_str(text.escaped());
                    }
                    _ => {
                        close(&mut open, &mut joined);
                        open = Some((text.escaped().to_owned(), is_thought));
                    }
                },
                None => {
                    close(&mut open, &mut joined);
                    joined.push(part.to_owned());
                }
            }
        }
    }
    close(&mut open, &mut joined);
    joined
}
