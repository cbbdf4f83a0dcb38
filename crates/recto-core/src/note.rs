//! A note: JSON that a writer stores with a version.

use std::fmt;
use std::sync::Arc;

use serde::de::Deserializer;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::{Error, Limits, json};

/// JSON that a writer stores with a version, such as the id of a run. The engine keeps its bytes and gives
/// them no meaning. A clone costs O(1).
///
/// ```
/// use recto_core::Note;
///
/// let note = Note::from_json(r#"{"run": "r-17"}"#)?;
/// assert_eq!(note.json(), r#"{"run": "r-17"}"#);
/// assert!(Note::from_json("{").is_err());
/// # Ok::<(), recto_core::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Note(Arc<str>);

impl Note {
    /// Maximum size of a note: 16 KiB.
    pub const MAX_BYTES: usize = 16 << 10;

    /// Reads a note: any JSON value of at most [`MAX_BYTES`](Self::MAX_BYTES) and 64 levels.
    pub fn from_json(text: &str) -> Result<Note, Error> {
        let text = json::trimmed(text);
        let too_large = |what, size, limit| {
            let field = Some("note".to_owned());
            if size <= limit { Ok(()) } else { Err(Error::TooLarge { what, size, limit, field }) }
        };
        too_large("a note's size in bytes", text.len(), Self::MAX_BYTES)?;
        too_large("the depth of the JSON", json::depth(text), Limits::default().depth)?;
        Ok(Note(json::value(text)?.into()))
    }

    /// The JSON of the note, as it was given.
    pub fn json(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Note({})", self.0)
    }
}

impl Serialize for Note {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        json::raw(&self.0).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Note {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Note, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Note(raw.get().into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Code;

    #[test]
    fn a_note_is_any_small_json_value() {
        for text in ["null", "7", "\"x\"", "[1, 2]", "{\"a\" : {}}", "1.50"] {
            assert_eq!(Note::from_json(&format!(" {text}\n")).unwrap().json(), text);
        }
        let of_size = |size: usize| format!("\"{}\"", "x".repeat(size - 2));
        assert!(Note::from_json(&of_size(Note::MAX_BYTES)).is_ok());
        let error = Note::from_json(&of_size(Note::MAX_BYTES + 1)).unwrap_err();
        assert_eq!((error.code(), error.field().as_deref()), (Code::TooLarge, Some("note")));
        let deep = format!("{}{}", "[".repeat(65), "]".repeat(65));
        assert_eq!(Note::from_json(&deep).unwrap_err().code(), Code::TooLarge);
        for text in ["", "{", "{} {}", "nul", "'x'", "\u{feff}{}"] {
            assert_eq!(Note::from_json(text).unwrap_err().code(), Code::InvalidJson, "{text}");
        }
    }
}
