//! The rule for names of conversations.

use recto_store::{ConversationId, Error as StoreError};

use crate::Error;

/// Checks whether a conversation can have this name. All functions that create, fork, rename, import or
/// restore a conversation call it.
///
/// A name must not be `@`, which means the conversation that was used last; it must not have the form of
/// an id, because conversations are also found by their id; and it must not start with a control
/// character. It must be a name that every store can hold: not empty, at most 512 bytes, without U+0000.
///
/// ```
/// assert!(recto::check_name("support").is_ok());
/// assert_eq!(recto::check_name("@").unwrap_err().code(), "invalid_operation");
/// ```
pub fn check_name(name: &str) -> Result<(), Error> {
    let reason = if name == "@" {
        "be \"@\", which means the conversation that was used last"
    } else if name.parse::<ConversationId>().is_ok() {
        "have the form of an id, because conversations are also found by their id"
    } else if name.starts_with(char::is_control) {
        "start with a control character"
    } else {
        return Ok(recto_store::check_name(name)?);
    };
    Err(StoreError::InvalidText { what: "name", reason: format!("{reason}; choose another name") }
        .into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_another_meaning_are_refused() {
        let id = "0199f3a2-7c1e-7d44-9a5b-3f0e8c2d1b6a";
        let upper = id.to_uppercase();
        for name in ["@", id, &upper, "\u{1}removed x", "\nx", "\u{9b}x", "\u{7f}"] {
            let error = check_name(name).unwrap_err();
            assert_eq!(error.code(), "invalid_operation", "{name:?}");
        }
        for name in ["", "a\0b", &"x".repeat(513)] {
            assert_eq!(check_name(name).unwrap_err().code(), "invalid_operation", "{name:?}");
        }
        for name in ["a", "@a", "a@", "中文", " x", "a\u{1b}[2J", &id[1..], "session 1"] {
            assert!(check_name(name).is_ok(), "{name:?}");
        }
    }
}
