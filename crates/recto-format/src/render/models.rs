//! Requirements of single models, as data. A model is identified by its name, because a request contains
//! nothing else.

use super::Target;
use crate::media::MediaKind;

/// First version of Anthropic's models that reject a request whose last message is the assistant's.
const USER_LAST_SINCE: (u32, u32) = (4, 6);
/// Models with the same requirement whose names have no version.
const USER_LAST: &[&str] = &["claude-mythos", "claude-fable"];
/// First version of Google's models that require a signature on the first call of a turn.
const SIGNED_SINCE: (u32, u32) = (3, 0);

/// First versions of Anthropic's models that bind thinking to everything before it, by a word of their
/// names. Source: platform.claude.com/docs/en/build-with-claude/preserved-thinking (2026-11-16).
const BINDS_THINKING_SINCE: &[(&str, (u32, u32))] = &[
    ("fable", (5, 1)),
    ("mythos", (5, 1)),
    ("opus", (5, 5)),
    ("sonnet", (5, 5)),
    ("haiku", (5, 5)),
];
/// Fields of a request that a version of Anthropic's API and later ones reject.
/// Source: platform.claude.com/docs/en/api/versioning (2026-11-16).
const WITHOUT_FIELDS: &[(&str, &[&str])] = &[("2026-10-21", &["temperature", "top_p", "top_k"])];
/// First version of Anthropic's API that rejects citations in texts of the user. Same source.
const WITHOUT_USER_CITATIONS: &str = "2026-10-21";
/// First version of Anthropic's API that rejects documents in messages of the assistant. Same source.
const WITHOUT_ASSISTANT_DOCUMENTS: &str = "2026-10-21";

/// Models of OpenAI that reject system and developer messages.
/// Source: error text "'messages[0].role' does not support 'developer' with this model" for `o1-mini`.
const WITHOUT_SYSTEM: &[&str] = &["o1-mini", "o1-preview"];
/// Prefixes of OpenAI's models. Only those with `audio` in their name accept audio.
/// Source: error text "Content blocks are expected to be either text or image_url type" for
/// `input_audio` and `gpt-5-mini`; `gpt-audio` accepted it.
const OPENAI: &[&str] = &["gpt-", "o1", "o3", "o4"];
/// Prefix of OpenAI's models with open weights, which other providers serve.
const OPEN_WEIGHTS: &str = "gpt-oss";
/// First version of Anthropic's models that accepts messages of role system in the list of messages.
/// Sources: recorded requests to `claude-opus-4-8` and `claude-fable-5` that were accepted; error text
/// "Unexpected role \"system\"" of earlier models.
const LISTED_SYSTEM_SINCE: (u32, u32) = (4, 8);
/// Prefixes of models whose servers read `reasoning_content` of earlier messages in chat completions.
/// Sources: recorded requests to `deepseek-v4-flash`, `deepseek-reasoner` and Qwen 3 that were accepted
/// with it; error text "the reasoning_content in the thinking mode must be passed back" of DeepSeek and
/// Moonshot.
const TAKES_REASONING: &[&str] = &["deepseek", "kimi", "moonshot", "qwen"];
/// Prefix of models that accept only text.
/// Source: error text "unknown variant `image_url`, expected `text`" for `deepseek-v4-flash`.
const TEXT_ONLY: &str = "deepseek";

/// The name of a model without the provider in front: `openai/gpt-5` is `gpt-5`.
fn short_name(model: &str) -> &str {
    model.rsplit('/').next().unwrap_or(model)
}

/// True if a model is Anthropic's, by its name.
pub(super) fn is_claude(model: &str) -> bool {
    model.contains("claude")
}

/// True if a model is OpenAI's, by its name.
pub(super) fn is_openai(model: &str) -> bool {
    let name = short_name(model);
    // Bedrock's names start with the provider: `openai.gpt-5.6`.
    let name = name.strip_prefix("openai.").unwrap_or(name);
    OPENAI.iter().any(|prefix| name.starts_with(prefix))
}

/// True if OpenAI or Azure serves the model. Names with the provider in front are those of routers.
pub(super) fn is_at_openai(model: &str) -> bool {
    is_openai(model) && !model.contains('/') && !model.starts_with(OPEN_WEIGHTS)
}

/// True if a model of Anthropic rejects messages of role system in the list of messages.
pub(crate) fn rejects_listed_system(model: &str) -> bool {
    let name = model.to_ascii_lowercase();
    let Some(at) = name.find("claude") else { return false };
    version(&name[at..]).is_some_and(|version| version < LISTED_SYSTEM_SINCE)
}

/// True if a model of Anthropic accepts messages of role system in the list of messages.
pub(super) fn accepts_listed_system(model: &str) -> bool {
    let name = model.to_ascii_lowercase();
    let Some(at) = name.find("claude") else { return false };
    version(&name[at..]).is_some_and(|version| version >= LISTED_SYSTEM_SINCE)
}

/// True if a model reads `reasoning_content` of its earlier messages in chat completions.
pub(super) fn takes_reasoning(model: &str) -> bool {
    let name = short_name(model).to_ascii_lowercase();
    TAKES_REASONING.iter().any(|prefix| name.starts_with(prefix))
}

/// True if a model rejects system messages.
pub(super) fn rejects_system(model: &str) -> bool {
    WITHOUT_SYSTEM.iter().any(|known| crate::source::is_same_model(short_name(model), known))
}

/// True if a model accepts only text.
pub(super) fn is_text_only(model: &str) -> bool {
    short_name(model).starts_with(TEXT_ONLY)
}

/// True if a model is known to reject this kind of media in messages.
pub(super) fn rejects_media(model: &str, kind: MediaKind) -> bool {
    let name = short_name(model);
    is_text_only(model) || kind == MediaKind::Audio && is_openai(model) && !name.contains("audio")
}

/// True if a model of Anthropic requires the last message to be from the user.
pub(super) fn requires_user_last(model: &str) -> bool {
    let name = model.to_ascii_lowercase();
    let Some(at) = name.find("claude") else { return false };
    USER_LAST.iter().any(|known| name[at..].starts_with(known))
        || version(&name[at..]).is_some_and(|version| version >= USER_LAST_SINCE)
}

/// True if a model of Anthropic accepts thinking only if everything before it is unchanged: `system`,
/// the tools and all messages.
///
/// ```
/// assert!(recto_format::binds_thinking("claude-fable-5-1"));
/// assert!(!recto_format::binds_thinking("claude-sonnet-4-5"));
/// ```
pub fn binds_thinking(model: &str) -> bool {
    let name = model.to_ascii_lowercase();
    let Some(at) = name.find("claude") else { return false };
    let name = &name[at..];
    BINDS_THINKING_SINCE.iter().any(|(word, since)| {
        name.contains(word) && version(name).is_some_and(|version| version >= *since)
    })
}

/// The version of the API that is the first to reject a field, if the request has this version or a
/// later one.
pub(super) fn version_without(
    target: Target,
    api_version: Option<&str>,
    field: &str,
) -> Option<&'static str> {
    let api_version = api_version.filter(|_| target == Target::Anthropic)?;
    let rejects =
        |(since, fields): &&(&str, &[&str])| api_version >= *since && fields.contains(&field);
    WITHOUT_FIELDS.iter().find(rejects).map(|(since, _)| *since)
}

/// True if the version of Anthropic's API rejects citations in texts of the user.
pub(super) fn rejects_user_citations(api_version: Option<&str>) -> bool {
    api_version.is_some_and(|version| version >= WITHOUT_USER_CITATIONS)
}

/// True if the version of Anthropic's API rejects documents in messages of the assistant.
pub(super) fn rejects_documents(api_version: Option<&str>) -> bool {
    api_version.is_some_and(|version| version >= WITHOUT_ASSISTANT_DOCUMENTS)
}

/// True if a model of Google requires a signature on the first call of a turn.
pub(super) fn requires_signed_calls(model: &str) -> bool {
    let name = model.rsplit('/').next().and_then(|name| name.strip_prefix("gemini-"));
    name.and_then(version).is_some_and(|version| version >= SIGNED_SINCE)
}

/// The first number in a name and the number directly after it. Numbers of three and more digits are
/// dates.
fn version(name: &str) -> Option<(u32, u32)> {
    let number = |word: &str| word.parse::<u32>().ok().filter(|_| word.len() <= 2);
    let words: Vec<&str> = name.split(['-', '.', '_', '@', ':']).collect();
    let at = words.iter().position(|word| number(word).is_some())?;
    Some((number(words[at])?, words.get(at + 1).and_then(|word| number(word)).unwrap_or(0)))
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
        assert!(rejects_system("o1-mini") && rejects_system("openai/o1-mini-2024-09-12"));
        assert!(!rejects_system("o1") && !rejects_system("gpt-5-mini"));
    }

    #[test]
    fn strict_checks_depend_on_the_server() {
        assert!(is_at_openai("gpt-4o-mini") && is_at_openai("o3"));
        for model in ["openai/gpt-4o", "gpt-oss-120b", "llama-3.3-70b", "claude-opus-4-1"] {
            assert!(!is_at_openai(model), "{model}");
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
}
