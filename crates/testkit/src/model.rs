//! The reference model: the contract implemented with plain lists. Every version keeps its whole state.
//!
//! A view is a `Vec<usize>` of log indices, and an edit makes a new list. The code
//! is simple and slow on purpose. The flow of data: JSON → `wire` → `Operation` →
//! `Draft` (a copy of the newest state, edited) → a new version. A refused request
//! drops its draft, so nothing has changed.

mod array_state;
mod diff;
mod draft;
mod fit;
mod mark_map;
mod message;
mod operation;
mod operations;
mod outcome;
mod query;
mod refusal;
mod role;
mod settings;
mod snapshot;
mod state;
mod tool_description;
mod tool_exchange;
mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};

pub use self::diff::Diff;
pub use self::outcome::Outcome;
pub use self::refusal::Refusal;
pub use self::role::Role;
pub use self::settings::{DEFAULT_HEADING, EARLIER_HEADING, Settings, Tool};
pub use self::snapshot::Snapshot;

use self::draft::{Draft, Effect, Finished};
use self::message::{Entry, Message};
use self::operation::{Request, Scope};
use self::state::{DoneRequest, State, Version};
use self::tool_description::Descriptions;

/// A log entry that several conversations can share.
#[derive(Clone)]
pub(crate) struct LogEntry(Arc<Entry>);

/// One conversation: a log, a history of versions, and the stacks of UNDO and REDO.
#[derive(Clone)]
pub struct Model {
    settings: Settings,
    /// The messages given at creation, unchanged.
    initial_messages: Value,
    /// Every message ever added, in order. It never shrinks.
    log: Vec<Arc<Entry>>,
    /// The state at every version; the last one is the present state.
    history: Vec<Arc<Version>>,
    /// Requests that are not undone, oldest first.
    done: Vec<DoneRequest>,
    /// Undone requests that REDO may restore, newest last.
    undone: Vec<DoneRequest>,
    /// The notes of versions.
    notes: BTreeMap<u64, String>,
}

impl Model {
    /// A new conversation without messages, at version 0 and batch 0. If it has tools, the log and the
    /// view contain their description.
    pub fn new(settings: Settings, now: i64) -> Model {
        Model::with_messages(settings, &json!([]), now).expect("an empty list is allowed")
    }

    /// A new conversation whose messages are visible at version 0, after the tool
    /// description if it has tools. If the messages contain the present description,
    /// none is added. `messages` is a list that may be empty.
    pub fn with_messages(settings: Settings, messages: &Value, now: i64) -> Result<Model, Refusal> {
        let list = messages.as_array();
        let list = list.ok_or_else(|| Refusal::operation("messages is not a list"))?;
        let mut log = Vec::new();
        for message in list {
            log.push(Arc::new(Entry::new(Message::read(message)?, &settings, now)));
        }
        let descriptions = Descriptions::of(&settings, &settings.tools);
        let present = tool_description::text(&settings.heading, &settings.tools);
        if let Some(text) = present
            && !log.iter().any(|entry| descriptions.is_present(entry))
        {
            log.insert(0, Arc::new(tool_description::entry(&text, &settings, now)));
        }
        let state = State::new((0..log.len()).collect(), settings.tools.clone(), now);
        let (log_len, done, undone) = (log.len(), Vec::new(), Vec::new());
        Ok(Model {
            settings,
            initial_messages: messages.clone(),
            log,
            history: vec![Arc::new(Version { state, log_len, timestamp: now, done, undone })],
            done: Vec::new(),
            undone: Vec::new(),
            notes: BTreeMap::new(),
        })
    }

    /// Applies a request, `{"op": {…}}` or `{"ops": […]}`, atomically.
    /// Each operation may be in any of the three input forms.
    pub fn apply(&mut self, request: &Value, now: i64) -> Result<Outcome, Refusal> {
        match wire::read_request(request)? {
            Request::Undo => self.undo(now),
            Request::Redo => self.redo(now),
            Request::Edit(steps) => {
                let mut draft = self.draft(now);
                let mut effects = Vec::new();
                for step in &steps {
                    effects.push(draft.run(step)?);
                }
                // A request in which no operation did anything makes no version.
                if effects.iter().all(|&effect| effect == Effect::Nothing) {
                    return Ok(self.unchanged());
                }
                let finished = draft.finish();
                Ok(self.commit_edit(finished, now))
            }
        }
    }

    /// Stores a note with the newest version.
    pub fn note(&mut self, note: &str) {
        self.notes.insert(self.version(), note.to_owned());
    }

    /// The note of a version.
    pub fn note_at(&self, version: u64) -> Option<&str> {
        self.notes.get(&version).map(String::as_str)
    }

    /// Sets the tools (section 8). Setting the same tools changes nothing.
    pub fn set_tools(&mut self, tools: &Value, now: i64) -> Result<Outcome, Refusal> {
        let tools = Tool::read_list(tools)?;
        if tools == self.tools() {
            return Ok(self.unchanged());
        }
        let mut draft = self.draft(now);
        draft.set_tools(tools);
        let finished = draft.finish();
        Ok(self.commit_edit(finished, now))
    }

    /// A fork at a version: the same log and history up to it (section 11).
    pub fn fork(&self, at: u64) -> Result<Model, Refusal> {
        let version = self.version_record(at)?;
        let (done, undone) = (version.done.clone(), version.undone.clone());
        let mut fork = Model { done, undone, ..self.clone() };
        fork.notes.retain(|version, _| *version <= at);
        fork.log.truncate(version.log_len);
        fork.history.truncate(at as usize + 1);
        Ok(fork)
    }

    /// Puts a placeholder in the place of a message (section 11). The entry keeps its role, its tokens, its
    /// timestamp, and the ids and names of its tool calls and results.
    pub(crate) fn overwrite(&mut self, index: usize, placeholder: &str) {
        let entry = &self.log[index];
        let message = entry.message.replaced_by(placeholder);
        self.log[index] = Arc::new(Entry { message, ..(**entry).clone() });
    }

    /// An entry of the log.
    pub(crate) fn log_entry(&self, index: usize) -> LogEntry {
        LogEntry(self.log[index].clone())
    }

    /// Puts an entry that another conversation shares into the log.
    pub(crate) fn put_log_entry(&mut self, index: usize, entry: &LogEntry) {
        self.log[index] = entry.0.clone();
    }

    /// The log indices that a query finds, in order.
    pub fn query(&self, query: &Value) -> Result<Vec<usize>, Refusal> {
        let found = self.query_positions(query)?;
        Ok(found.into_iter().map(|(index, _)| index).collect())
    }

    /// Like [`Model::query`], but returns each index with its position in the queried view, if it is
    /// visible there.
    pub fn query_positions(&self, query: &Value) -> Result<Vec<(usize, Option<usize>)>, Refusal> {
        query::Query::read(query)?.entries(self)
    }

    /// The mark map (section 7). Its `typeIndices` list the visible entries of
    /// each role, in view order.
    pub fn mark_map(&self) -> Value {
        mark_map::mark_map(&self.log, self.newest(), Scope::Visible)
    }

    /// The mark map with `scope: "all"`: its `typeIndices` list the whole log. All
    /// other fields equal those of [`Model::mark_map`].
    pub fn mark_map_of_all(&self) -> Value {
        mark_map::mark_map(&self.log, self.newest(), Scope::All)
    }

    /// The message array state (section 7): `{messages, batchSnapshots,
    /// currentBatchIndex, totalMessageCount}`. A snapshot is `{batchIndex,
    /// timestamp, messageCount, messages}`.
    pub fn state(&self) -> Value {
        array_state::array_state(&self.log, self.newest())
    }

    /// The warnings about the new conversation, at version 0.
    pub fn creation_warnings(&self) -> Vec<(&'static str, Vec<usize>)> {
        let version_0 = &self.history[0];
        outcome::Comparison {
            log: &self.log[..version_0.log_len],
            state: &version_0.state,
            version: 0,
            settings: &self.settings,
            tools_before: &[],
            view_before: &[],
            log_len_before: 0,
            changed: true,
            ignored_indices: &BTreeSet::new(),
        }
        .warnings()
    }

    /// A batch of the live path with its last view, or the present one of the current batch.
    pub fn snapshot(&self, batch: usize) -> Result<Snapshot, Refusal> {
        let found = self.newest().batch(batch)?;
        Ok(Snapshot {
            batch_index: batch,
            timestamp: found.opened_at,
            description: found.description.clone(),
            message_count: found.view.len(),
            messages: found.view.clone(),
        })
    }

    /// The difference between the views of two versions.
    pub fn diff(&self, a: u64, b: u64) -> Result<Diff, Refusal> {
        let (from, to) = (self.version_record(a)?, self.version_record(b)?);
        Ok(Diff::between(from.state.view(), to.state.view(), |index| self.log[index].tokens))
    }

    fn undo(&mut self, now: i64) -> Result<Outcome, Refusal> {
        let request = self
            .done
            .pop()
            .ok_or_else(|| Refusal::new("nothing_to_undo", "no request is left to undo"))?;
        self.undone.push(request);
        Ok(self.commit(self.restored(request.before), now))
    }

    fn redo(&mut self, now: i64) -> Result<Outcome, Refusal> {
        let request = self
            .undone
            .pop()
            .ok_or_else(|| Refusal::new("nothing_to_redo", "no undone request is left"))?;
        self.done.push(request);
        Ok(self.commit(self.restored(request.after), now))
    }

    /// The state at a version, with the present log.
    fn restored(&self, version: usize) -> Finished {
        Finished {
            state: self.history[version].state.clone(),
            log: self.log.clone(),
            ignored_indices: BTreeSet::new(),
        }
    }

    /// Adds the version of a request other than UNDO and REDO. The request can be undone, and REDO is
    /// not possible after it.
    fn commit_edit(&mut self, finished: Finished, now: i64) -> Outcome {
        let before = self.history.len() - 1;
        self.done.push(DoneRequest { before, after: before + 1 });
        self.undone.clear();
        self.commit(finished, now)
    }

    fn commit(&mut self, finished: Finished, now: i64) -> Outcome {
        let Finished { state, log, ignored_indices } = finished;
        let before = self.history.last().expect("version 0 always exists").clone();
        let log_len = log.len();
        self.log = log;
        let (done, undone) = (self.done.clone(), self.undone.clone());
        self.history.push(Arc::new(Version { state, log_len, timestamp: now, done, undone }));
        self.outcome(&before, true, &ignored_indices)
    }

    fn unchanged(&self) -> Outcome {
        let now = self.history.last().expect("version 0 always exists");
        self.outcome(now, false, &BTreeSet::new())
    }

    fn outcome(
        &self,
        before: &Version,
        changed: bool,
        ignored_indices: &BTreeSet<usize>,
    ) -> Outcome {
        outcome::Comparison {
            log: &self.log,
            state: self.newest(),
            version: self.version(),
            settings: &self.settings,
            tools_before: &before.state.tools,
            view_before: before.state.view(),
            log_len_before: before.log_len,
            changed,
            ignored_indices,
        }
        .outcome()
    }

    fn draft(&self, now: i64) -> Draft<'_> {
        Draft::new(&self.settings, &self.history, self.log.clone(), self.newest().clone(), now)
    }

    fn newest(&self) -> &State {
        &self.history.last().expect("version 0 always exists").state
    }

    fn version_record(&self, version: u64) -> Result<&Version, Refusal> {
        state::find_version(&self.history, version)
    }
}

/// Reads.
impl Model {
    /// The version that opened a batch of the live path.
    pub fn opened_by(&self, batch: usize) -> Result<u64, Refusal> {
        Ok(self.newest().batch(batch)?.opened_by as u64)
    }

    /// The number of requests that have changed the conversation.
    pub fn version(&self) -> u64 {
        self.history.len() as u64 - 1
    }

    /// The log indices that the model reads now, in order.
    pub fn view(&self) -> &[usize] {
        self.newest().view()
    }

    /// The view at a version.
    pub fn view_at(&self, version: u64) -> Result<&[usize], Refusal> {
        Ok(self.version_record(version)?.state.view())
    }

    /// The time of a version's request.
    pub fn timestamp_at(&self, version: u64) -> Result<i64, Refusal> {
        Ok(self.version_record(version)?.timestamp)
    }

    /// The length of the log.
    pub fn log_len(&self) -> usize {
        self.log.len()
    }

    /// The length of the log at a version.
    pub fn log_len_at(&self, version: u64) -> Result<usize, Refusal> {
        Ok(self.version_record(version)?.log_len)
    }

    /// The tokens of the view.
    pub fn tokens(&self) -> u64 {
        self.view().iter().map(|&index| self.log[index].tokens).sum()
    }

    /// The number of the current batch.
    pub fn batch(&self) -> usize {
        self.newest().batch_index()
    }

    /// The length of the live path.
    pub fn batches(&self) -> usize {
        self.newest().path.len()
    }

    /// The log indices of every mark that is in use.
    pub fn marks(&self) -> &BTreeMap<String, BTreeSet<usize>> {
        &self.newest().marks
    }

    /// The marks at a version.
    pub fn marks_at(&self, version: u64) -> Result<&BTreeMap<String, BTreeSet<usize>>, Refusal> {
        Ok(&self.version_record(version)?.state.marks)
    }

    /// The present tools.
    pub fn tools(&self) -> &[Tool] {
        &self.newest().tools
    }

    /// The settings at creation, with the tools of version 0.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The messages at creation: a list.
    pub fn initial_messages(&self) -> &Value {
        &self.initial_messages
    }

    /// The text of the present tool description; `None` without tools.
    pub fn tool_description(&self) -> Option<String> {
        tool_description::text(&self.settings.heading, self.tools())
    }

    /// Whether UNDO would be accepted.
    pub fn can_undo(&self) -> bool {
        !self.done.is_empty()
    }

    /// Whether REDO would be accepted.
    pub fn can_redo(&self) -> bool {
        !self.undone.is_empty()
    }

    /// A log entry's message, unchanged.
    pub fn message(&self, index: usize) -> &Value {
        &self.log[index].message.json
    }

    /// A log entry's text (section 3), as filters and search read it.
    pub fn text(&self, index: usize) -> &str {
        &self.log[index].message.text
    }

    /// A log entry's role.
    pub fn role(&self, index: usize) -> Role {
        self.log[index].message.role
    }

    /// A log entry's timestamp: that of the message, or else the time at which it was added.
    pub fn timestamp(&self, index: usize) -> i64 {
        self.log[index].timestamp
    }

    /// A log entry's tokens.
    pub fn entry_tokens(&self, index: usize) -> u64 {
        self.log[index].tokens
    }

    /// Whether a log entry is a tool description that the engine wrote.
    pub fn is_written_by_engine(&self, index: usize) -> bool {
        self.log[index].is_written_by_engine
    }

    /// The ids of a log entry's tool calls (its top-level `tool_use` parts).
    pub fn calls(&self, index: usize) -> &[String] {
        &self.log[index].message.calls
    }

    /// The call ids of a log entry's tool results (its top-level
    /// `tool_result` parts).
    pub fn results(&self, index: usize) -> &[String] {
        &self.log[index].message.results
    }
}
