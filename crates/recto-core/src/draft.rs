//! A request at work: a copy of the conversation's state on which operations are performed, and
//! which is thrown away if one of them fails.

use std::sync::Arc;

use crate::history::{History, Record};
use crate::live_path::{BatchHome, KnownBatches, Leaving, LeftBatch, Opening};
use crate::message_log::{MessageLog, Meter};
use crate::operation::{Scope, Step};
use crate::state::{Homes, State};
use crate::tools::{Descriptions, Headings};
use crate::view::Placed;
use crate::{
    BatchIndex, Conversation, Error, LogIndex, Message, Position, Timestamp, ToolSet, Version, View,
};

pub(crate) struct Draft<'a> {
    pub(crate) meter: &'a Meter,
    pub(crate) headings: &'a Headings,
    pub(crate) history: &'a History,
    pub(crate) known_batches: &'a KnownBatches,
    pub(crate) log: MessageLog,
    pub(crate) state: State,
    pub(crate) tools: Option<Arc<ToolSet>>,
    /// The version that set the tools; none if this request does.
    tools_home: Option<Version>,
    pub(crate) now: Timestamp,
    /// How long the log was before the operation at work: the batch that it leaves is left then.
    pub(crate) log_len_before: usize,
    /// The operation at work; none while tools are set.
    pub(crate) step: Option<&'a Step>,
    /// Why it was asked for, once somebody wanted to know.
    description: Option<Arc<str>>,
    /// Whether the operation at work found nothing to do.
    pub(crate) is_idle: bool,
    /// Whether an operation of the request did anything.
    pub(crate) did_anything: bool,
    /// Whether a message that the request adds has tool calls that are not read.
    pub(crate) adds_foreign: bool,
    /// The version that the state came from: the newest, or one that was rolled back to.
    pub(crate) origin: &'a Record,
    /// The batch that was rolled back to last.
    pub(crate) returned_to: Option<Arc<LeftBatch>>,
    opened_batches: u32,
}

impl<'a> Draft<'a> {
    pub(crate) fn new(conversation: &'a Conversation, now: Timestamp) -> Draft<'a> {
        Draft {
            meter: &conversation.setup.meter,
            headings: &conversation.setup.headings,
            history: &conversation.history,
            known_batches: &conversation.setup.known_batches,
            log: conversation.log.clone(),
            state: conversation.state().clone(),
            tools: conversation.history.current().tools.clone(),
            tools_home: Some(conversation.history.current().tools_home),
            now,
            log_len_before: conversation.log.len(),
            step: None,
            description: None,
            is_idle: false,
            did_anything: false,
            adds_foreign: false,
            origin: conversation.history.current(),
            returned_to: None,
            opened_batches: 0,
        }
    }

    /// Goes on to the next operation.
    pub(crate) fn perform(&mut self, step: &'a Step) -> Result<(), Error> {
        self.step = Some(step);
        self.description = None;
        self.log_len_before = self.log.len();
        self.is_idle = false;
        step.perform(self)?;
        self.did_anything |= !self.is_idle;
        Ok(())
    }

    /// Why the operation at work was asked for.
    pub(crate) fn description(&mut self) -> Arc<str> {
        let made = || self.step.map_or_else(|| "SET_TOOLS".into(), Step::reason);
        self.description.get_or_insert_with(made).clone()
    }

    /// Appends messages to the log.
    pub(crate) fn append_to_log(&mut self, messages: &[Message]) -> Result<(), Error> {
        self.adds_foreign |= messages.iter().any(Message::is_foreign);
        self.log.append(messages, self.now, self.meter)
    }

    /// Appends messages to the log and returns their entries as a view holds them.
    pub(crate) fn add_to_log(&mut self, messages: &[Message]) -> Result<Vec<Placed>, Error> {
        let start = self.log.len();
        self.append_to_log(messages)?;
        Ok(self.log.as_view().0.iter_range(start..).cloned().collect())
    }

    pub(crate) fn add_one_to_log(&mut self, message: Message) -> Result<Placed, Error> {
        let added = self.add_to_log(&[message])?.pop();
        Ok(added.expect("one message makes one entry"))
    }

    /// Leaves the current batch, and opens the next one with this view.
    pub(crate) fn open_batch(&mut self, view: View) {
        let return_to = self.state.path.current.opening.return_to;
        self.open_batch_returning_to(return_to, view);
    }

    /// Leaves the current batch for a temporary one with this view: BATCH_END returns to it.
    pub(crate) fn open_temporary_batch(&mut self, view: View) {
        self.open_batch_returning_to(Some(self.state.path.current_number()), view);
    }

    fn open_batch_returning_to(&mut self, return_to: Option<BatchIndex>, view: View) {
        let end = LogIndex(self.log.len() as u32);
        let opening = Opening {
            timestamp: self.now,
            description: self.description(),
            boundary: view.0.summary().least().unwrap_or(end),
            return_to,
        };
        let leaving = Leaving {
            view_home: self.view_home().into(),
            view: std::mem::replace(&mut self.state.view, view),
            log_len: self.log_len_before,
        };
        let home = BatchHome { version: self.version(), ordinal: self.opened_batches };
        self.opened_batches += 1;
        self.state.path.open(leaving, opening, home);
    }

    /// The version that is being made.
    fn version(&self) -> Version {
        Version(self.history.current_version().0 + 1)
    }

    /// The version that made the view, if it was not made just now.
    fn view_home(&self) -> Option<Version> {
        let view = &self.state.view;
        let origin = self.history.state_of(self.origin);
        if view.is_same_as(&origin.view) {
            return Some(origin.homes.view);
        }
        let left = self.returned_to.as_ref().filter(|left| view.is_same_as(&left.view))?;
        left.view_home.target()
    }

    /// The versions that made what the state consists of.
    pub(crate) fn homes(&self) -> Homes {
        let origin = self.history.state_of(self.origin);
        let has_same_marks = self.state.marks.address() == origin.marks.address();
        let this = self.version();
        Homes {
            view: self.view_home().unwrap_or(this),
            marks: if has_same_marks { origin.homes.marks } else { this },
        }
    }

    /// The version that set the tools.
    pub(crate) fn tools_home(&self) -> Version {
        self.tools_home.unwrap_or(self.version())
    }

    /// Sets other tools.
    pub(crate) fn set_tools(&mut self, tools: Option<Arc<ToolSet>>) {
        self.tools = tools;
        self.tools_home = None;
    }

    /// Brings the state and the tools of a version back.
    pub(crate) fn restore(&mut self, target: &'a Record) {
        self.state = self.history.state_of(target).clone();
        self.origin = target;
        self.tools = target.tools.clone();
        self.tools_home = Some(target.tools_home);
    }

    /// What tells tool descriptions from other messages.
    pub(crate) fn descriptions(&self) -> Descriptions<'_> {
        Descriptions { headings: self.headings, tools: self.tools.as_deref(), log: &self.log }
    }

    /// The places in a view of the stale descriptions that are not pinned.
    pub(crate) fn stale_places(&self, view: &View) -> Result<Vec<usize>, Error> {
        let descriptions = self.descriptions();
        if descriptions.tools.is_none() {
            return Ok(Vec::new());
        }
        descriptions.places(view, |index, message| {
            !self.is_pinned(index) && descriptions.is_stale(index, message)
        })
    }

    /// The present description, as it stands in a view: the newest log entry that is one, else a
    /// new one. None without tools.
    pub(crate) fn present_description(&mut self) -> Result<Option<Placed>, Error> {
        let Some(tools) = self.tools.clone() else { return Ok(None) };
        if let Some(index) = self.descriptions().newest_present()? {
            return Ok(Some(self.log.placed(index).clone()));
        }
        let entry = self.add_one_to_log(tools.description())?;
        self.log.note_written_by_engine();
        Ok(Some(entry))
    }

    /// A view without the descriptions at these places. If it does not show the present one, that
    /// takes the place of the first.
    pub(crate) fn replace_descriptions(
        &mut self,
        view: &View,
        places: &[usize],
    ) -> Result<View, Error> {
        let mut mended = view.clone();
        mended.hide(places);
        if let Some(&first) = places.first()
            && !self.descriptions().is_shown_in(&mended)?
            && let Some(entry) = self.present_description()?
        {
            mended.0.splice(first..first, [entry]);
        }
        Ok(mended)
    }

    /// What an operation chooses from.
    pub(crate) fn base(&self, scope: Scope) -> View {
        match scope {
            Scope::Visible => self.state.view.clone(),
            Scope::All => self.log.as_view().clone(),
        }
    }

    /// Where the visible pinned entries stand in what an operation chooses from, in order.
    pub(crate) fn pinned(&self, scope: Scope) -> Vec<Position> {
        let view = &self.state.view;
        match scope {
            Scope::Visible => self.pinned_in(view),
            Scope::All => self.pins_in(view).map(|(_, pin)| Position(pin.as_usize())).collect(),
        }
    }

    /// Where pinned entries stand in a view, in order.
    pub(crate) fn pinned_in(&self, view: &View) -> Vec<Position> {
        let mut places: Vec<Position> = self.pins_in(view).map(|(at, _)| Position(at)).collect();
        places.sort_unstable();
        places
    }

    /// The pinned entries of a view in log order, with their places.
    fn pins_in<'b>(&'b self, view: &'b View) -> impl Iterator<Item = (usize, LogIndex)> + 'b {
        let mut locator = view.locator();
        let pins = self.state.marks.pins().into_iter().flat_map(|pins| pins.iter());
        pins.filter_map(move |pin| Some((locator.place_of(pin)?, pin)))
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
        let mut is_visible = |index: &LogIndex| locator.place_of(*index).is_some();
        let blocked = if indices.len() < pins.len() {
            indices.iter().copied().filter(|&index| pins.contains(index)).find(&mut is_visible)
        } else {
            pins.iter().filter(|index| indices.binary_search(index).is_ok()).find(&mut is_visible)
        };
        blocked.map_or(Ok(()), |index| Err(Error::Pinned { index, field: "indices" }))
    }
}
