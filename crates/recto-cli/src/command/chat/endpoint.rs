//! The model and the tools of a chat, from options and a configuration file.

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use recto::engine::json::Pairs;
use recto_agent::{CommandTool, Endpoint, HttpModel, McpServer, Target};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{mcp, tool};
use crate::context::Context;
use crate::failure::Failure;

/// Options that select the model. They take precedence over the file.
#[derive(Args, Debug)]
pub(super) struct ModelArguments {
    /// File with the provider, the model and the tools; see below
    #[arg(long, value_name = "FILE")]
    config: Option<String>,

    /// Provider. Default: `provider` in the file of --config
    #[arg(id = "provider", long = "for", value_name = "PROVIDER", value_parser = client_parser())]
    target: Option<Target>,

    /// Model. Default: `model` in the file of --config
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,

    /// Version of Anthropic's API, such as 2026-10-21. Default: 2023-06-01
    #[arg(long, value_name = "VERSION")]
    api_version: Option<String>,

    /// URL before /chat/completions, /responses or /messages. Default: the provider's
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,

    /// Variable with the API key. Default: OPENAI_API_KEY or ANTHROPIC_API_KEY, which are sent only to the
    /// provider's own host
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
    /// Maximum number of turns within which a compression must save what it costs.
    horizon: Option<u64>,
    tools: Vec<Pairs<Box<RawValue>>>,
    mcp_servers: Pairs<mcp::ServerConfig>,
}

/// The model and the tools of a chat.
pub(super) struct Configuration {
    pub(super) target: Target,
    pub(super) endpoint: Endpoint,
    /// Name of the default variable with an API key, if the variable is set but the key is not sent, because
    /// the server is not the provider's own.
    pub(super) unsent_key: Option<String>,
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
                recto_service::read_as(&text, "the file").map_err(|error| {
                    let reason = error.to_string();
                    let is_named = |field: &str| reason.starts_with(field) || !field.contains('.');
                    let at = match error.field().filter(|field| !is_named(field)) {
                        Some(field) => format!("{field}: "),
                        None => String::new(),
                    };
                    Failure::Usage(format!("the configuration {name}: {at}{reason}"))
                })?
            }
            None => ConfigFile::default(),
        };
        let target = target(arguments, &file)?;
        let (host, default_variable) = match target {
            Target::Anthropic => ("https://api.anthropic.com", "ANTHROPIC_API_KEY"),
            _ => ("https://api.openai.com", "OPENAI_API_KEY"),
        };
        let model = arguments.model.clone().or(file.model);
        let model = model.ok_or_else(|| {
            Failure::Usage(
                "no model is given; use --model, or \"model\" in the file of --config".into(),
            )
        })?;
        let base_url = arguments.base_url.clone().or(file.base_url);
        let base_url = base_url.unwrap_or_else(|| format!("{host}/v1"));
        // The default variable holds a key of the provider, which no other server may receive.
        let is_own_host = is_at(&base_url, host);
        // No key is required for a provider without a client, because `HttpModel::new` refuses it anyway.
        let needs_key = is_own_host && HttpModel::TARGETS.contains(&target);
        let mut endpoint = Endpoint::new(base_url, model);
        let variable = arguments.key_variable.clone().or(file.key_variable);
        let key = context.environment.text(variable.as_deref().unwrap_or(default_variable));
        let mut unsent_key = None;
        match (key, variable) {
            (Some(key), Some(_)) => endpoint = endpoint.key(key),
            (None, Some(variable)) => {
                return Err(Failure::Usage(format!("the variable {variable} is not set")));
            }
            (Some(key), None) if is_own_host => endpoint = endpoint.key(key),
            (None, None) if needs_key => {
                return Err(Failure::Usage(format!(
                    "the variable {default_variable} is not set; set it to your API key, or name another \
                     variable with --key-variable; use --base-url for a server that needs no key"
                )));
            }
            (Some(_), None) => unsent_key = Some(default_variable.to_owned()),
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
        Ok(Configuration { target, endpoint, unsent_key, tools, servers, look_back, horizon })
    }
}

/// Parses the name of a provider. All providers are accepted, but the help lists only those that have a
/// client: [`HttpModel::new`] refuses the others with an error that says what is wrong.
fn client_parser() -> impl TypedValueParser<Value = Target> {
    let is_hidden = |target| !HttpModel::TARGETS.contains(&target);
    let names = Target::ALL.map(|it| PossibleValue::new(it.name()).hide(is_hidden(it)));
    PossibleValuesParser::new(names)
        .map(|name| Target::named(&name).expect("the parser accepts only names of targets"))
}

/// Whether a URL has the scheme and the host of `host`, such as `https://api.openai.com`, and no port.
fn is_at(url: &str, host: &str) -> bool {
    url.strip_prefix(host).is_some_and(|path| path.is_empty() || path.starts_with('/'))
}

fn target(arguments: &ModelArguments, file: &ConfigFile) -> Result<Target, Failure> {
    if let Some(target) = arguments.target {
        return Ok(target);
    }
    let names = HttpModel::TARGETS.map(Target::name).join(", ");
    let Some(name) = &file.provider else {
        return Err(Failure::Usage(format!(
            "no provider is given; use --for with one of {names}, or \"provider\" in the file of --config"
        )));
    };
    Target::named(name)
        .ok_or_else(|| Failure::Usage(format!("there is no provider {name:?}; use {names}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_recognised_by_its_whole_name_and_its_scheme() {
        let host = "https://api.openai.com";
        assert!(is_at(host, host) && is_at("https://api.openai.com/v1", host));
        for other in [
            "http://api.openai.com/v1",
            "https://api.openai.com.example.org/v1",
            "https://api.openai.com@example.org/v1",
            "https://api.openai.com:8443/v1",
            "https://example.org/https://api.openai.com/v1",
        ] {
            assert!(!is_at(other, host), "{other}");
        }
    }
}
