//! Servers of the Model Context Protocol, as a configuration names them.

use std::time::Duration;

use recto_agent::McpServer;
use serde::Deserialize;

use super::pairs::Pairs;
use crate::desk::Desk;
use crate::failure::Failure;

/// How a server is reached, in the words that other programs use too.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct Described {
    /// What follows from the other fields.
    #[serde(rename = "type")]
    _kind: Option<String>,
    disabled: bool,
    /// A program, its arguments, and its environment.
    command: Option<String>,
    args: Vec<String>,
    env: Pairs<String>,
    /// Variables of ours that it may see.
    variables: Vec<String>,
    /// Or a URL, more headers, and the variable that holds the key.
    url: Option<String>,
    headers: Pairs<String>,
    key_variable: Option<String>,
    /// How long a call may take, in seconds.
    timeout: Option<f64>,
}

impl Described {
    /// The server; `None` if it is switched off.
    pub(super) fn server(
        self,
        name: String,
        desk: &Desk<'_>,
    ) -> Result<Option<McpServer>, Failure> {
        let wrong = |reason: String| Failure::Usage(format!("the MCP server {name:?}: {reason}"));
        let held = |variable: &str| {
            let held = desk.surroundings.text(variable);
            held.ok_or_else(|| wrong(format!("the variable {variable} is not set")))
        };
        if self.disabled {
            return Ok(None);
        }
        let mut server = match (self.command, self.url) {
            (Some(command), None) => {
                let mut server = McpServer::program(&name, command).arguments(self.args);
                for variable in &self.variables {
                    server = server.variable(variable, held(variable)?);
                }
                for (variable, value) in self.env.0 {
                    server = server.variable(variable, value);
                }
                server
            }
            (None, Some(url)) => {
                let mut server = McpServer::url(&name, url);
                if let Some(variable) = &self.key_variable {
                    let key = held(variable)?;
                    server = server.header("authorization", format!("Bearer {key}"));
                }
                for (header, value) in self.headers.0 {
                    server = server.header(header, value);
                }
                server
            }
            _ => return Err(wrong("it needs either a command or a url".into())),
        };
        if let Some(seconds) = self.timeout {
            let patience = Duration::try_from_secs_f64(seconds);
            server.call_timeout = patience.map_err(|error| wrong(format!("timeout: {error}")))?;
        }
        Ok(Some(server))
    }
}
