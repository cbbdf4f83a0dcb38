//! Descriptions of tools, in the form of each provider.
//!
//! The JSON of a tool is stored unchanged, so its input schema may be in `input_schema`, `inputSchema` or
//! `parameters`. A name that the provider rejects is encoded in the same way as in calls, so that both
//! agree.

use std::borrow::Cow;
use std::collections::HashSet;

use recto_core::Tool;

use super::cache_marks::CacheMarks;
use super::dialect::Dialect;
use super::rule::{self, Rule};
use super::schema::{self, Change};
use super::{RenderOptions, Target, ids};
use crate::Error;
use crate::json::{self, Str};

/// Names of the field that holds the schema of a tool's input.
const SCHEMAS: [&str; 3] = ["input_schema", "inputSchema", "parameters"];
/// The schema of a tool that has none: any object.
const ANY_OBJECT: &str = r#"{"type":"object","properties":{}}"#;

/// A tool whose name the provider would reject.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RenamedTool {
    /// Name of the tool.
    pub name: String,
    /// Its name in the request and in the calls of the model.
    pub rendered_name: String,
}

/// A violation of a rule by a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolFinding {
    /// The violated rule.
    pub rule: &'static Rule,
    /// Name of the tool.
    pub tool: String,
    /// The violation, and whether the repair loses something.
    pub message: String,
}

/// The tools of a request: the value of its field for them.
#[derive(Debug, Default)]
pub(crate) struct RenderedTools {
    json: Option<String>,
    field: &'static str,
    pub(crate) renamed: Vec<RenamedTool>,
    pub(crate) findings: Vec<ToolFinding>,
}

impl RenderedTools {
    pub(crate) fn of(tools: &[Tool], dialect: &Dialect) -> Result<RenderedTools, Error> {
        if tools.is_empty() {
            return Ok(RenderedTools::default());
        }
        let refused = |reason: String| Error::InvalidField {
            target: dialect.target.name(),
            field: tools_field(dialect.target).into(),
            reason,
        };
        let (mut renamed, mut names, mut marks) =
            (Vec::new(), HashSet::new(), CacheMarks::default());
        let (mut list, mut findings) = (String::new(), Vec::new());
        for tool in tools {
            let described = ToolDescription::of(tool, dialect).map_err(refused)?;
            if described.name != tool.name() {
                let rendered_name = described.name.clone().into_owned();
                renamed.push(RenamedTool { name: tool.name().to_owned(), rendered_name });
            }
            if !names.insert(described.name.clone()) {
                return Err(refused(format!("two tools have the name {:?}", tool.name())));
            }
            let message = match described.change {
                Change::None => None,
                Change::Rewritten => Some(
                    "its schema has alternatives at its top level; the merged schema is equivalent",
                ),
                Change::Looser => Some(
                    "its schema has alternatives at its top level; the merged schema allows more inputs",
                ),
            };
            findings.extend(message.map(|message| ToolFinding {
                rule: &rule::SCHEMAS_WITHOUT_CHOICE,
                tool: tool.name().to_owned(),
                message: message.to_owned(),
            }));
            list.push_str(if list.is_empty() { "" } else { "," });
            described.write(dialect.target, &mut marks, &mut list);
        }
        let json = match dialect.target {
            Target::Gemini => format!(r#"[{{"functionDeclarations":[{list}]}}]"#),
            Target::BedrockConverse => format!(r#"{{"tools":[{list}]}}"#),
            _ => format!("[{list}]"),
        };
        let field = tools_field(dialect.target);
        Ok(RenderedTools { json: Some(json), field, renamed, findings })
    }

    /// The fields of the request, followed by the tools.
    pub(crate) fn fields<'a>(&'a self, options: &RenderOptions<'a>) -> Vec<(&'a str, &'a str)> {
        let tools = self.json.as_deref().map(|json| (self.field, json));
        options.fields.iter().copied().chain(tools).collect()
    }
}

/// The field of a request that holds the tools.
pub(super) fn tools_field(target: Target) -> &'static str {
    if target == Target::BedrockConverse { "toolConfig" } else { "tools" }
}

/// The description of a tool for a provider.
struct ToolDescription<'a> {
    name: Cow<'a, str>,
    description: &'a str,
    schema: Cow<'a, str>,
    change: Change,
    is_strict: bool,
    cache_control: Option<&'a str>,
}

impl<'a> ToolDescription<'a> {
    fn of(tool: &'a Tool, dialect: &Dialect) -> Result<ToolDescription<'a>, String> {
        let mut escaped = String::new();
        json::escape_into(tool.name(), &mut escaped);
        let name = match ids::encode(Str::escaped_text(&escaped), &dialect.names) {
            Some(fitted) => Cow::Owned(fitted),
            None => Cow::Borrowed(tool.name()),
        };
        let given = |key: &&str| json::get(tool.json(), key).filter(|value| *value != "null");
        let refused = dialect.rejected_in_schemas;
        let (schema, change) = match SCHEMAS.iter().find_map(given) {
            None => (Cow::Borrowed(ANY_OBJECT), Change::None),
            Some(schema) => schema::of_object(schema, refused).ok_or_else(|| {
                let name = tool.name();
                format!("the schema of {name:?} must describe an object: {ANY_OBJECT}")
            })?,
        };
        Ok(ToolDescription {
            name,
            description: tool.description(),
            schema,
            change,
            is_strict: json::get(tool.json(), "strict") == Some("true"),
            cache_control: json::get(tool.json(), "cache_control"),
        })
    }

    fn write(&self, target: Target, marks: &mut CacheMarks, out: &mut String) {
        let [start, schema, end] = match target {
            Target::OpenAiChat => {
                [r#"{"type":"function","function":{"name":"#, r#","parameters":"#, "}}"]
            }
            Target::OpenAiResponses => [r#"{"type":"function","name":"#, r#","parameters":"#, "}"],
            Target::Anthropic => [r#"{"name":"#, r#","input_schema":"#, "}"],
            Target::Gemini => [r#"{"name":"#, r#","parametersJsonSchema":"#, "}"],
            Target::BedrockConverse => {
                [r#"{"toolSpec":{"name":"#, r#","inputSchema":{"json":"#, "}}}"]
            }
        };
        out.push_str(start);
        json::push_string(&self.name, out);
        if !self.description.is_empty() {
            out.push_str(",\"description\":");
            json::push_string(self.description, out);
        }
        out.push_str(schema);
        out.push_str(&self.schema);
        match target {
            Target::OpenAiChat if self.is_strict => out.push_str(",\"strict\":true"),
            // Responses is strict by default.
            Target::OpenAiResponses => {
                out.push_str(&format!(",\"strict\":{}", self.is_strict));
            }
            Target::Anthropic => {
                if let Some(mark) = self.cache_control.filter(|mark| marks.accepts(mark)) {
                    out.push_str(&format!(",\"cache_control\":{mark}"));
                }
            }
            Target::OpenAiChat | Target::Gemini | Target::BedrockConverse => {}
        }
        out.push_str(end);
    }
}
