//! The contract as plain lists: every version keeps its whole state.
//!
//! A view is a `Vec<usize>` of log indices. An edit makes a new list; nothing is
//! clever and nothing is fast. The way of the data: JSON → `wire` →
//! `Operation` → `Draft` (a copy of the newest state, edited) → a new version.
//! A refused request drops its draft, so nothing has changed.

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

use serde_json::Value;

pub use self::diff::Diff;
pub use self::outcome::Outcome;
pub use self::refusal::Refusal;
pub use self::role::Role;
pub use self::settings::{Settings, Tool};
pub use self::snapshot::Snapshot;

use self::draft::{Draft, Effect};
use self::message::Entry;
use self::operation::Request;
use self::state::{State, Version};

/// One conversation: a log, a history of versions, and what UNDO and REDO know.
#[derive(Clone)]
pub struct Model {
    settings: Settings,
    /// Every message ever added, in order. It never shrinks.
    log: Vec<Arc<Entry>>,
    /// The state at every version; the last one is now.
    history: Vec<Arc<Version>>,
    /// Requests that have not been taken back, oldest first.
    done: Vec<DoneRequest>,
    /// Requests that have been taken back and may be put back, newest last.
    undone: Vec<DoneRequest>,
}

/// A request, named by the versions whose states it led from and to.
#[derive(Clone, Copy)]
struct DoneRequest {
    before: usize,
    after: usize,
}

impl Model {
    /// A new conversation, at version 0 and batch 0. Tools given here put their
    /// description into the log and the view.
    pub fn new(settings: Settings, now: i64) -> Model {
        let mut log = Vec::new();
        if let Some(text) = tool_description::text(&settings.heading, &settings.tools) {
            log.push(Arc::new(tool_description::entry(&text, &settings, now)));
        }
        let state = State::new((0..log.len()).collect(), settings.tools.clone(), now);
        let log_len = log.len();
        Model {
            settings,
            log,
            history: vec![Arc::new(Version { state, log_len })],
            done: Vec::new(),
            undone: Vec::new(),
        }
    }

    /// Applies a request, `{"op": {…}}` or `{"ops": […]}`, whole or not at all.
    /// Each operation may be in any of the three input forms.
    pub fn apply(&mut self, request: &Value, now: i64) -> Result<Outcome, Refusal> {
        match wire::read_request(request)? {
            Request::Undo => self.undo(),
            Request::Redo => self.redo(),
            Request::Edit(steps) => {
                let mut draft = self.draft(now);
                let mut effects = Vec::new();
                for step in &steps {
                    effects.push(draft.run(step)?);
                }
                // FIT: "alone in its request no version".
                if effects == [Effect::FitsAlready] {
                    return Ok(self.unchanged());
                }
                let (state, log) = draft.finish();
                Ok(self.commit_edit(state, log))
            }
        }
    }

    /// Sets other tools: a request of its own. The new description takes the
    /// place of a visible stale one (a new batch), or is appended.
    pub fn set_tools(&mut self, tools: &Value, now: i64) -> Result<Outcome, Refusal> {
        let tools = Tool::read_list(tools)?;
        let mut draft = self.draft(now);
        draft.set_tools(tools);
        let (state, log) = draft.finish();
        Ok(self.commit_edit(state, log))
    }

    /// The log indices that a query answers, in order.
    pub fn ask(&self, query: &Value) -> Result<Vec<usize>, Refusal> {
        let answer = self.ask_positions(query)?;
        Ok(answer.into_iter().map(|(index, _)| index).collect())
    }

    /// As [`Model::ask`], each index with its position in the asked view, if it
    /// is visible there.
    pub fn ask_positions(&self, query: &Value) -> Result<Vec<(usize, Option<usize>)>, Refusal> {
        query::Query::read(query)?.answer(self)
    }

    /// The mark map of the seeds.
    pub fn mark_map(&self) -> Value {
        mark_map::mark_map(&self.log, self.state())
    }

    /// A batch of the live path as it was when it was left (the current one: now).
    pub fn snapshot(&self, batch: usize) -> Result<Snapshot, Refusal> {
        let found = self.state().batch(batch)?;
        Ok(Snapshot {
            batch_index: batch,
            timestamp: found.opened_at,
            description: found.description.clone(),
            message_count: found.view.len(),
            messages: found.view.clone(),
        })
    }

    /// What differs between the views of two versions.
    pub fn diff(&self, a: u64, b: u64) -> Result<Diff, Refusal> {
        let (from, to) = (self.version_record(a)?, self.version_record(b)?);
        Ok(Diff::between(from.state.view(), to.state.view(), |index| self.log[index].tokens))
    }

    fn undo(&mut self) -> Result<Outcome, Refusal> {
        let request = self
            .done
            .pop()
            .ok_or_else(|| Refusal::new("nothing_to_undo", "no request is left to take back"))?;
        self.undone.push(request);
        let state = self.history[request.before].state.clone();
        Ok(self.commit(state, self.log.clone()))
    }

    fn redo(&mut self) -> Result<Outcome, Refusal> {
        let request = self.undone.pop().ok_or_else(|| {
            Refusal::new("nothing_to_redo", "no request that was taken back is left")
        })?;
        self.done.push(request);
        let state = self.history[request.after].state.clone();
        Ok(self.commit(state, self.log.clone()))
    }

    /// A version made by anything but UNDO and REDO: it can be taken back, and
    /// it ends REDO.
    fn commit_edit(&mut self, state: State, log: Vec<Arc<Entry>>) -> Outcome {
        let before = self.history.len() - 1;
        self.done.push(DoneRequest { before, after: before + 1 });
        self.undone.clear();
        self.commit(state, log)
    }

    fn commit(&mut self, state: State, log: Vec<Arc<Entry>>) -> Outcome {
        let view_before = self.view().to_vec();
        let log_len_before = self.log.len();
        let log_len = log.len();
        self.log = log;
        self.history.push(Arc::new(Version { state, log_len }));
        self.outcome(&view_before, log_len_before, true)
    }

    fn unchanged(&self) -> Outcome {
        self.outcome(self.view(), self.log.len(), false)
    }

    fn outcome(&self, view_before: &[usize], log_len_before: usize, changed: bool) -> Outcome {
        outcome::Comparison {
            log: &self.log,
            state: self.state(),
            version: self.version(),
            view_before,
            log_len_before,
            changed,
        }
        .outcome()
    }

    fn draft(&self, now: i64) -> Draft<'_> {
        Draft::new(&self.settings, &self.history, self.log.clone(), self.state().clone(), now)
    }

    fn state(&self) -> &State {
        &self.history.last().expect("version 0 always exists").state
    }

    fn version_record(&self, version: u64) -> Result<&Version, Refusal> {
        state::find_version(&self.history, version)
    }
}

/// Reading what is there.
impl Model {
    /// The number of accepted requests so far.
    pub fn version(&self) -> u64 {
        self.history.len() as u64 - 1
    }

    /// The log indices that the model reads now, in order.
    pub fn view(&self) -> &[usize] {
        self.state().view()
    }

    /// The view at a version.
    pub fn view_at(&self, version: u64) -> Result<&[usize], Refusal> {
        Ok(self.version_record(version)?.state.view())
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
        self.state().batch_index()
    }

    /// The length of the live path.
    pub fn batches(&self) -> usize {
        self.state().path.len()
    }

    /// The marked log indices of every mark that is in use.
    pub fn marks(&self) -> &BTreeMap<String, BTreeSet<usize>> {
        &self.state().marks
    }

    /// The marks at a version.
    pub fn marks_at(&self, version: u64) -> Result<&BTreeMap<String, BTreeSet<usize>>, Refusal> {
        Ok(&self.version_record(version)?.state.marks)
    }

    /// The present tools.
    pub fn tools(&self) -> &[Tool] {
        &self.state().tools
    }

    /// The settings it was made with. Its tools are those of version 0.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The text of the present tool description; none without tools.
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

    /// A log entry's message as it came.
    pub fn message(&self, index: usize) -> &Value {
        &self.log[index].message.json
    }

    /// A log entry's text (section 3).
    pub fn text(&self, index: usize) -> &str {
        &self.log[index].message.text
    }

    /// A log entry's role.
    pub fn role(&self, index: usize) -> Role {
        self.log[index].message.role
    }

    /// A log entry's timestamp: its own, or the time of its arrival.
    pub fn timestamp(&self, index: usize) -> i64 {
        self.log[index].timestamp
    }

    /// A log entry's tokens.
    pub fn entry_tokens(&self, index: usize) -> u64 {
        self.log[index].tokens
    }

    /// The ids of a log entry's tool calls (its top-level `tool_use` parts).
    pub fn calls(&self, index: usize) -> &[String] {
        &self.log[index].message.calls
    }

    /// The ids that a log entry's tool results answer (its top-level
    /// `tool_result` parts).
    pub fn results(&self, index: usize) -> &[String] {
        &self.log[index].message.results
    }
}
