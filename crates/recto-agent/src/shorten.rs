//! Long texts without their middle.

/// A text of so many bytes at most, but for the words that say what is left out.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let front = text.floor_char_boundary(most / 2);
    let back = text.ceil_char_boundary(text.len() - most / 2);
    let left_out = back - front;
    format!("{}\n[{left_out} bytes left out]\n{}", &text[..front], &text[back..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn front_and_end_stay_whole_characters() {
        assert_eq!(shortened("short", 5), "short");
        assert_eq!(shortened("éééééé", 6), "é\n[8 bytes left out]\né");
        assert_eq!(shortened("abc", 0), "\n[3 bytes left out]\n");
    }
}
