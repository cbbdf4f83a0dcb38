//! The first bytes of a file, by which its format is recognised.

use std::io::Read;

use super::abridged::Abridged;
use crate::Error;
use crate::json;

/// Likelihood that a file has a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Likelihood {
    /// The file does not have the format.
    No,
    /// The structure matches, but other formats have the same structure.
    Maybe,
    /// The file has a feature that is rare in other formats.
    Likely,
    /// The file has a feature that no other format has.
    Certain,
    /// The file declares its format, or has a feature that overrules a `Certain` of another format.
    Declared,
}

/// The first 256 KiB of a file. If a JSON file is longer, its long strings and lists are abridged first, so
/// that the head contains the fields after an inline image or after the messages.
pub(crate) struct Head {
    bytes: Vec<u8>,
}

impl Head {
    pub(crate) const MAX_BYTES: u64 = 256 << 10;
    /// Maximum number of bytes of a file that are read to recognise its format.
    const MAX_SCANNED_BYTES: u64 = 32 << 20;

    pub(crate) fn read(file: &mut dyn Read) -> Result<Self, Error> {
        let mut bytes = Vec::new();
        file.take(Self::MAX_BYTES).read_to_end(&mut bytes)?;
        let text = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&bytes);
        let start = text.iter().find(|byte| !byte.is_ascii_whitespace());
        if (bytes.len() as u64) < Self::MAX_BYTES || !matches!(start, Some(b'{' | b'[')) {
            return Ok(Head { bytes });
        }
        let mut abridged = Abridged::new(Self::MAX_BYTES as usize);
        abridged.push(text);
        let mut chunk = vec![0; 64 << 10];
        let mut total = Self::MAX_BYTES;
        while !abridged.is_full() && total < Self::MAX_SCANNED_BYTES {
            let len = file.read(&mut chunk)?;
            if len == 0 {
                break;
            }
            abridged.push(&chunk[..len]);
            total += len as u64;
        }
        Ok(Head { bytes: abridged.into_bytes() })
    }

    /// The raw bytes, for binary formats.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes as text up to the first invalid UTF-8, without leading white space.
    pub(crate) fn text(&self) -> &str {
        let text = match std::str::from_utf8(&self.bytes) {
            Ok(text) => text,
            Err(error) => std::str::from_utf8(&self.bytes[..error.valid_up_to()]).unwrap_or(""),
        };
        text.trim_start_matches('\u{feff}').trim_start()
    }

    /// The first objects of the file: JSON lines, items of a list, or a single object. The last one may
    /// be truncated.
    pub(crate) fn objects(&self) -> Vec<&str> {
        let text = self.text();
        match text.as_bytes().first() {
            Some(b'[') => json::items(text).filter(|item| json::is_object(item)).collect(),
            Some(b'{') => {
                // JSON lines, or a single object.
                let mut rest = text;
                let mut objects = Vec::new();
                while json::is_object(rest) {
                    let end = json::end_of(rest);
                    objects.push(&rest[..end]);
                    rest = rest[end..].trim_start();
                }
                objects
            }
            _ => Vec::new(),
        }
    }
}

impl Head {
    /// Maximum number of fields that a description names.
    const MAX_NAMED_FIELDS: usize = 8;

    /// A description of a file whose format is not recognised, such as `a JSON object with the fields a, b`.
    pub(crate) fn describe(&self) -> String {
        let text = self.text();
        let kind = match text.as_bytes().first() {
            None if self.bytes.is_empty() => return "empty".to_owned(),
            None => return "not text in UTF-8".to_owned(),
            Some(b'{') if self.objects().len() > 1 => "JSON lines",
            Some(b'{') => "a JSON object",
            Some(b'[') if self.objects().is_empty() => {
                return "a JSON list without objects".to_owned();
            }
            Some(b'[') => "a JSON list of objects",
            Some(_) => {
                let start: String = text.chars().take(20).collect();
                return format!("not JSON; it starts with {start:?}");
            }
        };
        let objects = self.objects();
        let first = objects.first().copied().unwrap_or_default();
        let names: Vec<String> = json::fields(first)
            .take(Self::MAX_NAMED_FIELDS + 1)
            .map(|(key, _)| key.text().chars().take(40).collect())
            .collect();
        let more = if names.len() > Self::MAX_NAMED_FIELDS { ", …" } else { "" };
        let names = names[..names.len().min(Self::MAX_NAMED_FIELDS)].join(", ");
        let mut described = format!("{kind} with the fields {names}{more}");
        if let Some(path) = crate::select::first_path(text) {
            described.push_str(&format!(", and messages at {path}"));
        }
        described
    }
}
