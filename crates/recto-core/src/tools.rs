//! The tools of a conversation, and the system message that describes them.

use std::borrow::Cow;
use std::collections::HashSet;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::json;
use serde_json::value::RawValue;

use crate::json;
use crate::message_log::{check_loaded, is_loaded};
use crate::{Error, Limits, LogIndex, Message, MessageLog, Position, Role, View};

/// The default heading of the tool description.
pub const DEFAULT_HEADING: &str = "Available tools:";

/// The default heading of earlier releases. It is recognised in every conversation.
const EARLIER_HEADING: &str = "可用工具:";

/// A tool that the model may call. Its JSON is kept unchanged, including unknown fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    name: String,
    description: String,
    json: Box<str>,
}

impl Tool {
    /// A tool with this name and description.
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Tool {
        let (name, description) = (name.into(), description.into());
        let json = json!({ "name": name, "description": description }).to_string().into();
        Tool { name, description, json }
    }

    /// Reads a tool: an object with a name, a description and any other fields.
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
                let reason = format!("a tool is an object with the field {name}, a string");
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
        let tools: Vec<Tool> =
            list.into_iter().map(Tool::from_checked_json).collect::<Result<_, _>>()?;
        check(&tools)?;
        Ok(tools)
    }

    /// The input schema: the value of the first of the fields `input_schema`, `inputSchema` and `parameters`
    /// that the tool has.
    fn input_schema(&self) -> Option<&str> {
        let fields = json::object(&self.json)?;
        ["input_schema", "inputSchema", "parameters"].iter().find_map(|name| fields.get(name))
    }

    /// The name of the tool.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The description of the tool.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The JSON of the tool, unchanged.
    pub fn json(&self) -> &str {
        &self.json
    }
}

impl Serialize for Tool {
    /// Writes the unchanged JSON.
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

/// Checks tools before they are set. Refuses what no provider accepts: an empty name, two tools with the same
/// name, and an input schema that is not an object. Tools that are loaded from a store are not checked.
pub(crate) fn check(tools: &[Tool]) -> Result<(), Error> {
    let mut names = HashSet::new();
    for tool in tools {
        let name = tool.name();
        let is_schema = |schema: &str| json::object(schema).is_some();
        let reason = if name.is_empty() {
            "the name of a tool is empty; give it a name".to_owned()
        } else if !names.insert(name) {
            format!("two tools have the name {name:?}; give each its own name")
        } else if !tool.input_schema().is_none_or(is_schema) {
            format!("the input schema of the tool {name:?} must be an object: a JSON Schema")
        } else {
            continue;
        };
        return Err(Error::operation_field("tools", reason));
    }
    Ok(())
}

/// The tools of a conversation, at least one, and their description.
#[derive(Clone, Debug)]
pub struct ToolSet {
    tools: Vec<Tool>,
    /// The description without its heading: one line per tool.
    lines: Text,
    description: Message,
}

impl ToolSet {
    /// `None` if there are no tools. A conversation without tools has no description.
    pub(crate) fn new(tools: Vec<Tool>, headings: &Headings) -> Result<Option<ToolSet>, Error> {
        if tools.is_empty() {
            return Ok(None);
        }
        let heading = headings.configured();
        if heading.is_empty() {
            let reason = "the heading of the tool description is empty; give it a text";
            return Err(Error::operation_field("heading", reason));
        }
        let line = |tool: &Tool| format!("- {}: {}", tool.name, tool.description);
        let lines = tools.iter().map(line).collect::<Vec<_>>().join("\n");
        let description = Message::new(Role::System, &format!("{heading}\n{lines}"))?;
        Ok(Some(ToolSet { tools, lines: Text::new(lines), description }))
    }

    /// The tools in order.
    pub fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// The system message that describes the tools.
    pub fn description(&self) -> Message {
        self.description.clone()
    }
}

/// Whether two lists of tools are equal as JSON values.
pub(crate) fn are_same(tools: Option<&ToolSet>, others: Option<&ToolSet>) -> bool {
    let (tools, others) = match (tools, others) {
        (Some(tools), Some(others)) => (tools, others),
        (tools, others) => return tools.is_none() && others.is_none(),
    };
    let is_same = |tool: &Tool, other: &Tool| {
        let value = |tool: &Tool| serde_json::from_str::<serde_json::Value>(&tool.json).ok();
        // A tool that serde_json cannot read is compared byte for byte.
        tool == other || value(tool).is_some_and(|tool| Some(tool) == value(other))
    };
    std::ptr::eq(tools, others)
        || (tools.tools.len() == others.tools.len()
            && tools.tools.iter().zip(&others.tools).all(|(tool, other)| is_same(tool, other)))
}

/// A text, and its JSON-escaped form with the fewest possible escapes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Text {
    plain: String,
    escaped: String,
    /// Number of bytes before the first escape.
    unescaped: usize,
}

impl Text {
    fn new(plain: String) -> Text {
        let json = serde_json::Value::from(&*plain).to_string();
        let escaped = json::quoted(&json).unwrap_or_default().to_owned();
        let unescaped = escaped.find('\\').unwrap_or(escaped.len());
        Text { plain, escaped, unescaped }
    }

    /// Whether this text may be a prefix of a text whose escaped form starts with `start` and has no
    /// optional escapes. True does not mean that it is one.
    fn may_be_prefix_of(&self, start: &str) -> bool {
        let len = self.unescaped.min(start.len());
        self.escaped.as_bytes()[..len] == start.as_bytes()[..len]
    }
}

/// The headings of tool descriptions: the heading in the settings, and the default headings of this and
/// of earlier releases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Headings([Text; 3]);

impl Headings {
    pub(crate) fn new(configured: String) -> Headings {
        Headings(
            [configured, DEFAULT_HEADING.to_owned(), EARLIER_HEADING.to_owned()].map(Text::new),
        )
    }

    /// The heading in the settings of the conversation.
    pub(crate) fn configured(&self) -> &str {
        &self.0[0].plain
    }

    fn all(&self) -> impl Iterator<Item = &Text> {
        self.0.iter().filter(|heading| !heading.plain.is_empty())
    }

    /// The text below each matching heading. Several match if one heading is a prefix of another.
    fn bodies<'a>(&'a self, text: &'a str) -> impl Iterator<Item = &'a str> {
        self.all().filter_map(|heading| text.strip_prefix(&*heading.plain)?.strip_prefix('\n'))
    }
}

/// Recognises tool descriptions among system messages.
///
/// A system message is a description if its whole text is a heading and lines that start with `- `, if
/// the engine wrote it, or if it lists the present tools below a heading. A description that lists the
/// present tools is *present*, any other is *stale*. Without tools, no description is present or stale.
#[derive(Clone, Copy)]
pub(crate) struct Descriptions<'a> {
    pub(crate) headings: &'a Headings,
    pub(crate) tools: Option<&'a ToolSet>,
    pub(crate) log: &'a MessageLog,
}

impl<'a> Descriptions<'a> {
    /// Whether a message lists the present tools.
    pub(crate) fn is_present(self, message: &Message) -> bool {
        let Some(tools) = self.tools else { return false };
        if !self.may_start_with_heading(message) {
            return false;
        }
        // Most descriptions have the same escapes as those of the engine, and need no decoding.
        match message.canonical_text() {
            Some(escaped) => self.headings.all().any(|heading| {
                let body = escaped.strip_prefix(&*heading.escaped);
                body.and_then(|body| body.strip_prefix("\\n")) == Some(&*tools.lines.escaped)
            }),
            None => self.headings.bodies(&message.text()).any(|body| body == tools.lines.plain),
        }
    }

    /// Whether a log entry is a stale description.
    pub(crate) fn is_stale(self, index: LogIndex, message: &Message) -> bool {
        self.tools.is_some() && self.describes(index, message) && !self.is_present(message)
    }

    /// Whether a log entry is a description by its form, or because the engine wrote it. A description
    /// that [is present](Self::is_present) may be neither.
    pub(crate) fn describes(self, index: LogIndex, message: &Message) -> bool {
        if !message.role().is_system() {
            return false;
        }
        let lists_tools = |body: &str| body.split('\n').all(|line| line.starts_with("- "));
        self.log.is_written_by_engine(index)
            || (self.may_start_with_heading(message)
                && self.headings.bodies(&message.text()).any(lists_tools))
    }

    /// Whether a message may start with a heading. Most system messages are ruled out without decoding
    /// them, because they can be long.
    fn may_start_with_heading(self, message: &Message) -> bool {
        message.role().is_system()
            && message.escaped_start().is_none_or(|start| {
                self.headings.all().any(|heading| heading.may_be_prefix_of(start))
            })
    }

    /// Whether a view shows the present description.
    pub(crate) fn is_shown_in(self, view: &View) -> Result<bool, Error> {
        Ok(!self.positions(view, |_, message| self.is_present(message))?.is_empty())
    }

    /// The positions of the system messages for which `passes` returns true. The error names all
    /// messages that are not loaded.
    pub(crate) fn positions(
        self,
        view: &View,
        passes: impl Fn(LogIndex, &Message) -> bool,
    ) -> Result<Vec<usize>, Error> {
        let mut absent = Vec::new();
        let mut positions = Vec::new();
        let mut log = self.log.reader();
        view.visit_system_messages(|at, index| {
            let entry = log.entry(index);
            if is_loaded(entry, index, &mut absent) && passes(index, &entry.message) {
                positions.push(at);
            }
        });
        check_loaded(absent)?;
        Ok(positions)
    }

    /// The newest log entry that lists the present tools.
    pub(crate) fn newest_present(self) -> Result<Option<LogIndex>, Error> {
        let all = self.log.as_view();
        let positions = self.positions(all, |_, message| self.is_present(message))?;
        Ok(positions.last().map(|&at| LogIndex(at as u32)))
    }

    /// The visible entries that contradict the tools: stale descriptions, and without tools the
    /// descriptions that the engine wrote. In log order.
    pub(crate) fn contradicting(self, view: &View) -> Result<Vec<LogIndex>, Error> {
        if self.tools.is_none() {
            let written = self.log.written_by_engine();
            return Ok(written.filter(|&index| view.contains(index)).collect());
        }
        let positions = self.positions(view, |index, message| self.is_stale(index, message))?;
        let mut stale: Vec<LogIndex> =
            positions.into_iter().filter_map(|at| view.get(Position(at))).collect();
        stale.sort_unstable();
        Ok(stale)
    }
}
