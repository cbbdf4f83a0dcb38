//! What must not be seen, taken out of what is said. Providers and servers repeat what they were sent.

use std::fmt;

use crate::Secret;

/// What is shorter than this is no secret, and would tear texts apart.
const SHORTEST: usize = 4;
/// So many bytes make a word that is secret by itself: the key behind `Bearer`.
const WORD: usize = 8;
/// What is said of a failure is cut here, but only once nothing secret is in it: half a key is one too.
const LONGEST: usize = 500;

/// What must not be seen.
#[derive(Clone, Default)]
pub(crate) struct Secrets(Vec<String>);

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets(…)")
    }
}

impl Secrets {
    /// Keys and headers, and what is secret in a URL.
    pub(crate) fn new<'a>(values: impl IntoIterator<Item = &'a Secret>, url: &str) -> Secrets {
        let mut all: Vec<String> = Vec::new();
        for value in values.into_iter().map(Secret::reveal) {
            all.push(value.to_owned());
            let words = value.split_whitespace().filter(|word| word.len() >= WORD);
            all.extend(words.map(str::to_owned));
        }
        if let Ok(url) = reqwest::Url::parse(url) {
            all.extend(url.password().map(str::to_owned));
            all.extend(url.query().map(str::to_owned));
            let values = url.query_pairs().map(|(_, value)| value.into_owned());
            all.extend(values.filter(|value| value.len() >= WORD));
        }
        all.retain(|secret| secret.len() >= SHORTEST);
        // What holds another goes first.
        all.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        all.dedup();
        Secrets(all)
    }

    /// What is said of a failure: without secrets, and short.
    pub(crate) fn told(&self, text: &str) -> String {
        // Far more than is shown, so that no secret is torn where it would be seen.
        let mut told = text.chars().take(20 * LONGEST).collect::<String>();
        for secret in &self.0 {
            told = told.replace(secret, "…");
        }
        match told.char_indices().nth(LONGEST) {
            Some((at, _)) => format!("{}…", &told[..at]),
            None => told,
        }
    }
}

/// A URL as it may be shown: without a user, a password and a query, which may hold a key.
pub(crate) fn shown(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    let Some((scheme, rest)) = url.split_once("//") else { return url.to_owned() };
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = host.rsplit('@').next().unwrap_or(host);
    format!("{scheme}//{host}{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_secret_is_told_not_even_a_piece() {
        let key = Secret::new("Bearer sk-very-secret");
        let secrets = Secrets::new([&key], "https://u:pass-word@h/v1?key=abc&token=0123456789");
        for text in ["got Bearer sk-very-secret", "sk-very-secret!", "?key=abc&token=0123456789"] {
            let told = secrets.told(text);
            assert!(told.contains('…') && !told.contains("secret"), "{told}");
            assert!(!told.contains("abc") && !told.contains("012"), "{told}");
        }
        assert_eq!(secrets.told("pass-word 0123456789"), "… …");
        let at_the_cut = format!("{}sk-very-secret", "x".repeat(LONGEST - 5));
        assert!(!secrets.told(&at_the_cut).contains("sk"), "{}", secrets.told(&at_the_cut));
        // What is too short to be one leaves texts whole.
        assert_eq!(Secrets::new([&Secret::new("1")], "").told("exit status: 1"), "exit status: 1");
    }

    #[test]
    fn a_url_is_shown_without_what_may_be_secret() {
        assert_eq!(shown("https://u:p@h:8/v1?key=abc#f"), "https://h:8/v1");
        assert_eq!(shown("https://h/a@b"), "https://h/a@b");
        assert_eq!(shown("nowhere?key=abc"), "nowhere");
    }
}
