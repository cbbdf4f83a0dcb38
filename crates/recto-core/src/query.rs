//! Queries: entries by role, text, mark, time and range, now or at any version.
//!
//! Filters apply first, then [`Pick`]. A query by role alone visits no other entries: it costs
//! O(results · log n).

use std::cell::RefCell;
use std::ops::Range;

use serde::Serialize;

use crate::matcher::TextMatcher;
use crate::message_log::{check_loaded, is_loaded};
use crate::operation::Scope;
use crate::view::{CountOf, ViewEntry};
use crate::{
    BatchIndex, Conversation, Error, LogIndex, Marks, MessageLog, Position, Role, RoleSet,
    Timestamp, Version, View,
};

/// A query. The default selects everything that is visible now. Fields may be added: end a literal with
/// `..Query::default()` or with a constructor.
///
/// ```
/// use recto_core::{Approx, Conversation, Message, Query, Role, Settings};
///
/// let start = Conversation::new(Settings::counting_with(Approx), 0)?;
/// let messages = [Message::user("a"), Message::assistant("b"), Message::user("c")];
/// let (conversation, _) = start.append(messages, 1)?;
///
/// let query = Query { roles: Some(Role::User.into()), ..Query::last(1) };
/// let hits = conversation.query(&query)?;
/// assert_eq!(hits[0].index.0, 2);
/// assert_eq!(conversation.query(&Query::containing("b"))?[0].index.0, 1);
/// # Ok::<(), recto_core::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    /// The visible entries, or the whole log.
    pub scope: Scope,
    /// Only these roles.
    pub roles: Option<RoleSet>,
    /// Only entries whose text contains at least one of these.
    pub contains: Option<Vec<String>>,
    /// Only entries whose text contains none of these.
    pub excludes: Option<Vec<String>>,
    /// Only entries with this mark.
    pub mark: Option<String>,
    /// Only entries from this time on.
    pub from: Option<Timestamp>,
    /// Only entries before this time.
    pub to: Option<Timestamp>,
    /// Selects from the entries that pass the filters.
    pub pick: Pick,
    /// The state to query.
    pub at: QueryAt,
}

/// Selects from the entries that pass the filters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Pick {
    /// All of them.
    #[default]
    All,
    /// The first n.
    First(usize),
    /// The last n.
    Last(usize),
    /// A range, without its end.
    Range(Range<usize>),
}

/// The state that a query reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum QueryAt {
    /// The present state.
    #[default]
    Now,
    /// The last view of a batch of the live path, with the present log and marks.
    Batch(BatchIndex),
    /// A version: its view, its marks and its log.
    Version(Version),
}

/// An entry that a query found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Hit {
    /// Its index in the log.
    pub index: LogIndex,
    /// Its position in the queried view; `None` if it is hidden there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<Position>,
    /// Its tokens. Not part of the JSON.
    #[serde(skip)]
    pub tokens: u64,
}

impl Query {
    /// The last `count` visible entries.
    pub fn last(count: usize) -> Query {
        Query { pick: Pick::Last(count), ..Query::default() }
    }

    /// The visible entries whose text contains `text`.
    pub fn containing(text: impl Into<String>) -> Query {
        Query { contains: Some(vec![text.into()]), ..Query::default() }
    }

    /// The visible entries with this mark.
    pub fn marked(mark: impl Into<String>) -> Query {
        Query { mark: Some(mark.into()), ..Query::default() }
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        let has_empty = |words: &Option<Vec<String>>| {
            words
                .as_ref()
                .is_some_and(|words| words.is_empty() || words.iter().any(String::is_empty))
        };
        if has_empty(&self.contains) || has_empty(&self.excludes) {
            return Err(Error::operation(
                "contains and excludes must be texts or lists of texts, none of them empty",
            ));
        }
        if self.mark.as_deref() == Some("") {
            return Err(Error::operation_field("mark", "mark must have at least 1 character"));
        }
        if self.roles.is_some_and(RoleSet::is_empty) {
            return Err(Error::operation_field("roles", "roles is empty; name at least one role"));
        }
        match self.pick {
            Pick::Range(Range { start, end }) if start > end => {
                Err(Error::InvalidRange { start, end })
            }
            _ => Ok(()),
        }
    }

    fn is_in_time_range(&self, timestamp: Timestamp) -> bool {
        self.from.is_none_or(|from| from <= timestamp) && self.to.is_none_or(|to| timestamp < to)
    }

    /// Whether the filters read single entries.
    fn reads_entries(&self) -> bool {
        let Query { contains, excludes, mark, from, to, .. } = self;
        contains.is_some() || excludes.is_some() || mark.is_some() || from.is_some() || to.is_some()
    }
}

impl Conversation {
    /// The entries that a query finds, in order.
    pub fn query(&self, query: &Query) -> Result<Vec<Hit>, Error> {
        query.check()?;
        let state = self.state();
        if query.scope == Scope::All {
            self.log.check_metadata()?;
        }
        let queried = match query.at {
            QueryAt::Now => QueriedState {
                view: state.view.clone(),
                marks: &state.marks,
                log: self.log.clone(),
            },
            QueryAt::Batch(batch) => QueriedState {
                view: self.batch_view(batch)?,
                marks: &state.marks,
                log: self.log.clone(),
            },
            QueryAt::Version(version) => {
                let record = self.history.record(version, "version")?;
                let log = self.log.prefix(record.log_len as usize);
                let state = self.history.state_of(record);
                QueriedState { view: state.view.clone(), marks: &state.marks, log }
            }
        };
        queried.hits(query)
    }

    fn query_visible(&self, roles: Option<RoleSet>, pick: Pick) -> Result<Vec<Hit>, Error> {
        self.query(&Query { roles, pick, ..Query::default() })
    }

    /// The newest `count` visible entries.
    pub fn recent(&self, count: usize) -> Result<Vec<Hit>, Error> {
        self.query_visible(None, Pick::Last(count))
    }

    /// The newest `count` visible entries with one of these roles.
    pub fn recent_by_role(
        &self,
        roles: impl Into<RoleSet>,
        count: usize,
    ) -> Result<Vec<Hit>, Error> {
        self.query_visible(Some(roles.into()), Pick::Last(count))
    }

    /// The visible entries at these positions.
    pub fn range(&self, range: Range<usize>) -> Result<Vec<Hit>, Error> {
        self.query_visible(None, Pick::Range(range))
    }

    /// All visible entries with one of these roles.
    pub fn by_role(&self, roles: impl Into<RoleSet>) -> Result<Vec<Hit>, Error> {
        self.query_visible(Some(roles.into()), Pick::All)
    }

    /// A range of the visible entries with one of these roles.
    pub fn range_by_role(
        &self,
        roles: impl Into<RoleSet>,
        range: Range<usize>,
    ) -> Result<Vec<Hit>, Error> {
        self.query_visible(Some(roles.into()), Pick::Range(range))
    }

    /// Number of visible entries with one of these roles. O(1).
    pub fn count_by_role(&self, roles: impl Into<RoleSet>) -> usize {
        self.view().count_of(roles)
    }

    /// The visible entries whose text contains `text`.
    pub fn search(&self, text: &str) -> Result<Vec<Hit>, Error> {
        self.query(&Query::containing(text))
    }

    /// The visible entries in a range of time, without its end.
    pub fn by_time_range(&self, range: Range<Timestamp>) -> Result<Vec<Hit>, Error> {
        self.query(&Query { from: Some(range.start), to: Some(range.end), ..Query::default() })
    }

    /// The visible entries of a role with this mark.
    pub fn marked_by_role(&self, role: Role, mark: &str) -> Result<Vec<Hit>, Error> {
        self.query(&Query { roles: Some(role.into()), ..Query::marked(mark) })
    }
}

/// The state that a query reads.
struct QueriedState<'a> {
    view: View,
    marks: &'a Marks,
    log: MessageLog,
}

impl QueriedState<'_> {
    fn hits(&self, query: &Query) -> Result<Vec<Hit>, Error> {
        let base = match query.scope {
            Scope::Visible => &self.view,
            Scope::All => self.log.as_view(),
        };
        let positions = if query.reads_entries() {
            self.matching_positions(query, base)?
        } else {
            positions_by_role(query, base)
        };
        let mut locator = self.view.locator();
        let hit = |at: usize| {
            let view_entry = base.0.get(at).expect("positions are taken from the base");
            let (index, tokens) = (view_entry.index(), view_entry.tokens());
            let position = match query.scope {
                Scope::Visible => Some(at),
                Scope::All => locator.position_of(index),
            };
            Hit { index, position: position.map(Position), tokens }
        };
        Ok(positions.into_iter().map(hit).collect())
    }

    /// The positions of the picked entries, for filters that read single entries.
    fn matching_positions(&self, query: &Query, base: &View) -> Result<Vec<usize>, Error> {
        let matcher = TextMatcher::new(query.contains.as_deref(), query.excludes.as_deref())?;
        let roles = query.roles.unwrap_or(RoleSet::ALL);
        let reader = RefCell::new(self.log.reader());
        let absent = RefCell::new(Vec::new());
        let passes = |view_entry: &ViewEntry| {
            roles.contains(view_entry.role()) && {
                let entry = reader.borrow_mut().entry(view_entry.index());
                query.is_in_time_range(entry.timestamp)
                    && (matcher.passes_all()
                        || is_loaded(entry, view_entry.index(), &mut absent.borrow_mut())
                            && matcher.passes(&entry.message))
            }
        };
        let positions = self.passing_positions(query, base, passes);
        check_loaded(absent.into_inner())?;
        Ok(positions)
    }

    fn passing_positions(
        &self,
        query: &Query,
        base: &View,
        passes: impl Fn(&ViewEntry) -> bool,
    ) -> Vec<usize> {
        let mut locator = base.locator();
        let position = |index: LogIndex| match query.scope {
            Scope::All => (index.as_usize() < base.len()).then_some(index.as_usize()),
            Scope::Visible => locator.position_of(index),
        };
        if let Some(mark) = &query.mark {
            let mut positions: Vec<usize> = self.marks.indices(mark).filter_map(position).collect();
            positions.sort_unstable();
            let matching = positions.into_iter().filter(|&at| base.0.get(at).is_some_and(&passes));
            return pick(&query.pick, matching);
        }
        let mut numbered = base.0.iter().enumerate();
        if let Pick::Last(count) = query.pick {
            // Reads from the end and stops after `count` matches.
            let matching = numbered.rev().filter(|(_, entry)| passes(entry));
            let mut positions: Vec<usize> = matching.take(count).map(|(at, _)| at).collect();
            positions.reverse();
            return positions;
        }
        let matching = numbered.by_ref().filter(|(_, entry)| passes(entry)).map(|(at, _)| at);
        pick(&query.pick, matching)
    }
}

/// Selects from positions, which are in order.
fn pick(pick: &Pick, positions: impl Iterator<Item = usize>) -> Vec<usize> {
    match pick {
        Pick::All => positions.collect(),
        Pick::First(count) => positions.take(*count).collect(),
        Pick::Range(range) => positions.skip(range.start).take(range.len()).collect(),
        Pick::Last(count) => {
            let mut all: Vec<usize> = positions.collect();
            all.split_off(all.len().saturating_sub(*count))
        }
    }
}

/// The positions of the picked entries with the roles of the query, without visiting other entries.
fn positions_by_role(query: &Query, base: &View) -> Vec<usize> {
    let roles = query.roles.unwrap_or(RoleSet::ALL);
    let count = base.count_of(roles);
    let picked = match &query.pick {
        Pick::All => 0..count,
        Pick::First(wanted) => 0..count.min(*wanted),
        Pick::Last(wanted) => count.saturating_sub(*wanted)..count,
        Pick::Range(range) => range.start.min(count)..range.end.min(count),
    };
    if roles == RoleSet::ALL {
        return picked.collect();
    }
    let sought = |nth: usize| base.0.seek(nth as u64, &CountOf(roles)).map(|found| found.position);
    picked.filter_map(sought).collect()
}
