//! A line of a session.

use recto_core::Timestamp;

use super::super::session_line;
use crate::json::{self, Str};
use crate::source;

/// A line of the file.
pub(super) struct Line<'a> {
    pub(super) json: &'a str,
    pub(super) number: u64,
    pub(super) fields: json::Object<'a>,
    pub(super) kind: Str<'a>,
    pub(super) uuid: Option<Str<'a>>,
    /// The uuid of its parent.
    pub(super) parent: Option<Str<'a>>,
    /// Whether it says that it has no parent.
    pub(super) is_root: bool,
}

impl<'a> Line<'a> {
    pub(super) fn read(json: &'a str, number: u64) -> Line<'a> {
        let fields = json::Object::of(json);
        Line {
            json,
            number,
            kind: fields.get_str("type").unwrap_or(Str::plain("")),
            uuid: fields.get_str("uuid"),
            parent: fields.get_str("parentUuid"),
            is_root: fields.get_or_null("parentUuid") == Some("null"),
            fields,
        }
    }

    pub(super) fn is(&self, flag: &str) -> bool {
        self.fields.is(flag)
    }

    pub(super) fn time(&self) -> Option<Timestamp> {
        let time = self.fields.get_str("timestamp")?;
        session_line::timestamp(&time.text())
    }

    /// What it says, as a hash: the message, or the whole line if it has none.
    pub(super) fn said(&self) -> u64 {
        source::quick_hash(self.fields.get("message").unwrap_or(self.json).as_bytes())
    }
}
