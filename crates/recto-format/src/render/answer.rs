//! Calls, and what was answered to them.

use std::borrow::Cow;

use super::exchange::Place;
use super::plan::{Planner, Said, refusal, told_call};
use super::turn::{Answer, AnswerContent, Block, Call, Side};
use super::{NO_RESULT, Target, ids, rule};
use crate::json::{self, Str};
use crate::parts::Part;

impl<'a> Planner<'a, '_> {
    pub(super) fn say_call(
        &mut self,
        place: Place,
        part: &'a Part<'a>,
        said: &mut Said<'a>,
    ) -> Block<'a> {
        let at = place.0;
        let Part::ToolUse { id, name, input, .. } = *part else {
            return Block::text(""); // only calls come here
        };
        let result = self.exchanges.result_of(place);
        let with = result.map(|(result, _)| result);
        let fitted_id = ids::fit(id, &self.dialect.ids);
        if fitted_id.is_some() {
            self.find_with(
                &rule::IDS_FIT,
                at,
                with,
                format!("the id {:?} does not fit", id.text()),
            );
        }
        let fitted_name = ids::fit(name, &self.dialect.names);
        if fitted_name.is_some() {
            self.find(&rule::NAMES_FIT, at, format!("the name {:?} does not fit", name.text()));
        }
        let is_custom = self.dialect.has_custom_calls && part.is_custom_call();
        let input = self.say_input(at, input);
        let extra = self.extra(Side::Assistant, at, part);
        let answer = match result {
            Some(result) => self.say_answer(at, result, said),
            None => {
                let why = format!("the call {:?} has no result", id.text());
                self.find(&rule::ANSWERED_CALLS, at, why);
                Answer {
                    content: AnswerContent::String(Cow::Borrowed(NO_RESULT)),
                    is_error: false,
                    cache_control: None,
                    item: None,
                    from: None,
                }
            }
        };
        Block::Call(Box::new(Call {
            id: fitted_id.map_or(Cow::Borrowed(id.escaped()), Cow::Owned),
            name: fitted_name.map_or(Cow::Borrowed(name.escaped()), Cow::Owned),
            input,
            is_custom,
            extra,
            answer,
            at,
        }))
    }

    /// The input of a call, as this provider reads it.
    fn say_input(&mut self, at: usize, input: &'a str) -> Cow<'a, str> {
        if !self.dialect.input_is_object {
            return Cow::Borrowed(input);
        }
        let is_huge = json::has_huge_number(input);
        let why = match (is_huge, json::is_object(input)) {
            (false, true) => return Cow::Borrowed(input),
            (true, _) => "the input of a call has a number that no provider reads",
            (false, false) => "the input of a call is no object",
        };
        self.find(&rule::INPUT_IS_AN_OBJECT, at, why);
        match input {
            "null" => Cow::Borrowed("{}"),
            _ if is_huge => Cow::Owned(format!("{{\"input\":{}}}", json::string(input))),
            _ => Cow::Owned(format!("{{\"input\":{input}}}")),
        }
    }

    /// The result of a call. What results cannot hold comes behind all of them.
    fn say_answer(&mut self, call: usize, result: Place, said: &mut Said<'a>) -> Answer<'a> {
        let (at, number) = result;
        let Part::ToolResult { content, is_error, json, has_more, .. } =
            self.messages[at].parts[number]
        else {
            unreachable!("exchanges pair calls with results")
        };
        let content = match content.map(Str::of) {
            None => AnswerContent::String(Cow::Borrowed("")),
            Some(Some(text)) => AnswerContent::String(Cow::Borrowed(text.escaped())),
            Some(None) => {
                let (mut kept, mut moved) = (Vec::new(), false);
                let errors_are_text = is_error && self.dialect.target == Target::Anthropic;
                for block in self.say_content(at, content, !is_error) {
                    match &block {
                        Block::Own { .. } if errors_are_text => {
                            let why = "an error has only text, and no other part";
                            self.find(&rule::PARTS_FOR_THEIR_MAKER, at, why);
                        }
                        Block::Media { media, .. } => {
                            if (self.dialect.media_in_results)(media) && !errors_are_text {
                                kept.push(block);
                            } else {
                                moved = true;
                                said.aside.push(block);
                            }
                        }
                        _ => kept.push(block),
                    }
                }
                if moved {
                    let why = "a result cannot hold this image, audio or file";
                    self.find_with(&rule::MEDIA_WHERE_IT_MAY_STAND, at, Some(call), why);
                }
                match kept.is_empty() {
                    true => AnswerContent::String(Cow::Borrowed("")),
                    false => AnswerContent::Blocks(kept),
                }
            }
        };
        let is_empty = matches!(&content, AnswerContent::String(text) if text.is_empty());
        let content = match is_error && is_empty && self.dialect.target == Target::Anthropic {
            true => {
                self.find(&rule::ERRORS_SAY_SOMETHING, at, "an error without a text");
                AnswerContent::String(Cow::Borrowed(NO_RESULT))
            }
            false => content,
        };
        if is_error && !self.dialect.marks_errors {
            self.find(&rule::ERRORS_ARE_MARKED, at, "the result is marked as an error");
        }
        let may_be_marked = self.dialect.target == Target::Anthropic && has_more;
        Answer {
            content,
            is_error: is_error && self.dialect.marks_errors,
            item: self.own_item(at, &self.messages[at].parts[number]),
            cache_control: may_be_marked.then(|| json::get(json, "cache_control")).flatten(),
            from: Some(at),
        }
    }

    /// The content of a result: its texts and media.
    pub(super) fn say_content(
        &mut self,
        at: usize,
        content: Option<&'a str>,
        is_result: bool,
    ) -> Vec<Block<'a>> {
        let mut blocks = Vec::new();
        for part in flat(content) {
            match &part {
                Part::Text { text, .. } => {
                    blocks.extend(self.say_text(Side::User, at, *text, &part))
                }
                Part::Media(media) => blocks.extend(self.say_media(at, media)),
                Part::ToolUse { name, input, .. } => {
                    blocks.push(Block::text(told_call(*name, input)));
                }
                Part::ToolResult { .. } => {} // what is in it comes behind it
                Part::Thinking { .. } => {
                    self.find(&rule::THINKING_FOR_ITS_MAKER, at, "thinking inside a result");
                }
                Part::Other { kind, json } => match refusal(&part) {
                    Some(text) if self.has_text(text) => blocks.push(Block::text(text.escaped())),
                    None if self.takes_own(at, &kind.text(), json, is_result) => {
                        blocks.push(Block::Own { kind: *kind, json: Cow::Borrowed(json) });
                    }
                    _ => {
                        let why = format!("a part of type {:?} inside a result", kind.text());
                        self.find(&rule::PARTS_FOR_THEIR_MAKER, at, why);
                    }
                },
            }
        }
        blocks
    }

    /// Whether a part that only this provider understands may stand in a result, or where the content
    /// of one is kept as the user's.
    fn takes_own(&self, at: usize, kind: &str, json: &str, is_result: bool) -> bool {
        self.is_maker(at)
            && match is_result {
                true => (self.dialect.own_in_results)(kind),
                false => (self.dialect.own_parts)(kind, json, false),
            }
    }
}

/// The parts of a result, those of results inside it behind them.
pub(super) fn flat(content: Option<&str>) -> Vec<Part<'_>> {
    let mut flat = Vec::new();
    let mut open = vec![Part::of_result(content).into_iter()];
    while let Some(level) = open.last_mut() {
        match level.next() {
            None => drop(open.pop()),
            Some(part) => {
                if let Part::ToolResult { content, .. } = part {
                    open.push(Part::of_result(content).into_iter());
                }
                flat.push(part);
            }
        }
    }
    flat
}
