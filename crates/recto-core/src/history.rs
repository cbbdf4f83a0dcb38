//! Every version: the state it left behind, and which request made it, when and why.
//!
//! UNDO and REDO move along the versions. Each version remembers two others: `undo`, whose state
//! comes back when the newest request that still counts is taken back, and `redo`, whose state comes
//! back when that is regretted. So taking back several requests jumps over the undos between them:
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

use crate::operation::{Operation, OperationKind, Redo, Rollback, Step, Undo, describe_append};
use crate::state::State;
use crate::{Error, Missing, Timestamp, ToolSet, Version, View};

/// A version. Conversations keep many of them, so it is small.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) held: Held,
    pub(crate) timestamp: Timestamp,
    pub(crate) log_len: u32,
    pub(crate) undo: Jump,
    pub(crate) redo: Jump,
    pub(crate) kind: OperationKind,
    pub(crate) story: Story,
    /// The tools, if the conversation has any, and the version that set them.
    pub(crate) tools: Option<Arc<ToolSet>>,
    pub(crate) tools_home: Version,
}

/// Where the state of a version is.
#[derive(Clone, Debug)]
pub(crate) enum Held {
    Own(State),
    /// It is that of an earlier version, which holds its own. So bringing a version back touches
    /// nothing but its record, however far back that is.
    Of(Version),
}

/// A version to go to, if there is one: an `Option` that takes no room of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Jump(u32);

impl Jump {
    pub(crate) const NONE: Jump = Jump(u32::MAX);

    pub(crate) fn target(self) -> Option<Version> {
        (self != Jump::NONE).then_some(Version(self.0))
    }
}

impl From<Version> for Jump {
    fn from(version: Version) -> Self {
        Jump(version.0)
    }
}

impl From<Option<Version>> for Jump {
    fn from(version: Option<Version>) -> Self {
        version.map_or(Jump::NONE, Jump::from)
    }
}

/// What a request was for. The most frequent requests are described when somebody reads it: that
/// costs neither time nor memory before.
#[derive(Clone, Debug)]
pub(crate) enum Story {
    /// The rest of the record says it: an APPEND, UNDO or REDO, or a ROLLBACK to the batch that is
    /// current since.
    Plain,
    /// A ROLLBACK to this version.
    ToVersion(Version),
    /// All else, and what the caller gave a reason for.
    Told(Arc<Told>),
}

/// What a request was for, in words.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) description: Arc<str>,
    /// The operations of a request that has several, in order; none if they are not at hand.
    pub(crate) steps: Option<Vec<StepRecord>>,
}

/// One operation of a request that has several.
#[derive(Clone, Debug)]
pub(crate) struct StepRecord {
    pub(crate) kind: OperationKind,
    pub(crate) description: Arc<str>,
    /// The view that it left behind.
    pub(crate) view: View,
}

impl Story {
    pub(crate) fn told(description: Arc<str>) -> Story {
        Story::Told(Arc::new(Told { description, steps: Some(Vec::new()) }))
    }

    /// What a single operation was for; `describe` says it in words where they have to be kept.
    pub(crate) fn of(step: &Step, describe: impl FnOnce() -> Arc<str>) -> Story {
        match (&step.description, &step.operation) {
            (Some(_), _) => Story::told(describe()),
            (None, Operation::Append(_) | Operation::Undo(_) | Operation::Redo(_)) => Story::Plain,
            (None, Operation::Rollback(Rollback::ToBatch(_))) => Story::Plain,
            (None, &Operation::Rollback(Rollback::ToVersion(to))) => Story::ToVersion(to),
            (None, _) => Story::told(describe()),
        }
    }

    /// What several operations in one request were for. What neighbours share is said once.
    pub(crate) fn of_list(steps: Vec<StepRecord>) -> Story {
        let mut all: Vec<&str> = steps.iter().map(|step| &*step.description).collect();
        all.dedup();
        Story::Told(Arc::new(Told { description: all.join("; ").into(), steps: Some(steps) }))
    }
}

impl Record {
    /// Whether nothing was told about the request.
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self.story, Story::Plain)
    }

    /// The operations of a request that has several, in order.
    pub(crate) fn steps(&self) -> &[StepRecord] {
        match &self.story {
            Story::Told(told) => told.steps.as_deref().unwrap_or_default(),
            Story::Plain | Story::ToVersion(_) => &[],
        }
    }

    /// How a later version holds the state of this one, whose number is given.
    pub(crate) fn held_by(&self, version: Version) -> Held {
        Held::Of(match self.held {
            Held::Own(_) => version,
            Held::Of(owner) => owner,
        })
    }

    /// Whether the operations of a request are at hand.
    fn has_steps(&self) -> bool {
        !matches!(&self.story, Story::Told(told) if told.steps.is_none())
    }
}

/// A place for a version. Of a conversation that a store opened, most are empty until somebody asks.
#[derive(Clone, Debug)]
struct Slot(Option<Record>);

/// Number of slots. Bit 63: a slot has no state of its own. Bit 62: a slot may have tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally(u64);

impl Tally {
    const SOME_OWN_NONE: u64 = 1 << 63;
    const SOME_HAVE_TOOLS: u64 = 1 << 62;
    const FLAGS: u64 = Self::SOME_OWN_NONE | Self::SOME_HAVE_TOOLS;

    fn are_all_owners(self) -> bool {
        self.0 & Self::SOME_OWN_NONE == 0
    }

    fn has_no_tools(self) -> bool {
        self.0 & Self::SOME_HAVE_TOOLS == 0
    }
}

impl Summary for Tally {
    fn add(&mut self, later: &Self) {
        let flags = (self.0 | later.0) & Self::FLAGS;
        *self = Tally(flags | (self.count() + later.count()) as u64);
    }

    fn count(&self) -> usize {
        (self.0 & !Self::FLAGS) as usize
    }
}

impl Item for Slot {
    type Summary = Tally;
    const LEAF: usize = 16;
    const FAN: usize = 24;

    fn add_to(&self, tally: &mut Tally) {
        let flags = match &self.0 {
            None => Tally::FLAGS,
            Some(record) => {
                let owns_none = !matches!(record.held, Held::Own(_));
                (if owns_none { Tally::SOME_OWN_NONE } else { 0 })
                    | (if record.tools.is_some() { Tally::SOME_HAVE_TOOLS } else { 0 })
            }
        };
        tally.add(&Tally(flags | 1));
    }
}

/// All versions of a conversation, in order; there is always version 0. Cloning it costs O(1).
#[derive(Clone, Debug)]
pub(crate) struct History {
    records: SumTree<Slot>,
}

impl History {
    pub(crate) fn new(first: Record) -> History {
        Self::opened_at(Version(0), first)
    }

    /// A history of which only the newest version is at hand.
    pub(crate) fn opened_at(version: Version, record: Record) -> History {
        let mut records = SumTree::repeat(Slot(None), version.as_usize());
        records.push(Slot(Some(record)));
        History { records }
    }

    pub(crate) fn current_version(&self) -> Version {
        Version(self.records.len() as u32 - 1)
    }

    pub(crate) fn current(&self) -> &Record {
        self.get(self.current_version()).expect("the newest version is always at hand")
    }

    /// The state at the newest version.
    pub(crate) fn state(&self) -> &State {
        self.state_of(self.current())
    }

    /// The state at the version that a record of this history is about.
    pub(crate) fn state_of<'a>(&'a self, record: &'a Record) -> &'a State {
        let mut record = record;
        loop {
            match &record.held {
                Held::Own(state) => return state,
                &Held::Of(version) => {
                    record = self.get(version).expect("what was brought back is at hand");
                }
            }
        }
    }

    /// How a new version holds the state of an earlier one, which the field `field` asks for, and
    /// its tools with the version that set them (without tools: the version itself).
    pub(crate) fn held_again(
        &self,
        version: Version,
        field: &'static str,
    ) -> Result<(Held, Option<Arc<ToolSet>>, Version), Error> {
        // Going far back is quick because the record itself need not be read, as a rule.
        let around = self.records.summary_around(version.as_usize());
        if around.is_some_and(|tally| tally.are_all_owners() && tally.has_no_tools()) {
            return Ok((Held::Of(version), None, version));
        }
        let record = self.record(version, field)?;
        Ok((record.held_by(version), record.tools.clone(), record.tools_home))
    }

    /// A version, if it is at hand.
    pub(crate) fn get(&self, version: Version) -> Option<&Record> {
        self.records.get(version.as_usize())?.0.as_ref()
    }

    /// A version, which the field `field` asks for.
    pub(crate) fn record(&self, version: Version, field: &'static str) -> Result<&Record, Error> {
        let current = self.current_version();
        match self.records.get(version.as_usize()) {
            Some(Slot(Some(record))) => Ok(record),
            Some(Slot(None)) => Err(Error::NotLoaded(Missing::Version(version))),
            None => Err(Error::VersionNotFound { version, current, field }),
        }
    }

    /// All versions in order; those that are not at hand are left out.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (Version, &Record)> {
        let numbered = self.records.iter().enumerate();
        numbered.filter_map(|(number, slot)| Some((Version(number as u32), slot.0.as_ref()?)))
    }

    /// Tests that every version is at hand, with all of its steps.
    pub(crate) fn check_whole(&self) -> Result<(), Error> {
        match self.records.iter().all(|slot| slot.0.as_ref().is_some_and(Record::has_steps)) {
            true => Ok(()),
            false => Err(Error::NotLoaded(Missing::Versions)),
        }
    }

    /// Puts a version, which exists, at hand.
    pub(crate) fn fill(&mut self, version: Version, record: Record) {
        let place = version.as_usize();
        self.records.splice(place..=place, [Slot(Some(record))]);
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

    /// The history as it was at a version, which exists.
    pub(crate) fn up_to(&self, version: Version) -> History {
        History { records: self.records.slice(..=version.as_usize()) }
    }

    /// Why a version was made.
    pub(crate) fn description(&self, version: Version, record: &Record) -> String {
        match (&record.story, record.kind) {
            (Story::Told(told), _) => told.description.to_string(),
            (&Story::ToVersion(to), _) => Operation::from(Rollback::ToVersion(to)).describe(),
            (Story::Plain, OperationKind::Undo) => Operation::from(Undo).describe(),
            (Story::Plain, OperationKind::Redo) => Operation::from(Redo).describe(),
            (Story::Plain, OperationKind::Rollback) => {
                let batch = self.state_of(record).path.current_number();
                Operation::from(Rollback::ToBatch(batch)).describe()
            }
            (Story::Plain, _) => {
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

    /// Versions 1 to `versions`, each with a message more.
    fn appended(versions: usize) -> Conversation {
        let mut now = Conversation::new(Settings::counting_with(Approx), 0).unwrap();
        for number in 0..versions {
            let messages = vec![Message::user(&format!("message {number}"))];
            now = now.apply(Append { messages }, 0).unwrap().0;
        }
        now
    }

    fn owner(conversation: &Conversation) -> Option<Version> {
        match conversation.history.current().held {
            Held::Own(_) => None,
            Held::Of(owner) => Some(owner),
        }
    }

    #[test]
    fn what_was_brought_back_again_and_again_is_one_step_away() {
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
    fn a_version_that_is_not_at_hand_is_not_brought_back_unread() {
        let now = appended(3);
        let newest = now.history.current().clone();
        let history = History::opened_at(Version(1_000), newest);
        for version in [0, 500, 999].map(Version) {
            let missing = history.held_again(version, "targetVersion").unwrap_err();
            assert!(matches!(missing, Error::NotLoaded(Missing::Version(at)) if at == version));
        }
        let unknown = history.held_again(Version(1_001), "targetVersion").unwrap_err();
        assert!(matches!(unknown, Error::VersionNotFound { .. }));
        assert!(history.held_again(Version(1_000), "targetVersion").is_ok());
    }
}
