//! The tools that the model may call, described as each provider wants it.
//!
//! A tool's JSON is kept as it came, so its input may be called `input_schema`, `inputSchema` or
//! `parameters`. A name that does not fit is encoded just as in calls, so that both still agree.

use std::borrow::Cow;
use std::collections::HashSet;

use recto_core::Tool;

use super::cache_marks::Marks;
use super::dialect::Dialect;
use super::rule::{self, Rule};
use super::schema::{self, Change};
use super::{RenderOptions, Target, ids};
use crate::Error;
use crate::json::{self, Str};

/// Where the schema of a tool's input may stand.
const SCHEMAS: [&str; 3] = ["input_schema", "inputSchema", "parameters"];
/// Any object: the input of a tool that says nothing of it.
const ANY_OBJECT: &str = r#"{"type":"object","properties":{}}"#;

/// A tool whose name the provider would not take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenamedTool {
    /// Its name.
    pub name: String,
    /// What the request calls it, and what the model will call it.
    pub written: String,
}

/// A rule that a tool breaks for a target, and what was done about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolFinding {
    /// The rule.
    pub rule: &'static Rule,
    /// The name of the tool.
    pub tool: String,
    /// What is wrong with it, and whether something is lost.
    pub message: String,
}

/// The tools in a request: the value of its field `tools`.
#[derive(Debug, Default)]
pub(crate) struct WrittenTools {
    json: Option<String>,
    pub(crate) renamed: Vec<RenamedTool>,
    pub(crate) findings: Vec<ToolFinding>,
}

impl WrittenTools {
    pub(crate) fn of(tools: &[Tool], dialect: &Dialect) -> Result<WrittenTools, Error> {
        if tools.is_empty() {
            return Ok(WrittenTools::default());
        }
        let refused = |reason: String| Error::InvalidField {
            target: dialect.target.name(),
            field: "tools".into(),
            reason,
        };
        let (mut renamed, mut names, mut marks) = (Vec::new(), HashSet::new(), Marks::default());
        let (mut list, mut findings) = (String::new(), Vec::new());
        for tool in tools {
            let described = Described::of(tool, dialect).map_err(refused)?;
            if described.name != tool.name() {
                let (name, written) = (tool.name().to_owned(), described.name.clone().into_owned());
                renamed.push(RenamedTool { name, written });
            }
            if !names.insert(described.name.clone()) {
                return Err(refused(format!("two tools are called {:?}", tool.name())));
            }
            let message = match described.change {
                Change::None => None,
                Change::Rewritten => {
                    Some("its schema has a choice at its top, and says the same without")
                }
                Change::Looser => {
                    Some("its schema has a choice at its top, and takes more without")
                }
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
            _ => format!("[{list}]"),
        };
        Ok(WrittenTools { json: Some(json), renamed, findings })
    }

    /// The request's fields, with the tools among them.
    pub(crate) fn fields<'a>(&'a self, options: &RenderOptions<'a>) -> Vec<(&'a str, &'a str)> {
        let tools = self.json.as_deref().map(|json| ("tools", json));
        options.fields.iter().copied().chain(tools).collect()
    }
}

/// What a provider is told of a tool.
struct Described<'a> {
    name: Cow<'a, str>,
    description: &'a str,
    schema: Cow<'a, str>,
    change: Change,
    is_strict: bool,
    cache_control: Option<&'a str>,
}

impl<'a> Described<'a> {
    fn of(tool: &'a Tool, dialect: &Dialect) -> Result<Described<'a>, String> {
        let mut escaped = String::new();
        json::escape_into(tool.name(), &mut escaped);
        let name = match ids::fit(Str::escaped_text(&escaped), &dialect.names) {
            Some(fitted) => Cow::Owned(fitted),
            None => Cow::Borrowed(tool.name()),
        };
        let given = |key: &&str| json::get(tool.json(), key).filter(|value| *value != "null");
        let refused = dialect.refused_in_schemas;
        let (schema, change) = match SCHEMAS.iter().find_map(given) {
            None => (Cow::Borrowed(ANY_OBJECT), Change::None),
            Some(schema) => schema::of_object(schema, refused).ok_or_else(|| {
                let name = tool.name();
                format!("the schema of {name:?} must be one of an object: {ANY_OBJECT}")
            })?,
        };
        Ok(Described {
            name,
            description: tool.description(),
            schema,
            change,
            is_strict: json::get(tool.json(), "strict") == Some("true"),
            cache_control: json::get(tool.json(), "cache_control"),
        })
    }

    fn write(&self, target: Target, marks: &mut Marks, out: &mut String) {
        let [start, schema, end] = match target {
            Target::OpenAiChat => {
                [r#"{"type":"function","function":{"name":"#, r#","parameters":"#, "}}"]
            }
            Target::OpenAiResponses => [r#"{"type":"function","name":"#, r#","parameters":"#, "}"],
            Target::Anthropic => [r#"{"name":"#, r#","input_schema":"#, "}"],
            Target::Gemini => [r#"{"name":"#, r#","parametersJsonSchema":"#, "}"],
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
            // Where nothing is said, Responses are strict.
            Target::OpenAiResponses => {
                out.push_str(&format!(",\"strict\":{}", self.is_strict));
            }
            Target::Anthropic => {
                if let Some(mark) = self.cache_control.filter(|mark| marks.takes(mark)) {
                    out.push_str(&format!(",\"cache_control\":{mark}"));
                }
            }
            Target::OpenAiChat | Target::Gemini => {}
        }
        out.push_str(end);
    }
}
