//! The envelope of a transcript: the JSON around the messages, such as tools and model settings.

use std::borrow::Cow;

use recto_core::Tool;
use serde_json::Value;

use crate::Format;
use crate::json::{self, Str};
use crate::render::{RenderedTools, Target};

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
    /// The tools of the request, in the form of a conversation's tools and of
    /// [`RenderOptions::tools`](crate::RenderOptions::tools). If two functions have the same name, only the
    /// first is listed. If rendering for the same provider would change the bytes of a tool,
    /// `metadata.source` of the tool contains the original bytes.
    pub tools: Vec<Tool>,
    /// Names of the tools that only the provider of the request can run, such as a web search.
    pub provider_tools: Vec<String>,
    /// Names of the fields that a conversation cannot hold, in order. Contains `tools` if some tools could
    /// not be read.
    pub unsupported_fields: Vec<String>,
    /// Number of lines of a session after its last message that the message cannot store.
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
                "tools" | "functions" if json::is_list(value) => {
                    info.add_tools(value, format, name == "functions")
                }
                // In Bedrock, the tools are in a separate object.
                "toolConfig" => {
                    let tools = json::get(value, "tools").unwrap_or("[]");
                    info.add_tools(tools, format, false) & (json::fields(value).count() == 1)
                }
                _ => format.codec().is_message(&name, value),
            };
            if !is_kept && !info.unsupported_fields.iter().any(|field| *field == name) {
                info.unsupported_fields.push(name.into_owned());
            }
        }
        info
    }

    /// Adds a list of tools. Returns whether every tool was added.
    fn add_tools(&mut self, list: &str, format: Format, is_deprecated: bool) -> bool {
        let mut is_all = true;
        for (number, item) in json::items(list).enumerate() {
            let place = Place { format, group: number, key: "", empty: "", is_deprecated };
            let declared = ["functionDeclarations", "function_declarations"];
            let declared = declared.iter().find_map(|key| Some((*key, json::get(item, key)?)));
            match declared {
                // In Gemini, a tool is a list of functions or a built-in tool.
                Some((key, functions)) => {
                    let (mut empty, mut others) = (String::new(), String::new());
                    for (name, value) in json::fields(item).filter(|(name, _)| !name.is(key)) {
                        let out = if value == "null" { &mut empty } else { &mut others };
                        out.push(',');
                        json::push_str(name, out);
                        out.push(':');
                        out.push_str(value);
                    }
                    let place = Place { key, empty: &empty, ..place };
                    for function in json::items(functions) {
                        is_all &= self.add_function(function, place);
                    }
                    if let Some(others) = others.strip_prefix(',') {
                        is_all &= self.add_provider_tool(&format!("{{{others}}}"), place);
                    }
                }
                None if is_function(item) => is_all &= self.add_function(item, place),
                None => is_all &= self.add_provider_tool(item, place),
            }
        }
        is_all
    }

    fn add_function(&mut self, item: &str, place: Place<'_>) -> bool {
        let Some(tool) = imported_tool(item, place) else { return false };
        if self.tools.iter().any(|known| known.name() == tool.name()) {
            return false;
        }
        self.tools.push(tool);
        true
    }

    /// Adds a tool that only its provider can run, with a name that no other tool has.
    fn add_provider_tool(&mut self, item: &str, place: Place<'_>) -> bool {
        if !json::is_object(item) {
            return false;
        }
        let named =
            ["name", "server_label", "type"].iter().find_map(|key| json::get_str(item, key));
        let named = named.filter(|name| !name.is_empty());
        let first_key = || json::fields(item).next().map(|(key, _)| key);
        let Some(name) = named.or_else(first_key).map(Str::text) else { return false };
        let is_used = |name: &str| self.tools.iter().any(|known| known.name() == name);
        let numbered = (2..).map(|number| format!("{name}_{number}"));
        let names = std::iter::once(name.clone().into_owned()).chain(numbered);
        let Some(name) = names.into_iter().find(|name| !is_used(name)) else { return false };
        let mut out = provider_tool_start(&name);
        ToolSource { is_provider_tool: true, ..ToolSource::new(item, place) }.write(&mut out);
        out.push('}');
        let Ok(tool) = Tool::from_json(&out) else { return false };
        self.provider_tools.push(name);
        self.tools.push(tool);
        true
    }
}

/// The start of the JSON of a tool that only its provider can run.
fn provider_tool_start(name: &str) -> String {
    format!(r#"{{"name":{},"description":"""#, json::string(name))
}

/// Where a tool is in a request.
#[derive(Clone, Copy)]
struct Place<'a> {
    format: Format,
    /// Index of the list item that contains the tool.
    group: usize,
    /// The field of that item that contains the tool, in Gemini. Empty for other providers.
    key: &'static str,
    /// The fields of that item whose value is `null`, each preceded by a comma.
    empty: &'a str,
    /// True for a tool in the field `functions`, which `tools` has replaced.
    is_deprecated: bool,
}

/// `metadata.source` of a tool: its bytes in the request from which it was imported.
#[derive(Clone, Debug, Default)]
pub(crate) struct ToolSource<'a> {
    /// Name of the format of the request.
    pub(crate) format: Cow<'a, str>,
    pub(crate) original: &'a str,
    /// Index of the item that contains the tool in the request's list of tools.
    pub(crate) group: usize,
    /// The fields of that item whose value is `null`, each preceded by a comma.
    pub(crate) empty: Cow<'a, str>,
    /// True if Gemini's field has the name `function_declarations`.
    pub(crate) is_snake_case: bool,
    /// True if the tool was in the field `functions` of the request.
    pub(crate) is_deprecated: bool,
    /// True if only the provider can run the tool.
    pub(crate) is_provider_tool: bool,
}

impl<'a> ToolSource<'a> {
    fn new(original: &'a str, place: Place<'a>) -> ToolSource<'a> {
        ToolSource {
            format: Cow::Borrowed(place.format.name()),
            original,
            group: place.group,
            empty: Cow::Borrowed(place.empty),
            is_snake_case: place.key == "function_declarations",
            is_deprecated: place.is_deprecated,
            is_provider_tool: false,
        }
    }

    /// Reads the source of a tool. `None` if the tool was not imported, or was edited after that. The source is
    /// part of a tool that any program may set, so each field is checked.
    pub(crate) fn of(tool: &'a Tool) -> Option<ToolSource<'a>> {
        let source = json::get(json::get(tool.json(), "metadata")?, "source")?;
        let is = |key: &str| json::get(source, key) == Some("true");
        let read = ToolSource {
            format: json::get_str(source, "format")?.text(),
            original: json::get(source, "original")?,
            group: json::get(source, "group").and_then(|it| it.parse().ok()).unwrap_or(0),
            empty: json::get_str(source, "empty").map(Str::text).unwrap_or_default(),
            is_snake_case: is("snake_case"),
            is_deprecated: is("deprecated"),
            is_provider_tool: is("provider_tool"),
        };
        let are_null = |fields: &str| {
            let object = format!("{{{}}}", fields.strip_prefix(',').unwrap_or(fields));
            recto_core::json::check(&object).is_some()
                && json::fields(&object).all(|(_, it)| it == "null")
        };
        let is_valid = json::is_object(read.original)
            && json::fields(read.original).next().is_some()
            && are_null(&read.empty)
            && (!read.is_deprecated || read.format == Format::OpenAiChat.name());
        let imported = match read.is_provider_tool {
            true => Some(provider_tool_start(tool.name()) + "}"),
            false => description_of(read.original),
        };
        let is_unchanged = |imported: String| {
            let rest = tool.json().strip_prefix(&imported[..imported.len() - 1]);
            rest.is_some_and(|rest| rest.starts_with(",\"metadata\":"))
        };
        (is_valid && imported.is_some_and(is_unchanged)).then_some(read)
    }

    fn write(&self, out: &mut String) {
        out.push_str(",\"metadata\":{\"source\":{\"format\":");
        json::push_string(&self.format, out);
        if self.group > 0 {
            out.push_str(&format!(",\"group\":{}", self.group));
        }
        if !self.empty.is_empty() {
            out.push_str(",\"empty\":");
            json::push_string(&self.empty, out);
        }
        let flags = [
            ("snake_case", self.is_snake_case),
            ("deprecated", self.is_deprecated),
            ("provider_tool", self.is_provider_tool),
        ];
        for (key, _) in flags.iter().filter(|(_, is_set)| *is_set) {
            out.push_str(&format!(",\"{key}\":true"));
        }
        out.push_str(",\"original\":");
        out.push_str(self.original);
        out.push_str("}}");
    }
}

/// Names of the field that holds the input schema, in all formats.
const SCHEMAS: [&str; 5] =
    ["input_schema", "inputSchema", "parameters", "parametersJsonSchema", "parameters_json_schema"];

/// False for a tool that the provider runs.
fn is_function(item: &str) -> bool {
    let kind = json::get_str(item, "type").map(Str::text);
    matches!(kind.as_deref(), None | Some("function" | "custom")) && name_of(item).is_some()
}

/// The object that describes a function.
fn described(item: &str) -> &str {
    let described = ["function", "custom", "toolSpec"].iter().find_map(|key| json::get(item, key));
    described.filter(|it| json::is_object(it)).unwrap_or(item)
}

fn name_of(item: &str) -> Option<Str<'_>> {
    json::get_str(described(item), "name").filter(|name| !name.is_empty())
}

/// Reads a function of a request. Stores the original bytes if rendering for the same provider would change
/// them.
fn imported_tool(item: &str, place: Place<'_>) -> Option<Tool> {
    let mut out = description_of(item)?;
    let tool = Tool::from_json(&out).ok()?;
    let target = Target::ALL.into_iter().find(|target| target.format() == place.format);
    let is_same = |target: Target| {
        let is_placed = target != Target::Gemini || place.group == 0;
        is_placed
            && !place.is_deprecated
            && RenderedTools::of(std::slice::from_ref(&tool), target.dialect())
                .is_ok_and(|rendered| rendered.list == item)
    };
    if target.is_none_or(is_same) {
        return Some(tool);
    }
    out.pop();
    ToolSource::new(item, place).write(&mut out);
    out.push('}');
    Tool::from_json(&out).ok()
}

/// Converts the description of a function from the form of any provider to Recto's form.
fn description_of(item: &str) -> Option<String> {
    let name = name_of(item)?;
    let described = described(item);
    let mut out = String::from("{\"name\":");
    json::push_str(name, &mut out);
    out.push_str(",\"description\":");
    json::push_str(json::get_str(described, "description").unwrap_or(Str::plain("")), &mut out);
    // Any other value is not a schema. Only `metadata.source.original` of the tool contains it.
    let is_schema = |schema: &&str| *schema == "null" || json::is_object(schema);
    let schema = SCHEMAS.iter().find_map(|key| json::get(described, key));
    if let Some(schema) = schema.filter(is_schema) {
        out.push_str(",\"input_schema\":");
        // Bedrock wraps the schema: `{"json": …}`.
        let wrapped = json::get(schema, "json").filter(|it| json::is_object(it));
        out.push_str(&with_lowercase_types(wrapped.unwrap_or(schema)));
    }
    let written = ["type", "name", "description", "metadata"];
    json::push_other_fields(described, &[&written[..], &SCHEMAS[..]].concat(), &mut out);
    out.push('}');
    Some(out)
}

/// Google's type names. The index is the number of the type in Google's protocol buffers.
const TYPES: [&str; 8] =
    ["TYPE_UNSPECIFIED", "STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"];

/// A schema with the type names of JSON Schema: `object` for Gemini's `OBJECT` or for its number 6.
fn with_lowercase_types(schema: &str) -> String {
    let is_number = |rest: &str| {
        let value = rest.trim_start().strip_prefix(':').map(str::trim_start);
        value.is_some_and(|value| value.starts_with(|c: char| c.is_ascii_digit()))
    };
    let has_capitals = TYPES.iter().any(|name| schema.contains(&format!("\"{name}\"")));
    let has_numbers = schema.split("\"type\"").skip(1).any(is_number);
    match serde_json::from_str::<Value>(schema) {
        Ok(mut value) if has_capitals || has_numbers => {
            lower_types(&mut value);
            value.to_string()
        }
        _ => schema.to_owned(),
    }
}

fn lower_types(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            for (key, value) in fields {
                match (&**key, value) {
                    ("enum" | "default" | "example" | "const", _) => {}
                    ("type", Value::String(kind)) if TYPES.contains(&&**kind) => {
                        *kind = kind.to_ascii_lowercase();
                    }
                    ("type", kind @ Value::Number(_)) => {
                        let number = kind.as_u64().and_then(|number| usize::try_from(number).ok());
                        if let Some(name) = number.and_then(|number| TYPES.get(number)) {
                            *kind = Value::String(name.to_ascii_lowercase());
                        }
                    }
                    (_, value) => lower_types(value),
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(lower_types),
        _ => {}
    }
}
