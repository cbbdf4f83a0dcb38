//! Tool exchanges in a view: the tool calls in a range whose result is outside the range, and the tool
//! results whose call is outside it.
//!
//! `edges.rs` explains how calls and results are paired, and summarises them in the nodes of the tree.

use std::collections::HashMap;
use std::ops::RangeBounds;

use sum_tree::Seen;

use crate::View;
use crate::edges::Edge;

/// The edges of a range of the view, without a limit.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenEdges(HashMap<Edge, usize>);

impl OpenEdges {
    /// The edges of a range. Of the nodes inside the range, only those whose list of edges has overflowed are
    /// entered.
    pub(crate) fn of(view: &View, range: impl RangeBounds<usize>) -> OpenEdges {
        let mut open = OpenEdges::default();
        view.0.visit(range, |_, seen| match seen {
            Seen::Node(sums) if sums.open.has_overflowed() => true,
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
            if edge.is_call() || !self.remove_one(edge.partner()) {
                *self.0.entry(edge).or_default() += 1;
            }
        }
    }

    /// Removes one edge equal to this one. Returns false if there is none.
    fn remove_one(&mut self, edge: Edge) -> bool {
        let Some(count) = self.0.get_mut(&edge) else { return false };
        *count -= 1;
        if *count == 0 {
            self.0.remove(&edge);
        }
        true
    }

    /// Number of edges equal to this one.
    pub(crate) fn count(&self, edge: Edge) -> usize {
        self.0.get(&edge).copied().unwrap_or(0)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn calls(&self) -> impl Iterator<Item = Edge> {
        self.0.keys().copied().filter(|edge| edge.is_call())
    }

    /// Whether there is an edge with the same id.
    fn mentions(&self, edge: Edge) -> bool {
        self.0.contains_key(&edge) || self.0.contains_key(&edge.partner())
    }
}

impl From<Edge> for OpenEdges {
    fn from(edge: Edge) -> Self {
        OpenEdges(HashMap::from([(edge, 1)]))
    }
}

/// The calls and results of a range of the view that have no partner in it and whose ids are in
/// `wanted`, with their positions, in order.
pub(crate) fn open_entries(
    view: &View,
    range: impl RangeBounds<usize>,
    wanted: &OpenEdges,
) -> Vec<(usize, Edge)> {
    let mut calls: HashMap<Edge, Vec<usize>> = HashMap::new();
    let mut open = Vec::new();
    view.0.visit(range, |at, seen| {
        let entry = match seen {
            // If a node has no edge with an id, its calls and results with that id are paired inside it.
            Seen::Node(sums) => {
                let edges = &sums.open;
                return edges.has_overflowed()
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
        calls
            .into_iter()
            .flat_map(|(edge, positions)| positions.into_iter().map(move |at| (at, edge))),
    );
    open.sort_unstable();
    open
}
