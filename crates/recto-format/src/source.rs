//! `metadata.source`: where a message comes from, and what it takes to give it back as it came.
//!
//! ```json
//! {"format": "anthropic", "provider": "anthropic", "model": "…", "original": {…}, "layout": "spaced",
//!  "of": "0123456789abcdef", "piece": 0, "pieces": 2}
//! ```
//!
//! - A foreign message that is a Recto message already, with the same meaning, has no source.
//! - `original` is the foreign JSON, byte for byte. It stands only where writing the made message in
//!   that format would not give those bytes, and only in the first piece. Log entries never change,
//!   so it is always true to its message.
//! - `of`, `piece`, `pieces`: one foreign message became several here. `of` is a hash of the foreign
//!   bytes, so that pieces of different messages that an edit brought together are told apart.
//! - `hole`, `hole_at`: a long value that the message says with the same bytes is not kept twice; the
//!   original of a session's line has `null` in its place.
//! - `before`: lines that are no messages, such as a session's bookkeeping, with the message that
//!   follows them.
//! - `provider` and `model` say who wrote an assistant message: signatures and opaque parts go back
//!   to their maker only.

use crate::json::{self, Str};

/// Where a message comes from.
#[derive(Clone, Copy, Debug, Default)]
pub struct Source<'a> {
    /// The name of the format it was imported from.
    pub format: Option<Str<'a>>,
    /// Whose model wrote it.
    pub provider: Option<Str<'a>>,
    /// Which model wrote it.
    pub model: Option<Str<'a>>,
    /// The foreign message, where it cannot be made again from the parts.
    pub original: Option<&'a str>,
    /// How the foreign JSON was laid out.
    pub layout: Layout,
    /// Which foreign message it is a piece of.
    pub of: Option<Str<'a>>,
    /// Which piece of it this is, from 0.
    pub piece: usize,
    /// How many pieces there are.
    pub pieces: usize,
    /// What of the original is not in it, since the message says it: `content`, `text` or `result`.
    pub hole: Option<Str<'a>>,
    /// Where a `null` stands for it in the original, in bytes.
    pub hole_at: usize,
    /// What stood in the file in front of it and is no message: a list of JSON values.
    pub before: Option<&'a str>,
}

/// How JSON is laid out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// Without any space.
    #[default]
    Compact,
    /// As Python's `json.dumps` does: a space behind every comma and colon.
    Spaced,
}

impl<'a> Source<'a> {
    /// The source in a message's metadata.
    pub(crate) fn of(metadata: &'a str) -> Option<Source<'a>> {
        let source = json::get(metadata, "source").filter(|source| json::is_object(source))?;
        let mut read = Source { pieces: 1, ..Source::default() };
        for (key, value) in json::fields(source) {
            match &*key.text() {
                "format" => read.format = Str::of(value),
                "provider" => read.provider = Str::of(value),
                "model" => read.model = Str::of(value),
                "original" => read.original = Some(value),
                "layout" if value == r#""spaced""# => read.layout = Layout::Spaced,
                "of" => read.of = Str::of(value),
                "piece" => read.piece = value.parse::<u32>().map_or(0, |piece| piece as usize),
                "pieces" => read.pieces = value.parse::<u32>().map_or(1, |count| count as usize),
                "hole" => read.hole = Str::of(value),
                "hole_at" => read.hole_at = value.parse().unwrap_or(usize::MAX),
                "before" => read.before = Some(value).filter(|value| json::is_list(value)),
                _ => {}
            }
        }
        Some(read)
    }

    /// Whether it was imported from this format.
    pub fn is_from(&self, format: &str) -> bool {
        self.format.is_some_and(|name| name.text() == format)
    }

    /// Whether the provider made it, and the model as far as both are known.
    pub(crate) fn is_made_by(&self, provider: &str, model: Option<&str>) -> bool {
        let is_model = match (self.model, model) {
            (Some(made_by), Some(model)) => made_by.text() == model,
            _ => true,
        };
        is_model && self.provider.is_some_and(|made_by| made_by.text() == provider)
    }

    /// Adds it as JSON.
    pub(crate) fn write(&self, out: &mut String) {
        out.push('{');
        let start = out.len();
        let strings = [
            ("format", self.format),
            ("provider", self.provider),
            ("model", self.model),
            ("of", self.of),
            ("hole", self.hole),
        ];
        for (key, value) in strings {
            if let Some(value) = value {
                key_into(key, start, out);
                json::push_str(value, out);
            }
        }
        if self.hole.is_some() {
            key_into("hole_at", start, out);
            out.push_str(&self.hole_at.to_string());
        }
        if self.pieces > 1 {
            key_into("piece", start, out);
            out.push_str(&format!("{},\"pieces\":{}", self.piece, self.pieces));
        }
        if self.layout == Layout::Spaced {
            key_into("layout", start, out);
            out.push_str("\"spaced\"");
        }
        for (key, value) in [("before", self.before), ("original", self.original)] {
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

/// A hash that stays the same for ever (FNV-1a, 64 bits), as 16 digits.
pub(crate) fn hash(text: &str) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in text.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    format!("{hash:016x}")
}

/// A hash that is quick over long texts, for telling them apart in memory.
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
    fn a_source_is_read_as_it_was_written() {
        for source in [
            r#"{"format":"openai-chat"}"#,
            r#"{"format":"anthropic","provider":"anthropic","model":"m\"1","of":"00ff","piece":1,"pieces":3}"#,
            r#"{"format":"x","layout":"spaced","original":{"a": 1e400}}"#,
            r#"{"format":"x","hole":"text","hole_at":7,"original":{"a":null}}"#,
            r#"{"format":"x","before":[{"type":"summary"}],"original":{}}"#,
        ] {
            let metadata = format!(r#"{{"source":{source}}}"#);
            let mut out = String::new();
            Source::of(&metadata).unwrap().write(&mut out);
            assert_eq!(out, source);
        }
        assert!(Source::of(r#"{"source":"a book"}"#).is_none());
    }
}
