//! FIT: what must stay, and the longest run of the newest others that fits a token budget.
//!
//! The run must not start inside a tool exchange. The quick way tries the earliest start that fits,
//! asks the tree which exchanges cross it, and moves behind them; in a healthy conversation one or
//! two steps are enough. Where that does not settle it (long chains of exchanges that overlap, an id
//! that is open several times), [`Obstacles`] lists all exchanges in one walk.

use std::collections::HashMap;

use sum_tree::Keep;

use super::Scope;
use super::truncate::judge_by_role;
use crate::draft::Draft;
use crate::tool_exchange::{Edge, OpenEdges, open_entries};
use crate::view::{CountOf, Placed, TokensOf, View};
use crate::{Error, Position, Role, RoleSet};

/// Keeps what fits a token budget, in a new batch.
///
/// Pinned entries and system messages stay; of the others the longest run of the newest that fits.
/// The run never starts between a tool call and its result. Where everything fits already, nothing
/// changes and no version is made; where not even what must stay fits, the answer is
/// [`BudgetTooSmall`](Error::BudgetTooSmall).
///
/// Two things to know in an agent loop:
///
/// - A newest message that is larger than the budget does not fit either, and then no run is kept.
///   Pin what must never be lost, such as the task.
/// - A cut changes the front of the prompt, which a provider's prompt cache lives on. Cut rarely and
///   deep: once the view is over one figure, FIT it into a lower one.
///
/// ```
/// use recto_core::{Conversation, Error, Fit, Role};
///
/// /// Keeps the view below 100,000 tokens; each cut leaves room for many turns.
/// fn before_a_call(talk: Conversation, now: i64) -> Result<Conversation, Error> {
///     if talk.stats().tokens <= 100_000 {
///         return Ok(talk);
///     }
///     let fit = Fit { max_tokens: 50_000, start_on: Some(Role::User), ..Fit::default() };
///     Ok(talk.apply(fit.because("over 100,000 tokens"), now)?.0)
/// }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// How many tokens the view may have.
    pub max_tokens: u64,
    /// System messages stay.
    pub keep_system: bool,
    /// The run starts at a message of this role.
    pub start_on: Option<Role>,
}

impl Default for Fit {
    fn default() -> Self {
        Fit { max_tokens: 0, keep_system: true, start_on: None }
    }
}

impl Fit {
    /// FIT into this many tokens, keeping system messages.
    pub fn into_tokens(max_tokens: u64) -> Fit {
        Fit { max_tokens, ..Fit::default() }
    }

    pub(super) fn perform(&self, draft: &mut Draft<'_>) -> Result<(), Error> {
        if draft.state.view.tokens() <= self.max_tokens {
            draft.is_idle = true;
            return Ok(());
        }
        let pinned = draft.pinned(Scope::Visible);
        let view = {
            let budget = Budget::new(&draft.state.view, &pinned, self)?;
            let start = budget.start_of_run();
            draft.state.view.retain(
                &pinned,
                |at, sums| {
                    if at >= start { Keep::All } else { budget.judge_before(start, at, sums) }
                },
                |at, entry| at >= start || !budget.others.contains(entry.role()),
            )
        };
        draft.open_batch(view);
        Ok(())
    }
}

/// One FIT at work.
struct Budget<'a> {
    view: &'a View,
    pinned: &'a [Position],
    /// The roles of entries that stay only if they are in the run (or pinned).
    others: RoleSet,
    /// The tokens that the run may have.
    run_tokens: u64,
    start_on: RoleSet,
}

impl<'a> Budget<'a> {
    fn new(view: &'a View, pinned: &'a [Position], fit: &Fit) -> Result<Self, Error> {
        let others =
            if fit.keep_system { RoleSet::ALL.without(Role::System) } else { RoleSet::ALL };
        let mut budget = Budget { view, pinned, others, run_tokens: 0, start_on: RoleSet::ALL };
        let kept_roles = view.tokens() - view.tokens_of(others);
        let pins: u64 = pinned.iter().map(|&pin| budget.pin_tokens(pin)).sum();
        let needed = kept_roles + pins;
        if needed > fit.max_tokens {
            return Err(Error::BudgetTooSmall { needed, max_tokens: fit.max_tokens });
        }
        budget.run_tokens = fit.max_tokens - needed;
        budget.start_on = fit.start_on.map_or(RoleSet::ALL, RoleSet::from);
        Ok(budget)
    }

    fn entry(&self, at: usize) -> &'a Placed {
        self.view.0.get(at).expect("places are taken from the view")
    }

    /// What a pinned entry takes from the budget beside the roles that stay anyway.
    fn pin_tokens(&self, pin: Position) -> u64 {
        let entry = self.entry(pin.0);
        if self.others.contains(entry.role()) { entry.tokens() } else { 0 }
    }

    /// Whether an entry stays only if it is in the run.
    fn is_other(&self, at: usize, entry: &Placed) -> bool {
        self.others.contains(entry.role()) && self.pinned.binary_search(&Position(at)).is_err()
    }

    fn judge_before(&self, start: usize, at: usize, sums: &crate::view::Sums) -> Keep {
        use sum_tree::Summary;
        if at + sums.count() > start {
            return Keep::Some;
        }
        match judge_by_role(sums, self.others) {
            Keep::All => Keep::None,
            Keep::None => Keep::All,
            Keep::Some => Keep::Some,
        }
    }

    /// Where the run starts; the length of the view if there is none.
    fn start_of_run(&self) -> usize {
        let mut start = self.next_candidate(self.earliest());
        for _ in 0..16 {
            match self.behind_crossing(start) {
                Crossing::None => return start,
                Crossing::Until(behind) => start = self.next_candidate(behind),
                Crossing::Unclear => break,
            }
        }
        let obstacles = Obstacles::new(self);
        loop {
            match obstacles.behind(start) {
                None => return start,
                Some(behind) => start = self.next_candidate(behind),
            }
        }
    }

    /// The earliest place from which on all others fit.
    fn earliest(&self) -> usize {
        let dimension = TokensOf(self.others);
        let total = self.view.tokens_of(self.others);
        let mut allowed = self.run_tokens;
        // Pinned entries are paid for already: each one that the run reaches makes room again.
        let mut pins = self.pinned.iter().rev().peekable();
        loop {
            let start = match total.checked_sub(allowed) {
                None | Some(0) => return 0,
                Some(dropped) => self
                    .view
                    .0
                    .seek(dropped - 1, &dimension)
                    .map_or(self.view.len(), |found| found.position + 1),
            };
            match pins.next_if(|pin| pin.0 + 1 >= start) {
                Some(&pin) => allowed += self.pin_tokens(pin),
                None => return start,
            }
        }
    }

    /// The first place from `from` on at which a run may start; the view's length if there is none.
    fn next_candidate(&self, from: usize) -> usize {
        let roles: RoleSet =
            self.others.iter().filter(|&role| self.start_on.contains(role)).collect();
        let dimension = CountOf(roles);
        let mut passed = self.view.0.measure(..from, &dimension);
        loop {
            match self.view.0.seek(passed, &dimension) {
                None => return self.view.len(),
                Some(found) if self.pinned.binary_search(&Position(found.position)).is_err() => {
                    return found.position;
                }
                Some(_) => passed += 1,
            }
        }
    }

    /// Which tool exchanges cross this start, as far as the tree's summaries tell.
    fn behind_crossing(&self, start: usize) -> Crossing {
        let before = OpenEdges::of(self.view, ..start);
        let behind = OpenEdges::of(self.view, start..);
        let crosses = |call: &Edge| behind.count(call.partner()) > 0;
        let crossing: Vec<Edge> = before.calls().filter(crosses).collect();
        let is_plain = |&call: &Edge| before.count(call) == 1 && behind.count(call.partner()) == 1;
        if crossing.len() > MOST_CROSSING || !crossing.iter().all(is_plain) {
            return Crossing::Unclear;
        }
        let mut until = None;
        for call in crossing {
            let wanted = OpenEdges::from(call);
            let place = |open: Vec<(usize, Edge)>, sought: Edge| {
                open.into_iter().find(|&(_, edge)| edge == sought).map(|(at, _)| at)
            };
            let from = place(open_entries(self.view, ..start, &wanted), call);
            let to = place(open_entries(self.view, start.., &wanted), call.partner());
            let (Some(from), Some(to)) = (from, to) else { return Crossing::Unclear };
            if self.is_other(from, self.entry(from)) && self.is_other(to, self.entry(to)) {
                until = until.max(Some(to + 1));
            }
        }
        until.map_or(Crossing::None, Crossing::Until)
    }
}

/// How many exchanges that cross one place are looked up one by one.
const MOST_CROSSING: usize = 32;

enum Crossing {
    /// No exchange stands in the way.
    None,
    /// The run must start from here on.
    Until(usize),
    /// Many cross, or an id is open several times: all exchanges have to be looked at.
    Unclear,
}

/// All tool exchanges of a view that a run may not start inside of, as places.
struct Obstacles {
    /// From a call to its result: a run must not start behind the first and up to the second.
    /// Sorted, and joined where they overlap.
    exchanges: Vec<(usize, usize)>,
}

impl Obstacles {
    fn new(budget: &Budget<'_>) -> Obstacles {
        let mut calls: HashMap<Edge, Vec<usize>> = HashMap::new();
        let mut exchanges = Vec::new();
        for (at, entry) in budget.view.0.iter().enumerate() {
            for &edge in entry.edges.list() {
                if edge.is_call() {
                    calls.entry(edge).or_default().push(at);
                } else if let Some(from) = calls.get_mut(&edge.partner()).and_then(Vec::pop)
                    && budget.is_other(from, budget.entry(from))
                    && budget.is_other(at, entry)
                {
                    exchanges.push((from, at));
                }
            }
        }
        exchanges.sort_unstable();
        exchanges.dedup_by(|next, joined| {
            // A run may start at the result's successor, and at a call itself.
            let overlaps = next.0 < joined.1;
            if overlaps {
                joined.1 = joined.1.max(next.1);
            }
            overlaps
        });
        Obstacles { exchanges }
    }

    /// Where the exchange ends that `start` is inside of.
    fn behind(&self, start: usize) -> Option<usize> {
        let next = self.exchanges.partition_point(|&(_, to)| to < start);
        let &(from, to) = self.exchanges.get(next)?;
        (from < start).then_some(to + 1)
    }
}
