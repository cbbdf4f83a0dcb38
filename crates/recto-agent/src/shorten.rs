//! Shortening of long texts.

/// The text, if it has at most `max` bytes. Otherwise at most `max` bytes of its start and its end, with a
/// note between them.
pub(crate) fn shortened(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let front = text.floor_char_boundary(max / 2);
    let back = text.ceil_char_boundary(text.len() - max / 2);
    let omitted = back - front;
    format!("{}\n[{omitted} bytes omitted]\n{}", &text[..front], &text[back..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_keeps_its_start_and_end_in_whole_characters() {
        assert_eq!(shortened("short", 5), "short");
        assert_eq!(shortened("éééééé", 6), "é\n[8 bytes omitted]\né");
        assert_eq!(shortened("abc", 0), "\n[3 bytes omitted]\n");
    }
}
