//! The envelope of a transcript: the JSON around the messages, such as tools and model settings.

use recto_core::Tool;
use serde_json::Value;

use crate::Format;
use crate::json::{self, Str};

/// Content of an envelope ([`Step::Envelope`](crate::Step::Envelope)).
///
/// ```
/// use recto_core::Settings;
/// use recto_format::{EnvelopeInfo, ImportOptions, Replay, import};
///
/// let file = r#"{"model":"m","system":"Be brief.","tools":[{"name":"search","input_schema":{"type":"object"}}],
/// "messages":[{"role":"user","content":"hi"}]}"#;
/// let mut replay = Replay::new(Settings::default(), 0);
/// let format = import(file, None, &ImportOptions::default(), &mut replay)?;
/// let info = EnvelopeInfo::of(replay.conversations[0].envelope.as_deref().unwrap(), format);
/// assert_eq!(info.tools[0].name(), "search");
/// assert_eq!(info.unsupported_fields, ["model"]); // `system` became a message
/// # Ok::<(), recto_format::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct EnvelopeInfo {
    /// The functions that the model could call, in the form of a conversation's tools and of
    /// [`RenderOptions::tools`](crate::RenderOptions::tools). Of two tools with the same name, the
    /// first is listed.
    pub tools: Vec<Tool>,
    /// Names of the fields that a conversation cannot hold, in order. Contains `tools` if some tools
    /// are not functions, such as searches that the provider runs.
    pub unsupported_fields: Vec<String>,
    /// Number of lines of a session after its last message.
    pub trailing_lines: usize,
}

impl EnvelopeInfo {
    /// Reads the envelope of a file of this format.
    pub fn of(envelope: &str, format: Format) -> EnvelopeInfo {
        let mut info = EnvelopeInfo::default();
        if json::is_list(envelope) {
            info.trailing_lines = json::items(envelope).count();
            return info;
        }
        for (key, value) in json::fields(envelope).filter(|(_, value)| *value != "null") {
            let name = key.text();
            let is_kept = match &*name {
                "tools" | "functions" if json::is_list(value) => info.add_tools(value),
                // In Bedrock, the tools are in a separate object.
                "toolConfig" => {
                    let tools = json::get(value, "tools").unwrap_or("[]");
                    info.add_tools(tools) & (json::fields(value).count() == 1)
                }
                _ => format.codec().is_message(&name, value),
            };
            if !is_kept && !info.unsupported_fields.iter().any(|field| *field == name) {
                info.unsupported_fields.push(name.into_owned());
            }
        }
        info
    }

    /// Adds the functions of a list of tools. Returns whether every tool was added.
    fn add_tools(&mut self, list: &str) -> bool {
        let mut is_all = true;
        for item in json::items(list) {
            let declared = ["functionDeclarations", "function_declarations"];
            match declared.iter().find_map(|key| json::get(item, key)) {
                // In Gemini, a tool is a list of functions or a built-in tool.
                Some(functions) => {
                    is_all &= json::fields(item).count() == 1;
                    json::items(functions).for_each(|function| is_all &= self.add_tool(function));
                }
                None => is_all &= self.add_tool(item),
            }
        }
        is_all
    }

    fn add_tool(&mut self, item: &str) -> bool {
        let Some(tool) = tool_of(item) else { return false };
        if self.tools.iter().any(|known| known.name() == tool.name()) {
            return false;
        }
        self.tools.push(tool);
        true
    }
}

/// Names of the field that holds the input schema. Gemini writes types in capitals.
const SCHEMAS: [&str; 5] =
    ["input_schema", "inputSchema", "parameters", "parametersJsonSchema", "parameters_json_schema"];

/// Reads the description of a function in any provider's form.
fn tool_of(item: &str) -> Option<Tool> {
    let kind = json::get_str(item, "type").map(Str::text);
    if !matches!(kind.as_deref(), None | Some("function" | "custom")) {
        return None; // a tool that the provider runs
    }
    let described = ["function", "toolSpec"].iter().find_map(|key| json::get(item, key));
    let described = described.filter(|it| json::is_object(it)).unwrap_or(item);
    let name = json::get_str(described, "name").filter(|name| !name.is_empty())?;
    let mut out = String::from("{\"name\":");
    json::push_str(name, &mut out);
    out.push_str(",\"description\":");
    json::push_str(json::get_str(described, "description").unwrap_or(Str::plain("")), &mut out);
    if let Some(schema) = SCHEMAS.iter().find_map(|key| json::get(described, key)) {
        out.push_str(",\"input_schema\":");
        // Bedrock wraps the schema: `{"json": …}`.
        let wrapped = json::get(schema, "json").filter(|it| json::is_object(it));
        out.push_str(&with_lowercase_types(wrapped.unwrap_or(schema)));
    }
    let written = ["type", "name", "description"];
    json::push_other_fields(described, &[&written[..], &SCHEMAS[..]].concat(), &mut out);
    out.push('}');
    Tool::from_json(&out).ok()
}

/// A schema with JSON Schema's names of types: `object` for Gemini's `OBJECT`.
fn with_lowercase_types(schema: &str) -> String {
    let types = ["OBJECT", "STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "NULL"];
    let has_capitals = types.iter().any(|name| schema.contains(&format!("\"{name}\"")));
    match serde_json::from_str::<Value>(schema) {
        Ok(mut value) if has_capitals => {
            lower_types(&mut value, &types);
            value.to_string()
        }
        _ => schema.to_owned(),
    }
}

fn lower_types(schema: &mut Value, types: &[&str]) {
    match schema {
        Value::Object(fields) => {
            for (key, value) in fields {
                match (&**key, value) {
                    ("enum" | "default" | "example" | "const", _) => {}
                    ("type", Value::String(kind)) if types.contains(&&**kind) => {
                        *kind = kind.to_ascii_lowercase();
                    }
                    (_, value) => lower_types(value, types),
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|value| lower_types(value, types)),
        _ => {}
    }
}
