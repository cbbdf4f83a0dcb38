//! FIT: keeps pinned entries, system messages, and the longest run of the newest other entries that fits
//! a token budget.
//!
//! The run must not start inside a tool exchange. The fast path tries the earliest start that fits, finds
//! the exchanges that cross it from the summaries of the tree, and moves the start after them. Usually one
//! or two steps suffice. If they do not (long chains of overlapping exchanges, an id that is open several
//! times), [`ToolExchanges`] lists all exchanges in one pass.

use std::collections::HashMap;

use sum_tree::Keep;

use super::Scope;
use super::truncate::keep_by_role;
use crate::draft::Draft;
use crate::edges::Edge;
use crate::tool_exchange::{OpenEdges, open_entries};
use crate::view::{CountOf, TokensOf, View, ViewEntry};
use crate::{Error, Position, Role, RoleSet};

/// Keeps the newest entries that fit a token budget, in a new batch.
///
/// Pinned entries and system messages stay, and the longest run of the newest other entries that fits.
/// The run never starts between a tool call and its result, unless one of them stays in any case. If the
/// view fits already, the operation does nothing; alone in its request, it makes no version. If no run
/// fits, the error is [`BudgetTooSmall`](Error::BudgetTooSmall) with the smallest budget that works.
///
/// Notes for an agent loop:
///
/// - A newest message that is larger than the budget does not fit. Replace it with a shorter one, or
///   raise the budget.
/// - A cut changes the start of the prompt, so a provider's prompt cache is lost. Cut rarely and
///   deeply: when the view exceeds one number of tokens, FIT it into a lower one.
///
/// ```
/// use recto_core::{Conversation, Error, Fit, Role};
///
/// /// Keeps the view below 100,000 tokens. Each cut leaves room for many turns.
/// fn before_a_call(conversation: Conversation, now: i64) -> Result<Conversation, Error> {
///     if conversation.stats().tokens <= 100_000 {
///         return Ok(conversation);
///     }
///     let fit = Fit { start_on: Some(Role::User), ..Fit::within(50_000) };
///     Ok(conversation.apply(fit.reason("over 100,000 tokens"), now)?.0)
/// }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// Maximum tokens of the view.
    pub max_tokens: u64,
    /// Whether system messages stay. Default: true.
    pub keep_system: bool,
    /// The role of the first message of the run. Default: any.
    pub start_on: Option<Role>,
}

impl Default for Fit {
    fn default() -> Self {
        Fit { max_tokens: 0, keep_system: true, start_on: None }
    }
}

impl Fit {
    /// A FIT with this budget that keeps system messages.
    pub fn within(max_tokens: u64) -> Fit {
        Fit { max_tokens, ..Fit::default() }
    }

    pub(super) fn perform(&self, draft: &mut Draft<'_>) -> Result<(), Error> {
        if draft.state.view.tokens() <= self.max_tokens {
            draft.is_idle = true;
            return Ok(());
        }
        let pinned = draft.pinned(Scope::Visible);
        let view = {
            let mut budget = Budget::new(&draft.state.view, &pinned, self);
            let room = self.max_tokens.checked_sub(budget.kept_tokens);
            let start = match room {
                Some(room) => budget.start_of_run_within(room),
                None => draft.state.view.len(),
            };
            if start == draft.state.view.len() {
                let (needed, max_tokens) = (budget.needed_tokens(), self.max_tokens);
                return Err(Error::BudgetTooSmall { needed, max_tokens });
            }
            draft.state.view.retain(
                &pinned,
                |at, sums| {
                    if at >= start { Keep::All } else { budget.keep_before(start, at, sums) }
                },
                |at, entry| at >= start || !budget.others.contains(entry.role()),
            )
        };
        draft.open_batch(view);
        Ok(())
    }
}

/// The entries of a view, split into those that always stay and those that stay only in the run.
struct Budget<'a> {
    view: &'a View,
    pinned: &'a [Position],
    /// The roles of entries that stay only if they are in the run (or pinned).
    others: RoleSet,
    /// The tokens of the entries that always stay.
    kept_tokens: u64,
    /// The tokens that the run may have.
    run_tokens: u64,
    start_on: RoleSet,
}

impl<'a> Budget<'a> {
    fn new(view: &'a View, pinned: &'a [Position], fit: &Fit) -> Self {
        let others =
            if fit.keep_system { RoleSet::ALL.without(Role::System) } else { RoleSet::ALL };
        let start_on = fit.start_on.map_or(RoleSet::ALL, RoleSet::from);
        let mut budget = Budget { view, pinned, others, kept_tokens: 0, run_tokens: 0, start_on };
        budget.kept_tokens = view.tokens() - view.tokens_of(others) + budget.tokens_of_pins(0);
        budget
    }

    /// The tokens of the pinned entries from a position on, without those whose role always stays.
    fn tokens_of_pins(&self, from: usize) -> u64 {
        let pins = self.pinned.iter().filter(|pin| pin.0 >= from);
        pins.map(|&pin| self.pin_tokens(pin)).sum()
    }

    fn entry(&self, at: usize) -> &'a ViewEntry {
        self.view.0.get(at).expect("positions are taken from the view")
    }

    /// The tokens of a pinned entry; 0 if its role always stays.
    fn pin_tokens(&self, pin: Position) -> u64 {
        let entry = self.entry(pin.0);
        if self.others.contains(entry.role()) { entry.tokens() } else { 0 }
    }

    /// Whether an entry stays only if it is in the run.
    fn is_other(&self, at: usize, entry: &ViewEntry) -> bool {
        self.others.contains(entry.role()) && self.pinned.binary_search(&Position(at)).is_err()
    }

    fn keep_before(&self, start: usize, at: usize, sums: &crate::view::Sums) -> Keep {
        use sum_tree::Summary;
        if at + sums.count() > start {
            return Keep::Some;
        }
        match keep_by_role(sums, self.others) {
            Keep::All => Keep::None,
            Keep::None => Keep::All,
            Keep::Some => Keep::Some,
        }
    }

    /// The smallest budget with which this FIT succeeds: the tokens of the entries that stay and of the
    /// shortest allowed run, or of the whole view if no run is allowed.
    fn needed_tokens(&self) -> u64 {
        let exchanges = ToolExchanges::new(self);
        let mut start = self.last_candidate(self.view.len());
        while let Some(at) = start {
            match exchanges.containing(at) {
                Some((call, _)) => start = self.last_candidate(call + 1),
                None => break,
            }
        }
        let Some(start) = start else { return self.view.tokens() };
        let run = self.view.0.measure(start.., &TokensOf(self.others)) - self.tokens_of_pins(start);
        self.kept_tokens + run
    }

    /// The start of the longest run of at most `run_tokens` tokens; the length of the view if there is
    /// none.
    fn start_of_run_within(&mut self, run_tokens: u64) -> usize {
        self.run_tokens = run_tokens;
        let mut start = self.next_candidate(self.earliest_start());
        for _ in 0..16 {
            match self.crossing(start) {
                Crossing::None => return start,
                Crossing::StartFrom(earliest) => start = self.next_candidate(earliest),
                Crossing::Unclear => break,
            }
        }
        let exchanges = ToolExchanges::new(self);
        loop {
            match exchanges.containing(start) {
                None => return start,
                Some((_, result)) => start = self.next_candidate(result + 1),
            }
        }
    }

    /// The earliest start of a run that fits, without regard to roles and exchanges.
    fn earliest_start(&self) -> usize {
        let dimension = TokensOf(self.others);
        let total = self.view.tokens_of(self.others);
        let mut allowed = self.run_tokens;
        // Pinned entries are counted already, so each one that the run includes adds to the budget.
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

    /// Counts the entries with a role that a run may start with.
    fn candidates(&self) -> CountOf {
        CountOf(self.others.iter().filter(|&role| self.start_on.contains(role)).collect())
    }

    /// The last position before `end` at which a run may start, without regard to exchanges.
    fn last_candidate(&self, end: usize) -> Option<usize> {
        let dimension = self.candidates();
        let mut passed = self.view.0.measure(..end, &dimension);
        loop {
            passed = passed.checked_sub(1)?;
            let found = self.view.0.seek(passed, &dimension)?.position;
            if self.pinned.binary_search(&Position(found)).is_err() {
                return Some(found);
            }
        }
    }

    /// The first position from `from` on at which a run may start, without regard to exchanges; the length
    /// of the view if there is none.
    fn next_candidate(&self, from: usize) -> usize {
        let dimension = self.candidates();
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

    /// The tool exchanges that cross this start, from the summaries of the tree.
    fn crossing(&self, start: usize) -> Crossing {
        let before = OpenEdges::of(self.view, ..start);
        let after = OpenEdges::of(self.view, start..);
        let crosses = |call: &Edge| after.count(call.partner()) > 0;
        let crossing: Vec<Edge> = before.calls().filter(crosses).collect();
        let is_single = |&call: &Edge| before.count(call) == 1 && after.count(call.partner()) == 1;
        if crossing.len() > MAX_CROSSING || !crossing.iter().all(is_single) {
            return Crossing::Unclear;
        }
        let mut earliest = None;
        for call in crossing {
            let wanted = OpenEdges::from(call);
            let position_of = |open: Vec<(usize, Edge)>, sought: Edge| {
                open.into_iter().find(|&(_, edge)| edge == sought).map(|(at, _)| at)
            };
            let from = position_of(open_entries(self.view, ..start, &wanted), call);
            let to = position_of(open_entries(self.view, start.., &wanted), call.partner());
            let (Some(from), Some(to)) = (from, to) else { return Crossing::Unclear };
            if self.is_other(from, self.entry(from)) && self.is_other(to, self.entry(to)) {
                earliest = earliest.max(Some(to + 1));
            }
        }
        earliest.map_or(Crossing::None, Crossing::StartFrom)
    }
}

/// Maximum number of exchanges across one position that are located one by one.
const MAX_CROSSING: usize = 32;

/// The tool exchanges that cross the start of a run.
enum Crossing {
    /// No exchange crosses.
    None,
    /// The run must start at this position or later.
    StartFrom(usize),
    /// More than [`MAX_CROSSING`] cross, or an id is open several times. All exchanges must be examined.
    Unclear,
}

/// The tool exchanges of a view inside which a run must not start.
struct ToolExchanges {
    /// The positions of a call and of its result. A run may start at the call and after the result, but
    /// not in between or at the result. Sorted; overlapping exchanges are joined.
    exchanges: Vec<(usize, usize)>,
}

impl ToolExchanges {
    fn new(budget: &Budget<'_>) -> ToolExchanges {
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
            // A run may start at a call, and after a result.
            let overlaps = next.0 < joined.1;
            if overlaps {
                joined.1 = joined.1.max(next.1);
            }
            overlaps
        });
        ToolExchanges { exchanges }
    }

    /// The first call and the last result of the joined exchanges inside which `start` lies.
    fn containing(&self, start: usize) -> Option<(usize, usize)> {
        let next = self.exchanges.partition_point(|&(_, to)| to < start);
        self.exchanges.get(next).copied().filter(|&(from, _)| from < start)
    }
}
