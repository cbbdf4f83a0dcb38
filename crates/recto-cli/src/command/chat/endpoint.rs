//! Which model is asked, and with which tools: from options and a configuration file.

use clap::Args;
use recto_agent::{CommandTool, Endpoint, McpServer, Target};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::pairs::Pairs;
use super::{mcp, tool};
use crate::desk::Desk;
use crate::failure::Failure;
use crate::provider::target_parser;

/// What may be said on the command line. It counts before the file.
#[derive(Args, Debug)]
pub(super) struct Choices {
    /// A file with the provider, the model and the tools; see below
    #[arg(long, value_name = "FILE")]
    config: Option<String>,

    /// The provider
    #[arg(id = "provider", long = "for", value_name = "PROVIDER", value_parser = target_parser())]
    target: Option<Target>,

    /// The model
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,

    /// What stands before /chat/completions, /responses or /messages
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,

    /// The variable that holds the key; unless told, OPENAI_API_KEY or ANTHROPIC_API_KEY
    #[arg(long, value_name = "NAME")]
    key_variable: Option<String>,
}

/// What a file says.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct File {
    provider: Option<String>,
    model: Option<String>,
    base_url: Option<String>,
    key_variable: Option<String>,
    fields: Pairs<Box<RawValue>>,
    stream: Option<bool>,
    look_back: bool,
    /// A compression waits that does not pay off within so many turns.
    horizon: Option<u64>,
    tools: Vec<Pairs<Box<RawValue>>>,
    mcp_servers: Pairs<mcp::Described>,
}

/// Which model is asked, and with which tools.
pub(super) struct Configuration {
    pub(super) target: Target,
    pub(super) endpoint: Endpoint,
    pub(super) tools: Vec<CommandTool>,
    pub(super) servers: Vec<McpServer>,
    pub(super) look_back: bool,
    pub(super) horizon: Option<u64>,
}

impl Configuration {
    pub(super) fn read(choices: &Choices, desk: &mut Desk<'_>) -> Result<Configuration, Failure> {
        let file = match &choices.config {
            Some(name) => {
                let text = desk.read(name)?;
                serde_json::from_str(&text).map_err(|error| {
                    Failure::Usage(format!("the configuration {name} cannot be read: {error}"))
                })?
            }
            None => File::default(),
        };
        let target = target(choices, &file)?;
        let (usual_url, usual_key) = match target {
            Target::Anthropic => ("https://api.anthropic.com/v1", "ANTHROPIC_API_KEY"),
            _ => ("https://api.openai.com/v1", "OPENAI_API_KEY"),
        };
        let model = choices.model.clone().or(file.model);
        let model = model.ok_or_else(|| Failure::Usage("which model? say --model".into()))?;
        let base_url = choices.base_url.clone().or(file.base_url);
        let mut endpoint = Endpoint::new(base_url.unwrap_or(usual_url.into()), model);
        let variable = choices.key_variable.clone().or(file.key_variable);
        match (desk.surroundings.text(variable.as_deref().unwrap_or(usual_key)), variable) {
            (Some(key), _) => endpoint = endpoint.key(key),
            (None, Some(variable)) => {
                return Err(Failure::Usage(format!("the variable {variable} holds no key")));
            }
            // A server of one's own may need none.
            (None, None) => {}
        }
        for (name, value) in file.fields.0 {
            endpoint = endpoint.field(name, value.get());
        }
        if file.stream == Some(false) {
            endpoint = endpoint.without_streaming();
        }
        let desk = &*desk;
        let tools = tool::all(file.tools, desk)?;
        let servers = file.mcp_servers.0;
        for (at, (name, _)) in servers.iter().enumerate() {
            if servers[..at].iter().any(|(known, _)| known == name) {
                return Err(Failure::Usage(format!(
                    "two MCP servers in the configuration are called {name:?}"
                )));
            }
        }
        let servers = servers.into_iter();
        let servers = servers.filter_map(|(name, it)| it.server(name, desk).transpose());
        let servers = servers.collect::<Result<_, _>>()?;
        let File { look_back, horizon, .. } = file;
        Ok(Configuration { target, endpoint, tools, servers, look_back, horizon })
    }
}

fn target(choices: &Choices, file: &File) -> Result<Target, Failure> {
    if let Some(target) = choices.target {
        return Ok(target);
    }
    let names = Target::ALL.map(Target::name).join(", ");
    let Some(name) = &file.provider else {
        return Err(Failure::Usage(format!("which provider? say --for with one of {names}")));
    };
    Target::named(name)
        .ok_or_else(|| Failure::Usage(format!("there is no provider {name:?}; there are {names}")))
}
