//! Conversion of the parts of a message to blocks. `calls.rs` converts tool calls and results.

use std::borrow::Cow;

use super::dialect::{Thinking, is_base64};
use super::ends::SKIP_SIGNATURE;
use super::exchange::PartPosition;
use super::plan::Planner;
use super::turn::{Block, Extra, Side};
use super::{RenderOptions, Target, models, openai_chat, openai_responses, rule};
use crate::format::item_of;
use crate::json::{self, Str};
use crate::media::{Media, MediaBody, MediaKind};
use crate::parts::Part;

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
    pub(super) fn convert_part(
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
                let block = self.convert_media(at, media);
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
                self.convert_other(side, position, part, *kind, json, converted);
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
    pub(super) fn convert_media(&mut self, at: usize, media: &Media<'a>) -> Block<'a> {
        let media = media.with_registered_type();
        let model = self.options.model.filter(|_| self.dialect.provider == "openai");
        if model.is_some_and(|model| models::rejects_media(model, media.kind))
            || self.is_rejected_file(&media)
        {
            let message = match media.kind {
                MediaKind::Image => "an image that the model does not accept",
                MediaKind::Audio => "audio that the model does not accept",
                MediaKind::File => "a file that the model does not accept",
            };
            self.report(&rule::MEDIA_FOR_THE_MODEL, at, message);
            return Block::text(placeholder_of(media.kind));
        }
        if (self.dialect.media_from_user)(&media) {
            let extra = self.extra(Side::User, at, &Part::Media(media));
            return Block::Media { media, extra };
        }
        if let MediaBody::Text(text) = media.body
            && self.has_text(text)
        {
            return Block::text(text.escaped());
        }
        let message = "an image, audio or file in a form that is not accepted here";
        self.report(&rule::MEDIA_HAS_A_FORM, at, message);
        Block::text(placeholder_of(media.kind))
    }

    /// True for a file with audio or video at OpenAI, which accepts documents only. Other servers accept
    /// more.
    fn is_rejected_file(&self, media: &Media<'_>) -> bool {
        let is_strict = match self.dialect.target {
            Target::OpenAiResponses => self.options.model.is_none_or(models::is_served_by_openai),
            Target::OpenAiChat => self.options.model.is_some_and(models::is_served_by_openai),
            _ => false,
        };
        let is_sound = match media.body {
            MediaBody::Base64 { media_type, .. } => {
                let name = media_type.text().to_ascii_lowercase();
                name.starts_with("audio/") || name.starts_with("video/")
            }
            MediaBody::Url(url) => has_sound_extension(&url.text()),
            _ => false,
        };
        is_strict && media.kind == MediaKind::File && is_sound
    }

    fn convert_other(
        &mut self,
        side: Side,
        position: PartPosition,
        part: &Part<'a>,
        kind: Str<'a>,
        json: &'a str,
        converted: &mut ConvertedParts<'a>,
    ) {
        let at = position.0;
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
        if kind.is("unread") && self.convert_unread(position, &mut converted.blocks) {
            return;
        }
        if self.is_from_target(at)
            && let Some(message) = self.missing_item(&kind.text(), json)
        {
            return self.report(&rule::STORED_ITEMS, at, message);
        }
        let is_assistant = side == Side::Assistant;
        let is_accepted = side != Side::System
            && self.is_from_target(at)
            && (self.dialect.provider_parts)(&kind.text(), json, is_assistant)
            && self.is_complete_item(at, &kind.text(), json);
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
                && !self.untyped_parts(at).is_empty()
            {
                return self.report(&rule::PARTS_HAVE_A_TYPE, at, "a part without a type");
            }
            // Only parts of the user can be media. Items of the model are not.
            if side == Side::User && self.options.model.is_some_and(models::is_text_only) {
                let message =
                    format!("a part of type {:?}, but the model accepts text", kind.text());
                return self.report(&rule::MEDIA_FOR_THE_MODEL, at, message);
            }
            let message = format!("a part of type {:?} that is not this provider's", kind.text());
            self.report(&rule::PARTS_OF_THE_PROVIDER, at, message);
        }
    }

    /// The placeholder for a block of Bedrock that Claude rejects; `None` for every other block.
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

    /// How an item of Responses violates a rule, if its content is not in the request and OpenAI has not
    /// stored it.
    fn missing_item(&self, kind: &str, json: &str) -> Option<&'static str> {
        let is_openai = self.options.model.is_none_or(models::is_openai);
        let is_stored = !self.options.fields.contains(&("store", "false"));
        if self.dialect.target != Target::OpenAiResponses || !is_openai {
            return None;
        }
        match kind {
            "item_reference" if !is_stored => Some("a reference to an item, and `store` is false"),
            "reasoning" if openai_responses::has_content(json, is_openai) => None,
            "reasoning" if !is_stored => {
                Some("reasoning without `encrypted_content`, and `store` is false")
            }
            "reasoning" if json::get_str(json, "id").is_none() => {
                Some("reasoning without `encrypted_content` and without an id")
            }
            _ => None,
        }
    }

    /// False for an item of Responses that lacks something. Reasoning needs content if `store` is false;
    /// OpenAI's models accept no id of another provider. A call that needs its output as an item, and this
    /// output, need each other in the same message.
    fn is_complete_item(&self, at: usize, kind: &str, json: &str) -> bool {
        if self.dialect.target != Target::OpenAiResponses {
            return true;
        }
        if kind == "reasoning" {
            let is_openai = self.options.model.is_none_or(models::is_openai);
            let id = json::get_str(json, "id");
            let is_stored = !self.options.fields.contains(&("store", "false"));
            return (is_stored || openai_responses::has_content(json, is_openai))
                && (!is_openai || id.is_none_or(|id| id.escaped().starts_with("rs")));
        }
        let Some(pair) = openai_responses::pair_of(kind) else { return true };
        let call_id = json::get_str(json, "call_id").map(Str::escaped);
        let is_pair = |part: &Part<'_>| match part {
            Part::Other { kind, json } => {
                kind.is(pair) && json::get_str(json, "call_id").map(Str::escaped) == call_id
            }
            _ => false,
        };
        self.messages[at].parts.iter().any(is_pair)
    }

    /// True if the target's provider produced the message and, if both models are known, so did the
    /// model of the request.
    pub(super) fn is_from_target(&self, at: usize) -> bool {
        let (provider, model) = (self.dialect.provider, self.options.model);
        let format = self.dialect.target.format().name();
        self.messages[at].source.is_some_and(|source| {
            // A message imported from a request names no producer, but the request was sent to this provider.
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
                    let takes = self.options.model.is_some_and(models::reads_reasoning);
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
        if !part.has_known_fields() {
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
}

/// File extensions of audio and video.
const SOUND_EXTENSIONS: &[&str] = &[
    "mp3", "wav", "m4a", "ogg", "oga", "opus", "flac", "aac", "aiff", "wma", "mp4", "m4v", "mov",
    "webm", "avi", "mkv", "mpeg", "mpg", "wmv",
];

/// True if the path of a URL ends with the extension of an audio or video file.
fn has_sound_extension(url: &str) -> bool {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let extension = path.rsplit_once('.').map(|(_, extension)| extension);
    extension.is_some_and(|it| SOUND_EXTENSIONS.iter().any(|known| it.eq_ignore_ascii_case(known)))
}

/// Placeholder for media that cannot be sent.
fn placeholder_of(kind: MediaKind) -> &'static str {
    match kind {
        MediaKind::Image => "[image]",
        MediaKind::Audio => "[audio]",
        MediaKind::File => "[file]",
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
