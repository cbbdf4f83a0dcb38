//! A view as a provider receives it: the messages and the tools of a version.

use recto::{Conversation, Entry, Message, Tool, Version, Warning};
use recto_format::{Finding, Format, MessageParts, RenderOptions, Rendered, Target, ToolFinding};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// The provider if neither the caller nor the messages determine one.
pub const DEFAULT_TARGET: Target = Target::Anthropic;

/// A view as it is sent to a provider. If the conversation has tools, the tool descriptions are omitted,
/// because the provider receives the tools themselves.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ProviderView {
    /// The version of the view.
    pub version: Version,
    /// The entries that are sent. Their positions are those in the view.
    pub entries: Vec<Entry>,
    /// The tools that are sent.
    pub tools: Vec<Tool>,
    /// Positions, among the entries that are sent, of messages with thinking that an edit of earlier
    /// messages has followed.
    pub invalid_thinking: Vec<usize>,
}

/// The model and the API that a view is sent to.
#[derive(Clone, Copy, Debug)]
pub struct Recipient<'a> {
    /// The provider.
    pub target: Target,
    /// The model.
    pub model: Option<&'a str>,
    /// The version of the provider's API: see [`RenderOptions::api_version`].
    pub api_version: Option<&'a str>,
}

/// A finding: content that a provider would reject, and how rendering repairs it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Finding")]
#[non_exhaustive]
pub struct ShownFinding {
    /// The name of the rule.
    pub rule: &'static str,
    /// `error`, `warning` or `note`.
    pub severity: &'static str,
    /// The position of the message in the view.
    pub index: u64,
    /// The problem.
    pub message: String,
    /// How rendering repairs it.
    pub repair: &'static str,
    /// The index of the message in the log.
    pub entry: u32,
}

/// A warning about a rendered request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct RenderWarning {
    /// A code of the contract, `placeholder`, `renamed_tool` or `changed_tool`.
    pub code: String,
    /// The log entries that the warning concerns.
    pub indices: Vec<u32>,
    /// Its meaning.
    pub message: String,
}

impl ProviderView {
    /// The view at a version.
    pub async fn at(
        conversation: &Conversation,
        version: Version,
    ) -> Result<ProviderView, recto::Error> {
        let entries = conversation.messages_to_send(version).await?;
        let tools = conversation.tools_at(version).await?;
        let invalid_thinking = conversation.invalid_thinking(version, &entries).await?;
        Ok(ProviderView { version, entries, tools, invalid_thinking })
    }

    /// The view after an edit of this one that is not stored.
    pub fn edited(&self, version: Version, entries: Vec<Entry>, tools: Vec<Tool>) -> ProviderView {
        let is_same = |(old, new): &(&Entry, &Entry)| old.index == new.index;
        let unchanged = self.entries.iter().zip(&entries).take_while(is_same).count();
        let before = self.invalid_thinking.iter().copied().filter(|&position| position < unchanged);
        let invalid_thinking = before.chain(unchanged..entries.len()).collect();
        ProviderView { version, entries, tools, invalid_thinking }
    }

    /// The messages in order.
    pub fn messages(&self) -> impl DoubleEndedIterator<Item = &Message> {
        self.entries.iter().map(|entry| &entry.message)
    }

    /// The request for a provider. It has a field with the model, except for Gemini and Bedrock, where the model is
    /// part of the URL.
    pub fn render(
        &self,
        to: Recipient<'_>,
        fields: &[(&str, &str)],
    ) -> Result<Rendered, recto_format::Error> {
        let Recipient { target, model, .. } = to;
        let is_in_url = matches!(target, Target::Gemini | Target::BedrockConverse);
        let named = model.filter(|_| !is_in_url);
        let named = named.map(|model| Value::from(model).to_string());
        let named = named.as_deref().map(|model| ("model", model));
        let fields: Vec<(&str, &str)> = named.into_iter().chain(fields.iter().copied()).collect();
        let options = RenderOptions { fields: &fields, ..self.options(to) };
        recto_format::render(self.messages(), target, &options)
    }

    /// Finds what the provider would reject in a request with these other fields. Some rules
    /// apply only with certain fields, such as `thinking`.
    pub fn lint(&self, to: Recipient<'_>, fields: &[(&str, &str)]) -> Vec<Finding> {
        let options = RenderOptions { fields, ..self.options(to) };
        recto_format::lint(self.messages(), to.target, &options)
    }

    /// The options of rendering for a recipient, without fields.
    pub fn options<'a>(&'a self, to: Recipient<'a>) -> RenderOptions<'a> {
        RenderOptions {
            model: to.model,
            tools: &self.tools,
            invalid_thinking: &self.invalid_thinking,
            api_version: to.api_version,
            ..RenderOptions::default()
        }
    }

    /// The provider that the messages come from, else [`DEFAULT_TARGET`].
    pub fn likely_target(&self) -> Target {
        self.target().unwrap_or(DEFAULT_TARGET)
    }

    /// The provider that the newest message with a known origin comes from.
    pub fn target(&self) -> Option<Target> {
        self.messages().rev().find_map(target_of)
    }

    /// The model that wrote the newest message with a known model.
    pub fn likely_model(&self) -> Option<String> {
        self.messages().rev().find_map(|message| {
            let model = MessageParts::of(message).source?.model?;
            Some(model.text().into_owned())
        })
    }

    /// Converts a finding to one with the position in the view and the log index of its message. Both can
    /// differ from [`Finding::index`], which counts only the messages that are sent.
    pub fn finding(&self, finding: &Finding) -> ShownFinding {
        let entry = self.entries.get(finding.index);
        let position = entry.and_then(|entry| entry.position);
        ShownFinding {
            rule: finding.rule.name,
            severity: finding.rule.severity.as_str(),
            index: position.map_or(finding.index, |position| position.0) as u64,
            message: finding.message.clone(),
            repair: finding.rule.repair,
            entry: entry.map_or(u32::MAX, |entry| entry.index.0),
        }
    }

    /// Converts each finding with [`finding`](Self::finding).
    pub fn findings(&self, findings: &[Finding]) -> Vec<ShownFinding> {
        findings.iter().map(|finding| self.finding(finding)).collect()
    }

    /// The warning about messages that were erased or pruned, if there are any.
    pub fn placeholder_warning(&self) -> Option<RenderWarning> {
        let gone = self.entries.iter().filter(|entry| entry.message.is_placeholder());
        let indices: Vec<u32> = gone.map(|entry| entry.index.0).collect();
        (!indices.is_empty()).then(|| RenderWarning {
            code: "placeholder".to_owned(),
            indices,
            message:
                "these messages were erased or pruned, so the model reads a placeholder instead"
                    .to_owned(),
        })
    }

    /// The warnings about a rendered request: those of the view, then about placeholders, then the tools that
    /// have another name or another schema in the request.
    pub fn render_warnings(&self, of_view: &[Warning], rendered: &Rendered) -> Vec<RenderWarning> {
        let of_view = of_view.iter().map(|warning| RenderWarning {
            code: code_of(warning),
            indices: warning.indices.iter().map(|index| index.0).collect(),
            message: warning.message.clone(),
        });
        let about_tool = |code: &str, message: String| RenderWarning {
            code: code.to_owned(),
            indices: Vec::new(),
            message,
        };
        let renamed = rendered.renamed_tools.iter().map(|tool| {
            let (name, written) = (&tool.name, &tool.rendered_name);
            let message = format!("the tool {name:?} is called {written:?} in the request");
            about_tool("renamed_tool", message)
        });
        let changed = rendered.tool_findings.iter().map(|finding| {
            let ToolFinding { rule, tool, message, .. } = finding;
            let message = format!("the tool {tool:?}: {message}; {} [{}]", rule.repair, rule.name);
            about_tool("changed_tool", message)
        });
        of_view.chain(self.placeholder_warning()).chain(renamed).chain(changed).collect()
    }
}

/// The format that the newest message with a source was imported from, else Recto's own.
pub fn source_format<'m>(messages: impl DoubleEndedIterator<Item = &'m Message>) -> Format {
    let of = |message: &Message| {
        let format = MessageParts::of(message).source?.format?;
        Format::named(&format.text())
    };
    messages.rev().find_map(of).unwrap_or(Format::Recto)
}

fn target_of(message: &Message) -> Option<Target> {
    let source = MessageParts::of(message).source?;
    let format = source.format.map(|format| format.text());
    let provider = source.provider.map(|provider| provider.text());
    match (format.as_deref().unwrap_or(""), provider.as_deref().unwrap_or("")) {
        ("openai-responses" | "codex", _) => Some(Target::OpenAiResponses),
        ("openai-chat" | "chatgpt", _) | (_, "openai") => Some(Target::OpenAiChat),
        ("anthropic" | "claude-code", _) | (_, "anthropic") => Some(Target::Anthropic),
        ("gemini", _) | (_, "google") => Some(Target::Gemini),
        ("bedrock-converse", _) | (_, "bedrock") => Some(Target::BedrockConverse),
        _ => None,
    }
}

fn code_of(warning: &Warning) -> String {
    let code = serde_json::to_value(warning.code).ok();
    code.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned()
}
