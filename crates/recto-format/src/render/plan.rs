//! The planner: converts messages into turns that the provider accepts, and reports findings.
//!
//! Its phases are methods of [`Planner`]: pair calls and results; convert each message to blocks; check the
//! order of results; assign unique ids; merge turns; apply the provider's rules for the ends of turns.
//! Every decision depends only on earlier messages, except that results move to their call. Therefore an
//! append to the view only appends to the request, up to the first open call.

use std::collections::HashMap;
use std::rc::Rc;

use recto_core::Role;

use super::blocks::ConvertedParts;
use super::dialect::Dialect;
use super::exchange::Exchanges;
use super::ids::Ids;
use super::originals::{Original, Originals};
use super::rule::{self, Finding, Rule, RuleTrait};
use super::system::SystemPlace;
use super::turn::{Block, Call, Side, Turn};
use super::{NO_MESSAGE, RenderOptions, Target, bedrock_converse};
use crate::json::Str;
use crate::parts::{MessageParts, Part};

/// Placeholder for the text that a document requires beside it.
const DOCUMENT: &str = "[document]";

/// The turns to write, and the findings.
pub(crate) struct Plan<'a> {
    pub(crate) turns: Vec<Turn<'a>>,
    pub(crate) findings: Vec<Finding>,
    /// Index of the first block of the last turn that an append can change, because a call of the
    /// provider's server was omitted there and its result may still be appended.
    pub(crate) unstable_block: Option<usize>,
    /// True if the provider would reject the request with thinking enabled.
    pub(crate) disables_thinking: bool,
    /// The called tools, in escaped form, if the provider requires descriptions and there are none.
    pub(crate) undescribed_tools: Vec<String>,
    /// True if messages with calls need reasoning.
    pub(crate) calls_need_reasoning: bool,
}

impl<'a> Plan<'a> {
    pub(crate) fn of(
        messages: &'a [MessageParts<'a>],
        dialect: &'static Dialect,
        options: &RenderOptions<'_>,
        mut findings: Vec<Finding>,
    ) -> Plan<'a> {
        let mut originals = Originals::of(messages, dialect, options, &mut findings);
        let none = Originals::default();
        let converted = Planner::of(messages, dialect, options, findings.clone(), &none);
        originals.remove_affected(messages, &converted);
        if originals.is_empty() {
            return converted.finish();
        }
        drop(converted);
        loop {
            let planner = Planner::of(messages, dialect, options, findings.clone(), &originals);
            let Planner { refused_originals: refused, exchanges, .. } = &planner;
            if refused.is_empty() {
                return planner.finish();
            }
            let (refused, exchanges) = (refused.clone(), exchanges.clone());
            drop(planner);
            originals.remove_refused(messages, &refused, &exchanges, dialect);
        }
    }
}

impl<'a, 'o> Planner<'a, 'o> {
    /// Converts all messages except those of `originals`, which keep their bytes.
    fn of(
        messages: &'a [MessageParts<'a>],
        dialect: &'static Dialect,
        options: &'o RenderOptions<'o>,
        findings: Vec<Finding>,
        originals: &'o Originals<'a>,
    ) -> Planner<'a, 'o> {
        let mut planner = Planner {
            messages,
            dialect,
            options,
            originals,
            exchanges: Exchanges::default(),
            has_dialogue: false,
            turns: Vec::new(),
            findings,
            unstable_block: None,
            disables_thinking: false,
            undescribed_tools: Vec::new(),
            calls_need_reasoning: false,
            refused_originals: Vec::new(),
        };
        planner.exchanges = Exchanges::of(messages, |at| messages[at].role == Role::Assistant);
        for at in 0..messages.len() {
            planner.convert_message(at);
        }
        planner.check_order();
        planner.assign_unique_ids();
        if dialect.requires_alternation {
            planner.merge_turns();
        }
        match dialect.target {
            Target::Anthropic => planner.finish_anthropic(),
            Target::OpenAiResponses => planner.drop_dangling_reasoning(),
            Target::Gemini => planner.finish_gemini(),
            Target::BedrockConverse => planner.finish_bedrock(),
            Target::OpenAiChat => planner.add_reasoning(),
        }
        planner.findings.sort_by_key(|finding| finding.index);
        planner
    }
}

/// State of the conversion of one view.
pub(super) struct Planner<'a, 'o> {
    pub(super) messages: &'a [MessageParts<'a>],
    pub(super) dialect: &'static Dialect,
    pub(super) options: &'o RenderOptions<'o>,
    pub(super) originals: &'o Originals<'a>,
    pub(super) exchanges: Exchanges,
    /// True once there is a turn that is not the system's.
    pub(super) has_dialogue: bool,
    pub(super) turns: Vec<Turn<'a>>,
    pub(super) findings: Vec<Finding>,
    pub(super) unstable_block: Option<usize>,
    pub(super) disables_thinking: bool,
    pub(super) undescribed_tools: Vec<String>,
    pub(super) calls_need_reasoning: bool,
    /// Positions of messages that cannot keep their original bytes because of the messages around them.
    pub(super) refused_originals: Vec<usize>,
}

impl<'a> Planner<'a, '_> {
    fn finish(self) -> Plan<'a> {
        let Planner { turns, findings, unstable_block, disables_thinking, .. } = self;
        let (undescribed_tools, calls_need_reasoning) =
            (self.undescribed_tools, self.calls_need_reasoning);
        Plan {
            turns,
            findings,
            unstable_block,
            disables_thinking,
            undescribed_tools,
            calls_need_reasoning,
        }
    }

    /// Reports a violation by the message at position `at`.
    pub(super) fn report(&mut self, rule: &'static Rule, at: usize, message: impl Into<String>) {
        self.report_with(rule, at, None, message);
    }

    /// Reports a violation whose repair also changes the message at position `with`.
    pub(super) fn report_with(
        &mut self,
        rule: &'static Rule,
        at: usize,
        with: Option<usize>,
        message: impl Into<String>,
    ) {
        // A message that keeps its bytes is accepted as it is, except for thinking that was omitted from it.
        let is_omitted =
            |original: &Original<'_>| original.omits_thinking && rule.has(RuleTrait::OmitsThinking);
        let is_reported =
            rule.applies_to_kept_messages() || self.originals.at(at).is_none_or(is_omitted);
        if !is_reported {
            return;
        }
        debug_assert!(rule.targets.contains(&self.dialect.target), "{}", rule.name);
        self.findings.push(Finding { rule, index: at, message: message.into(), with });
    }

    pub(super) fn has_text(&self, text: Str<'_>) -> bool {
        self.dialect.accepts_empty_text || !text.is_blank()
    }

    /// Converts the message at position `at` into blocks and adds its turns.
    fn convert_message(&mut self, at: usize) {
        if let Some(original) = self.originals.starting_at(at) {
            return self.keep_original(at, Rc::clone(original));
        }
        if self.originals.contains(at) {
            return; // the first message of the original has all of it
        }
        let message = &self.messages[at];
        let side = match message.role {
            Role::System => Side::System,
            Role::Assistant => Side::Assistant,
            _ => Side::User,
        };
        let before = self.findings.len();
        let mut converted = ConvertedParts::default();
        for (number, part) in message.parts.iter().enumerate() {
            self.convert_part(side, (at, number), part, &mut converted);
        }
        let ConvertedParts { blocks, user_blocks } = converted;
        let has_blocks = !blocks.is_empty();
        if message.role == Role::Tool && has_blocks && self.findings.len() == before {
            self.report(&rule::RESULTS_HAVE_CALLS, at, "a message of a tool names no call");
        }
        let is_result = |part: &Part<'_>| matches!(part, Part::ToolResult { .. });
        let only_results = !message.parts.is_empty() && message.parts.iter().all(is_result);
        if !has_blocks && user_blocks.is_empty() && !only_results {
            self.report(&rule::HAS_CONTENT, at, "the message has no content left");
            if self.separates_answers(at) {
                let from = vec![at];
                self.turns.push(Turn { from, ..Turn::placeholder(NO_MESSAGE) });
                self.has_dialogue = true;
            }
            return;
        }
        let name = self.author_name(at, has_blocks);
        self.add_turn(side, blocks, name, at);
        self.add_turn(Side::User, user_blocks, None, at);
    }

    /// True if two messages of the assistant would meet without the message of the user at position `at`.
    fn separates_answers(&self, at: usize) -> bool {
        let is_answer = |turn: &Turn<'_>| turn.side == Side::Assistant && !turn.has_calls();
        let next = self.messages.get(at + 1);
        self.messages[at].role == Role::User
            && self.turns.last().is_some_and(is_answer)
            && next.is_some_and(|next| next.role == Role::Assistant)
    }

    /// Adds a turn that keeps its bytes. Its blocks are not written; they only name the calls of the turn.
    fn keep_original(&mut self, at: usize, original: Rc<Original<'a>>) {
        let mut converted = ConvertedParts::default();
        let mut side = Side::User;
        let from: Vec<usize> = (at..at + original.len).collect();
        for &at in &from {
            side = match self.messages[at].role {
                Role::System => Side::System,
                Role::Assistant => Side::Assistant,
                _ => side,
            };
            for (number, part) in self.messages[at].parts.iter().enumerate() {
                let before = converted.user_blocks.len();
                self.convert_part(side, (at, number), part, &mut converted);
                // The bytes contain all parts of the message, but not the results of its calls.
                if !matches!(part, Part::ToolUse { .. }) || side != Side::Assistant {
                    converted.user_blocks.truncate(before);
                }
            }
        }
        self.has_dialogue |= side != Side::System;
        let ConvertedParts { blocks, user_blocks } = converted;
        let (last, original) = (at + original.len - 1, Some(original));
        // An append can add or change the result of an open call.
        let is_open = |block: &Block<'_>| match block {
            Block::Call(call) => {
                call.result.from.is_none_or(|from| self.originals.is_unstable(from))
            }
            _ => false,
        };
        let is_unstable = blocks.iter().any(is_open);
        let (name, is_listed) = (None, false);
        self.turns.push(Turn { side, blocks, name, from, original, is_listed, is_unstable });
        self.add_turn(Side::User, user_blocks, None, last);
    }

    fn add_turn(
        &mut self,
        side: Side,
        mut blocks: Vec<Block<'a>>,
        name: Option<Str<'a>>,
        at: usize,
    ) {
        if blocks.is_empty() {
            return;
        }
        let is_text = |block: &Block<'_>| matches!(block, Block::Text { .. });
        if self.dialect.target == Target::BedrockConverse
            && !blocks.iter().any(is_text)
            && blocks.iter().any(bedrock_converse::is_document)
        {
            self.report(&rule::DOCUMENTS_HAVE_A_TEXT, at, "a document without a text beside it");
            blocks.insert(0, Block::text(DOCUMENT));
        }
        let (side, is_listed) = match side {
            Side::System => match self.place_of_system(at, &blocks) {
                SystemPlace::Field => (Side::System, false),
                SystemPlace::List => (Side::System, true),
                SystemPlace::User => (Side::User, false),
            },
            side => (side, false),
        };
        self.has_dialogue |= side != Side::System;
        let joins = |before: &Turn<'a>| {
            let is_next = before.from.last().is_some_and(|&last| last + 1 == at);
            let is_call = |block: &Block<'_>| matches!(block, Block::Call(_));
            // The bytes after an open call are not stable, so another call may join only such a turn.
            let was_open = |call: &Call<'_>| call.result.from.is_none_or(|from| from > at);
            is_next
                && before.original.is_none()
                && before.side == side
                && before.calls().any(was_open)
                && blocks.iter().all(is_call)
        };
        match self.turns.last_mut() {
            // Sessions store each of several parallel calls as a message of its own.
            Some(before) if name.is_none() && joins(before) => {
                before.blocks.extend(blocks);
                before.from.push(at);
            }
            _ => {
                // If a message of the user is appended, a listed system message becomes text of the user.
                let is_last = at + 1 == self.messages.len();
                let is_unstable = is_listed && is_last || self.originals.is_unstable(at);
                let (from, original) = (vec![at], None);
                self.turns.push(Turn {
                    side,
                    blocks,
                    name,
                    from,
                    original,
                    is_listed,
                    is_unstable,
                });
            }
        }
    }

    /// The name of the author, if the message has blocks and the provider supports it.
    fn author_name(&mut self, at: usize, has_blocks: bool) -> Option<Str<'a>> {
        let name = self.messages[at].name?;
        if self.messages[at].role == Role::Tool && !has_blocks {
            return None; // the name of a tool, which its call has too
        }
        if !self.dialect.supports_names || !has_blocks {
            self.report(&rule::SPEAKERS, at, "the name of an author is not supported here");
            return None;
        }
        let text = name.text();
        let is_rejected = |c: char| c.is_whitespace() || "<|\\/>".contains(c);
        if text.is_empty() || text.chars().count() > 64 || text.chars().any(is_rejected) {
            self.report(&rule::SPEAKERS, at, format!("{text:?} is not a valid name"));
            return None;
        }
        Some(name)
    }

    /// Reports results that do not directly follow their call.
    fn check_order(&mut self) {
        let messages = self.messages;
        let exchanges = std::mem::take(&mut self.exchanges);
        let call_message =
            |at: usize, number: usize| exchanges.call_of((at, number)).map(|it| it.0);
        // Position of a calling message → first position of its turn.
        let calling = self.turns.iter().filter(|turn| turn.has_calls());
        let turns: HashMap<usize, usize> =
            calling.flat_map(|turn| turn.from.iter().map(|&at| (at, turn.from[0]))).collect();
        let turn_of = |at: usize| turns.get(&at).copied().unwrap_or(at);
        // The turn whose results may come next: all messages after it have only its results.
        let mut calling_turn: Option<usize> = None;
        for (at, message) in messages.iter().enumerate() {
            let may_answer = matches!(message.role, Role::User | Role::Tool);
            let mut only_results = !message.parts.is_empty();
            for (number, part) in message.parts.iter().enumerate() {
                if !matches!(part, Part::ToolResult { .. }) {
                    only_results = false;
                    continue;
                }
                let Some(call) = call_message(at, number) else {
                    only_results = false;
                    continue;
                };
                if !(may_answer && only_results && calling_turn == Some(turn_of(call))) {
                    let message = "a result does not directly follow its call";
                    self.report_with(&rule::RESULTS_FOLLOW_CALLS, at, Some(call), message);
                    only_results = false;
                }
            }
            let calls = message.role == Role::Assistant
                && message.parts.iter().any(|part| matches!(part, Part::ToolUse { .. }));
            if calls {
                calling_turn = Some(turn_of(at));
            } else if !(only_results && may_answer) {
                calling_turn = None;
            }
        }
        self.exchanges = exchanges;
    }

    /// Makes the ids of calls unique. At Anthropic, imported messages of a later turn may use an id again.
    fn assign_unique_ids(&mut self) {
        let rules = &self.dialect.ids;
        let may_reuse = self.dialect.target == Target::Anthropic;
        let (messages, format) = (self.messages, self.dialect.target.format().name());
        let may_reuse_at = |at: usize| {
            may_reuse && messages[at].source.is_some_and(|source| source.is_from(format))
        };
        // Messages of the assistant belong to one turn if no result is written between them. A result that
        // keeps its bytes is written at its own position, and not directly after its call.
        let mut number = 0;
        let turn_of = |turn: &Turn<'_>| {
            let this = number;
            let is_open =
                turn.side == Side::Assistant && turn.calls().all(|call| call.result.is_original);
            number += usize::from(may_reuse && !is_open);
            this
        };
        let numbers: Vec<usize> = self.turns.iter().map(turn_of).collect();
        let mut of_turns: Vec<Ids<'a>> = Vec::new();
        of_turns.resize_with(number + 1, Ids::default);
        let mut of_all = Ids::default();
        // Ids in original bytes cannot change, so they are reserved.
        for (turn, &number) in self.turns.iter().zip(&numbers) {
            let is_kept = turn.original.is_some();
            for call in turn.calls().filter(|call| is_kept || call.result.is_original) {
                of_turns[number].reserve(call.id.clone());
                of_all.reserve(call.id.clone());
            }
        }
        let findings = &mut self.findings;
        for (turn, number) in self.turns.iter_mut().zip(numbers) {
            if turn.original.is_some() {
                continue;
            }
            let of_turn = &mut of_turns[number];
            for block in &mut turn.blocks {
                let Block::Call(call) = block else { continue };
                if call.result.is_original {
                    continue;
                }
                let (ids, others) = match may_reuse_at(call.at) {
                    true => (&mut *of_turn, &mut of_all),
                    false => (&mut of_all, &mut *of_turn),
                };
                let (id, is_other) = ids.assign(call.id.clone(), rules);
                others.reserve(id.clone());
                if is_other {
                    findings.push(Finding {
                        rule: &rule::UNIQUE_IDS,
                        index: call.at,
                        message: format!("the id \"{}\" is used more than once", call.id),
                        with: call.result.from,
                    });
                }
                call.id = id;
            }
        }
    }
}
