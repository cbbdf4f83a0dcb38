//! A tool of an MCP server.

use std::collections::HashSet;
use std::sync::Arc;

use recto::Tool;

use super::Server;
use super::message::ListedTool;
use crate::reply::quoted;
use crate::shorten::shortened;
use crate::tool::{CANCELLED, check, check_input};
use crate::{BoxFuture, RunTool, ToolInput, ToolOutput};

/// A tool of a Model Context Protocol server. See [`McpServer`](crate::McpServer).
#[derive(Clone, Debug)]
pub struct McpTool {
    tool: Tool,
    /// The name of the tool on the server.
    server_name: String,
    server: Arc<Server>,
}

impl McpTool {
    /// The listed tools without duplicates and tools without a name, and a warning for each other tool that
    /// is omitted.
    pub(super) fn all(server: &Arc<Server>, listed: &[ListedTool]) -> (Vec<McpTool>, Vec<String>) {
        let mut names = HashSet::new();
        let (mut tools, mut warnings) = (Vec::new(), Vec::new());
        let listed = listed.iter().filter(|tool| !tool.name.is_empty() && names.insert(&tool.name));
        for listed in listed {
            match McpTool::of(server, listed) {
                Ok(tool) => tools.push(tool),
                Err(reason) => {
                    let (server, tool) = (&server.settings.name, &listed.name);
                    warnings.push(format!("the tool {server}__{tool} is omitted: {reason}"));
                }
            }
        }
        (tools, warnings)
    }

    /// The error is the reason why the tool cannot be rendered for every provider.
    fn of(server: &Arc<Server>, listed: &ListedTool) -> Result<McpTool, String> {
        let name = quoted(&format!("{}__{}", server.settings.name, listed.name));
        let description = listed.description.as_ref().or(listed.title.as_ref());
        let description = quoted(description.map_or("", String::as_str));
        let schema = listed.input_schema.as_ref().map(|schema| schema.get());
        let schema =
            schema.filter(|schema| schema.starts_with('{')).unwrap_or(r#"{"type":"object"}"#);
        let json =
            format!(r#"{{"name":{name},"description":{description},"input_schema":{schema}}}"#);
        let tool = Tool::from_json(&json).map_err(|error| error.to_string())?;
        check(&tool)?;
        Ok(McpTool { tool, server_name: listed.name.clone(), server: Arc::clone(server) })
    }
}

impl RunTool for McpTool {
    fn describe(&self) -> Tool {
        self.tool.clone()
    }

    fn run<'a>(&'a self, input: ToolInput<'a>) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            if let Err(reason) = check_input(input.json) {
                return ToolOutput::error(reason);
            }
            let called = tokio::select! {
                called = self.server.call(&self.server_name, input.json) => called,
                () = input.cancel.cancelled() => {
                    return ToolOutput::error(CANCELLED);
                }
            };
            let settings = &self.server.settings;
            match called {
                Ok(called) => ToolOutput {
                    text: shortened(&called.text, settings.max_output_bytes),
                    is_error: called.is_error,
                },
                Err(error) => {
                    ToolOutput::error(format!("the MCP server {} failed: {error}", settings.name))
                }
            }
        })
    }
}
