//! The settings of a conversation that the model knows. Its counter is `approx`.

use serde_json::Value;

use super::refusal::Refusal;

/// What a new conversation is made with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// What each image, audio or file part counts.
    pub media_tokens: u64,
    /// The first line of a tool description.
    pub heading: String,
    /// The tools at version 0.
    pub tools: Vec<Tool>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { media_tokens: 1_000, heading: "可用工具:".to_owned(), tools: Vec::new() }
    }
}

/// A tool, as far as its description says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    /// `name`
    pub name: String,
    /// `description`
    pub description: String,
}

impl Tool {
    /// Reads `[{name, description, …}]`. Other fields are left unread.
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
        Ok(Tool { name: text("name")?, description: text("description")? })
    }
}
