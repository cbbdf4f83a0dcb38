//! A line of a Claude Code session.

use recto_core::Timestamp;

use super::super::time;
use crate::json::{self, Str};
use crate::source;

/// A line of the file.
pub(super) struct Line<'a> {
    pub(super) json: &'a str,
    pub(super) number: u64,
    pub(super) fields: json::Object<'a>,
    pub(super) kind: Str<'a>,
    pub(super) uuid: Option<Str<'a>>,
    /// Uuid of its parent.
    pub(super) parent: Option<Str<'a>>,
    /// True if `parentUuid` is `null`: the line has no parent.
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
        self.fields.is_true(flag)
    }

    pub(super) fn time(&self) -> Option<Timestamp> {
        let time = self.fields.get_str("timestamp")?;
        time::parse_time(&time.text())
    }

    /// Hash of its message, or of the whole line if it has none.
    pub(super) fn content_hash(&self) -> u64 {
        source::quick_hash(self.fields.get("message").unwrap_or(self.json).as_bytes())
    }
}
