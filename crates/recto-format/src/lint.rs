//! Lint and fix: the repairs that rendering would make, and the operations that make them in the view.
//!
//! [`lint`] returns the findings of rendering without rendering. [`fix`] converts the repairs into
//! operations: afterwards the view contains what would be rendered, and lint finds only notes. Nothing is
//! lost, because the original messages stay in the log and an UNDO restores the view.

use std::collections::HashSet;

use recto_core::{Delete, Insert, Limits, LogIndex, Message, Position, Request, Step};

use crate::json::{self, Str};
use crate::media;
use crate::render::{
    Block, Call, CallResult, Extra, Finding, Plan, RenderOptions, RenderedTools, ResultContent,
    RuleTrait, SanitizedMessages, Severity, Side, Target, Turn, context, detail,
};
use crate::source::Source;
use crate::{Error, MessageParts};

/// The rules that a view violates for a target, in the order of its messages.
///
/// ```
/// use recto_core::Message;
/// use recto_format::{RenderOptions, Target, lint};
///
/// let view = [Message::user("Hi"), Message::tool_result("c9", "lost")];
/// let findings = lint(&view, Target::OpenAiChat, &RenderOptions::default());
/// assert_eq!(
///     findings[0].to_string(),
///     "error at 1: there is no call \"c9\" before its result; \
///      its content is kept as text from the user [results_have_calls]"
/// );
/// ```
pub fn lint<'m>(
    messages: impl IntoIterator<Item = &'m Message>,
    target: Target,
    options: &RenderOptions<'_>,
) -> Vec<Finding> {
    let sanitized = SanitizedMessages::of(messages);
    let parts = sanitized.parts();
    // Lint is about messages: only `render` reports invalid tools.
    let tools = RenderedTools::of(options.tools, target.dialect()).unwrap_or_default();
    let options = &RenderOptions { fields: &tools.fields(options), ..*options };
    Plan::of(&parts, target.dialect(), options, sanitized.findings()).findings
}

/// The request after which [`lint`] finds only notes for a target; `None` if it finds only notes already.
/// If it finds only notes, the provider receives all content of the view.
///
/// `entries` are the entries of a view, in order. The repairs are one request: one version, one UNDO. The
/// engine rejects the request if it would change a pinned entry.
///
/// ```
/// use recto_core::{Approx, Conversation, Message, Settings};
/// use recto_format::{RenderOptions, Target, fix, lint};
///
/// let start = Conversation::new(Settings::counting_with(Approx), 0)?;
/// let (conversation, _) = start.append([
///     Message::user("Which flight?"),
///     Message::tool_call("c1", "search", &serde_json::json!({"to": "LIS"})),
///     Message::user("Never mind."),
/// ], 1)?;
/// let entries = conversation.entries().map(|entry| (entry.index, entry.message));
/// let request = fix(entries, Target::Anthropic, &RenderOptions::default())?.unwrap();
/// let (fixed, _) = conversation.apply(request, 2)?;
/// assert_eq!(fixed.view().len(), 4); // with a placeholder for the result of the call
/// assert!(lint(fixed.messages(), Target::Anthropic, &RenderOptions::default()).is_empty());
/// # Ok::<(), recto_format::Error>(())
/// ```
pub fn fix<'m>(
    entries: impl IntoIterator<Item = (LogIndex, &'m Message)>,
    target: Target,
    options: &RenderOptions<'_>,
) -> Result<Option<Request>, Error> {
    let (indices, messages): (Vec<LogIndex>, Vec<&Message>) = entries.into_iter().unzip();
    let sanitized = SanitizedMessages::of(messages.iter().copied());
    let parts = sanitized.parts();
    let tools = RenderedTools::of(options.tools, target.dialect())?;
    let options = &RenderOptions { fields: &tools.fields(options), ..*options };
    let plan = Plan::of(&parts, target.dialect(), options, sanitized.findings());
    if !plan.findings.iter().any(must_change) {
        return Ok(None);
    }
    let changed = changed(&plan);
    let writer = TurnWriter {
        parts: &parts,
        messages: &messages,
        provider: target.dialect().provider,
        model: options.model,
    };
    let mut kept = vec![false; messages.len()];
    let mut inserts: Vec<Insert> = Vec::new();
    let mut len = 0;
    for turn in &plan.turns {
        if !turn.from.is_empty() && !positions(turn).any(|at| changed.contains(&at)) {
            for at in positions(turn) {
                len += usize::from(!std::mem::replace(&mut kept[at], true));
            }
            continue;
        }
        // A message that keeps its bytes is not replaced. Only results of its calls are added or replaced.
        let made = match &turn.original {
            Some(original) if !original.omits_thinking => {
                for &at in &turn.from {
                    len += usize::from(!std::mem::replace(&mut kept[at], true));
                }
                Vec::from_iter(writer.results(turn)?)
            }
            _ => writer.messages(turn)?,
        };
        if made.is_empty() {
            continue;
        }
        let position = Position(len);
        len += made.len();
        match inserts.last_mut() {
            Some(Insert { position: before, messages })
                if before.0 + messages.len() == position.0 =>
            {
                messages.extend(made);
            }
            _ => inserts.push(Insert { position, messages: made }),
        }
    }
    let hidden: Vec<LogIndex> = kept
        .iter()
        .zip(&indices)
        .filter_map(|(&is_kept, &index)| (!is_kept).then_some(index))
        .collect();
    let reason = || format!("fixed for {target}");
    let mut steps: Vec<Step> = Vec::new();
    if !hidden.is_empty() {
        steps.push(Delete { indices: hidden }.reason(reason()));
    }
    steps.extend(inserts.into_iter().map(|insert| insert.reason(reason())));
    Ok(Some(Request { steps }))
}

/// True if the view has to be changed. A note loses nothing in rendering.
fn must_change(finding: &Finding) -> bool {
    finding.rule.severity > Severity::Note
}

/// Positions of the messages of a turn, including those of its results.
fn positions(turn: &Turn<'_>) -> impl Iterator<Item = usize> {
    let mut positions: Vec<usize> = turn.from.clone();
    positions.extend(turn.calls_with_converted_results().filter_map(|call| call.result.from));
    positions.sort_unstable();
    positions.into_iter()
}

/// Positions of the messages that have to be replaced: those that the repair of a warning or error changes,
/// and all that share a turn with one of them.
fn changed(plan: &Plan<'_>) -> HashSet<usize> {
    // A placeholder at an end is a separate message and changes no other.
    let change =
        |finding: &&Finding| must_change(finding) && !finding.rule.has(RuleTrait::KeepsMessages);
    let findings = plan.findings.iter().filter(change);
    let named = findings.flat_map(|finding| [Some(finding.index), finding.with]);
    let mut changed: HashSet<usize> = named.flatten().collect();
    loop {
        let before = changed.len();
        for turn in &plan.turns {
            if positions(turn).any(|at| changed.contains(&at)) {
                changed.extend(positions(turn));
            }
        }
        if changed.len() == before {
            return changed;
        }
    }
}

/// Writes turns as Recto messages.
struct TurnWriter<'a> {
    parts: &'a [MessageParts<'a>],
    messages: &'a [&'a Message],
    provider: &'static str,
    model: Option<&'a str>,
}

impl TurnWriter<'_> {
    /// A message with the blocks of the turn and, if it has calls, a message with their results.
    fn messages(&self, turn: &Turn<'_>) -> Result<Vec<Message>, Error> {
        let mut out = String::from("{\"role\":\"");
        out.push_str(match turn.side {
            Side::System => "system",
            Side::User => "user",
            Side::Assistant => "assistant",
        });
        out.push_str("\",\"content\":");
        match &turn.blocks[..] {
            [Block::Text { text, extra }] if extra.is_empty() && !text.is_empty() => {
                push_quoted(text, &mut out);
            }
            blocks => list(blocks, &mut out),
        }
        if let Some(name) = turn.name {
            out.push_str(",\"name\":");
            json::push_str(name, &mut out);
        }
        if let Some(timestamp) = turn.from.first().and_then(|&at| self.messages[at].timestamp()) {
            out.push_str(&format!(",\"timestamp\":{timestamp}"));
        }
        self.write_source(&turn.blocks, false, &turn.from, &mut out);
        out.push('}');
        let mut made = vec![message(&out)?];
        made.extend(self.results(turn)?);
        Ok(made)
    }

    /// A message with those results of the turn's calls that are not in messages that keep their bytes.
    fn results(&self, turn: &Turn<'_>) -> Result<Option<Message>, Error> {
        let calls: Vec<&Call<'_>> = turn.calls_with_converted_results().collect();
        if calls.is_empty() {
            return Ok(None);
        }
        let mut out = String::from("{\"role\":\"tool\",\"content\":");
        for (number, call) in calls.iter().enumerate() {
            out.push(if number == 0 { '[' } else { ',' });
            result(call, &mut out);
        }
        out.push(']');
        let from: Vec<usize> = calls.iter().filter_map(|call| call.result.from).collect();
        let blocks = calls.iter().flat_map(|call| call.result.content.blocks());
        let has_items = calls.iter().any(|call| call.result.item.is_some());
        self.write_source(blocks, has_items, &from, &mut out);
        out.push('}');
        Ok(Some(message(&out)?))
    }

    /// Writes `metadata.source` if a block may be sent only to the model that produced it.
    fn write_source<'b, 'a: 'b>(
        &self,
        blocks: impl IntoIterator<Item = &'b Block<'a>>,
        has_items: bool,
        from: &[usize],
        out: &mut String,
    ) {
        let is_specific = |block: &Block<'_>| match block {
            Block::Thinking { .. } | Block::ProviderPart { .. } => true,
            Block::Text { extra, .. } | Block::Media { extra, .. } => extra.is_provider_specific(),
            Block::Call(call) => call.extra.is_provider_specific(),
            Block::Refusal(_) => false,
        };
        if !has_items && !blocks.into_iter().any(is_specific) {
            return;
        }
        let sources = from.iter().filter_map(|&at| self.parts[at].source);
        let mut sources = sources.filter(|source| source.is_made_by(self.provider, self.model));
        let Some(source) = sources.next() else { return };
        let Source { provider, model, .. } = source;
        out.push_str(",\"metadata\":{\"source\":");
        Source { provider, model, pieces: 1, ..Source::default() }.write(out);
        out.push('}');
    }
}

fn message(json: &str) -> Result<Message, Error> {
    Ok(Message::from_json_within(json, &Limits::NONE)?)
}

fn push_quoted(text: &str, out: &mut String) {
    json::push_str(Str::escaped_text(text), out);
}

fn list(blocks: &[Block<'_>], out: &mut String) {
    for (number, block) in blocks.iter().enumerate() {
        out.push(if number == 0 { '[' } else { ',' });
        part(block, out);
    }
    out.push(']');
}

fn part(block: &Block<'_>, out: &mut String) {
    match block {
        Block::Text { text, extra } => {
            out.push_str("{\"type\":\"text\",\"text\":");
            push_quoted(text, out);
            extras(extra, out);
            out.push('}');
        }
        Block::Refusal(text) => {
            out.push_str("{\"type\":\"refusal\",\"refusal\":");
            json::push_str(*text, out);
            out.push('}');
        }
        Block::Media { media: it, extra } => {
            let mut fields = String::new();
            if let Some(detail) = detail(it) {
                fields.push_str(",\"detail\":");
                push_quoted(detail, &mut fields);
            }
            if let Some(context) = context(it) {
                fields.push_str(",\"context\":");
                json::push_str(context, &mut fields);
            }
            extras(extra, &mut fields);
            media::write(it.kind, it.body, it.name, &fields, out);
        }
        Block::Thinking { text, signature } => {
            out.push_str("{\"type\":\"thinking\",\"text\":");
            json::push_str(*text, out);
            extras(&Extra { signature: *signature, ..Extra::default() }, out);
            out.push('}');
        }
        Block::ProviderPart { json, .. } => out.push_str(json),
        Block::Call(it) => call(it, out),
    }
}

fn extras(extra: &Extra<'_>, out: &mut String) {
    for (key, value) in [("signature", extra.signature), ("item_id", extra.item_id)] {
        if let Some(value) = value {
            out.push_str(&format!(",\"{key}\":"));
            json::push_str(value, out);
        }
    }
    for (key, value) in [
        ("citations", extra.citations),
        ("cache_control", extra.cache_control),
        ("item", extra.item),
    ] {
        if let Some(value) = value {
            out.push_str(&format!(",\"{key}\":{value}"));
        }
    }
}

fn call(call: &Call<'_>, out: &mut String) {
    out.push_str("{\"type\":\"tool_use\",\"id\":");
    push_quoted(&call.id, out);
    out.push_str(",\"name\":");
    push_quoted(&call.name, out);
    out.push_str(",\"input\":");
    out.push_str(&call.input);
    if call.is_custom {
        out.push_str(",\"kind\":\"custom\"");
    }
    extras(&call.extra, out);
    out.push('}');
}

fn result(call: &Call<'_>, out: &mut String) {
    let CallResult { content, is_error, cache_control, item, .. } = &call.result;
    out.push_str("{\"type\":\"tool_result\",\"tool_use_id\":");
    push_quoted(&call.id, out);
    out.push_str(",\"content\":");
    match content {
        ResultContent::String(text) => push_quoted(text, out),
        ResultContent::Blocks(blocks) => list(blocks, out),
    }
    if *is_error {
        out.push_str(",\"is_error\":true");
    }
    extras(&Extra { cache_control: *cache_control, item: *item, ..Extra::default() }, out);
    out.push('}');
}
