//! What stood around the messages in a file, and what of it has a place in a conversation.

use recto_core::Tool;
use serde_json::Value;

use crate::Format;
use crate::json::{self, Str};

/// What an envelope ([`Step::Envelope`](crate::Step::Envelope)) holds beside the messages.
///
/// ```
/// use recto_core::Settings;
/// use recto_format::{Around, ImportOptions, Replay, import};
///
/// let file = r#"{"model":"m","system":"Be brief.","tools":[{"name":"search","input_schema":{"type":"object"}}],
/// "messages":[{"role":"user","content":"hi"}]}"#;
/// let mut replay = Replay::new(Settings::default(), 0);
/// let format = import(file, None, &ImportOptions::default(), &mut replay)?;
/// let around = Around::of(replay.conversations[0].envelope.as_deref().unwrap(), format);
/// assert_eq!(around.tools[0].name(), "search");
/// assert_eq!(around.others, ["model"]); // what the system says is a message
/// # Ok::<(), recto_format::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Around {
    /// The tools that the model could call, in the form of a conversation's tools and of
    /// [`RenderOptions::tools`](crate::RenderOptions::tools). Of two with one name it is the first.
    pub tools: Vec<Tool>,
    /// The fields that have no place in a conversation, in their order. `tools` is among them if some
    /// of them are no functions, such as searches at the provider.
    pub others: Vec<String>,
    /// How many lines of a session stood behind its last message.
    pub lines: usize,
}

impl Around {
    /// Reads an envelope of a file of this format.
    pub fn of(envelope: &str, format: Format) -> Around {
        let mut around = Around::default();
        if json::is_list(envelope) {
            around.lines = json::items(envelope).count();
            return around;
        }
        for (key, value) in json::fields(envelope).filter(|(_, value)| *value != "null") {
            let name = key.text();
            let is_kept = match &*name {
                "tools" | "functions" if json::is_list(value) => around.add_tools(value),
                _ => format.codec().is_message(&name, value),
            };
            if !is_kept && !around.others.iter().any(|other| *other == name) {
                around.others.push(name.into_owned());
            }
        }
        around
    }

    /// Adds the functions of a list of tools; answers whether that is all of them.
    fn add_tools(&mut self, list: &str) -> bool {
        let mut is_all = true;
        for item in json::items(list) {
            let declared = ["functionDeclarations", "function_declarations"];
            match declared.iter().find_map(|key| json::get(item, key)) {
                // Gemini has lists of functions, beside tools of its own.
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

/// Where a schema may stand; Gemini's own says types in capitals.
const SCHEMAS: [&str; 5] =
    ["input_schema", "inputSchema", "parameters", "parametersJsonSchema", "parameters_json_schema"];

/// A function that the model may call, however its provider describes it.
fn tool_of(item: &str) -> Option<Tool> {
    let kind = json::get_str(item, "type").map(Str::text);
    if !matches!(kind.as_deref(), None | Some("function" | "custom")) {
        return None; // it runs at the provider
    }
    let described = json::get(item, "function").filter(|it| json::is_object(it)).unwrap_or(item);
    let name = json::get_str(described, "name").filter(|name| !name.is_empty())?;
    let mut out = String::from("{\"name\":");
    json::push_str(name, &mut out);
    out.push_str(",\"description\":");
    json::push_str(json::get_str(described, "description").unwrap_or(Str::plain("")), &mut out);
    if let Some(schema) = SCHEMAS.iter().find_map(|key| json::get(described, key)) {
        out.push_str(",\"input_schema\":");
        out.push_str(&in_small_letters(schema));
    }
    let written = ["type", "name", "description"];
    json::push_other_fields(described, &[&written[..], &SCHEMAS[..]].concat(), &mut out);
    out.push('}');
    Tool::from_json(&out).ok()
}

/// A schema with its types as JSON Schema has them: `object` for Gemini's `OBJECT`.
fn in_small_letters(schema: &str) -> String {
    let types = ["OBJECT", "STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "NULL"];
    let is_loud = types.iter().any(|name| schema.contains(&format!("\"{name}\"")));
    match serde_json::from_str::<Value>(schema) {
        Ok(mut value) if is_loud => {
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
