//! Appending the result of a child conversation to its parent.

use std::collections::HashMap;
use std::fmt;

use recto::{Append, Conversation, LogIndex, Message, Outcome, Request};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::json;
use serde_json::value::RawValue;

use crate::reply::quoted;
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
    let mut fields = Pairs::read(message.json());
    for (name, value) in &mut fields {
        if name != "metadata" {
            continue;
        }
        let mut metadata = Pairs::read(value);
        metadata.retain(|(name, _)| name != "call");
        let (conversation, call) = (child.id().to_string(), call.number);
        let from = json!({ "conversation": conversation, "call": call }).to_string();
        metadata.push(("handedBack".into(), from));
        *value = Pairs::write(&metadata);
    }
    Ok(Message::from_json(&Pairs::write(&fields))?)
}

/// The fields of a JSON object in their order, each value as its original text.
struct Pairs(Vec<(String, String)>);

impl Pairs {
    /// The fields; empty if the JSON is not an object.
    fn read(json: &str) -> Vec<(String, String)> {
        serde_json::from_str::<Pairs>(json).map_or(Vec::new(), |pairs| pairs.0)
    }

    fn write(pairs: &[(String, String)]) -> String {
        let fields = pairs.iter().map(|(name, value)| format!("{}:{value}", quoted(name)));
        format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
    }
}

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PairsVisitor;
        impl<'de> Visitor<'de> for PairsVisitor {
            type Value = Pairs;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Pairs, M::Error> {
                let mut pairs = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, Box<RawValue>>()? {
                    pairs.push((name, value.get().to_owned()));
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(PairsVisitor)
    }
}
