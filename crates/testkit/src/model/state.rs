//! The state of a version: the live path with its views, the marks and the tools.
//! The current batch is the last of the path; its view is the view.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::refusal::Refusal;
use super::settings::Tool;

/// The state at a version, the length of the log, and the requests that UNDO and REDO can revert and repeat.
pub(super) struct Version {
    pub(super) state: State,
    pub(super) log_len: usize,
    /// Time of the request.
    pub(super) timestamp: i64,
    /// Requests that are not undone, oldest first.
    pub(super) done: Vec<DoneRequest>,
    /// Undone requests that REDO may restore, newest last.
    pub(super) undone: Vec<DoneRequest>,
}

/// A request, identified by the versions before and after it.
#[derive(Clone, Copy)]
pub(super) struct DoneRequest {
    pub(super) before: usize,
    pub(super) after: usize,
}

/// The state of a conversation, without its log.
#[derive(Clone)]
pub(super) struct State {
    /// The batches from 0 to the current one; never empty.
    pub(super) path: Vec<Arc<Batch>>,
    /// The log indices of every mark in use.
    pub(super) marks: BTreeMap<String, BTreeSet<usize>>,
    pub(super) tools: Vec<Tool>,
}

/// A batch.
#[derive(Clone)]
pub(super) struct Batch {
    /// The last view of the batch, or the present one of the current batch.
    pub(super) view: Vec<usize>,
    /// The smallest index in its view when it was opened, or the length of the log
    /// at that time if the view was empty; 0 for batch 0.
    pub(super) boundary: usize,
    pub(super) opened_at: i64,
    /// The version that opened it.
    pub(super) opened_by: usize,
    /// The description that the caller gave with the operation that opened the batch.
    pub(super) description: Option<String>,
    /// Whether BATCH_START opened it.
    pub(super) is_started: bool,
    /// Length of the log when the batch was left; `None` for the current batch.
    pub(super) left_at_log_len: Option<usize>,
}

impl State {
    pub(super) fn new(view: Vec<usize>, tools: Vec<Tool>, now: i64) -> State {
        let batch_0 = Batch {
            view,
            boundary: 0,
            opened_at: now,
            opened_by: 0,
            description: None,
            is_started: false,
            left_at_log_len: None,
        };
        State { path: vec![Arc::new(batch_0)], marks: BTreeMap::new(), tools }
    }

    pub(super) fn batch_index(&self) -> usize {
        self.path.len() - 1
    }

    pub(super) fn view(&self) -> &[usize] {
        &self.path.last().expect("batch 0 always exists").view
    }

    /// A batch of the live path.
    pub(super) fn batch(&self, index: usize) -> Result<&Batch, Refusal> {
        self.path.get(index).map(Arc::as_ref).ok_or_else(|| {
            let message = format!("batch {index} is not among 0 to {}", self.batch_index());
            Refusal::new("batch_not_found", message)
        })
    }

    /// The batch that was current at the newest BATCH_START of the live path.
    pub(super) fn batch_before_newest_start(&self) -> Result<usize, Refusal> {
        let started = self.path.iter().rposition(|batch| batch.is_started);
        started.map(|index| index - 1).ok_or_else(|| {
            Refusal::new("batch_not_found", "no batch of the live path was opened by BATCH_START")
        })
    }

    pub(super) fn current_mut(&mut self) -> &mut Batch {
        Arc::make_mut(self.path.last_mut().expect("batch 0 always exists"))
    }

    /// Leaves the current batch and makes the next one current.
    pub(super) fn open_batch(&mut self, next: Batch, left_at_log_len: usize) {
        self.current_mut().left_at_log_len = Some(left_at_log_len);
        self.path.push(Arc::new(next));
    }

    /// Makes a batch of the live path current again, with its last view, and removes the batches above it
    /// from the path.
    pub(super) fn return_to_batch(&mut self, index: usize) -> Result<(), Refusal> {
        self.batch(index)?;
        self.path.truncate(index + 1);
        self.current_mut().left_at_log_len = None;
        Ok(())
    }

    pub(super) fn is_visible(&self, index: usize) -> bool {
        self.view().contains(&index)
    }

    pub(super) fn is_pinned(&self, index: usize) -> bool {
        self.marks.get("pinned").is_some_and(|pinned| pinned.contains(&index))
    }
}

/// The record of a version.
pub(super) fn find_version(history: &[Arc<Version>], version: u64) -> Result<&Version, Refusal> {
    let found = usize::try_from(version).ok().and_then(|version| history.get(version));
    found.map(Arc::as_ref).ok_or_else(|| {
        let message = format!("version {version} is not among 0 to {}", history.len() - 1);
        Refusal::new("version_not_found", message)
    })
}
