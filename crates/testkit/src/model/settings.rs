//! The settings of a conversation. The model always counts with `approx`.

use serde_json::{Value, json};

use super::refusal::Refusal;

/// The heading of tool descriptions in new conversations.
pub const DEFAULT_HEADING: &str = "Available tools:";

/// The default heading of earlier releases. It is recognised in every
/// conversation.
pub const EARLIER_HEADING: &str = "可用工具:";

/// Settings of a new conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Tokens of an image, audio or file part.
    pub media_tokens: u64,
    /// The first line of a tool description.
    pub heading: String,
    /// The tools at version 0.
    pub tools: Vec<Tool>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { media_tokens: 1_000, heading: DEFAULT_HEADING.to_owned(), tools: Vec::new() }
    }
}

/// A tool: its name, its description and its whole JSON.
///
/// Two tools are the same if their JSON values are equal, so that tools that
/// differ only in their input schema are different tools with one description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    /// `name`
    pub name: String,
    /// `description`
    pub description: String,
    /// The unchanged JSON, with all fields.
    pub json: Value,
}

impl Tool {
    /// A tool with only a name and a description.
    pub fn new(name: &str, description: &str) -> Tool {
        Tool {
            name: name.to_owned(),
            description: description.to_owned(),
            json: json!({"name": name, "description": description}),
        }
    }

    /// Reads `[{name, description, …}]`. Other fields are kept.
    pub fn read_list(tools: &Value) -> Result<Vec<Tool>, Refusal> {
        let list = tools.as_array().ok_or_else(|| Refusal::operation("tools is not a list"))?;
        list.iter().map(Tool::read).collect()
    }

    fn read(tool: &Value) -> Result<Tool, Refusal> {
        let text = |field: &str| {
            tool.get(field)
                .and_then(Value::as_str)
                .map(str::to_owned)
                .ok_or_else(|| Refusal::operation(format!("a tool's {field} is not a string")))
        };
        Ok(Tool { name: text("name")?, description: text("description")?, json: tool.clone() })
    }
}
