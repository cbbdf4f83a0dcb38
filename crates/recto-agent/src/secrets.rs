//! Secrets, and their redaction in text from providers and MCP servers, which may repeat what they received.

use std::fmt;

/// Minimum length of a secret in bytes. Redacting shorter values would make messages unreadable.
const MIN_SECRET: usize = 4;
/// Minimum length of a word of a secret that is redacted by itself, such as the key after `Bearer`.
const MIN_WORD: usize = 8;
/// Maximum length of a redacted text, in characters. The text is cut after the redaction, because a
/// part of a key is secret too.
const MAX_TEXT: usize = 500;

/// A secret text, such as an API key. It appears in no error and no debug output.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret text.
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    /// The secret text.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// The values that must not appear in errors.
#[derive(Clone, Default)]
pub(crate) struct Secrets(Vec<String>);

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets(…)")
    }
}

impl Secrets {
    /// The given values and the secret parts of a URL: its password and its query.
    pub(crate) fn new<'a>(values: impl IntoIterator<Item = &'a Secret>, url: &str) -> Secrets {
        let mut all: Vec<String> = Vec::new();
        for value in values.into_iter().map(Secret::reveal) {
            all.push(value.to_owned());
            let words = value.split_whitespace().filter(|word| word.len() >= MIN_WORD);
            all.extend(words.map(str::to_owned));
        }
        if let Ok(url) = reqwest::Url::parse(url) {
            all.extend(url.password().map(str::to_owned));
            all.extend(url.query().map(str::to_owned));
            let values = url.query_pairs().map(|(_, value)| value.into_owned());
            all.extend(values.filter(|value| value.len() >= MIN_WORD));
        }
        all.retain(|secret| secret.len() >= MIN_SECRET);
        // Longer values first, because they may contain shorter ones.
        all.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        all.dedup();
        Secrets(all)
    }

    /// Replaces secrets by `…` and cuts the text at [`MAX_TEXT`].
    pub(crate) fn redact(&self, text: &str) -> String {
        // Bounds the work. The margin keeps a secret that is cut here out of the result.
        let mut redacted = text.chars().take(20 * MAX_TEXT).collect::<String>();
        // A secret may be repeated inside JSON, where any character can be escaped.
        let plain = without_escapes(&redacted);
        if self.0.iter().any(|secret| plain.contains(secret)) {
            redacted = plain;
        }
        for secret in &self.0 {
            redacted = redacted.replace(secret, "…");
        }
        match redacted.char_indices().nth(MAX_TEXT) {
            Some((at, _)) => format!("{}…", &redacted[..at]),
            None => redacted,
        }
    }
}

/// A text in which characters replace the escapes `\uXXXX`, `\/`, `\"` and `\\` of JSON strings. Other
/// escapes stay.
fn without_escapes(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        plain.push_str(&rest[..at]);
        let escape = &rest[at + 1..];
        let code = escape.strip_prefix('u').and_then(|code| code.get(..4));
        let code = code.and_then(|code| u32::from_str_radix(code, 16).ok());
        if let Some(character) = code.and_then(char::from_u32) {
            plain.push(character);
            rest = &escape[5..];
        } else {
            // `\/`, `\"` and `\\` stand for their second character. The other escapes are control
            // characters, which separate the words of a secret.
            let is_itself = escape.starts_with(['/', '"', '\\']);
            let taken = usize::from(is_itself);
            plain.push_str(if is_itself { &escape[..1] } else { "\\" });
            rest = &escape[taken..];
        }
    }
    plain + rest
}

/// A URL without user, password, query and fragment, which may contain secrets.
pub(crate) fn redacted_url(url: &str) -> String {
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
    fn secrets_and_parts_of_them_are_redacted() {
        let key = Secret::new("Bearer sk-very-secret");
        let secrets = Secrets::new([&key], "https://u:pass-word@h/v1?key=abc&token=0123456789");
        for text in ["got Bearer sk-very-secret", "sk-very-secret!", "?key=abc&token=0123456789"] {
            let redacted = secrets.redact(text);
            assert!(redacted.contains('…') && !redacted.contains("secret"), "{redacted}");
            assert!(!redacted.contains("abc") && !redacted.contains("012"), "{redacted}");
        }
        assert_eq!(secrets.redact("pass-word 0123456789"), "… …");
        let at_the_cut = format!("{}sk-very-secret", "x".repeat(MAX_TEXT - 5));
        assert!(!secrets.redact(&at_the_cut).contains("sk"), "{}", secrets.redact(&at_the_cut));
        // Values that are too short are not redacted.
        assert_eq!(
            Secrets::new([&Secret::new("1")], "").redact("exit status: 1"),
            "exit status: 1"
        );
    }

    #[test]
    fn a_secret_with_escaped_characters_is_redacted() {
        let key = Secret::new("Bearer sk-very/secret");
        let secrets = Secrets::new([&key], "");
        for text in [
            r#"{"error": "no key sk\u002dvery\u002Fsecret"}"#,
            r#"{"error": "no key sk-very\/secret"}"#,
            r"\u0073k-very\u002fsecret",
        ] {
            let redacted = secrets.redact(text);
            assert!(redacted.contains('…') && !redacted.contains("very"), "{redacted}");
        }
        assert_eq!(secrets.redact(r"a\nb \u00e9 \q \u12"), r"a\nb \u00e9 \q \u12");
        assert_eq!(without_escapes(r#"a\nb \u00e9\\ \" \u12\"#), r#"a\nb é\ " \u12\"#);
    }

    #[test]
    fn a_url_is_redacted() {
        assert_eq!(redacted_url("https://u:p@h:8/v1?key=abc#f"), "https://h:8/v1");
        assert_eq!(redacted_url("https://h/a@b"), "https://h/a@b");
        assert_eq!(redacted_url("nowhere?key=abc"), "nowhere");
    }
}
