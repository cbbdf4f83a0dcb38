//! Checks of the tool definitions in a request.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{Check, Provider, filled_list, filled_string, is_word, object, only_fields, refuse};

/// Checks the tools of a request, if it has any.
pub fn check(provider: Provider, request: &Value) -> Check {
    let (tools, other) = match provider {
        Provider::BedrockConverse => {
            (request.get("toolConfig").and_then(|it| it.get("tools")), "tools")
        }
        _ => (request.get("tools"), "toolConfig"),
    };
    if request.get(other).is_some() {
        return refuse("tools", other, "the provider has no such field");
    }
    let Some(tools) = tools else { return Ok(()) };
    let mut tools = filled_list(Some(tools), "tools", "tools")?;
    let mut at = "tools".to_owned();
    if provider == Provider::Gemini {
        let [group] = tools else {
            return refuse("tools", at, "must be one group of declarations");
        };
        let group = object(group, "tools", "tools[0]")?;
        only_fields(group, &["functionDeclarations"], "tools", "tools[0]")?;
        at = "tools[0].functionDeclarations".to_owned();
        tools = filled_list(group.get("functionDeclarations"), "tools", &at)?;
    }
    let mut names = HashSet::new();
    for (index, tool) in tools.iter().enumerate() {
        let at = format!("{at}[{index}]");
        let tool = object(tool, "tools", &at)?;
        let name = check_one(provider, tool, &at)?;
        if !names.insert(name) {
            return refuse("tools", at, format!("a second tool {name:?}"));
        }
    }
    Ok(())
}

/// Checks one tool and returns its name.
fn check_one<'a>(provider: Provider, tool: &'a Map<String, Value>, at: &str) -> Check<&'a str> {
    let (tool, known, schema, longest): (_, &[&str], _, _) = match provider {
        Provider::OpenAiChat => {
            only_fields(tool, &["type", "function"], "tools", at)?;
            is_function(tool, at)?;
            let Some(function) = tool.get("function") else {
                return refuse("tools", format!("{at}.function"), "missing");
            };
            let function = object(function, "tools", at)?;
            (function, &["name", "description", "parameters", "strict"], "parameters", 64)
        }
        Provider::OpenAiResponses => {
            is_function(tool, at)?;
            // Without `strict`, the schema is strict.
            if !tool.get("strict").is_some_and(Value::is_boolean) {
                return refuse("tools", format!("{at}.strict"), "must be true or false");
            }
            (tool, &["type", "name", "description", "parameters", "strict"], "parameters", 64)
        }
        Provider::Anthropic => {
            (tool, &["name", "description", "input_schema", "cache_control"], "input_schema", 128)
        }
        Provider::BedrockConverse => {
            only_fields(tool, &["toolSpec"], "tools", at)?;
            let Some(Value::Object(spec)) = tool.get("toolSpec") else {
                return refuse("tools", format!("{at}.toolSpec"), "missing");
            };
            (spec, &["name", "description", "inputSchema"], "inputSchema", 64)
        }
        Provider::Gemini => {
            let known = &["name", "description", "parametersJsonSchema"];
            (tool, known, "parametersJsonSchema", 64)
        }
    };
    only_fields(tool, known, "tools", at)?;
    let name = filled_string(tool, "name", "tools", at)?;
    let (extra, may_start) = match provider {
        Provider::Gemini => {
            ("_.:-", name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'))
        }
        _ => ("_-", true),
    };
    if !is_word(name, extra, longest) || !may_start {
        return refuse("tools", format!("{at}.name"), format!("{name:?} is not a valid name"));
    }
    if tool.contains_key("description") {
        filled_string(tool, "description", "tools", at)?;
    }
    let at = format!("{at}.{schema}");
    let schema = match provider {
        Provider::BedrockConverse => tool.get(schema).and_then(|it| it.get("json")),
        _ => tool.get(schema),
    };
    let schema = match schema {
        Some(Value::Object(schema)) if schema.get("type") == Some(&"object".into()) => schema,
        _ => return refuse("tools", at, "must be the schema of an object"),
    };
    let refused: &[&str] = match provider {
        Provider::OpenAiChat | Provider::OpenAiResponses => {
            &["anyOf", "oneOf", "allOf", "enum", "not"]
        }
        Provider::Anthropic | Provider::BedrockConverse => &["anyOf", "oneOf", "allOf"],
        Provider::Gemini => &[],
    };
    match refused.iter().find(|key| schema.contains_key(**key)) {
        Some(key) => refuse("tools", at, format!("{key} at the top level")),
        None => Ok(name),
    }
}

fn is_function(tool: &Map<String, Value>, at: &str) -> Check {
    match tool.get("type").and_then(Value::as_str) {
        Some("function") => Ok(()),
        _ => refuse("tools", format!("{at}.type"), "must be function"),
    }
}
