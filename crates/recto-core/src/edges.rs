//! Edges: the tool calls in a range of a view whose result is outside the range, and the tool results whose
//! call is outside it.
//!
//! Calls and results with the same id are paired like brackets: in a view, a result belongs to the
//! nearest call before it that has the same id and no result yet. A range of the view is summarised by
//! its *edges*: results whose call is before the range, and calls whose result may be after it. Summing
//! two neighbouring ranges pairs the calls of the first with the results of the second.
//!
//! The engine identifies an id by its 63-bit hash.

use triomphe::ThinArc;

/// A call without its result, or a result without its call, in a range of the view.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Edge(u64);

impl Edge {
    pub(crate) fn call(id: u64) -> Edge {
        Edge(id | 1)
    }

    pub(crate) fn result(id: u64) -> Edge {
        Edge(id & !1)
    }

    pub(crate) fn is_call(self) -> bool {
        self.0 & 1 == 1
    }

    /// The result of this call, or the call of this result.
    pub(crate) fn partner(self) -> Edge {
        Edge(self.0 ^ 1)
    }
}

/// The edges of a range, as a list of bounded length.
///
/// The results need calls before the range, the calls need results after it. If the list
/// has overflowed ([`Edges::has_overflowed`]), a reader visits the parts of the range instead.
#[derive(Clone, Default)]
pub(crate) struct Edges(Option<ThinArc<(), Edge>>);

/// Maximum length of a list. Longer lists would make edits slow and nodes large; shorter ones would
/// overflow in a turn with many parallel calls.
const MAX_EDGES: usize = 32;

impl Edges {
    /// The edges of a single message, without a limit.
    pub(crate) fn of_message(mut calls: Vec<Edge>, mut results: Vec<Edge>) -> Edges {
        calls.sort_unstable();
        calls.dedup();
        results.sort_unstable();
        results.dedup();
        let answered = |call: &Edge| results.binary_search(&call.partner()).is_ok();
        let open_calls: Vec<Edge> = calls.iter().copied().filter(|call| !answered(call)).collect();
        results.retain(|result| calls.binary_search(&result.partner()).is_err());
        results.extend(open_calls);
        Edges::listing(&results)
    }

    fn listing(edges: &[Edge]) -> Edges {
        if edges.is_empty() {
            return Edges(None);
        }
        Edges(Some(ThinArc::from_header_and_slice((), edges)))
    }

    /// The edges as numbers, for a store.
    pub(crate) fn numbers(&self) -> Vec<u64> {
        self.list().iter().map(|edge| edge.0).collect()
    }

    /// The edges of a message from the numbers in a store.
    pub(crate) fn from_numbers(numbers: &[u64]) -> Edges {
        let edges: Vec<Edge> = numbers.iter().copied().map(Edge).collect();
        Edges::listing(&edges)
    }

    /// A list without entries represents an overflow.
    fn overflowed() -> Edges {
        Edges(Some(ThinArc::from_header_and_iter((), std::iter::empty())))
    }

    /// The edges; empty if there are none, and after an overflow.
    pub(crate) fn list(&self) -> &[Edge] {
        match &self.0 {
            Some(edges) => &edges.slice,
            None => &[],
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Whether there are more edges than can be listed.
    pub(crate) fn has_overflowed(&self) -> bool {
        self.0.as_ref().is_some_and(|edges| edges.slice.is_empty())
    }

    /// Adds the edges of the range right after this one.
    pub(crate) fn add(&mut self, later: &Edges) {
        if !later.is_empty() {
            *self = Edges::sum([&*self, later].into_iter());
        }
    }

    /// The edges of the range that consecutive ranges form together.
    pub(crate) fn sum<'a>(ranges: impl Iterator<Item = &'a Edges>) -> Edges {
        let mut ranges = ranges.filter(|edges| !edges.is_empty());
        let Some(first) = ranges.next() else { return Edges(None) };
        let second = ranges.next();
        if second.is_none() && first.list().len() <= MAX_EDGES {
            return first.clone();
        }
        let mut open = ShortList::default();
        for edges in std::iter::once(first).chain(second).chain(ranges) {
            if edges.has_overflowed() {
                return Edges::overflowed();
            }
            for &edge in edges.list() {
                if !open.pair_off(edge) && !open.push(edge) {
                    return Edges::overflowed();
                }
            }
        }
        Edges::listing(open.edges())
    }
}

/// Edges of a sum in progress, without allocation.
struct ShortList {
    edges: [Edge; MAX_EDGES],
    len: usize,
}

impl Default for ShortList {
    fn default() -> Self {
        ShortList { edges: [Edge(0); MAX_EDGES], len: 0 }
    }
}

impl ShortList {
    fn edges(&self) -> &[Edge] {
        &self.edges[..self.len]
    }

    /// Removes the newest call whose result is `edge`. Returns false if there is none.
    fn pair_off(&mut self, edge: Edge) -> bool {
        if edge.is_call() {
            return false;
        }
        let Some(at) = self.edges().iter().rposition(|&open| open == edge.partner()) else {
            return false;
        };
        self.edges.copy_within(at + 1..self.len, at);
        self.len -= 1;
        true
    }

    /// Adds an edge. Returns false if the list is full.
    fn push(&mut self, edge: Edge) -> bool {
        let has_capacity = self.len < MAX_EDGES;
        if has_capacity {
            self.edges[self.len] = edge;
            self.len += 1;
        }
        has_capacity
    }
}

impl PartialEq for Edges {
    /// A list that has overflowed equals every other, because its edges are unknown.
    fn eq(&self, other: &Self) -> bool {
        self.has_overflowed() || other.has_overflowed() || {
            let sorted = |edges: &Edges| {
                let mut list: Vec<u64> = edges.list().iter().map(|edge| edge.0).collect();
                list.sort_unstable();
                list
            };
            sorted(self) == sorted(other)
        }
    }
}

impl std::fmt::Debug for Edges {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.has_overflowed() { f.write_str("overflowed") } else { self.list().fmt(f) }
    }
}
