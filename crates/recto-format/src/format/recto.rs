//! Recto's own messages: a list, an object with `messages`, or JSON lines. They are kept as they are.

use super::message_list::{CallNames, Draft, Memory, MessageForm, Misfit};
use super::{Head, Likelihood};
use crate::Format;
use crate::json::{self, Str};
use crate::parts::MessageParts;

pub(crate) struct Recto;

fn likelihood(message: &str) -> Likelihood {
    let role = json::get_str(message, "role").map(Str::escaped);
    let is_made_here = json::get(message, "metadata")
        .and_then(|metadata| json::get(metadata, "source"))
        .is_some_and(|source| json::get(source, "format").is_some());
    if is_made_here && role.is_some() {
        return Likelihood::Surely;
    }
    let parts = json::get(message, "content").map(json::items).into_iter().flatten();
    let mut most = Likelihood::No;
    for part in parts {
        let found = match json::get_str(part, "type").map(Str::escaped) {
            Some("tool_result") if role == Some("tool") => Likelihood::Surely,
            Some("thinking") if json::get(part, "text").is_some() => Likelihood::Surely,
            _ => Likelihood::No,
        };
        most = most.max(found);
    }
    most
}

impl MessageForm for Recto {
    /// Results in messages from the tool, thoughts under `text`, and `metadata.source` are only here.
    fn recognise(&self, head: &Head) -> Likelihood {
        let mut most = Likelihood::No;
        for object in head.objects() {
            let listed = json::get(object, "messages").map(json::items).into_iter().flatten();
            for message in std::iter::once(object).chain(listed) {
                most = most.max(likelihood(message));
            }
        }
        most
    }

    fn format(&self) -> Format {
        Format::Recto
    }

    fn list_keys(&self) -> &'static [&'static str] {
        &["messages"]
    }

    fn read(&self, _foreign: &str, _memory: &mut Memory) -> Result<Vec<Draft>, Misfit> {
        Ok(vec![Draft::AsItIs])
    }

    fn write(
        &self,
        pieces: &[MessageParts<'_>],
        _names: &CallNames<'_>,
        out: &mut String,
        _remarks: &mut Vec<String>,
    ) {
        for (number, message) in pieces.iter().enumerate() {
            if number > 0 {
                out.push(',');
            }
            out.push_str(message.json);
        }
    }
}
