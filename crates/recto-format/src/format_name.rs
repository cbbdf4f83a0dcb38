//! The transcript formats and their names. `format/` has their codecs.

use std::fmt;

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
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
