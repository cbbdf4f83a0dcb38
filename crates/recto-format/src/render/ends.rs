//! The sequence and the ends of turns: alternation, and each provider's rules for the end of a turn.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet, VecDeque};

use super::plan::Planner;
use super::rule;
use super::tools::tools_field;
use super::turn::{Block, Side, Turn};
use super::{NO_MESSAGE, Target, models, openai_chat, openai_responses};
use crate::json::{self, Str};

/// The signature that Google documents for calls that its model did not make.
pub(super) const SKIP_SIGNATURE: &str = "skip_thought_signature_validator";

/// True if the provider would join both turns into one that has the thinking of the second one inside and
/// does not start with thinking.
fn hides_thinking(first: &Turn<'_>, second: &Turn<'_>) -> bool {
    let is_joined = first.side == Side::Assistant && !first.has_calls();
    is_joined && second.starts_with_thinking() && !first.starts_with_thinking()
}

/// What follows an item of OpenAI's Responses.
#[derive(Clone, Copy)]
enum Follows {
    /// An item that the model did not produce, or nothing.
    Other,
    /// An item of the model without an id.
    Output,
    /// An item of the model with its id.
    OutputWithId,
}

impl Follows {
    fn of_item(item: &str, is_model: bool) -> Follows {
        match (openai_responses::is_output(item, false), openai_responses::is_output(item, true)) {
            _ if !is_model => Follows::Other,
            (_, true) => Follows::OutputWithId,
            (true, false) => Follows::Output,
            (false, false) => Follows::Other,
        }
    }
}

/// For a call or result of a tool that the provider runs: true if it is a call, and the id of the call.
fn server_id<'b>(block: &'b Block<'_>) -> Option<(bool, Option<Str<'b>>)> {
    let Block::ProviderPart { kind, json } = block else { return None };
    match kind.escaped() {
        kind if kind.ends_with("_tool_use") => Some((true, json::get_str(json, "id"))),
        kind if kind.ends_with("_tool_result") => Some((false, json::get_str(json, "tool_use_id"))),
        _ => None,
    }
}

impl<'a> Planner<'a, '_> {
    /// True if Anthropic's rules for thinking, errors and white space apply. At Bedrock, they apply to
    /// Claude, to names without a maker in front, such as inference profiles, which may be Claude, and to
    /// requests without a model.
    pub(super) fn has_rules_of_claude(&self) -> bool {
        let may_be_claude = |model: &str| models::is_claude(model) || !model.contains('.');
        let is_bedrock = self.dialect.target == Target::BedrockConverse;
        self.dialect.requires_thinking_first
            && (!is_bedrock || self.options.model.is_none_or(may_be_claude))
    }

    /// Merges consecutive turns of one role.
    pub(super) fn merge_turns(&mut self) {
        let is_claude = self.has_rules_of_claude();
        let turns = std::mem::take(&mut self.turns);
        let mut merged: Vec<Turn<'a>> = Vec::with_capacity(turns.len());
        for turn in turns {
            let continues = |merged: &[Turn<'a>]| {
                merged.last().is_some_and(|before| {
                    before.side == turn.side
                        && turn.side != Side::System
                        && !before.has_calls()
                        && before.original.is_none()
                        && turn.original.is_none()
                        && !(is_claude && hides_thinking(before, &turn))
                })
            };
            if !continues(&merged) {
                self.end_assistant(&mut merged);
            }
            let is_joined = continues(&merged);
            match merged.last_mut() {
                Some(before) if is_joined => {
                    if before.from.last() != turn.from.last() {
                        let with = before.from.last().copied();
                        let message = "the same role as the message before it";
                        self.report_with(&rule::ALTERNATION, turn.from[0], with, message);
                    }
                    before.from.extend(turn.from);
                    before.blocks.extend(turn.blocks);
                }
                _ => merged.push(turn),
            }
        }
        self.end_assistant(&mut merged);
        self.turns = merged;
    }

    /// Applies the rules for Claude to the last turn if it is the assistant's: no unpaired server call, and
    /// no thinking at its end.
    fn end_assistant(&mut self, turns: &mut Vec<Turn<'a>>) {
        self.unstable_block = None;
        if !self.has_rules_of_claude() {
            return;
        }
        let is_converted =
            |turn: &&mut Turn<'a>| turn.side == Side::Assistant && turn.original.is_none();
        let Some(turn) = turns.last_mut().filter(is_converted) else {
            return;
        };
        self.unstable_block = self.drop_unpaired_server_calls(turn);
        while turn.blocks.last().is_some_and(Block::is_thinking) {
            turn.blocks.pop();
            let at = turn.from.last().copied().unwrap_or(0);
            self.report(&rule::THINKING_IS_NOT_LAST, at, "the message ends with thinking");
        }
        if turn.blocks.is_empty() {
            turns.pop();
        }
    }

    /// Omits calls of Anthropic's server without a result in the same turn, and results without a call.
    /// Returns the index of the first omitted block, because its counterpart may still be appended.
    fn drop_unpaired_server_calls(&mut self, turn: &mut Turn<'a>) -> Option<usize> {
        let server: Vec<(usize, bool, Option<Str<'_>>)> = turn
            .blocks
            .iter()
            .enumerate()
            .filter_map(|(number, block)| {
                server_id(block).map(|(is_call, id)| (number, is_call, id))
            })
            .collect();
        if server.is_empty() {
            return None;
        }
        let mut is_paired = vec![false; turn.blocks.len()];
        let mut open: HashMap<Cow<'_, str>, VecDeque<usize>> = HashMap::new();
        for (number, is_call, id) in server.iter().copied() {
            let Some(id) = id.filter(|id| !id.is_empty()) else { continue };
            if is_call {
                open.entry(id.text()).or_default().push_back(number);
            } else if let Some(call) = open.get_mut(&id.text()).and_then(VecDeque::pop_front) {
                is_paired[call] = true;
                is_paired[number] = true;
            }
        }
        let unpaired: Vec<usize> =
            server.iter().map(|it| it.0).filter(|&number| !is_paired[number]).collect();
        let at = turn.from.last().copied().unwrap_or(0);
        let mut is_omitted = vec![false; turn.blocks.len()];
        unpaired.iter().for_each(|&number| is_omitted[number] = true);
        let mut numbers = 0..;
        turn.blocks.retain(|_| numbers.next().is_some_and(|number| !is_omitted[number]));
        for _ in &unpaired {
            let message = "a server call without its result, or a result without its call";
            self.report(&rule::SERVER_CALLS_ARE_WHOLE, at, message);
        }
        unpaired.first().copied()
    }

    /// Adds a placeholder of the user between two turns of the assistant if the provider would join them
    /// into one that has thinking and does not start with it.
    fn separate_thinking(&mut self) {
        let turns = std::mem::take(&mut self.turns);
        for turn in turns {
            let is_hidden = self.turns.last().is_some_and(|before| hides_thinking(before, &turn));
            if is_hidden && turn.side == Side::Assistant {
                let at = turn.from.first().copied().unwrap_or(0);
                let message = "another message of the assistant precedes its thinking";
                self.report(&rule::THINKING_FIRST, at, message);
                self.turns.push(Turn::placeholder(NO_MESSAGE));
            }
            self.turns.push(turn);
        }
    }

    /// Disables thinking if the request enables it and the turn with the last calls does not start with
    /// thinking.
    fn check_last_calls(&mut self) {
        let thinking = self.field("thinking").and_then(|thinking| json::get_str(thinking, "type"));
        if !thinking.is_some_and(|kind| kind.is("enabled")) {
            return;
        }
        // Texts of the user may follow the results in the same message.
        let is_users = |turn: &&Turn<'a>| turn.side == Side::User && !turn.from.is_empty();
        let end = self.turns.len() - self.turns.iter().rev().take_while(is_users).count();
        let Some(last) = self.turns[..end].last().filter(|turn| turn.has_calls()) else { return };
        let at = last.from.last().copied().unwrap_or(0);
        let joins = |turn: &&Turn<'a>| turn.side == Side::Assistant && !turn.has_calls();
        let before = self.turns[..end - 1].iter().rev().take_while(joins).count();
        if !self.turns[end - 1 - before].starts_with_thinking() {
            let message = "thinking is enabled, and the turn with the last calls has none";
            self.report(&rule::THINKING_OF_THE_LAST_CALLS, at, message);
            self.disables_thinking = true;
        }
    }

    pub(super) fn finish_anthropic(&mut self) {
        self.align_citations();
        self.limit_cache_marks();
        self.separate_thinking();
        self.check_last_calls();
        self.finish_last_message();
    }

    /// Applies Bedrock's rules: messages alternate strictly, and calls have tools.
    pub(super) fn finish_bedrock(&mut self) {
        if self.has_rules_of_claude() {
            self.separate_thinking();
            self.finish_last_message();
        }
        let first = self.turns.iter().position(|turn| turn.side != Side::System);
        if let Some(first) = first.filter(|&first| {
            let turn = &self.turns[first];
            turn.side == Side::Assistant && turn.original.is_none()
        }) {
            self.add_first_message(first);
        }
        self.describe_called_tools();
        self.join_originals();
    }

    /// Lists the called tools if the request describes none.
    fn describe_called_tools(&mut self) {
        if self.field(tools_field(self.dialect.target)).is_some() {
            return;
        }
        let (mut names, mut first): (Vec<String>, _) = (Vec::new(), None);
        for call in self.turns.iter().flat_map(Turn::calls) {
            first = first.or(Some(call.at));
            if !names.iter().any(|name| *name == call.name) {
                names.push(call.name.clone().into_owned());
            }
        }
        self.undescribed_tools = names;
        if let Some(at) = first {
            let message = "the request has calls and describes no tools";
            self.report(&rule::CALLS_HAVE_TOOLS, at, message);
        }
    }

    /// Refuses the originals beside another message of the same role, with which they have to be joined.
    fn join_originals(&mut self) {
        let mut last: Option<(Side, Option<usize>)> = None;
        for turn in self.turns.iter().filter(|turn| !turn.is_in_system_field()) {
            let original = turn.original.is_some().then(|| turn.from[0]);
            let side = if turn.side == Side::Assistant { Side::Assistant } else { Side::User };
            if let Some((before, original_before)) = last
                && before == side
            {
                self.refused_originals.extend([original_before, original].into_iter().flatten());
            }
            // The results of converted calls are a message of the user.
            let has_results = turn.calls_with_converted_results().next().is_some();
            last = Some(if has_results { (Side::User, None) } else { (side, original) });
        }
    }

    /// Adds a placeholder of the user after a last message of the assistant if the model requires it.
    /// Otherwise, omits white space at the end of that message.
    fn finish_last_message(&mut self) {
        let is_assistants = |turn: &&Turn<'a>| turn.side == Side::Assistant && !turn.has_calls();
        // The model continues its turn after a call of a tool that the provider runs (`pause_turn`), and
        // after a compaction (`pause_after_compaction`).
        let is_compaction = |block: &Block<'_>| matches!(block, Block::ProviderPart { kind, .. } if kind.is("compaction"));
        let continues = |block: &Block<'_>| server_id(block).is_some() || is_compaction(block);
        let is_paused = |turn: &Turn<'a>| turn.blocks.last().is_some_and(continues);
        if let Some(turn) = self.turns.last().filter(is_assistants)
            && !is_paused(turn)
            && self.requires_user_last()
        {
            let at = turn.from.last().copied().unwrap_or(0);
            self.report(&rule::LAST_FROM_THE_USER, at, "the last message is from the assistant");
            self.turns.push(Turn::placeholder(NO_MESSAGE));
            return;
        }
        let Some(turn) = self.turns.last_mut().filter(|turn| turn.side == Side::Assistant) else {
            return;
        };
        if let Some(Block::Text { text, .. }) = turn.blocks.last_mut() {
            let plain = recto_core::json::unescape(text).into_owned();
            let trimmed = plain.trim_end();
            if trimmed.len() < plain.len() {
                let mut escaped = String::new();
                json::escape_into(trimmed, &mut escaped);
                *text = Cow::Owned(escaped);
                let at = turn.from.last().copied().unwrap_or(0);
                self.report(&rule::NO_TRAILING_SPACE, at, "the last message ends with white space");
            }
        }
    }

    /// True if the model rejects a request whose last message is the assistant's.
    fn requires_user_last(&self) -> bool {
        let named = self.field("model").and_then(Str::of).map(Str::text);
        let model = self.options.model.or(named.as_deref());
        let thinking = self.field("thinking").and_then(|thinking| json::get_str(thinking, "type"));
        model.is_some_and(models::requires_user_last)
            || thinking.is_some_and(|kind| !kind.is("disabled"))
    }

    /// The value of a field of the request.
    fn field(&self, key: &str) -> Option<&str> {
        let given = self.options.fields.iter().find(|(name, _)| *name == key);
        given.map(|(_, value)| *value)
    }

    /// Omits reasoning that is not followed by output of the model, because Responses rejects it. At OpenAI,
    /// reasoning with an id needs an output with an id; other providers of this API accept an output without
    /// one.
    pub(super) fn drop_dangling_reasoning(&mut self) {
        let compares_ids = self.options.model.is_none_or(models::is_openai);
        // For a reasoning item, whether it has an id.
        let reasoning_id = |block: &Block<'_>| match block {
            Block::ProviderPart { kind, json } if kind.is("reasoning") => {
                Some(json::get_str(json, "id").is_some())
            }
            _ => None,
        };
        let mut follows = Follows::Other;
        let mut dropped = Vec::new();
        for turn in self.turns.iter_mut().rev() {
            let is_model = turn.side == Side::Assistant;
            // Results of calls follow the turn.
            if !is_model || turn.has_calls() {
                follows = Follows::Other;
            }
            let is_dangling = |follows: Follows, has_id: bool| match follows {
                Follows::Other => true,
                Follows::Output => compares_ids && has_id,
                Follows::OutputWithId => false,
            };
            let Some(&at) = turn.from.first() else { continue };
            if let Some(original) = &turn.original {
                match turn.blocks.iter().find_map(reasoning_id) {
                    None => follows = Follows::of_item(&original.text, is_model),
                    Some(has_id) if is_dangling(follows, has_id) => self.refused_originals.push(at),
                    Some(_) => {}
                }
                continue;
            }
            for number in (0..turn.blocks.len()).rev() {
                let block = &turn.blocks[number];
                match (reasoning_id(block), block) {
                    (Some(has_id), _) if is_dangling(follows, has_id) => {
                        turn.blocks.remove(number);
                        dropped.push(at);
                    }
                    (Some(_), _) => {}
                    (None, Block::ProviderPart { json, .. }) => {
                        follows = Follows::of_item(json, is_model);
                    }
                    (None, block) if is_model && block.has_item_id() => {
                        follows = Follows::OutputWithId;
                    }
                    (None, _) => follows = if is_model { Follows::Output } else { Follows::Other },
                }
            }
        }
        for at in dropped {
            let message = "reasoning that is not followed by its output";
            self.report(&rule::REASONING_WITH_ITS_ITEM, at, message);
        }
        self.turns.retain(|turn| !turn.blocks.is_empty() || turn.original.is_some());
        self.keep_item_ids();
        self.keep_paired_items();
    }

    /// Keeps the original items of built-in tools only where a call and its result both have one.
    /// Otherwise they are written as an ordinary call and result.
    fn keep_paired_items(&mut self) {
        for block in self.turns.iter_mut().flat_map(|turn| &mut turn.blocks) {
            let Block::Call(call) = block else { continue };
            let is_pair = |(call_item, result_item): (&str, &str)| {
                let names = |item: &str, key: &str| {
                    json::get_str(item, key).is_some_and(|id| id.escaped() == call.id)
                };
                let [call, output] =
                    [call_item, result_item].map(|item| json::get_str(item, "type"));
                let types_match = |(call, output): (Str<'_>, Str<'_>)| {
                    output.escaped().strip_suffix("_output") == Some(call.escaped())
                };
                call.zip(output).is_some_and(types_match)
                    && names(call_item, "call_id")
                    && (names(result_item, "call_id") || names(result_item, "id"))
            };
            if !call.extra.item.zip(call.result.item).is_some_and(is_pair) {
                (call.extra.item, call.result.item) = (None, None);
            }
        }
    }

    /// Keeps the id of an item only after reasoning with an id, and each id once. The provider stores which
    /// reasoning an item belongs to, and rejects an id without its reasoning.
    fn keep_item_ids(&mut self) {
        let mut used = HashSet::new();
        let mut after_reasoning = false;
        for turn in &mut self.turns {
            after_reasoning &= turn.side == Side::Assistant;
            for block in &mut turn.blocks {
                let extra = match block {
                    Block::ProviderPart { kind, json } => {
                        let has_id = || json::get_str(json, "id").is_some();
                        after_reasoning |= kind.is("reasoning") && has_id();
                        continue;
                    }
                    Block::Call(call) => &mut call.extra,
                    Block::Text { extra, .. } => extra,
                    _ => continue,
                };
                let id = extra.item_id.filter(|_| after_reasoning);
                extra.item_id = id.filter(|id| used.insert(id.escaped()));
            }
            after_reasoning &= !turn.has_calls(); // their results follow
        }
    }

    /// Reports calls without reasoning if the model thinks and rejects such calls. The writer adds a
    /// placeholder for the reasoning.
    pub(super) fn add_reasoning(&mut self) {
        let thinking = self.field("thinking").and_then(|thinking| json::get_str(thinking, "type"));
        self.calls_need_reasoning = self.options.model.is_some_and(models::requires_reasoning)
            && !thinking.is_some_and(|kind| kind.is("disabled"));
        if !self.calls_need_reasoning {
            return;
        }
        let lacking: Vec<usize> = self
            .turns
            .iter()
            .filter(|turn| turn.original.is_none() && openai_chat::lacks_reasoning(turn))
            .map(|turn| turn.from[0])
            .collect();
        for at in lacking {
            self.report(&rule::CALLS_HAVE_REASONING, at, "calls without reasoning");
        }
    }

    /// Applies Google's rules: the first message is the user's, and calls are signed.
    pub(super) fn finish_gemini(&mut self) {
        self.sign_first_calls();
        let first = self.turns.iter().position(|turn| turn.side != Side::System);
        if let Some(first) = first.filter(|&first| self.turns[first].side == Side::Assistant) {
            self.add_first_message(first);
        }
    }

    /// Adds a placeholder of the user before the turn with this index.
    fn add_first_message(&mut self, first: usize) {
        let at = self.turns[first].from.first().copied().unwrap_or(0);
        self.report(&rule::FIRST_FROM_THE_USER, at, "the first message is from the assistant");
        self.turns.insert(first, Turn::placeholder(NO_MESSAGE));
    }

    /// Signs the first call of each turn, as Gemini 3 requires.
    fn sign_first_calls(&mut self) {
        let is_strict = self.options.model.is_some_and(models::requires_signed_calls);
        if !is_strict {
            return;
        }
        let mut signed = Vec::new();
        for turn in &mut self.turns {
            let first = turn.blocks.iter_mut().find_map(|block| match block {
                Block::Call(call) => Some(call),
                _ => None,
            });
            if let Some(call) = first
                && call.extra.signature.is_none()
            {
                call.extra.signature = Some(Str::plain(SKIP_SIGNATURE));
                signed.push(call.at);
            }
        }
        for at in signed {
            self.report(&rule::SIGNED_CALLS, at, "a call without a signature by this model");
        }
    }
}
