//! `metadata.source`: the origin of a message, and what export needs to restore its original bytes.
//!
//! ```json
//! {"format": "anthropic", "provider": "anthropic", "model": "…", "original": {…}, "layout": "spaced",
//!  "of": "0123456789abcdef", "piece": 0, "pieces": 2}
//! ```
//!
//! A *foreign* message is a message of the imported transcript, in the format of the transcript. Import makes
//! one or several messages of it.
//!
//! - A foreign message that is also a Recto message with the same meaning is stored unchanged. If it has only
//!   plain texts, it has no source.
//! - `verbatim`: the message without its `metadata` is the foreign message, byte for byte. A message that is
//!   stored unchanged and has more than plain texts has this field, because a provider may read fields of it
//!   that Recto does not know.
//! - `original` is the foreign JSON, byte for byte. It is present only if writing the converted message
//!   in that format would give other bytes, and only in the first piece. Log entries never change, so
//!   it always matches its message.
//! - `of`, `piece`, `pieces`: one foreign message became several messages. `of` is a hash of the
//!   foreign bytes. It distinguishes pieces of different messages that an edit made neighbours.
//! - `hole`, `hole_at`: the field that was elided from the original of a session line because the
//!   message contains the same bytes, and the byte offset of the `null` that replaces it.
//! - `before`: session lines before the message that contain no message, such as token counts.
//! - `behind`: session lines behind the last message of the file.
//! - `envelope`: in the last message of a session that is a document, the document with `null` in place
//!   of the list of records; `null` if the file is the list.
//! - `spacing`: in a message with `envelope`, the white space in front of the first record, the separator of
//!   records, and the white space behind the last one.
//! - `field`: the field of the request that held the message, such as `system`; its `original` is the
//!   value of that field.
//! - `after`: the id of the reasoning item in front of an item of OpenAI's Responses. The provider
//!   rejects the item without it.
//! - `stored`: the call of a result was not in the imported request, because the provider has stored the call.
//! - `provider` and `model` name the producer of an assistant message. Signatures and opaque parts are
//!   sent to that producer only.

use crate::json::{self, Cursor, Str};

/// The origin of a message: `metadata.source`.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Source<'a> {
    /// Name of the format that the message was imported from.
    pub format: Option<Str<'a>>,
    /// Provider whose model produced the message.
    pub provider: Option<Str<'a>>,
    /// Model that produced the message.
    pub model: Option<Str<'a>>,
    /// The foreign message, if it cannot be rebuilt from the parts.
    pub original: Option<&'a str>,
    /// True if the message without its `metadata` is the foreign message. JSON: `verbatim`.
    pub is_verbatim: bool,
    /// White space of the foreign JSON.
    pub layout: Layout,
    /// Hash of the foreign message, if this message is one of several pieces of it. JSON: `of`.
    pub original_hash: Option<Str<'a>>,
    /// Index of this piece, from 0.
    pub piece: usize,
    /// Number of pieces.
    pub pieces: usize,
    /// The field that is elided from `original` because the message contains it: `content`, `text` or
    /// `result`. JSON: `hole`.
    pub elided_field: Option<Str<'a>>,
    /// Byte offset in `original` of the `null` that replaces the elided field. JSON: `hole_at`.
    pub elided_at: usize,
    /// JSON values in front of the message in the file that contain no message, as a list.
    pub before: Option<&'a str>,
    /// JSON values behind the last message of the file that contain no message, as a list.
    pub behind: Option<&'a str>,
    /// The document around the records of a session, with `null` in place of their list.
    pub envelope: Option<&'a str>,
    /// White space and separators around the records of the document, as a list of three strings.
    pub spacing: Option<&'a str>,
    /// Field of the request that held the message, if it was not in the list of messages.
    pub field: Option<Str<'a>>,
    /// Id of the reasoning item that the provider requires in front of this item.
    pub after: Option<Str<'a>>,
    /// True if the call of this result was not in the imported request. JSON: `stored`.
    pub has_stored_call: bool,
}

/// White space of a JSON text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Layout {
    /// No white space.
    #[default]
    Compact,
    /// A space after every comma and colon, as written by Python's `json.dumps`.
    Spaced,
}

impl<'a> Source<'a> {
    /// Reads the source in a message's metadata.
    #[cfg(test)]
    pub(crate) fn of(metadata: &'a str) -> Option<Source<'a>> {
        Source::at(&mut Cursor::new(metadata)).1
    }

    /// Reads a message's metadata and the source in it, in one pass.
    pub(crate) fn at(cursor: &mut Cursor<'a>) -> (&'a str, Option<Source<'a>>) {
        if cursor.peek() != Some(b'{') {
            return (cursor.value(), None);
        }
        let start = cursor.enter();
        let mut source = None;
        while let Some(b'"') = cursor.peek() {
            let key = Str::of(cursor.value());
            let is_source = key.is_some_and(|key| key.is("source"));
            match cursor.peek() {
                Some(b'{') if is_source => source = Some(Source::fields_at(cursor)),
                _ => drop(cursor.value()),
            }
        }
        (cursor.since(start), source)
    }

    /// Reads the fields of a source.
    fn fields_at(cursor: &mut Cursor<'a>) -> Source<'a> {
        let mut read = Source { pieces: 1, ..Source::default() };
        cursor.enter();
        while let Some(b'"') = cursor.peek() {
            let key = Str::of(cursor.value()).map(Str::text).unwrap_or_default();
            let value = cursor.value();
            match &*key {
                "format" => read.format = Str::of(value),
                "provider" => read.provider = Str::of(value),
                "model" => read.model = Str::of(value),
                "original" => read.original = Some(value),
                "verbatim" => read.is_verbatim = value == "true",
                "stored" => read.has_stored_call = value == "true",
                "layout" if value == r#""spaced""# => read.layout = Layout::Spaced,
                "of" => read.original_hash = Str::of(value),
                "piece" => read.piece = value.parse::<u32>().map_or(0, |piece| piece as usize),
                "pieces" => read.pieces = value.parse::<u32>().map_or(1, |count| count as usize),
                "hole" => read.elided_field = Str::of(value),
                "hole_at" => read.elided_at = value.parse().unwrap_or(usize::MAX),
                "field" => read.field = Str::of(value),
                "after" => read.after = Str::of(value),
                "before" => read.before = Some(value).filter(|value| json::is_list(value)),
                "behind" => read.behind = Some(value).filter(|value| json::is_list(value)),
                "envelope" => read.envelope = Some(value),
                "spacing" => read.spacing = Some(value).filter(|value| json::is_list(value)),
                _ => {}
            }
        }
        read
    }

    /// True if the message was imported from this format.
    pub fn is_from(&self, format: &str) -> bool {
        self.format.is_some_and(|name| name.text() == format)
    }

    /// True if the provider produced the message and, if both models are known, so did the model.
    pub(crate) fn is_made_by(&self, provider: &str, model: Option<&str>) -> bool {
        self.is_model(model) && self.provider.is_some_and(|made_by| made_by.text() == provider)
    }

    /// True if this model produced the message, or if one of both models is unknown.
    pub(crate) fn is_model(&self, model: Option<&str>) -> bool {
        match (self.model, model) {
            (Some(made_by), Some(model)) => is_same_model(&made_by.text(), model),
            _ => true,
        }
    }

    /// Appends the source as JSON.
    pub(crate) fn write(&self, out: &mut String) {
        out.push('{');
        let start = out.len();
        let strings = [
            ("format", self.format),
            ("provider", self.provider),
            ("model", self.model),
            ("of", self.original_hash),
            ("hole", self.elided_field),
            ("field", self.field),
            ("after", self.after),
        ];
        for (key, value) in strings {
            if let Some(value) = value {
                key_into(key, start, out);
                json::push_str(value, out);
            }
        }
        if self.elided_field.is_some() {
            key_into("hole_at", start, out);
            out.push_str(&self.elided_at.to_string());
        }
        if self.pieces > 1 {
            key_into("piece", start, out);
            out.push_str(&format!("{},\"pieces\":{}", self.piece, self.pieces));
        }
        if self.layout == Layout::Spaced {
            key_into("layout", start, out);
            out.push_str("\"spaced\"");
        }
        if self.has_stored_call {
            key_into("stored", start, out);
            out.push_str("true");
        }
        if self.is_verbatim {
            key_into("verbatim", start, out);
            out.push_str("true");
        }
        let values = [
            ("before", self.before),
            ("original", self.original),
            ("behind", self.behind),
            ("envelope", self.envelope),
            ("spacing", self.spacing),
        ];
        for (key, value) in values {
            if let Some(value) = value {
                key_into(key, start, out);
                out.push_str(value);
            }
        }
        out.push('}');
    }
}

fn key_into(key: &str, start: usize, out: &mut String) {
    if out.len() > start {
        out.push(',');
    }
    out.push('"');
    out.push_str(key);
    out.push_str("\":");
}

/// True if two names denote the same model. A name without a date is an alias of the dated one; two
/// dates are two models.
pub(crate) fn is_same_model(left: &str, right: &str) -> bool {
    let is_alias = |name: &str| name.ends_with("-latest") || without_date(name) == name;
    left == right
        || (is_alias(left) || is_alias(right)) && without_date(left) == without_date(right)
}

/// The name of a model without a date (`-20250929`, `-2025-09-29`, `@20250929`) or `-latest` at its end.
pub(crate) fn without_date(model: &str) -> &str {
    let name = model.strip_suffix("-latest").unwrap_or(model);
    let is_digits = |text: &str, len: usize| {
        text.len() == len && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    if let Some((front, date)) = name.rsplit_once(['-', '@'])
        && is_digits(date, 8)
    {
        return front;
    }
    let mut words = name.rsplitn(4, '-');
    match (words.next(), words.next(), words.next(), words.next()) {
        (Some(day), Some(month), Some(year), Some(front))
            if is_digits(day, 2) && is_digits(month, 2) && is_digits(year, 4) =>
        {
            front
        }
        _ => name,
    }
}

/// FNV-1a with 64 bits, as 16 hexadecimal digits. The hash is stored, so it must never change.
pub(crate) fn hash(text: &str) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in text.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    format!("{hash:016x}")
}

/// A fast hash of long texts, for comparisons in memory only.
pub(crate) fn quick_hash(bytes: &[u8]) -> u64 {
    let mut hash = bytes.len() as u64;
    let mut mix = |word: u64| {
        hash = (hash.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    };
    let mut words = bytes.chunks_exact(8);
    for word in &mut words {
        mix(u64::from_le_bytes(word.try_into().unwrap_or_default()));
    }
    let mut last = [0; 8];
    last[..words.remainder().len()].copy_from_slice(words.remainder());
    mix(u64::from_le_bytes(last));
    hash ^ (hash >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alias_of_a_model_is_the_dated_model() {
        assert!(is_same_model("claude-sonnet-4-5", "claude-sonnet-4-5-20250929"));
        assert!(is_same_model("gpt-4o-2024-08-06", "gpt-4o"));
        assert!(is_same_model("claude-3-7-sonnet@20250219", "claude-3-7-sonnet-latest"));
        assert!(!is_same_model("claude-sonnet-4-5", "claude-sonnet-4"));
        assert!(!is_same_model("gpt-4o", "gpt-4o-mini"));
        assert!(!is_same_model("gpt-4o-2024-05-13", "gpt-4o-2024-08-06"));
        assert!(!is_same_model("claude-a-20250929", "claude-a@20251101"));
    }

    #[test]
    fn a_source_is_read_as_it_was_written() {
        for source in [
            r#"{"format":"openai-chat"}"#,
            r#"{"format":"anthropic","provider":"anthropic","model":"m\"1","of":"00ff","piece":1,"pieces":3}"#,
            r#"{"format":"x","layout":"spaced","original":{"a": 1e400}}"#,
            r#"{"format":"x","hole":"text","hole_at":7,"original":{"a":null}}"#,
            r#"{"format":"anthropic","field":"system"}"#,
            r#"{"format":"openai-responses","after":"rs_1"}"#,
            r#"{"format":"openai-chat","verbatim":true}"#,
            r#"{"format":"openai-responses","stored":true}"#,
            r#"{"format":"x","before":[{"type":"summary"}],"original":{}}"#,
            r#"{"format":"x","original":{},"behind":[{"type":"end"}],"envelope":{"items":null}}"#,
            r#"{"format":"x","envelope":null,"spacing":["\n  ",",\n  ","\n"]}"#,
        ] {
            let metadata = format!(r#"{{"source":{source}}}"#);
            let mut out = String::new();
            Source::of(&metadata).unwrap().write(&mut out);
            assert_eq!(out, source);
        }
        assert!(Source::of(r#"{"source":"a book"}"#).is_none());
    }
}
