//! Forms that a provider rejects even in a message that was imported from its own format.
//!
//! An imported message counts as accepted (`originals.rs`), because most imported messages come from
//! requests that the provider answered. But a rejected request can be imported too. This module lists the
//! forms for which the error text of the provider is known and of which no accepted request is known. For
//! OpenAI and Anthropic, the name of the model decides whether the provider's own servers receive the
//! request, because routers and compatible servers accept more.

use std::collections::HashSet;

use recto_core::Role;

use super::rule::{self, Rule};
use super::{RenderOptions, Target, models};
use crate::format::anthropic::is_value;
use crate::json::{self, Str};
use crate::media::MediaKind;
use crate::parts::{MessageParts, Part};

/// An imported message, and the facts that decide whether the provider rejects its form.
#[derive(Clone, Copy)]
pub(super) struct ImportedForm<'a> {
    message: &'a MessageParts<'a>,
    target: Target,
    /// True if the provider's own servers receive the request.
    is_strict: bool,
    is_last: bool,
    /// True if the version of the API rejects documents of the assistant.
    rejects_documents: bool,
    /// True if the model rejects system messages in the list of messages.
    rejects_listed_system: bool,
}

impl<'a> ImportedForm<'a> {
    /// The form of the message at position `at`.
    pub(super) fn at(
        messages: &'a [MessageParts<'a>],
        at: usize,
        target: Target,
        options: &RenderOptions<'_>,
    ) -> ImportedForm<'a> {
        let (message, is_last) = (&messages[at], at + 1 == messages.len());
        let is_strict = match target {
            Target::OpenAiChat | Target::OpenAiResponses => {
                options.model.is_some_and(models::is_served_by_openai)
            }
            Target::Anthropic => options.model.is_none_or(models::is_claude),
            Target::Gemini | Target::BedrockConverse => true,
        };
        let rejects_documents =
            target == Target::Anthropic && models::rejects_documents(options.api_version);
        let rejects_listed_system = options.model.is_some_and(models::rejects_listed_system);
        ImportedForm {
            message,
            target,
            is_strict,
            is_last,
            rejects_documents,
            rejects_listed_system,
        }
    }

    /// True if the provider rejects the message for its violation of a rule that other imported messages
    /// may violate.
    pub(super) fn violates(&self, rule: &Rule) -> bool {
        let parts = &self.message.parts[..];
        let is_claude = self.target == Target::Anthropic && self.is_strict;
        let is_openai =
            matches!(self.target, Target::OpenAiChat | Target::OpenAiResponses) && self.is_strict;
        match *rule {
            rule::CALLS_FROM_THE_ASSISTANT | rule::ERRORS_SAY_SOMETHING => is_claude,
            rule::HAS_CONTENT => self.is_empty(),
            rule::IDS_FIT if is_claude => !parts.iter().filter_map(id).all(has_plain_characters),
            rule::IDS_FIT => is_openai,
            rule::INPUT_IS_AN_OBJECT => {
                is_claude && parts.iter().filter_map(input).any(|input| !json::is_object(input))
            }
            rule::MEDIA_WHERE_IT_MAY_STAND if self.rejects_documents => {
                self.message.role == Role::Assistant
            }
            rule::MEDIA_WHERE_IT_MAY_STAND => {
                is_openai && self.target == Target::OpenAiChat && parts.iter().any(has_image)
            }
            rule::NAMES_FIT if is_claude => {
                !parts.iter().filter_map(name).all(has_plain_characters)
            }
            rule::NAMES_FIT => is_openai,
            rule::NO_EMPTY_TEXT => self.has_rejected_text(),
            // A later turn may use an id again.
            rule::UNIQUE_IDS => is_claude || is_openai && self.repeats_an_id(),
            _ => false,
        }
    }

    /// True for a message without content. Only the last message of the assistant may have no content.
    fn is_empty(&self) -> bool {
        let message = self.message;
        let is_prefill = self.target == Target::Anthropic && self.is_prefill();
        // A system message without content changes the effort.
        let is_system = message.role == Role::System
            && self.target == Target::Anthropic
            && !self.rejects_listed_system;
        self.target != Target::OpenAiResponses
            && self.is_strict
            && (message.parts.is_empty() || self.has_empty_content())
            && !(is_prefill || self.is_field() || is_system)
    }

    /// True for a message that was in a field of the request other than the list of messages.
    fn is_field(&self) -> bool {
        self.message.source.is_some_and(|source| source.field.is_some())
    }

    /// True if two calls of the message have the same id.
    fn repeats_an_id(&self) -> bool {
        let mut known = HashSet::new();
        let is_call = |part: &&Part<'_>| matches!(part, Part::ToolUse { .. });
        let mut ids = self.message.parts.iter().filter(is_call).filter_map(id);
        ids.any(|id| !known.insert(id.escaped()))
    }

    fn is_prefill(&self) -> bool {
        self.is_last && (self.message.role == Role::Assistant || self.is_unread_answer())
    }

    /// True for a message of the assistant that import could not read. Such a message has the role of the
    /// user.
    fn is_unread_answer(&self) -> bool {
        let original = self.message.source.and_then(|source| source.original);
        let role = original.and_then(|original| json::get_str(original, "role"));
        role.is_some_and(|role| role.is("assistant"))
    }

    /// True if the list of parts is empty in the original form. Import does not read such a message.
    fn has_empty_content(&self) -> bool {
        let original = self.message.source.and_then(|source| source.original);
        original.is_some_and(|original| empty_field(original, &["content", "parts"]).is_some())
    }

    /// True if the provider rejects a text of the message. Anthropic rejects empty texts and messages that
    /// are only white space; Bedrock rejects every text that is only white space.
    fn has_rejected_text(&self) -> bool {
        let message = self.message;
        if message.role == Role::System {
            return false; // an empty `system` is accepted
        }
        let texts = message.parts.iter().filter_map(text);
        match self.target {
            Target::BedrockConverse => texts.into_iter().any(Str::is_blank),
            Target::Anthropic if self.is_strict => {
                let is_only = message.parts.len() == 1 && !self.is_prefill();
                texts
                    .into_iter()
                    .any(|text| text.is_blank() && is_only || text.is_empty() && !message.is_string)
            }
            _ => false,
        }
    }

    /// The rule that the original form of the message violates, if the parts do not show the violation.
    pub(super) fn violation(&self, original: &str) -> Option<(&'static Rule, String)> {
        if let Some(violation) = self.value_as_content(original) {
            return Some(violation);
        }
        match self.target {
            _ if !self.is_strict => None,
            Target::OpenAiChat if has_only_null(original) => {
                Some((&rule::HAS_CONTENT, "the content is null".to_owned()))
            }
            Target::OpenAiChat => empty_list(original),
            Target::OpenAiResponses => {
                part_of_another_role(original, self.message.role).or_else(|| foreign_id(original))
            }
            Target::Gemini if !self.is_field() => listed_system(original),
            _ => None,
        }
    }

    /// The violation by a content that is an object or a number.
    fn value_as_content(&self, original: &str) -> Option<(&'static Rule, String)> {
        let of_message = json::get(original, "content");
        let of_results = || {
            let blocks = of_message.filter(|content| json::is_list(content)).map(json::items);
            let is_result =
                |block: &&str| json::get_str(block, "type").is_some_and(|it| it.is("tool_result"));
            let results = blocks.into_iter().flatten().filter(is_result);
            results.filter_map(|block| json::get(block, "content")).find(|it| is_value(it))
        };
        let value = match self.target {
            Target::OpenAiChat => of_message.filter(|content| is_value(content)),
            Target::Anthropic => of_message.filter(|content| is_value(content)).or_else(of_results),
            _ => None,
        };
        value.map(|_| (&rule::CONTENT_IS_TEXT, "the content is a JSON value".to_owned()))
    }
}

/// The violation by an empty list of calls or parts.
fn empty_list(original: &str) -> Option<(&'static Rule, String)> {
    let key = empty_field(original, &["tool_calls", "content"])?;
    Some((&rule::NO_EMPTY_LISTS, format!("an empty list as {key}")))
}

/// True if all fields of the message other than its role and name are null or, except for its content, empty
/// lists.
fn has_only_null(original: &str) -> bool {
    let is_nothing = |value: &str| matches!(value, "null" | "[]");
    let mut fields = json::fields(original);
    fields.all(|(key, value)| {
        key.is("role")
            || key.is("name")
            || is_nothing(value) && !(key.is("content") && value == "[]")
    })
}

/// The first of these fields whose value is an empty list.
fn empty_field(original: &str, keys: &[&'static str]) -> Option<&'static str> {
    let is_empty = |key: &&str| {
        json::get(original, key)
            .is_some_and(|list| json::is_list(list) && json::items(list).next().is_none())
    };
    keys.iter().copied().find(is_empty)
}

/// The violation by a text of the assistant with the type of other roles, or the reverse.
fn part_of_another_role(original: &str, role: Role) -> Option<(&'static Rule, String)> {
    let content = json::get(original, "content").filter(|content| json::is_list(content))?;
    json::get_str(original, "role")?;
    let is_rejected = |kind: &str| match role {
        Role::Assistant => kind.starts_with("input_"),
        _ => matches!(kind, "output_text" | "refusal"),
    };
    let mut kinds = json::items(content).filter_map(|part| json::get_str(part, "type"));
    let kind = kinds.find(|kind| is_rejected(kind.escaped()))?;
    let message = format!("a part of type {:?} in a message of role {role}", kind.text());
    Some((&rule::PARTS_OF_THE_ROLE, message))
}

/// The violation by an item with an id of another provider. The ids of OpenAI start with the type of the item.
fn foreign_id(original: &str) -> Option<(&'static Rule, String)> {
    let id = json::get_str(original, "id")?;
    let prefix = match json::get_str(original, "type").map(Str::escaped) {
        Some("function_call") => "fc",
        Some("custom_tool_call") => "ctc",
        Some("message") => "msg",
        None if json::get(original, "role").is_some() => "msg",
        _ => return None,
    };
    let message = || format!("the id {:?} does not start with {prefix}", id.text());
    (!id.escaped().starts_with(prefix)).then(|| (&rule::ITEM_IDS, message()))
}

/// The violation by a message of role system in the list of Google's contents.
fn listed_system(original: &str) -> Option<(&'static Rule, String)> {
    let is_system = json::get_str(original, "role").is_some_and(|role| role.is("system"));
    let message = "a message of role system that the model does not accept";
    is_system.then(|| (&rule::SYSTEM_FOR_THE_MODEL, message.to_owned()))
}

fn id<'a>(part: &Part<'a>) -> Option<Str<'a>> {
    match part {
        Part::ToolUse { id, .. } | Part::ToolResult { id, .. } => Some(*id),
        _ => None,
    }
}

fn name<'a>(part: &Part<'a>) -> Option<Str<'a>> {
    match part {
        Part::ToolUse { name, .. } => Some(*name),
        _ => None,
    }
}

fn input<'a>(part: &Part<'a>) -> Option<&'a str> {
    match part {
        Part::ToolUse { input, .. } => Some(input),
        _ => None,
    }
}

fn text<'a>(part: &Part<'a>) -> Option<Str<'a>> {
    match part {
        Part::Text { text, .. } => Some(*text),
        _ => None,
    }
}

/// True for an image, also in a result.
fn has_image(part: &Part<'_>) -> bool {
    let is_image =
        |part: &Part<'_>| matches!(part, Part::Media(media) if media.kind == MediaKind::Image);
    match part {
        Part::ToolResult { content, .. } => Part::of_result(*content).iter().any(is_image),
        part => is_image(part),
    }
}

/// True if the text matches `^[a-zA-Z0-9_-]+$`.
fn has_plain_characters(text: Str<'_>) -> bool {
    let text = text.escaped();
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}
