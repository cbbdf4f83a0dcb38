//! The model and the tools of a chat, from options and a configuration file.

use clap::Args;
use recto_agent::{CommandTool, Endpoint, HttpModel, McpServer, Target};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::pairs::Pairs;
use super::{mcp, tool};
use crate::context::Context;
use crate::failure::Failure;
use crate::provider::target_parser;

/// Options that select the model. They take precedence over the file.
#[derive(Args, Debug)]
pub(super) struct ModelArguments {
    /// File with the provider, the model and the tools; see below
    #[arg(long, value_name = "FILE")]
    config: Option<String>,

    /// Provider. Default: the one of the configuration
    #[arg(id = "provider", long = "for", value_name = "PROVIDER", value_parser = target_parser())]
    target: Option<Target>,

    /// Model. Default: the one of the configuration
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,

    /// Version of Anthropic's API, such as 2026-10-21. Default: 2023-06-01
    #[arg(long, value_name = "VERSION")]
    api_version: Option<String>,

    /// URL before /chat/completions, /responses or /messages. Default: the provider's
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,

    /// Variable with the API key. Default: OPENAI_API_KEY or ANTHROPIC_API_KEY
    #[arg(long, value_name = "NAME")]
    key_variable: Option<String>,

    /// Allow the key to be sent over plain HTTP, unencrypted, to another machine
    #[arg(long)]
    allow_http: bool,
}

/// The configuration file.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct ConfigFile {
    provider: Option<String>,
    model: Option<String>,
    api_version: Option<String>,
    base_url: Option<String>,
    key_variable: Option<String>,
    allow_http: bool,
    fields: Pairs<Box<RawValue>>,
    stream: Option<bool>,
    look_back: bool,
    /// Number of turns within which a compression must pay off.
    horizon: Option<u64>,
    tools: Vec<Pairs<Box<RawValue>>>,
    mcp_servers: Pairs<mcp::ServerConfig>,
}

/// The model and the tools of a chat.
pub(super) struct Configuration {
    pub(super) target: Target,
    pub(super) endpoint: Endpoint,
    pub(super) tools: Vec<CommandTool>,
    pub(super) servers: Vec<McpServer>,
    pub(super) look_back: bool,
    pub(super) horizon: Option<u64>,
}

impl Configuration {
    pub(super) fn read(
        arguments: &ModelArguments,
        context: &mut Context<'_>,
    ) -> Result<Configuration, Failure> {
        let file = match &arguments.config {
            Some(name) => {
                let text = context.read(name)?;
                serde_json::from_str(&text).map_err(|error| {
                    Failure::Usage(format!("the configuration {name} cannot be read: {error}"))
                })?
            }
            None => ConfigFile::default(),
        };
        let target = target(arguments, &file)?;
        let (default_url, default_variable) = match target {
            Target::Anthropic => ("https://api.anthropic.com/v1", "ANTHROPIC_API_KEY"),
            _ => ("https://api.openai.com/v1", "OPENAI_API_KEY"),
        };
        let model = arguments.model.clone().or(file.model);
        let model = model.ok_or_else(|| Failure::Usage("no model is given; use --model".into()))?;
        let base_url = arguments.base_url.clone().or(file.base_url);
        let needs_key = base_url.is_none() && target != Target::Gemini;
        let mut endpoint = Endpoint::new(base_url.unwrap_or(default_url.into()), model);
        let variable = arguments.key_variable.clone().or(file.key_variable);
        match (context.environment.text(variable.as_deref().unwrap_or(default_variable)), variable)
        {
            (Some(key), _) => endpoint = endpoint.key(key),
            (None, Some(variable)) => {
                return Err(Failure::Usage(format!("the variable {variable} is not set")));
            }
            (None, None) if needs_key => {
                return Err(Failure::Usage(format!(
                    "the variable {default_variable} is not set; set it to your API key, or name another \
                     variable with --key-variable; use --base-url for a server that needs no key"
                )));
            }
            // A local server may need no key.
            (None, None) => {}
        }
        endpoint.api_version = arguments.api_version.clone().or(file.api_version);
        endpoint.allow_http = arguments.allow_http || file.allow_http;
        for (name, value) in file.fields.0 {
            endpoint = endpoint.field(name, value.get());
        }
        if file.stream == Some(false) {
            endpoint = endpoint.without_streaming();
        }
        let context = &*context;
        let tools = tool::all(file.tools, context)?;
        let servers = file.mcp_servers.0;
        for (at, (name, _)) in servers.iter().enumerate() {
            if servers[..at].iter().any(|(known, _)| known == name) {
                return Err(Failure::Usage(format!(
                    "the configuration has two MCP servers with the name {name:?}"
                )));
            }
        }
        let servers = servers.into_iter();
        let servers = servers.filter_map(|(name, config)| config.server(name, context).transpose());
        let servers = servers.collect::<Result<_, _>>()?;
        let ConfigFile { look_back, horizon, .. } = file;
        Ok(Configuration { target, endpoint, tools, servers, look_back, horizon })
    }
}

fn target(arguments: &ModelArguments, file: &ConfigFile) -> Result<Target, Failure> {
    if let Some(target) = arguments.target {
        return Ok(target);
    }
    let names = HttpModel::TARGETS.map(Target::name).join(", ");
    let Some(name) = &file.provider else {
        return Err(Failure::Usage(format!("no provider is given; use --for with one of {names}")));
    };
    Target::named(name)
        .ok_or_else(|| Failure::Usage(format!("there is no provider {name:?}; use {names}")))
}
