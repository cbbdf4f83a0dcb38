//! Turns of blocks: the intermediate form between messages and a request.
//!
//! A [`Call`] contains its result, so a request with an unanswered call cannot be expressed. Texts are in
//! escaped form.

use std::borrow::Cow;
use std::rc::Rc;

use crate::json::{self, Str};
use crate::media::Media;

use super::originals::Original;

/// The role of a turn. Tool results are part of the assistant's calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    System,
    User,
    Assistant,
}

/// Consecutive blocks of one role. The results of its calls are written directly after the turn.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    pub(crate) side: Side,
    pub(crate) blocks: Vec<Block<'a>>,
    /// Name of the author, if the provider supports names.
    pub(crate) name: Option<Str<'a>>,
    /// Positions of its messages in the view. Empty for a placeholder.
    pub(crate) from: Vec<usize>,
    /// The bytes that are written instead of the blocks.
    pub(crate) original: Option<Rc<Original<'a>>>,
    /// True for a system text that is written as a message in the list of messages.
    pub(crate) is_listed: bool,
    /// True if an append can change the first byte of the turn.
    pub(crate) is_unstable: bool,
}

impl<'a> Turn<'a> {
    /// A turn of the user that is not in the view.
    pub(crate) fn placeholder(text: &'static str) -> Turn<'a> {
        let blocks = vec![Block::text(text)];
        let (side, name, from, original) = (Side::User, None, Vec::new(), None);
        Turn { side, blocks, name, from, original, is_listed: false, is_unstable: false }
    }

    pub(crate) fn calls(&self) -> impl Iterator<Item = &Call<'a>> {
        self.blocks.iter().filter_map(|block| match block {
            Block::Call(call) => Some(&**call),
            _ => None,
        })
    }

    /// True if the turn is written in the field of the request for system texts.
    pub(crate) fn is_in_system_field(&self) -> bool {
        let is_message = self.original.as_ref().is_some_and(|original| original.field.is_none());
        let is_listed = self.is_listed || is_message;
        self.side == Side::System && !is_listed
    }

    pub(crate) fn starts_with_thinking(&self) -> bool {
        self.blocks.first().is_some_and(Block::is_thinking)
    }

    pub(crate) fn has_calls(&self) -> bool {
        self.calls().next().is_some()
    }

    /// The calls whose results are written directly after the turn. The results of the other calls are in
    /// messages that keep their bytes.
    pub(crate) fn calls_with_converted_results(&self) -> impl Iterator<Item = &Call<'a>> {
        self.calls().filter(|call| !call.result.is_original)
    }
}

/// One piece of content.
#[derive(Debug)]
pub(crate) enum Block<'a> {
    Text {
        text: Cow<'a, str>,
        extra: Extra<'a>,
    },
    Refusal(Str<'a>),
    Media {
        media: Media<'a>,
        extra: Extra<'a>,
    },
    Thinking {
        text: Str<'a>,
        signature: Option<Str<'a>>,
    },
    /// A part that only this provider understands, unchanged.
    ProviderPart {
        kind: Str<'a>,
        json: Cow<'a, str>,
    },
    Call(Box<Call<'a>>),
}

impl<'a> Block<'a> {
    pub(crate) fn text(text: impl Into<Cow<'a, str>>) -> Block<'a> {
        Block::Text { text: text.into(), extra: Extra::default() }
    }

    /// True if the block is an item of OpenAI's Responses with an id.
    pub(crate) fn has_item_id(&self) -> bool {
        let has_id = |item: &str| json::get_str(item, "id").is_some_and(|id| !id.is_empty());
        match self {
            Block::Text { extra, .. } | Block::Media { extra, .. } => extra.item_id.is_some(),
            Block::Call(call) => {
                call.extra.item_id.is_some() || call.extra.item.is_some_and(has_id)
            }
            Block::ProviderPart { json, .. } => has_id(json),
            Block::Refusal(_) | Block::Thinking { .. } => false,
        }
    }

    pub(crate) fn is_thinking(&self) -> bool {
        match self {
            Block::Thinking { .. } => true,
            Block::ProviderPart { kind, .. } => {
                ["redacted_thinking", "bedrock_reasoningContent"].contains(&kind.escaped())
            }
            _ => false,
        }
    }
}

/// Fields of a block that only some providers have.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extra<'a> {
    pub(crate) signature: Option<Str<'a>>,
    pub(crate) cache_control: Option<&'a str>,
    pub(crate) citations: Option<&'a str>,
    /// Id of the item in OpenAI's Responses.
    pub(crate) item_id: Option<Str<'a>>,
    /// The whole item, if it belongs to a built-in tool of OpenAI.
    pub(crate) item: Option<&'a str>,
}

impl Extra<'_> {
    pub(crate) fn is_empty(&self) -> bool {
        self.cache_control.is_none() && !self.is_provider_specific()
    }

    /// True if a field may be sent only to the model that produced it.
    pub(crate) fn is_provider_specific(&self) -> bool {
        self.citations.is_some()
            || self.signature.is_some()
            || self.item_id.is_some()
            || self.item.is_some()
    }
}

/// A tool call with its result.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) id: Cow<'a, str>,
    pub(crate) name: Cow<'a, str>,
    pub(crate) input: Cow<'a, str>,
    pub(crate) is_custom: bool,
    pub(crate) reference: CallReference,
    pub(crate) extra: Extra<'a>,
    pub(crate) result: CallResult<'a>,
    /// Position of its message in the view.
    pub(crate) at: usize,
}

/// How a result refers to its call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallReference {
    Id,
    /// By the name of the tool, because the provider's form of the call has no id.
    Name,
    /// By the name, in a message of role `function`: the deprecated form of chat completions.
    Function,
}

/// The result of a tool call.
#[derive(Debug)]
pub(crate) struct CallResult<'a> {
    pub(crate) content: ResultContent<'a>,
    pub(crate) is_error: bool,
    pub(crate) cache_control: Option<&'a str>,
    /// The whole item in OpenAI's Responses, if it belongs to a built-in tool of OpenAI.
    pub(crate) item: Option<&'a str>,
    /// Position of its message in the view; `None` for a placeholder.
    pub(crate) from: Option<usize>,
    /// True if the message of the result keeps its bytes: it is a separate turn.
    pub(crate) is_original: bool,
}

/// The content of a result.
#[derive(Debug)]
pub(crate) enum ResultContent<'a> {
    /// A string, possibly empty.
    String(Cow<'a, str>),
    /// Texts, and the media and provider parts that the provider accepts in results.
    Blocks(Vec<Block<'a>>),
}

impl<'a> ResultContent<'a> {
    /// The blocks. Empty for a string.
    pub(crate) fn blocks(&self) -> &[Block<'a>] {
        match self {
            ResultContent::String(_) => &[],
            ResultContent::Blocks(blocks) => blocks,
        }
    }

    /// The texts, joined by newlines, in escaped form.
    pub(crate) fn joined(&self) -> Cow<'_, str> {
        match self {
            ResultContent::String(text) => Cow::Borrowed(text),
            ResultContent::Blocks(blocks) => {
                let texts: Vec<&str> = blocks
                    .iter()
                    .filter_map(|block| match block {
                        Block::Text { text, .. } => Some(&**text),
                        _ => None,
                    })
                    .collect();
                match texts[..] {
                    [only] => Cow::Borrowed(only),
                    _ => Cow::Owned(texts.join("\\n")),
                }
            }
        }
    }
}
