//! Conversion of tool calls and their results.

use std::borrow::Cow;

use super::blocks::{ConvertedParts, call_as_text, refusal};
use super::exchange::PartPosition;
use super::plan::Planner;
use super::turn::{Block, Call, CallReference, CallResult, ResultContent, Side};
use super::{NO_RESULT, Target, ids, rule};
use crate::format::gemini;
use crate::json::{self, Str};
use crate::parts::Part;

impl<'a> Planner<'a, '_> {
    pub(super) fn convert_call(
        &mut self,
        position: PartPosition,
        part: &'a Part<'a>,
        converted: &mut ConvertedParts<'a>,
    ) -> Block<'a> {
        let at = position.0;
        let Part::ToolUse { id, name, input, .. } = *part else {
            return Block::text(""); // callers pass only calls
        };
        let result = self.exchanges.result_of(position);
        let with = result.map(|(result, _)| result);
        // A call that keeps its bytes keeps its id.
        let is_kept = self.originals.contains(at);
        let encoded_id = ids::encode(id, &self.dialect.ids).filter(|_| !is_kept);
        if encoded_id.is_some() {
            let message = format!("the id {:?} is not accepted here", id.text());
            self.report_with(&rule::IDS_FIT, at, with, message);
        }
        let encoded_name = ids::encode(name, &self.dialect.names).filter(|_| !is_kept);
        if encoded_name.is_some() {
            let message = format!("the name {:?} is not accepted here", name.text());
            self.report(&rule::NAMES_FIT, at, message);
        }
        let is_custom = self.dialect.has_custom_calls && part.is_custom_call();
        let input = self.convert_input(at, input);
        let extra = self.extra(Side::Assistant, at, part);
        let result = match result {
            Some(result) => self.convert_result(at, result, converted),
            None => {
                let message = format!("the call {:?} has no result", id.text());
                self.report(&rule::ANSWERED_CALLS, at, message);
                CallResult {
                    content: ResultContent::String(Cow::Borrowed(NO_RESULT)),
                    is_error: false,
                    cache_control: None,
                    item: None,
                    from: None,
                    is_original: false,
                }
            }
        };
        let reference = self.reference_to(at, id);
        Block::Call(Box::new(Call {
            id: encoded_id.map_or(Cow::Borrowed(id.escaped()), Cow::Owned),
            name: encoded_name.map_or(Cow::Borrowed(name.escaped()), Cow::Owned),
            input,
            is_custom,
            reference,
            extra,
            result,
            at,
        }))
    }

    /// How a result refers to the call with this id in the message at position `at`. Import generates ids
    /// for calls without one; the provider does not know them.
    fn reference_to(&self, at: usize, id: Str<'_>) -> CallReference {
        let id = id.escaped();
        let original = self.originals.at(at);
        match self.dialect.target {
            Target::Gemini if id.starts_with(gemini::GENERATED_ID) => CallReference::Name,
            Target::OpenAiChat => match original {
                Some(original) if !original.text.contains(id) => {
                    let call = json::get(&original.text, "function_call");
                    match call.is_some_and(json::is_object) {
                        true => CallReference::Function,
                        false => CallReference::Name,
                    }
                }
                _ => CallReference::Id,
            },
            _ => CallReference::Id,
        }
    }

    /// Converts the input of a call to a form that the provider accepts.
    fn convert_input(&mut self, at: usize, input: &'a str) -> Cow<'a, str> {
        if !self.dialect.input_is_object {
            return Cow::Borrowed(input);
        }
        let is_huge = json::has_huge_number(input);
        let message = match (is_huge, json::is_object(input)) {
            (false, true) => return Cow::Borrowed(input),
            (true, _) => "the input of a call has a number that exceeds a double",
            (false, false) => "the input of a call is not an object",
        };
        self.report(&rule::INPUT_IS_AN_OBJECT, at, message);
        match input {
            "null" => Cow::Borrowed("{}"),
            _ if is_huge => Cow::Owned(format!("{{\"input\":{}}}", json::string(input))),
            _ => Cow::Owned(format!("{{\"input\":{input}}}")),
        }
    }

    /// Converts the result of a call. Media that a result cannot contain becomes a block of the user.
    fn convert_result(
        &mut self,
        call: usize,
        result: PartPosition,
        converted: &mut ConvertedParts<'a>,
    ) -> CallResult<'a> {
        let (at, number) = result;
        let is_original = self.originals.contains(at);
        let Part::ToolResult { content, is_error, json, has_known_fields, .. } =
            self.messages[at].parts[number]
        else {
            unreachable!("an exchange pairs a call with a result")
        };
        let content = match content.map(Str::of) {
            None => ResultContent::String(Cow::Borrowed("")),
            // Bedrock rejects a blank text also in a result.
            Some(Some(text))
                if text.is_blank() && self.dialect.target == Target::BedrockConverse =>
            {
                ResultContent::String(Cow::Borrowed(""))
            }
            Some(Some(text)) => ResultContent::String(Cow::Borrowed(text.escaped())),
            Some(None) => {
                let (mut kept, mut moved) = (Vec::new(), false);
                let errors_are_text = is_error && self.has_rules_of_claude();
                for block in self.convert_result_content(at, content, !is_error) {
                    match &block {
                        Block::ProviderPart { .. } if errors_are_text => {
                            let message = "a part other than text in an error";
                            self.report(&rule::PARTS_OF_THE_PROVIDER, at, message);
                        }
                        Block::Media { media, .. } => {
                            if (self.dialect.media_in_results)(media) && !errors_are_text {
                                kept.push(block);
                            } else if !is_original {
                                moved = true;
                                converted.user_blocks.push(block);
                            }
                        }
                        _ => kept.push(block),
                    }
                }
                if moved {
                    let message = "an image, audio or file that is not accepted in a result";
                    self.report_with(&rule::MEDIA_WHERE_IT_MAY_STAND, at, Some(call), message);
                }
                match kept.is_empty() {
                    true => ResultContent::String(Cow::Borrowed("")),
                    false => ResultContent::Blocks(kept),
                }
            }
        };
        let is_empty = matches!(&content, ResultContent::String(text)
            if Str::escaped_text(text).is_blank());
        let content = match is_error && is_empty && self.has_rules_of_claude() {
            true => {
                self.report(&rule::ERRORS_SAY_SOMETHING, at, "an error without a text");
                ResultContent::String(Cow::Borrowed(NO_RESULT))
            }
            false => content,
        };
        if is_error && !self.dialect.has_error_flag {
            self.report(&rule::ERRORS_ARE_MARKED, at, "the result is marked as an error");
        }
        let may_have_mark = self.dialect.target == Target::Anthropic && has_known_fields;
        CallResult {
            content,
            is_error: is_error && self.dialect.has_error_flag,
            item: self.original_item(at, &self.messages[at].parts[number]),
            cache_control: may_have_mark.then(|| json::get(json, "cache_control")).flatten(),
            from: Some(at),
            is_original,
        }
    }

    /// Converts the content of a result. `is_result` is false if the content becomes blocks of the
    /// user.
    pub(super) fn convert_result_content(
        &mut self,
        at: usize,
        content: Option<&'a str>,
        is_result: bool,
    ) -> Vec<Block<'a>> {
        let mut blocks = Vec::new();
        for part in flat(content) {
            let replaced = match part {
                Part::Other { kind, json } => self.replaced_part(at, kind, json),
                _ => None,
            };
            match &part {
                Part::Text { text, .. } => {
                    blocks.extend(self.convert_text(Side::User, at, *text, &part))
                }
                Part::Media(media) => blocks.push(self.convert_media(at, media)),
                Part::ToolUse { name, input, .. } => {
                    blocks.push(Block::text(call_as_text(*name, input)));
                }
                Part::ToolResult { .. } => {} // `flat` lists its parts after it
                Part::Thinking { .. } => {
                    self.report(&rule::THINKING_FOR_ITS_MAKER, at, "thinking inside a result");
                }
                Part::Other { kind, json } => match refusal(&part) {
                    None if replaced.is_some() => blocks.extend(replaced),
                    Some(text) if self.has_text(text) => blocks.push(Block::text(text.escaped())),
                    None if self.accepts_provider_part(at, &kind.text(), json, is_result) => {
                        blocks.push(Block::ProviderPart { kind: *kind, json: Cow::Borrowed(json) });
                    }
                    _ => {
                        let message = format!("a part of type {:?} inside a result", kind.text());
                        self.report(&rule::PARTS_OF_THE_PROVIDER, at, message);
                    }
                },
            }
        }
        blocks
    }

    /// True if the target accepts a provider part inside a result or, if `is_result` is false, in a
    /// message of the user.
    fn accepts_provider_part(&self, at: usize, kind: &str, json: &str, is_result: bool) -> bool {
        self.is_from_target(at)
            && match is_result {
                true => (self.dialect.provider_parts_in_results)(kind),
                false => (self.dialect.provider_parts)(kind, json, false),
            }
    }
}

/// The parts of a result. A result inside it is followed by the parts of its own content.
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
