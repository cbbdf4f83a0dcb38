//! Tool calls and the results that answer them.
//!
//! Calls and results of one id pair off like brackets: in a view, a result answers the nearest call
//! of its id before it that has no answer yet. So a stretch of the view can be summed up by what is
//! left open at its edges: results whose call stands before it, and calls whose result may stand
//! behind it. Two neighbouring stretches pair off what the one leaves open and the other answers.
//!
//! Inside the engine an id is known by its 63-bit hash.

use std::collections::HashMap;
use std::ops::RangeBounds;

use sum_tree::Seen;
use triomphe::ThinArc;

use crate::View;

/// A call or a result that has no partner in its stretch of the view.
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

    /// The result that answers this call, or the call that this result answers.
    pub(crate) fn partner(self) -> Edge {
        Edge(self.0 ^ 1)
    }
}

/// What a stretch leaves open, as long as that is not much.
///
/// The results wait for calls before the stretch, the calls for results behind it. Where there are
/// too many to list ([`Edges::is_crowded`]), whoever wants to know looks into the stretch's parts.
#[derive(Clone, Default)]
pub(crate) struct Edges(Option<ThinArc<(), Edge>>);

/// Longer lists would make edits slow and nodes large; shorter ones would crowd at the edge of a
/// turn with many parallel calls.
const MOST: usize = 32;

impl Edges {
    /// What a single message leaves open: a list however long it is.
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

    /// As numbers, to be stored.
    pub(crate) fn numbers(&self) -> Vec<u64> {
        self.list().iter().map(|edge| edge.0).collect()
    }

    /// What a message was found to leave open.
    pub(crate) fn from_numbers(numbers: &[u64]) -> Edges {
        let edges: Vec<Edge> = numbers.iter().copied().map(Edge).collect();
        Edges::listing(&edges)
    }

    /// A list without entries says that there are too many.
    fn crowded() -> Edges {
        Edges(Some(ThinArc::from_header_and_iter((), std::iter::empty())))
    }

    /// What is open; empty if there is nothing, or more than can be listed.
    pub(crate) fn list(&self) -> &[Edge] {
        match &self.0 {
            Some(edges) => &edges.slice,
            None => &[],
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Whether more is open than the list can tell.
    pub(crate) fn is_crowded(&self) -> bool {
        self.0.as_ref().is_some_and(|edges| edges.slice.is_empty())
    }

    /// Adds what the stretch right behind this one leaves open.
    pub(crate) fn add(&mut self, later: &Edges) {
        if !later.is_empty() {
            *self = Edges::sum([&*self, later].into_iter());
        }
    }

    /// What stretches that stand one behind the other leave open together.
    pub(crate) fn sum<'a>(stretches: impl Iterator<Item = &'a Edges>) -> Edges {
        let mut stretches = stretches.filter(|edges| !edges.is_empty());
        let Some(first) = stretches.next() else { return Edges(None) };
        let second = stretches.next();
        if second.is_none() && first.list().len() <= MOST {
            return first.clone();
        }
        let mut open = ShortList::default();
        for edges in std::iter::once(first).chain(second).chain(stretches) {
            if edges.is_crowded() {
                return Edges::crowded();
            }
            for &edge in edges.list() {
                if !open.pair_off(edge) && !open.push(edge) {
                    return Edges::crowded();
                }
            }
        }
        Edges::listing(open.edges())
    }
}

/// Edges while stretches are summed up: as many as may be listed, without allocating.
struct ShortList {
    edges: [Edge; MOST],
    len: usize,
}

impl Default for ShortList {
    fn default() -> Self {
        ShortList { edges: [Edge(0); MOST], len: 0 }
    }
}

impl ShortList {
    fn edges(&self) -> &[Edge] {
        &self.edges[..self.len]
    }

    /// Takes out the newest call that a result answers.
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

    /// Whether there was room.
    fn push(&mut self, edge: Edge) -> bool {
        let has_room = self.len < MOST;
        if has_room {
            self.edges[self.len] = edge;
            self.len += 1;
        }
        has_room
    }
}

impl PartialEq for Edges {
    /// A crowded list claims nothing, so it equals any other.
    fn eq(&self, other: &Self) -> bool {
        self.is_crowded() || other.is_crowded() || {
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
        if self.is_crowded() { f.write_str("crowded") } else { self.list().fmt(f) }
    }
}

/// What a stretch of the view leaves open, however much that is.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenEdges(HashMap<Edge, usize>);

impl OpenEdges {
    /// Sums up a stretch. Only nodes that are crowded are looked into.
    pub(crate) fn of(view: &View, range: impl RangeBounds<usize>) -> OpenEdges {
        let mut open = OpenEdges::default();
        view.0.visit(range, |_, seen| match seen {
            Seen::Node(sums) if sums.open.is_crowded() => true,
            Seen::Node(sums) => {
                open.add(sums.open.list());
                false
            }
            Seen::Item(entry) => {
                open.add(entry.edges.list());
                true
            }
        });
        open
    }

    fn add(&mut self, later: &[Edge]) {
        for &edge in later {
            if edge.is_call() || !self.take(edge.partner()) {
                *self.0.entry(edge).or_default() += 1;
            }
        }
    }

    fn take(&mut self, edge: Edge) -> bool {
        let Some(count) = self.0.get_mut(&edge) else { return false };
        *count -= 1;
        if *count == 0 {
            self.0.remove(&edge);
        }
        true
    }

    /// How many calls or results of one id are open.
    pub(crate) fn count(&self, edge: Edge) -> usize {
        self.0.get(&edge).copied().unwrap_or(0)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn calls(&self) -> impl Iterator<Item = Edge> {
        self.0.keys().copied().filter(|edge| edge.is_call())
    }

    /// Whether something of the same id is open.
    fn mentions(&self, edge: Edge) -> bool {
        self.0.contains_key(&edge) || self.0.contains_key(&edge.partner())
    }
}

impl From<Edge> for OpenEdges {
    fn from(edge: Edge) -> Self {
        OpenEdges(HashMap::from([(edge, 1)]))
    }
}

/// The calls and results of a stretch of the view that have no partner in it, with their places, in
/// order: those of the ids that `wanted` mentions.
pub(crate) fn open_entries(
    view: &View,
    range: impl RangeBounds<usize>,
    wanted: &OpenEdges,
) -> Vec<(usize, Edge)> {
    let mut calls: HashMap<Edge, Vec<usize>> = HashMap::new();
    let mut open = Vec::new();
    view.0.visit(range, |at, seen| {
        let entry = match seen {
            // Where nothing of an id is open, all its pairs are inside.
            Seen::Node(sums) => {
                let edges = &sums.open;
                return edges.is_crowded()
                    || edges.list().iter().any(|&edge| wanted.mentions(edge));
            }
            Seen::Item(entry) => entry,
        };
        for &edge in entry.edges.list().iter().filter(|&&edge| wanted.mentions(edge)) {
            if edge.is_call() {
                calls.entry(edge).or_default().push(at);
            } else if calls.get_mut(&edge.partner()).and_then(Vec::pop).is_none() {
                open.push((at, edge));
            }
        }
        true
    });
    open.extend(
        calls.into_iter().flat_map(|(edge, places)| places.into_iter().map(move |at| (at, edge))),
    );
    open.sort_unstable();
    open
}
