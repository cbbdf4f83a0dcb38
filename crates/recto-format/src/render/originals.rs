//! Messages of the view that are written with their original bytes.
//!
//! A message that was imported from the provider's own format, or that already has the provider's form,
//! is written unchanged: unknown fields, the order of fields and white space survive, and a provider's
//! prompt cache stays valid. Messages that a rule has to repair are the exception. [`Originals`] finds
//! the candidates and removes those that a finding affects; the planner converts the others.

use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;

use recto_core::Role;

use super::RenderOptions;
use super::dialect::Dialect;
use super::exchange::Exchanges;
use super::plan::Planner;
use super::refused::ImportedForm;
use super::rule::{self, Finding, Rule, RuleTrait};
use super::turn::Turn;
use crate::Format;
use crate::format::{anthropic, item_of};
use crate::json::{self, Str};
use crate::parts::{MessageParts, Part};
use crate::render::Target;
use crate::source::is_same_model;

/// Fields of a request that refer to messages stored at the provider.
const STORED_HISTORY: &[&str] = &["previous_response_id", "conversation"];

/// The bytes of one foreign message.
#[derive(Clone, Debug)]
pub(crate) struct Original<'a> {
    pub(crate) text: Cow<'a, str>,
    /// The field of the request that contains it, such as `system`; `None` for a message of the list.
    pub(crate) field: Option<Str<'a>>,
    /// Number of messages of the view that it became.
    pub(crate) len: usize,
    /// True if thinking of the message was omitted from the text.
    pub(crate) omits_thinking: bool,
    origin: Origin,
}

/// Reason why a message already has the provider's form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// It was imported from the provider's format.
    Imported,
    /// It has only texts.
    Plain,
    /// It has no source, and its calls have ids of the provider.
    Recognised,
}

impl<'a> Original<'a> {
    fn new(text: Cow<'a, str>, field: Option<Str<'a>>, len: usize, origin: Origin) -> Original<'a> {
        Original { text, field, len, omits_thinking: false, origin }
    }
}

/// The foreign messages of a view that can be written unchanged, by the position of their first message.
#[derive(Default)]
pub(super) struct Originals<'a> {
    starts: Vec<Option<Rc<Original<'a>>>>,
    /// For each message, the position of the first message of its original.
    group_of: Vec<Option<usize>>,
    /// For each message, true if it does not keep its bytes and an append can change that.
    unstable: Vec<bool>,
}

impl<'a> Originals<'a> {
    /// Finds the originals. Reports those whose form the provider rejects.
    pub(super) fn of(
        messages: &'a [MessageParts<'a>],
        dialect: &Dialect,
        options: &RenderOptions<'_>,
        findings: &mut Vec<Finding>,
    ) -> Originals<'a> {
        let codec = dialect.target.format().codec();
        let name = dialect.target.format().name();
        let mut originals = Originals {
            starts: vec![None; messages.len()],
            group_of: vec![None; messages.len()],
            unstable: vec![false; messages.len()],
        };
        let is_given = |field: Str<'_>| options.fields.iter().any(|(key, _)| field.is(key));
        let mut reasoning = None;
        let mut at = 0;
        while at < messages.len() {
            let source = messages[at].source.filter(|source| source.is_from(name));
            let (len, original) = match source {
                Some(source) => {
                    let len = group_len(&messages[at..]);
                    let pieces = &messages[at..at + len];
                    let text = codec.original(pieces).filter(|text| {
                        // A client can send messages with such metadata, so the original is compared.
                        let is_own = |it| codec.is_read_as(it, source.field, pieces);
                        let is_converted = source.original.is_some() || source.field.is_some();
                        !is_converted || is_own(text)
                    });
                    let text = text.filter(|_| !source.field.is_some_and(is_given));
                    let is_field = source.field.is_some();
                    // Without further fields it is a message, and not a response that contains one.
                    let is_message = source.original.is_none() && !messages[at].has_other_fields;
                    let text = match is_field || is_message {
                        true => text,
                        false => text.and_then(|text| request_message(text, dialect.target)),
                    };
                    let form = ImportedForm::at(messages, at, dialect.target, options);
                    let violation = text.as_ref().and_then(|it| form.violation(it));
                    let text = text.filter(|_| violation.is_none());
                    if let Some((rule, message)) = violation {
                        findings.push(Finding { rule, index: at, message, with: None });
                    }
                    let after = source.after.map(Str::escaped);
                    let text = text.filter(|_| after.is_none() || after == reasoning);
                    let field = source.field;
                    (len, text.map(|text| Original::new(text, field, len, Origin::Imported)))
                }
                None if is_by_claude(&messages[at]) && codec.is_unchanged(messages[at].json) => {
                    let text = Cow::Borrowed(messages[at].json);
                    (1, Some(Original::new(text, None, 1, Origin::Recognised)))
                }
                None if messages[at].is_plain()
                    && (has_form_of(&messages[at], dialect.target)
                        || codec.is_unchanged(messages[at].json)) =>
                {
                    let text = Cow::Borrowed(messages[at].json);
                    (1, Some(Original::new(text, None, 1, Origin::Plain)))
                }
                None => (1, None),
            };
            if let Some(original) = original {
                originals.group_of[at..at + len].fill(Some(at));
                originals.starts[at] = Some(Rc::new(original));
            }
            reasoning = reasoning_id(&messages[at]).or(reasoning);
            if messages[at].role != Role::Assistant {
                reasoning = None;
            }
            at += len;
        }
        originals.place_fields(messages, dialect.target);
        originals
    }

    /// Keeps originals in fields of the request only where they can be: a system field in front of all
    /// messages, and a string `input` as the only message of the list. Any other string `input` becomes a
    /// message of the user; any other system field is removed.
    fn place_fields(&mut self, messages: &[MessageParts<'a>], target: Target) {
        let list = target.format().codec().list_key();
        let in_field = |original: &Option<Rc<Original<'a>>>| {
            original.as_ref().is_some_and(|original| original.field.is_some())
        };
        let leading = self.starts.iter().take_while(|original| in_field(original)).count();
        for at in 0..messages.len() {
            let Some(original) = &mut self.starts[at] else { continue };
            let Some(field) = original.field else { continue };
            if field.is(list) {
                let original = Rc::make_mut(original);
                if messages.len() > at + 1 || leading != at + 1 {
                    original.text =
                        Cow::Owned(format!(r#"{{"role":"user","content":{}}}"#, original.text));
                    original.field = None;
                }
            } else if at > 0 {
                self.remove(at);
            }
        }
    }

    /// True if no message keeps its bytes, also after an append.
    pub(super) fn is_empty(&self) -> bool {
        self.starts.iter().all(Option::is_none) && !self.unstable.contains(&true)
    }

    /// The original whose first message is at this position.
    pub(super) fn starting_at(&self, at: usize) -> Option<&Rc<Original<'a>>> {
        self.starts.get(at)?.as_ref()
    }

    /// The original that contains the message at this position.
    pub(super) fn at(&self, at: usize) -> Option<&Original<'a>> {
        self.starting_at(self.group_of.get(at).copied().flatten()?).map(Rc::as_ref)
    }

    /// True if the message at this position is written with its original bytes.
    pub(super) fn contains(&self, at: usize) -> bool {
        self.group_of.get(at).is_some_and(Option::is_some)
    }

    /// True if an append can change whether the message at this position keeps its bytes.
    pub(super) fn is_unstable(&self, at: usize) -> bool {
        self.unstable.get(at).copied().unwrap_or_default()
    }

    /// Removes the messages that a finding affects, and the other messages of their tool exchanges.
    pub(super) fn remove_affected(
        &mut self,
        messages: &[MessageParts<'a>],
        planned: &Planner<'a, '_>,
    ) {
        let Planner { findings, exchanges, turns, options, dialect, .. } = planned;
        let mut without_thinking = Vec::new();
        for finding in findings {
            // A call keeps its bytes if its result is moved.
            let with = finding.with.filter(|_| *finding.rule != rule::RESULTS_FOLLOW_CALLS);
            for at in [Some(finding.index), with].into_iter().flatten() {
                let Some(start) = self.group_of.get(at).copied().flatten() else { continue };
                let Some(original) = &self.starts[start] else { continue };
                let applies_to_kept = finding.rule.applies_to_kept_messages();
                let is_accepted = match original.origin {
                    Origin::Plain => !finding.rule.has(RuleTrait::AboutTexts),
                    Origin::Recognised => applies_to_kept,
                    Origin::Imported => {
                        applies_to_kept
                            || finding.rule.has(RuleTrait::AcceptedIfImported)
                                && !ImportedForm::at(
                                    messages,
                                    finding.index,
                                    dialect.target,
                                    options,
                                )
                                .violates(finding.rule)
                            || is_accepted_here(finding.rule, messages, at, options)
                            || *finding.rule == rule::RESULTS_HAVE_CALLS
                                && self.has_earlier_call(messages, at)
                    }
                };
                match is_accepted {
                    true => {}
                    false if finding.rule.has(RuleTrait::OmitsThinking) => {
                        without_thinking.push(start)
                    }
                    false if *finding.rule == rule::STORED_ITEMS => {
                        self.remove_reasoning(messages, at);
                    }
                    false => self.remove_unstable(start, finding.rule.has(RuleTrait::CanEnd)),
                }
            }
        }
        for start in without_thinking {
            self.omit_thinking(start, dialect.target);
        }
        // In chat completions, parallel calls must be in one message. Anthropic and Google join
        // consecutive messages of one role.
        if dialect.target == Target::OpenAiChat {
            for turn in turns.iter().filter(|turn| turn.from.len() > 1 && turn.has_calls()) {
                for &at in &turn.from {
                    self.remove_unstable(at, true);
                }
            }
        }
        // The provider accepts audio of the model by its id only.
        let known = ["role", "content", "audio", "refusal", "name", "tool_calls", "annotations"];
        for (at, message) in messages.iter().enumerate() {
            let has_audio = |part: &Part<'_>| match part {
                Part::Other { kind, json } if kind.is("openai_audio") => {
                    let mut fields = json::get(json, "audio").into_iter().flat_map(json::fields);
                    fields.any(|(key, _)| !key.is("id"))
                        || self.at(at).is_none_or(|it| !json::Object::of(&it.text).has_only(&known))
                }
                _ => false,
            };
            if message.parts.iter().any(has_audio) {
                self.remove(at);
            }
        }
        // An item of a built-in tool needs the result of the same type.
        for call in turns.iter().flat_map(Turn::calls).filter(|call| call.extra.item.is_none()) {
            if messages[call.at].parts.iter().any(|part| item_of(part).is_some()) {
                self.remove_unstable(call.at, false);
            }
        }
        while self.remove_partners(messages, exchanges, dialect) {}
    }

    /// Omits the thinking of an original. Its other bytes stay at Anthropic, if another block is left.
    /// Otherwise the original is removed.
    fn omit_thinking(&mut self, start: usize, target: Target) {
        let Some(original) = &mut self.starts[start] else { return };
        let text = match target {
            Target::Anthropic => super::anthropic::without_thinking(&original.text),
            _ => None,
        };
        match text {
            Some(text) => {
                let original = Rc::make_mut(original);
                (original.text, original.omits_thinking) = (Cow::Owned(text), true);
            }
            None => self.remove(start),
        }
    }

    /// True if, for every result in the message at position `at`, an earlier item has its call id: calls of
    /// some built-in tools are parts that only the provider understands.
    fn has_earlier_call(&self, messages: &[MessageParts<'_>], at: usize) -> bool {
        let results = messages[at].parts.iter().filter_map(|part| match part {
            Part::ToolResult { id, .. } => Some(id.escaped()),
            _ => None,
        });
        let is_call = |id: &str, before: usize| {
            messages[before].parts.iter().any(|part| match part {
                // The item may be the call.
                Part::Other { kind, .. } if kind.is("item_reference") => self.contains(before),
                Part::Other { json, .. } => {
                    json::get_str(json, "call_id").is_some_and(|call| call.escaped() == id)
                }
                _ => false,
            })
        };
        results.into_iter().all(|id| (0..at).any(|before| is_call(id, before)))
    }

    /// Removes the originals that are not accepted because of the messages around them.
    pub(super) fn remove_refused(
        &mut self,
        messages: &[MessageParts<'a>],
        refused: &[usize],
        exchanges: &Exchanges,
        dialect: &Dialect,
    ) {
        for &at in refused {
            self.remove_reasoning(messages, at);
        }
        while self.remove_partners(messages, exchanges, dialect) {}
    }

    /// Removes an item, and the items of the model that the provider accepts only after it.
    fn remove_reasoning(&mut self, messages: &[MessageParts<'a>], at: usize) {
        let id = reasoning_id(&messages[at]);
        self.remove(at);
        let is_turn = |(_, message): &(usize, &MessageParts<'a>)| message.role == Role::Assistant;
        let turn = messages.iter().enumerate().skip(at).take_while(is_turn);
        for (next, message) in turn {
            let after = message.source.and_then(|source| source.after).map(Str::escaped);
            if after.is_some() && after == id {
                self.remove(next);
            }
        }
    }

    /// Removes the results that cannot keep their bytes because of their calls or of the results beside
    /// them, and the calls without a source whose results are converted. Returns true if one was removed.
    fn remove_partners(
        &mut self,
        messages: &[MessageParts<'a>],
        exchanges: &Exchanges,
        dialect: &Dialect,
    ) -> bool {
        let mut has_removed = false;
        // Positions of messages with a call whose result is converted. The value is true if an append can
        // change that.
        let mut converted = HashMap::new();
        for (at, number, id) in results(messages) {
            let Some((call, _)) = exchanges.call_of((at, number)) else { continue };
            if self.contains(at) && !self.contains(call) && !self.keeps_reference(at, id, dialect) {
                self.remove_unstable(at, self.is_unstable(at) || self.is_unstable(call));
                has_removed = true;
            }
            if !self.contains(at) {
                // Without a source, a call only happens to have the provider's form. It may be one of several
                // parallel calls in separate messages, which are merged.
                if messages[call].source.is_none() && self.contains(call) {
                    self.remove_unstable(call, self.is_unstable(at) || self.is_unstable(call));
                    has_removed = true;
                }
                *converted.entry(call).or_default() |= self.is_unstable(at);
            }
        }
        // If roles must alternate, the results for the calls of one message are in one message.
        if dialect.requires_alternation && !converted.is_empty() {
            for (at, number, _) in results(messages) {
                let Some((call, _)) = exchanges.call_of((at, number)) else { continue };
                if let Some(&is_unstable) = converted.get(&call).filter(|_| self.contains(at)) {
                    self.remove_unstable(at, is_unstable);
                    has_removed = true;
                }
            }
        }
        has_removed
    }

    /// True if the result at position `at` refers to a converted call in the same way as its own bytes.
    fn keeps_reference(&self, at: usize, id: Str<'_>, dialect: &Dialect) -> bool {
        let Some(original) = self.at(at) else { return false };
        let is = |key: &str, value: &str| {
            json::get_str(&original.text, key).is_some_and(|it| it.is(value))
        };
        let has_form = match dialect.target {
            Target::OpenAiChat => is("role", "tool"),
            Target::OpenAiResponses => is("type", "function_call_output"),
            Target::Anthropic | Target::BedrockConverse => true,
            Target::Gemini => false, // the response also has the name of the call
        };
        has_form && dialect.ids.accepts(&id.text()) && original.text.contains(id.escaped())
    }

    fn remove_unstable(&mut self, at: usize, is_unstable: bool) {
        if let Some(start) = self.group_of[at]
            && let Some(original) = &self.starts[start]
            && is_unstable
        {
            let len = original.len;
            self.unstable[start..start + len].fill(true);
        }
        self.remove(at);
    }

    fn remove(&mut self, at: usize) {
        if let Some(start) = self.group_of[at]
            && let Some(original) = self.starts[start].take()
        {
            self.group_of[start..start + original.len].fill(None);
        }
    }
}

/// The results of the messages: the position of the message, the index of the part, and the id of the call.
fn results<'a>(messages: &[MessageParts<'a>]) -> impl Iterator<Item = (usize, usize, Str<'a>)> {
    messages.iter().enumerate().flat_map(|(at, message)| {
        message.parts.iter().enumerate().filter_map(move |(number, part)| match part {
            Part::ToolResult { id, .. } => Some((at, number, *id)),
            _ => None,
        })
    })
}

/// True if the request refers to messages that are stored at the provider.
pub(super) fn has_stored_history(options: &RenderOptions<'_>) -> bool {
    options.fields.iter().any(|(key, value)| {
        STORED_HISTORY.contains(key) && *value != "null"
            || *key == "thread" && anthropic::continues_thread(value)
    })
}

/// The calls and results of tools that the provider runs, in a message. For each: true if it is a call, and
/// the id of the call.
fn server_calls<'m>(
    message: &'m MessageParts<'_>,
) -> impl Iterator<Item = (bool, Option<Str<'m>>)> {
    message.parts.iter().filter_map(|part| match part {
        Part::Other { kind, json } if kind.escaped().ends_with("tool_use") => {
            Some((true, json::get_str(json, "id")))
        }
        Part::Other { kind, json } if kind.escaped().ends_with("_tool_result") => {
            Some((false, json::get_str(json, "tool_use_id")))
        }
        _ => None,
    })
}

/// True if the calls and results of tools that the provider runs are complete in the message at position
/// `at`, or if a missing result can follow: the message also has a call that the client answers, the result
/// is in a later message, or the message is the last one and the model continues it (`pause_turn`).
fn are_in_flight(messages: &[MessageParts<'_>], at: usize) -> bool {
    let message = &messages[at];
    let has = |messages: &[MessageParts<'_>], wanted: bool, id: Option<Str<'_>>| {
        let is_it = |(is_call, other): (bool, Option<Str<'_>>)| {
            is_call == wanted && other.map(Str::escaped) == id.map(Str::escaped)
        };
        messages.iter().flat_map(server_calls).any(is_it)
    };
    let is_client_call = |part: &Part<'_>| matches!(part, Part::ToolUse { .. });
    let is_answered_here = message.parts.iter().any(is_client_call);
    let is_last = at + 1 == messages.len();
    let count =
        |wanted: bool| server_calls(message).filter(|(is_call, _)| *is_call == wanted).count();
    // A result may be of a kind that is not known here.
    let is_whole = count(true) > 0 && count(true) == count(false);
    is_whole
        || server_calls(message).all(|(is_call, id)| match is_call {
            true => is_answered_here || is_last || has(&messages[at..], false, id),
            false => has(&messages[..=at], true, id),
        })
}

/// True if the provider accepts an imported message that violates this rule. Covers the rules whose
/// violation is accepted only in some messages.
fn is_accepted_here(
    rule: &Rule,
    messages: &[MessageParts<'_>],
    at: usize,
    options: &RenderOptions<'_>,
) -> bool {
    let source = messages[at].source;
    if *rule == rule::THINKING_FOR_ITS_MAKER {
        // Without a model, the message comes from a request that its own model accepted.
        let model = source.and_then(|source| source.model).zip(options.model);
        return model.is_none_or(|(made_by, model)| is_same_model(&made_by.text(), model));
    }
    if *rule == rule::SERVER_CALLS_ARE_WHOLE {
        return are_in_flight(messages, at);
    }
    // The call may be stored at the provider. Without the fields of the request, it is unknown whether the
    // request refers to stored messages.
    let is_tools = |(key, _): &(&str, &str)| ["tools", "functions"].contains(key);
    let may_be_stored =
        options.fields.iter().all(is_tools) && source.is_some_and(|source| source.has_stored_call);
    *rule == rule::RESULTS_HAVE_CALLS && (has_stored_history(options) || may_be_stored)
}

/// The message as a request contains it. `text` is the imported message, or the response of a model that
/// contains the message.
fn request_message(text: Cow<'_, str>, target: Target) -> Option<Cow<'_, str>> {
    let fields = json::Object::of(&text);
    let inner = match target {
        Target::Anthropic if fields.has_only(&["role", "content"]) => return Some(text),
        // Only requests have system messages. They may have further fields: `output_config`, `clear_at`.
        Target::Anthropic if fields.get_str("role").is_some_and(|it| it.is("system")) => {
            return Some(text);
        }
        Target::Anthropic => {
            let content = fields.get("content").filter(|_| fields.get("stop_reason").is_some())?;
            let message = format!(r#"{{"role":"assistant","content":{content}}}"#);
            return Some(Cow::Owned(message));
        }
        Target::BedrockConverse if fields.has_only(&["role", "content"]) => return Some(text),
        Target::BedrockConverse => json::get(fields.get("output")?, "message")?,
        Target::OpenAiChat if fields.get("role").is_some() => return Some(text),
        Target::OpenAiChat => json::get(json::items(fields.get("choices")?).next()?, "message")?,
        Target::OpenAiResponses | Target::Gemini => return Some(text),
    };
    Some(Cow::Owned(inner.to_owned()))
}

/// True if a plain message is known to have the form of the provider, without reading it again.
fn has_form_of(message: &MessageParts<'_>, target: Target) -> bool {
    let is_filled =
        |part: &Part<'_>| matches!(part, Part::Text { text, .. } if !text.escaped().is_empty());
    let targets = [Target::OpenAiChat, Target::OpenAiResponses, Target::Anthropic];
    message.is_string
        && message.parts.iter().all(is_filled)
        && matches!(message.role, Role::User | Role::Assistant)
        && targets.contains(&target)
}

/// True for a message without a source whose calls have ids of Anthropic's models: it is in that format.
fn is_by_claude(message: &MessageParts<'_>) -> bool {
    let mut ids = message.parts.iter().filter_map(|part| match part {
        Part::ToolUse { id, .. } => Some(id.escaped()),
        _ => None,
    });
    let is_first = ids.next().is_some_and(|id| id.starts_with("toolu_"));
    let is_assistant = message.source.is_none() && message.role == Role::Assistant;
    is_assistant
        && is_first
        && ids.all(|id| id.starts_with("toolu_"))
        && message.parts.iter().all(has_fields_of_claude)
}

/// True if a part has only the fields of Anthropic's form: Recto's own form of the same part may differ.
fn has_fields_of_claude(part: &Part<'_>) -> bool {
    let known: &[&str] = match part {
        Part::Text { .. } => &["type", "text", "citations", "cache_control"],
        Part::Thinking { .. } => &["type", "thinking", "signature"],
        Part::ToolUse { .. } => &["type", "id", "name", "input", "cache_control", "caller"],
        Part::Media(_) | Part::ToolResult { .. } | Part::Other { .. } => return false,
    };
    let json = part.json();
    // A content that is a string is one text.
    Str::of(json).is_some() || json::fields(json).all(|(key, _)| known.contains(&key.escaped()))
}

/// The id of a reasoning item of OpenAI's Responses.
fn reasoning_id<'a>(message: &MessageParts<'a>) -> Option<&'a str> {
    match message.parts[..] {
        [Part::Other { kind, json }] if kind.is("reasoning") => {
            json::get_str(json, "id").map(Str::escaped)
        }
        _ => None,
    }
}

/// Number of consecutive messages that are the pieces of one foreign message, in order.
fn group_len(messages: &[MessageParts<'_>]) -> usize {
    let Some(first) = messages[0].source else { return 1 };
    let Some(hash) = first.original_hash.map(Str::escaped) else { return 1 };
    let is_next = |(number, message): &(usize, &MessageParts<'_>)| {
        message.source.is_some_and(|source| {
            source.original_hash.map(Str::escaped) == Some(hash) && source.piece == *number
        })
    };
    messages.iter().enumerate().take_while(is_next).count().max(1)
}

impl Target {
    /// The format of the provider's own messages.
    pub(crate) fn format(self) -> Format {
        match self {
            Target::OpenAiChat => Format::OpenAiChat,
            Target::OpenAiResponses => Format::OpenAiResponses,
            Target::Anthropic => Format::Anthropic,
            Target::Gemini => Format::Gemini,
            Target::BedrockConverse => Format::BedrockConverse,
        }
    }
}
