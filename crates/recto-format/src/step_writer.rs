//! The output of a codec: batches messages into steps and tracks the length and version of each branch.
//!
//! Because every step creates one version, [`version`](StepWriter::version) and
//! [`log_len`](StepWriter::log_len) are known without a conversation.

use recto_core::{Message, Request, Version};

use crate::Error;
use crate::import::{ImportOptions, Sink, Start, Step, TranscriptWarning};

/// Writes the steps of an import to a [`Sink`].
pub(crate) struct StepWriter<'a> {
    pub(crate) options: &'a ImportOptions,
    sink: &'a mut dyn Sink,
    /// Messages that are not part of a step yet.
    pending: Vec<Message>,
    has_started: bool,
    /// The conversation and its forks.
    branches: Vec<BranchEnd>,
    /// Index of the current branch.
    branch: usize,
    /// Messages written, including `unreadable`.
    message_count: usize,
    /// Messages that only preserve the bytes of an unreadable foreign message.
    unreadable: usize,
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
            has_started: false,
            branches: vec![BranchEnd::default()],
            branch: 0,
            message_count: 0,
            unreadable: 0,
            has_warnings: false,
        }
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
        self.sink.step(Step::Start(start))
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
        self.sink.step(Step::Fork { name, parent_branch, version })?;
        Ok(self.branch)
    }

    /// Makes a branch the current one. An unknown branch is ignored.
    pub(crate) fn switch_branch(&mut self, branch: usize) -> Result<(), Error> {
        if branch == self.branch || branch >= self.branches.len() {
            return Ok(());
        }
        self.flush()?;
        self.branch = branch;
        self.sink.step(Step::SwitchBranch(branch))
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
        self.sink.step(Step::Append(std::mem::take(&mut self.pending)))
    }

    /// Writes a request. `added` is the number of messages that it adds to the log.
    pub(crate) fn apply(&mut self, request: impl Into<Request>, added: usize) -> Result<(), Error> {
        self.flush()?;
        let branch = &mut self.branches[self.branch];
        branch.version += 1;
        branch.log_len += added;
        self.message_count += added;
        self.sink.step(Step::Apply(request.into()))
    }

    /// Writes the envelope; see [`Step::Envelope`].
    pub(crate) fn envelope(&mut self, envelope: String) -> Result<(), Error> {
        self.flush()?;
        self.sink.step(Step::Envelope(envelope))
    }

    /// Reports content that no step represents.
    pub(crate) fn warn(&mut self, line: u64, field: &str, message: impl Into<String>) {
        self.has_warnings = true;
        self.sink.warning(TranscriptWarning::new(line, field, message));
    }

    /// Reports the number of bytes that the codec has read.
    pub(crate) fn progress(&mut self, bytes: u64) {
        self.sink.progress(bytes);
    }
}
