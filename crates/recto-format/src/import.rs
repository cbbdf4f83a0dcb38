//! Transcripts in: a file of any format becomes steps that make conversations.
//!
//! A format hands its messages to an [`Out`], which passes them on as [`Step`]s: messages to append,
//! requests (a compaction is COMPRESS, a rewind is ROLLBACK), forks, and new conversations. What could
//! not be represented is said in [`Remark`]s, with line and field. Memory is bounded by the largest
//! message and what a tree needs: ids, not bodies.
//!
//! Steps are for new conversations without tools: every [`Append`](Step::Append) and
//! [`Apply`](Step::Apply) makes exactly one version, so a format knows the numbers of versions and log
//! entries beforehand ([`Out::version`], [`Out::log_len`]).

use std::fs::File;
use std::io::{Cursor, Read, Seek as _, SeekFrom};

use recto_core::{Conversation, Limits, Message, Request, Settings, Timestamp, Version};

use crate::export::Container;
use crate::unpack;
use crate::{Error, Format};

/// Something whose bytes can be read from the start as often as needed: formats that are trees look
/// twice.
pub trait Input {
    /// The bytes, from the start.
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
        let mut file: &File = self;
        file.seek(SeekFrom::Start(0))?;
        Ok(Box::new(file))
    }
}

/// One step on the way to the conversations that a file holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// A new conversation starts; what follows belongs to it. Files with a single nameless
    /// conversation have this step too.
    Start(Start),
    /// Append these messages: one version.
    Append(Vec<Message>),
    /// Perform this request: one version.
    Apply(Request),
    /// What stood around the messages that came, as one JSON object with `null` in the place of their
    /// list: `{"model":"…","messages":null}`. Of a session (Claude Code, codex), the lines behind the
    /// last message, as a JSON list. [`export`](crate::export) can put messages back there, and
    /// [`Around`](crate::Around) reads the tools in it. No store keeps it, so keep it yourself if the
    /// file is to be written again.
    Envelope(String),
    /// What follows belongs to a fork of the conversation that was started last.
    Fork {
        /// What it is called in the file.
        name: String,
        /// Which line it branches off: 0 is the conversation itself, n its n-th fork.
        of: usize,
        /// At which version of that line.
        version: Version,
    },
    /// What follows belongs to this line again: 0 is the conversation itself, n its n-th fork.
    Line(usize),
}

/// What a file says about a conversation beside its messages.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Start {
    /// Its title.
    pub name: Option<String>,
    /// Its id in the file.
    pub id: Option<String>,
    /// When it was created.
    pub created: Option<Timestamp>,
    /// Whether its messages stood in the file one a line, and not in a list: what
    /// [`Container::Lines`] writes again. Sessions are always lines.
    pub is_lines: bool,
}

/// Something in a file that a conversation cannot say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// The line, from 1.
    pub line: u64,
    /// The field, such as `messages[3].content[0].type`; empty where it is the whole line.
    pub field: String,
    /// What it is, and what became of it.
    pub message: String,
}

/// Takes what an import gives.
pub trait Sink {
    /// The next step. An error ends the import.
    fn step(&mut self, step: Step) -> Result<(), Error>;
    /// Something that could not be represented.
    fn remark(&mut self, _remark: Remark) {}
    /// How many bytes were read so far (after unpacking).
    fn progress(&mut self, _bytes: u64) {}
}

/// Keeps all steps and remarks.
#[derive(Debug, Default)]
pub struct Collected {
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// What could not be represented.
    pub remarks: Vec<Remark>,
}

impl Sink for Collected {
    fn step(&mut self, step: Step) -> Result<(), Error> {
        self.steps.push(step);
        Ok(())
    }

    fn remark(&mut self, remark: Remark) {
        self.remarks.push(remark);
    }
}

/// How to import.
#[derive(Clone, Copy, Debug)]
pub struct ImportOptions {
    /// How large and deep one value of a file may be: a message of a list, a line of a session, a node of
    /// a graph. `message_bytes` is the one limit for all of them; a whole conversation that has to be
    /// held at once, as a graph has, may be [`WHOLE_FACTOR`](Self::WHOLE_FACTOR) times as large.
    pub limits: Limits,
    /// How many messages one [`Step::Append`] may have where the file has no turns of its own.
    pub messages_a_step: usize,
}

impl ImportOptions {
    /// How many times as large as one value a conversation may be that has to be held whole.
    pub const WHOLE_FACTOR: usize = 8;
}

impl Default for ImportOptions {
    /// 32 MiB and 64 levels a value: lines of sessions hold what a tool gave twice, and compactions hold
    /// many messages. 256 messages a step.
    fn default() -> Self {
        let limits = Limits { message_bytes: 32 << 20, ..Limits::default() };
        ImportOptions { limits, messages_a_step: 256 }
    }
}

/// Imports a file. Without a format it is recognised from the first bytes; the answer says which it
/// is. What cannot be read as a message is a remark; if that is everything, and the file looks like
/// another format than the one that was named, it is [`Error::OtherFormat`] behind the last step.
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
    let mut out = Out::new(options, sink);
    let imported = format.codec().import(&Unpacked(input), &mut out).and_then(|()| out.finish());
    imported.map_err(|error| match error {
        Error::Malformed { format: None, line, field, reason } => {
            Error::Malformed { format: Some(format), line, field, reason }
        }
        other => other,
    })?;
    // A file of another format is not taken for one in which every message is broken.
    if named.is_some()
        && out.has_read_nothing()
        && let Ok(looks_like) = Format::recognise(input.open()?)
        && looks_like != format
    {
        return Err(Error::OtherFormat { format, looks_like });
    }
    Ok(format)
}

/// An input, unpacked if it is packed.
struct Unpacked<'a, I: ?Sized>(&'a I);

impl<I: Input + ?Sized> Input for Unpacked<'_, I> {
    fn open(&self) -> std::io::Result<Box<dyn Read + '_>> {
        unpack::open(self.0.open()?)
    }
}

/// Where a format puts what it reads.
pub(crate) struct Out<'a> {
    pub(crate) options: &'a ImportOptions,
    sink: &'a mut dyn Sink,
    waiting: Vec<Message>,
    has_started: bool,
    /// How long the log of each line is, and its version: of the conversation itself and its forks.
    lines: Vec<(usize, u32)>,
    line: usize,
    /// How many messages were put out.
    put_out: usize,
    /// How many of them only stand for what could not be read.
    unread: usize,
    /// Whether something was remarked on.
    has_remarks: bool,
}

impl<'a> Out<'a> {
    fn new(options: &'a ImportOptions, sink: &'a mut dyn Sink) -> Out<'a> {
        let (waiting, lines) = (Vec::new(), vec![(0, 0)]);
        Out {
            options,
            sink,
            waiting,
            has_started: false,
            lines,
            line: 0,
            put_out: 0,
            unread: 0,
            has_remarks: false,
        }
    }

    /// A message only stands for one that could not be read.
    pub(crate) fn count_unread(&mut self) {
        self.unread += 1;
    }

    /// Whether there was something, but no message that could be read.
    fn has_read_nothing(&self) -> bool {
        self.has_remarks && self.put_out == self.unread
    }

    /// How long the log is after what was put out.
    pub(crate) fn log_len(&self) -> usize {
        self.lines[self.line].0
    }

    /// The version after what was put out, once [`flush`](Self::flush) was called.
    pub(crate) fn version(&self) -> Version {
        Version(self.lines[self.line].1)
    }

    /// A new conversation starts.
    pub(crate) fn start(&mut self, start: Start) -> Result<(), Error> {
        self.flush()?;
        self.has_started = true;
        (self.lines, self.line) = (vec![(0, 0)], 0);
        self.sink.step(Step::Start(start))
    }

    /// A fork starts: `log_len` is how long the log was at that version. Answers which line it is.
    pub(crate) fn fork(
        &mut self,
        name: String,
        of: usize,
        version: Version,
        log_len: usize,
    ) -> Result<usize, Error> {
        if !self.has_started {
            self.start(Start::default())?;
        }
        self.flush()?;
        // A fork starts as its line was at that version, and counts on from there.
        self.line = self.lines.len();
        self.lines.push((log_len, version.0));
        self.sink.step(Step::Fork { name, of, version })?;
        Ok(self.line)
    }

    /// What follows belongs to this line.
    pub(crate) fn line(&mut self, line: usize) -> Result<(), Error> {
        if line == self.line || line >= self.lines.len() {
            return Ok(());
        }
        self.flush()?;
        self.line = line;
        self.sink.step(Step::Line(line))
    }

    /// The next message.
    pub(crate) fn message(&mut self, message: Message) -> Result<(), Error> {
        if !self.has_started {
            self.start(Start::default())?;
        }
        self.lines[self.line].0 += 1;
        self.put_out += 1;
        self.waiting.push(message);
        if self.waiting.len() >= self.options.messages_a_step.max(1) {
            self.flush()?;
        }
        Ok(())
    }

    /// Hands over the messages that wait: they are one version.
    pub(crate) fn flush(&mut self) -> Result<(), Error> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        self.lines[self.line].1 += 1;
        self.sink.step(Step::Append(std::mem::take(&mut self.waiting)))
    }

    /// A request; `added` is how many messages it adds to the log.
    pub(crate) fn apply(&mut self, request: impl Into<Request>, added: usize) -> Result<(), Error> {
        self.flush()?;
        let (log_len, version) = &mut self.lines[self.line];
        *version += 1;
        *log_len += added;
        self.put_out += added;
        self.sink.step(Step::Apply(request.into()))
    }

    /// What stood around the messages.
    pub(crate) fn envelope(&mut self, envelope: String) -> Result<(), Error> {
        self.flush()?;
        self.sink.step(Step::Envelope(envelope))
    }

    /// Something that could not be represented.
    pub(crate) fn remark(&mut self, line: u64, field: &str, message: impl Into<String>) {
        self.has_remarks = true;
        self.sink.remark(Remark { line, field: field.to_owned(), message: message.into() });
    }

    /// How far the format has read.
    pub(crate) fn progress(&mut self, bytes: u64) {
        self.sink.progress(bytes);
    }

    fn finish(&mut self) -> Result<(), Error> {
        self.flush()
    }
}

/// Conversations made from steps: the usual way to have a file as values of the engine.
///
/// ```
/// use recto_core::{Approx, Settings};
/// use recto_format::{ImportOptions, Replay, import};
///
/// let rollout = concat!(
///     r#"{"type":"response_item","payload":{"type":"message","role":"user","content":"One"}}"#, "\n",
///     r#"{"type":"compacted","payload":{"message":"They counted."}}"#, "\n",
///     r#"{"type":"response_item","payload":{"type":"message","role":"user","content":"Two"}}"#, "\n",
/// );
/// let mut replay = Replay::new(Settings::counting_with(Approx), 0);
/// import(rollout, None, &ImportOptions::default(), &mut replay)?;
/// let (_, talk) = &replay.conversations[0].lines[0];
/// let told: Vec<String> = talk.versions().map(|version| version.description).collect();
/// assert_eq!(told[2], "the session was compacted");
/// // The view is what the session's program would go on from; the log has every message.
/// assert_eq!((talk.view().len(), talk.log().len()), (3, 3));
/// # Ok::<(), recto_format::Error>(())
/// ```
#[derive(Debug)]
pub struct Replay {
    settings: Settings,
    now: Timestamp,
    /// The line that steps belong to.
    line: usize,
    /// The conversations that the file holds.
    pub conversations: Vec<Replayed>,
    /// What could not be represented.
    pub remarks: Vec<Remark>,
}

/// One conversation of a file, with its forks.
#[derive(Debug)]
pub struct Replayed {
    /// What the file says about it.
    pub start: Start,
    /// What stood around its messages; see [`Step::Envelope`].
    pub envelope: Option<String>,
    /// The conversation itself, whose name here is empty, and behind it its forks with their names.
    pub lines: Vec<(String, Conversation)>,
}

impl Replayed {
    /// What stood around its messages, for [`export`](crate::export) to write them again in the same
    /// way.
    ///
    /// ```
    /// use recto_core::Settings;
    /// use recto_format::{Container, ImportOptions, Replay, import};
    ///
    /// let file = r#"{"role":"user","content":"2 + 2?"}"#;
    /// let mut replay = Replay::new(Settings::default(), 0);
    /// import(file, None, &ImportOptions::default(), &mut replay)?;
    /// assert_eq!(replay.conversations[0].container(), Container::Lines);
    /// # Ok::<(), recto_format::Error>(())
    /// ```
    pub fn container(&self) -> Container<'_> {
        match (&self.envelope, self.start.is_lines) {
            (Some(envelope), _) => Container::Envelope(envelope),
            (None, true) => Container::Lines,
            (None, false) => Container::List,
        }
    }
}

impl Replay {
    /// Makes conversations with these settings, at this time.
    pub fn new(settings: Settings, now: Timestamp) -> Replay {
        Replay { settings, now, line: 0, conversations: Vec::new(), remarks: Vec::new() }
    }

    fn change(
        &mut self,
        change: impl FnOnce(&Conversation) -> Result<Conversation, recto_core::Error>,
    ) -> Result<(), Error> {
        let replayed = self.conversations.last_mut();
        let line = replayed.and_then(|replayed| replayed.lines.get_mut(self.line));
        let Some((_, conversation)) = line else {
            return Err(Error::Stopped("a step came before its conversation started".into()));
        };
        *conversation = change(conversation)?;
        Ok(())
    }
}

impl Sink for Replay {
    fn step(&mut self, step: Step) -> Result<(), Error> {
        let now = self.now;
        match step {
            Step::Start(start) => {
                let conversation = Conversation::new(self.settings.clone(), now)?;
                let lines = vec![(String::new(), conversation)];
                self.conversations.push(Replayed { start, envelope: None, lines });
                self.line = 0;
                Ok(())
            }
            Step::Append(messages) => self.change(|line| Ok(line.append(messages, now)?.0)),
            Step::Apply(request) => self.change(|line| Ok(line.apply(request, now)?.0)),
            Step::Envelope(envelope) => {
                if let Some(replayed) = self.conversations.last_mut() {
                    replayed.envelope = Some(envelope);
                }
                Ok(())
            }
            Step::Fork { name, of, version } => {
                let lines = self.conversations.last_mut().map(|replayed| &mut replayed.lines);
                let found = lines.and_then(|lines| Some((lines.get(of)?.1.clone(), lines)));
                let Some((line, lines)) = found else {
                    return Err(Error::Stopped(format!("there is no line {of} to fork")));
                };
                lines.push((name, line.at(version)?));
                self.line = lines.len() - 1;
                Ok(())
            }
            Step::Line(line) => {
                self.line = line;
                Ok(())
            }
        }
    }

    fn remark(&mut self, remark: Remark) {
        self.remarks.push(remark);
    }
}
