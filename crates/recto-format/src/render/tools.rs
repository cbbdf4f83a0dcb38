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
use crate::envelope::ToolSource;
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

/// The tools of a request: the name and the value of the field that holds them.
#[derive(Debug, Default)]
pub(crate) struct RenderedTools {
    json: Option<String>,
    field: &'static str,
    /// The descriptions, without the JSON around them.
    pub(crate) list: String,
    pub(crate) renamed: Vec<RenamedTool>,
    pub(crate) findings: Vec<ToolFinding>,
}

impl RenderedTools {
    /// Writes the tools. A tool that was imported from a request to the same provider keeps its bytes.
    pub(crate) fn of(tools: &[Tool], dialect: &Dialect) -> Result<RenderedTools, Error> {
        let target = dialect.target;
        let refused = |reason: String| Error::InvalidField {
            target: target.name(),
            field: tools_field(target).into(),
            reason,
        };
        let mut rendered = RenderedTools { field: tools_field(target), ..Default::default() };
        let (mut names, mut marks) = (HashSet::new(), CacheMarks::default());
        let sources: Vec<_> = tools.iter().map(ToolSource::of).collect();
        let is_own = |source: &ToolSource<'_>| source.format == target.format().name();
        let is_deprecated = |source: &Option<ToolSource<'_>>| {
            source.as_ref().is_some_and(|source| is_own(source) && source.is_deprecated)
        };
        let all_deprecated = !tools.is_empty() && sources.iter().all(is_deprecated);
        let mut list = ToolList { is_grouped: target == Target::Gemini, ..Default::default() };
        for (tool, source) in tools.iter().zip(&sources) {
            let own = source.as_ref().filter(|source| is_own(source));
            let own = own.filter(|source| {
                source.is_deprecated == all_deprecated
                    && json::lone_surrogates(source.original).is_empty()
                    && mark_of(source.original, target).is_none_or(|mark| marks.accepts(mark))
            });
            let is_provider_tool = source.as_ref().is_some_and(|source| source.is_provider_tool);
            if !is_provider_tool {
                rendered.report_lost_fields(
                    tool,
                    source.as_ref().filter(|_| own.is_none()),
                    target,
                );
            } else if own.is_none() {
                let message = "only another provider can run it";
                rendered.report(&rule::TOOLS_OF_THE_PROVIDER, tool, message);
                continue;
            }
            if let Some(source) = own {
                if !is_provider_tool && !names.insert(Cow::Borrowed(tool.name())) {
                    return Err(refused(format!("two tools have the name {:?}", tool.name())));
                }
                list.add_original(source);
                continue;
            }
            let described = ToolDescription::of(tool, dialect).map_err(refused)?;
            if described.name != tool.name() {
                let rendered_name = described.name.clone().into_owned();
                rendered.renamed.push(RenamedTool { name: tool.name().to_owned(), rendered_name });
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
            if let Some(message) = message {
                rendered.report(&rule::SCHEMAS_WITHOUT_CHOICE, tool, message);
            }
            let mut text = String::new();
            described.write(target, &mut marks, &mut text);
            list.add_function(&text, None);
        }
        rendered.list = list.finish();
        if !rendered.list.is_empty() {
            rendered.json = Some(match target {
                Target::BedrockConverse => format!(r#"{{"tools":[{}]}}"#, rendered.list),
                _ => format!("[{}]", rendered.list),
            });
        }
        if all_deprecated {
            rendered.field = "functions";
        }
        Ok(rendered)
    }

    fn report(&mut self, rule: &'static Rule, tool: &Tool, message: impl Into<String>) {
        let (tool, message) = (tool.name().to_owned(), message.into());
        self.findings.push(ToolFinding { rule, tool, message });
    }

    /// Reports the fields of an imported tool that are lost in its description for another provider.
    fn report_lost_fields(&mut self, tool: &Tool, source: Option<&ToolSource<'_>>, target: Target) {
        let is_openai = matches!(target, Target::OpenAiChat | Target::OpenAiResponses);
        let is_kept = |key: &str| {
            ["name", "description", "metadata"].contains(&key)
                || SCHEMAS.contains(&key)
                || key == "cache_control" && target == Target::Anthropic
                || key == "strict" && is_openai
        };
        if source.is_none() {
            return;
        }
        let fields =
            json::fields(tool.json()).filter(|(_, value)| !matches!(*value, "null" | "false"));
        let lost: Vec<_> = fields.map(|(key, _)| key.text()).filter(|key| !is_kept(key)).collect();
        if !lost.is_empty() {
            let message = format!("it has fields of another provider: {}", lost.join(", "));
            self.report(&rule::TOOLS_OF_THE_PROVIDER, tool, message);
        }
    }

    /// The fields of the request, followed by the tools.
    pub(crate) fn fields<'a>(&'a self, options: &RenderOptions<'a>) -> Vec<(&'a str, &'a str)> {
        let tools = self.json.as_deref().map(|json| (self.field, json));
        options.fields.iter().copied().chain(tools).collect()
    }
}

/// The cache mark of a description. `None` for providers other than Anthropic.
fn mark_of(original: &str, target: Target) -> Option<&str> {
    json::get(original, "cache_control").filter(|_| target == Target::Anthropic)
}

/// A list of descriptions, while it is written.
#[derive(Default)]
struct ToolList {
    out: String,
    /// True for Gemini, where one item contains a list of functions.
    is_grouped: bool,
    /// `Some` while an item is open: the index of the item in the imported request, if it is known.
    open: Option<Option<usize>>,
    /// The fields of the open item after its functions, each preceded by a comma.
    empty: String,
}

impl ToolList {
    fn add_original(&mut self, source: &ToolSource<'_>) {
        match source.is_provider_tool {
            true => {
                self.close();
                self.separate();
                self.out.push_str(source.original);
            }
            false => self.add_function(source.original, Some(source)),
        }
    }

    /// Adds a function. In Gemini, it is added to the open item unless its source names another item.
    fn add_function(&mut self, text: &str, source: Option<&ToolSource<'_>>) {
        let group = source.map(|source| source.group);
        if self.is_grouped && self.open.is_none_or(|open| group.is_some() && open != group) {
            self.close();
            self.separate();
            self.out.push_str(match source.is_some_and(|source| source.is_snake_case) {
                true => r#"{"function_declarations":["#,
                false => r#"{"functionDeclarations":["#,
            });
            self.open = Some(group);
            self.empty = source.map(|source| source.empty.to_string()).unwrap_or_default();
        } else {
            self.separate();
        }
        self.out.push_str(text);
    }

    fn separate(&mut self) {
        if !self.out.is_empty() {
            self.out.push(',');
        }
    }

    fn close(&mut self) {
        if self.open.take().is_some() {
            self.out.push(']');
            self.out.push_str(&std::mem::take(&mut self.empty));
            self.out.push('}');
        }
    }

    fn finish(mut self) -> String {
        self.close();
        self.out
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
