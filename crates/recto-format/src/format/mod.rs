//! The formats: one file each.
//!
//! To add one, write a [`Codec`] in a file of its own, add its variant to [`Format`] and its line to
//! [`Format::codec`]. A format that is a list of messages writes a
//! [`MessageForm`](message_list::MessageForm) instead, and gets import, export, original bytes,
//! envelopes and JSON lines from `message_list.rs`; `openai_chat.rs` is the one to read first. Formats
//! that are trees or logs of events implement [`Codec`] directly.

mod anthropic;
mod chatgpt;
mod claude_code;
mod codex;
mod gemini;
mod head;
mod langchain;
pub(crate) mod message_list;
mod new_parts;
pub(crate) mod openai_chat;
mod openai_responses;
mod recto;
mod session_line;
mod sharegpt;
mod vercel;

use std::fmt;
use std::io::{Read, Write};

use recto_core::Message;

use crate::Error;
use crate::export::{ExportOptions, Extent};
use crate::import::{Input, Out, Remark};
use crate::unpack;

pub(crate) use head::{Head, Likelihood};
pub(crate) use openai_responses::item_of;

/// A format of transcripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Messages of OpenAI's chat completions: a list, a request with `messages`, or JSON lines of
    /// either.
    OpenAiChat,
    /// Items of OpenAI's Responses: a list, a request with `input`, an answer with `output`, or JSON
    /// lines.
    OpenAiResponses,
    /// Messages of Anthropic's Messages: a list, a request with `messages`, or JSON lines.
    Anthropic,
    /// Contents of Google's Gemini: a list, a request with `contents`, or JSON lines.
    Gemini,
    /// LangChain's messages: `messages_to_dict`, `dumps` or `model_dump`, or a state of LangGraph.
    LangChain,
    /// A session of Claude Code: JSON lines that form a tree.
    ClaudeCode,
    /// A rollout of codex: JSON lines, also packed with zstd.
    Codex,
    /// ChatGPT's export: the ZIP file, or a `conversations.json` from it.
    ChatGpt,
    /// ShareGPT conversations: a list or JSON lines.
    ShareGpt,
    /// Vercel's UI messages.
    Vercel,
    /// Recto's own messages.
    Recto,
}

impl Format {
    /// Every format. Where two look alike at first, the one that stands before wins.
    pub const ALL: &'static [Format] = &[
        Format::OpenAiChat,
        Format::OpenAiResponses,
        Format::Anthropic,
        Format::Gemini,
        Format::LangChain,
        Format::ClaudeCode,
        Format::Codex,
        Format::ChatGpt,
        Format::ShareGpt,
        Format::Vercel,
        Format::Recto,
    ];

    /// The name, as it is written on command lines and in `metadata.source.format`.
    pub fn name(self) -> &'static str {
        match self {
            Format::OpenAiChat => "openai-chat",
            Format::OpenAiResponses => "openai-responses",
            Format::Anthropic => "anthropic",
            Format::Gemini => "gemini",
            Format::LangChain => "langchain",
            Format::ClaudeCode => "claude-code",
            Format::Codex => "codex",
            Format::ChatGpt => "chatgpt",
            Format::ShareGpt => "sharegpt",
            Format::Vercel => "vercel",
            Format::Recto => "recto",
        }
    }

    /// The format of that name.
    pub fn named(name: &str) -> Option<Format> {
        Format::ALL.iter().copied().find(|format| format.name() == name)
    }

    /// Finds out the format from the first bytes of a file.
    pub fn recognise(file: impl Read) -> Result<Format, Error> {
        let head = Head::read(&mut unpack::open(Box::new(file))?)?;
        let mut best = (Likelihood::No, None);
        for &format in Format::ALL {
            let likelihood = format.codec().recognise(&head);
            if likelihood > best.0 {
                best = (likelihood, Some(format));
            }
        }
        best.1.ok_or(Error::UnknownFormat)
    }

    /// What reads and writes it.
    pub(crate) fn codec(self) -> &'static dyn Codec {
        match self {
            Format::OpenAiChat => &openai_chat::OpenAiChat,
            Format::OpenAiResponses => &openai_responses::OpenAiResponses,
            Format::Anthropic => &anthropic::Anthropic,
            Format::Gemini => &gemini::Gemini,
            Format::LangChain => &langchain::LangChain,
            Format::ClaudeCode => &claude_code::ClaudeCode,
            Format::Codex => &codex::Codex,
            Format::ChatGpt => &chatgpt::ChatGpt,
            Format::ShareGpt => &sharegpt::ShareGpt,
            Format::Vercel => &vercel::Vercel,
            Format::Recto => &recto::Recto,
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What reads and writes a format.
pub(crate) trait Codec: Sync {
    /// How much the start of a file looks like this format.
    fn recognise(&self, head: &Head) -> Likelihood;

    /// Reads a file and puts out steps.
    fn import(&self, input: &dyn Input, out: &mut Out<'_>) -> Result<(), Error>;

    /// Whether a field of an envelope became a message.
    fn is_message(&self, _key: &str, _value: &str) -> bool {
        false
    }

    /// Whether a foreign message is a Recto message with the same meaning.
    fn is_as_it_is(&self, _message: &str) -> bool {
        false
    }

    /// Writes messages, and says what the format has no place for.
    fn export(
        &self,
        messages: &mut dyn Iterator<Item = &Message>,
        extent: Extent,
        options: &ExportOptions<'_>,
        file: &mut dyn Write,
    ) -> Result<Vec<Remark>, Error>;
}
