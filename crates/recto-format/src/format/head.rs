//! The first bytes of a file, by which its format is recognised.

use std::io::Read;

use crate::Error;
use crate::json;

/// Likelihood that a file has a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Likelihood {
    /// The file does not have the format.
    No,
    /// The structure matches, as that of other formats does.
    Maybe,
    /// The file has a feature that is rare in other formats.
    Likely,
    /// The file has a feature that no other format has.
    Certain,
    /// The file declares its format, or has a feature that overrules a `Certain` of another format.
    Declared,
}

/// The first 256 KiB of a file.
pub(crate) struct Head {
    bytes: Vec<u8>,
}

impl Head {
    pub(crate) const MAX_BYTES: u64 = 256 << 10;

    pub(crate) fn read(file: &mut dyn Read) -> Result<Self, Error> {
        let mut bytes = Vec::new();
        file.take(Self::MAX_BYTES).read_to_end(&mut bytes)?;
        Ok(Head { bytes })
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
