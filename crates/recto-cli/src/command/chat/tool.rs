//! Programs as tools, as a configuration names them.

use std::time::Duration;

use recto::Tool;
use recto_agent::CommandTool;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::pairs::Pairs;
use crate::desk::Desk;
use crate::failure::Failure;

/// What the model is told; the rest is about how the program is run.
const TOLD: [&str; 7] =
    ["name", "description", "input_schema", "inputSchema", "parameters", "strict", "cache_control"];

/// How a tool is run, which the model is not told.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Described {
    /// The program, then its arguments.
    command: Vec<String>,
    /// Its environment.
    #[serde(default)]
    env: Pairs<String>,
    /// Variables of ours that it may see.
    #[serde(default)]
    variables: Vec<String>,
    /// How long a call may take, in seconds.
    timeout: Option<f64>,
}

/// Every tool of a configuration. No two may have one name.
pub(super) fn all(
    described: Vec<Pairs<Box<RawValue>>>,
    desk: &Desk<'_>,
) -> Result<Vec<CommandTool>, Failure> {
    let mut tools: Vec<CommandTool> = Vec::new();
    for (number, fields) in described.into_iter().enumerate() {
        let tool = command_tool(number + 1, fields, desk)?;
        let name = tool.tool.name();
        if tools.iter().any(|known| known.tool.name() == name) {
            return Err(Failure::Usage(format!(
                "two tools in the configuration are called {name:?}"
            )));
        }
        tools.push(tool);
    }
    Ok(tools)
}

fn command_tool(
    number: usize,
    fields: Pairs<Box<RawValue>>,
    desk: &Desk<'_>,
) -> Result<CommandTool, Failure> {
    let name = fields.0.iter().find(|(name, _)| name == "name");
    let which = match name.and_then(|(_, name)| serde_json::from_str::<String>(name.get()).ok()) {
        Some(name) => format!("{name:?}"),
        None => format!("number {number}"),
    };
    let wrong =
        |reason: String| Failure::Usage(format!("tool {which} in the configuration: {reason}"));
    let (told, own): (Vec<_>, Vec<_>) =
        fields.0.into_iter().partition(|(name, _)| TOLD.contains(&name.as_str()));
    if let Some((name, _)) = told
        .iter()
        .enumerate()
        .find(|(at, (name, _))| told[..*at].iter().any(|(it, _)| it == name))
        .map(|(_, it)| it)
    {
        return Err(wrong(format!("{name} is there twice")));
    }
    let described: Described = serde_json::from_str(&Pairs(own).to_json())
        .map_err(|error| wrong(without_place(&error.to_string())))?;
    let [program, arguments @ ..] = &described.command[..] else {
        return Err(wrong("command is empty; name the program, then its arguments".into()));
    };
    // What else is said of it goes to the model as it is written.
    let tool = Tool::from_json(&Pairs(told).to_json()).map_err(|error| wrong(error.to_string()))?;
    let mut tool = CommandTool::new(tool, program).arguments(arguments);
    for variable in &described.variables {
        let held = desk.surroundings.text(variable);
        let held = held.ok_or_else(|| wrong(format!("the variable {variable} is not set")))?;
        tool = tool.variable(variable, held);
    }
    for (variable, value) in described.env.0 {
        tool = tool.variable(variable, value);
    }
    if let Some(seconds) = described.timeout {
        let patience = Duration::try_from_secs_f64(seconds);
        tool.timeout = patience.map_err(|error| wrong(format!("timeout: {error}")))?;
    }
    Ok(tool)
}

/// Lines and columns would be those of a text that nobody has written.
fn without_place(error: &str) -> String {
    error.split(" at line ").next().unwrap_or(error).to_owned()
}
