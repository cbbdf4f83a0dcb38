//! Steps of a workflow: an operation in any form on the conversation of a step, and a child conversation
//! that hands its work back.

use std::collections::HashMap;
use std::fmt;

use recto::{Append, LogIndex, Message, Outcome, Request, StoredConversation};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::json;
use serde_json::value::RawValue;

use crate::answer::quoted;
use crate::{Call, Error};

/// A context-processor node: performs operations that are written in any of the three input forms.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// use recto::{Message, Recto, Settings};
/// use recto_agent::process;
///
/// let talk = Recto::open("memory:").await?.create("step", Settings::default()).await?;
/// talk.append(["one", "two", "three"].map(Message::user)).await?;
/// process(&talk, r#"{"operation": "truncate", "truncate": {"keepLast": 1}}"#).await?;
/// assert_eq!(talk.messages().await?.len(), 1);
/// # Ok::<(), recto_agent::Error>(())
/// # }).unwrap();
/// ```
pub async fn process(talk: &StoredConversation, operation: &str) -> Result<Outcome, Error> {
    Ok(talk.apply(Request::from_json(operation)?).await?)
}

/// Continues in the parent with the work of a child: the operation chooses from the child's view (the
/// child itself is not changed), and what is left is appended to the parent. `None` if nothing is left.
/// Manifests of calls stay with the child: `metadata.handedBack` says where one is.
///
/// A compression, written with it: a child gets the old messages and writes a summary, and only that
/// comes back.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// use recto::{Message, Recto, Settings, Truncate};
/// use recto_agent::{hand_back, process};
///
/// let recto = Recto::open("memory:").await?;
/// let parent = recto.create("parent", Settings::default()).await?;
/// parent.append([Message::user("Book a flight."), Message::assistant("Which day?")]).await?;
///
/// // A model would write this; see `Agent`.
/// let child = parent.fork("summary", parent.version().await?).await?;
/// child.append([Message::assistant("The user wants a flight; the day is open.")]).await?;
///
/// process(&parent, r#"{"operation": "clear"}"#).await?;
/// let newest = Truncate { keep_last: Some(1), ..Truncate::default() };
/// hand_back(&child, newest, &parent).await?;
/// let view = parent.messages().await?;
/// assert_eq!(view.len(), 1);
/// assert_eq!(view[0].message.text(), "The user wants a flight; the day is open.");
/// # Ok::<(), recto_agent::Error>(())
/// # }).unwrap();
/// ```
pub async fn hand_back(
    child: &StoredConversation,
    choose: impl Into<Request>,
    parent: &StoredConversation,
) -> Result<Option<Outcome>, Error> {
    let preview = child.preview(choose).await?;
    let added: HashMap<LogIndex, Message> =
        preview.added.into_iter().map(|entry| (entry.index, entry.message)).collect();
    let chosen: Vec<LogIndex> = preview.outcome.view().iter().collect();
    let stored: Vec<LogIndex> =
        chosen.iter().copied().filter(|index| !added.contains_key(index)).collect();
    let mut known = added;
    for entry in child.entries(&stored).await? {
        known.insert(entry.index, entry.message);
    }
    let chosen = chosen.iter().filter_map(|index| known.get(index));
    let messages: Result<Vec<Message>, Error> = chosen.map(|it| from_child(it, child)).collect();
    let messages = messages?;
    if messages.is_empty() {
        return Ok(None);
    }
    let why = format!("handed back from the conversation {}", child.id());
    Ok(Some(parent.apply(Append { messages }.reason(why)).await?))
}

/// A message as it goes to the parent. The manifest of the call that brought it is of the child: its
/// number and its version mean nothing in the parent, so only where it is to be found is said.
fn from_child(message: &Message, child: &StoredConversation) -> Result<Message, Error> {
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

/// An object as names and values, in their order, each value as it is written.
struct Pairs(Vec<(String, String)>);

impl Pairs {
    /// Nothing if it is no object.
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
        struct Reads;
        impl<'de> Visitor<'de> for Reads {
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
        deserializer.deserialize_map(Reads)
    }
}
