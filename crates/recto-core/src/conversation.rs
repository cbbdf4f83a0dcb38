//! A conversation: one log, one current view, one history of versions. Start here: [`Conversation::apply`].

use std::sync::Arc;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::counter::Counter;
use crate::draft::Draft;
use crate::history::{Held, History, Jump, Record, StepRecord, Story};
use crate::live_path::{KnownBatches, LivePath};
use crate::message_log::Meter;
use crate::operation::{Append, Operation, OperationKind, Request, Rollback, Step};
use crate::outcome::torn_exchanges;
use crate::state::{Homes, State};
use crate::tools::{self, DEFAULT_HEADING, ToolSet};
use crate::{
    BatchIndex, Error, LogIndex, Marks, Message, MessageLog, Outcome, Position, Stats, Timestamp,
    Tool, Version, View, Warning,
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
    /// The heading of the tool description; [`DEFAULT_HEADING`] is Chinese for "available tools".
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
    /// The heading of the tool description.
    pub(crate) heading: String,
    pub(crate) known_batches: KnownBatches,
}

impl Setup {
    pub(crate) fn new(meter: Meter, heading: String) -> Arc<Setup> {
        Arc::new(Setup { meter, heading, known_batches: KnownBatches::default() })
    }
}

impl Conversation {
    /// A new conversation at version 0. Tools, if it has any, are described in its log.
    pub fn new(settings: Settings, now: Timestamp) -> Result<Conversation, Error> {
        let Settings { counter, media_tokens, tools, heading } = settings;
        let meter = Meter { counter, media_tokens };
        let tools = ToolSet::new(tools, &heading)?.map(Arc::new);
        let mut log = MessageLog::default();
        if let Some(tools) = &tools {
            log.append(&[tools.description()], now, &meter)?;
        }
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
        Ok(Conversation { setup: Setup::new(meter, heading), log, history })
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
        if draft.is_idle && !is_list {
            return Ok((self.clone(), self.outcome_of(self, false)));
        }
        let (kind, story) = match &*request.steps {
            [step] => (step.operation.kind(), Story::of(step, || draft.description())),
            _ => (OperationKind::List, Story::of_list(records)),
        };
        self.commit_draft(draft, kind, story)
    }

    fn commit_draft(
        &self,
        draft: Draft<'_>,
        kind: OperationKind,
        story: Story,
    ) -> Result<(Conversation, Outcome), Error> {
        let (homes, tools_home) = (draft.homes(), draft.tools_home());
        let Draft { log, state, tools, now, .. } = draft;
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
        self.commit(log, record)
    }

    /// The next value: this log, and a version more.
    fn commit(&self, log: MessageLog, record: Record) -> Result<(Conversation, Outcome), Error> {
        let mut history = self.history.clone();
        history.push(record)?;
        let next = Conversation { setup: self.setup.clone(), log, history };
        let outcome = next.outcome_of(self, true);
        Ok((next, outcome))
    }

    fn outcome_of(&self, before: &Conversation, changed: bool) -> Outcome {
        Outcome {
            version: self.version(),
            changed,
            before: before.history.clone(),
            after: self.history.clone(),
            log: self.log.as_view().clone(),
        }
    }

    /// The result that the request answered which made a version.
    pub fn outcome(&self, version: Version) -> Result<Outcome, Error> {
        self.log.check_measured()?;
        let after = self.at(version)?;
        let Some(before) = version.0.checked_sub(1) else {
            return Ok(after.outcome_of(&after, false));
        };
        Ok(after.outcome_of(&self.at(Version(before))?, true))
    }

    /// The result of a request that found nothing to do at a version.
    pub fn idle_outcome(&self, version: Version) -> Result<Outcome, Error> {
        self.log.check_measured()?;
        let at = self.at(version)?;
        Ok(at.outcome_of(&at, false))
    }

    fn undo(&self, step: &Step, now: Timestamp) -> Result<(Conversation, Outcome), Error> {
        let target = self.history.current().undo.target().ok_or(Error::NothingToUndo)?;
        let to = self.history.record(target, "version")?;
        let held = self.history.held_again(target, "version")?;
        let redo = self.version().into();
        self.travel(Destination { held, tools_of: to, undo: to.undo, redo }, step, now)
    }

    fn redo(&self, step: &Step, now: Timestamp) -> Result<(Conversation, Outcome), Error> {
        let target = self.history.current().redo.target().ok_or(Error::NothingToRedo)?;
        let to = self.history.record(target, "version")?;
        let held = self.history.held_again(target, "version")?;
        self.travel(Destination { held, tools_of: to, undo: to.undo, redo: to.redo }, step, now)
    }

    /// ROLLBACK to a version, alone in its request.
    fn roll_back(
        &self,
        target: Version,
        step: &Step,
        now: Timestamp,
    ) -> Result<(Conversation, Outcome), Error> {
        let held = self.history.held_again(target, "targetVersion")?;
        // The tools are a setting of the conversation, not part of what the model reads.
        let tools_of = self.history.current();
        let undo = self.version().into();
        self.travel(Destination { held, tools_of, undo, redo: Jump::NONE }, step, now)
    }

    fn travel(
        &self,
        to: Destination<'_>,
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
            tools: to.tools_of.tools.clone(),
            tools_home: to.tools_of.tools_home,
        };
        self.commit(self.log.clone(), record)
    }

    /// Sets other tools: a request of its own. Their description takes the place of a visible one
    /// that has become stale (in a new batch), or is appended. Without tools there is none: those
    /// that are visible are hidden (in a new batch), unless they are pinned.
    pub fn set_tools(
        &self,
        tools: Vec<Tool>,
        now: Timestamp,
    ) -> Result<(Conversation, Outcome), Error> {
        self.log.check_measured()?;
        let heading = &self.setup.heading;
        let tools = ToolSet::new(tools, heading)?.map(Arc::new);
        let mut draft = Draft::new(self, now);
        draft.tools = tools.clone();
        let may_go = |index| !draft.state.marks.is_pinned(index);
        let mut view = draft.state.view.clone();
        match tools {
            Some(tools) if tools.is_shown_in(&view, &draft.log)? => {}
            Some(tools) => {
                let stale = tools.first_stale_in(&view, &draft.log, may_go)?;
                let entry = draft.add_one_to_log(tools.description())?;
                match stale.and_then(|index| view.position_of(index)) {
                    Some(at) => {
                        view.0.splice(at.0..=at.0, [entry]);
                        draft.open_batch(view);
                    }
                    None => draft.state.view.push(entry),
                }
            }
            None => {
                let gone = tools::descriptions_in(&view, &draft.log, heading, may_go)?;
                if !gone.is_empty() {
                    view.hide(&view.places_of(&gone));
                    draft.open_batch(view);
                }
            }
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

    /// Tool calls and results that the view has torn apart.
    pub fn warnings(&self) -> Result<Vec<Warning>, Error> {
        self.log.check_measured()?;
        Ok(torn_exchanges(self.view(), self.log.as_view()))
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
struct Destination<'a> {
    held: Held,
    tools_of: &'a Record,
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
