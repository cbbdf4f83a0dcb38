//! Escapes untrusted text for a terminal. All printed text passes through here.
//!
//! Characters that move the cursor, change colours, change the direction of writing or are invisible
//! are written as escapes.

use std::borrow::Cow;

use unicode_width::UnicodeWidthChar;

/// The text on one line, with unsafe characters escaped.
pub(crate) fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut line = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match is_unsafe(character) {
            true => line.extend(character.escape_default()),
            false => line.push(character),
        }
    }
    Cow::Owned(line)
}

/// JSON text with unsafe characters as JSON escapes. It is still the same document.
pub(crate) fn escaped_json(json: &str) -> Cow<'_, str> {
    // Line breaks occur only between values: inside strings they are escaped already.
    let is_hidden = |character: char| character != '\n' && is_unsafe(character);
    if !json.contains(is_hidden) {
        return Cow::Borrowed(json);
    }
    let mut safe = String::with_capacity(json.len() + 8);
    for character in json.chars() {
        match is_hidden(character) {
            true => {
                let mut units = [0; 2];
                for unit in character.encode_utf16(&mut units) {
                    safe.push_str(&format!("\\u{unit:04x}"));
                }
            }
            false => safe.push(character),
        }
    }
    Cow::Owned(safe)
}

/// Indents JSON text, one value per line. Only white space between values changes, so numbers and
/// escapes keep their spelling.
pub(crate) fn pretty_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    let (mut depth, mut is_string, mut is_escaped) = (0_usize, false, false);
    let mut characters = json.chars().peekable();
    let new_line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', depth.min(64) * 2));
    };
    while let Some(character) = characters.next() {
        if is_string {
            out.push(character);
            is_string = is_escaped || character != '"';
            is_escaped = !is_escaped && character == '\\';
            continue;
        }
        match character {
            ' ' | '\t' | '\r' | '\n' => {}
            '[' | '{' => {
                out.push(character);
                while characters.next_if(|next| next.is_ascii_whitespace()).is_some() {}
                if let Some(end) = characters.next_if(|next| matches!(next, ']' | '}')) {
                    out.push(end);
                } else {
                    depth += 1;
                    new_line(&mut out, depth);
                }
            }
            ']' | '}' => {
                depth = depth.saturating_sub(1);
                new_line(&mut out, depth);
                out.push(character);
            }
            ',' => {
                out.push(character);
                new_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            '"' => {
                out.push(character);
                is_string = true;
            }
            other => out.push(other),
        }
        // Several documents may follow each other, as in JSON lines.
        if depth == 0 && matches!(character, ']' | '}') {
            out.push('\n');
        }
    }
    out
}

/// The number of columns of an escaped text.
pub(crate) fn width(text: &str) -> usize {
    text.chars().map(width_of).sum()
}

fn width_of(character: char) -> usize {
    character.width().unwrap_or(0)
}

/// Cuts an escaped text to at most `columns` columns and marks the cut with `…`. An escape is kept or removed
/// as a whole.
pub(crate) fn cut(text: &str, columns: usize) -> Cow<'_, str> {
    if text.len() <= columns || width(text) <= columns {
        return Cow::Borrowed(text);
    }
    let (mut used, mut end) = (0, 0);
    let mut rest = text;
    while let Some(piece) = next_piece(rest) {
        used += width(piece);
        if used + 1 > columns {
            break;
        }
        end += piece.len();
        rest = &text[end..];
    }
    Cow::Owned(format!("{}…", &text[..end]))
}

/// The first character or escape of a text.
fn next_piece(text: &str) -> Option<&str> {
    let first = text.chars().next()?;
    if first != '\\' {
        return Some(&text[..first.len_utf8()]);
    }
    let end = match text[1..].chars().next() {
        Some('u') if text[2..].starts_with('{') => text.find('}').map_or(1, |end| end + 1),
        Some('n' | 'r' | 't') => 2,
        _ => 1,
    };
    Some(&text[..end])
}

/// Escapes a text and cuts it to at most `width` columns.
pub(crate) fn one_line(text: &str, width: usize) -> String {
    // Only a prefix is escaped, because the text may be megabytes long. Eight characters per column
    // allow for characters of width 0.
    let max_chars = width.saturating_mul(8).max(256);
    let beginning = text.char_indices().nth(max_chars).map_or(text, |(end, _)| &text[..end]);
    let line = escaped(beginning);
    match beginning.len() < text.len() && self::width(&line) <= width {
        true => cut(&format!("{line}{}", " ".repeat(width + 1)), width).into_owned(),
        false => cut(&line, width).into_owned(),
    }
}

/// Whether a character is a control character, a line separator, a mark of the direction of writing, or
/// invisible. Terminals act on some of them; the others can mislead a reader.
fn is_unsafe(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// A value as an argument of a command, in quotes if a shell would read it otherwise.
pub(crate) fn argument(value: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:@=+,".contains(&byte);
    match !value.is_empty() && value.bytes().all(is_plain) {
        true => Cow::Borrowed(value),
        false => Cow::Owned(format!("'{}'", value.replace('\'', "'\\''"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indenting_json_changes_only_white_space() {
        let json = r#"{"a":[1.0,{}, [ ]],"b":"x, \"{\" \\","c":{"d":18446744073709551616}}"#;
        let expected = "{\n  \"a\": [\n    1.0,\n    {},\n    []\n  ],\n  \"b\": \"x, \\\"{\\\" \\\\\",\n  \
                        \"c\": {\n    \"d\": 18446744073709551616\n  }\n}\n";
        assert_eq!(pretty_json(json), expected);
        assert_eq!(pretty_json("{\"a\":1}\n{\"b\":2}\n"), "{\n  \"a\": 1\n}\n{\n  \"b\": 2\n}\n");
    }

    #[test]
    fn unsafe_characters_are_escaped() {
        assert_eq!(escaped("a\nb\tc"), r"a\nb\tc");
        assert_eq!(escaped("\u{1b}[31mred\u{9b}0m\u{7f}"), r"\u{1b}[31mred\u{9b}0m\u{7f}");
        assert_eq!(escaped("abc\u{202e}fed\u{2066}"), r"abc\u{202e}fed\u{2066}");
        assert_eq!(escaped("a\u{e0041}\u{feff}"), r"a\u{e0041}\u{feff}");
        assert!(matches!(escaped("naïve 中文 👍"), Cow::Borrowed("naïve 中文 👍")));
    }

    #[test]
    fn escaped_json_is_the_same_document() {
        let value = serde_json::json!({"a": "\u{9b}31m\u{202e}\u{e0041}\u{7f}", "b": ["中\n"]});
        for json in [value.to_string(), format!("{value:#}")] {
            let safe = escaped_json(&json);
            assert!(!safe.contains(|c| c != '\n' && is_unsafe(c)), "{safe:?}");
            assert_eq!(serde_json::from_str::<serde_json::Value>(&safe).unwrap(), value);
        }
        assert!(matches!(escaped_json("{\n  \"a\": 1\n}"), Cow::Borrowed(_)));
    }

    #[test]
    fn a_long_text_is_cut_between_characters_and_never_inside_an_escape() {
        assert_eq!(one_line("abcde", 5), "abcde");
        assert_eq!(one_line("abcdef", 5), "abcd…");
        assert_eq!(one_line("abc\n\n", 6), "abc\\n…");
        assert_eq!(one_line("ab\u{1b}c", 5), "ab…");
        assert_eq!(one_line("中文字", 5), "中文…");
        assert_eq!(one_line("中文字", 6), "中文字");
        assert_eq!(one_line("abc", 1), "…");
        assert_eq!(one_line("", 5), "");
        assert_eq!(one_line(r"a\{b", 9), r"a\{b");
        assert_eq!(one_line(&"ab".repeat(1_000_000), 5), "abab…");
        assert_eq!(
            one_line(&"\u{301}".repeat(5_000), 5),
            format!("{}{}", "\u{301}".repeat(256), "    …")
        );
    }
}
