//! The rules of providers, as data. Rendering, lint and fix share the list.
//!
//! A [`Rule`] has three texts: `check` is the requirement, `repair` is what rendering does where a view
//! violates it, and `applies_to` names the models and messages. Its `evidence` lists the sources, and
//! `docs/rules.md` prints the table. A [`Finding`] is one violation. To add a rule, add it with a source to
//! the `rules!` list and report it in `plan.rs` or a file beside it; `models.rs` has the names of models.

use std::fmt;

use super::Target;

/// Severity of a violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Severity {
    /// The content is sent in another form. Nothing is lost.
    Note,
    /// Content is omitted or moved.
    Warning,
    /// The provider would reject the request.
    Error,
}

impl Severity {
    /// `note`, `warning` or `error`.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A requirement of providers on a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rule {
    /// Name of the rule.
    pub name: &'static str,
    /// The targets that require it.
    pub targets: &'static [Target],
    /// Severity of a violation.
    pub severity: Severity,
    /// How the rule concerns messages that keep their original bytes.
    pub(crate) traits: &'static [RuleTrait],
    /// The requirement.
    pub check: &'static str,
    /// What rendering does where a view violates the requirement.
    pub repair: &'static str,
    /// The models, API versions and messages to which it applies.
    pub applies_to: &'static str,
    /// Why the rule exists.
    pub evidence: &'static [Evidence],
}

impl Rule {
    pub(crate) fn has(&self, wanted: RuleTrait) -> bool {
        self.traits.contains(&wanted)
    }

    /// True if messages that keep their bytes can violate the rule: its repair does not change them.
    pub(crate) fn applies_to_kept_messages(&self) -> bool {
        self.has(RuleTrait::KeepsMessages) || self.has(RuleTrait::KeepsCalls)
    }
}

/// How a rule concerns messages that keep their original bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RuleTrait {
    /// An imported message cannot violate the rule, because the provider itself accepted or produced its
    /// bytes; `refused.rs` lists the exceptions. An imported message can violate a rule without this trait,
    /// for example because an edit has changed the messages around it or because the request has another
    /// model.
    AcceptedIfImported,
    /// A message of texts can violate the rule, if it was not imported.
    AboutTexts,
    /// The violation can end when a message is appended.
    CanEnd,
    /// The repair changes no message of the view: it adds a message or changes a field.
    KeepsMessages,
    /// The repair adds a result behind the message with the call.
    KeepsCalls,
    /// The repair only omits thinking, so the other bytes of the message can stay.
    OmitsThinking,
}

/// A source of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Evidence {
    /// Kind of the source.
    pub kind: EvidenceKind,
    /// The day on which the source was read, such as `2026-11-18`.
    pub date: &'static str,
    /// The error text, the page, or a description of the recorded request and its verdict.
    pub text: &'static str,
}

/// Kind of a source of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EvidenceKind {
    /// A recorded request and the verdict of its provider, or a report of one.
    Recorded,
    /// The wording of a page of the provider's documentation, perhaps quoted by a public report.
    Documentation,
    /// A text with which the provider rejects requests, as public reports quote it.
    ErrorText,
    /// The request types in a package of the provider, or those in its reference of the API.
    RequestTypes,
}

impl EvidenceKind {
    /// `recorded verdict`, `documentation`, `error text` or `request types`.
    pub fn as_str(self) -> &'static str {
        match self {
            EvidenceKind::Recorded => "recorded verdict",
            EvidenceKind::Documentation => "documentation",
            EvidenceKind::ErrorText => "error text",
            EvidenceKind::RequestTypes => "request types",
        }
    }
}

const ALL: &[Target] = &Target::ALL;
const ANTHROPIC: &[Target] = &[Target::Anthropic];
const GEMINI: &[Target] = &[Target::Gemini];
const CHAT: &[Target] = &[Target::OpenAiChat];
const SYSTEM_BY_MODEL: &[Target] =
    &[Target::OpenAiChat, Target::OpenAiResponses, Target::Anthropic, Target::Gemini];
const OPENAI: &[Target] = &[Target::OpenAiChat, Target::OpenAiResponses];
const RESPONSES: &[Target] = &[Target::OpenAiResponses];
const REJECT_UNIONS: &[Target] =
    &[Target::OpenAiChat, Target::OpenAiResponses, Target::Anthropic, Target::BedrockConverse];
const TYPED: &[Target] = &[Target::OpenAiChat, Target::OpenAiResponses, Target::Anthropic];
const VALUES_ARE_REFUSED: &[Target] = &[Target::OpenAiChat, Target::Anthropic];
const TURNS: &[Target] = &[Target::Anthropic, Target::Gemini, Target::BedrockConverse];
const BEDROCK: &[Target] = &[Target::BedrockConverse];
const CLAUDE: &[Target] = &[Target::Anthropic, Target::BedrockConverse];
const USER_FIRST: &[Target] = &[Target::Gemini, Target::BedrockConverse];

/// Declares a constant for each rule, and the list of all rules.
macro_rules! rules {
    ($($id:ident $name:literal $targets:ident $severity:ident [$($flag:ident)*] $check:literal $repair:literal
        $applies_to:literal [$($kind:ident $date:literal $text:literal,)*])*) => {
        $(pub(crate) const $id: Rule = Rule {
            name: $name,
            targets: $targets,
            severity: Severity::$severity,
            traits: &[$(RuleTrait::$flag),*],
            check: $check,
            repair: $repair,
            applies_to: $applies_to,
            evidence: &[$(Evidence { kind: EvidenceKind::$kind, date: $date, text: $text }),*],
        };)*

        /// Every rule.
        pub const RULES: &[Rule] = &[$($id),*];
    };
}

rules! {
    ANSWERED_CALLS "answered_calls" ALL Error [CanEnd KeepsCalls]
        "every tool call has a result before the next turn"
        "a marked placeholder stands for the missing result"
        "all models"
        [
            ErrorText "2026-11-18" "Anthropic: `tool_use` ids were found without `tool_result` blocks immediately after",
            ErrorText "2026-11-18" "OpenAI chat: An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'",
            ErrorText "2026-11-18" "Gemini: the number of function response parts is equal to the number of function call parts",
            Recorded "2026-11-18" "a Responses request with a call whose output was missing where it was expected was refused: No tool output found for tool call",
        ]
    RESULTS_FOLLOW_CALLS "results_follow_calls" ALL Error []
        "results directly follow their call, those of parallel calls together"
        "the result is moved after its call"
        "all models"
        [
            Recorded "2026-11-18" "a Responses request with a message between two parallel calls and their outputs was refused: No tool output found for tool call",
        ]
    RESULTS_HAVE_CALLS "results_have_calls" ALL Error [AboutTexts]
        "a result has a call before it"
        "its content is kept as text from the user"
        "all models; a request that continues a stored response (`previous_response_id`, `conversation`) or thread (`thread`) or has an item reference may have results without calls; without fields, lint accepts an imported result whose call was not in the request"
        [
            ErrorText "2026-11-18" "Anthropic: unexpected `tool_use_id` found in `tool_result` blocks",
            ErrorText "2026-11-18" "OpenAI chat: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'",
            Recorded "2026-11-18" "Responses requests with `previous_response_id` and an output without its call were accepted",
            Documentation "2026-11-16" "platform.claude.com/docs/en/build-with-claude/message-threads: a request that continues a thread has only the new messages",
        ]
    ONE_RESULT_A_CALL "one_result_a_call" ALL Error []
        "a call has one result"
        "the first result is used; the content of the others is kept as text from the user"
        "all models"
        [
            ErrorText "2026-11-18" "Anthropic: each tool_use must have a single result. Found multiple `tool_result` blocks",
        ]
    CALLS_FROM_THE_ASSISTANT "calls_from_the_assistant" ALL Error [AcceptedIfImported]
        "only the assistant calls tools"
        "the call is kept as text"
        "all models"
        [
            ErrorText "2026-11-18" "Anthropic: `tool_use` blocks can only be in `assistant` messages",
        ]
    UNIQUE_IDS "unique_ids" ALL Error [AcceptedIfImported]
        "no two calls have the same id"
        "a number is appended to the id of the later call and of its result"
        "all models; imported messages keep ids that a later turn uses again, and at compatible servers all repeated ids"
        [
            ErrorText "2026-11-18" "Anthropic: `tool_use` ids must be unique",
            ErrorText "2026-11-19" "OpenAI chat: Invalid parameter: Duplicate value for 'tool_call_id' of 'call_1', in messages[4] and messages[5].",
            Recorded "2026-11-18" "chat requests that use the id of a call again in a later turn were accepted",
        ]
    IDS_FIT "ids_fit" ALL Error [AcceptedIfImported]
        "ids of calls have only characters, and a length, that the provider accepts"
        "the id of the call and its result is encoded by a function of the id alone"
        "all models; imported messages keep their ids, except for ids that Anthropic (characters) and OpenAI (length) reject"
        [
            ErrorText "2026-11-18" "Anthropic: String should match pattern '^[a-zA-Z0-9_-]+$'",
            ErrorText "2026-11-18" "OpenAI: Expected a string with maximum length 40 (chat) or 64 (Responses)",
            Recorded "2026-11-18" "a router with the chat interface accepted an id of more than 40 characters",
        ]
    NAMES_FIT "names_fit" ALL Error [AcceptedIfImported]
        "names of tools have only characters, and a length, that the provider accepts"
        "the name is encoded by a function of the name alone"
        "all models"
        [
            ErrorText "2026-11-18" "OpenAI: Invalid 'tools[n].name': string too long. Expected a string with maximum length 64",
            ErrorText "2026-11-18" "OpenAI: string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'",
            ErrorText "2026-11-18" "Gemini: Invalid function name. Must start with a letter or an underscore. Must be a-z, A-Z, 0-9, or contain underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 64.",
        ]
    INPUT_IS_AN_OBJECT "input_is_an_object" TURNS Error [AcceptedIfImported]
        "the input of a call is a JSON object whose numbers fit into a double"
        "it is wrapped: {\"input\": …}"
        "all models"
        [
            ErrorText "2026-11-18" "Anthropic: tool_use.input: Input should be a valid dictionary",
        ]
    NO_EMPTY_TEXT "no_empty_text" CLAUDE Error [AcceptedIfImported AboutTexts]
        "no text is empty or only white space"
        "the empty text is omitted"
        "all models; imported messages keep their texts, except for empty blocks and messages of white space only"
        [
            ErrorText "2026-11-18" "Anthropic: text content blocks must be non-empty; text content blocks must contain non-whitespace text",
            ErrorText "2026-11-18" "Bedrock: The text field in the ContentBlock object is blank. Add text to the text field, and try again.",
            Recorded "2026-11-18" "a text of one space beside a call was accepted by Anthropic; empty texts were accepted by Gemini, chat completions and Responses",
        ]
    ERRORS_SAY_SOMETHING "errors_say_something" CLAUDE Error [AcceptedIfImported]
        "a result that is an error has a text and nothing else"
        "a marked placeholder stands for the missing text"
        "all models of Anthropic; at Bedrock, Claude"
        [
            ErrorText "2026-11-18" "Anthropic: content cannot be empty if `is_error` is true",
        ]
    HAS_CONTENT "has_content" ALL Error [AcceptedIfImported AboutTexts]
        "a message has content"
        "a message without content is omitted; between two messages of the assistant, a marked placeholder replaces one from the user"
        "all models"
        [
            ErrorText "2026-11-18" "Gemini: contents.parts must not be empty; Bedrock: The content field in the Message object is empty; OpenAI chat: Invalid value for 'content': expected a string, got null",
            ErrorText "2026-11-18" "Anthropic: all messages must have non-empty content except for the optional final assistant message",
        ]
    FIRST_FROM_THE_USER "first_from_the_user" USER_FIRST Error [KeepsMessages]
        "the first message is from the user"
        "a marked placeholder is added as the first message"
        "all models; at Bedrock, an imported first message of the assistant stays"
        [
            ErrorText "2026-11-18" "Gemini: Please ensure that function call turn comes immediately after a user turn or after a function response turn",
            ErrorText "2026-11-18" "Bedrock: A conversation must start with a user message",
            Recorded "2026-11-18" "a Converse request to Claude that starts with the assistant was accepted",
            Recorded "2026-11-18" "each of 380 accepted Gemini requests starts with the user; Anthropic accepted requests that start with the assistant, also with a call",
        ]
    LAST_FROM_THE_USER "last_from_the_user" CLAUDE Error [KeepsMessages]
        "the last message is from the user, for models that do not continue their own message (Claude 4.6 and later) and if thinking is enabled"
        "a marked placeholder is added as the last message"
        "Claude 4.6 and later, Claude Fable and Mythos, and requests with thinking enabled; a message that ends with a call of a tool that the provider runs, its result, or a compaction is continued"
        [
            Documentation "2026-11-19" "platform.claude.com/docs/en/about-claude/models/whats-new-claude-4-6: a last message of the assistant returns an error 400 for Claude 4.6 models",
            Documentation "2026-11-19" "platform.claude.com/docs/en/build-with-claude/prompt-engineering/prefill-claudes-response: only without extended thinking",
            ErrorText "2026-11-18" "Anthropic: This model does not support assistant message prefill. The conversation must end with a user message.",
            Documentation "2026-11-19" "platform.claude.com/docs/en/build-with-claude/compaction: with `pause_after_compaction`, the response with the compaction block is sent back as the last message and the model continues",
        ]
    ALTERNATION "alternation" TURNS Note [AcceptedIfImported]
        "messages of user and assistant alternate"
        "consecutive messages of one role are merged"
        "all models; imported messages stay separate at Anthropic and Google, and are joined at Bedrock"
        [
            Recorded "2026-11-18" "Anthropic accepted two consecutive messages of the user, with texts or with results and a text, and consecutive calls of the assistant; Google accepted the same",
            ErrorText "2026-11-18" "Bedrock: A conversation must alternate between user and assistant roles",
            Documentation "2026-11-18" "platform.claude.com/docs/en/api/messages: consecutive turns of one role are combined into a single turn",
        ]
    SYSTEM_IN_FRONT "system_in_front" TURNS Warning [AcceptedIfImported AboutTexts]
        "system messages precede all other messages"
        "a later system message is kept in its position as text from the user"
        "all models; Claude Opus 4.8 and later accept a system message in the list of messages: one that was imported stays there, and one between a message of the user and one of the assistant, or at the end after the user, is written there; one without content, which changes the effort, may be at any position"
        [
            Documentation "2026-11-18" "platform.claude.com/docs/en/api/messages: `system` is a field of the request",
            Recorded "2026-11-18" "requests to Claude Opus 4.8 and Claude Fable 5 with a message of role system after a message of the user were accepted, each as the last message or before one of the assistant",
            Documentation "2026-11-18" "platform.claude.com/docs/en/about-claude/models/whats-new-claude-4-8: messages of role system are accepted immediately after a turn of the user",
            ErrorText "2026-11-19" "Anthropic: role 'system' must precede an 'assistant' message or end the array",
            Documentation "2026-11-19" "platform.claude.com/docs/en/build-with-claude/effort-per-message: a system message without content changes the effort, and may be at any position",
            Documentation "2026-11-19" "platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages: `tool_addition` and `tool_removal` blocks are in messages of role system, with the header `anthropic-beta: mid-conversation-tool-changes-2026-07-01`",
        ]
    THINKING_FOR_ITS_MAKER "thinking_for_its_maker" ALL Warning [OmitsThinking]
        "thinking and signatures are sent only to the model that produced them"
        "thinking and signatures of other models are omitted"
        "signed thinking and `reasoning_details`: the model that produced it; `reasoning_content` in chat completions: DeepSeek, Kimi, Qwen, and GLM 4.5 and later"
        [
            ErrorText "2026-11-18" "Anthropic: Invalid `signature` in `thinking` block",
            ErrorText "2026-11-18" "DeepSeek and Moonshot: the reasoning_content in the thinking mode must be passed back to the API",
            Recorded "2026-11-18" "requests with `reasoning_content` were accepted for DeepSeek and Qwen models, and with `reasoning_details` by a router",
            Documentation "2026-11-19" "docs.z.ai/guides/capabilities/thinking-mode: reasoning must be returned unchanged, together with the results of tools",
            Documentation "2026-11-18" "openrouter.ai/docs/best-practices/reasoning-tokens: the sequence of reasoning_details must be passed back as the model produced it",
        ]
    CALLS_HAVE_REASONING "calls_have_reasoning" CHAT Note [AcceptedIfImported]
        "a message with calls has the reasoning that led to them"
        "`reasoning_content` with one space is added"
        "DeepSeek 3.2 and later, and Kimi 2.5 and later, unless `thinking.type` is `disabled`"
        [
            ErrorText "2026-11-19" "Kimi: thinking is enabled but reasoning_content is missing in assistant tool call message at index 2",
            ErrorText "2026-11-19" "DeepSeek: The `reasoning_content` in the thinking mode must be passed back to the API.",
            Recorded "2026-11-19" "in each accepted request to deepseek-v4-flash and deepseek-reasoner, messages with calls have `reasoning_content`, unless thinking is disabled",
        ]
    THINKING_OF_ITS_PREFIX "thinking_of_its_prefix" ANTHROPIC Warning [OmitsThinking]
        "thinking is sent only after the messages after which it was produced"
        "thinking after an edit of earlier messages is omitted"
        "Claude Fable and Mythos 5.1, all Claude models since 5.5; requests whose field `thinking` sets `block_binding.prefix_mismatch_behavior` to `drop_block` (header `anthropic-beta: thinking-binding-controls-2026-08-01`) keep it"
        [
            Documentation "2026-11-16" "platform.claude.com/docs/en/build-with-claude/preserved-thinking: a thinking block is valid only if `system`, `tools` and all messages before it are those after which it was produced",
            ErrorText "2026-11-16" "Anthropic: The block is bound to a different conversation",
            Documentation "2026-11-19" "platform.claude.com/docs/en/build-with-claude/compaction-thinking-blocks: thinking in turns that are kept unchanged directly after a signed compaction block stays valid",
        ]
    CITATIONS_FROM_THE_ASSISTANT "citations_from_the_assistant" ANTHROPIC Warning []
        "texts of the user have no citations"
        "citations in texts of the user are omitted"
        "API version 2026-10-21 and later, which also reject the fields `temperature`, `top_p` and `top_k`, and documents from the assistant (`media_where_it_may_stand`)"
        [
            Documentation "2026-11-16" "platform.claude.com/docs/en/api/versioning: version 2026-10-21 answers 400 to these fields, to documents in messages of the assistant, and to citations in texts of the user",
        ]
    THINKING_IS_NOT_LAST "thinking_is_not_last" CLAUDE Error [CanEnd]
        "a message of the assistant does not end with thinking"
        "thinking at its end is omitted"
        "all models of Anthropic; at Bedrock, Claude"
        [
            ErrorText "2026-11-18" "Anthropic: The final block in an assistant message cannot be `thinking`.",
        ]
    THINKING_FIRST "thinking_first" CLAUDE Error [KeepsMessages]
        "a turn of the assistant that has thinking starts with it"
        "a marked placeholder of the user is added before the message with thinking"
        "all models of Anthropic; at Bedrock, Claude; imported messages keep their order of blocks"
        [
            ErrorText "2026-11-18" "Anthropic: If an assistant message contains any thinking blocks, the first block must be `thinking` or `redacted_thinking`. Found `text`.",
            Recorded "2026-11-18" "each accepted message with thinking starts with it, also those with further thinking after calls of the server",
        ]
    THINKING_OF_THE_LAST_CALLS "thinking_of_the_last_calls" ANTHROPIC Note [KeepsMessages]
        "if thinking is enabled, the turn with the last calls starts with thinking"
        "the request disables thinking"
        "requests with `thinking.type` `enabled`; `adaptive` does not require it"
        [
            ErrorText "2026-11-18" "Anthropic: When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks). To avoid this requirement, disable `thinking`",
            Recorded "2026-11-18" "a request with adaptive thinking whose last calls had no thinking was accepted",
        ]
    NO_TRAILING_SPACE "no_trailing_space" CLAUDE Error [AboutTexts CanEnd]
        "a last message from the assistant does not end with white space"
        "the white space at its end is omitted"
        "models of Anthropic that accept a last message from the assistant; at Bedrock, Claude"
        [
            ErrorText "2026-11-18" "Anthropic: final assistant content cannot end with trailing whitespace",
        ]
    SERVER_CALLS_ARE_WHOLE "server_calls_are_whole" ANTHROPIC Error [CanEnd]
        "a call made by the provider's server and its result are in one turn"
        "a call without its result, or a result without its call, is omitted"
        "all models; imported calls in flight are accepted: beside a call of the client, with the result in a later message, or in the last message (`pause_turn`)"
        [
            ErrorText "2026-11-18" "Anthropic: Each `advisor_tool_result` block must have a corresponding `server_tool_use` block before it",
            Recorded "2026-11-18" "a request with an MCP call in flight and a call that the client had answered was accepted",
            Documentation "2026-11-18" "platform.claude.com/docs/en/build-with-claude/handling-stop-reasons: after `pause_turn`, the response is sent back as the last message and the model continues",
        ]
    REASONING_WITH_ITS_ITEM "reasoning_with_its_item" RESPONSES Error [CanEnd]
        "a reasoning item is followed by the output that the model produced from it"
        "reasoning without output is omitted"
        "OpenAI's models: the item after reasoning with an id has an id; reasoning without an id, and models of other providers: any output of the model"
        [
            ErrorText "2026-11-18" "OpenAI: Item 'rs_…' of type 'reasoning' was provided without its required following item",
            Recorded "2026-11-18" "in each accepted request to OpenAI the item after reasoning has its id; xAI and DeepSeek accepted items without ids",
        ]
    STORED_ITEMS "stored_items" RESPONSES Error []
        "a request with `store: false` refers to no stored item: its reasoning has `encrypted_content`, and it has no item references"
        "the item is omitted"
        "OpenAI's models; without `store: false`, only reasoning that has neither `encrypted_content` nor an id"
        [
            ErrorText "2026-11-19" "OpenAI: Item with id 'rs_…' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input.",
            Recorded "2026-11-19" "an accepted request with `store: false` has reasoning with `encrypted_content`; DeepSeek and xAI accepted reasoning without it",
        ]
    SIGNED_CALLS "signed_calls" GEMINI Note [AcceptedIfImported]
        "for Gemini 3 and later, the first call of a turn is signed"
        "a call without a signature gets the one that Google documents for this purpose"
        "Gemini 3 and later"
        [
            Documentation "2026-11-18" "ai.google.dev/gemini-api/docs/thought-signatures: the first call of a turn has a signature; a constant replaces it for calls of other origin",
        ]
    PARTS_OF_THE_PROVIDER "parts_of_the_provider" ALL Warning [AcceptedIfImported]
        "a part that only one provider understands is sent only to that provider"
        "parts of other providers are omitted"
        "all models"
        [
            Recorded "2026-11-18" "a request to DeepSeek with a part of another provider was refused: unknown variant, expected `text`",
        ]
    MEDIA_HAS_A_FORM "media_has_a_form" ALL Warning [AcceptedIfImported]
        "an image, audio or file is in a form that the provider accepts"
        "a marked placeholder replaces media in any other form"
        "all models"
        [
            ErrorText "2026-11-18" "Anthropic: image.source.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'",
            ErrorText "2026-11-18" "OpenAI: You uploaded an unsupported image. Please make sure your image is of one the following formats: ['png', 'jpeg', 'gif', 'webp'].",
        ]
    MEDIA_FOR_THE_MODEL "media_for_the_model" ALL Error []
        "the model accepts the kind of media; OpenAI's files are not audio or video"
        "a marked placeholder replaces the media"
        "video and files stored in S3: Claude at Bedrock; audio: OpenAI's models without `audio` in their name reject it; DeepSeek models without vision accept only text, and files at routers, which read them; files that are audio or video: OpenAI's models at OpenAI and Azure"
        [
            Recorded "2026-11-18" "requests with audio to GPT-5 models were refused: Content blocks are expected to be either text or image_url type",
            Recorded "2026-11-18" "requests with images, audio and files to DeepSeek were refused: unknown variant, expected `text`",
            Recorded "2026-11-18" "Converse requests to Claude with video, or with an S3 location, were refused: This model doesn't support the video content block; the s3Uri field",
            Recorded "2026-11-18" "Responses requests with a file of type audio/mpeg were refused: unsupported MIME type",
            Documentation "2026-11-19" "developers.openai.com/api/docs/models/o4-mini: the input is text and images",
            Documentation "2026-11-19" "openrouter.ai/docs/guides/overview/multimodal/pdfs: the router reads PDF files for every model",
            ErrorText "2026-11-19" "OpenAI chat: Invalid file data: 'messages[1].content[1].file.file_data'. Expected a base64-encoded data URL with an application/pdf MIME type, but got unsupported MIME type",
        ]
    DOCUMENTS_HAVE_A_TEXT "documents_have_a_text" BEDROCK Note [AcceptedIfImported]
        "a message with a document has a text"
        "a marked placeholder is added as the text"
        "all models; imported messages keep their blocks"
        [
            Documentation "2026-11-18" "docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Message.html: a message with a document must also have a text",
            Recorded "2026-11-18" "each accepted message with a document has a text",
        ]
    CALLS_HAVE_TOOLS "calls_have_tools" BEDROCK Note [KeepsMessages]
        "a request with calls describes tools"
        "the called tools are described without parameters"
        "all models; requests without tools and without the field `toolConfig`"
        [
            ErrorText "2026-11-18" "Bedrock: The toolConfig field must be defined when using toolUse and toolResult content blocks",
            Recorded "2026-11-18" "each accepted request with calls has tools",
        ]
    PARTS_HAVE_A_TYPE "parts_have_a_type" TYPED Error []
        "every part of a message has a type"
        "a text without a type is written as a text; any other part without a type is omitted"
        "all models"
        [
            Recorded "2026-11-18" "a chat request with parts `{\"text\": …}` without a type was refused",
        ]
    PARTS_OF_THE_ROLE "parts_of_the_role" RESPONSES Error []
        "texts of the assistant have the type output_text, texts of all others input_text"
        "the part is written with the type of its role"
        "OpenAI's models at OpenAI and Azure"
        [
            ErrorText "2026-11-18" "OpenAI: Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'.",
            Recorded "2026-11-18" "in each accepted request the assistant has only output_text, and all others have none",
        ]
    ITEM_IDS "item_ids" RESPONSES Error []
        "the id of an item starts with the type of the item: msg, fc or ctc"
        "the id is omitted"
        "OpenAI's models at OpenAI and Azure"
        [
            ErrorText "2026-11-19" "OpenAI: Invalid 'input[1].id': '__fake_id__'. Expected an ID that begins with 'msg'.",
            ErrorText "2026-11-19" "OpenAI: Invalid 'input[2].id': ''. Expected an ID that contains letters, numbers, underscores, or dashes, but this value contained additional characters.",
            Recorded "2026-11-19" "in each accepted request to OpenAI the ids of messages and calls have this form",
        ]
    NO_EMPTY_LISTS "no_empty_lists" CHAT Error []
        "the lists tool_calls and content are not empty"
        "an empty list is omitted"
        "OpenAI's models at OpenAI and Azure"
        [
            ErrorText "2026-11-18" "OpenAI: Invalid 'messages[1].tool_calls': empty array. Expected an array with minimum length 1, but got an empty array instead.",
            Recorded "2026-11-18" "Mistral accepted messages of the assistant whose content is an empty list",
        ]
    CONTENT_IS_TEXT "content_is_text" VALUES_ARE_REFUSED Error []
        "the content of a message or of a result is a text or a list of parts"
        "the content of a result, or of a message from the user, becomes its JSON text; any other message is omitted"
        "all models"
        [
            ErrorText "2026-11-18" "OpenAI chat: Invalid type for 'messages[2].content': expected one of a string or array of objects, but got an object instead.",
            RequestTypes "2026-11-18" "anthropic (PyPI), ToolResultBlockParam: the content is a string or a list of blocks",
        ]
    SYSTEM_FOR_THE_MODEL "system_for_the_model" SYSTEM_BY_MODEL Error [AboutTexts]
        "the model accepts system and developer messages, and accepts them in the list of messages"
        "the message is kept as text from the user or, in front of all others, as the system text"
        "o1-mini and o1-preview; in the list of messages: Claude before Opus 4.8, and all models of Google"
        [
            ErrorText "2026-11-18" "Anthropic: Unexpected role \"system\". The Messages API accepts a top-level `system` parameter, not \"system\" as an input message role.",
            Recorded "2026-11-18" "requests to Claude Opus 4.8 and Claude Fable 5 with messages of role system were accepted",
            Recorded "2026-11-18" "a request to o1-mini was refused: 'messages[0].role' does not support 'developer' with this model",
            ErrorText "2026-11-19" "Gemini: Please use a valid role: user, model.",
            ErrorText "2026-11-19" "OpenAI, for o1-mini and o1-preview: Unsupported value: 'messages[0].role' does not support 'system' with this model.",
        ]
    MEDIA_WHERE_IT_MAY_STAND "media_where_it_may_stand" ALL Error [AcceptedIfImported]
        "images, audio and files are in messages from the user, or in results that support them"
        "other media is moved to a message from the user directly after"
        "all models; imported messages keep their media, except for images at OpenAI and, with API version 2026-10-21 and later, documents of the assistant at Anthropic"
        [
            ErrorText "2026-11-18" "OpenAI chat: Image URLs are only allowed for messages with role 'user', but this message with role 'system' contains an image URL.",
            RequestTypes "2026-11-18" "openai (PyPI), ChatCompletionToolMessageParam: the content is a string or a list of text parts",
        ]
    SCHEMAS_WITHOUT_CHOICE "schemas_without_choice" REJECT_UNIONS Error []
        "the schema of a tool's input has no anyOf, oneOf or allOf at its top level and, for OpenAI, no enum or not"
        "the alternatives are merged into one object: all properties, and the required ones that all alternatives share"
        "all models"
        [
            ErrorText "2026-11-18" "Anthropic: input_schema does not support oneOf, allOf, or anyOf at the top level",
            ErrorText "2026-11-18" "OpenAI: schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level",
        ]
    TOOLS_OF_THE_PROVIDER "tools_of_the_provider" ALL Warning []
        "a tool, or a field of its description, that only one provider understands is sent only to that provider"
        "tools that other providers run, and fields of other providers, are omitted"
        "all models; a tool that was imported from a request to the provider keeps its bytes"
        [
            Recorded "2026-11-18" "accepted requests have tools such as `web_search_20250305` (Anthropic), `web_search` (Responses) and `googleSearch` (Gemini), each only at its own provider",
        ]
    CITATIONS_AGREE "citations_agree" ANTHROPIC Error []
        "citations are enabled for all documents or for none"
        "all documents get the setting of the first one"
        "all models"
        [
            Documentation "2026-11-18" "platform.claude.com/docs/en/build-with-claude/citations: citations are enabled on all documents or on none",
        ]
    CACHE_MARKS "cache_marks" ANTHROPIC Warning []
        "at most four blocks have a valid cache_control, and those of one hour precede those of five minutes"
        "a cache_control beyond that is omitted"
        "all models"
        [
            ErrorText "2026-11-18" "Anthropic: A maximum of 4 blocks with cache_control may be provided; a ttl='1h' block must not come after a ttl='5m' block",
        ]
    WHOLE_CHARACTERS "whole_characters" ALL Error [AboutTexts]
        "texts have no lone surrogate"
        "the lone surrogate is replaced by U+FFFD"
        "all models"
        [
            ErrorText "2026-11-18" "Anthropic: The request body is not valid JSON: no low surrogate in string",
        ]
    SPEAKERS "speakers" ALL Note [AcceptedIfImported AboutTexts]
        "the author of a message has a valid name; only chat completions support names"
        "the name is omitted"
        "all models"
        [
            ErrorText "2026-11-18" "OpenAI: Invalid 'messages[0].name': string does not match pattern. Expected a string that matches the pattern '^[^\\s<|\\\\/>]+$'. (until 2025: '^[a-zA-Z0-9_-]+$')",
        ]
    ERRORS_ARE_MARKED "errors_are_marked" OPENAI Note [AcceptedIfImported]
        "a result has no error flag"
        "the error flag is omitted; the content stays"
        "all models"
        [
            RequestTypes "2026-11-18" "openai (PyPI): ChatCompletionToolMessageParam has content, role, tool_call_id and name; FunctionCallOutput has call_id, output, type, id and status",
        ]
}

/// A violation of a rule by a view.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The violated rule.
    pub rule: &'static Rule,
    /// Position in the view of the message that violates it.
    pub index: usize,
    /// The violation.
    pub message: String,
    /// Position of another message that the repair changes.
    pub(crate) with: Option<usize>,
}

impl Finding {
    /// The finding as JSON: `{rule, severity, index, message, repair}`.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "rule": self.rule.name,
            "severity": self.rule.severity.as_str(),
            "index": self.index,
            "message": self.message,
            "repair": self.rule.repair,
        })
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finding { rule, index, message, .. } = self;
        write!(f, "{} at {index}: {message}; {} [{}]", rule.severity, rule.repair, rule.name)
    }
}
