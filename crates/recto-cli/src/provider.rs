//! What a provider is sent of a view: its messages, and the tools of that time.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use recto::{Entry, Message, Tool, Version, Warning};
use recto_format::{Finding, Format, MessageParts, RenderOptions, Rendered, Target, ToolFinding};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::numbers::WhichVersion;
use crate::session::{Named, Session};

/// Which provider and model will read it.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Reader {
    /// The provider; unless told, the one that the messages come from, else anthropic
    #[arg(id = "provider", long = "for", value_name = "PROVIDER", value_parser = target_parser())]
    pub(crate) target: Option<Target>,

    /// The model: its prices count, and thinking of other models is left out
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
}

/// Reads the name of a provider.
pub(crate) fn target_parser() -> impl TypedValueParser<Value = Target> {
    PossibleValuesParser::new(Target::ALL.map(Target::name))
        .map(|name| Target::named(&name).expect("only targets are possible"))
}

/// Reads the name of a format.
pub(crate) fn format_parser() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(Format::ALL.iter().map(|format| format.name()))
        .map(|name| Format::named(&name).expect("only formats are possible"))
}

/// The provider that is meant where nothing says which.
pub(crate) const USUAL: Target = Target::Anthropic;

/// A view as it is sent.
#[derive(Clone)]
pub(crate) struct Sent {
    pub(crate) version: Version,
    pub(crate) entries: Vec<Entry>,
    pub(crate) tools: Vec<Tool>,
}

impl Sent {
    /// What the model reads, or read at a version.
    pub(crate) fn of(
        session: &Session,
        named: &Named,
        at: Option<WhichVersion>,
    ) -> Result<Sent, Failure> {
        let newest = named.talk.version()?;
        let version = at.unwrap_or(WhichVersion::Back(0)).from(newest)?;
        Ok(session.recto.wait(Sent::at(named.talk.inner(), version))?)
    }

    /// What the model read at a version.
    pub(crate) async fn at(
        talk: &recto::StoredConversation,
        version: Version,
    ) -> Result<Sent, recto::Error> {
        let entries = talk.messages_to_send(version).await?;
        let tools = talk.tools_at(version).await?;
        Ok(Sent { version, entries, tools })
    }

    pub(crate) fn messages(&self) -> impl DoubleEndedIterator<Item = &Message> {
        self.entries.iter().map(|entry| &entry.message)
    }

    /// The request that says it. The model is a field of it, but for Gemini, where it stands in the
    /// address.
    pub(crate) fn render(
        &self,
        target: Target,
        model: Option<&str>,
        fields: &[(&str, &str)],
    ) -> Result<Rendered, recto_format::Error> {
        let named = model.filter(|_| target != Target::Gemini);
        let named = named.map(|model| Value::from(model).to_string());
        let named = named.as_deref().map(|model| ("model", model));
        let fields: Vec<(&str, &str)> = named.into_iter().chain(fields.iter().copied()).collect();
        let options = RenderOptions { model, fields: &fields, tools: &self.tools };
        recto_format::render(self.messages(), target, &options)
    }

    /// What the provider would refuse in it.
    pub(crate) fn lint(&self, target: Target, model: Option<&str>) -> Vec<Finding> {
        let options = RenderOptions { model, tools: &self.tools, ..RenderOptions::default() };
        recto_format::lint(self.messages(), target, &options)
    }

    /// The provider that the messages come from; where they do not say it, a usual one.
    pub(crate) fn likely_target(&self) -> Target {
        self.target().unwrap_or(USUAL)
    }

    /// The provider that the newest message with a known origin comes from.
    pub(crate) fn target(&self) -> Option<Target> {
        self.messages().rev().find_map(target_of)
    }

    /// The model that spoke last.
    pub(crate) fn likely_model(&self) -> Option<String> {
        self.messages().rev().find_map(|message| {
            let model = MessageParts::of(message).source?.model?;
            Some(model.text().into_owned())
        })
    }

    /// A finding as JSON, with the number of its log entry.
    pub(crate) fn finding(&self, finding: &Finding) -> Value {
        let mut written = finding.to_json();
        if let Some(entry) = self.entries.get(finding.index) {
            written["entry"] = entry.index.0.into();
        }
        written
    }

    pub(crate) fn findings(&self, findings: &[Finding]) -> Vec<Value> {
        findings.iter().map(|finding| self.finding(finding)).collect()
    }
}

/// The format that the newest message with a source was imported from.
pub(crate) fn likely_format<'m>(messages: impl DoubleEndedIterator<Item = &'m Message>) -> Format {
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
        _ => None,
    }
}

/// What is to be known of a request beside its repairs: torn tool exchanges, and tools that it calls
/// or describes otherwise.
pub(crate) fn warnings(torn: &[Warning], rendered: &Rendered) -> Vec<Value> {
    let torn = torn.iter().map(|warning| json!(warning));
    let renamed = rendered.renamed_tools.iter().map(|tool| {
        let (name, written) = (&tool.name, &tool.written);
        let message = format!("the tool {name:?} is called {written:?} in the request");
        json!({ "code": "renamed_tool", "indices": [], "message": message })
    });
    let changed = rendered.tool_findings.iter().map(|finding| {
        let ToolFinding { rule, tool, message } = finding;
        let message = format!("the tool {tool:?}: {message}; {}: {}", rule.name, rule.repair);
        json!({ "code": "changed_tool", "indices": [], "message": message })
    });
    torn.chain(renamed).chain(changed).collect()
}
