//! From messages to turns that a provider takes: the rules at work.
//!
//! Phases, each a method: read the parts; find what the assistant said before anybody else; pair off
//! calls and results; say each message in blocks; give out ids; let the sides take turns; look at the
//! ends of turns. Everything depends only on what stands before it, but for results, which are moved
//! to their call: so appending only appends, up to the first call that is still open.

use std::borrow::Cow;
use std::collections::HashMap;

use recto_core::Role;

use super::answer::flat;
use super::dialect::{Dialect, Thinking, is_base64};
use super::ends::SKIP_SIGNATURE;
use super::exchange::{Exchanges, Place};
use super::ids::Ids;
use super::rule::{self, Finding, Rule};
use super::turn::{Block, Call, Extra, Side, Turn};
use super::{RenderOptions, Target, openai_responses};
use crate::format::item_of;
use crate::json::{self, Str};
use crate::media::{Media, MediaBody, MediaKind};
use crate::parts::{MessageParts, Part};

/// What is to be written, and what was repaired on the way.
pub(crate) struct Plan<'a> {
    pub(crate) turns: Vec<Turn<'a>>,
    pub(crate) findings: Vec<Finding>,
    /// From which block on the last turn may change when messages are appended, though it would not
    /// seem so.
    pub(crate) open: Option<usize>,
}

impl<'a> Plan<'a> {
    pub(crate) fn of(
        messages: &'a [MessageParts<'a>],
        dialect: &'static Dialect,
        options: &RenderOptions<'_>,
        findings: Vec<Finding>,
    ) -> Plan<'a> {
        let mut planner = Planner {
            messages,
            dialect,
            options,
            exchanges: Exchanges::default(),
            told: 0,
            is_behind: false,
            turns: Vec::new(),
            findings,
            open: None,
        };
        planner.told = planner.find_told();
        let told = planner.told;
        planner.exchanges =
            Exchanges::of(messages, |at| messages[at].role == Role::Assistant && at >= told);
        for at in 0..messages.len() {
            planner.say(at);
        }
        planner.check_order();
        planner.give_ids();
        if dialect.takes_turns {
            planner.take_turns();
        }
        match dialect.target {
            Target::Anthropic => planner.finish_anthropic(),
            Target::OpenAiResponses => planner.finish_reasoning(),
            Target::Gemini => planner.sign_calls(),
            Target::OpenAiChat => {}
        }
        planner.findings.sort_by_key(|finding| finding.index);
        Plan { turns: planner.turns, findings: planner.findings, open: planner.open }
    }
}

/// The rules at work on one view.
pub(super) struct Planner<'a, 'o> {
    pub(super) messages: &'a [MessageParts<'a>],
    pub(super) dialect: &'static Dialect,
    pub(super) options: &'o RenderOptions<'o>,
    pub(super) exchanges: Exchanges,
    /// What the assistant says before this position is told as the user's.
    pub(super) told: usize,
    /// Whether anybody but the system has said something.
    is_behind: bool,
    pub(super) turns: Vec<Turn<'a>>,
    pub(super) findings: Vec<Finding>,
    pub(super) open: Option<usize>,
}

/// What became of the parts of a message, apart from texts of system messages.
#[derive(Default)]
pub(super) struct Said<'a> {
    /// What its own side says.
    pub(super) blocks: Vec<Block<'a>>,
    /// What only the user may say: it comes behind.
    pub(super) aside: Vec<Block<'a>>,
}

impl Said<'_> {
    /// Whether it has a part of this type that only one provider understands.
    fn has_own(&self, wanted: Str<'_>) -> bool {
        let is_it = |block: &Block<'_>| matches!(block, Block::Own { kind, .. } if kind.text() == wanted.text());
        self.blocks.iter().any(is_it)
    }
}

impl<'a> Planner<'a, '_> {
    pub(super) fn find(&mut self, rule: &'static Rule, at: usize, message: impl Into<String>) {
        self.find_with(rule, at, None, message);
    }

    pub(super) fn find_with(
        &mut self,
        rule: &'static Rule,
        at: usize,
        with: Option<usize>,
        message: impl Into<String>,
    ) {
        debug_assert!(rule.targets.contains(&self.dialect.target), "{}", rule.name);
        self.findings.push(Finding { rule, index: at, message: message.into(), with });
    }

    /// Where the two sides take turns, the user comes first: what the assistant says before that is
    /// told as the user's, up to the first message that says anything. Answers where that ends.
    fn find_told(&mut self) -> usize {
        if !self.dialect.takes_turns {
            return 0;
        }
        for (at, message) in self.messages.iter().enumerate() {
            let is_system = message.role == Role::System;
            let is_lead = |part: &Part<'a>| is_system && self.is_text_here(part);
            if !message.parts.iter().any(|part| !is_lead(part) && self.says(at, part)) {
                continue;
            }
            if message.role == Role::Assistant {
                self.find(&rule::FIRST_FROM_THE_USER, at, "the assistant speaks first");
                return at + 1;
            }
            return at;
        }
        self.messages.len()
    }

    /// Whether something is left of a part that the user says.
    fn says(&self, at: usize, part: &Part<'a>) -> bool {
        match part {
            Part::Text { text, .. } => self.has_text(*text),
            Part::Media(media) => {
                (self.dialect.media_from_user)(&media.with_proper_type())
                    || matches!(media.body, MediaBody::Text(text) if self.has_text(text))
            }
            Part::ToolUse { .. } => true,
            Part::ToolResult { content, .. } => flat(*content)
                .iter()
                .filter(|part| !matches!(part, Part::ToolResult { .. }))
                .any(|part| self.says(at, part)),
            Part::Thinking { .. } => false,
            Part::Other { kind, json } => match refusal(part) {
                Some(text) => self.has_text(text),
                None if transcript(part).is_some_and(|text| self.has_text(text)) => true,
                None => {
                    matches!(self.messages[at].role, Role::User | Role::Tool)
                        && self.is_maker(at)
                        && (self.dialect.own_parts)(&kind.text(), json, false)
                }
            },
        }
    }

    /// Whether a part becomes a text, whoever says it.
    fn is_text_here(&self, part: &Part<'_>) -> bool {
        match part {
            Part::Text { .. } => true,
            Part::Media(media) => {
                matches!(media.body, MediaBody::Text(_)) && !(self.dialect.media_from_user)(media)
            }
            part => refusal(part).or(transcript(part)).is_some(),
        }
    }

    pub(super) fn has_text(&self, text: Str<'_>) -> bool {
        if self.dialect.takes_blank_text { !text.is_empty() } else { !text.is_blank() }
    }

    /// Says one message in blocks.
    fn say(&mut self, at: usize) {
        let message = &self.messages[at];
        let side = match message.role {
            Role::System => Side::System,
            Role::Assistant if at >= self.told => Side::Assistant,
            _ => Side::User,
        };
        let before = self.findings.len();
        let mut said = Said::default();
        for (number, part) in message.parts.iter().enumerate() {
            self.say_part(side, (at, number), part, &mut said);
        }
        if message.role == Role::Tool && !said.blocks.is_empty() && self.findings.len() == before {
            self.find(&rule::RESULTS_HAVE_CALLS, at, "a tool's message names no call");
        }
        let is_result = |part: &Part<'_>| matches!(part, Part::ToolResult { .. });
        let is_spoken = !said.blocks.is_empty() || !said.aside.is_empty();
        let is_answer = !message.parts.is_empty() && message.parts.iter().all(is_result);
        if !is_spoken && !is_answer {
            self.find(&rule::SOMETHING_IS_SAID, at, "nothing is left of the message");
            return;
        }
        let name = self.speaker(at, !said.blocks.is_empty());
        self.add_turn(side, said.blocks, name, at);
        self.add_turn(Side::User, said.aside, None, at);
    }

    fn add_turn(&mut self, side: Side, blocks: Vec<Block<'a>>, name: Option<Str<'a>>, at: usize) {
        if blocks.is_empty() {
            return;
        }
        let side = match side {
            Side::System if self.dialect.takes_turns && self.is_behind => {
                self.find(&rule::SYSTEM_IN_FRONT, at, "a system message stands behind others");
                Side::User
            }
            side => side,
        };
        self.is_behind |= side != Side::System;
        let joins = |before: &Turn<'a>| {
            let is_next = before.from.last().is_some_and(|&last| last + 1 == at);
            let is_call = |block: &Block<'_>| matches!(block, Block::Call(_));
            // Only behind a call that was open then: appending changes nothing before it.
            let was_open = |call: &Call<'_>| call.answer.from.is_none_or(|from| from > at);
            is_next
                && before.side == side
                && before.calls().any(was_open)
                && blocks.iter().all(is_call)
        };
        match self.turns.last_mut() {
            // Sessions keep calls that were made at once in messages of their own.
            Some(before) if name.is_none() && joins(before) => {
                before.blocks.extend(blocks);
                before.from.push(at);
            }
            _ => self.turns.push(Turn { side, blocks, name, from: vec![at] }),
        }
    }

    /// The name of who speaks, where there is a place for it.
    fn speaker(&mut self, at: usize, is_spoken: bool) -> Option<Str<'a>> {
        let name = self.messages[at].name?;
        if self.messages[at].role == Role::Tool && !is_spoken {
            return None; // the name of a tool, which its call says too
        }
        if !self.dialect.has_speakers || !is_spoken {
            self.find(&rule::SPEAKERS, at, "there is no place for a speaker's name");
            return None;
        }
        let text = name.text();
        let is_odd = |c: char| c.is_whitespace() || "<|\\/>".contains(c);
        if text.is_empty() || text.chars().count() > 64 || text.chars().any(is_odd) {
            self.find(&rule::SPEAKERS, at, format!("{text:?} is no name that fits"));
            return None;
        }
        Some(name)
    }

    fn say_part(&mut self, side: Side, place: Place, part: &'a Part<'a>, said: &mut Said<'a>) {
        let at = place.0;
        match part {
            Part::Text { text, .. } => {
                let Some(block) = self.say_text(side, at, *text, part) else { return };
                said.blocks.push(block);
            }
            Part::Thinking { text, signature, .. } => {
                let (text, signature) = (*text, *signature);
                if side == Side::Assistant && self.keeps_thinking(at, text, signature) {
                    said.blocks.push(Block::Thinking { text, signature });
                } else {
                    let why = "thinking that this model did not make, or did not sign";
                    self.find(&rule::THINKING_FOR_ITS_MAKER, at, why);
                }
            }
            Part::Media(media) => {
                let Some(block) = self.say_media(at, media) else { return };
                let is_text = matches!(block, Block::Text { .. });
                if side == Side::User || is_text {
                    said.blocks.push(block);
                } else {
                    let why = "only the user can show an image, audio or file";
                    self.find(&rule::MEDIA_WHERE_IT_MAY_STAND, at, why);
                    said.aside.push(block);
                }
            }
            Part::ToolUse { .. } if side == Side::Assistant => {
                let call = self.say_call(place, part, said);
                said.blocks.push(call);
            }
            Part::ToolUse { name, input, .. } => {
                // What the assistant says first is told as the user's already.
                if self.messages[at].role != Role::Assistant {
                    let why = format!("a call of {} that is not the assistant's", name.text());
                    self.find(&rule::CALLS_FROM_THE_ASSISTANT, at, why);
                }
                self.to_user(side, said).push(Block::text(told_call(*name, input)));
            }
            Part::ToolResult { id, content, .. } => {
                if self.exchanges.call_of(place).is_some() {
                    return; // it stands with its call
                }
                if self.exchanges.is_repeated(place) {
                    let why = format!("the call {:?} is answered already", id.text());
                    self.find(&rule::ONE_RESULT_A_CALL, at, why);
                } else {
                    let why = format!("there is no call {:?} before its result", id.text());
                    self.find(&rule::RESULTS_HAVE_CALLS, at, why);
                }
                let blocks = self.say_content(at, *content, false);
                self.to_user(side, said).extend(blocks);
            }
            Part::Other { kind, json } => self.say_other(side, at, part, *kind, json, said),
        }
    }

    /// Where the user's words in a message go.
    fn to_user<'s>(&self, side: Side, said: &'s mut Said<'a>) -> &'s mut Vec<Block<'a>> {
        if side == Side::User { &mut said.blocks } else { &mut said.aside }
    }

    pub(super) fn say_text(
        &mut self,
        side: Side,
        at: usize,
        text: Str<'a>,
        part: &Part<'a>,
    ) -> Option<Block<'a>> {
        let extra = self.extra(side, at, part);
        if !self.has_text(text) && extra.signature.is_none() {
            self.find(&rule::NO_EMPTY_TEXT, at, "an empty text");
            return None;
        }
        Some(Block::Text { text: Cow::Borrowed(text.escaped()), extra })
    }

    /// Media as this provider takes it; a file that is text becomes one where there is no other
    /// form.
    pub(super) fn say_media(&mut self, at: usize, media: &Media<'a>) -> Option<Block<'a>> {
        let media = media.with_proper_type();
        if (self.dialect.media_from_user)(&media) {
            let extra = self.extra(Side::User, at, &Part::Media(media));
            return Some(Block::Media { media, extra });
        }
        if let MediaBody::Text(text) = media.body
            && self.has_text(text)
        {
            return Some(Block::text(text.escaped()));
        }
        let why = "an image, audio or file in no form that is taken here";
        self.find(&rule::MEDIA_HAS_A_FORM, at, why);
        None
    }

    fn say_other(
        &mut self,
        side: Side,
        at: usize,
        part: &Part<'a>,
        kind: Str<'a>,
        json: &'a str,
        said: &mut Said<'a>,
    ) {
        if let Some(text) = refusal(part) {
            if text.is_empty() || !self.has_text(text) {
                self.find(&rule::NO_EMPTY_TEXT, at, "an empty refusal");
            } else if side == Side::Assistant && self.dialect.has_refusals {
                said.blocks.push(Block::Refusal(text));
            } else {
                said.blocks.push(Block::text(text.escaped()));
            }
            return;
        }
        let is_assistant = side == Side::Assistant;
        let is_own = side != Side::System
            && self.is_maker(at)
            && (self.dialect.own_parts)(&kind.text(), json, is_assistant)
            && self.may_refer(&kind.text(), json);
        // A chat message has room for one.
        let is_own = is_own && (!kind.is("openai_audio") || !said.has_own(kind));
        if is_own {
            said.blocks.push(Block::Own { kind, json: Cow::Borrowed(json) });
        } else if let Some(text) = transcript(part).filter(|text| self.has_text(*text)) {
            said.blocks.push(Block::text(text.escaped()));
        } else {
            let why = format!("a part of type {:?} that is not this provider's", kind.text());
            self.find(&rule::PARTS_FOR_THEIR_MAKER, at, why);
        }
    }

    /// Where nothing is stored at the provider, reasoning must bring its own content.
    fn may_refer(&self, kind: &str, json: &str) -> bool {
        let is_stored = !self.options.fields.contains(&("store", "false"));
        kind != "reasoning" || is_stored || json::get_str(json, "encrypted_content").is_some()
    }

    /// Whether the message was made by the provider, and the model as far as they are known.
    pub(super) fn is_maker(&self, at: usize) -> bool {
        let source = &self.messages[at].source;
        let (provider, model) = (self.dialect.provider, self.options.model);
        source.as_ref().is_some_and(|source| source.is_made_by(provider, model))
    }

    fn keeps_thinking(&self, at: usize, text: Str<'_>, signature: Option<Str<'_>>) -> bool {
        let is_signed = signature.is_some_and(|signature| !signature.is_empty());
        self.is_maker(at)
            && match self.dialect.thinking {
                Thinking::Nowhere => false,
                Thinking::Signed => is_signed,
                Thinking::Any => !text.is_empty() && signature.is_none_or(is_base64),
            }
    }

    /// The item that a part was, where it goes back as it is.
    pub(super) fn own_item(&self, at: usize, part: &Part<'a>) -> Option<&'a str> {
        let is_there = self.dialect.target == Target::OpenAiResponses && self.is_maker(at);
        is_there.then(|| item_of(part)).flatten()
    }

    /// What stands beside a part.
    pub(super) fn extra(&mut self, side: Side, at: usize, part: &Part<'a>) -> Extra<'a> {
        let mut extra = Extra::default();
        if !part.has_more() {
            return extra;
        }
        let signature = part.signature();
        extra.item = self.own_item(at, part);
        let is_text = matches!(part, Part::Text { .. });
        let is_document = matches!(part, Part::Media(media) if media.kind == MediaKind::File);
        let part = part.json();
        if let Some(signature) = signature {
            let is_kept = self.dialect.target == Target::Gemini
                && side == Side::Assistant
                && (self.is_maker(at) || signature.escaped() == SKIP_SIGNATURE)
                && is_base64(signature);
            if is_kept {
                extra.signature = Some(signature);
            } else {
                let why = "a signature that this model did not make";
                self.find(&rule::THINKING_FOR_ITS_MAKER, at, why);
            }
        }
        if self.dialect.target == Target::OpenAiResponses && self.is_maker(at) {
            let is_custom = json::get_str(part, "kind").is_some_and(|kind| kind.is("custom"));
            let prefix = match (is_text, is_custom) {
                (true, _) => "msg",
                (false, true) => "ctc",
                (false, false) => "fc",
            };
            let id = json::get_str(part, "item_id");
            extra.item_id = id.filter(|id| openai_responses::is_item_id(*id, prefix));
        }
        if self.dialect.target == Target::Anthropic {
            extra.cache_control = json::get(part, "cache_control");
            let citations = json::get(part, "citations");
            extra.citations = match is_document {
                true => citations.filter(|setting| is_setting(setting)),
                false => citations.filter(|list| json::is_list(list) && self.is_maker(at)),
            };
        }
        extra
    }

    /// Finds results that do not stand right behind their call.
    fn check_order(&mut self) {
        let messages = self.messages;
        let exchanges = std::mem::take(&mut self.exchanges);
        let call_message =
            |at: usize, number: usize| exchanges.call_of((at, number)).map(|it| it.0);
        // The first message of the turn that a call is made in.
        let calling = self.turns.iter().filter(|turn| turn.has_calls());
        let turns: HashMap<usize, usize> =
            calling.flat_map(|turn| turn.from.iter().map(|&at| (at, turn.from[0]))).collect();
        let turn_of = |at: usize| turns.get(&at).copied().unwrap_or(at);
        // The turn whose results may stand here: all that came behind it are its results.
        let mut asked: Option<usize> = None;
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
                if !(may_answer && only_results && asked == Some(turn_of(call))) {
                    let why = "a result does not stand right behind its call";
                    self.find_with(&rule::RESULTS_FOLLOW_CALLS, at, Some(call), why);
                    only_results = false;
                }
            }
            let calls = message.role == Role::Assistant
                && message.parts.iter().any(|part| matches!(part, Part::ToolUse { .. }));
            if calls {
                asked = Some(turn_of(at));
            } else if !(only_results && may_answer) {
                asked = None;
            }
        }
        self.exchanges = exchanges;
    }

    /// Makes ids unique.
    fn give_ids(&mut self) {
        let mut given = Ids::default();
        let form = &self.dialect.ids;
        let findings = &mut self.findings;
        for block in self.turns.iter_mut().flat_map(|turn| &mut turn.blocks) {
            let Block::Call(call) = block else { continue };
            let (id, is_other) = given.give(call.id.clone(), form);
            if is_other {
                findings.push(Finding {
                    rule: &rule::UNIQUE_IDS,
                    index: call.at,
                    message: format!("the id \"{}\" is used again", call.id),
                    with: call.answer.from,
                });
            }
            call.id = id;
        }
    }
}

/// Whether it says if a document may be cited.
fn is_setting(citations: &str) -> bool {
    let is_known =
        |(key, value): (Str<'_>, &str)| key.is("enabled") && matches!(value, "true" | "false");
    json::is_object(citations) && json::fields(citations).all(is_known)
}

/// What the model said aloud, in writing.
fn transcript<'a>(part: &Part<'a>) -> Option<Str<'a>> {
    match part {
        Part::Other { kind, json } if kind.is("openai_audio") => {
            json::get_str(json::get(json, "audio")?, "transcript")
        }
        _ => None,
    }
}

pub(super) fn refusal<'a>(part: &Part<'a>) -> Option<Str<'a>> {
    match part {
        Part::Other { kind, json } if kind.text() == "refusal" => json::get_str(json, "refusal"),
        _ => None,
    }
}

/// A call as text: its name and input, as the contract has it.
pub(super) fn told_call(name: Str<'_>, input: &str) -> String {
    let mut text = name.text().into_owned();
    text.push(' ');
    recto_core::json::compact_into(input, &mut text);
    let mut escaped = String::with_capacity(text.len() + 8);
    json::escape_into(&text, &mut escaped);
    escaped
}
