//! A conversation: one log, one current view and one history of versions. Start with
//! [`Conversation::apply`].

use std::sync::Arc;

use serde::Serialize;

use crate::counter::Counter;
use crate::draft::Draft;
use crate::history::{History, Reason, Record, StateRef, StepRecord};
use crate::live_path::LivePath;
use crate::message_log::{Meter, check_loaded, is_loaded};
use crate::number::OptVersion;
use crate::operation::{Append, Operation, OperationKind, Request, Rollback, Step};
use crate::outcome::torn_exchanges;
use crate::settings::{Settings, Shared};
use crate::state::{Origins, State};
use crate::tools::{self, Descriptions, ToolSet};
use crate::{
    BatchIndex, Error, LogIndex, Marks, Message, MessageLog, Note, Outcome, Position, Stats,
    Timestamp, Tool, Version, View, Warning, WarningCode,
};

/// A conversation at one version: an immutable value. A clone costs O(1).
///
/// [`apply`](Self::apply) returns the next value and does not change this one. A request is therefore
/// atomic, and every value can be kept, compared and continued.
///
/// ```
/// use recto_core::{Approx, Conversation, Message, Rollback, Settings, Truncate, Version};
///
/// let start = Conversation::new(Settings::counting_with(Approx), 0)?;
/// let (full, _) = start.append(["one", "two", "three"].map(Message::user), 1)?;
///
/// let (cut, outcome) = full.apply(Truncate::keep_last(1), 2)?;
/// assert_eq!(cut.view().len(), 1);
/// assert_eq!(outcome.hidden().len(), 2);       // hidden, not lost
///
/// let (back, _) = cut.apply(Rollback::ToVersion(Version(1)), 3)?;
/// assert_eq!(back.view().len(), 3);
/// assert_eq!(back.at(Version(2))?.view().len(), 1); // every version stays readable
/// # Ok::<(), recto_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Conversation {
    pub(crate) shared: Arc<Shared>,
    pub(crate) log: MessageLog,
    pub(crate) history: History,
}

impl Conversation {
    /// A new conversation at version 0. If it has tools, its log starts with their description.
    pub fn new(settings: Settings, now: Timestamp) -> Result<Conversation, Error> {
        Self::with_messages(settings, &[], now)
    }

    /// A new conversation that shows messages at version 0. If it has tools and the messages do not
    /// contain their description, the description comes first.
    pub fn with_messages(
        settings: Settings,
        messages: &[Message],
        now: Timestamp,
    ) -> Result<Conversation, Error> {
        let Settings { counter, media_tokens, tools, heading } = settings;
        tools::check(&tools)?;
        let shared = Shared::new(Meter { counter, media_tokens }, heading);
        let tools = ToolSet::new(tools, &shared.headings)?.map(Arc::new);
        let mut log = MessageLog::default();
        let descriptions =
            Descriptions { headings: &shared.headings, tools: tools.as_deref(), log: &log };
        let is_described = messages.iter().any(|message| descriptions.is_present(message));
        if let Some(tools) = tools.as_ref().filter(|_| !is_described) {
            log.append(&[tools.description()], now, &shared.meter)?;
            log.note_written_by_engine();
        }
        log.append(messages, now, &shared.meter)?;
        let view = log.as_view().clone();
        let (path, marks) = (LivePath::new(now), Marks::default());
        let state = State { view, path, marks, origins: Origins::default() };
        let record = Record {
            state_ref: StateRef::Owned(state),
            timestamp: now,
            log_len: log.len() as u32,
            undo: OptVersion::NONE,
            redo: OptVersion::NONE,
            kind: OperationKind::Create,
            reason: Reason::text("the conversation was created".into()),
            tools,
            tools_origin: Version(0),
            note: None,
        };
        let history = History::new(record);
        Ok(Conversation { shared, log, history })
    }

    /// Performs a request and returns the next conversation and the outcome. This value does not change.
    pub fn apply(
        &self,
        request: impl Into<Request>,
        now: Timestamp,
    ) -> Result<(Conversation, Outcome), Error> {
        self.apply_request(&request.into(), now)
    }

    /// [`apply`](Self::apply) by reference, for a request that may have to be repeated.
    pub fn apply_request(
        &self,
        request: &Request,
        now: Timestamp,
    ) -> Result<(Conversation, Outcome), Error> {
        request.check()?;
        self.log.check_metadata()?;
        if let [step] = &*request.steps {
            match step.operation {
                Operation::Undo(_) => return self.undo(step, now),
                Operation::Redo(_) => return self.redo(step, now),
                Operation::Rollback(Rollback::ToVersion(version)) => {
                    return self.roll_back(version, step, now);
                }
                _ => {}
            }
        }
        self.perform(request, now)
    }

    fn perform(&self, request: &Request, now: Timestamp) -> Result<(Conversation, Outcome), Error> {
        let mut draft = Draft::new(self, now);
        let is_list = request.steps.len() > 1;
        let mut records = Vec::new();
        for (number, step) in request.steps.iter().enumerate() {
            let result = draft.perform(step);
            result.map_err(|error| if is_list { error.in_list(number) } else { error })?;
            if is_list {
                records.push(StepRecord {
                    kind: step.operation.kind(),
                    reason: draft.reason(),
                    view: draft.state.view.clone(),
                });
            }
        }
        if !draft.did_anything {
            let mut outcome = self.outcome_of(self, false)?;
            outcome.add_warnings_of(request);
            return Ok((self.clone(), outcome));
        }
        let (kind, reason) = match &*request.steps {
            [step] => (step.operation.kind(), Reason::of(step, || draft.reason())),
            _ => (OperationKind::List, Reason::of_list(records)),
        };
        let (next, mut outcome) = self.commit_draft(draft, kind, reason)?;
        outcome.add_warnings_of(request);
        Ok((next, outcome))
    }

    fn commit_draft(
        &self,
        draft: Draft<'_>,
        kind: OperationKind,
        reason: Reason,
    ) -> Result<(Conversation, Outcome), Error> {
        let (origins, tools_origin) = (draft.origins(), draft.tools_origin());
        let Draft { log, state, tools, now, adds_foreign, .. } = draft;
        let record = Record {
            state_ref: StateRef::Owned(State { origins, ..state }),
            timestamp: now,
            log_len: log.len() as u32,
            undo: self.version().into(),
            redo: OptVersion::NONE,
            kind,
            reason,
            tools,
            tools_origin,
            note: None,
        };
        self.commit(log, record, adds_foreign)
    }

    /// The next value of the conversation: with this log, and with the record as its newest version.
    fn commit(
        &self,
        log: MessageLog,
        record: Record,
        adds_foreign: bool,
    ) -> Result<(Conversation, Outcome), Error> {
        let may_be_stale = record.tools.is_some() || log.has_written_by_engine();
        let mut history = self.history.clone();
        history.push(record)?;
        let next = Conversation { shared: self.shared.clone(), log, history };
        let warnings = next.message_warnings(self.log.len(), may_be_stale, adds_foreign)?;
        let outcome = Outcome::new(&self.history, &next, true, warnings);
        Ok((next, outcome))
    }

    fn outcome_of(&self, before: &Conversation, changed: bool) -> Result<Outcome, Error> {
        let may_be_stale = self.tools().is_some() || self.log.has_written_by_engine();
        let warnings = self.message_warnings(before.log.len(), may_be_stale, true)?;
        Ok(Outcome::new(&before.history, self, changed, warnings))
    }

    /// The warnings that depend on the text of messages: about stale tool descriptions in the view, and
    /// about foreign messages among the log entries from `old_len` on. The caller sets a flag to false to
    /// skip a search that cannot find anything.
    fn message_warnings(
        &self,
        old_len: usize,
        may_be_stale: bool,
        may_be_foreign: bool,
    ) -> Result<Vec<Warning>, Error> {
        let mut warnings = Vec::new();
        if may_be_stale {
            warnings.extend(self.stale_tools()?);
        }
        if may_be_foreign {
            warnings.extend(self.foreign_messages(old_len)?);
        }
        Ok(warnings)
    }

    /// The warning about log entries from `from` on with tool calls in a field of another format.
    fn foreign_messages(&self, from: usize) -> Result<Option<Warning>, Error> {
        let mut absent = Vec::new();
        let mut foreign = Vec::new();
        for index in (from as u32..self.log.len() as u32).map(LogIndex) {
            let entry = self.log.get(index).expect("the entry is in the log");
            if is_loaded(entry, index, &mut absent) && entry.message.is_foreign() {
                foreign.push(index);
            }
        }
        check_loaded(absent)?;
        Ok(Warning::about(WarningCode::ForeignMessage, foreign))
    }

    /// The warning about visible tool descriptions that contradict the tools of the conversation.
    fn stale_tools(&self) -> Result<Option<Warning>, Error> {
        let stale = self.descriptions().contradicting(self.view())?;
        Ok(Warning::about(WarningCode::StaleTools, stale))
    }

    fn descriptions(&self) -> Descriptions<'_> {
        Descriptions { headings: &self.shared.headings, tools: self.tools(), log: &self.log }
    }

    /// The visible tool descriptions, stale or not, in log order; empty in a conversation without tools.
    /// A provider request with a field for tools leaves them out.
    pub fn tool_descriptions(&self) -> Result<Vec<LogIndex>, Error> {
        let descriptions = self.descriptions();
        if descriptions.tools.is_none() {
            return Ok(Vec::new());
        }
        let is_description = |index, message: &Message| {
            descriptions.is_present(message) || descriptions.describes(index, message)
        };
        let positions = descriptions.positions(self.view(), is_description)?;
        let mut found: Vec<LogIndex> =
            positions.into_iter().filter_map(|at| self.view().get(Position(at))).collect();
        found.sort_unstable();
        Ok(found)
    }

    /// The [`Outcome`] of the request that made a version.
    pub fn outcome(&self, version: Version) -> Result<Outcome, Error> {
        self.log.check_metadata()?;
        let after = self.at(version)?;
        let Some(before) = version.0.checked_sub(1) else {
            return after.outcome_of(&after, false);
        };
        after.outcome_of(&self.at(Version(before))?, true)
    }

    /// The [`Outcome`] of a request that did nothing at a version.
    pub fn idle_outcome(&self, version: Version) -> Result<Outcome, Error> {
        self.log.check_metadata()?;
        let at = self.at(version)?;
        at.outcome_of(&at, false)
    }

    fn undo(&self, step: &Step, now: Timestamp) -> Result<(Conversation, Outcome), Error> {
        let target = self.history.current().undo.get().ok_or(Error::NothingToUndo)?;
        let to = self.history.record(target, "version")?;
        let state_ref = to.state_ref_for(target);
        let tools = (to.tools.clone(), to.tools_origin);
        let redo = self.version().into();
        self.restore(Restored { state_ref, tools, undo: to.undo, redo }, step, now)
    }

    fn redo(&self, step: &Step, now: Timestamp) -> Result<(Conversation, Outcome), Error> {
        let target = self.history.current().redo.get().ok_or(Error::NothingToRedo)?;
        let to = self.history.record(target, "version")?;
        let state_ref = to.state_ref_for(target);
        let tools = (to.tools.clone(), to.tools_origin);
        self.restore(Restored { state_ref, tools, undo: to.undo, redo: to.redo }, step, now)
    }

    /// Performs a request whose only operation is a ROLLBACK to a version.
    fn roll_back(
        &self,
        target: Version,
        step: &Step,
        now: Timestamp,
    ) -> Result<(Conversation, Outcome), Error> {
        let (state_ref, tools, tools_origin) = self.history.reuse_state(target, "targetVersion")?;
        let undo = self.version().into();
        self.restore(
            Restored { state_ref, tools: (tools, tools_origin), undo, redo: OptVersion::NONE },
            step,
            now,
        )
    }

    /// Adds a version with a restored state.
    fn restore(
        &self,
        to: Restored,
        step: &Step,
        now: Timestamp,
    ) -> Result<(Conversation, Outcome), Error> {
        let record = Record {
            state_ref: to.state_ref,
            timestamp: now,
            log_len: self.log.len() as u32,
            undo: to.undo,
            redo: to.redo,
            kind: step.operation.kind(),
            reason: Reason::of(step, || step.reason_text()),
            tools: to.tools.0,
            tools_origin: to.tools.1,
            note: None,
        };
        self.commit(self.log.clone(), record, false)
    }

    /// Sets the tools and makes a version.
    ///
    /// Visible descriptions that are stale now and not pinned are hidden, in a new batch. If the present
    /// description is not visible, it is shown at the position of the first of them, or appended if there
    /// are none. If `tools` is empty, every visible description that is not pinned is hidden, in a new
    /// batch. Setting the same tools again does nothing.
    pub fn set_tools(
        &self,
        tools: Vec<Tool>,
        now: Timestamp,
    ) -> Result<(Conversation, Outcome), Error> {
        self.log.check_metadata()?;
        tools::check(&tools)?;
        let tools = ToolSet::new(tools, &self.shared.headings)?.map(Arc::new);
        if tools::are_same(tools.as_deref(), self.tools()) {
            return Ok((self.clone(), self.outcome_of(self, false)?));
        }
        let mut draft = Draft::new(self, now);
        draft.set_tools(tools);
        let view = draft.state.view.clone();
        let descriptions = draft.descriptions();
        let positions = descriptions.positions(&view, |index, message| {
            !draft.is_pinned(index)
                && descriptions.describes(index, message)
                && !descriptions.is_present(message)
        })?;
        if !positions.is_empty() {
            let view = draft.replace_descriptions(&view, &positions)?;
            draft.open_batch(view);
        } else if !draft.descriptions().is_shown_in(&view)?
            && let Some(entry) = draft.present_description()?
        {
            draft.state.view.push(entry);
        }
        let reason = Reason::text(draft.reason());
        self.commit_draft(draft, OperationKind::SetTools, reason)
    }

    /// The conversation with this note at its newest version. Call it on the value that a request has just
    /// returned, before that value is saved.
    ///
    /// ```
    /// use recto_core::{Approx, Conversation, Message, Note, Settings};
    ///
    /// let start = Conversation::new(Settings::counting_with(Approx), 0)?;
    /// let (appended, _) = start.append([Message::user("hello")], 1)?;
    /// let noted = appended.with_note(Note::from_json(r#"{"run": 7}"#)?);
    /// let info = noted.version_info(noted.version())?;
    /// assert_eq!(info.note.unwrap().json(), r#"{"run": 7}"#);
    /// # Ok::<(), recto_core::Error>(())
    /// ```
    pub fn with_note(&self, note: Note) -> Conversation {
        let mut noted = self.clone();
        let record = Record { note: Some(note), ..self.history.current().clone() };
        noted.history.load(self.version(), record);
        noted
    }

    pub(crate) fn state(&self) -> &State {
        self.history.state()
    }

    /// The version: the number of requests that have changed the conversation.
    pub fn version(&self) -> Version {
        self.history.current_version()
    }

    /// The view: the entries that the model reads.
    pub fn view(&self) -> &View {
        &self.state().view
    }

    /// The messages of the view, in order.
    pub fn messages(&self) -> impl DoubleEndedIterator<Item = &Message> {
        self.view().iter().map(|index| self.log.message(index))
    }

    /// The entries of the view, in order: each message with its index, position and tokens.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = VisibleEntry<'_>> + ExactSizeIterator {
        self.view().0.iter().enumerate().map(|(at, view_entry)| VisibleEntry {
            index: view_entry.index(),
            position: Position(at),
            message: self.log.message(view_entry.index()),
            tokens: view_entry.tokens(),
        })
    }

    /// The message of a log entry, visible or hidden.
    pub fn message(&self, index: LogIndex) -> Option<&Message> {
        self.log.get(index).map(|entry| &entry.message)
    }

    /// Warnings about the view: torn tool exchanges and stale tool descriptions.
    pub fn warnings(&self) -> Result<Vec<Warning>, Error> {
        self.log.check_metadata()?;
        let mut warnings = torn_exchanges(self.view(), self.log.as_view());
        warnings.extend(self.stale_tools()?);
        Ok(warnings)
    }

    /// The log: every message ever added.
    pub fn log(&self) -> &MessageLog {
        &self.log
    }

    /// The marks on log entries.
    pub fn marks(&self) -> &Marks {
        &self.state().marks
    }

    /// The tools; `None` if the conversation has none.
    pub fn tools(&self) -> Option<&ToolSet> {
        self.history.current().tools.as_deref()
    }

    /// The counter of the conversation.
    pub fn counter(&self) -> &Arc<dyn Counter> {
        &self.shared.meter.counter
    }

    /// Sizes of the log, the view and the live path.
    pub fn stats(&self) -> Stats {
        let state = self.state();
        Stats {
            total_messages: self.log.len(),
            current_batch_messages: state.view.len(),
            total_batches: state.path.len(),
            current_batch_index: state.path.current_number(),
            tokens: state.view.tokens(),
        }
    }

    /// The conversation at a version. Applying a request to it makes a fork.
    pub fn at(&self, version: Version) -> Result<Conversation, Error> {
        let record = self.history.record(version, "version")?;
        Ok(Conversation {
            shared: self.shared.clone(),
            log: self.log.prefix(record.log_len as usize),
            history: self.history.up_to(version),
        })
    }

    /// All versions in order, each with the operation, time and reason of its request.
    pub fn versions(&self) -> impl DoubleEndedIterator<Item = VersionInfo> {
        self.history.iter().map(|(version, record)| self.describe_version(version, record))
    }

    /// The operation, time and reason of the request that made a version.
    pub fn version_info(&self, version: Version) -> Result<VersionInfo, Error> {
        Ok(self.describe_version(version, self.history.record(version, "version")?))
    }

    fn describe_version(&self, version: Version, record: &Record) -> VersionInfo {
        let state = self.history.state_of(record);
        VersionInfo {
            version,
            operation: record.kind,
            reason: self.history.reason(version, record),
            timestamp: record.timestamp,
            messages: state.view.len(),
            tokens: state.view.tokens(),
            batch: state.path.current_number(),
            batch_opened_by: state.path.current.origin.version,
            log: record.log_len as usize,
            note: record.note.clone(),
        }
    }

    /// Sum of the tokens of the first `len` log entries, or of all if the log is shorter.
    pub fn log_tokens(&self, len: usize) -> Result<u64, Error> {
        self.log.check_metadata()?;
        Ok(self.log.as_view().tokens_in(..len.min(self.log.len())))
    }

    /// Appends messages: a shortcut for [`apply`](Self::apply) with [`Append`].
    pub fn append(
        &self,
        messages: impl IntoIterator<Item = Message>,
        now: Timestamp,
    ) -> Result<(Conversation, Outcome), Error> {
        self.apply(Append { messages: messages.into_iter().collect() }, now)
    }
}

/// The state and tools that UNDO, REDO or ROLLBACK restores, and the `undo` and `redo` references of the
/// new version.
struct Restored {
    state_ref: StateRef,
    /// The tools, and the version that set them.
    tools: (Option<Arc<ToolSet>>, Version),
    undo: OptVersion,
    redo: OptVersion,
}

/// An entry of the view.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct VisibleEntry<'a> {
    /// Its index in the log.
    pub index: LogIndex,
    /// Its position in the view.
    pub position: Position,
    /// The message.
    pub message: &'a Message,
    /// Its tokens.
    pub tokens: u64,
}

/// A version: the request that made it, and the sizes afterwards.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct VersionInfo {
    /// The number of the version.
    pub version: Version,
    /// The operation that made it.
    pub operation: OperationKind,
    /// The reason of the request.
    #[serde(rename = "description")]
    pub reason: String,
    /// The time of the request.
    pub timestamp: Timestamp,
    /// The length of its view.
    pub messages: usize,
    /// The tokens of its view.
    pub tokens: u64,
    /// Its current batch.
    pub batch: BatchIndex,
    /// The version whose request opened that batch. Together with `batch`, it identifies the batch; the
    /// number alone does not, because batch numbers are reused after a rollback.
    #[serde(rename = "batchOpenedBy")]
    pub batch_opened_by: Version,
    /// The length of its log.
    pub log: usize,
    /// The note that the writer stored with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<Note>,
}
