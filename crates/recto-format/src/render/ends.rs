//! How turns end and follow each other: alternation, and what each provider wants of a turn's end.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet, VecDeque};

use super::plan::Planner;
use super::rule;
use super::turn::{Block, Side, Turn};
use super::{NO_MESSAGE, Target, models};
use crate::json::{self, Str};

/// What Google documents for calls that were made elsewhere.
pub(super) const SKIP_SIGNATURE: &str = "skip_thought_signature_validator";

impl<'a> Planner<'a, '_> {
    /// Lets the two sides take turns.
    pub(super) fn take_turns(&mut self) {
        let turns = std::mem::take(&mut self.turns);
        let mut taken: Vec<Turn<'a>> = Vec::with_capacity(turns.len());
        for turn in turns {
            let goes_on = |taken: &[Turn<'a>]| {
                taken.last().is_some_and(|before| {
                    before.side == turn.side && turn.side != Side::System && !before.has_calls()
                })
            };
            if !goes_on(&taken) {
                self.end_assistant(&mut taken);
            }
            let is_joined = goes_on(&taken);
            match taken.last_mut() {
                Some(before) if is_joined => {
                    if before.from.last() != turn.from.last() {
                        let with = before.from.last().copied();
                        let why = "the same side speaks again";
                        self.find_with(&rule::ALTERNATION, turn.from[0], with, why);
                    }
                    before.from.extend(turn.from);
                    before.blocks.extend(turn.blocks);
                }
                _ => taken.push(turn),
            }
        }
        self.end_assistant(&mut taken);
        self.turns = taken;
    }

    /// For Anthropic, an assistant's turn does not end with thinking.
    fn end_assistant(&mut self, taken: &mut Vec<Turn<'a>>) {
        self.open = None;
        if self.dialect.target != Target::Anthropic {
            return;
        }
        let Some(turn) = taken.last_mut().filter(|turn| turn.side == Side::Assistant) else {
            return;
        };
        self.open = self.drop_torn_server_calls(turn);
        while turn.blocks.last().is_some_and(Block::is_thinking) {
            turn.blocks.pop();
            let at = turn.from.last().copied().unwrap_or(0);
            self.find(&rule::THINKING_IS_NOT_LAST, at, "the message ends with thinking");
        }
        if turn.blocks.is_empty() {
            taken.pop();
        }
    }

    /// Calls that Anthropic's server made, and their results, stand in one turn. Answers where the
    /// first half was, since the other may still come.
    fn drop_torn_server_calls(&mut self, turn: &mut Turn<'a>) -> Option<usize> {
        fn id_of<'b>(block: &'b Block<'_>) -> Option<(bool, Option<Str<'b>>)> {
            let Block::Own { kind, json } = block else { return None };
            match kind.escaped() {
                "server_tool_use" | "mcp_tool_use" => Some((true, json::get_str(json, "id"))),
                kind if kind.ends_with("_tool_result") => {
                    Some((false, json::get_str(json, "tool_use_id")))
                }
                _ => None,
            }
        }
        let server: Vec<(usize, bool, Option<Str<'_>>)> = turn
            .blocks
            .iter()
            .enumerate()
            .filter_map(|(number, block)| id_of(block).map(|(is_call, id)| (number, is_call, id)))
            .collect();
        if server.is_empty() {
            return None;
        }
        let mut whole = vec![false; turn.blocks.len()];
        let mut open: HashMap<Cow<'_, str>, VecDeque<usize>> = HashMap::new();
        for (number, is_call, id) in server.iter().copied() {
            let Some(id) = id.filter(|id| !id.is_empty()) else { continue };
            if is_call {
                open.entry(id.text()).or_default().push_back(number);
            } else if let Some(call) = open.get_mut(&id.text()).and_then(VecDeque::pop_front) {
                whole[call] = true;
                whole[number] = true;
            }
        }
        let torn: Vec<usize> =
            server.iter().map(|it| it.0).filter(|&number| !whole[number]).collect();
        let at = turn.from.last().copied().unwrap_or(0);
        let mut is_torn = vec![false; turn.blocks.len()];
        torn.iter().for_each(|&number| is_torn[number] = true);
        let mut numbers = 0..;
        turn.blocks.retain(|_| numbers.next().is_some_and(|number| !is_torn[number]));
        for _ in &torn {
            self.find(&rule::SERVER_CALLS_ARE_WHOLE, at, "half of a call that the server made");
        }
        torn.first().copied()
    }

    pub(super) fn finish_anthropic(&mut self) {
        self.agree_on_citations();
        self.mark_for_cache();
        let is_assistants = |turn: &&Turn<'a>| turn.side == Side::Assistant && !turn.has_calls();
        if let Some(turn) = self.turns.last().filter(is_assistants)
            && self.wants_user_last()
        {
            let at = turn.from.last().copied().unwrap_or(0);
            self.find(&rule::LAST_FROM_THE_USER, at, "the assistant speaks last");
            let blocks = vec![Block::text(NO_MESSAGE)];
            self.turns.push(Turn { side: Side::User, blocks, name: None, from: Vec::new() });
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
                self.find(&rule::NO_TRAILING_SPACE, at, "the last message ends with white space");
            }
        }
    }

    /// Whether the model refuses to go on from words of its own.
    fn wants_user_last(&self) -> bool {
        let field = |key: &str| {
            let given = self.options.fields.iter().find(|(name, _)| *name == key);
            given.map(|(_, value)| *value)
        };
        let named = field("model").and_then(Str::of).map(Str::text);
        let model = self.options.model.or(named.as_deref());
        let thinks = field("thinking").and_then(|thinking| json::get_str(thinking, "type"));
        model.is_some_and(models::ends_with_user) || thinks.is_some_and(|it| !it.is("disabled"))
    }

    /// For Responses, reasoning is followed by what the model made of it.
    pub(super) fn finish_reasoning(&mut self) {
        let is_reasoning = |block: &Block<'_>| matches!(block, Block::Own { kind, .. } if kind.escaped() == "reasoning");
        let mut goes_on = false; // whether what follows is made by the model
        for number in (0..self.turns.len()).rev() {
            let turn = &mut self.turns[number];
            let is_assistant = turn.side == Side::Assistant;
            let may_end = is_assistant && goes_on && !turn.has_calls();
            let at = turn.from[0];
            let mut dropped = 0;
            while !may_end && turn.blocks.last().is_some_and(is_reasoning) {
                turn.blocks.pop();
                dropped += 1;
            }
            goes_on = match turn.blocks.is_empty() {
                true => goes_on,
                false => is_assistant,
            };
            for _ in 0..dropped {
                let why = "reasoning that is not followed by what came of it";
                self.find(&rule::REASONING_WITH_ITS_ITEM, at, why);
            }
        }
        self.turns.retain(|turn| !turn.blocks.is_empty());
        self.keep_item_ids();
        self.keep_own_items();
    }

    /// Items of OpenAI's own tools go back as they are, a call with its answer; without the other, each
    /// is said as an ordinary call or result.
    fn keep_own_items(&mut self) {
        for block in self.turns.iter_mut().flat_map(|turn| &mut turn.blocks) {
            let Block::Call(call) = block else { continue };
            let is_pair = |(asked, answered): (&str, &str)| {
                let names = |item: &str, key: &str| {
                    json::get_str(item, key).is_some_and(|id| id.escaped() == call.id)
                };
                let [call, output] = [asked, answered].map(|item| json::get_str(item, "type"));
                let is_its = |(call, output): (Str<'_>, Str<'_>)| {
                    output.escaped().strip_suffix("_output") == Some(call.escaped())
                };
                call.zip(output).is_some_and(is_its)
                    && names(asked, "call_id")
                    && (names(answered, "call_id") || names(answered, "id"))
            };
            if !call.extra.item.zip(call.answer.item).is_some_and(is_pair) {
                (call.extra.item, call.answer.item) = (None, None);
            }
        }
    }

    /// The provider knows which reasoning an item came of, and refuses the one without the other. So
    /// what the model said or called has its item's id only behind reasoning, and each id once.
    fn keep_item_ids(&mut self) {
        let mut given = HashSet::new();
        let mut is_behind = false;
        for turn in &mut self.turns {
            is_behind &= turn.side == Side::Assistant;
            for block in &mut turn.blocks {
                let extra = match block {
                    Block::Own { kind, .. } => {
                        is_behind |= kind.escaped() == "reasoning";
                        continue;
                    }
                    Block::Call(call) => &mut call.extra,
                    Block::Text { extra, .. } => extra,
                    _ => continue,
                };
                let id = extra.item_id.filter(|_| is_behind);
                extra.item_id = id.filter(|id| given.insert(id.escaped()));
            }
            is_behind &= !turn.has_calls(); // their results stand behind them
        }
    }

    /// Gemini 3 wants a signature on the first call of a turn.
    pub(super) fn sign_calls(&mut self) {
        let is_strict = self.options.model.is_some_and(models::signs_calls);
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
            self.find(&rule::SIGNED_CALLS, at, "a call without a signature of this model");
        }
    }
}
