//! A tool of a server, as an agent has it.

use std::collections::HashSet;
use std::sync::Arc;

use recto::Tool;

use super::Server;
use super::wire::Listed;
use crate::answer::quoted;
use crate::shorten::shortened;
use crate::{BoxFuture, RunTool, ToolInput, ToolOutput};

/// A tool of a server of the Model Context Protocol. See [`McpServer`](crate::McpServer).
#[derive(Clone, Debug)]
pub struct McpTool {
    tool: Tool,
    /// What the server calls it.
    called: String,
    server: Arc<Server>,
}

impl McpTool {
    /// The tools of a list, each once.
    pub(super) fn all(server: &Arc<Server>, listed: &[Listed]) -> Vec<McpTool> {
        let mut known = HashSet::new();
        let tools = listed.iter().filter(|tool| !tool.name.is_empty() && known.insert(&tool.name));
        tools.filter_map(|tool| McpTool::of(server, tool)).collect()
    }

    /// `None` if it cannot be described to a model: it goes too deep.
    fn of(server: &Arc<Server>, listed: &Listed) -> Option<McpTool> {
        let name = quoted(&format!("{}__{}", server.about.name, listed.name));
        let description = listed.description.as_ref().or(listed.title.as_ref());
        let description = quoted(description.map_or("", String::as_str));
        let schema = listed.input_schema.as_ref().map(|schema| schema.get());
        let schema =
            schema.filter(|schema| schema.starts_with('{')).unwrap_or(r#"{"type":"object"}"#);
        let json =
            format!(r#"{{"name":{name},"description":{description},"input_schema":{schema}}}"#);
        let (tool, server) = (Tool::from_json(&json).ok()?, Arc::clone(server));
        Some(McpTool { tool, called: listed.name.clone(), server })
    }
}

impl RunTool for McpTool {
    fn describe(&self) -> Tool {
        self.tool.clone()
    }

    fn run<'a>(&'a self, input: ToolInput<'a>) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            if !input.json.trim_start().starts_with('{') {
                return ToolOutput::error("the input must be a JSON object");
            }
            let called = tokio::select! {
                called = self.server.call(&self.called, input.json) => called,
                () = input.cancel.cancelled() => {
                    return ToolOutput::error("the tool was cancelled before it was done");
                }
            };
            let about = &self.server.about;
            match called {
                Ok(called) => ToolOutput {
                    text: shortened(&called.text, about.longest_output),
                    is_error: called.is_error,
                },
                Err(fault) => {
                    ToolOutput::error(format!("the server {} gave no result: {fault}", about.name))
                }
            }
        })
    }
}
