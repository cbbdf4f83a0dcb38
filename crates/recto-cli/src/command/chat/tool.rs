//! Tools of the configuration that are programs.

use std::time::Duration;

use recto::Tool;
use recto::engine::json::Pairs;
use recto_agent::CommandTool;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::context::Context;
use crate::failure::Failure;

/// Fields that are sent to the model. The others configure the program.
const MODEL_FIELDS: [&str; 7] =
    ["name", "description", "input_schema", "inputSchema", "parameters", "strict", "cache_control"];

/// Configuration of the program, which is not sent to the model.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ToolConfig {
    /// The program, then its arguments.
    command: Vec<String>,
    /// Environment variables that the program receives.
    #[serde(default)]
    env: Pairs<String>,
    /// Names of environment variables of this process that the program also receives.
    #[serde(default)]
    variables: Vec<String>,
    /// Timeout of a call, in seconds.
    timeout: Option<f64>,
}

/// All tools of a configuration. Names must be unique.
pub(super) fn all(
    configs: Vec<Pairs<Box<RawValue>>>,
    context: &Context<'_>,
) -> Result<Vec<CommandTool>, Failure> {
    let mut tools: Vec<CommandTool> = Vec::new();
    for (number, fields) in configs.into_iter().enumerate() {
        let tool = command_tool(number + 1, fields, context)?;
        let name = tool.tool.name();
        if tools.iter().any(|known| known.tool.name() == name) {
            return Err(Failure::Usage(format!(
                "the configuration has two tools with the name {name:?}"
            )));
        }
        tools.push(tool);
    }
    Ok(tools)
}

fn command_tool(
    number: usize,
    fields: Pairs<Box<RawValue>>,
    context: &Context<'_>,
) -> Result<CommandTool, Failure> {
    let name = fields.0.iter().find(|(name, _)| name == "name");
    let label = match name.and_then(|(_, name)| serde_json::from_str::<String>(name.get()).ok()) {
        Some(name) => format!("{name:?}"),
        None => format!("number {number}"),
    };
    let wrong =
        |reason: String| Failure::Usage(format!("tool {label} in the configuration: {reason}"));
    let (model_fields, program_fields): (Vec<_>, Vec<_>) =
        fields.0.into_iter().partition(|(name, _)| MODEL_FIELDS.contains(&name.as_str()));
    if let Some((name, _)) = model_fields
        .iter()
        .enumerate()
        .find(|(at, (name, _))| model_fields[..*at].iter().any(|(it, _)| it == name))
        .map(|(_, it)| it)
    {
        return Err(wrong(format!("the field {name} is given twice")));
    }
    let config: ToolConfig = recto_service::read_as(&Pairs(program_fields).to_json(), "the tool")
        .map_err(|error| wrong(error.to_string()))?;
    let [program, arguments @ ..] = &config.command[..] else {
        return Err(wrong("command is empty; give the program and its arguments".into()));
    };
    // The fields in `MODEL_FIELDS` are sent to the model unchanged.
    let tool = Tool::from_json(&Pairs(model_fields).to_json())
        .map_err(|error| wrong(error.to_string()))?;
    let mut tool = CommandTool::new(tool, program).arguments(arguments);
    for variable in &config.variables {
        let value = context.environment.text(variable);
        let value = value.ok_or_else(|| wrong(format!("the variable {variable} is not set")))?;
        tool = tool.variable(variable, value);
    }
    for (variable, value) in config.env.0 {
        tool = tool.variable(variable, value);
    }
    if let Some(seconds) = config.timeout {
        let timeout = Duration::try_from_secs_f64(seconds);
        tool.timeout = timeout.map_err(|error| wrong(format!("timeout: {error}")))?;
    }
    Ok(tool)
}
