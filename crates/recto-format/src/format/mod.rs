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
//! 2. Add a variant to [`Format`] in `format_name.rs`, and its lines to [`Format::ALL`], [`Format::name`]
//!    and, here, [`Format::codec`]. If its files may be requests to a provider, add it to `has_requests` in
//!    `crates/recto/src/import.rs`; if it writes the name of the tool with a result, to `with_names` in
//!    `foreign_list.rs`; if its messages come from one provider but their source has no `provider`, to
//!    `target_of` in `crates/recto-service/src/provider_view.rs`; if its envelope has the name of the
//!    conversation, to `envelope` in `crates/recto-service/src/requests/export.rs`. If it is a folder with
//!    many files, `crates/recto-cli/src/opencode_storage.rs` is the example.
//! 3. Add files of the format to `tests/corpus/NAME` (`tests/it/corpus.rs` requires one), and its tests to
//!    `tests/it`: `recognise.rs` tests the recognition, `foreign_lists.rs` the formats that are lists.
//! 4. Add it to `docs/formats.md` (a test compares the page with [`Format::ALL`]), to the help of
//!    `recto import` (`crates/recto-cli/src/command/import.rs`), to `docs/files.md` if it has a file outside
//!    `format/`, and to `CHANGELOG.md`.

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
use std::io::{Read, Write};

use recto_core::Message;

use crate::export::{ExportOptions, Extent};
use crate::import::{Input, TranscriptWarning};
use crate::json::Str;
use crate::parts::MessageParts;
use crate::step_writer::StepWriter;
use crate::{Error, Format, unpack};

pub(crate) use head::{Head, Likelihood};
pub(crate) use openai_responses::item_of;

impl Format {
    /// Recognises the format of a file by its first 256 KiB. If a JSON file is longer, long strings and lists
    /// are abridged first.
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
