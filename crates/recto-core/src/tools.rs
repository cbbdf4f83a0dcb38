//! The tools of a conversation, and the system message that describes them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Error, LogIndex, Message, MessageLog, Role, RoleSet, View};

/// The heading of the tool description unless another is set.
pub const DEFAULT_HEADING: &str = "可用工具:";

/// A tool that the model may call. Fields that Recto does not know are kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tool {
    /// The name by which the model calls it.
    pub name: String,
    /// What it does.
    pub description: String,
    /// Everything else that was said of it, such as the schema of its input.
    #[serde(flatten)]
    pub other: serde_json::Map<String, Value>,
}

impl Tool {
    /// A tool of this name.
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Tool {
        let other = serde_json::Map::new();
        Tool { name: name.into(), description: description.into(), other }
    }

    /// Reads a list of tools from JSON.
    pub fn list_from_json(text: &str) -> Result<Vec<Tool>, Error> {
        crate::json::value(text)?;
        serde_json::from_str(text).map_err(|error| {
            let reason =
                format!("tools must be a list of objects with a name and a description: {error}");
            Error::operation_field("tools", reason)
        })
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
    pub(crate) fn is_shown_in(&self, view: &View, log: &MessageLog) -> bool {
        system_messages(view).any(|index| self.is_present(log.message(index)))
    }

    /// The newest log entry that describes exactly these tools.
    pub(crate) fn newest_in(&self, log: &MessageLog) -> Option<LogIndex> {
        system_messages(log.as_view()).rev().find(|&index| self.is_present(log.message(index)))
    }

    /// The first entry of the view that describes other tools and passes the test.
    pub(crate) fn first_stale_in(
        &self,
        view: &View,
        log: &MessageLog,
        may_go: impl Fn(LogIndex) -> bool,
    ) -> Option<LogIndex> {
        system_messages(view).find(|&index| may_go(index) && self.is_stale(log.message(index)))
    }
}

fn system_messages(view: &View) -> impl DoubleEndedIterator<Item = LogIndex> {
    let count = view.count_of(RoleSet::from(Role::System));
    (0..count).map(move |nth| {
        let position = view.nth_of(Role::System, nth).expect("there are that many");
        view.get(position).expect("the position was found in the view")
    })
}
