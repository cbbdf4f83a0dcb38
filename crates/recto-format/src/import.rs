//! Import: reads a transcript of any format as a sequence of [`Step`]s.
//!
//! A codec of `format/` passes its messages to a [`StepWriter`](crate::step_writer::StepWriter), which
//! turns them into steps: messages to append, requests (a compaction is a COMPRESS, a rewind a
//! ROLLBACK), forks, and new conversations. A [`Sink`] receives the steps. Content that a conversation
//! cannot represent is reported as a [`TranscriptWarning`] with its line and field. Memory use is
//! bounded by the largest message, plus ids (not bodies) for formats that are trees.
//!
//! Steps build new conversations without tools. Every [`Append`](Step::Append) and
//! [`Apply`](Step::Apply) creates exactly one version, so a codec can compute the numbers of versions
//! and log entries in advance.
//!
//! [`Replay`](crate::Replay) is the sink that builds conversations in memory.

use std::fs::File;
use std::io::{Cursor, Read, Seek as _, SeekFrom};

use recto_core::{Limits, Message, Request, Timestamp, Version};

use crate::step_writer::StepWriter;
use crate::unpack;
use crate::{Error, Format};

/// Input that can be read from the start several times. Formats that are trees need two passes.
pub trait Input {
    /// Opens the input at its first byte. Several readers may be open at the same time: reading from one of
    /// them does not move the others.
    fn open(&self) -> std::io::Result<Box<dyn Read + '_>>;
}

impl Input for [u8] {
    fn open(&self) -> std::io::Result<Box<dyn Read + '_>> {
        Ok(Box::new(Cursor::new(self)))
    }
}

impl Input for Vec<u8> {
    fn open(&self) -> std::io::Result<Box<dyn Read + '_>> {
        self.as_slice().open()
    }
}

impl Input for str {
    fn open(&self) -> std::io::Result<Box<dyn Read + '_>> {
        Ok(Box::new(Cursor::new(self.as_bytes())))
    }
}

impl Input for String {
    fn open(&self) -> std::io::Result<Box<dyn Read + '_>> {
        self.as_str().open()
    }
}

impl Input for File {
    fn open(&self) -> std::io::Result<Box<dyn Read + '_>> {
        let mut reader = FileReader { file: self, offset: 0 };
        // A stream that cannot be read twice is refused here.
        reader.file.seek(SeekFrom::Start(0))?;
        Ok(Box::new(reader))
    }
}

/// A reader of a file with an offset of its own, because all readers of one [`File`] share the offset of the
/// file.
struct FileReader<'a> {
    file: &'a File,
    offset: u64,
}

impl Read for FileReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.file.seek(SeekFrom::Start(self.offset))?;
        let read = self.file.read(buffer)?;
        self.offset += read as u64;
        Ok(read)
    }
}

/// One step of an import. The steps of a file, applied in order, build its conversations.
///
/// A conversation and its forks are its branches: branch 0 is the conversation itself, branch n its
/// n-th fork.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Step {
    /// Starts a conversation. The steps that follow belong to its branch 0. A file with a single
    /// unnamed conversation has this step too.
    Start(Start),
    /// Appends messages to the current branch: one version.
    Append(Vec<Message>),
    /// Applies a request to the current branch: one version.
    Apply(Request),
    /// The envelope: the JSON around the messages, as one object with `null` in place of the list of
    /// messages: `{"model":"…","messages":null}`. For a session, the lines after the last message that
    /// the message cannot store, as a JSON list.
    ///
    /// [`export`](crate::export) can write messages into an envelope, and
    /// [`EnvelopeInfo`](crate::EnvelopeInfo) reads the tools in it. No store keeps it: a program that
    /// writes the file again must keep it itself.
    Envelope(String),
    /// Forks the conversation that was started last. The steps that follow belong to the new branch.
    Fork {
        /// The name of the fork in the file.
        name: String,
        /// The branch that is forked.
        parent_branch: usize,
        /// The version of that branch at which the fork starts.
        version: Version,
    },
    /// Switches to another branch. The steps that follow belong to it.
    SwitchBranch(usize),
}

/// Metadata of a conversation in a file.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Start {
    /// Title.
    pub name: Option<String>,
    /// Id in the file.
    pub id: Option<String>,
    /// Creation time.
    pub created: Option<Timestamp>,
    /// True if the file has one message or session record per line, and no list of them.
    /// [`Container::Lines`] writes this layout.
    ///
    /// [`Container::Lines`]: crate::Container::Lines
    pub is_json_lines: bool,
}

impl Start {
    /// A conversation with a title and no other metadata.
    pub fn named(name: impl Into<String>) -> Start {
        Start { name: Some(name.into()), ..Start::default() }
    }
}

/// A remark: on import, about content of a file that a conversation cannot represent; on export, about
/// content of a message that the format cannot represent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TranscriptWarning {
    /// Line of the file, from 1; 0 for the file as a whole. On export, the number of the message, from 1.
    pub line: u64,
    /// Field, such as `messages[3].content[0].type`. Empty for the whole line or message.
    pub field: String,
    /// The content, and what happened to it.
    pub message: String,
}

impl TranscriptWarning {
    /// A warning about a field of a line.
    pub fn new(line: u64, field: impl Into<String>, message: impl Into<String>) -> Self {
        TranscriptWarning { line, field: field.into(), message: message.into() }
    }
}

/// Receives the steps of an import.
pub trait Sink {
    /// Receives the next step. An error ends the import.
    fn step(&mut self, step: Step) -> Result<(), Error>;
    /// Receives a warning about content that no step represents.
    fn warning(&mut self, _warning: TranscriptWarning) {}
    /// Receives the number of bytes read so far, after decompression.
    fn progress(&mut self, _bytes: u64) {}
}

/// A sink that collects all steps and warnings.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Collected {
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// The warnings, in order.
    pub warnings: Vec<TranscriptWarning>,
}

impl Sink for Collected {
    fn step(&mut self, step: Step) -> Result<(), Error> {
        self.steps.push(step);
        Ok(())
    }

    fn warning(&mut self, warning: TranscriptWarning) {
        self.warnings.push(warning);
    }
}

/// Options of [`import`]. Fields may be added: write `..ImportOptions::default()`.
#[derive(Clone, Copy, Debug)]
pub struct ImportOptions {
    /// Limits of one value of a file: a message of a list, a line of a session, a node of a graph.
    /// `message_bytes` applies to all of them. A conversation that has to be held in memory as a whole
    /// (a graph) may be [`WHOLE_CONVERSATION_FACTOR`](Self::WHOLE_CONVERSATION_FACTOR) times as large.
    pub limits: Limits,
    /// Maximum number of messages of one [`Step::Append`], for files that are not divided into turns.
    pub messages_per_step: usize,
    /// True to omit the remarks about white space between messages that export does not restore. Useful
    /// if the input is not a file.
    pub ignores_white_space: bool,
}

impl ImportOptions {
    /// Maximum size of a conversation that has to be held in memory as a whole, in multiples of the
    /// maximum size of one value.
    pub const WHOLE_CONVERSATION_FACTOR: usize = 8;
}

impl Default for ImportOptions {
    /// 32 MiB and 64 levels per value, because session lines contain tool output twice and compactions
    /// contain many messages; 256 messages per step; remarks about white space.
    fn default() -> Self {
        let limits = Limits { message_bytes: 32 << 20, ..Limits::default() };
        ImportOptions { limits, messages_per_step: 256, ignores_white_space: false }
    }
}

/// Imports a file and returns its format. Without `format`, the format is recognised from the first
/// bytes.
///
/// A message that cannot be read causes a warning. If no message of the file can be read as `format` and
/// the file has another format or none, the import fails with [`Error::OtherFormat`] or
/// [`Error::NotInFormat`] after the last step.
///
/// ```
/// use recto_format::{Collected, Format, ImportOptions, Step, import};
///
/// let file = r#"[{"role":"user","content":"2 + 2?"},{"role":"assistant","content":"4"}]"#;
/// let mut collected = Collected::default();
/// let format = import(file, None, &ImportOptions::default(), &mut collected)?;
/// assert_eq!(format, Format::OpenAiChat);
/// let Step::Append(messages) = &collected.steps[1] else { panic!() };
/// assert_eq!(messages[1].json(), r#"{"role":"assistant","content":"4"}"#);
/// # Ok::<(), recto_format::Error>(())
/// ```
pub fn import<I: Input + ?Sized>(
    input: &I,
    format: Option<Format>,
    options: &ImportOptions,
    sink: &mut dyn Sink,
) -> Result<Format, Error> {
    let named = format;
    let format = match named {
        Some(format) => format,
        None => Format::recognise(input.open()?)?,
    };
    let mut out = StepWriter::new(options, sink);
    let imported = format.codec().import(&Unpacked(input), &mut out).and_then(|()| out.finish());
    imported.map_err(|error| error.in_format(format))?;
    // With a wrong `format`, every message is unreadable. One error is clearer than many warnings.
    if named.is_some() && out.nothing_readable() {
        match Format::recognise(input.open()?) {
            Ok(looks_like) if looks_like != format => {
                return Err(Error::OtherFormat { format, looks_like });
            }
            Err(Error::UnknownFormat { looks_like }) => {
                return Err(Error::NotInFormat { format, looks_like });
            }
            _ => {}
        }
    }
    out.check_roles().map_err(|error| error.in_format(format))?;
    Ok(format)
}

/// An input that is decompressed while it is read.
pub(crate) struct Unpacked<'a, I: ?Sized>(pub(crate) &'a I);

impl<I: Input + ?Sized> Input for Unpacked<'_, I> {
    fn open(&self) -> std::io::Result<Box<dyn Read + '_>> {
        unpack::open(self.0.open()?)
    }
}
