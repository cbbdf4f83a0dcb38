//! Views for providers: whatever was done to a view, what is rendered of it is valid.
//!
//! ```text
//! messages ──► MessageParts ──► Plan (rules: turns, and findings) ──► a writer for the target
//! ```
//!
//! What always holds:
//!
//! - The same view gives the same bytes, and appending only appends: [`Rendered::stable`] bytes stay as
//!   they are, whatever is appended. That is everything up to the first call that still has no result,
//!   or to the end of the last message.
//! - Nothing is left out that the provider would take, and nothing is made up but marked placeholders:
//!   for a result that is missing ([`NO_RESULT`]), and for the last word of the user ([`NO_MESSAGE`]).
//! - Every repair is a [`Finding`] that names its [`Rule`].
//!
//! `rule.rs` lists the rules, `dialect.rs` what each provider takes and `models.rs` what single models do;
//! `plan.rs`, `answer.rs`, `ends.rs`, `citations.rs` and `cache_marks.rs` apply them, and each provider has a file that writes its requests.

mod answer;
mod anthropic;
mod cache_marks;
mod citations;
mod dialect;
mod ends;
mod exchange;
mod gemini;
mod ids;
mod models;
mod openai_chat;
mod openai_responses;
mod plan;
mod rule;
mod schema;
mod sides;
mod tools;
mod turn;

use std::borrow::Cow;
use std::fmt;

use recto_core::{Message, Tool};

use crate::Error;
use crate::json;
use crate::parts::MessageParts;

pub(crate) use rule::LAST_FROM_THE_USER;
pub use rule::{Finding, RULES, Rule, Severity};
pub use tools::{RenamedTool, ToolFinding};

pub(crate) use anthropic::context;
pub(crate) use openai_chat::detail;
pub(crate) use plan::Plan;
pub(crate) use tools::WrittenTools;
pub(crate) use turn::{Answer, AnswerContent, Block, Call, Extra, Side, Turn};

/// What stands for a result that is missing.
pub const NO_RESULT: &str = "[no result]";
/// What stands for a message of the user, where a model wants the user to speak last.
pub const NO_MESSAGE: &str = "[no message]";

/// Whom to render for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// OpenAI's chat completions, and the many servers that speak like it.
    OpenAiChat,
    /// OpenAI's responses.
    OpenAiResponses,
    /// Anthropic's messages.
    Anthropic,
    /// Google's Gemini.
    Gemini,
}

impl Target {
    /// Every target.
    pub const ALL: [Target; 4] =
        [Target::OpenAiChat, Target::OpenAiResponses, Target::Anthropic, Target::Gemini];

    /// The name, as it is written on command lines.
    pub fn name(self) -> &'static str {
        match self {
            Target::OpenAiChat => "openai-chat",
            Target::OpenAiResponses => "openai-responses",
            Target::Anthropic => "anthropic",
            Target::Gemini => "gemini",
        }
    }

    /// The target of that name.
    pub fn named(name: &str) -> Option<Target> {
        Target::ALL.into_iter().find(|target| target.name() == name)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How to render.
#[derive(Clone, Copy, Debug, Default)]
pub struct RenderOptions<'a> {
    /// The model that will read it: thinking of other models is left out, and what this one demands
    /// is heeded. Without it, the maker's provider decides. It is not written into the request; that is for [`fields`](Self::fields).
    pub model: Option<&'a str>,
    /// More fields of the request, with their JSON: `("max_tokens", "1024")`, and a string in quotes:
    /// `("model", "\"claude-sonnet-4-5\"")`. They come first, so that the messages stand at the end.
    /// What a provider demands beside the messages (Anthropic `model` and `max_tokens`, OpenAI `model`)
    /// is given here; a view has only messages.
    ///
    /// A value that is no JSON, and a field that is given twice or that rendering writes itself, is
    /// [`Error::InvalidField`].
    pub fields: &'a [(&'a str, &'a str)],
    /// The tools that the model may call, such as those of the conversation. They are described as
    /// the provider wants it, behind the fields; the schema of a tool's input is its `input_schema`,
    /// `inputSchema` or `parameters`. Two tools of one name, and a schema that is not one of an
    /// object, are [`Error::InvalidField`].
    pub tools: &'a [Tool],
}

/// A request for a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    /// The request, as JSON.
    pub body: String,
    /// What had to be repaired.
    pub findings: Vec<Finding>,
    /// How many bytes at the front stay as they are, whatever is appended to the view.
    pub stable: usize,
    /// The tools that are called otherwise in the request: the model will call them so.
    pub renamed_tools: Vec<RenamedTool>,
    /// What had to be repaired in the descriptions of tools.
    pub tool_findings: Vec<ToolFinding>,
}

/// Renders messages, such as those of a view, for a provider.
///
/// ```
/// use recto_core::{Message, Tool};
/// use recto_format::{RenderOptions, Target, render};
///
/// // An edit has cut the result away.
/// let view = [
///     Message::user("Which flight?"),
///     Message::tool_call("c1", "search", &serde_json::json!({"to": "LIS"})),
///     Message::user("Never mind."),
/// ];
/// let rendered = render(&view, Target::Anthropic, &RenderOptions::default())?;
/// assert_eq!(
///     rendered.body,
///     r#"{"messages":[{"role":"user","content":[{"type":"text","text":"Which flight?"}]},{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"search","input":{"to":"LIS"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"[no result]"},{"type":"text","text":"Never mind."}]}]}"#
/// );
/// assert_eq!(rendered.findings[0].rule.name, "answered_calls");
/// # Ok::<(), recto_format::Error>(())
/// ```
pub fn render<'m>(
    messages: impl IntoIterator<Item = &'m Message>,
    target: Target,
    options: &RenderOptions<'_>,
) -> Result<Rendered, Error> {
    let reading = Reading::of(messages);
    let parts = reading.parts();
    let tools = WrittenTools::of(options.tools, target.dialect())?;
    let fields = tools.fields(options);
    let options = &RenderOptions { fields: &fields, ..*options };
    let plan = Plan::of(&parts, target.dialect(), options, reading.findings());
    check_fields(options.fields, target, &plan)?;
    let mut body = Body::new(parts.iter().map(|message| message.json.len()).sum());
    body.fields(options.fields);
    match target {
        Target::OpenAiChat => openai_chat::write(&plan, &mut body),
        Target::OpenAiResponses => openai_responses::write(&plan, &mut body),
        Target::Anthropic => anthropic::write(&plan, &mut body),
        Target::Gemini => gemini::write(&plan, &mut body),
    }
    if !body.has_content {
        return Err(Error::NothingToSend { target: target.name() });
    }
    let stable = body.stable.unwrap_or(body.out.len());
    let (renamed_tools, tool_findings) = (tools.renamed, tools.findings);
    Ok(Rendered { body: body.out, findings: plan.findings, stable, renamed_tools, tool_findings })
}

/// Fields that would make the request invalid are refused.
fn check_fields(fields: &[(&str, &str)], target: Target, plan: &Plan<'_>) -> Result<(), Error> {
    let (messages, system): (&str, &[&str]) = match target {
        Target::OpenAiChat => ("messages", &[]),
        Target::OpenAiResponses => ("input", &[]),
        Target::Anthropic => ("messages", &["system"]),
        Target::Gemini => ("contents", &["systemInstruction", "system_instruction"]),
    };
    let has_system = plan.turns.iter().any(|turn| turn.side == Side::System);
    for (at, (key, value)) in fields.iter().enumerate() {
        let refused = |reason: String| {
            Err(Error::InvalidField { target: target.name(), field: (*key).to_owned(), reason })
        };
        if *key == messages || (has_system && system.contains(key)) {
            return refused("rendering writes it, from the messages of the view".into());
        }
        if fields[..at].iter().any(|(before, _)| before == key) {
            return refused("it is given twice".into());
        }
        if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(value) {
            return refused(format!("its value must be JSON, a string in quotes: {error}"));
        }
    }
    Ok(())
}

/// Messages as texts without halves of surrogate pairs, which no provider takes.
pub(crate) struct Reading<'m> {
    messages: Vec<(&'m Message, Cow<'m, str>)>,
}

impl<'m> Reading<'m> {
    pub(crate) fn of(messages: impl IntoIterator<Item = &'m Message>) -> Reading<'m> {
        let whole = |message: &'m Message| {
            // Only an escape can say half a pair.
            let text = match message.uses_minimal_escapes() {
                true => Cow::Borrowed(message.json()),
                false => whole_characters(message.json()),
            };
            (message, text)
        };
        Reading { messages: messages.into_iter().map(whole).collect() }
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
            message: "half of a surrogate pair".into(),
            with: None,
        };
        changed.map(|(index, _)| finding(index)).collect()
    }
}

fn whole_characters(text: &str) -> Cow<'_, str> {
    let halves = json::lone_surrogates(text);
    if halves.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut whole = String::with_capacity(text.len());
    let mut end = 0;
    for at in halves {
        whole.push_str(&text[end..at]);
        whole.push_str("\\ufffd");
        end = at + 6;
    }
    whole.push_str(&text[end..]);
    Cow::Owned(whole)
}

/// A request in the making.
struct Body {
    out: String,
    /// Where the first byte stands that an append may change.
    stable: Option<usize>,
    /// Whether there is anything to send.
    has_content: bool,
}

impl Body {
    fn new(len: usize) -> Body {
        let mut out = String::with_capacity(len + len / 4 + 256);
        out.push('{');
        Body { out, stable: None, has_content: false }
    }

    fn fields(&mut self, fields: &[(&str, &str)]) {
        for (key, value) in fields {
            json::push_string(key, &mut self.out);
            self.out.push(':');
            self.out.push_str(value);
            self.out.push(',');
        }
    }

    fn push(&mut self, text: &str) {
        self.out.push_str(text);
    }

    /// A string as it stands between quotes.
    fn quoted(&mut self, text: &str) {
        self.out.push('"');
        self.out.push_str(text);
        self.out.push('"');
    }

    /// Behind a call that has no answer yet, an append may change everything.
    fn called(&mut self, call: &Call<'_>) {
        if call.answer.from.is_none() {
            self.may_change();
        }
    }

    /// A block was written.
    fn said(&mut self, block: &Block<'_>) {
        if let Block::Call(call) = block {
            self.called(call);
        }
    }

    /// What comes from here on may be changed by an append.
    fn may_change(&mut self) {
        self.stable.get_or_insert(self.out.len());
    }
}
