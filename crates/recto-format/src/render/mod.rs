//! Rendering: converts a view into a request that its provider accepts.
//!
//! ```text
//! messages ──► MessageParts ──► Plan (turns and findings, by the rules) ──► writer of the target
//! ```
//!
//! Invariants:
//!
//! - The same view gives the same bytes, and an append to the view only appends to the request: the
//!   first [`Rendered::stable`] bytes never change. They end at the first byte that an append can change,
//!   such as the end of a call without a result, and at the latest at the end of the last message.
//! - Nothing is omitted that the provider accepts. Nothing is invented except what a rule requires: marked
//!   placeholders ([`NO_RESULT`], [`NO_MESSAGE`], those for media that the provider rejects, and the text
//!   beside a document), a signature or blank reasoning for a call, and tools without parameters.
//! - Every repair is a [`Finding`] that names its [`Rule`].
//!
//! `rule.rs` lists the rules, `dialect.rs` describes what each provider accepts, and `models.rs` what single
//! models require. `plan.rs`, `system.rs`, `blocks.rs`, `unread.rs`, `calls.rs`, `ends.rs`, `citations.rs`
//! and `cache_marks.rs` apply the rules for messages, `tools.rs` and `schema.rs` those for tools.
//! `originals.rs` finds the messages that keep their bytes, and `refused.rs` finds imported messages whose
//! form the provider rejects. One file per provider writes the request.

mod alternating;
mod anthropic;
mod bedrock_converse;
mod blocks;
mod cache_marks;
mod calls;
mod citations;
mod dialect;
mod ends;
mod exchange;
mod gemini;
mod ids;
mod models;
mod openai_chat;
mod openai_responses;
mod originals;
mod plan;
mod refused;
mod rule;
mod schema;
mod system;
mod tools;
mod turn;
mod unread;

use std::borrow::Cow;
use std::fmt;

use recto_core::{Message, Tool};

use crate::Error;
use crate::json;
use crate::parts::MessageParts;

pub use models::binds_thinking;
pub(crate) use rule::RuleTrait;
pub use rule::{Evidence, EvidenceKind, Finding, RULES, Rule, Severity};
pub use tools::{RenamedTool, ToolFinding};

pub(crate) use anthropic::context;
pub(crate) use openai_chat::{REASONING_DETAILS, detail, details};
pub(crate) use originals::Original;
pub(crate) use plan::Plan;
pub(crate) use tools::RenderedTools;
pub(crate) use turn::{Block, Call, CallResult, Extra, ResultContent, Side, Turn};

/// Placeholder for a missing result, and for the missing text of a result that is an error.
pub const NO_RESULT: &str = "[no result]";
/// Placeholder for a message of the user: for models that require one as the first or last message, for an
/// empty message between two messages of the assistant, and before a message of the assistant that starts
/// with thinking and that the provider would join to the one before it.
pub const NO_MESSAGE: &str = "[no message]";

/// The interface of a provider for which a view is rendered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Target {
    /// OpenAI's chat completions API, and the servers that are compatible with it.
    OpenAiChat,
    /// OpenAI's Responses API.
    OpenAiResponses,
    /// Anthropic's Messages API.
    Anthropic,
    /// Google's Gemini API.
    Gemini,
    /// Amazon Bedrock's Converse API.
    BedrockConverse,
}

impl Target {
    /// Every target.
    pub const ALL: [Target; 5] = [
        Target::OpenAiChat,
        Target::OpenAiResponses,
        Target::Anthropic,
        Target::Gemini,
        Target::BedrockConverse,
    ];

    /// Name of the target on command lines and in requests.
    pub fn name(self) -> &'static str {
        match self {
            Target::OpenAiChat => "openai-chat",
            Target::OpenAiResponses => "openai-responses",
            Target::Anthropic => "anthropic",
            Target::Gemini => "gemini",
            Target::BedrockConverse => "bedrock-converse",
        }
    }

    /// The target with this name.
    pub fn named(name: &str) -> Option<Target> {
        Target::ALL.into_iter().find(|target| target.name() == name)
    }

    /// The provider behind the interface, as in `metadata.source.provider`: `openai`, `anthropic`,
    /// `google` or `bedrock`.
    pub fn provider(self) -> &'static str {
        self.dialect().provider
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Options of [`render`]. Fields may be added: write `..RenderOptions::default()`.
#[derive(Clone, Copy, Debug, Default)]
pub struct RenderOptions<'a> {
    /// The model that receives the request. Thinking of other models is omitted, and requirements of
    /// this model are applied. Default: thinking of all models of the provider is kept. The model is
    /// not written to the request; [`fields`](Self::fields) is for that.
    pub model: Option<&'a str>,
    /// Further fields of the request and their values as JSON: `("max_tokens", "1024")`, a string with
    /// its quotes: `("model", "\"claude-sonnet-4-5\"")`. They are written in front of the messages.
    /// Fields that the provider requires (Anthropic: `model` and `max_tokens`; OpenAI: `model`) belong
    /// here, because a view contains only messages.
    ///
    /// [`Error::InvalidField`] if a value is not JSON, if a field is given twice, or if rendering
    /// writes the field itself.
    pub fields: &'a [(&'a str, &'a str)],
    /// The tools that the model may call, such as those of the conversation. They are written after
    /// the fields, in the form of the provider. The schema of a tool's input is its `input_schema`,
    /// `inputSchema` or `parameters`. A tool that was imported from a request to the same provider is
    /// written with its original bytes.
    ///
    /// [`Error::InvalidField`] if two tools have the same name, or if a schema does not describe an
    /// object.
    pub tools: &'a [Tool],
    /// Positions of messages whose thinking is invalid, because messages before them were edited after they
    /// were produced. Models that bind thinking to everything before it reject it: see
    /// [`binds_thinking`].
    pub invalid_thinking: &'a [usize],
    /// The version of the provider's API, such as `2026-10-21` in Anthropic's header
    /// `anthropic-version`. Requirements of this version are applied. Default: the oldest version that
    /// the provider supports.
    ///
    /// [`Error::InvalidField`] if the version rejects one of [`fields`](Self::fields).
    pub api_version: Option<&'a str>,
}

/// A request to a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rendered {
    /// The request, as JSON.
    pub body: String,
    /// The repairs of messages.
    pub findings: Vec<Finding>,
    /// Length in bytes of the stable prefix: these bytes do not change when the view is appended to.
    pub stable: usize,
    /// The tools that have another name in the request. The model calls them by that name.
    pub renamed_tools: Vec<RenamedTool>,
    /// The repairs of tool descriptions.
    pub tool_findings: Vec<ToolFinding>,
}

/// Renders messages, such as those of a view, as a request to a provider.
///
/// ```
/// use recto_core::{Message, Tool};
/// use recto_format::{RenderOptions, Target, render};
///
/// // An edit has removed the result of the call.
/// let view = [
///     Message::user("Which flight?"),
///     Message::tool_call("c1", "search", &serde_json::json!({"to": "LIS"})),
///     Message::user("Never mind."),
/// ];
/// let rendered = render(&view, Target::Anthropic, &RenderOptions::default())?;
/// assert_eq!(
///     rendered.body,
///     r#"{"messages":[{"role":"user","content":"Which flight?"},{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"search","input":{"to":"LIS"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"[no result]"}]},{"role":"user","content":"Never mind."}]}"#
/// );
/// assert_eq!(rendered.findings[0].rule.name, "answered_calls");
/// # Ok::<(), recto_format::Error>(())
/// ```
pub fn render<'m>(
    messages: impl IntoIterator<Item = &'m Message>,
    target: Target,
    options: &RenderOptions<'_>,
) -> Result<Rendered, Error> {
    let sanitized = SanitizedMessages::of(messages);
    let parts = sanitized.parts();
    let tools = RenderedTools::of(options.tools, target.dialect())?;
    let fields = tools.fields(options);
    let options = &RenderOptions { fields: &fields, ..*options };
    let plan = Plan::of(&parts, target.dialect(), options, sanitized.findings());
    check_fields(options.fields, options.api_version, target, &plan)?;
    let mut body = Body::new(parts.iter().map(|message| message.json.len()).sum());
    body.fields(options.fields, plan.disables_thinking);
    match target {
        Target::OpenAiChat => openai_chat::write(&plan, &mut body),
        Target::OpenAiResponses => openai_responses::write(&plan, &mut body),
        Target::Anthropic => anthropic::write(&plan, &mut body),
        Target::Gemini => gemini::write(&plan, &mut body),
        Target::BedrockConverse => bedrock_converse::write(&plan, &mut body),
    }
    // Only Responses accepts a request without a new message.
    let may_be_empty = target == Target::OpenAiResponses && originals::has_stored_history(options);
    if !body.has_content && !may_be_empty {
        return Err(Error::NothingToSend { target: target.name() });
    }
    let stable = body.stable.unwrap_or(body.out.len());
    let (renamed_tools, tool_findings) = (tools.renamed, tools.findings);
    Ok(Rendered { body: body.out, findings: plan.findings, stable, renamed_tools, tool_findings })
}

/// Rejects fields that would make the request invalid.
fn check_fields(
    fields: &[(&str, &str)],
    api_version: Option<&str>,
    target: Target,
    plan: &Plan<'_>,
) -> Result<(), Error> {
    let (messages, system): (&str, &[&str]) = match target {
        Target::OpenAiChat => ("messages", &[]),
        Target::OpenAiResponses => ("input", &[]),
        Target::Anthropic | Target::BedrockConverse => ("messages", &["system"]),
        Target::Gemini => ("contents", &["systemInstruction", "system_instruction"]),
    };
    let has_system = plan.turns.iter().any(|turn| turn.side == Side::System);
    for (at, (key, value)) in fields.iter().enumerate() {
        let refused = |reason: String| {
            Err(Error::InvalidField { target: target.name(), field: (*key).to_owned(), reason })
        };
        if *key == messages || (has_system && system.contains(key)) {
            return refused("rendering writes it from the messages of the view".into());
        }
        if let Some(version) = models::version_without(target, api_version, key) {
            return refused(format!("API version {version} and later reject it"));
        }
        if fields[..at].iter().any(|(before, _)| before == key) {
            return refused("it is given twice".into());
        }
        if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(value) {
            return refused(format!("its value must be JSON (a string needs quotes): {error}"));
        }
    }
    Ok(())
}

/// Messages without lone surrogates, which no provider accepts.
pub(crate) struct SanitizedMessages<'m> {
    messages: Vec<(&'m Message, Cow<'m, str>)>,
}

impl<'m> SanitizedMessages<'m> {
    pub(crate) fn of(messages: impl IntoIterator<Item = &'m Message>) -> SanitizedMessages<'m> {
        let sanitize = |message: &'m Message| {
            // A lone surrogate can only be written as an escape.
            let text = match message.uses_minimal_escapes() {
                true => Cow::Borrowed(message.json()),
                false => without_lone_surrogates(message.json()),
            };
            (message, text)
        };
        SanitizedMessages { messages: messages.into_iter().map(sanitize).collect() }
    }

    pub(crate) fn parts(&self) -> Vec<MessageParts<'_>> {
        self.messages
            .iter()
            .map(|(message, text)| MessageParts::of_json(message.role(), text))
            .collect()
    }

    pub(crate) fn findings(&self) -> Vec<Finding> {
        let is_changed = |text: &Cow<'_, str>| matches!(text, Cow::Owned(_));
        let changed = self.messages.iter().enumerate().filter(|(_, (_, text))| is_changed(text));
        let finding = |index| Finding {
            rule: &rule::WHOLE_CHARACTERS,
            index,
            message: "a lone surrogate".into(),
            with: None,
        };
        changed.map(|(index, _)| finding(index)).collect()
    }
}

fn without_lone_surrogates(text: &str) -> Cow<'_, str> {
    let surrogates = json::lone_surrogates(text);
    if surrogates.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut replaced = String::with_capacity(text.len());
    let mut end = 0;
    for at in surrogates {
        replaced.push_str(&text[end..at]);
        replaced.push_str("\\ufffd");
        end = at + 6;
    }
    replaced.push_str(&text[end..]);
    Cow::Owned(replaced)
}

/// The body of a request, while it is written.
struct Body {
    out: String,
    /// Offset of the first byte that an append to the view can change.
    stable: Option<usize>,
    /// True if the request contains a message.
    has_content: bool,
}

impl Body {
    fn new(len: usize) -> Body {
        let mut out = String::with_capacity(len + len / 4 + 256);
        out.push('{');
        Body { out, stable: None, has_content: false }
    }

    fn fields(&mut self, fields: &[(&str, &str)], disables_thinking: bool) {
        for (key, value) in fields {
            let is_disabled = disables_thinking && *key == "thinking";
            let value = if is_disabled { r#"{"type":"disabled"}"# } else { value };
            json::push_string(key, &mut self.out);
            self.out.push(':');
            self.out.push_str(value);
            self.out.push(',');
        }
    }

    /// Writes a field of the request with its original value.
    fn field(&mut self, original: &Original<'_>) {
        if let Some(field) = original.field {
            json::push_str(field, &mut self.out);
            self.out.push(':');
            self.out.push_str(&original.text);
        }
    }

    /// Writes the field for system texts with its original value, if there is no other system text. Returns
    /// true if it was written.
    fn system_field(&mut self, system: &[&Turn<'_>]) -> bool {
        if let [turn] = system
            && let Some(original) = &turn.original
        {
            self.field(original);
            self.push(",");
            return true;
        }
        false
    }

    fn push(&mut self, text: &str) {
        self.out.push_str(text);
    }

    /// Writes an escaped text as a string.
    fn quoted(&mut self, text: &str) {
        self.out.push('"');
        self.out.push_str(text);
        self.out.push('"');
    }

    /// Must be called after a tool call was written. If the call has no result, an append can change
    /// every byte after it.
    fn wrote_call(&mut self, call: &Call<'_>) {
        if call.result.from.is_none() {
            self.mark_unstable();
        }
    }

    /// Must be called after a block was written.
    fn wrote_block(&mut self, block: &Block<'_>) {
        if let Block::Call(call) = block {
            self.wrote_call(call);
        }
    }

    /// Ends the stable prefix here, unless it ended before.
    fn mark_unstable(&mut self) {
        self.stable.get_or_insert(self.out.len());
    }
}
