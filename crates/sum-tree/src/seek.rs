//! Reading by summaries: seek, measure, find, and a traversal that can skip nodes.

use std::ops::{Range, RangeBounds};

use crate::node::Link;
use crate::tree::clamp;
use crate::{Dimension, Item, SumTree, Summary};

/// The result of [`SumTree::seek`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Position of the item.
    pub position: usize,
    /// Value of the dimension before the item.
    pub before: u64,
}

/// A node or item that [`SumTree::visit`] reached. A tree has nothing else, so the enum is closed.
#[derive(Debug)]
pub enum Seen<'a, T: Item> {
    /// A node: the summary of the items below it.
    Node(&'a T::Summary),
    /// An item.
    Item(&'a T),
}

impl<T: Item> SumTree<T> {
    /// The item that contains unit `target` (from 0) of a dimension. If the dimension counts items of one
    /// kind, this is item number `target` of that kind. O(log n).
    pub fn seek(&self, target: u64, dimension: &impl Dimension<T>) -> Option<Found> {
        let mut found = Found { position: 0, before: 0 };
        if let Some(root) = self.root() {
            let mut link = root;
            'down: loop {
                match link {
                    Link::Inner(children) => {
                        for child in &children.slice {
                            let size = dimension.of_summary(&child.summary);
                            if found.before + size > target {
                                link = &child.link;
                                continue 'down;
                            }
                            found.before += size;
                            found.position += child.count();
                        }
                    }
                    Link::Leaf(items) => {
                        if seek_in_items(items.slice.iter(), target, dimension, &mut found) {
                            return Some(found);
                        }
                    }
                }
                break;
            }
        }
        seek_in_items(self.tail().items(), target, dimension, &mut found).then_some(found)
    }

    /// The value of a dimension for the items of `range`. O(log n).
    pub fn measure(&self, range: impl RangeBounds<usize>, dimension: &impl Dimension<T>) -> u64 {
        let range = clamp(range, self.len());
        if range.start >= range.end {
            return 0;
        }
        self.measure_before(range.end, dimension) - self.measure_before(range.start, dimension)
    }

    fn measure_before(&self, position: usize, dimension: &impl Dimension<T>) -> u64 {
        if position >= self.body_len() {
            let body = self.body_summary().map_or(0, |summary| dimension.of_summary(summary));
            let in_tail = self.tail().items().take(position - self.body_len());
            return body + in_tail.map(|item| dimension.of_item(item)).sum::<u64>();
        }
        let mut before = 0;
        let mut rest = position;
        let mut link = self.root().expect("a position before the tail is in the body");
        'down: loop {
            match link {
                Link::Inner(children) => {
                    for child in &children.slice {
                        if rest < child.count() {
                            link = &child.link;
                            continue 'down;
                        }
                        rest -= child.count();
                        before += dimension.of_summary(&child.summary);
                    }
                    unreachable!("a position below the count is in a child");
                }
                Link::Leaf(items) => {
                    let whole = items.slice[..rest].iter();
                    return before + whole.map(|item| dimension.of_item(item)).sum::<u64>();
                }
            }
        }
    }

    /// The summary of the items of `range`. O(log n).
    pub fn summary_of(&self, range: impl RangeBounds<usize>) -> T::Summary {
        let range = clamp(range, self.len());
        if range == (0..self.len()) {
            return self.summary();
        }
        let mut sum = T::Summary::default();
        self.visit(range, |_, seen| match seen {
            Seen::Node(summary) => {
                sum.add(summary);
                false
            }
            Seen::Item(item) => {
                item.add_to(&mut sum);
                true
            }
        });
        sum
    }

    /// Traverses the items of `range`, with their positions. For a node below the root that is entirely
    /// inside the range, `visitor` is called with the position of its first item, and returns whether to
    /// enter the node. For an item of a node that was entered or is only partly inside the range, of a root
    /// that is a leaf, or of the tail, `visitor` returns whether to continue the traversal.
    pub fn visit<'a>(
        &'a self,
        range: impl RangeBounds<usize>,
        mut visitor: impl FnMut(usize, Seen<'a, T>) -> bool,
    ) {
        let range = clamp(range, self.len());
        if let Some(root) = self.root()
            && !walk(root, 0, &range, &mut visitor)
        {
            return;
        }
        let body = self.body_len();
        for (number, item) in self.tail().items().enumerate() {
            if range.contains(&(body + number)) && !visitor(body + number, Seen::Item(item)) {
                return;
            }
        }
    }

    /// The first item for which `is_match` is true, and its position. Nodes for which `may_match` is false
    /// are skipped.
    pub fn find(
        &self,
        may_match: impl Fn(&T::Summary) -> bool,
        is_match: impl Fn(&T) -> bool,
    ) -> Option<(usize, &T)> {
        if let Some(root) = self.root()
            && let Some(found) = search(root, 0, &may_match, &is_match)
        {
            return Some(found);
        }
        let body = self.body_len();
        let at = self.tail().items().position(is_match)?;
        self.tail().get(at).map(|item| (body + at, item))
    }
}

fn seek_in_items<'a, T: Item + 'a>(
    items: impl Iterator<Item = &'a T>,
    target: u64,
    dimension: &impl Dimension<T>,
    found: &mut Found,
) -> bool {
    for item in items {
        let size = dimension.of_item(item);
        if found.before + size > target {
            return true;
        }
        found.before += size;
        found.position += 1;
    }
    false
}

/// [`SumTree::visit`] of the items below a node. Returns whether to continue.
fn walk<'a, T: Item>(
    link: &'a Link<T>,
    at: usize,
    range: &Range<usize>,
    visitor: &mut impl FnMut(usize, Seen<'a, T>) -> bool,
) -> bool {
    match link {
        Link::Leaf(items) => {
            let to = range.end.saturating_sub(at).min(items.slice.len());
            let from = range.start.saturating_sub(at).min(to);
            let mut items = items.slice[from..to].iter().enumerate();
            items.all(|(number, item)| visitor(at + from + number, Seen::Item(item)))
        }
        Link::Inner(children) => {
            let mut at = at;
            children.slice.iter().all(|child| {
                let start = at;
                at += child.count();
                let whole = range.start <= start && at <= range.end;
                let overlaps = start < range.end && range.start < at;
                let enters = overlaps && (!whole || visitor(start, Seen::Node(&child.summary)));
                !enters || walk(&child.link, start, range, visitor)
            })
        }
    }
}

fn search<'a, T: Item>(
    link: &'a Link<T>,
    at: usize,
    may_match: &impl Fn(&T::Summary) -> bool,
    is_match: &impl Fn(&T) -> bool,
) -> Option<(usize, &'a T)> {
    match link {
        Link::Leaf(items) => {
            let number = items.slice.iter().position(is_match)?;
            Some((at + number, &items.slice[number]))
        }
        Link::Inner(children) => {
            let mut at = at;
            for child in &children.slice {
                if may_match(&child.summary)
                    && let Some(found) = search(&child.link, at, may_match, is_match)
                {
                    return Some(found);
                }
                at += child.count();
            }
            None
        }
    }
}
