//! Appending the result of a child conversation to its parent.

use std::collections::HashMap;

use recto::engine::json::Pairs;
use recto::{Append, Conversation, LogIndex, Message, Outcome, Request};
use serde::Serialize;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use crate::{Call, Error};

/// See [`ConversationExt::append_from_child`](crate::ConversationExt::append_from_child).
pub(crate) async fn append_from_child(
    parent: &Conversation,
    child: &Conversation,
    selection: Request,
) -> Result<Option<Outcome>, Error> {
    let preview = child.preview(selection).await?;
    let added: HashMap<LogIndex, Message> =
        preview.added.into_iter().map(|entry| (entry.index, entry.message)).collect();
    let selected: Vec<LogIndex> = preview.outcome.view().iter().collect();
    let stored: Vec<LogIndex> =
        selected.iter().copied().filter(|index| !added.contains_key(index)).collect();
    let mut messages = added;
    for entry in child.entries(&stored).await? {
        messages.insert(entry.index, entry.message);
    }
    let selected = selected.iter().filter_map(|index| messages.get(index));
    let messages: Result<Vec<Message>, Error> =
        selected.map(|message| without_manifest(message, child)).collect();
    let messages = messages?;
    if messages.is_empty() {
        return Ok(None);
    }
    let reason = format!("appended from the child conversation {}", child.id());
    Ok(Some(parent.apply(Append { messages }.reason(reason)).await?))
}

/// The message with `metadata.handedBack` instead of the manifest of its call. The number and the
/// version in a manifest are those of the child and would be wrong in the parent.
fn without_manifest(message: &Message, child: &Conversation) -> Result<Message, Error> {
    let Some(call) = Call::of(message) else { return Ok(message.clone()) };
    let read = |object: &str| serde_json::from_str::<Pairs<Box<RawValue>>>(object);
    let mut fields = read(message.json()).unwrap_or_default();
    for (_, value) in fields.0.iter_mut().filter(|(name, _)| name == "metadata") {
        let mut metadata = read(value.get()).unwrap_or_default();
        metadata.0.retain(|(name, _)| name != "call");
        let (conversation, call) = (child.id().to_string(), call.number);
        let from = json!({ "conversation": conversation, "call": call });
        metadata.0.push(("handedBack".to_owned(), raw(&from)));
        *value = raw(&metadata);
    }
    Ok(Message::from_json(&fields.to_json())?)
}

fn raw(value: &impl Serialize) -> Box<RawValue> {
    to_raw_value(value).expect("JSON can be written")
}
