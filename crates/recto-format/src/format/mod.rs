//! The formats: one file each.
//!
//! To add one, write a [`Codec`] in a file of its own, add its variant to [`Format`] and its line to
//! [`Format::codec`]. A format that is a list of messages writes a
//! [`MessageForm`](message_list::MessageForm) instead, and gets import, export, original bytes,
//! envelopes and JSON lines from `message_list.rs`; `openai_chat.rs` is the one to read first. Formats
//! that are trees or logs of events implement [`Codec`] directly.

mod head;
pub(crate) mod message_list;
pub(crate) mod openai_chat;

use std::fmt;
use std::io::{Read, Write};

use recto_core::Message;

use crate::Error;
use crate::export::ExportOptions;
use crate::import::{Input, Out, Remark};

pub(crate) use head::{Head, Likelihood};

/// A format of transcripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Messages of OpenAI's chat completions: a list, a request with `messages`, or JSON lines of
    /// either.
    OpenAiChat,
}

impl Format {
    /// Every format.
    pub const ALL: &'static [Format] = &[Format::OpenAiChat];

    /// The name, as it is written on command lines and in `metadata.source.format`.
    pub fn name(self) -> &'static str {
        match self {
            Format::OpenAiChat => "openai-chat",
        }
    }

    /// The format of that name.
    pub fn named(name: &str) -> Option<Format> {
        Format::ALL.iter().copied().find(|format| format.name() == name)
    }

    /// Finds out the format from the first bytes of a file.
    pub fn recognise(mut file: impl Read) -> Result<Format, Error> {
        let head = Head::read(&mut file)?;
        let mut best = (Likelihood::No, None);
        for &format in Format::ALL {
            let likelihood = format.codec().recognise(&head);
            if likelihood > best.0 {
                best = (likelihood, Some(format));
            }
        }
        best.1.ok_or(Error::UnknownFormat)
    }

    /// What reads and writes it.
    pub(crate) fn codec(self) -> &'static dyn Codec {
        match self {
            Format::OpenAiChat => &openai_chat::OpenAiChat,
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What reads and writes a format.
pub(crate) trait Codec: Sync {
    /// How much the start of a file looks like this format.
    fn recognise(&self, head: &Head) -> Likelihood;

    /// Reads a file and puts out steps.
    fn import(&self, input: &dyn Input, out: &mut Out<'_>) -> Result<(), Error>;

    /// Writes messages, and says what the format has no place for.
    fn export(
        &self,
        messages: &mut dyn Iterator<Item = &Message>,
        options: &ExportOptions<'_>,
        file: &mut dyn Write,
    ) -> Result<Vec<Remark>, Error>;
}
