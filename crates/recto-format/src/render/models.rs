//! Which models and versions of an API have a property that rules depend on, as data. A model is identified
//! by its name, because a request contains nothing else.
//!
//! [`TABLE`] has one row per family of models, with the date and the source. To add a model, add a row.

use super::Target;
use crate::media::MediaKind;

/// A property of models that a rule depends on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Property {
    /// The last message must be from the user.
    EndsWithUser,
    /// Thinking is bound to everything before it.
    BindsThinking,
    /// Messages of role system are accepted in the list of messages.
    AcceptsListedSystem,
    /// Messages of role system are rejected in the list of messages.
    RejectsListedSystem,
    /// System and developer messages are rejected.
    RejectsSystem,
    /// Images and audio are rejected. `RejectsFiles` is a separate property.
    AcceptsTextOnly,
    /// Files are rejected.
    RejectsFiles,
    /// Audio is rejected.
    RejectsAudio,
    /// `reasoning_content` of earlier messages is read.
    ReadsReasoning,
    /// Calls need the reasoning that led to them.
    RequiresReasoning,
    /// The first call of a turn needs a signature.
    RequiresSignedCalls,
    /// The model is Anthropic's.
    IsClaude,
    /// The model is OpenAI's.
    IsOpenAi,
    /// OpenAI or Azure serves the model.
    IsServedByOpenAi,
}

/// Names of models, in lower case.
#[derive(Clone, Copy)]
struct Names {
    /// The name starts with this, after the provider and the region: `us.anthropic.claude-…`. `claude` may
    /// be anywhere in the name.
    family: &'static str,
    /// The name contains this, from the family on.
    word: &'static str,
    /// The name contains none of these.
    without: &'static [&'static str],
    /// The first version, and the first later version that is excluded. `None`: also names without a version.
    versions: Option<(Version, Version)>,
}

type Version = (u32, u32);

const NEWEST: Version = (u32::MAX, 0);

const fn names(family: &'static str) -> Names {
    Names { family, word: "", without: &[], versions: None }
}

impl Names {
    const fn with(self, word: &'static str) -> Names {
        Names { word, ..self }
    }

    const fn without(self, without: &'static [&'static str]) -> Names {
        Names { without, ..self }
    }

    const fn since(self, major: u32, minor: u32) -> Names {
        Names { versions: Some(((major, minor), NEWEST)), ..self }
    }

    const fn before(self, major: u32, minor: u32) -> Names {
        Names { versions: Some(((0, 0), (major, minor))), ..self }
    }

    fn contain(&self, name: &str) -> bool {
        // Names of Claude have various prefixes; those of other families follow `/` or `.`.
        let is_start =
            |at: usize| self.family == "claude" || at == 0 || name[..at].ends_with(['/', '.']);
        let mut starts = name.match_indices(self.family).filter(|(at, _)| is_start(*at));
        let Some((start, _)) = starts.next() else { return false };
        let name_of_family = &name[start..];
        let is_version = match self.versions {
            None => true,
            Some((from, below)) => {
                let rest = &name_of_family[self.family.len()..];
                version(rest).is_some_and(|version| from <= version && version < below)
            }
        };
        is_version
            && name_of_family.contains(self.word)
            && !self.without.iter().any(|word| name.contains(word))
    }
}

/// The first number in a name and the number directly after it. Numbers of three and more digits are
/// dates.
fn version(name: &str) -> Option<Version> {
    let number = |word: &str| word.parse::<u32>().ok().filter(|_| word.len() <= 2);
    let words: Vec<&str> = name.split(['-', '.', '_', '@', ':']).collect();
    let at = words.iter().position(|word| number(word).is_some())?;
    Some((number(words[at])?, words.get(at + 1).and_then(|word| number(word)).unwrap_or(0)))
}

/// Property, models, the day on which the source was read, and the source.
type Row = (Property, Names, &'static str, &'static str);

const PRESERVED_THINKING: &str =
    "documentation: platform.claude.com/docs/en/build-with-claude/preserved-thinking";
const PREFILL: &str = "error text: This model does not support assistant message prefill; documentation: platform.claude.com/docs/en/about-claude/models/whats-new-claude-4-6";
const LISTED: &str = "recorded requests to claude-opus-4-8 and claude-fable-5 that were accepted; documentation: platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages";
const NO_SYSTEM: &str =
    "error text: 'messages[0].role' does not support 'system' (or 'developer') with this model";
const REASONING: &str = "recorded requests that were accepted; error text: the reasoning_content in the thinking mode must be passed back";
const CALLS_OF_DEEPSEEK: &str = "error text: The reasoning_content in the thinking mode must be passed back to the API; recorded requests to deepseek-v4-flash and deepseek-reasoner";
const CALLS_OF_KIMI: &str = "error text: thinking is enabled but reasoning_content is missing in assistant tool call message";
const AUDIO: &str = "error text: Content blocks are expected to be either text or image_url type (gpt-4o, gpt-5-mini); gpt-audio accepted audio";
const AUDIO_OF_REASONING: &str =
    "documentation: developers.openai.com/api/docs/models/o4-mini: the input is text and images";
const DEEPSEEK_TEXT: &str =
    "error text: unknown variant `image_url`, expected `text` (deepseek-v4-flash)";
const DEEPSEEK_FILES: &str = "error text: unknown variant `file`, expected `text` (deepseek-v4-flash); documentation: openrouter.ai/docs/guides/overview/multimodal/pdfs";
const BY_NAME: &str = "the names in recorded requests";
const OPENAI_NAMES: &str = "the names of OpenAI in the price table, from the package genai-prices";

const TABLE: &[Row] = &[
    (Property::EndsWithUser, names("claude").since(4, 6), "2026-11-18", PREFILL),
    (Property::EndsWithUser, names("claude").with("claude-mythos"), "2026-11-18", PREFILL),
    (Property::EndsWithUser, names("claude").with("claude-fable"), "2026-11-18", PREFILL),
    (
        Property::BindsThinking,
        names("claude").with("fable").since(5, 1),
        "2026-11-16",
        PRESERVED_THINKING,
    ),
    (
        Property::BindsThinking,
        names("claude").with("mythos").since(5, 1),
        "2026-11-16",
        PRESERVED_THINKING,
    ),
    // All later models, of every family.
    (Property::BindsThinking, names("claude").since(5, 5), "2026-11-16", PRESERVED_THINKING),
    (Property::AcceptsListedSystem, names("claude").since(4, 8), "2026-11-18", LISTED),
    (
        Property::RejectsListedSystem,
        names("claude").before(4, 8),
        "2026-11-18",
        "error text: Unexpected role \"system\"",
    ),
    (Property::RejectsSystem, names("o1-mini"), "2026-11-19", NO_SYSTEM),
    (Property::RejectsSystem, names("o1-preview"), "2026-11-19", NO_SYSTEM),
    (
        Property::AcceptsTextOnly,
        // DeepSeek-VL, DeepSeek-OCR and Janus read images.
        names("deepseek").without(&["-vl", "-ocr", "janus"]),
        "2026-11-18",
        DEEPSEEK_TEXT,
    ),
    // Names with the provider in front are those of routers. OpenRouter reads PDF files for every model.
    (
        Property::RejectsFiles,
        names("deepseek").without(&["-vl", "-ocr", "janus", "/"]),
        "2026-11-19",
        DEEPSEEK_FILES,
    ),
    (Property::RejectsAudio, names("gpt-").without(&["audio"]), "2026-11-18", AUDIO),
    (Property::RejectsAudio, names("o1"), "2026-11-19", AUDIO_OF_REASONING),
    (Property::RejectsAudio, names("o3"), "2026-11-19", AUDIO_OF_REASONING),
    (Property::RejectsAudio, names("o4"), "2026-11-19", AUDIO_OF_REASONING),
    (Property::ReadsReasoning, names("deepseek"), "2026-11-18", REASONING),
    (Property::ReadsReasoning, names("kimi"), "2026-11-18", REASONING),
    (Property::ReadsReasoning, names("moonshot"), "2026-11-18", REASONING),
    (Property::ReadsReasoning, names("qwen"), "2026-11-18", REASONING),
    (
        Property::ReadsReasoning,
        names("glm-").since(4, 5),
        "2026-11-19",
        "documentation: docs.z.ai/guides/capabilities/thinking-mode",
    ),
    (Property::RequiresReasoning, names("deepseek-v").since(3, 2), "2026-11-19", CALLS_OF_DEEPSEEK),
    (Property::RequiresReasoning, names("deepseek-reasoner"), "2026-11-19", CALLS_OF_DEEPSEEK),
    (Property::RequiresReasoning, names("kimi-k").since(2, 5), "2026-11-19", CALLS_OF_KIMI),
    (Property::RequiresReasoning, names("kimi").with("thinking"), "2026-11-19", CALLS_OF_KIMI),
    (Property::RequiresReasoning, names("kimi-for-coding"), "2026-11-19", CALLS_OF_KIMI),
    (
        Property::RequiresSignedCalls,
        names("gemini-").since(3, 0),
        "2026-11-18",
        "error text: Function call is missing a thought_signature",
    ),
    (Property::IsClaude, names("claude"), "2026-11-18", BY_NAME),
    (Property::IsOpenAi, names("gpt-"), "2026-11-18", BY_NAME),
    (Property::IsOpenAi, names("o1"), "2026-11-18", BY_NAME),
    (Property::IsOpenAi, names("o3"), "2026-11-18", BY_NAME),
    (Property::IsOpenAi, names("o4"), "2026-11-18", BY_NAME),
    (Property::IsOpenAi, names("codex-"), "2026-11-19", OPENAI_NAMES),
    (Property::IsOpenAi, names("chatgpt-"), "2026-11-19", OPENAI_NAMES),
    (Property::IsOpenAi, names("computer-use"), "2026-11-19", OPENAI_NAMES),
    // Names with the provider in front are those of routers. Other providers serve the open weights.
    (Property::IsServedByOpenAi, names("gpt-").without(&["/", "gpt-oss"]), "2026-11-18", BY_NAME),
    (Property::IsServedByOpenAi, names("o1").without(&["/"]), "2026-11-18", BY_NAME),
    (Property::IsServedByOpenAi, names("o3").without(&["/"]), "2026-11-18", BY_NAME),
    (Property::IsServedByOpenAi, names("o4").without(&["/"]), "2026-11-18", BY_NAME),
    (Property::IsServedByOpenAi, names("codex-").without(&["/"]), "2026-11-19", OPENAI_NAMES),
    (Property::IsServedByOpenAi, names("chatgpt-").without(&["/"]), "2026-11-19", OPENAI_NAMES),
    (Property::IsServedByOpenAi, names("computer-use").without(&["/"]), "2026-11-19", OPENAI_NAMES),
];

fn has(property: Property, model: &str) -> bool {
    let name = model.to_ascii_lowercase();
    TABLE.iter().any(|(row, names, ..)| *row == property && names.contain(&name))
}

/// What a version of Anthropic's API and later ones reject.
enum Rejected {
    /// A field of the request.
    Field(&'static str),
    /// Citations in texts of the user.
    UserCitations,
    /// Documents in messages of the assistant.
    AssistantDocuments,
}

const VERSIONING: &str = "documentation: platform.claude.com/docs/en/api/versioning";

/// The first version of Anthropic's API with a rule, the day on which the source was read, and the source.
const API_VERSIONS: &[(&str, Rejected, &str, &str)] = &[
    ("2026-10-21", Rejected::Field("temperature"), "2026-11-16", VERSIONING),
    ("2026-10-21", Rejected::Field("top_p"), "2026-11-16", VERSIONING),
    ("2026-10-21", Rejected::Field("top_k"), "2026-11-16", VERSIONING),
    ("2026-10-21", Rejected::UserCitations, "2026-11-16", VERSIONING),
    ("2026-10-21", Rejected::AssistantDocuments, "2026-11-16", VERSIONING),
];

/// The first version that rejects something, if the request has this version or a later one.
fn rejecting_version(
    api_version: Option<&str>,
    is_it: impl Fn(&Rejected) -> bool,
) -> Option<&'static str> {
    let (since, ..) = API_VERSIONS.iter().find(|(_, rejected, ..)| is_it(rejected))?;
    api_version.filter(|version| version >= since).map(|_| *since)
}

/// True if a model is Anthropic's, by its name.
pub(super) fn is_claude(model: &str) -> bool {
    has(Property::IsClaude, model)
}

/// True if a model is OpenAI's, by its name.
pub(super) fn is_openai(model: &str) -> bool {
    has(Property::IsOpenAi, model)
}

/// True if OpenAI or Azure serves the model.
pub(super) fn is_served_by_openai(model: &str) -> bool {
    has(Property::IsServedByOpenAi, model)
}

/// True if a model of Anthropic rejects messages of role system in the list of messages.
pub(super) fn rejects_listed_system(model: &str) -> bool {
    has(Property::RejectsListedSystem, model)
}

/// True if a model of Anthropic accepts messages of role system in the list of messages.
pub(super) fn accepts_listed_system(model: &str) -> bool {
    has(Property::AcceptsListedSystem, model)
}

/// True if a model reads `reasoning_content` of its earlier messages in chat completions.
pub(super) fn reads_reasoning(model: &str) -> bool {
    has(Property::ReadsReasoning, model)
}

/// True if a model with the interface of chat completions rejects calls without reasoning, unless its
/// thinking is disabled.
pub(super) fn requires_reasoning(model: &str) -> bool {
    has(Property::RequiresReasoning, model)
}

/// True if a model rejects system messages.
pub(super) fn rejects_system(model: &str) -> bool {
    has(Property::RejectsSystem, model)
}

/// True if a model accepts only text.
pub(super) fn is_text_only(model: &str) -> bool {
    has(Property::AcceptsTextOnly, model)
}

/// True if a model is known to reject this kind of media in messages.
pub(super) fn rejects_media(model: &str, kind: MediaKind) -> bool {
    match kind {
        MediaKind::File => has(Property::RejectsFiles, model),
        MediaKind::Audio if has(Property::RejectsAudio, model) => true,
        _ => is_text_only(model),
    }
}

/// True if a model of Anthropic requires the last message to be from the user.
pub(super) fn requires_user_last(model: &str) -> bool {
    has(Property::EndsWithUser, model)
}

/// True if a model of Anthropic accepts thinking only if everything before it is unchanged: `system`,
/// the tools and all messages.
///
/// ```
/// assert!(recto_format::binds_thinking("claude-fable-5-1"));
/// assert!(!recto_format::binds_thinking("claude-sonnet-4-5"));
/// ```
pub fn binds_thinking(model: &str) -> bool {
    has(Property::BindsThinking, model)
}

/// True if a model of Google requires a signature on the first call of a turn.
pub(super) fn requires_signed_calls(model: &str) -> bool {
    has(Property::RequiresSignedCalls, model)
}

/// The version of the API that is the first to reject a field, if the request has this version or a
/// later one.
pub(super) fn version_without(
    target: Target,
    api_version: Option<&str>,
    field: &str,
) -> Option<&'static str> {
    let api_version = api_version.filter(|_| target == Target::Anthropic);
    rejecting_version(api_version, |it| matches!(it, Rejected::Field(name) if *name == field))
}

/// True if the version of Anthropic's API rejects citations in texts of the user.
pub(super) fn rejects_user_citations(api_version: Option<&str>) -> bool {
    rejecting_version(api_version, |it| matches!(it, Rejected::UserCitations)).is_some()
}

/// True if the version of Anthropic's API rejects documents in messages of the assistant.
pub(super) fn rejects_documents(api_version: Option<&str>) -> bool {
    rejecting_version(api_version, |it| matches!(it, Rejected::AssistantDocuments)).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_and_system_messages_depend_on_the_model() {
        assert!(rejects_media("gpt-5-mini", MediaKind::Audio));
        assert!(rejects_media("openai/o3", MediaKind::Audio));
        assert!(!rejects_media("gpt-5-mini", MediaKind::Image));
        assert!(!rejects_media("gpt-audio", MediaKind::Audio));
        assert!(!rejects_media("voxtral-small-latest", MediaKind::Audio));
        assert!(rejects_media("deepseek-v4-flash", MediaKind::Image));
        assert!(rejects_media("vllm/deepseek-v3", MediaKind::Image));
        assert!(!rejects_media("deepseek-ai/deepseek-vl2", MediaKind::Image));
        assert!(!rejects_media("deepseek-ai/Janus-Pro-7B", MediaKind::Image));
        assert!(rejects_media("deepseek-v4-flash", MediaKind::File));
        assert!(!rejects_media("deepseek/deepseek-v3.2", MediaKind::File));
        assert!(rejects_media("deepseek/deepseek-v3.2", MediaKind::Audio));
        assert!(!rejects_media("gpt-5-mini", MediaKind::File));
        assert!(rejects_system("o1-mini") && rejects_system("openai/o1-mini-2024-09-12"));
        assert!(!rejects_system("o1") && !rejects_system("gpt-5-mini"));
    }

    #[test]
    fn reasoning_is_returned_to_models_that_read_it() {
        for model in ["deepseek-v4-flash", "kimi-k2.6", "qwen3-max", "glm-4.6", "zai-org/GLM-5.3"] {
            assert!(reads_reasoning(model), "{model}");
        }
        for model in ["glm-4-plus", "gpt-5", "llama-3.3-70b"] {
            assert!(!reads_reasoning(model), "{model}");
        }
    }

    #[test]
    fn calls_need_reasoning_where_the_model_thinks() {
        for model in [
            "deepseek-v4-flash",
            "deepseek-ai/DeepSeek-V3.2",
            "deepseek-reasoner",
            "kimi-k2.5",
            "moonshotai/kimi-k2-thinking",
            "kimi-for-coding",
        ] {
            assert!(requires_reasoning(model), "{model}");
        }
        for model in
            ["deepseek-chat", "deepseek-v3.1", "kimi-k2-0905-preview", "gpt-5", "qwen3-max"]
        {
            assert!(!requires_reasoning(model), "{model}");
        }
    }

    #[test]
    fn strict_checks_depend_on_the_server() {
        for model in
            ["gpt-4o-mini", "o3", "codex-mini-latest", "chatgpt-4o-latest", "computer-use-preview"]
        {
            assert!(is_served_by_openai(model) && is_openai(model), "{model}");
        }
        for model in [
            "openai/gpt-4o",
            "openai/codex-mini",
            "gpt-oss-120b",
            "llama-3.3-70b",
            "claude-opus-4-1",
        ] {
            assert!(!is_served_by_openai(model), "{model}");
        }
        assert!(
            rejects_listed_system("claude-sonnet-4-5") && rejects_listed_system("claude-3-haiku")
        );
        for model in ["claude-opus-4-8", "claude-fable-5", "claude-mythos-preview", "gpt-5"] {
            assert!(!rejects_listed_system(model), "{model}");
        }
    }

    #[test]
    fn requirements_follow_from_the_name() {
        for model in [
            "claude-opus-4-6",
            "claude-sonnet-4-6-20260217",
            "us.anthropic.claude-opus-4-7-v1:0",
            "anthropic/claude-sonnet-4.6",
            "claude-4.6-sonnet",
            "claude-sonnet-5",
            "claude-fable-5",
            "claude-mythos-preview",
        ] {
            assert!(requires_user_last(model), "{model}");
        }
        for model in [
            "claude-opus-4-5-20251101",
            "claude-haiku-4-5",
            "claude-opus-4-20250514",
            "claude-3-5-sonnet-20241022",
            "claude-3-7-sonnet@20250219",
            "claude-a",
            "gpt-5.2",
            "",
        ] {
            assert!(!requires_user_last(model), "{model}");
        }
        assert!(
            requires_signed_calls("models/gemini-3-pro")
                && requires_signed_calls("gemini-3.1-flash")
        );
        assert!(!requires_signed_calls("gemini-2.5-pro") && !requires_signed_calls("gpt-5"));
    }

    #[test]
    fn later_models_of_every_family_bind_thinking() {
        for model in [
            "claude-fable-5-1",
            "claude-mythos-5.1",
            "claude-opus-5-5",
            "us.anthropic.claude-sonnet-5-5-20261001-v1:0",
            "claude-newfamily-6",
            "claude-6-opus",
        ] {
            assert!(binds_thinking(model), "{model}");
        }
        for model in ["claude-fable-5", "claude-opus-5", "claude-sonnet-4-5", "claude-3-5-sonnet"] {
            assert!(!binds_thinking(model), "{model}");
        }
    }

    #[test]
    fn every_row_has_a_source_and_its_date() {
        let of_models = TABLE.iter().map(|(_, names, date, source)| (names.family, date, source));
        let of_versions =
            API_VERSIONS.iter().map(|(version, _, date, source)| (*version, date, source));
        for (row, date, source) in of_models.chain(of_versions) {
            assert_eq!(date.len(), "2026-11-18".len(), "{row}");
            assert!(!source.is_empty(), "{row}");
        }
    }
}
