//! What a provider would refuse in a view, and the operations that put it right.
//!
//! [`lint`] is what rendering would repair, without rendering. [`fix`] turns those repairs into ordinary
//! operations: the view then says by itself what would be rendered of it, and lint has only notes. Nothing
//! is lost, since originals stay in the log, and an UNDO brings the view back.

use std::collections::HashSet;

use recto_core::{Delete, Insert, Limits, LogIndex, Message, Position, Request, Step};

use crate::json::{self, Str};
use crate::media;
use crate::render::{
    Answer, AnswerContent, Block, Call, Extra, Finding, LAST_FROM_THE_USER, Plan, Reading,
    RenderOptions, Severity, Side, Target, Turn, WrittenTools, context, detail,
};
use crate::source::Source;
use crate::{Error, MessageParts};

/// The rules that a view breaks for a target, in the order of its messages.
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
///      results_have_calls: its content is kept as text from the user"
/// );
/// ```
pub fn lint<'m>(
    messages: impl IntoIterator<Item = &'m Message>,
    target: Target,
    options: &RenderOptions<'_>,
) -> Vec<Finding> {
    let reading = Reading::of(messages);
    let parts = reading.parts();
    // Tools that cannot be described are for rendering to refuse.
    let tools = WrittenTools::of(options.tools, target.dialect()).unwrap_or_default();
    let options = &RenderOptions { fields: &tools.fields(options), ..*options };
    Plan::of(&parts, target.dialect(), options, reading.findings()).findings
}

/// The operations that make [`lint`] silent for a target, but for notes; `None` if it is so already.
/// Where there are only notes, the provider gets everything that the view says.
///
/// The entries are those of a view, in order. It is one request: one version, one UNDO. An entry that
/// is pinned and must change is refused by the engine, as every such change is.
///
/// ```
/// use recto_core::{Approx, Conversation, Message, Settings};
/// use recto_format::{RenderOptions, Target, fix, lint};
///
/// let start = Conversation::new(Settings::counting_with(Approx), 0)?;
/// let (talk, _) = start.append([
///     Message::user("Which flight?"),
///     Message::tool_call("c1", "search", &serde_json::json!({"to": "LIS"})),
///     Message::user("Never mind."),
/// ], 1)?;
/// let entries = talk.entries().map(|entry| (entry.index, entry.message));
/// let request = fix(entries, Target::Anthropic, &RenderOptions::default())?.unwrap();
/// let (fixed, _) = talk.apply(request, 2)?;
/// assert_eq!(fixed.view().len(), 4); // a placeholder answers the call
/// assert!(lint(fixed.messages(), Target::Anthropic, &RenderOptions::default()).is_empty());
/// # Ok::<(), recto_format::Error>(())
/// ```
pub fn fix<'m>(
    entries: impl IntoIterator<Item = (LogIndex, &'m Message)>,
    target: Target,
    options: &RenderOptions<'_>,
) -> Result<Option<Request>, Error> {
    let (indices, messages): (Vec<LogIndex>, Vec<&Message>) = entries.into_iter().unzip();
    let reading = Reading::of(messages.iter().copied());
    let parts = reading.parts();
    let tools = WrittenTools::of(options.tools, target.dialect())?;
    let options = &RenderOptions { fields: &tools.fields(options), ..*options };
    let plan = Plan::of(&parts, target.dialect(), options, reading.findings());
    if !plan.findings.iter().any(must_change) {
        return Ok(None);
    }
    let changed = changed(&plan);
    let writer = Writer {
        parts: &parts,
        messages: &messages,
        provider: target.dialect().provider,
        model: options.model,
    };
    let mut kept = vec![false; messages.len()];
    let mut inserts: Vec<Insert> = Vec::new();
    let mut len = 0;
    for turn in &plan.turns {
        if !turn.from.is_empty() && !from(turn).any(|at| changed.contains(&at)) {
            for at in from(turn) {
                len += usize::from(!std::mem::replace(&mut kept[at], true));
            }
            continue;
        }
        let made = writer.messages(turn)?;
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
    let why = || format!("fixed for {target}");
    let mut steps: Vec<Step> = Vec::new();
    if !hidden.is_empty() {
        steps.push(Delete { indices: hidden }.reason(why()));
    }
    steps.extend(inserts.into_iter().map(|insert| insert.reason(why())));
    Ok(Some(Request { steps }))
}

/// Whether the view has to say it otherwise. What is only noted loses nothing on its way to the
/// provider.
fn must_change(finding: &Finding) -> bool {
    finding.rule.severity > Severity::Note
}

/// The positions of the messages that are in a turn, those of its results included.
fn from(turn: &Turn<'_>) -> impl Iterator<Item = usize> {
    let mut from: Vec<usize> = turn.from.clone();
    from.extend(turn.calls().filter_map(|call| call.answer.from));
    from.sort_unstable();
    from.into_iter()
}

/// The positions whose messages cannot stay as they are: those of findings, and all that are in a
/// turn with one of them.
fn changed(plan: &Plan<'_>) -> HashSet<usize> {
    // A placeholder at the end changes no message.
    let change = |finding: &&Finding| must_change(finding) && *finding.rule != LAST_FROM_THE_USER;
    let findings = plan.findings.iter().filter(change);
    let named = findings.flat_map(|finding| [Some(finding.index), finding.with]);
    let mut changed: HashSet<usize> = named.flatten().collect();
    loop {
        let before = changed.len();
        for turn in &plan.turns {
            if from(turn).any(|at| changed.contains(&at)) {
                changed.extend(from(turn));
            }
        }
        if changed.len() == before {
            return changed;
        }
    }
}

/// Writes turns as Recto messages.
struct Writer<'a> {
    parts: &'a [MessageParts<'a>],
    messages: &'a [&'a Message],
    provider: &'static str,
    model: Option<&'a str>,
}

impl Writer<'_> {
    /// The turn as a message, and its results as one.
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
        if turn.has_calls() {
            let mut out = String::from("{\"role\":\"tool\",\"content\":");
            for (number, call) in turn.calls().enumerate() {
                out.push(if number == 0 { '[' } else { ',' });
                result(call, &mut out);
            }
            out.push(']');
            let from: Vec<usize> = turn.calls().filter_map(|call| call.answer.from).collect();
            let blocks = turn.calls().flat_map(|call| call.answer.content.blocks());
            let has_items = turn.calls().any(|call| call.answer.item.is_some());
            self.write_source(blocks, has_items, &from, &mut out);
            out.push('}');
            made.push(message(&out)?);
        }
        Ok(made)
    }

    /// Who made it, where something in it goes to its maker only.
    fn write_source<'b, 'a: 'b>(
        &self,
        blocks: impl IntoIterator<Item = &'b Block<'a>>,
        has_items: bool,
        from: &[usize],
        out: &mut String,
    ) {
        let is_makers = |block: &Block<'_>| match block {
            Block::Thinking { .. } | Block::Own { .. } => true,
            Block::Text { extra, .. } | Block::Media { extra, .. } => extra.is_makers(),
            Block::Call(call) => call.extra.is_makers(),
            Block::Refusal(_) => false,
        };
        if !has_items && !blocks.into_iter().any(is_makers) {
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
            let mut beside = String::new();
            if let Some(detail) = detail(it) {
                beside.push_str(",\"detail\":");
                push_quoted(detail, &mut beside);
            }
            if let Some(context) = context(it) {
                beside.push_str(",\"context\":");
                json::push_str(context, &mut beside);
            }
            extras(extra, &mut beside);
            media::write(it.kind, it.body, it.name, &beside, out);
        }
        Block::Thinking { text, signature } => {
            out.push_str("{\"type\":\"thinking\",\"text\":");
            json::push_str(*text, out);
            extras(&Extra { signature: *signature, ..Extra::default() }, out);
            out.push('}');
        }
        Block::Own { json, .. } => out.push_str(json),
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
    let Answer { content, is_error, cache_control, item, .. } = &call.answer;
    out.push_str("{\"type\":\"tool_result\",\"tool_use_id\":");
    push_quoted(&call.id, out);
    out.push_str(",\"content\":");
    match content {
        AnswerContent::String(text) => push_quoted(text, out),
        AnswerContent::Blocks(blocks) => list(blocks, out),
    }
    if *is_error {
        out.push_str(",\"is_error\":true");
    }
    extras(&Extra { cache_control: *cache_control, item: *item, ..Extra::default() }, out);
    out.push('}');
}
