//! Texts of strangers, made fit for a line of a terminal.

/// The beginning of `text` in at most `width` characters, on one line. What would move the cursor,
/// change colours or turn the direction of writing is written as an escape; what is left out is
/// marked by `…`.
pub(crate) fn one_line(text: &str, width: usize) -> String {
    let mut line = String::new();
    let mut used = 0;
    // Where to cut, should the text turn out to be too long.
    let mut room = 0;
    for character in text.chars() {
        let written = escaped(character);
        used += written.chars().count();
        if used > width {
            line.truncate(room);
            line.push('…');
            return line;
        }
        line.push_str(&written);
        if used < width {
            room = line.len();
        }
    }
    line
}

fn escaped(character: char) -> String {
    if character.is_control() || steers_the_line(character) {
        character.escape_default().to_string()
    } else {
        character.to_string()
    }
}

/// Line separators, and marks that turn the direction of writing: not control characters to
/// Unicode, but a terminal obeys them.
fn steers_the_line(character: char) -> bool {
    matches!(character,
        '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::one_line;

    #[test]
    fn what_steers_a_terminal_is_escaped() {
        assert_eq!(one_line("a\nb\tc", 80), r"a\nb\tc");
        assert_eq!(one_line("\u{1b}[31mred\u{9b}0m\u{7f}", 80), r"\u{1b}[31mred\u{9b}0m\u{7f}");
        assert_eq!(one_line("abc\u{202e}fed\u{2066}", 80), r"abc\u{202e}fed\u{2066}");
        assert_eq!(one_line("naïve 中文 👍", 80), "naïve 中文 👍");
    }

    #[test]
    fn a_long_text_is_cut_between_characters_and_never_inside_an_escape() {
        assert_eq!(one_line("abcde", 5), "abcde");
        assert_eq!(one_line("abcdef", 5), "abcd…");
        assert_eq!(one_line("abc\n\n", 6), "abc\\n…");
        assert_eq!(one_line("ab\u{1b}c", 5), "ab…");
        assert_eq!(one_line("中文字", 2), "中…");
        assert_eq!(one_line("abc", 1), "…");
        assert_eq!(one_line("", 5), "");
    }
}
