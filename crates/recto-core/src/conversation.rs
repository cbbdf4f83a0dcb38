//! A conversation: one log, one current view, one history of versions. Start here: [`Conversation::apply`].

use std::sync::Arc;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::counter::Counter;
use crate::draft::Draft;
use crate::history::{Held, History, Jump, Record, StepRecord, Story};
use crate::live_path::{KnownBatches, LivePath};
use crate::message_log::{Meter, check_at_hand, is_at_hand};
use crate::operation::{Append, Operation, OperationKind, Request, Rollback, Step};
use crate::outcome::torn_exchanges;
use crate::state::{Homes, State};
use crate::tools::{self, DEFAULT_HEADING, Descriptions, Headings, ToolSet};
use crate::{
    BatchIndex, Error, LogIndex, Marks, Message, MessageLog, Outcome, Position, Stats, Timestamp,
    Tool, Version, View, Warning, WarningCode,
};

/// How a conversation is set up.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What counts tokens.
    pub counter: Arc<dyn Counter>,
    /// What an image, audio or file part counts for.
    pub media_tokens: u64,
    /// The tools that the model may call; their description is in the log from the start.
    pub tools: Vec<Tool>,
    /// The heading of the tool description. Default: [`DEFAULT_HEADING`].
    pub heading: String,
}

#[cfg(feature = "bpe")]
impl Default for Settings {
    /// The usual settings, counting with `o200k_base`.
    fn default() -> Self {
        Settings::counting_with(crate::Bpe::O200kBase)
    }
}

impl Settings {
    /// The usual settings with this counter: 1,000 tokens for each image, audio or file, no tools.
    pub fn counting_with(counter: impl Counter + 'static) -> Settings {
        Settings {
            counter: Arc::new(counter),
            media_tokens: 1_000,
            tools: Vec::new(),
            heading: DEFAULT_HEADING.to_owned(),
        }
    }
}

/// A conversation at one version: an immutable value. Cloning one costs O(1).
///
/// [`apply`](Self::apply) returns the next value and leaves this one as it is, so a request is
/// atomic by construction and any value can be kept, compared or gone on from.
///
/// ```
/// use recto_core::{Append, Approx, Conversation, Message, Rollback, Settings, Truncate, Version};
///
/// let start = Conversation::new(Settings::counting_with(Approx), 0)?;
/// let messages = ["one", "two", "three"].map(Message::user).to_vec();
/// let (full, _) = start.apply(Append { messages }, 1)?;
///
/// let (cut, outcome) = full.apply(Truncate { keep_last: Some(1), ..Default::default() }, 2)?;
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
    pub(crate) setup: Arc<Setup>,
    pub(crate) log: MessageLog,
    pub(crate) history: History,
}

/// What all versions share.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) meter: Meter,
    /// The headings of tool descriptions.
    pub(crate) headings: Headings,
    pub(crate) known_batches: KnownBatches,
}

impl Setup {
    pub(crate) fn new(meter: Meter, heading: String) -> Arc<Setup> {
        let headings = Headings::new(heading);
        Arc::new(Setup { meter, headings, known_batches: KnownBatches::default() })
    }
}

impl Conversation {
    /// A new conversation at version 0. Tools, if it has any, are described in its log.
    pub fn new(settings: Settings, now: Timestamp) -> Result<Conversation, Error> {
        Self::with_messages(settings, &[], now)
    }

    /// A new conversation that shows messages at version 0, behind the description of its tools if
    /// it has any. If the messages hold that description, it is not added.
    pub fn with_messages(
        settings: Settings,
        messages: &[Message],
        now: Timestamp,
    ) -> Result<Conversation, Error> {
        let Settings { counter, media_tokens, tools, heading } = settings;
        let setup = Setup::new(Meter { counter, media_tokens }, heading);
        let tools = ToolSet::new(tools, &setup.headings)?.map(Arc::new);
        let mut log = MessageLog::default();
        let descriptions =
            Descriptions { headings: &setup.headings, tools: tools.as_deref(), log: &log };
        let is_described = messages.iter().any(|message| descriptions.is_present(message));
        if let Some(tools) = tools.as_ref().filter(|_| !is_described) {
            log.append(&[tools.description()], now, &setup.meter)?;
            log.note_written_by_engine();
        }
        log.append(messages, now, &setup.meter)?;
        let view = log.as_view().clone();
        let (path, marks) = (LivePath::new(now), Marks::default());
        let state = State { view, path, marks, homes: Homes::default() };
        let record = Record {
            held: Held::Own(state),
            timestamp: now,
            log_len: log.len() as u32,
            undo: Jump::NONE,
            redo: Jump::NONE,
            kind: OperationKind::Create,
            story: Story::told("the conversation was created".into()),
            tools,
            tools_home: Version(0),
        };
        let history = History::new(record);
        Ok(Conversation { setup, log, history })
    }

    /// Performs a request and returns the conversation after it. This value stays as it is; if the
    /// request is refused there is no other.
    pub fn apply(
        &self,
        request: impl Into<Request>,
        now: Timestamp,
    ) -> Result<(Conversation, Outcome), Error> {
        self.apply_request(&request.into(), now)
    }

    /// [`apply`](Self::apply) for a request that may have to be performed again.
    pub fn apply_request(
        &self,
        request: &Request,
        now: Timestamp,
    ) -> Result<(Conversation, Outcome), Error> {
        request.check()?;
        self.log.check_measured()?;
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
            let done = draft.perform(step);
            done.map_err(|error| if is_list { error.in_list(number) } else { error })?;
            if is_list {
                records.push(StepRecord {
                    kind: step.operation.kind(),
                    description: draft.description(),
                    view: draft.state.view.clone(),
                });
            }
        }
        if !draft.did_anything {
            let mut outcome = self.outcome_of(self, false)?;
            outcome.add_warnings_of(request);
            return Ok((self.clone(), outcome));
        }
        let (kind, story) = match &*request.steps {
            [step] => (step.operation.kind(), Story::of(step, || draft.description())),
            _ => (OperationKind::List, Story::of_list(records)),
        };
        let mut done = self.commit_draft(draft, kind, story)?;
        done.1.add_warnings_of(request);
        Ok(done)
    }

    fn commit_draft(
        &self,
        draft: Draft<'_>,
        kind: OperationKind,
        story: Story,
    ) -> Result<(Conversation, Outcome), Error> {
        let (homes, tools_home) = (draft.homes(), draft.tools_home());
        let Draft { log, state, tools, now, adds_foreign, .. } = draft;
        let record = Record {
            held: Held::Own(State { homes, ..state }),
            timestamp: now,
            log_len: log.len() as u32,
            undo: self.version().into(),
            redo: Jump::NONE,
            kind,
            story,
            tools,
            tools_home,
        };
        self.commit(log, record, adds_foreign)
    }

    /// The next value: this log, and a version more.
    fn commit(
        &self,
        log: MessageLog,
        record: Record,
        adds_foreign: bool,
    ) -> Result<(Conversation, Outcome), Error> {
        let may_be_stale = record.tools.is_some() || log.has_written_by_engine();
        let mut history = self.history.clone();
        history.push(record)?;
        let next = Conversation { setup: self.setup.clone(), log, history };
        let notices = next.notices(self.log.len(), may_be_stale, adds_foreign)?;
        let outcome = Outcome::new(&self.history, &next, true, notices);
        Ok((next, outcome))
    }

    fn outcome_of(&self, before: &Conversation, changed: bool) -> Result<Outcome, Error> {
        let may_be_stale = self.tools().is_some() || self.log.has_written_by_engine();
        let notices = self.notices(before.log.len(), may_be_stale, true)?;
        Ok(Outcome::new(&before.history, self, changed, notices))
    }

    /// The warnings about stale descriptions in the view, and about foreign messages among the log
    /// entries from `old_len` on. What the caller knows to be impossible is not looked for.
    fn notices(
        &self,
        old_len: usize,
        may_be_stale: bool,
        may_be_foreign: bool,
    ) -> Result<Vec<Warning>, Error> {
        let mut notices = Vec::new();
        if may_be_stale {
            notices.extend(self.stale_tools()?);
        }
        if may_be_foreign {
            notices.extend(self.foreign_messages(old_len)?);
        }
        Ok(notices)
    }

    /// The warning that log entries from one on have tool calls that are not read.
    fn foreign_messages(&self, from: usize) -> Result<Option<Warning>, Error> {
        let mut absent = Vec::new();
        let mut foreign = Vec::new();
        for index in (from as u32..self.log.len() as u32).map(LogIndex) {
            let entry = self.log.get(index).expect("the entry is in the log");
            if is_at_hand(entry, index, &mut absent) && entry.message.is_foreign() {
                foreign.push(index);
            }
        }
        check_at_hand(absent)?;
        Ok(Warning::about(WarningCode::ForeignMessage, foreign))
    }

    /// The warning that the view shows descriptions of tools that the conversation does not have.
    fn stale_tools(&self) -> Result<Option<Warning>, Error> {
        let stale = self.descriptions().contradicting(self.view())?;
        Ok(Warning::about(WarningCode::StaleTools, stale))
    }

    fn descriptions(&self) -> Descriptions<'_> {
        Descriptions { headings: &self.setup.headings, tools: self.tools(), log: &self.log }
    }

    /// The visible entries that describe tools, stale or not, in log order; none in a conversation
    /// without tools. A provider that receives the tools natively must not get them.
    pub fn tool_descriptions(&self) -> Result<Vec<LogIndex>, Error> {
        let descriptions = self.descriptions();
        if descriptions.tools.is_none() {
            return Ok(Vec::new());
        }
        let is_description = |index, message: &Message| {
            descriptions.is_present(message) || descriptions.describes(index, message)
        };
        let places = descriptions.places(self.view(), is_description)?;
        let mut found: Vec<LogIndex> =
            places.into_iter().filter_map(|at| self.view().get(Position(at))).collect();
        found.sort_unstable();
        Ok(found)
    }

    /// The result that the request answered which made a version.
    pub fn outcome(&self, version: Version) -> Result<Outcome, Error> {
        self.log.check_measured()?;
        let after = self.at(version)?;
        let Some(before) = version.0.checked_sub(1) else {
            return after.outcome_of(&after, false);
        };
        after.outcome_of(&self.at(Version(before))?, true)
    }

    /// The result of a request that found nothing to do at a version.
    pub fn idle_outcome(&self, version: Version) -> Result<Outcome, Error> {
        self.log.check_measured()?;
        let at = self.at(version)?;
        at.outcome_of(&at, false)
    }

    fn undo(&self, step: &Step, now: Timestamp) -> Result<(Conversation, Outcome), Error> {
        let target = self.history.current().undo.target().ok_or(Error::NothingToUndo)?;
        let to = self.history.record(target, "version")?;
        let held = to.held_by(target);
        let tools = (to.tools.clone(), to.tools_home);
        let redo = self.version().into();
        self.travel(Destination { held, tools, undo: to.undo, redo }, step, now)
    }

    fn redo(&self, step: &Step, now: Timestamp) -> Result<(Conversation, Outcome), Error> {
        let target = self.history.current().redo.target().ok_or(Error::NothingToRedo)?;
        let to = self.history.record(target, "version")?;
        let held = to.held_by(target);
        let tools = (to.tools.clone(), to.tools_home);
        self.travel(Destination { held, tools, undo: to.undo, redo: to.redo }, step, now)
    }

    /// ROLLBACK to a version, alone in its request.
    fn roll_back(
        &self,
        target: Version,
        step: &Step,
        now: Timestamp,
    ) -> Result<(Conversation, Outcome), Error> {
        let (held, tools, tools_home) = self.history.held_again(target, "targetVersion")?;
        let undo = self.version().into();
        self.travel(
            Destination { held, tools: (tools, tools_home), undo, redo: Jump::NONE },
            step,
            now,
        )
    }

    fn travel(
        &self,
        to: Destination,
        step: &Step,
        now: Timestamp,
    ) -> Result<(Conversation, Outcome), Error> {
        let record = Record {
            held: to.held,
            timestamp: now,
            log_len: self.log.len() as u32,
            undo: to.undo,
            redo: to.redo,
            kind: step.operation.kind(),
            story: Story::of(step, || step.reason()),
            tools: to.tools.0,
            tools_home: to.tools.1,
        };
        self.commit(self.log.clone(), record, false)
    }

    /// Sets other tools: a request of its own. Visible descriptions that are stale now and not
    /// pinned leave, and the present one takes the place of the first, in a new batch; if none
    /// leaves, it is appended. Without tools, every visible description that is not pinned is
    /// hidden, in a new batch. Setting the same tools does nothing.
    pub fn set_tools(
        &self,
        tools: Vec<Tool>,
        now: Timestamp,
    ) -> Result<(Conversation, Outcome), Error> {
        self.log.check_measured()?;
        let tools = ToolSet::new(tools, &self.setup.headings)?.map(Arc::new);
        if tools::are_same(tools.as_deref(), self.tools()) {
            return Ok((self.clone(), self.outcome_of(self, false)?));
        }
        let mut draft = Draft::new(self, now);
        draft.set_tools(tools);
        let view = draft.state.view.clone();
        let descriptions = draft.descriptions();
        let places = descriptions.places(&view, |index, message| {
            !draft.is_pinned(index)
                && descriptions.describes(index, message)
                && !descriptions.is_present(message)
        })?;
        if !places.is_empty() {
            let view = draft.replace_descriptions(&view, &places)?;
            draft.open_batch(view);
        } else if !draft.descriptions().is_shown_in(&view)?
            && let Some(entry) = draft.present_description()?
        {
            draft.state.view.push(entry);
        }
        let story = Story::told(draft.description());
        self.commit_draft(draft, OperationKind::SetTools, story)
    }

    pub(crate) fn state(&self) -> &State {
        self.history.state()
    }

    /// How many requests were accepted so far.
    pub fn version(&self) -> Version {
        self.history.current_version()
    }

    /// What the model reads.
    pub fn view(&self) -> &View {
        &self.state().view
    }

    /// The messages that the model reads, in order.
    pub fn messages(&self) -> impl DoubleEndedIterator<Item = &Message> {
        self.view().iter().map(|index| self.log.message(index))
    }

    /// What the model reads, in order: each message with its number, its place and its tokens.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = VisibleEntry<'_>> + ExactSizeIterator {
        self.view().0.iter().enumerate().map(|(at, placed)| VisibleEntry {
            index: placed.index(),
            position: Position(at),
            message: self.log.message(placed.index()),
            tokens: placed.tokens(),
        })
    }

    /// A message by its number, visible or not.
    pub fn message(&self, index: LogIndex) -> Option<&Message> {
        self.log.get(index).map(|entry| &entry.message)
    }

    /// What a user should know of the view: tool calls and results that it has torn apart, and
    /// descriptions of other tools.
    pub fn warnings(&self) -> Result<Vec<Warning>, Error> {
        self.log.check_measured()?;
        let mut warnings = torn_exchanges(self.view(), self.log.as_view());
        warnings.extend(self.stale_tools()?);
        Ok(warnings)
    }

    /// Every message ever added.
    pub fn log(&self) -> &MessageLog {
        &self.log
    }

    /// The labels on log entries.
    pub fn marks(&self) -> &Marks {
        &self.state().marks
    }

    /// The tools, if there are any.
    pub fn tools(&self) -> Option<&ToolSet> {
        self.history.current().tools.as_deref()
    }

    /// What counts tokens.
    pub fn counter(&self) -> &Arc<dyn Counter> {
        &self.setup.meter.counter
    }

    /// The figures.
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

    /// The conversation as it was at a version: a value like this one, which can be read, compared
    /// and gone on from (that is a fork).
    pub fn at(&self, version: Version) -> Result<Conversation, Error> {
        let record = self.history.record(version, "version")?;
        Ok(Conversation {
            setup: self.setup.clone(),
            log: self.log.prefix(record.log_len as usize),
            history: self.history.up_to(version),
        })
    }

    /// The view of a batch of the live path as it was when it was left; the current one: now.
    pub fn batch_view(&self, batch: BatchIndex) -> Result<View, Error> {
        Ok(self.snapshot(batch)?.view)
    }

    /// A batch of the live path: when and why it was opened, and what it holds.
    pub fn snapshot(&self, batch: BatchIndex) -> Result<BatchSnapshot, Error> {
        let path = &self.state().path;
        let current = path.current_number();
        let left =
            if batch == current { None } else { path.left(batch, &self.setup.known_batches)? };
        if left.is_none() && batch != current {
            return Err(Error::BatchNotFound { batch, current, field: "batchIndex" });
        }
        let opening = &left.as_ref().map_or(&path.current, |left| &left.batch).opening;
        Ok(BatchSnapshot {
            batch,
            timestamp: opening.timestamp,
            description: opening.description.to_string(),
            view: left.as_ref().map_or(self.view(), |left| &left.view).clone(),
            log: self.log.clone(),
        })
    }

    /// The visible messages and a snapshot of each batch below the current one.
    pub fn array_state(&self) -> Result<ArrayState, Error> {
        let current = self.state().path.current_number();
        let below = (0..current.0).map(|batch| self.snapshot(BatchIndex(batch)));
        let below: Vec<BatchSnapshot> = below.collect::<Result<_, Error>>()?;
        let now = self.snapshot(current)?;
        let mut absent = Vec::new();
        for snapshot in below.iter().chain([&now]) {
            absent.extend(snapshot.messages().filter(|(_, m)| m.is_absent()).map(|(at, _)| at));
        }
        check_at_hand(absent)?;
        Ok(ArrayState { now, below })
    }

    /// The versions in order: which request made each, when, and why.
    pub fn versions(&self) -> impl DoubleEndedIterator<Item = VersionInfo> {
        self.history.iter().map(|(version, record)| self.describe_version(version, record))
    }

    /// Which request made a version, when, and why.
    pub fn version_info(&self, version: Version) -> Result<VersionInfo, Error> {
        Ok(self.describe_version(version, self.history.record(version, "version")?))
    }

    fn describe_version(&self, version: Version, record: &Record) -> VersionInfo {
        let state = self.history.state_of(record);
        VersionInfo {
            version,
            operation: record.kind,
            description: self.history.description(version, record),
            timestamp: record.timestamp,
            messages: state.view.len(),
            tokens: state.view.tokens(),
            batch: state.path.current_number(),
            batch_opened_by: state.path.current.home.version,
            log: record.log_len as usize,
        }
    }

    /// The tokens of the first `len` entries of the log, all of them if it is shorter.
    pub fn log_tokens(&self, len: usize) -> Result<u64, Error> {
        self.log.check_measured()?;
        Ok(self.log.as_view().tokens_in(..len.min(self.log.len())))
    }

    /// Appends messages: short for [`apply`](Self::apply) with [`Append`].
    pub fn append(
        &self,
        messages: impl IntoIterator<Item = Message>,
        now: Timestamp,
    ) -> Result<(Conversation, Outcome), Error> {
        self.apply(Append { messages: messages.into_iter().collect() }, now)
    }
}

/// Where a request goes back to, and where one can go from there.
struct Destination {
    held: Held,
    /// The tools, and the version that set them.
    tools: (Option<Arc<ToolSet>>, Version),
    undo: Jump,
    redo: Jump,
}

/// A batch of the live path.
#[derive(Clone, Debug)]
pub struct BatchSnapshot {
    /// Its number.
    pub batch: BatchIndex,
    /// When it was opened.
    pub timestamp: Timestamp,
    /// Why it was opened.
    pub description: String,
    /// What it held when it was left; the current one: what it holds now.
    pub view: View,
    log: MessageLog,
}

impl Serialize for BatchSnapshot {
    /// As the contract writes it: `{batchIndex, timestamp, description, messageCount, messages}`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut snapshot = serializer.serialize_struct("BatchSnapshot", 5)?;
        let messages: Vec<&Message> = self.messages().map(|(_, message)| message).collect();
        snapshot.serialize_field("batchIndex", &self.batch)?;
        snapshot.serialize_field("timestamp", &self.timestamp)?;
        snapshot.serialize_field("description", &self.description)?;
        snapshot.serialize_field("messageCount", &messages.len())?;
        snapshot.serialize_field("messages", &messages)?;
        snapshot.end()
    }
}

impl BatchSnapshot {
    /// Its messages in order.
    pub fn messages(&self) -> impl DoubleEndedIterator<Item = (LogIndex, &Message)> {
        self.view.iter().map(|index| (index, self.log.message(index)))
    }
}

/// The view as an array of messages, and the batches below the current one.
#[derive(Clone, Debug)]
pub struct ArrayState {
    /// The current batch.
    pub now: BatchSnapshot,
    /// The batches below it, from batch 0.
    pub below: Vec<BatchSnapshot>,
}

impl Serialize for ArrayState {
    /// As the contract writes it: `{messages, batchSnapshots, currentBatchIndex,
    /// totalMessageCount}`. The count is that of the visible messages.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut state = serializer.serialize_struct("ArrayState", 4)?;
        let messages: Vec<&Message> = self.now.messages().map(|(_, message)| message).collect();
        state.serialize_field("messages", &messages)?;
        state.serialize_field("batchSnapshots", &self.below)?;
        state.serialize_field("currentBatchIndex", &self.now.batch)?;
        state.serialize_field("totalMessageCount", &messages.len())?;
        state.end()
    }
}

/// A message that the model reads.
#[derive(Clone, Copy, Debug)]
pub struct VisibleEntry<'a> {
    /// Its number in the log.
    pub index: LogIndex,
    /// Its place in the view.
    pub position: Position,
    /// The message.
    pub message: &'a Message,
    /// Its tokens.
    pub tokens: u64,
}

/// A version: which request made it, and what it left behind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VersionInfo {
    /// Its number.
    pub version: Version,
    /// The operation that made it.
    pub operation: OperationKind,
    /// Why.
    pub description: String,
    /// When.
    pub timestamp: Timestamp,
    /// The length of its view.
    pub messages: usize,
    /// The tokens of its view.
    pub tokens: u64,
    /// Its current batch.
    pub batch: BatchIndex,
    /// The version whose request opened that batch. Batch numbers are used again, this is not: so
    /// it tells which versions belong together.
    #[serde(rename = "batchOpenedBy")]
    pub batch_opened_by: Version,
    /// The length of its log.
    pub log: usize,
}
