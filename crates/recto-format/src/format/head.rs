//! The first bytes of a file, to find out its format.

use std::io::Read;

use crate::Error;
use crate::json;

/// How much a file looks like a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Likelihood {
    /// It is not.
    No,
    /// It may be: its shape fits, as that of others does.
    Maybe,
    /// It has something that is rare elsewhere.
    Likely,
    /// It has what no other format has.
    Surely,
    /// It says so, or has what another format that is sure of it may not have.
    Told,
}

/// The first 256 KiB of a file.
pub(crate) struct Head {
    bytes: Vec<u8>,
}

impl Head {
    pub(crate) const MOST: u64 = 256 << 10;

    pub(crate) fn read(file: &mut dyn Read) -> Result<Self, Error> {
        let mut bytes = Vec::new();
        file.take(Self::MOST).read_to_end(&mut bytes)?;
        Ok(Head { bytes })
    }

    /// As they are, for files that are packed.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// As text, as far as it is text, from the first character that is no space.
    pub(crate) fn text(&self) -> &str {
        let text = match std::str::from_utf8(&self.bytes) {
            Ok(text) => text,
            Err(error) => std::str::from_utf8(&self.bytes[..error.valid_up_to()]).unwrap_or(""),
        };
        text.trim_start_matches('\u{feff}').trim_start()
    }

    /// The first objects of the file, each perhaps cut off at its end: the lines of JSON lines, the
    /// items of a list, or the one object that the file is.
    pub(crate) fn objects(&self) -> Vec<&str> {
        let text = self.text();
        match text.as_bytes().first() {
            Some(b'[') => json::items(text).filter(|item| json::is_object(item)).collect(),
            Some(b'{') => {
                // JSON lines read like the items of a list without its bracket.
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
