//! The draft of a new version: a copy of the conversation's state on which the operations of a request
//! are performed. If one of them fails, the draft is dropped and nothing has changed.

use std::sync::Arc;

use crate::history::{History, Record};
use crate::live_path::{Leaving, LeftBatch, LoadedBatches, Opening};
use crate::message_log::{MessageLog, Meter};
use crate::missing::BatchOrigin;
use crate::operation::{Scope, Step};
use crate::state::{Origins, State};
use crate::tools::{Descriptions, Headings};
use crate::view::ViewEntry;
use crate::{
    BatchIndex, Conversation, Error, LogIndex, Message, Position, Timestamp, ToolSet, Version, View,
};

pub(crate) struct Draft<'a> {
    pub(crate) meter: &'a Meter,
    pub(crate) headings: &'a Headings,
    pub(crate) history: &'a History,
    pub(crate) loaded_batches: &'a LoadedBatches,
    pub(crate) log: MessageLog,
    pub(crate) state: State,
    pub(crate) tools: Option<Arc<ToolSet>>,
    /// The version that set the tools; `None` if this request sets them.
    tools_origin: Option<Version>,
    pub(crate) now: Timestamp,
    /// The length of the log before the present operation. It is stored with a batch that the operation
    /// leaves.
    pub(crate) log_len_before: usize,
    /// The present operation; `None` while tools are set.
    pub(crate) step: Option<&'a Step>,
    /// The reason of the present operation, computed when it is first needed.
    reason: Option<Arc<str>>,
    /// Whether the present operation did nothing.
    pub(crate) is_idle: bool,
    /// Whether an operation of the request has done anything.
    pub(crate) did_anything: bool,
    /// Whether the request adds a message with tool calls in a field of another format.
    pub(crate) adds_foreign: bool,
    /// The version that the state is based on: the newest, or the target of a ROLLBACK.
    pub(crate) based_on: &'a Record,
    /// The batch to which the last ROLLBACK to a batch or BATCH_END of the request returned.
    pub(crate) returned_to: Option<Arc<LeftBatch>>,
    opened_batches: u32,
}

impl<'a> Draft<'a> {
    pub(crate) fn new(conversation: &'a Conversation, now: Timestamp) -> Draft<'a> {
        Draft {
            meter: &conversation.shared.meter,
            headings: &conversation.shared.headings,
            history: &conversation.history,
            loaded_batches: &conversation.shared.loaded_batches,
            log: conversation.log.clone(),
            state: conversation.state().clone(),
            tools: conversation.history.current().tools.clone(),
            tools_origin: Some(conversation.history.current().tools_origin),
            now,
            log_len_before: conversation.log.len(),
            step: None,
            reason: None,
            is_idle: false,
            did_anything: false,
            adds_foreign: false,
            based_on: conversation.history.current(),
            returned_to: None,
            opened_batches: 0,
        }
    }

    /// Performs the next operation.
    pub(crate) fn perform(&mut self, step: &'a Step) -> Result<(), Error> {
        self.step = Some(step);
        self.reason = None;
        self.log_len_before = self.log.len();
        self.is_idle = false;
        step.perform(self)?;
        self.did_anything |= !self.is_idle;
        Ok(())
    }

    /// The reason of the present operation.
    pub(crate) fn reason(&mut self) -> Arc<str> {
        let text = || self.step.map_or_else(|| "SET_TOOLS".into(), Step::reason_text);
        self.reason.get_or_insert_with(text).clone()
    }

    /// Appends messages to the log.
    pub(crate) fn append_to_log(&mut self, messages: &[Message]) -> Result<(), Error> {
        self.adds_foreign |= messages.iter().any(Message::is_foreign);
        self.log.append(messages, self.now, self.meter)
    }

    /// Appends messages to the log and returns their entries for a view.
    pub(crate) fn add_to_log(&mut self, messages: &[Message]) -> Result<Vec<ViewEntry>, Error> {
        let start = self.log.len();
        self.append_to_log(messages)?;
        Ok(self.log.as_view().0.iter_range(start..).cloned().collect())
    }

    pub(crate) fn add_one_to_log(&mut self, message: Message) -> Result<ViewEntry, Error> {
        let added = self.add_to_log(&[message])?.pop();
        Ok(added.expect("one message makes one entry"))
    }

    /// Opens the next batch with this view.
    pub(crate) fn open_batch(&mut self, view: View) {
        let return_to = self.state.path.current.opening.return_to;
        self.open_batch_returning_to(return_to, view);
    }

    /// Opens the next batch with this view. A BATCH_END without a target returns to the present batch.
    pub(crate) fn open_temporary_batch(&mut self, view: View) {
        self.open_batch_returning_to(Some(self.state.path.current_number()), view);
    }

    fn open_batch_returning_to(&mut self, return_to: Option<BatchIndex>, view: View) {
        let end = LogIndex(self.log.len() as u32);
        let opening = Opening {
            timestamp: self.now,
            reason: self.reason(),
            boundary: view.0.summary().min_index().unwrap_or(end),
            return_to,
        };
        let leaving = Leaving {
            view_origin: self.view_origin().into(),
            view: std::mem::replace(&mut self.state.view, view),
            log_len: self.log_len_before,
        };
        let origin = BatchOrigin { version: self.version(), ordinal: self.opened_batches };
        self.opened_batches += 1;
        self.state.path.open(leaving, opening, origin);
    }

    /// The version that is being made.
    fn version(&self) -> Version {
        Version(self.history.current_version().0 + 1)
    }

    /// The version that introduced the view; `None` if this request did.
    fn view_origin(&self) -> Option<Version> {
        let view = &self.state.view;
        let based_on = self.history.state_of(self.based_on);
        if view.is_same_as(&based_on.view) {
            return Some(based_on.origins.view);
        }
        let left = self.returned_to.as_ref().filter(|left| view.is_same_as(&left.view))?;
        left.view_origin.get()
    }

    /// The versions that introduced the view and the marks.
    pub(crate) fn origins(&self) -> Origins {
        let based_on = self.history.state_of(self.based_on);
        let has_same_marks = self.state.marks.address() == based_on.marks.address();
        let this = self.version();
        Origins {
            view: self.view_origin().unwrap_or(this),
            marks: if has_same_marks { based_on.origins.marks } else { this },
        }
    }

    /// The version that set the tools.
    pub(crate) fn tools_origin(&self) -> Version {
        self.tools_origin.unwrap_or(self.version())
    }

    /// Sets other tools.
    pub(crate) fn set_tools(&mut self, tools: Option<Arc<ToolSet>>) {
        self.tools = tools;
        self.tools_origin = None;
    }

    /// Restores the state and the tools of a version.
    pub(crate) fn restore(&mut self, target: &'a Record) {
        self.state = self.history.state_of(target).clone();
        self.based_on = target;
        self.tools = target.tools.clone();
        self.tools_origin = Some(target.tools_origin);
    }

    /// A recogniser of tool descriptions.
    pub(crate) fn descriptions(&self) -> Descriptions<'_> {
        Descriptions { headings: self.headings, tools: self.tools.as_deref(), log: &self.log }
    }

    /// The positions in a view of the stale descriptions that are not pinned.
    pub(crate) fn stale_positions(&self, view: &View) -> Result<Vec<usize>, Error> {
        let descriptions = self.descriptions();
        if descriptions.tools.is_none() {
            return Ok(Vec::new());
        }
        descriptions.positions(view, |index, message| {
            !self.is_pinned(index) && descriptions.is_stale(index, message)
        })
    }

    /// The entry of the present description: the newest log entry that lists the present tools, or else
    /// a new entry. `None` without tools.
    pub(crate) fn present_description(&mut self) -> Result<Option<ViewEntry>, Error> {
        let Some(tools) = self.tools.clone() else { return Ok(None) };
        if let Some(index) = self.descriptions().newest_present()? {
            return Ok(Some(self.log.view_entry(index).clone()));
        }
        let entry = self.add_one_to_log(tools.description())?;
        self.log.note_written_by_engine();
        Ok(Some(entry))
    }

    /// A view without the descriptions at these positions. If it does not show the present description,
    /// the present description is inserted at the first of the positions.
    pub(crate) fn replace_descriptions(
        &mut self,
        view: &View,
        positions: &[usize],
    ) -> Result<View, Error> {
        let mut view = view.clone();
        view.hide(positions);
        if let Some(&first) = positions.first()
            && !self.descriptions().is_shown_in(&view)?
            && let Some(entry) = self.present_description()?
        {
            view.0.splice(first..first, [entry]);
        }
        Ok(view)
    }

    /// The entries from which an operation with this scope selects.
    pub(crate) fn base(&self, scope: Scope) -> View {
        match scope {
            Scope::Visible => self.state.view.clone(),
            Scope::All => self.log.as_view().clone(),
        }
    }

    /// The positions of the visible pinned entries in [`base`](Self::base), in order.
    pub(crate) fn pinned(&self, scope: Scope) -> Vec<Position> {
        let view = &self.state.view;
        match scope {
            Scope::Visible => self.pinned_in(view),
            Scope::All => self.pins_in(view).map(|(_, pin)| Position(pin.as_usize())).collect(),
        }
    }

    /// The positions of pinned entries in a view, in order.
    pub(crate) fn pinned_in(&self, view: &View) -> Vec<Position> {
        let mut positions: Vec<Position> = self.pins_in(view).map(|(at, _)| Position(at)).collect();
        positions.sort_unstable();
        positions
    }

    /// The pinned entries of a view in log order, with their positions.
    fn pins_in<'b>(&'b self, view: &'b View) -> impl Iterator<Item = (usize, LogIndex)> + 'b {
        let mut locator = view.locator();
        let pins = self.state.marks.pins().into_iter().flat_map(|pins| pins.iter());
        pins.filter_map(move |pin| Some((locator.position_of(pin)?, pin)))
    }

    /// Tests that all of `indices` (sorted) are entries of the log.
    pub(crate) fn check_exist(&self, indices: &[LogIndex]) -> Result<(), Error> {
        indices.last().map_or(Ok(()), |&last| self.log.check_index(last))
    }

    pub(crate) fn is_pinned(&self, index: LogIndex) -> bool {
        self.state.marks.is_pinned(index)
    }

    /// Tests that none of `indices` (sorted) is visible and pinned.
    pub(crate) fn check_none_pinned(&self, indices: &[LogIndex]) -> Result<(), Error> {
        let Some(pins) = self.state.marks.pins() else { return Ok(()) };
        let mut locator = self.state.view.locator();
        let mut is_visible = |index: &LogIndex| locator.position_of(*index).is_some();
        let blocked = if indices.len() < pins.len() {
            indices.iter().copied().filter(|&index| pins.contains(index)).find(&mut is_visible)
        } else {
            pins.iter().filter(|index| indices.binary_search(index).is_ok()).find(&mut is_visible)
        };
        blocked.map_or(Ok(()), |index| Err(Error::Pinned { index, field: "indices" }))
    }
}
