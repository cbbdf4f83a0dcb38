//! Steps of a workflow: an operation in any form on the conversation of a step, and a child conversation
//! that hands its work back.

use std::collections::HashMap;

use recto::{Append, LogIndex, Message, Outcome, Request, StoredConversation};

use crate::Error;

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
    let messages: Vec<Message> =
        chosen.iter().filter_map(|index| known.get(index).cloned()).collect();
    if messages.is_empty() {
        return Ok(None);
    }
    let why = format!("handed back from the conversation {}", child.id());
    Ok(Some(parent.apply(Append { messages }.because(why)).await?))
}
