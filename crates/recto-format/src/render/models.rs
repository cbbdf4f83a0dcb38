//! Requirements of single models, as data. A model is identified by its name, because a request contains
//! nothing else.

/// First version of Anthropic's models that reject a request whose last message is the assistant's.
const USER_LAST_SINCE: (u32, u32) = (4, 6);
/// Models with the same requirement whose names have no version.
const USER_LAST: &[&str] = &["claude-mythos", "claude-fable"];
/// First version of Google's models that require a signature on the first call of a turn.
const SIGNED_SINCE: (u32, u32) = (3, 0);

/// True if a model of Anthropic requires the last message to be from the user.
pub(super) fn requires_user_last(model: &str) -> bool {
    let name = model.to_ascii_lowercase();
    let Some(at) = name.find("claude") else { return false };
    USER_LAST.iter().any(|known| name[at..].starts_with(known))
        || version(&name[at..]).is_some_and(|version| version >= USER_LAST_SINCE)
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
