//! The planner: converts messages into turns that the provider accepts, and reports findings.
//!
//! Its phases are methods of [`Planner`]: pair calls and results; convert each message to blocks; check the order of results; assign unique ids; merge turns;
//! apply the provider's rules for the ends of turns. Every decision depends only on earlier messages,
//! except that results move to their call. Therefore an append to the view only appends to the request,
//! up to the first open call.

use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;

use recto_core::Role;

use super::dialect::{Dialect, Thinking, is_base64};
use super::ends::SKIP_SIGNATURE;
use super::exchange::{Exchanges, PartPosition};
use super::ids::Ids;
use super::originals::{Original, Originals};
use super::rule::{self, Finding, Rule};
use super::turn::{Block, Call, Extra, Side, Turn};
use super::{RenderOptions, Target, bedrock_converse, models, openai_chat, openai_responses};
use crate::format::{Format, item_of};
use crate::json::{self, Str};
use crate::media::{Media, MediaBody, MediaKind};
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
            Target::OpenAiChat => {}
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
    has_dialogue: bool,
    pub(super) turns: Vec<Turn<'a>>,
    pub(super) findings: Vec<Finding>,
    pub(super) unstable_block: Option<usize>,
    pub(super) disables_thinking: bool,
    pub(super) undescribed_tools: Vec<String>,
    /// Positions of messages that cannot keep their original bytes because of what follows them.
    pub(super) refused_originals: Vec<usize>,
}

/// The blocks of one message.
#[derive(Default)]
pub(super) struct ConvertedParts<'a> {
    /// Blocks of the message's own role.
    pub(super) blocks: Vec<Block<'a>>,
    /// Blocks that only a message of the user may have. They become a turn of the user after it.
    pub(super) user_blocks: Vec<Block<'a>>,
}

impl ConvertedParts<'_> {
    /// True if there is a provider part of this type.
    fn has_provider_part(&self, wanted: Str<'_>) -> bool {
        let is_it = |block: &Block<'_>| matches!(block, Block::ProviderPart { kind, .. } if kind.text() == wanted.text());
        self.blocks.iter().any(is_it)
    }
}

impl<'a> Planner<'a, '_> {
    fn finish(self) -> Plan<'a> {
        let Planner { turns, findings, unstable_block, disables_thinking, .. } = self;
        let undescribed_tools = self.undescribed_tools;
        Plan { turns, findings, unstable_block, disables_thinking, undescribed_tools }
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
        // A message that keeps its bytes is accepted as it is.
        if self.originals.contains(at) && !rule.is_beside_messages() {
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
            return;
        }
        let name = self.author_name(at, has_blocks);
        self.add_turn(side, blocks, name, at);
        self.add_turn(Side::User, user_blocks, None, at);
    }

    /// True for an imported message of role system in the list of messages that cannot keep its bytes: the
    /// model rejects such messages, or an edit has moved it to a place where they are rejected.
    fn is_rejected_system(&self, at: usize) -> bool {
        let source = self.messages[at].source.filter(|source| source.field.is_none());
        let role = |at: usize| self.messages.get(at).map(|message| message.role);
        let ends_with_result = |message: &MessageParts<'_>| match message.parts.last() {
            Some(Part::Other { kind, .. }) => kind.text().ends_with("_tool_result"),
            _ => false,
        };
        // A result of a tool that the provider ran is in a message of the assistant.
        let can_precede = |message: &MessageParts<'_>| match message.role {
            Role::User | Role::Tool => true,
            _ => ends_with_result(message),
        };
        let is_in_place = at > 0
            && can_precede(&self.messages[at - 1])
            && matches!(role(at + 1), None | Some(Role::Assistant));
        let is_system = self.messages[at].role == Role::System;
        self.dialect.target == Target::Anthropic
            && source.is_some_and(|source| source.is_from(Format::Anthropic.name()))
            && (self.options.model.is_some_and(models::rejects_listed_system)
                || is_system && !is_in_place)
    }

    /// True for a system message that can stay in the list of messages: the model accepts such messages, a
    /// message of the user precedes it, and it is the last message or a message of the assistant follows
    /// it.
    fn is_listed_system(&self, at: usize, blocks: &[Block<'_>]) -> bool {
        let follows_user = match self.turns.last() {
            Some(turn) => turn.side == Side::User || turn.has_calls(),
            None => false,
        };
        let is_text = |block: &Block<'_>| matches!(block, Block::Text { .. });
        // Results of earlier calls are written before the system message. A missing result, or one in a
        // later message, cannot be.
        let is_open = |call: &Call<'_>| call.result.from.is_none_or(|from| from > at);
        let next = self.messages.get(at + 1);
        self.dialect.target == Target::Anthropic
            && self.has_dialogue
            && follows_user
            && next.is_none_or(|next| next.role == Role::Assistant)
            && blocks.iter().all(is_text)
            && !self.turns.last().is_some_and(|turn| turn.calls().any(is_open))
            && self.options.model.is_some_and(models::accepts_listed_system)
    }

    /// Adds a turn that keeps its bytes. Its blocks are not written; they tell which calls it has.
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
        let side = match side {
            Side::System
                if self.dialect.provider == "openai"
                    && self.options.model.is_some_and(models::rejects_system) =>
            {
                let message = "a system or developer message that the model does not accept";
                self.report(&rule::SYSTEM_FOR_THE_MODEL, at, message);
                Side::User
            }
            Side::System if self.is_rejected_system(at) => {
                let message = "a message of role system that the model does not accept";
                self.report(&rule::SYSTEM_FOR_THE_MODEL, at, message);
                if self.has_dialogue { Side::User } else { Side::System }
            }
            Side::System if self.is_listed_system(at, &blocks) => {
                // If a message of the user is appended, the system message becomes text of the user.
                let is_last = at + 1 == self.messages.len();
                let is_unstable = is_last || self.originals.is_unstable(at);
                let (name, from, original) = (None, vec![at], None);
                let is_listed = true;
                let turn = Turn { side, blocks, name, from, original, is_listed, is_unstable };
                return self.turns.push(turn);
            }
            Side::System if self.dialect.requires_alternation && self.has_dialogue => {
                self.report(&rule::SYSTEM_IN_FRONT, at, "a system message follows other messages");
                Side::User
            }
            side => side,
        };
        self.has_dialogue |= side != Side::System;
        let joins = |before: &Turn<'a>| {
            let is_next = before.from.last().is_some_and(|&last| last + 1 == at);
            let is_call = |block: &Block<'_>| matches!(block, Block::Call(_));
            // Only if the turn has an open call at this position: bytes after it are not stable.
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
                let is_unstable = self.originals.is_unstable(at);
                self.turns.push(Turn {
                    side,
                    blocks,
                    name,
                    from: vec![at],
                    original: None,
                    is_listed: false,
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

    fn convert_part(
        &mut self,
        side: Side,
        position: PartPosition,
        part: &'a Part<'a>,
        converted: &mut ConvertedParts<'a>,
    ) {
        let at = position.0;
        match part {
            Part::Text { text, .. } => {
                let Some(block) = self.convert_text(side, at, *text, part) else { return };
                converted.blocks.push(block);
            }
            Part::Thinking { text, signature, .. } => {
                let (text, signature) = (*text, *signature);
                if self.has_other_prefix(at) {
                    return self.report_other_prefix(at);
                }
                if side == Side::Assistant && self.keeps_thinking(at, text, signature) {
                    converted.blocks.push(Block::Thinking { text, signature });
                } else {
                    let message = "thinking that this model did not produce or did not sign";
                    self.report(&rule::THINKING_FOR_ITS_MAKER, at, message);
                }
            }
            Part::Media(media) => {
                let Some(block) = self.convert_media(at, media) else { return };
                let is_text = matches!(block, Block::Text { .. });
                if side == Side::User || is_text {
                    converted.blocks.push(block);
                } else {
                    let message = "an image, audio or file that is not in a message of the user";
                    self.report(&rule::MEDIA_WHERE_IT_MAY_STAND, at, message);
                    converted.user_blocks.push(block);
                }
            }
            Part::ToolUse { .. } if side == Side::Assistant => {
                let call = self.convert_call(position, part, converted);
                converted.blocks.push(call);
            }
            Part::ToolUse { name, input, .. } => {
                let message = format!("a call of {} that is not the assistant's", name.text());
                self.report(&rule::CALLS_FROM_THE_ASSISTANT, at, message);
                let block = Block::text(call_as_text(*name, input));
                self.user_blocks(side, converted).push(block);
            }
            Part::ToolResult { id, content, .. } => {
                if self.exchanges.call_of(position).is_some() {
                    return; // the call contains it
                }
                if self.exchanges.is_repeated(position) {
                    let message = format!("the call {:?} already has a result", id.text());
                    self.report(&rule::ONE_RESULT_A_CALL, at, message);
                } else {
                    let message = format!("there is no call {:?} before its result", id.text());
                    self.report(&rule::RESULTS_HAVE_CALLS, at, message);
                }
                let blocks = self.convert_result_content(at, *content, false);
                self.user_blocks(side, converted).extend(blocks);
            }
            Part::Other { kind, json } => {
                self.convert_other(side, at, part, *kind, json, converted);
            }
        }
    }

    /// The list for blocks that only a message of the user may have.
    fn user_blocks<'s>(
        &self,
        side: Side,
        converted: &'s mut ConvertedParts<'a>,
    ) -> &'s mut Vec<Block<'a>> {
        if side == Side::User { &mut converted.blocks } else { &mut converted.user_blocks }
    }

    pub(super) fn convert_text(
        &mut self,
        side: Side,
        at: usize,
        text: Str<'a>,
        part: &Part<'a>,
    ) -> Option<Block<'a>> {
        let extra = self.extra(side, at, part);
        if !self.has_text(text) && extra.signature.is_none() {
            self.report(&rule::NO_EMPTY_TEXT, at, "an empty text");
            return None;
        }
        Some(Block::Text { text: Cow::Borrowed(text.escaped()), extra })
    }

    /// Converts media to a form that the provider accepts. A text file that is not accepted as a file
    /// becomes a text.
    pub(super) fn convert_media(&mut self, at: usize, media: &Media<'a>) -> Option<Block<'a>> {
        let media = media.with_registered_type();
        let model = self.options.model.filter(|_| self.dialect.provider == "openai");
        if model.is_some_and(|model| models::rejects_media(model, media.kind))
            || self.is_odd_file(&media)
        {
            let (message, text) = match media.kind {
                MediaKind::Image => ("an image that the model does not accept", "[image]"),
                MediaKind::Audio => ("audio that the model does not accept", "[audio]"),
                _ => ("a file that the model does not accept", "[file]"),
            };
            self.report(&rule::MEDIA_FOR_THE_MODEL, at, message);
            return Some(Block::text(text));
        }
        if (self.dialect.media_from_user)(&media) {
            let extra = self.extra(Side::User, at, &Part::Media(media));
            return Some(Block::Media { media, extra });
        }
        if let MediaBody::Text(text) = media.body
            && self.has_text(text)
        {
            return Some(Block::text(text.escaped()));
        }
        let message = "an image, audio or file in a form that is not accepted here";
        self.report(&rule::MEDIA_HAS_A_FORM, at, message);
        None
    }

    /// True for a file with audio or video at OpenAI, which accepts documents only.
    fn is_odd_file(&self, media: &Media<'_>) -> bool {
        let is_sound = |name: &str| {
            name.starts_with("audio/")
                || name.starts_with("video/")
                || [".mp3", ".wav", ".mp4", ".mov", ".webm"].iter().any(|end| name.ends_with(end))
        };
        let name = match media.body {
            MediaBody::Base64 { media_type, .. } => media_type.text(),
            MediaBody::Url(url) => url.text(),
            _ => return false,
        };
        self.dialect.target == Target::OpenAiResponses
            && media.kind == MediaKind::File
            && is_sound(&name)
    }

    /// True if the original message has a part without a type.
    fn has_untyped_part(&self, at: usize) -> bool {
        let original = self.messages[at].source.and_then(|source| source.original);
        let content = original.and_then(|original| json::get(original, "content"));
        let parts = content.filter(|content| json::is_list(content)).map(json::items);
        parts.into_iter().flatten().any(|part| json::get_str(part, "type").is_none())
    }

    fn convert_other(
        &mut self,
        side: Side,
        at: usize,
        part: &Part<'a>,
        kind: Str<'a>,
        json: &'a str,
        converted: &mut ConvertedParts<'a>,
    ) {
        if let Some(text) = refusal(part) {
            if !self.has_text(text) {
                self.report(&rule::NO_EMPTY_TEXT, at, "an empty refusal");
            } else if side == Side::Assistant && self.dialect.has_refusals {
                converted.blocks.push(Block::Refusal(text));
            } else {
                converted.blocks.push(Block::text(text.escaped()));
            }
            return;
        }
        if let Some(block) = self.replaced_part(at, kind, json) {
            return converted.blocks.push(block);
        }
        if kind.is("redacted_thinking") && self.has_other_prefix(at) {
            return self.report_other_prefix(at);
        }
        let is_assistant = side == Side::Assistant;
        let is_accepted = side != Side::System
            && self.is_from_target(at)
            && (self.dialect.provider_parts)(&kind.text(), json, is_assistant)
            && self.is_self_contained(&kind.text(), json);
        // A message of chat completions has at most one audio.
        let is_accepted =
            is_accepted && (!kind.is("openai_audio") || !converted.has_provider_part(kind));
        if is_accepted {
            converted.blocks.push(Block::ProviderPart { kind, json: Cow::Borrowed(json) });
        } else if let Some(text) = transcript(part).filter(|text| self.has_text(*text)) {
            converted.blocks.push(Block::text(text.escaped()));
        } else {
            if kind.is("unread")
                && rule::PARTS_HAVE_A_TYPE.targets.contains(&self.dialect.target)
                && self.has_untyped_part(at)
            {
                return self.report(&rule::PARTS_HAVE_A_TYPE, at, "a part without a type");
            }
            // Of the user's parts; items of the model are not media.
            if side == Side::User && self.options.model.is_some_and(models::is_text_only) {
                let message =
                    format!("a part of type {:?}, but the model accepts text", kind.text());
                return self.report(&rule::MEDIA_FOR_THE_MODEL, at, message);
            }
            let message = format!("a part of type {:?} that is not this provider's", kind.text());
            self.report(&rule::PARTS_OF_THE_PROVIDER, at, message);
        }
    }

    /// The placeholder of a block of Bedrock that the model rejects.
    pub(super) fn replaced_part(
        &mut self,
        at: usize,
        kind: Str<'a>,
        json: &str,
    ) -> Option<Block<'a>> {
        let model =
            self.options.model.filter(|_| self.dialect.target == Target::BedrockConverse)?;
        let kind = kind.escaped();
        let name = kind.strip_prefix("bedrock_").filter(|_| models::is_claude(model))?;
        let source = json::get(json, "value").and_then(|value| json::get(value, "source"));
        let is_stored = source.is_some_and(|source| json::get(source, "s3Location").is_some());
        let text = match name {
            "video" => "[video]",
            "image" if is_stored => "[image]",
            "document" if is_stored => "[file]",
            _ => return None,
        };
        self.report(
            &rule::MEDIA_FOR_THE_MODEL,
            at,
            format!("{name} that the model does not accept"),
        );
        Some(Block::text(text))
    }

    /// False for reasoning without content in a request with `store: false`: the provider could not
    /// look the reasoning up.
    fn is_self_contained(&self, kind: &str, json: &str) -> bool {
        let is_stored = !self.options.fields.contains(&("store", "false"));
        kind != "reasoning" || is_stored || json::get_str(json, "encrypted_content").is_some()
    }

    /// True if the target's provider produced the message and, if both models are known, so did the
    /// model of the request.
    pub(super) fn is_from_target(&self, at: usize) -> bool {
        let (provider, model) = (self.dialect.provider, self.options.model);
        let format = self.dialect.target.format().name();
        self.messages[at].source.is_some_and(|source| {
            // A request does not name the producer of its messages, but it was sent to this provider.
            let is_of_request = source.provider.is_none() && source.is_from(format);
            source.is_made_by(provider, model) || is_of_request && source.is_model(model)
        })
    }

    /// True if the model rejects thinking of a message because earlier messages were edited.
    fn has_other_prefix(&self, at: usize) -> bool {
        let made_by = || Some(self.messages[at].source?.model?.text());
        let binds = match self.options.model {
            Some(model) => models::binds_thinking(model),
            None => made_by().is_some_and(|model| models::binds_thinking(&model)),
        };
        self.dialect.target == Target::Anthropic
            && self.options.invalid_thinking.contains(&at)
            && binds
            && !asks_to_drop_thinking(self.options)
    }

    fn report_other_prefix(&mut self, at: usize) {
        let message = "thinking that was produced after other messages";
        self.report(&rule::THINKING_OF_ITS_PREFIX, at, message);
    }

    fn keeps_thinking(&self, at: usize, text: Str<'_>, signature: Option<Str<'_>>) -> bool {
        let is_signed = signature.is_some_and(|signature| !signature.is_empty());
        self.is_from_target(at)
            && match self.dialect.thinking {
                Thinking::ByModel => {
                    let takes = self.options.model.is_some_and(models::takes_reasoning);
                    !text.is_empty() && (takes || self.has_reasoning_details(at))
                }
                Thinking::None => false,
                Thinking::Signed => is_signed,
                Thinking::Any => !text.is_empty() && signature.is_none_or(is_base64),
            }
    }

    /// True if the message also has its thinking in the form of OpenRouter.
    fn has_reasoning_details(&self, at: usize) -> bool {
        self.messages[at].parts.iter().any(|part| match part {
            Part::Other { kind, json } => {
                kind.is(openai_chat::REASONING_DETAILS) && openai_chat::details(json).is_some()
            }
            _ => false,
        })
    }

    /// The original item of a part, if the target accepts it unchanged.
    pub(super) fn original_item(&self, at: usize, part: &Part<'a>) -> Option<&'a str> {
        let is_accepted = self.dialect.target == Target::OpenAiResponses && self.is_from_target(at);
        is_accepted.then(|| item_of(part)).flatten()
    }

    /// The further fields of a part that the target accepts.
    pub(super) fn extra(&mut self, side: Side, at: usize, part: &Part<'a>) -> Extra<'a> {
        let mut extra = Extra::default();
        if !part.has_meaning() {
            return extra;
        }
        let signature = part.signature();
        extra.item = self.original_item(at, part);
        let is_text = matches!(part, Part::Text { .. });
        let is_document = matches!(part, Part::Media(media) if media.kind == MediaKind::File);
        let part = part.json();
        if let Some(signature) = signature {
            let is_kept = self.dialect.target == Target::Gemini
                && side == Side::Assistant
                && (self.is_from_target(at) || signature.escaped() == SKIP_SIGNATURE)
                && is_base64(signature);
            if is_kept {
                extra.signature = Some(signature);
            } else {
                let message = "a signature that this model did not produce";
                self.report(&rule::THINKING_FOR_ITS_MAKER, at, message);
            }
        }
        if self.dialect.target == Target::OpenAiResponses && self.is_from_target(at) {
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
            let is_rejected = side != Side::Assistant
                && is_text
                && citations.is_some_and(|list| json::items(list).next().is_some())
                && models::rejects_user_citations(self.options.api_version);
            if is_rejected {
                let message = "citations in a text that is not the assistant's";
                self.report(&rule::CITATIONS_FROM_THE_ASSISTANT, at, message);
            }
            let citations = citations.filter(|_| !is_rejected);
            extra.citations = match is_document {
                true => citations.filter(|setting| is_citations_setting(setting)),
                false => citations.filter(|list| json::is_list(list) && self.is_from_target(at)),
            };
        }
        extra
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
        // The turn whose results are allowed here: only its results came after it so far.
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
        // Messages of the assistant belong to one turn if no result is written between them. An original is
        // the place of its results, so they are written later.
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

/// True if the request asks the provider to drop thinking whose prefix has changed.
fn asks_to_drop_thinking(options: &RenderOptions<'_>) -> bool {
    let thinking = options.fields.iter().find(|(key, _)| *key == "thinking");
    let binding = thinking.and_then(|(_, thinking)| json::get(thinking, "block_binding"));
    let behavior = binding.and_then(|it| json::get_str(it, "prefix_mismatch_behavior"));
    behavior.is_some_and(|behavior| behavior.is("drop_block"))
}

/// True for a setting such as `{"enabled":true}`, false for a list of citations.
fn is_citations_setting(citations: &str) -> bool {
    let is_known =
        |(key, value): (Str<'_>, &str)| key.is("enabled") && matches!(value, "true" | "false");
    json::is_object(citations) && json::fields(citations).all(is_known)
}

/// The readable text of a part of another provider: the transcript of an audio answer, or the summary of a
/// compaction.
fn transcript<'a>(part: &Part<'a>) -> Option<Str<'a>> {
    match part {
        Part::Other { kind, json } if kind.is("compaction") => {
            json::get_str(json, "content").filter(|text| !text.is_blank())
        }
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

/// A tool call as text, in the form of the contract: name and input. Escaped.
pub(super) fn call_as_text(name: Str<'_>, input: &str) -> String {
    let mut text = name.text().into_owned();
    text.push(' ');
    recto_core::json::compact_into(input, &mut text);
    let mut escaped = String::with_capacity(text.len() + 8);
    json::escape_into(&text, &mut escaped);
    escaped
}
