//! Reading by any dimension: seek, measure, find, and a walk that leaves out what cannot matter.

use std::ops::RangeBounds;

use crate::node::Link;
use crate::tree::cut;
use crate::{Dimension, Item, SumTree, Summary};

/// Where [`SumTree::seek`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The position of the item that holds the sought unit.
    pub position: usize,
    /// How much of the dimension stands before that item.
    pub before: u64,
}

impl<T: Item> SumTree<T> {
    /// The item that holds unit number `target` (from 0) of a dimension: with a dimension that
    /// counts one kind of item, the `target`-th of that kind. O(log n).
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
                        if step(items.slice.iter(), target, dimension, &mut found) {
                            return Some(found);
                        }
                    }
                }
                break;
            }
        }
        step(self.tail().items(), target, dimension, &mut found).then_some(found)
    }

    /// How much of a dimension the items of `range` hold. O(log n).
    pub fn measure(&self, range: impl RangeBounds<usize>, dimension: &impl Dimension<T>) -> u64 {
        let range = cut(range, self.len());
        if range.start >= range.end {
            return 0;
        }
        self.measure_before(range.end, dimension) - self.measure_before(range.start, dimension)
    }

    fn measure_before(&self, position: usize, dimension: &impl Dimension<T>) -> u64 {
        if position >= self.len() {
            return dimension.of_summary(self.summary());
        }
        let mut before = 0;
        let mut rest = position;
        if let Some(root) = self.root() {
            let mut link = root;
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
                        break;
                    }
                    Link::Leaf(items) => {
                        let whole = rest.min(items.slice.len());
                        rest -= whole;
                        for item in &items.slice[..whole] {
                            before += dimension.of_item(item);
                        }
                        if whole < items.slice.len() {
                            return before;
                        }
                        break;
                    }
                }
            }
        }
        before + self.tail().items().take(rest).map(|item| dimension.of_item(item)).sum::<u64>()
    }

    /// The summary of the items of `range`. O(log n).
    pub fn summary_of(&self, range: impl RangeBounds<usize>) -> T::Summary {
        let range = cut(range, self.len());
        if range == (0..self.len()) {
            return self.summary().clone();
        }
        let mut sum = std::cell::RefCell::new(T::Summary::default());
        self.visit(
            range,
            |_, summary| {
                sum.borrow_mut().add(summary);
                false
            },
            |_, item| item.add_to(&mut sum.borrow_mut()),
        );
        std::mem::take(sum.get_mut())
    }

    /// Walks over the items of `range`. A node whose items all lie in the range is offered first,
    /// with the position of its first item; `enter` says whether to go into it. Items of nodes that
    /// were entered, or that lie only partly in the range, or in the tail, come to `item`.
    pub fn visit<'a>(
        &'a self,
        range: impl RangeBounds<usize>,
        mut enter: impl FnMut(usize, &'a T::Summary) -> bool,
        mut item: impl FnMut(usize, &'a T),
    ) {
        let range = cut(range, self.len());
        if let Some(root) = self.root() {
            walk(root, 0, range.start, range.end, &mut enter, &mut item);
        }
        let body = self.body_len();
        for (number, one) in self.tail().items().enumerate() {
            if range.contains(&(body + number)) {
                item(body + number, one);
            }
        }
    }

    /// The first item for which `is` holds. Only nodes for which `may` holds are looked into, so
    /// the cost is that of the nodes that could not be ruled out.
    pub fn find(
        &self,
        may: impl Fn(&T::Summary) -> bool,
        is: impl Fn(&T) -> bool,
    ) -> Option<(usize, &T)> {
        if let Some(root) = self.root()
            && let Some(found) = search(root, 0, &may, &is)
        {
            return Some(found);
        }
        let body = self.body_len();
        let at = self.tail().items().position(is)?;
        self.tail().get(at).map(|item| (body + at, item))
    }
}

fn step<'a, T: Item + 'a>(
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

fn walk<'a, T: Item>(
    link: &'a Link<T>,
    at: usize,
    start: usize,
    end: usize,
    enter: &mut impl FnMut(usize, &'a T::Summary) -> bool,
    item: &mut impl FnMut(usize, &'a T),
) {
    match link {
        Link::Leaf(items) => {
            let to = end.saturating_sub(at).min(items.slice.len());
            let from = start.saturating_sub(at).min(to);
            for (number, one) in items.slice[from..to].iter().enumerate() {
                item(at + from + number, one);
            }
        }
        Link::Inner(children) => {
            let mut at = at;
            for child in &children.slice {
                let past = at + child.count();
                let whole = start <= at && past <= end;
                let overlaps = at < end && start < past;
                if overlaps && (!whole || enter(at, &child.summary)) {
                    walk(&child.link, at, start, end, enter, item);
                }
                at = past;
            }
        }
    }
}

fn search<'a, T: Item>(
    link: &'a Link<T>,
    at: usize,
    may: &impl Fn(&T::Summary) -> bool,
    is: &impl Fn(&T) -> bool,
) -> Option<(usize, &'a T)> {
    match link {
        Link::Leaf(items) => {
            let number = items.slice.iter().position(is)?;
            Some((at + number, &items.slice[number]))
        }
        Link::Inner(children) => {
            let mut at = at;
            for child in &children.slice {
                if may(&child.summary)
                    && let Some(found) = search(&child.link, at, may, is)
                {
                    return Some(found);
                }
                at += child.count();
            }
            None
        }
    }
}
