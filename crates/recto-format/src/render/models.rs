//! What single models of a provider demand, as data: by their names, since nothing else is known.

/// Models of Anthropic from this version on do not go on from words of their own.
const ENDS_WITH_USER_SINCE: (u32, u32) = (4, 6);
/// So do these, whose names have no version.
const ENDS_WITH_USER: &[&str] = &["claude-mythos", "claude-fable"];
/// Models of Google from this version on want the first call of a turn signed.
const SIGNED_SINCE: (u32, u32) = (3, 0);

/// Whether a model of Anthropic wants the user to speak last.
pub(super) fn ends_with_user(model: &str) -> bool {
    let name = model.to_ascii_lowercase();
    let Some(at) = name.find("claude") else { return false };
    ENDS_WITH_USER.iter().any(|known| name[at..].starts_with(known))
        || version(&name[at..]).is_some_and(|version| version >= ENDS_WITH_USER_SINCE)
}

/// Whether a model of Google wants the first call of a turn signed.
pub(super) fn signs_calls(model: &str) -> bool {
    let name = model.rsplit('/').next().and_then(|name| name.strip_prefix("gemini-"));
    name.and_then(version).is_some_and(|version| version >= SIGNED_SINCE)
}

/// The first number in a name and the one right behind it. Longer ones are dates.
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
    fn models_are_known_by_their_names() {
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
            assert!(ends_with_user(model), "{model}");
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
            assert!(!ends_with_user(model), "{model}");
        }
        assert!(signs_calls("models/gemini-3-pro") && signs_calls("gemini-3.1-flash"));
        assert!(!signs_calls("gemini-2.5-pro") && !signs_calls("gpt-5"));
    }
}
