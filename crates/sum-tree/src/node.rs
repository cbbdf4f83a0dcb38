//! Nodes, and how two subtrees are joined into one that is still balanced.
//!
//! A leaf is an exact-size shared slice of items; an inner node is an exact-size shared slice of
//! entries, each a child beside the summary of what is below it.

use triomphe::ThinArc;

use crate::{Item, Summary};

/// Whether nodes have two to four entries, so that short sequences make deep trees. For tests only:
/// `RUSTFLAGS="--cfg recto_tiny_nodes"`.
const TINY: bool = cfg!(recto_tiny_nodes);

/// How many children an inner node of a tree of `T` has at most.
pub(crate) const fn fan<T: Item>() -> usize {
    const { assert!(T::FAN >= 4, "a node that is split must leave two children to each half") };
    if TINY { 4 } else { T::FAN }
}

/// How few children an inner node other than the root may have.
pub(crate) const fn fan_min<T: Item>() -> usize {
    fan::<T>() / 2
}

/// How many items a leaf of `T` holds at most.
pub(crate) const fn leaf_size<T: Item>() -> usize {
    const { assert!(T::LEAF >= 2, "a leaf that is split must leave an item to each half") };
    if TINY { 2 } else { T::LEAF }
}

/// How few items a leaf other than the root may hold.
pub(crate) const fn leaf_min<T: Item>() -> usize {
    leaf_size::<T>() / 2
}

/// A shared node.
#[derive(Clone)]
pub(crate) enum Link<T: Item> {
    Leaf(ThinArc<(), T>),
    Inner(ThinArc<(), Entry<T>>),
}

/// A node beside the summary of what is below it.
#[derive(Clone)]
pub(crate) struct Entry<T: Item> {
    pub(crate) summary: T::Summary,
    pub(crate) link: Link<T>,
}

/// A balanced tree without a tail. Its root may be less than half full.
#[derive(Clone)]
pub(crate) struct Subtree<T: Item> {
    pub(crate) entry: Entry<T>,
    pub(crate) height: u8,
}

impl<T: Item> Link<T> {
    /// Tells two nodes apart by where they are, not by what they hold.
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
        // First the sum: reading many items that are far apart is quick, as no read waits for
        // another. Counting references, item after item, would wait for each.
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

/// The sum of what is below `link`.
pub(crate) fn summarize<T: Item>(link: &Link<T>) -> T::Summary {
    match link {
        Link::Leaf(items) => T::sum(items.slice.iter()),
        Link::Inner(children) => T::Summary::sum(children.slice.iter().map(|child| &child.summary)),
    }
}

impl<T: Item> Subtree<T> {
    /// A balanced tree of `items`; none for no items.
    pub(crate) fn build(items: impl ExactSizeIterator<Item = T>) -> Option<Self> {
        Self::gather(leaves(items))
    }

    /// A balanced tree of leaves that are at least half full, or of a single one.
    pub(crate) fn gather(leaves: Vec<Entry<T>>) -> Option<Self> {
        let mut level = leaves;
        let mut height = 0;
        while level.len() > 1 {
            level = gather_evenly(level);
            height += 1;
        }
        level.pop().map(|entry| Subtree { entry, height })
    }

    /// This tree with `right` behind it.
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

    /// The items from `start` to `end`, which is not empty and lies inside.
    pub(crate) fn slice(&self, start: usize, end: usize) -> Self {
        slice(&self.entry, self.height, start, end)
    }
}

/// Cuts items into leaves of nearly equal size.
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

/// Puts nodes of one height under parents of nearly equal size.
fn gather_evenly<T: Item>(nodes: Vec<Entry<T>>) -> Vec<Entry<T>> {
    let count = nodes.len();
    let parts = count.div_ceil(fan::<T>());
    let mut nodes = nodes.into_iter();
    (0..parts)
        .map(|part| {
            let size = count * (part + 1) / parts - count * part / parts;
            Entry::inner(nodes.by_ref().take(size).collect())
        })
        .collect()
}

/// One node, or two of the same height where one would be too full.
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

    /// A node of `children`, or two if they are too many for one.
    pub(crate) fn gather(mut children: Vec<Entry<T>>) -> Self {
        if children.len() <= fan::<T>() {
            return Joined::One(Entry::inner(children));
        }
        let right = children.split_off(children.len().div_ceil(2));
        Joined::Two(Entry::inner(children), Entry::inner(right))
    }

    /// A leaf of `items`, or two if they are too many for one.
    pub(crate) fn gather_items(items: Vec<T>) -> Self {
        if items.len() <= leaf_size::<T>() {
            return Joined::One(Entry::leaf(items.into_iter()));
        }
        let half = items.len().div_ceil(2);
        let mut items = items.into_iter();
        Joined::Two(Entry::leaf(items.by_ref().take(half)), Entry::leaf(items))
    }
}

/// Joins two nodes of any height; the result is as high as the higher one.
fn join<T: Item>(
    left: &Entry<T>,
    left_height: u8,
    right: &Entry<T>,
    right_height: u8,
) -> Joined<T> {
    if left_height == right_height {
        return join_siblings(left, right);
    }
    let mut children = Vec::with_capacity(fan::<T>() + 1);
    if left_height > right_height {
        let (last, before) = split_last(left.link.children());
        children.extend_from_slice(before);
        join(last, left_height - 1, right, right_height).push_to(&mut children);
    } else {
        let (first, behind) = split_first(right.link.children());
        join(left, left_height, first, right_height - 1).push_to(&mut children);
        children.extend_from_slice(behind);
    }
    Joined::gather(children)
}

/// Joins two nodes of the same height, and evens them out if one is less than half full.
fn join_siblings<T: Item>(left: &Entry<T>, right: &Entry<T>) -> Joined<T> {
    match (&left.link, &right.link) {
        (Link::Leaf(a), Link::Leaf(b)) => {
            if a.slice.len().min(b.slice.len()) >= leaf_min::<T>() {
                return Joined::Two(left.clone(), right.clone());
            }
            Joined::gather_items(a.slice.iter().chain(&b.slice).cloned().collect())
        }
        (Link::Inner(a), Link::Inner(b)) => {
            if a.slice.len().min(b.slice.len()) >= fan_min::<T>() {
                return Joined::Two(left.clone(), right.clone());
            }
            Joined::gather(a.slice.iter().chain(&b.slice).cloned().collect())
        }
        _ => unreachable!("nodes of one height are of one kind"),
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
    let mut whole = Vec::with_capacity(fan::<T>());
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
        .expect("a slice that is not empty has at least one part")
}

fn split_last<T: Item>(children: &[Entry<T>]) -> (&Entry<T>, &[Entry<T>]) {
    children.split_last().expect("an inner node has children")
}

fn split_first<T: Item>(children: &[Entry<T>]) -> (&Entry<T>, &[Entry<T>]) {
    children.split_first().expect("an inner node has children")
}
