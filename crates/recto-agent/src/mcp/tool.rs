//! A tool of a server, as an agent has it.

use std::collections::HashSet;
use std::sync::Arc;

use recto::Tool;

use super::Server;
use super::wire::Listed;
use crate::answer::quoted;
use crate::shorten::shortened;
use crate::tool::{check, check_input};
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
    /// The tools of a list, each once, and why some are left out.
    pub(super) fn all(server: &Arc<Server>, listed: &[Listed]) -> (Vec<McpTool>, Vec<String>) {
        let mut known = HashSet::new();
        let (mut tools, mut remarks) = (Vec::new(), Vec::new());
        let listed = listed.iter().filter(|tool| !tool.name.is_empty() && known.insert(&tool.name));
        for listed in listed {
            match McpTool::of(server, listed) {
                Ok(tool) => tools.push(tool),
                Err(why) => {
                    let (server, tool) = (&server.about.name, &listed.name);
                    remarks.push(format!("the tool {server}__{tool} is left out: {why}"));
                }
            }
        }
        (tools, remarks)
    }

    /// An error if it cannot be described to a model: no provider would take it, nor what is said
    /// beside it.
    fn of(server: &Arc<Server>, listed: &Listed) -> Result<McpTool, String> {
        let name = quoted(&format!("{}__{}", server.about.name, listed.name));
        let description = listed.description.as_ref().or(listed.title.as_ref());
        let description = quoted(description.map_or("", String::as_str));
        let schema = listed.input_schema.as_ref().map(|schema| schema.get());
        let schema =
            schema.filter(|schema| schema.starts_with('{')).unwrap_or(r#"{"type":"object"}"#);
        let json =
            format!(r#"{{"name":{name},"description":{description},"input_schema":{schema}}}"#);
        let tool = Tool::from_json(&json).map_err(|error| error.to_string())?;
        check(&tool)?;
        Ok(McpTool { tool, called: listed.name.clone(), server: Arc::clone(server) })
    }
}

impl RunTool for McpTool {
    fn describe(&self) -> Tool {
        self.tool.clone()
    }

    fn run<'a>(&'a self, input: ToolInput<'a>) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            if let Err(why) = check_input(input.json) {
                return ToolOutput::error(why);
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
