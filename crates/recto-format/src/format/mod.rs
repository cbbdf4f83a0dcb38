//! Codecs of transcript formats, one file per format.
//!
//! To add a format:
//!
//! 1. Implement [`Codec`] in a new file. If the format is a list of messages, implement
//!    [`MessageCodec`](message_list::MessageCodec) instead: `message_list.rs` then provides import,
//!    export, original bytes, envelopes and JSON lines. `openai_chat.rs` is the example to start from.
//!    If it is a session (records, some of which contain messages), implement
//!    [`SessionCodec`](session::SessionCodec): `session.rs` provides trees, compactions and the records
//!    without messages. `pi.rs` is the example. `claude_code.rs`, `codex.rs` and `chatgpt.rs` implement
//!    [`Codec`] directly.
//!    `recognise` returns a [`Likelihood`]; `head.rs` explains its values. The largest one wins, and of
//!    equal ones the first format of [`Format::ALL`].
//! 2. Add a variant to [`Format`], and its lines to [`Format::ALL`], [`Format::name`] and
//!    [`Format::codec`]. If its files may be requests to a provider, add it to `has_requests` in
//!    `crates/recto/src/import.rs`; if it writes the name of the tool with a result, to `with_names` in
//!    `foreign_list.rs`.
//! 3. Add files of the format to `tests/corpus/NAME`, and its tests to `tests/it`; `recognise.rs` there
//!    tests the recognition.
//! 4. Add it to `docs/formats.md` (a test compares the page with [`Format::ALL`]), to the help of
//!    `recto import` (`crates/recto-cli/src/command/import.rs`) and to `CHANGELOG.md`.

mod abridged;
pub(crate) mod anthropic;
pub(crate) mod bedrock_converse;
mod chatgpt;
mod claude_code;
mod claude_stream;
mod codex;
mod copilot;
pub(crate) mod gemini;
mod gemini_cli;
mod gemini_responses;
mod head;
mod langchain;
mod librechat;
pub(crate) mod message_list;
mod new_parts;
mod openai_agents_js;
pub(crate) mod openai_chat;
mod openai_responses;
mod opencode;
mod openhands;
mod pending_lines;
mod pi;
mod pydantic_ai;
mod qwen_code;
mod recto;
mod session;
mod session_line;
mod sharegpt;
mod time;
mod vercel;
mod vercel_model;

use std::borrow::Cow;
use std::fmt;
use std::io::{Read, Write};

use recto_core::Message;

use crate::Error;
use crate::export::{ExportOptions, Extent};
use crate::import::{Input, TranscriptWarning};
use crate::json::Str;
use crate::parts::MessageParts;
use crate::step_writer::StepWriter;
use crate::unpack;

pub(crate) use head::{Head, Likelihood};
pub(crate) use openai_responses::item_of;

/// A transcript format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Messages of OpenAI's chat completions API: a list, a request with `messages`, or JSON lines of
    /// either.
    OpenAiChat,
    /// Items of the OpenAI Agents SDK for JavaScript: a list, or JSON lines.
    OpenAiAgentsJs,
    /// Items of OpenAI's Responses API: a list, a request with `input`, a response with `output`, or
    /// JSON lines.
    OpenAiResponses,
    /// Messages of Anthropic's Messages API: a list, a request with `messages`, or JSON lines.
    Anthropic,
    /// Contents of Google's Gemini API: a list, a request with `contents`, or JSON lines.
    Gemini,
    /// Messages of Amazon Bedrock's Converse API: a list, a request with `messages`, or JSON lines.
    BedrockConverse,
    /// Messages of LangChain, from `messages_to_dict`, `dumps` or `model_dump`, or a LangGraph state.
    LangChain,
    /// A session of Claude Code: JSON lines that form a tree.
    ClaudeCode,
    /// A rollout of codex: JSON lines, optionally compressed with zstd.
    Codex,
    /// Output of Claude Code with `--output-format stream-json`, or a session of Claude Code for the web.
    ClaudeStream,
    /// A session of pi or OpenClaw: JSON lines that form a tree.
    Pi,
    /// Events of OpenHands: JSON lines, a list, or documents with `history`.
    OpenHands,
    /// Responses of Google's Gemini API, also recorded streams.
    GeminiResponses,
    /// A session of Gemini CLI: a document with `messages`, or JSON lines.
    GeminiCli,
    /// A session of Qwen Code: JSON lines that form a tree.
    QwenCode,
    /// A session written by `opencode export`.
    OpenCode,
    /// Events of GitHub Copilot CLI: JSON lines.
    Copilot,
    /// LibreChat's export of a conversation.
    LibreChat,
    /// ChatGPT's data export: the ZIP file, or its `conversations.json`.
    ChatGpt,
    /// ShareGPT conversations: a list or JSON lines.
    ShareGpt,
    /// UI messages of Vercel's AI SDK.
    Vercel,
    /// Model messages of Vercel's AI SDK.
    VercelModel,
    /// Messages of Pydantic AI, from `ModelMessagesTypeAdapter`.
    PydanticAi,
    /// Recto's own messages.
    Recto,
}

impl Format {
    /// Every format. If several formats are equally likely for a file, the first of them is used.
    pub const ALL: &'static [Format] = &[
        // First, because items of this format may contain parts of the following formats.
        Format::OpenAiAgentsJs,
        Format::VercelModel,
        Format::PydanticAi,
        Format::OpenAiChat,
        Format::OpenAiResponses,
        Format::Anthropic,
        Format::Gemini,
        Format::BedrockConverse,
        Format::LangChain,
        Format::ClaudeCode,
        Format::Codex,
        Format::ClaudeStream,
        Format::Pi,
        Format::OpenHands,
        Format::GeminiResponses,
        Format::GeminiCli,
        Format::QwenCode,
        Format::OpenCode,
        Format::Copilot,
        Format::LibreChat,
        Format::ChatGpt,
        Format::ShareGpt,
        Format::Vercel,
        Format::Recto,
    ];

    /// Name of the format on command lines and in `metadata.source.format`.
    pub fn name(self) -> &'static str {
        match self {
            Format::OpenAiChat => "openai-chat",
            Format::OpenAiAgentsJs => "openai-agents-js",
            Format::OpenAiResponses => "openai-responses",
            Format::Anthropic => "anthropic",
            Format::Gemini => "gemini",
            Format::BedrockConverse => "bedrock-converse",
            Format::LangChain => "langchain",
            Format::ClaudeCode => "claude-code",
            Format::Codex => "codex",
            Format::ClaudeStream => "claude-stream",
            Format::Pi => "pi",
            Format::OpenHands => "openhands",
            Format::GeminiResponses => "gemini-responses",
            Format::GeminiCli => "gemini-cli",
            Format::QwenCode => "qwen-code",
            Format::OpenCode => "opencode",
            Format::Copilot => "copilot",
            Format::LibreChat => "librechat",
            Format::ChatGpt => "chatgpt",
            Format::ShareGpt => "sharegpt",
            Format::Vercel => "vercel",
            Format::VercelModel => "vercel-model",
            Format::PydanticAi => "pydantic-ai",
            Format::Recto => "recto",
        }
    }

    /// The format with this name.
    pub fn named(name: &str) -> Option<Format> {
        Format::ALL.iter().copied().find(|format| format.name() == name)
    }

    /// Recognises the format of a file by its first 256 KiB, in which long strings and lists are abridged.
    pub fn recognise(file: impl Read) -> Result<Format, Error> {
        let head = Head::read(&mut unpack::open(Box::new(file))?)?;
        let mut best = (Likelihood::No, None);
        for &format in Format::ALL {
            let likelihood = format.codec().recognise(&head);
            if likelihood > best.0 {
                best = (likelihood, Some(format));
            }
        }
        best.1.ok_or_else(|| Error::UnknownFormat { looks_like: head.describe() })
    }

    /// The codec of the format.
    pub(crate) fn codec(self) -> &'static dyn Codec {
        match self {
            Format::OpenAiChat => &openai_chat::OpenAiChat,
            Format::OpenAiAgentsJs => &openai_agents_js::OpenAiAgentsJs,
            Format::OpenAiResponses => &openai_responses::OpenAiResponses,
            Format::Anthropic => &anthropic::Anthropic,
            Format::Gemini => &gemini::Gemini,
            Format::BedrockConverse => &bedrock_converse::BedrockConverse,
            Format::LangChain => &langchain::LangChain,
            Format::ClaudeCode => &claude_code::ClaudeCode,
            Format::Codex => &codex::Codex,
            Format::ClaudeStream => &session::Session(claude_stream::ClaudeStream),
            Format::Pi => &session::Session(pi::Pi),
            Format::OpenHands => &session::Session(openhands::OpenHands),
            Format::GeminiResponses => &session::Session(gemini_responses::GeminiResponses),
            Format::GeminiCli => &session::Session(gemini_cli::GeminiCli),
            Format::QwenCode => &session::Session(qwen_code::QwenCode),
            Format::OpenCode => &session::Session(opencode::OpenCode),
            Format::Copilot => &session::Session(copilot::Copilot),
            Format::LibreChat => &session::Session(librechat::LibreChat),
            Format::ChatGpt => &chatgpt::ChatGpt,
            Format::ShareGpt => &sharegpt::ShareGpt,
            Format::Vercel => &vercel::Vercel,
            Format::VercelModel => &vercel_model::VercelModel,
            Format::PydanticAi => &pydantic_ai::PydanticAi,
            Format::Recto => &recto::Recto,
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Reader and writer of a format.
pub(crate) trait Codec: Sync {
    /// The likelihood that a file with this head has this format.
    fn recognise(&self, head: &Head) -> Likelihood;

    /// Reads a file and writes its steps to `out`.
    fn import(&self, input: &dyn Input, out: &mut StepWriter<'_>) -> Result<(), Error>;

    /// The messages of each foreign message of a list; `None` if the format is not a list of messages.
    fn read_list(&self, _messages: &[&str]) -> Option<Result<Vec<Vec<Message>>, Error>> {
        None
    }

    /// True if import converts this field of an envelope to a message.
    fn is_message(&self, _key: &str, _value: &str) -> bool {
        false
    }

    /// The field of a request that contains the list of messages; empty if there are no requests.
    fn list_key(&self) -> &'static str {
        ""
    }

    /// The bytes of the foreign message that was imported from this format as these messages; `None` if
    /// one of its pieces is missing.
    fn original<'a>(&self, _pieces: &[MessageParts<'a>]) -> Option<Cow<'a, str>> {
        None
    }

    /// True if the foreign message, or the value of this field of a request, is read as these messages: with
    /// their roles and contents.
    fn is_read_as(
        &self,
        _foreign: &str,
        _field: Option<Str<'_>>,
        _pieces: &[MessageParts<'_>],
    ) -> bool {
        false
    }

    /// True if a foreign message is also a Recto message with the same meaning.
    fn is_unchanged(&self, _message: &str) -> bool {
        false
    }

    /// Writes messages. Returns warnings about content that the format cannot represent.
    fn export(
        &self,
        messages: &mut dyn Iterator<Item = &Message>,
        extent: Extent,
        options: &ExportOptions<'_>,
        file: &mut dyn Write,
    ) -> Result<Vec<TranscriptWarning>, Error>;
}
