//! The tools of a conversation, and the system message that describes them.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::json;
use serde_json::value::RawValue;

use crate::json;
use crate::message_log::{check_at_hand, is_at_hand};
use crate::{Error, Limits, LogIndex, Message, MessageLog, Role, RoleSet, View};

/// The heading of the tool description unless another is set.
pub const DEFAULT_HEADING: &str = "可用工具:";

/// A tool that the model may call. Its JSON is kept as it came, whatever else stands in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    name: String,
    description: String,
    json: Box<str>,
}

impl Tool {
    /// A tool of this name.
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Tool {
        let (name, description) = (name.into(), description.into());
        let json = json!({ "name": name, "description": description }).to_string().into();
        Tool { name, description, json }
    }

    /// Reads a tool: an object with a name, a description, and anything else.
    pub fn from_json(text: &str) -> Result<Tool, Error> {
        Self::from_checked_json(json::value(text)?)
    }

    fn from_checked_json(text: &str) -> Result<Tool, Error> {
        Limits::default().check_depth(text)?;
        let fields = json::object(text);
        let string = |name: &'static str| {
            let value = fields.as_ref().and_then(|fields| fields.get(name));
            let text = value.and_then(json::quoted).map(json::unescape);
            text.map(Cow::into_owned).ok_or_else(|| {
                let reason = format!("a tool is an object with a {name}, which is a string");
                Error::operation_field("tools", reason)
            })
        };
        Ok(Tool { name: string("name")?, description: string("description")?, json: text.into() })
    }

    /// Reads a list of tools.
    pub fn list_from_json(text: &str) -> Result<Vec<Tool>, Error> {
        let text = json::value(text)?;
        Limits::default().check_depth(text)?;
        let list = json::list(text)
            .ok_or_else(|| Error::operation_field("tools", "tools must be a list of objects"))?;
        list.into_iter().map(Tool::from_checked_json).collect()
    }

    /// The name by which the model calls it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it does.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Everything that was said of it, as it came.
    pub fn json(&self) -> &str {
        &self.json
    }
}

impl Serialize for Tool {
    /// As the JSON it came as.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        json::raw(&self.json).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Tool {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Tool::from_checked_json(raw.get()).map_err(serde::de::Error::custom)
    }
}

/// The tools of a conversation and what describes them: at least one tool.
#[derive(Clone, Debug)]
pub struct ToolSet {
    tools: Vec<Tool>,
    heading: String,
    description: Message,
}

impl ToolSet {
    /// `None` where there are no tools: such a conversation has no description.
    pub(crate) fn new(tools: Vec<Tool>, heading: &str) -> Result<Option<ToolSet>, Error> {
        if tools.is_empty() {
            return Ok(None);
        }
        if heading.is_empty() {
            // Every system message would begin with it, and so count as a tool description.
            let reason = "the heading of the tool description is empty; give it a text";
            return Err(Error::operation_field("heading", reason));
        }
        let mut text = heading.to_owned();
        for tool in &tools {
            text.push_str(&format!("\n- {}: {}", tool.name, tool.description));
        }
        let description = Message::new(Role::System, &text)?;
        Ok(Some(ToolSet { tools, heading: heading.to_owned(), description }))
    }

    /// The tools in order.
    pub fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// The system message that describes them.
    pub fn description(&self) -> Message {
        self.description.clone()
    }

    /// Whether a message describes tools, but not these.
    pub(crate) fn is_stale(&self, message: &Message) -> bool {
        message.role().is_system() && {
            let text = message.text();
            text.starts_with(&self.heading) && text != self.description.text()
        }
    }

    fn is_present(&self, message: &Message) -> bool {
        message.role().is_system() && message.text() == self.description.text()
    }

    /// Whether the view shows the description of these tools.
    pub(crate) fn is_shown_in(&self, view: &View, log: &MessageLog) -> Result<bool, Error> {
        let found = first(system_messages(view), log, |_, message| self.is_present(message))?;
        Ok(found.is_some())
    }

    /// The newest log entry that describes exactly these tools.
    pub(crate) fn newest_in(&self, log: &MessageLog) -> Result<Option<LogIndex>, Error> {
        let newest_first = system_messages(log.as_view()).rev();
        first(newest_first, log, |_, message| self.is_present(message))
    }

    /// The first entry of the view that describes other tools and passes the test.
    pub(crate) fn first_stale_in(
        &self,
        view: &View,
        log: &MessageLog,
        may_go: impl Fn(LogIndex) -> bool,
    ) -> Result<Option<LogIndex>, Error> {
        first(system_messages(view), log, |index, message| may_go(index) && self.is_stale(message))
    }
}

/// The entries of the view that describe tools, whichever, and pass the test; sorted.
pub(crate) fn descriptions_in(
    view: &View,
    log: &MessageLog,
    heading: &str,
    may_go: impl Fn(LogIndex) -> bool,
) -> Result<Vec<LogIndex>, Error> {
    if heading.is_empty() {
        // There can have been no tools, and every text begins with it.
        return Ok(Vec::new());
    }
    let mut absent = Vec::new();
    let mut found = Vec::new();
    for index in system_messages(view) {
        let entry = log.get(index).expect("a view holds only entries of the log");
        if is_at_hand(entry, index, &mut absent)
            && entry.message.text().starts_with(heading)
            && may_go(index)
        {
            found.push(index);
        }
    }
    check_at_hand(absent)?;
    found.sort_unstable();
    Ok(found)
}

/// The first entry that passes. What is still in a store is asked for all at once.
fn first(
    indices: impl Iterator<Item = LogIndex>,
    log: &MessageLog,
    passes: impl Fn(LogIndex, &Message) -> bool,
) -> Result<Option<LogIndex>, Error> {
    let mut absent = Vec::new();
    for index in indices {
        let entry = log.get(index).expect("a view holds only entries of the log");
        if is_at_hand(entry, index, &mut absent)
            && absent.is_empty()
            && passes(index, &entry.message)
        {
            return Ok(Some(index));
        }
    }
    check_at_hand(absent)?;
    Ok(None)
}

fn system_messages(view: &View) -> impl DoubleEndedIterator<Item = LogIndex> {
    let count = view.count_of(RoleSet::from(Role::System));
    (0..count).map(move |nth| {
        let position = view.nth_of(Role::System, nth).expect("there are that many");
        view.get(position).expect("the position was found in the view")
    })
}
