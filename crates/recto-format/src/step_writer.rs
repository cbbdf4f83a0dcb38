//! The output of a codec: batches messages into steps and tracks the length and version of each branch.
//!
//! Because every [`Step::Append`] and [`Step::Apply`] creates one version,
//! [`version`](StepWriter::version) and [`log_len`](StepWriter::log_len) are known without a conversation.

use recto_core::{Limits, Message, Operation, Request, Version};

use crate::Error;
use crate::import::{ImportOptions, Sink, Start, Step, TranscriptWarning};
use crate::json;
use crate::parts::MessageParts;
use crate::source::Source;
use crate::values::Values;

/// Maximum number of steps that are held back.
const MAX_HELD_STEPS: usize = 64;

/// Writes the steps of an import to a [`Sink`].
pub(crate) struct StepWriter<'a> {
    pub(crate) options: &'a ImportOptions,
    sink: &'a mut dyn Sink,
    /// Messages that are not part of a step yet.
    pending: Vec<Message>,
    /// The newest step with messages and the steps after it. They are held back, because the last message
    /// of the file stores the lines behind it.
    held: Vec<Step>,
    /// Branch of the messages that are held back.
    last_branch: usize,
    has_started: bool,
    /// The conversation and its forks.
    branches: Vec<BranchEnd>,
    /// Index of the current branch.
    branch: usize,
    /// Messages written, including `unreadable`.
    message_count: usize,
    /// Messages that only preserve the bytes of an unreadable foreign message.
    unreadable: usize,
    /// The first message with a role that the format does not have.
    unknown_role: Option<Error>,
    has_warnings: bool,
}

/// The end of a branch after the steps written so far.
#[derive(Clone, Copy, Default)]
struct BranchEnd {
    log_len: usize,
    version: u32,
}

impl<'a> StepWriter<'a> {
    pub(crate) fn new(options: &'a ImportOptions, sink: &'a mut dyn Sink) -> StepWriter<'a> {
        StepWriter {
            options,
            sink,
            pending: Vec::new(),
            held: Vec::new(),
            last_branch: 0,
            has_started: false,
            branches: vec![BranchEnd::default()],
            branch: 0,
            message_count: 0,
            unreadable: 0,
            unknown_role: None,
            has_warnings: false,
        }
    }

    /// Records the error about a message whose role the format does not have. The import fails with the
    /// first such error, because the text of such a message would be lost.
    pub(crate) fn unknown_role(&mut self, error: Error) {
        self.unknown_role.get_or_insert(error);
    }

    /// Fails if a message has a role that the format does not have.
    pub(crate) fn check_roles(&mut self) -> Result<(), Error> {
        self.unknown_role.take().map_or(Ok(()), Err)
    }

    /// Counts a message that only preserves the bytes of an unreadable foreign message.
    pub(crate) fn count_unreadable(&mut self) {
        self.unreadable += 1;
    }

    /// True if the file had content, but no readable message.
    pub(crate) fn nothing_readable(&self) -> bool {
        self.has_warnings && self.message_count == self.unreadable
    }

    /// Log length of the current branch, pending messages included.
    pub(crate) fn log_len(&self) -> usize {
        self.branches[self.branch].log_len
    }

    /// Version of the current branch. Valid after [`flush`](Self::flush).
    pub(crate) fn version(&self) -> Version {
        Version(self.branches[self.branch].version)
    }

    /// Starts a conversation.
    pub(crate) fn start(&mut self, start: Start) -> Result<(), Error> {
        self.flush()?;
        self.has_started = true;
        (self.branches, self.branch) = (vec![BranchEnd::default()], 0);
        self.emit(Step::Start(start))
    }

    /// Starts a fork of a branch at a version at which its log had `log_len` entries. Returns the
    /// index of the new branch, which becomes the current one.
    pub(crate) fn fork(
        &mut self,
        name: String,
        parent_branch: usize,
        version: Version,
        log_len: usize,
    ) -> Result<usize, Error> {
        if !self.has_started {
            self.start(Start::default())?;
        }
        self.flush()?;
        self.branch = self.branches.len();
        self.branches.push(BranchEnd { log_len, version: version.0 });
        self.emit(Step::Fork { name, parent_branch, version })?;
        Ok(self.branch)
    }

    /// Makes a branch the current one. An unknown branch is ignored.
    pub(crate) fn switch_branch(&mut self, branch: usize) -> Result<(), Error> {
        if branch == self.branch || branch >= self.branches.len() {
            return Ok(());
        }
        self.flush()?;
        self.branch = branch;
        self.emit(Step::SwitchBranch(branch))
    }

    /// Appends a message. It becomes part of the next [`Step::Append`].
    pub(crate) fn message(&mut self, message: Message) -> Result<(), Error> {
        if !self.has_started {
            self.start(Start::default())?;
        }
        self.branches[self.branch].log_len += 1;
        self.message_count += 1;
        self.pending.push(message);
        if self.pending.len() >= self.options.messages_per_step.max(1) {
            self.flush()?;
        }
        Ok(())
    }

    /// Writes the pending messages as one step, which creates one version.
    pub(crate) fn flush(&mut self) -> Result<(), Error> {
        if self.pending.is_empty() {
            return Ok(());
        }
        self.branches[self.branch].version += 1;
        let messages = std::mem::take(&mut self.pending);
        self.emit(Step::Append(messages))
    }

    /// Writes a request. `added` is the number of messages that it adds to the log.
    pub(crate) fn apply(&mut self, request: impl Into<Request>, added: usize) -> Result<(), Error> {
        self.flush()?;
        let branch = &mut self.branches[self.branch];
        branch.version += 1;
        branch.log_len += added;
        self.message_count += added;
        self.emit(Step::Apply(request.into()))
    }

    /// Stores the lines behind the last message, and the document around all records, in the source of the
    /// last message. Returns false if there is no such message or it has no source.
    pub(crate) fn behind(
        &mut self,
        lines: Option<&str>,
        document: Option<Document<'_>>,
    ) -> Result<bool, Error> {
        self.flush()?;
        let message = self.held.iter_mut().rev().find_map(last_message);
        let Some(message) = message else { return Ok(false) };
        let Some(changed) = with_end(message, lines, document) else { return Ok(false) };
        *message = changed;
        Ok(true)
    }

    /// The branch of the last message.
    pub(crate) fn last_branch(&self) -> usize {
        match self.pending.is_empty() {
            true => self.last_branch,
            false => self.branch,
        }
    }

    /// Writes the steps that are held back. Called at the end of the file.
    pub(crate) fn finish(&mut self) -> Result<(), Error> {
        self.flush()?;
        self.release()
    }

    fn release(&mut self) -> Result<(), Error> {
        self.held.drain(..).try_for_each(|step| self.sink.step(step))
    }

    /// Writes a step after those that are held back.
    fn emit(&mut self, mut step: Step) -> Result<(), Error> {
        let has_messages = last_message(&mut step).is_some();
        let is_start = matches!(step, Step::Start(_));
        if has_messages || is_start || self.held.len() >= MAX_HELD_STEPS {
            self.release()?;
            self.last_branch = self.branch;
        }
        match has_messages || !self.held.is_empty() {
            true => {
                self.held.push(step);
                Ok(())
            }
            false => self.sink.step(step),
        }
    }

    /// Writes the envelope; see [`Step::Envelope`].
    pub(crate) fn envelope(&mut self, envelope: String) -> Result<(), Error> {
        self.flush()?;
        self.emit(Step::Envelope(envelope))
    }

    /// Reports content that no step represents.
    pub(crate) fn warn(&mut self, line: u64, field: &str, message: impl Into<String>) {
        self.has_warnings = true;
        self.sink.warning(TranscriptWarning::new(line, field, message));
    }

    /// Reports white space between the lines that export does not restore.
    pub(crate) fn warn_space(&mut self, values: &Values<'_>) {
        if values.has_other_space() {
            let message = "not kept: white space other than one line break between the lines";
            self.warn(0, "around the lines", message);
        }
    }

    /// Reports the number of bytes that the codec has read.
    pub(crate) fn progress(&mut self, bytes: u64) {
        self.sink.progress(bytes);
    }
}

/// The document around the records of a session.
#[derive(Clone, Copy)]
pub(crate) struct Document<'a> {
    /// The document with `null` in place of the list of records.
    pub(crate) text: &'a str,
    /// See [`Source::spacing`].
    pub(crate) spacing: Option<&'a str>,
}

/// The last message that a step adds.
fn last_message(step: &mut Step) -> Option<&mut Message> {
    match step {
        Step::Append(messages) => messages.last_mut(),
        Step::Apply(request) => {
            request.steps.iter_mut().rev().find_map(|step| match &mut step.operation {
                Operation::Append(append) => append.messages.last_mut(),
                Operation::Insert(insert) => insert.messages.last_mut(),
                Operation::Compress(compress) => compress.summary.as_mut(),
                Operation::Replace(replace) => Some(&mut replace.message),
                _ => None,
            })
        }
        _ => None,
    }
}

/// A message whose source has the end of its file; `None` if the message has no source.
fn with_end(
    message: &Message,
    lines: Option<&str>,
    document: Option<Document<'_>>,
) -> Option<Message> {
    let read = MessageParts::of(message);
    let source = Source {
        behind: lines,
        envelope: document.map(|document| document.text),
        spacing: document.and_then(|document| document.spacing),
        ..read.source?
    };
    let (key, metadata) = json::fields(read.json).last()?;
    let at = metadata.as_ptr().addr() - read.json.as_ptr().addr();
    if !key.is("metadata") {
        return None;
    }
    let mut json = read.json[..at].to_owned();
    json.push_str("{\"source\":");
    source.write(&mut json);
    json.push_str("}}");
    Message::from_checked_json(&json, &Limits::NONE).ok()
}
