//! MCP servers of the configuration.

use std::time::Duration;

use recto::engine::json::Pairs;
use recto_agent::McpServer;
use serde::Deserialize;

use crate::context::Context;
use crate::failure::Failure;

/// Configuration of an MCP server. The field names are those of other MCP clients.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct ServerConfig {
    /// Ignored: `command` or `url` determines the type of the server.
    #[serde(rename = "type")]
    _kind: Option<String>,
    disabled: bool,
    /// A program. `args` are its arguments, and `env` are environment variables that it receives.
    command: Option<String>,
    args: Vec<String>,
    env: Pairs<String>,
    /// Names of environment variables of this process that the program also receives.
    variables: Vec<String>,
    /// A URL instead of a program. `headers` are additional headers, and `key_variable` is the name of the
    /// environment variable with the key.
    url: Option<String>,
    headers: Pairs<String>,
    key_variable: Option<String>,
    /// Whether headers may be sent over plain HTTP to another machine.
    allow_http: bool,
    /// Timeout of a call, in seconds.
    timeout: Option<f64>,
}

impl ServerConfig {
    /// The server; `None` if it is disabled.
    pub(super) fn server(
        self,
        name: String,
        context: &Context<'_>,
    ) -> Result<Option<McpServer>, Failure> {
        let wrong = |reason: String| Failure::Usage(format!("the MCP server {name:?}: {reason}"));
        let value_of = |variable: &str| {
            let value = context.environment.text(variable);
            value.ok_or_else(|| wrong(format!("the variable {variable} is not set")))
        };
        if self.disabled {
            return Ok(None);
        }
        let mut server = match (self.command, self.url) {
            (Some(command), None) => {
                let mut server = McpServer::program(&name, command).arguments(self.args);
                for variable in &self.variables {
                    server = server.variable(variable, value_of(variable)?);
                }
                for (variable, value) in self.env.0 {
                    server = server.variable(variable, value);
                }
                server
            }
            (None, Some(url)) => {
                let mut server = McpServer::url(&name, url);
                if let Some(variable) = &self.key_variable {
                    let key = value_of(variable)?;
                    server = server.header("authorization", format!("Bearer {key}"));
                }
                for (header, value) in self.headers.0 {
                    server = server.header(header, value);
                }
                server
            }
            _ => return Err(wrong("it needs either a command or a url".into())),
        };
        server.allow_http = self.allow_http;
        if let Some(seconds) = self.timeout {
            let timeout = Duration::try_from_secs_f64(seconds);
            server.call_timeout = timeout.map_err(|error| wrong(format!("timeout: {error}")))?;
        }
        Ok(Some(server))
    }
}
