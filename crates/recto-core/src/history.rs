//! The history: every version with its state, and the request that made it, with its time and reason.
//!
//! UNDO and REDO follow two references of each version. `undo` is the version whose state UNDO restores,
//! `redo` the version whose state REDO restores. Undoing several requests therefore skips the UNDOs
//! between them:
//!
//! ```text
//!   version    0    1    2    3    4      5      6
//!   request         A    B    C    UNDO   UNDO   REDO
//!   state of   0    1    2    3    2      1      2
//!   undo       –    0    1    2    1      0      1
//!   redo       –    –    –    –    3      4      3
//! ```

use std::sync::Arc;

use sum_tree::{Item, SumTree, Summary};

use crate::number::OptVersion;
use crate::operation::{Operation, OperationKind, Redo, Rollback, Step, Undo, describe_append};
use crate::state::State;
use crate::{Error, Missing, Note, Timestamp, ToolSet, Version, View};

/// The record of a version. A conversation keeps many of them, so it is small.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) state_ref: StateRef,
    pub(crate) timestamp: Timestamp,
    pub(crate) log_len: u32,
    pub(crate) undo: OptVersion,
    pub(crate) redo: OptVersion,
    pub(crate) kind: OperationKind,
    pub(crate) reason: Reason,
    /// The tools, if the conversation has any.
    pub(crate) tools: Option<Arc<ToolSet>>,
    /// The version that set the tools.
    pub(crate) tools_origin: Version,
    /// The note that the writer stored with the version.
    pub(crate) note: Option<Note>,
}

/// The state of a version, or a reference to it.
#[derive(Clone, Debug)]
pub(crate) enum StateRef {
    Owned(State),
    /// The state of an earlier version, whose record owns it. Restoring a version therefore writes
    /// only a record, however old the version is.
    SameAs(Version),
}

/// The reason of a request. To save time and memory, the reason of the most frequent requests is computed
/// only when it is read.
#[derive(Clone, Debug)]
pub(crate) enum Reason {
    /// The reason follows from the rest of the record: an APPEND, UNDO or REDO, or a ROLLBACK to the
    /// batch that is current afterwards.
    Implicit,
    /// A ROLLBACK to this version.
    RollbackTo(Version),
    /// Any other request, and a request for which the caller gave a reason.
    Text(Arc<ReasonText>),
}

/// The reason of a request as text.
#[derive(Clone, Debug)]
pub(crate) struct ReasonText {
    pub(crate) text: Arc<str>,
    /// The operations of a request that has several, in order; `None` if they are not loaded.
    pub(crate) steps: Option<Vec<StepRecord>>,
}

/// One operation of a request that has several.
#[derive(Clone, Debug)]
pub(crate) struct StepRecord {
    pub(crate) kind: OperationKind,
    pub(crate) reason: Arc<str>,
    /// The view after the operation.
    pub(crate) view: View,
}

impl Reason {
    pub(crate) fn text(text: Arc<str>) -> Reason {
        Reason::Text(Arc::new(ReasonText { text, steps: Some(Vec::new()) }))
    }

    /// The reason of a single operation. `describe` is called only if the text must be stored.
    pub(crate) fn of(step: &Step, describe: impl FnOnce() -> Arc<str>) -> Reason {
        match (&step.reason, &step.operation) {
            (Some(_), _) => Reason::text(describe()),
            (None, Operation::Append(_) | Operation::Undo(_) | Operation::Redo(_)) => {
                Reason::Implicit
            }
            (None, Operation::Rollback(Rollback::ToBatch(_))) => Reason::Implicit,
            (None, &Operation::Rollback(Rollback::ToVersion(to))) => Reason::RollbackTo(to),
            (None, _) => Reason::text(describe()),
        }
    }

    /// The reason of a request with several operations. Consecutive equal reasons are listed once.
    pub(crate) fn of_list(steps: Vec<StepRecord>) -> Reason {
        let mut all: Vec<&str> = steps.iter().map(|step| &*step.reason).collect();
        all.dedup();
        Reason::Text(Arc::new(ReasonText { text: all.join("; ").into(), steps: Some(steps) }))
    }
}

impl Record {
    /// Whether the reason follows from the rest of the record.
    pub(crate) fn has_implicit_reason(&self) -> bool {
        matches!(self.reason, Reason::Implicit)
    }

    /// The operations of a request that has several, in order.
    pub(crate) fn steps(&self) -> &[StepRecord] {
        match &self.reason {
            Reason::Text(text) => text.steps.as_deref().unwrap_or_default(),
            Reason::Implicit | Reason::RollbackTo(_) => &[],
        }
    }

    /// A reference to the state of this record, for a later version. `version` is that of this record.
    pub(crate) fn state_ref_for(&self, version: Version) -> StateRef {
        StateRef::SameAs(match self.state_ref {
            StateRef::Owned(_) => version,
            StateRef::SameAs(owner) => owner,
        })
    }

    /// Whether the operations of the request are loaded.
    pub(crate) fn has_steps(&self) -> bool {
        !matches!(&self.reason, Reason::Text(text) if text.steps.is_none())
    }
}

/// The slot of a version; empty if the version is not loaded.
#[derive(Clone, Debug)]
struct Slot(Option<Record>);

/// The summary of a range of slots. Bits 0 to 61: their number. Bit 63: a version does not own its state, or
/// is not loaded. Bit 62: a version has tools, or is not loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct SlotSummary(u64);

impl SlotSummary {
    const SOME_NOT_OWNERS: u64 = 1 << 63;
    const SOME_HAVE_TOOLS: u64 = 1 << 62;
    const FLAGS: u64 = Self::SOME_NOT_OWNERS | Self::SOME_HAVE_TOOLS;

    fn all_own_their_state(self) -> bool {
        self.0 & Self::SOME_NOT_OWNERS == 0
    }

    fn has_no_tools(self) -> bool {
        self.0 & Self::SOME_HAVE_TOOLS == 0
    }
}

impl Summary for SlotSummary {
    fn add(&mut self, later: &Self) {
        let flags = (self.0 | later.0) & Self::FLAGS;
        *self = SlotSummary(flags | (self.count() + later.count()) as u64);
    }

    fn count(&self) -> usize {
        (self.0 & !Self::FLAGS) as usize
    }
}

impl Item for Slot {
    type Summary = SlotSummary;
    const LEAF: usize = 16;
    const FAN: usize = 24;

    fn add_to(&self, summary: &mut SlotSummary) {
        let flags = match &self.0 {
            None => SlotSummary::FLAGS,
            Some(record) => {
                let is_not_owner = !matches!(record.state_ref, StateRef::Owned(_));
                (if is_not_owner { SlotSummary::SOME_NOT_OWNERS } else { 0 })
                    | (if record.tools.is_some() { SlotSummary::SOME_HAVE_TOOLS } else { 0 })
            }
        };
        summary.add(&SlotSummary(flags | 1));
    }
}

/// All versions of a conversation, in order. Version 0 always exists. A clone costs O(1).
#[derive(Clone, Debug)]
pub(crate) struct History {
    records: SumTree<Slot>,
}

impl History {
    pub(crate) fn new(first: Record) -> History {
        Self::with_newest_only(Version(0), first)
    }

    /// A history of which only the newest version is loaded.
    pub(crate) fn with_newest_only(version: Version, record: Record) -> History {
        let mut records = SumTree::repeat(Slot(None), version.as_usize());
        records.push(Slot(Some(record)));
        History { records }
    }

    pub(crate) fn current_version(&self) -> Version {
        Version(self.records.len() as u32 - 1)
    }

    pub(crate) fn current(&self) -> &Record {
        self.get(self.current_version()).expect("the newest version is always loaded")
    }

    /// The state at the newest version.
    pub(crate) fn state(&self) -> &State {
        self.state_of(self.current())
    }

    /// The state of the version of a record of this history.
    pub(crate) fn state_of<'a>(&'a self, record: &'a Record) -> &'a State {
        let mut record = record;
        loop {
            match &record.state_ref {
                StateRef::Owned(state) => return state,
                &StateRef::SameAs(version) => {
                    record = self.get(version).expect("the owner of a restored state is loaded");
                }
            }
        }
    }

    /// A reference to the state of an earlier version, its tools, and the version that set them. Without
    /// tools, the last value has no meaning. `field` is the field of the request that names the version,
    /// for errors.
    pub(crate) fn reuse_state(
        &self,
        version: Version,
        field: &'static str,
    ) -> Result<(StateRef, Option<Arc<ToolSet>>, Version), Error> {
        // Usually the summaries of the tree suffice, and the record itself is not read.
        let around = self.records.summary_around(version.as_usize());
        if around.is_some_and(|summary| summary.all_own_their_state() && summary.has_no_tools()) {
            return Ok((StateRef::SameAs(version), None, version));
        }
        let record = self.record(version, field)?;
        Ok((record.state_ref_for(version), record.tools.clone(), record.tools_origin))
    }

    /// The record of a version, if it is loaded.
    pub(crate) fn get(&self, version: Version) -> Option<&Record> {
        self.records.get(version.as_usize())?.0.as_ref()
    }

    /// The record of a version that the field `field` of a request names.
    pub(crate) fn record(&self, version: Version, field: &'static str) -> Result<&Record, Error> {
        let current = self.current_version();
        match self.records.get(version.as_usize()) {
            Some(Slot(Some(record))) => Ok(record),
            Some(Slot(None)) => Err(Error::NotLoaded(Missing::Version(version))),
            None => Err(Error::VersionNotFound { version, current, field }),
        }
    }

    /// All loaded versions in order. Call [`check_all_loaded`](Self::check_all_loaded) first if all versions
    /// are needed.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (Version, &Record)> {
        let numbered = self.records.iter().enumerate();
        numbered.filter_map(|(number, slot)| Some((Version(number as u32), slot.0.as_ref()?)))
    }

    /// Tests that every version is loaded, with all of its steps.
    pub(crate) fn check_all_loaded(&self) -> Result<(), Error> {
        match self.records.iter().all(|slot| slot.0.as_ref().is_some_and(Record::has_steps)) {
            true => Ok(()),
            false => Err(Error::NotLoaded(Missing::Versions)),
        }
    }

    /// Sets the record of an existing version.
    pub(crate) fn load(&mut self, version: Version, record: Record) {
        let at = version.as_usize();
        self.records.splice(at..=at, [Slot(Some(record))]);
    }

    pub(crate) fn push(&mut self, record: Record) -> Result<(), Error> {
        let size = self.records.len() + 1;
        let limit = u32::MAX as usize;
        if size > limit {
            return Err(Error::too_large("the number of versions", size, limit));
        }
        self.records.push(Slot(Some(record)));
        Ok(())
    }

    /// The history up to a version, which must exist.
    pub(crate) fn up_to(&self, version: Version) -> History {
        History { records: self.records.slice(..=version.as_usize()) }
    }

    /// The reason of the request that made a version.
    pub(crate) fn reason(&self, version: Version, record: &Record) -> String {
        match (&record.reason, record.kind) {
            (Reason::Text(reason), _) => reason.text.to_string(),
            (&Reason::RollbackTo(to), _) => Operation::from(Rollback::ToVersion(to)).describe(),
            (Reason::Implicit, OperationKind::Undo) => Operation::from(Undo).describe(),
            (Reason::Implicit, OperationKind::Redo) => Operation::from(Redo).describe(),
            (Reason::Implicit, OperationKind::Rollback) => {
                let batch = self.state_of(record).path.current_number();
                Operation::from(Rollback::ToBatch(batch)).describe()
            }
            (Reason::Implicit, _) => {
                let before = version.0.checked_sub(1).and_then(|before| self.get(Version(before)));
                let added = record.log_len - before.map_or(0, |before| before.log_len);
                describe_append(added as usize)
            }
        }
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        self.records.check().map_err(|fault| format!("history: {fault}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Append, Approx, Conversation, Message, Settings};

    /// A conversation with versions 1 to `versions`, each of which appended one message.
    fn appended(versions: usize) -> Conversation {
        let mut now = Conversation::new(Settings::counting_with(Approx), 0).unwrap();
        for number in 0..versions {
            let messages = vec![Message::user(&format!("message {number}"))];
            now = now.apply(Append { messages }, 0).unwrap().0;
        }
        now
    }

    fn owner(conversation: &Conversation) -> Option<Version> {
        match conversation.history.current().state_ref {
            StateRef::Owned(_) => None,
            StateRef::SameAs(owner) => Some(owner),
        }
    }

    #[test]
    fn a_state_that_is_restored_repeatedly_is_one_reference_away() {
        let mut now = appended(100);
        assert_eq!(owner(&now), None);
        now = now.apply(Rollback::ToVersion(Version(7)), 0).unwrap().0;
        for _ in 0..200 {
            let newest = now.version();
            now = now.apply(Rollback::ToVersion(newest), 0).unwrap().0;
            assert_eq!(owner(&now), Some(Version(7)));
            assert_eq!(now.view().len(), 7);
        }
        let (undone, _) = now.apply(Undo, 0).unwrap();
        assert_eq!(owner(&undone), Some(Version(7)));
        let (redone, _) = undone.apply(Redo, 0).unwrap();
        assert_eq!(owner(&redone), Some(Version(7)));
    }

    #[test]
    fn a_version_that_is_not_loaded_is_not_restored() {
        let now = appended(3);
        let newest = now.history.current().clone();
        let history = History::with_newest_only(Version(1_000), newest);
        for version in [0, 500, 999].map(Version) {
            let missing = history.reuse_state(version, "targetVersion").unwrap_err();
            assert!(matches!(missing, Error::NotLoaded(Missing::Version(at)) if at == version));
        }
        let unknown = history.reuse_state(Version(1_001), "targetVersion").unwrap_err();
        assert!(matches!(unknown, Error::VersionNotFound { .. }));
        assert!(history.reuse_state(Version(1_000), "targetVersion").is_ok());
    }
}
