//! What is rendered, between reading and writing: turns of blocks.
//!
//! A call carries its answer, so a call without one cannot be written; nothing else ties turns
//! together. Texts are as they stand between quotes.

use std::borrow::Cow;

use crate::json::Str;
use crate::media::Media;

/// Whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    System,
    User,
    Assistant,
}

/// What one side says before the other does. The answers to the calls in it come right behind it.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    pub(crate) side: Side,
    pub(crate) blocks: Vec<Block<'a>>,
    /// Who speaks, where the provider has a place for it.
    pub(crate) name: Option<Str<'a>>,
    /// The positions of the messages that are in it; none for a placeholder.
    pub(crate) from: Vec<usize>,
}

impl<'a> Turn<'a> {
    pub(crate) fn calls(&self) -> impl Iterator<Item = &Call<'a>> {
        self.blocks.iter().filter_map(|block| match block {
            Block::Call(call) => Some(&**call),
            _ => None,
        })
    }

    pub(crate) fn has_calls(&self) -> bool {
        self.calls().next().is_some()
    }
}

/// One thing that is said.
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
    /// A part that only this provider understands, as it came.
    Own {
        kind: Str<'a>,
        json: Cow<'a, str>,
    },
    Call(Box<Call<'a>>),
}

impl<'a> Block<'a> {
    pub(crate) fn text(text: impl Into<Cow<'a, str>>) -> Block<'a> {
        Block::Text { text: text.into(), extra: Extra::default() }
    }

    pub(crate) fn is_thinking(&self) -> bool {
        match self {
            Block::Thinking { .. } => true,
            Block::Own { kind, .. } => kind.escaped() == "redacted_thinking",
            _ => false,
        }
    }
}

/// What may stand beside a block at its provider.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extra<'a> {
    pub(crate) signature: Option<Str<'a>>,
    pub(crate) cache_control: Option<&'a str>,
    pub(crate) citations: Option<&'a str>,
    /// The id of the item at OpenAI's Responses.
    pub(crate) item_id: Option<Str<'a>>,
    /// The whole item there, if it is of a tool of OpenAI's own.
    pub(crate) item: Option<&'a str>,
}

impl Extra<'_> {
    pub(crate) fn is_empty(&self) -> bool {
        self.cache_control.is_none() && !self.is_makers()
    }

    /// Whether something in it goes to its maker only.
    pub(crate) fn is_makers(&self) -> bool {
        self.citations.is_some()
            || self.signature.is_some()
            || self.item_id.is_some()
            || self.item.is_some()
    }
}

/// A tool call, with its answer.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) id: Cow<'a, str>,
    pub(crate) name: Cow<'a, str>,
    pub(crate) input: Cow<'a, str>,
    pub(crate) is_custom: bool,
    pub(crate) extra: Extra<'a>,
    pub(crate) answer: Answer<'a>,
    /// The position of its message.
    pub(crate) at: usize,
}

/// What a tool answered.
#[derive(Debug)]
pub(crate) struct Answer<'a> {
    pub(crate) content: AnswerContent<'a>,
    pub(crate) is_error: bool,
    pub(crate) cache_control: Option<&'a str>,
    /// The whole item at OpenAI's Responses, if it is of a tool of OpenAI's own.
    pub(crate) item: Option<&'a str>,
    /// The position of its message; `None` if nothing answered.
    pub(crate) from: Option<usize>,
}

/// What an answer says.
#[derive(Debug)]
pub(crate) enum AnswerContent<'a> {
    /// A string, perhaps empty.
    String(Cow<'a, str>),
    /// Texts and media that results can hold here.
    Blocks(Vec<Block<'a>>),
}

impl<'a> AnswerContent<'a> {
    /// What it says beside a string.
    pub(crate) fn blocks(&self) -> &[Block<'a>] {
        match self {
            AnswerContent::String(_) => &[],
            AnswerContent::Blocks(blocks) => blocks,
        }
    }

    /// Its texts, joined by newlines, as they stand between quotes.
    pub(crate) fn joined(&self) -> Cow<'_, str> {
        match self {
            AnswerContent::String(text) => Cow::Borrowed(text),
            AnswerContent::Blocks(blocks) => {
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
