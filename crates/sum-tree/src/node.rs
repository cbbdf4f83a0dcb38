//! Nodes, and the join of two subtrees into a balanced one.
//!
//! A leaf is a shared slice of items. An inner node is a shared slice of entries; an entry is a child
//! with its summary. Both slices have exactly the required size.

use triomphe::ThinArc;

use crate::{Item, Summary};

/// Whether inner nodes have at most four children and leaves two items, so that short sequences make deep
/// trees. For tests only:
/// `RUSTFLAGS="--cfg recto_tiny_nodes"`.
const TINY: bool = cfg!(recto_tiny_nodes);

/// Maximum number of children of an inner node.
pub(crate) const fn max_children<T: Item>() -> usize {
    const { assert!(T::FAN >= 4, "each half of a split node must have two children") };
    if TINY { 4 } else { T::FAN }
}

/// Minimum number of children of an inner node other than the root.
pub(crate) const fn min_children<T: Item>() -> usize {
    max_children::<T>() / 2
}

/// Maximum number of items of a leaf.
pub(crate) const fn leaf_size<T: Item>() -> usize {
    const { assert!(T::LEAF >= 2, "each half of a split leaf must have an item") };
    if TINY { 2 } else { T::LEAF }
}

/// Minimum number of items of a leaf other than the root.
pub(crate) const fn leaf_min<T: Item>() -> usize {
    leaf_size::<T>() / 2
}

/// A shared node.
#[derive(Clone)]
pub(crate) enum Link<T: Item> {
    Leaf(ThinArc<(), T>),
    Inner(ThinArc<(), Entry<T>>),
}

/// A node with the summary of the items below it.
#[derive(Clone)]
pub(crate) struct Entry<T: Item> {
    pub(crate) summary: T::Summary,
    pub(crate) link: Link<T>,
}

/// A balanced tree of nodes, without the tail of a [`SumTree`](crate::SumTree). Its root may be less than half
/// full.
#[derive(Clone)]
pub(crate) struct Subtree<T: Item> {
    pub(crate) entry: Entry<T>,
    pub(crate) height: u8,
}

impl<T: Item> Link<T> {
    /// Address of the node, which identifies it while it is alive.
    pub(crate) fn address(&self) -> usize {
        match self {
            Link::Leaf(items) => items.slice.as_ptr().addr(),
            Link::Inner(children) => children.slice.as_ptr().addr(),
        }
    }

    pub(crate) fn children(&self) -> &[Entry<T>] {
        match self {
            Link::Inner(children) => &children.slice,
            Link::Leaf(_) => &[],
        }
    }
}

impl<T: Item> Entry<T> {
    pub(crate) fn leaf(items: impl ExactSizeIterator<Item = T>) -> Self {
        Self::new(Link::Leaf(ThinArc::from_header_and_iter((), items)))
    }

    /// A leaf of clones of these items.
    pub(crate) fn leaf_of(items: &[&T]) -> Self {
        // The summary is computed first, because the processor reads several distant items at the same time.
        // Cloning would read them one after the other: it changes a reference count in each item.
        let summary = T::sum(items.iter().copied());
        let items = items.iter().map(|&item| item.clone());
        Entry { summary, link: Link::Leaf(ThinArc::from_header_and_iter((), items)) }
    }

    pub(crate) fn inner(children: Vec<Entry<T>>) -> Self {
        Self::new(Link::Inner(ThinArc::from_header_and_iter((), children.into_iter())))
    }

    pub(crate) fn new(link: Link<T>) -> Self {
        Entry { summary: summarize(&link), link }
    }

    pub(crate) fn count(&self) -> usize {
        self.summary.count()
    }
}

/// The summary of the items below a node.
pub(crate) fn summarize<T: Item>(link: &Link<T>) -> T::Summary {
    match link {
        Link::Leaf(items) => T::sum(items.slice.iter()),
        Link::Inner(children) => T::Summary::sum(children.slice.iter().map(|child| &child.summary)),
    }
}

impl<T: Item> Subtree<T> {
    /// A balanced tree of `items`; `None` if there are no items.
    pub(crate) fn build(items: impl ExactSizeIterator<Item = T>) -> Option<Self> {
        Self::gather(leaves(items))
    }

    /// A balanced tree of leaves; `None` if there are none. If there are several, each must be at least half
    /// full.
    pub(crate) fn gather(leaves: Vec<Entry<T>>) -> Option<Self> {
        let mut level = leaves;
        let mut height = 0;
        while level.len() > 1 {
            level = gather_evenly(level);
            height += 1;
        }
        level.pop().map(|entry| Subtree { entry, height })
    }

    /// This tree followed by `right`.
    pub(crate) fn join(&self, right: &Self) -> Self {
        let height = self.height.max(right.height);
        match join(&self.entry, self.height, &right.entry, right.height) {
            Joined::One(entry) => Subtree { entry, height },
            Joined::Two(a, b) => Subtree { entry: Entry::inner(vec![a, b]), height: height + 1 },
        }
    }

    /// [`join`](Self::join) where either side may be empty.
    pub(crate) fn join_some(left: Option<Self>, right: Option<Self>) -> Option<Self> {
        match (left, right) {
            (Some(left), Some(right)) => Some(left.join(&right)),
            (left, right) => left.or(right),
        }
    }

    /// The items from `start` to `end`. The range must not be empty and must be inside the tree.
    pub(crate) fn slice(&self, start: usize, end: usize) -> Self {
        slice(&self.entry, self.height, start, end)
    }
}

/// Divides items into leaves of nearly equal size.
fn leaves<T: Item>(mut items: impl ExactSizeIterator<Item = T>) -> Vec<Entry<T>> {
    let count = items.len();
    let parts = count.div_ceil(leaf_size::<T>());
    (0..parts)
        .map(|part| {
            let size = count * (part + 1) / parts - count * part / parts;
            Entry::leaf(items.by_ref().take(size))
        })
        .collect()
}

/// Divides nodes of one height among parents of nearly equal size.
fn gather_evenly<T: Item>(nodes: Vec<Entry<T>>) -> Vec<Entry<T>> {
    let count = nodes.len();
    let parts = count.div_ceil(max_children::<T>());
    let mut nodes = nodes.into_iter();
    (0..parts)
        .map(|part| {
            let size = count * (part + 1) / parts - count * part / parts;
            Entry::inner(nodes.by_ref().take(size).collect())
        })
        .collect()
}

/// One node, or two of the same height if one would be too large.
pub(crate) enum Joined<T: Item> {
    One(Entry<T>),
    Two(Entry<T>, Entry<T>),
}

impl<T: Item> Joined<T> {
    pub(crate) fn push_to(self, children: &mut Vec<Entry<T>>) {
        match self {
            Joined::One(entry) => children.push(entry),
            Joined::Two(a, b) => children.extend([a, b]),
        }
    }

    /// One inner node with `children`, or two if there are too many.
    pub(crate) fn gather(mut children: Vec<Entry<T>>) -> Self {
        if children.len() <= max_children::<T>() {
            return Joined::One(Entry::inner(children));
        }
        let right = children.split_off(children.len().div_ceil(2));
        Joined::Two(Entry::inner(children), Entry::inner(right))
    }

    /// One leaf with `items`, or two if there are too many.
    pub(crate) fn gather_items(items: Vec<T>) -> Self {
        if items.len() <= leaf_size::<T>() {
            return Joined::One(Entry::leaf(items.into_iter()));
        }
        let half = items.len().div_ceil(2);
        let mut items = items.into_iter();
        Joined::Two(Entry::leaf(items.by_ref().take(half)), Entry::leaf(items))
    }
}

/// Joins two nodes of any height. The result has the greater of the two heights.
fn join<T: Item>(
    left: &Entry<T>,
    left_height: u8,
    right: &Entry<T>,
    right_height: u8,
) -> Joined<T> {
    if left_height == right_height {
        return join_siblings(left, right);
    }
    let mut children = Vec::with_capacity(max_children::<T>() + 1);
    if left_height > right_height {
        let (last, before) = split_last(left.link.children());
        children.extend_from_slice(before);
        join(last, left_height - 1, right, right_height).push_to(&mut children);
    } else {
        let (first, after) = split_first(right.link.children());
        join(left, left_height, first, right_height - 1).push_to(&mut children);
        children.extend_from_slice(after);
    }
    Joined::gather(children)
}

/// Joins two nodes of the same height. If one is less than half full, their entries are merged or
/// redistributed.
fn join_siblings<T: Item>(left: &Entry<T>, right: &Entry<T>) -> Joined<T> {
    match (&left.link, &right.link) {
        (Link::Leaf(a), Link::Leaf(b)) => {
            if a.slice.len().min(b.slice.len()) >= leaf_min::<T>() {
                return Joined::Two(left.clone(), right.clone());
            }
            Joined::gather_items(a.slice.iter().chain(&b.slice).cloned().collect())
        }
        (Link::Inner(a), Link::Inner(b)) => {
            if a.slice.len().min(b.slice.len()) >= min_children::<T>() {
                return Joined::Two(left.clone(), right.clone());
            }
            Joined::gather(a.slice.iter().chain(&b.slice).cloned().collect())
        }
        _ => unreachable!("nodes of the same height are all leaves or all inner nodes"),
    }
}

fn slice<T: Item>(entry: &Entry<T>, height: u8, start: usize, end: usize) -> Subtree<T> {
    if start == 0 && end == entry.count() {
        return Subtree { entry: entry.clone(), height };
    }
    let children = match &entry.link {
        Link::Leaf(items) => {
            return Subtree { entry: Entry::leaf(items.slice[start..end].iter().cloned()), height };
        }
        Link::Inner(children) => &children.slice,
    };
    let mut left = None;
    let mut whole = Vec::with_capacity(max_children::<T>());
    let mut right = None;
    let mut at = 0;
    for child in children {
        let (from, to) = (start.max(at), end.min(at + child.count()));
        if from < to {
            if to - from == child.count() {
                whole.push(child.clone());
            } else {
                let part = slice(child, height - 1, from - at, to - at);
                if whole.is_empty() && left.is_none() && from > at {
                    left = Some(part);
                } else {
                    right = Some(part);
                }
            }
        }
        at += child.count();
    }
    let middle = match whole.len() {
        0 => None,
        1 => whole.pop().map(|entry| Subtree { entry, height: height - 1 }),
        _ => Some(Subtree { entry: Entry::inner(whole), height }),
    };
    Subtree::join_some(Subtree::join_some(left, middle), right)
        .expect("a non-empty slice has at least one part")
}

fn split_last<T: Item>(children: &[Entry<T>]) -> (&Entry<T>, &[Entry<T>]) {
    children.split_last().expect("an inner node has children")
}

fn split_first<T: Item>(children: &[Entry<T>]) -> (&Entry<T>, &[Entry<T>]) {
    children.split_first().expect("an inner node has children")
}
