//! The sequence itself, and its edits.

use std::fmt;
use std::ops::{Bound, Range, RangeBounds};

use triomphe::Arc;

use crate::node::{Entry, Joined, Link, Subtree, leaf_min, leaf_size};
use crate::tail::{Chunk, Tail, chunk};
use crate::{Item, Summary};

/// A persistent sequence of items; see the [crate's page](crate).
///
/// Positions outside the sequence are cut to it, as `min(len)` would: no method panics on them.
pub struct SumTree<T: Item> {
    /// What trees share that differ only in how much of the tail they have: so cloning one costs a
    /// single reference count.
    base: Option<Arc<Base<T>>>,
    tail_len: u32,
}

struct Base<T: Item> {
    /// All items but those of the tail.
    body: Option<Subtree<T>>,
    /// Where the tail is.
    chunk: Option<Chunk<T>>,
}

impl<T: Item> Clone for SumTree<T> {
    fn clone(&self) -> Self {
        SumTree { base: self.base.clone(), tail_len: self.tail_len }
    }
}

impl<T: Item> Default for SumTree<T> {
    fn default() -> Self {
        SumTree { base: None, tail_len: 0 }
    }
}

impl<T: Item + fmt::Debug> fmt::Debug for SumTree<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<T: Item> FromIterator<T> for SumTree<T> {
    /// Builds the whole tree at once, in O(n).
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let items: Vec<T> = items.into_iter().collect();
        Self::from_body(Subtree::build(items.into_iter()))
    }
}

impl<T: Item> Extend<T> for SumTree<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        let items = items.into_iter();
        // Pushing one by one is cheapest for a few; a long list is built apart and joined.
        if items.size_hint().1.is_some_and(|most| most <= 2 * leaf_size::<T>()) {
            items.for_each(|item| self.push(item));
        } else {
            self.append(&items.collect());
        }
    }
}

impl<T: Item> SumTree<T> {
    /// The empty sequence.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same item again and again. It takes next to no memory: the nodes are shared.
    pub fn repeat(item: T, count: usize) -> Self {
        let leaf = leaf_size::<T>();
        let mut block: Self = std::iter::repeat_n(item.clone(), leaf).collect();
        let mut repeated = Self::new();
        let mut blocks = count / leaf;
        while blocks > 0 {
            if blocks & 1 == 1 {
                repeated.append(&block);
            }
            block.append(&block.clone());
            blocks >>= 1;
        }
        (0..count % leaf).for_each(|_| repeated.push(item.clone()));
        repeated
    }

    /// A tree without a tail.
    pub(crate) fn from_body(body: Option<Subtree<T>>) -> Self {
        Self::from_parts(body, None, 0)
    }

    /// A tree whose tail is the front of `chunk`.
    fn from_parts(body: Option<Subtree<T>>, chunk: Option<Chunk<T>>, tail_len: usize) -> Self {
        let chunk = chunk.filter(|_| tail_len > 0);
        let is_empty = body.is_none() && chunk.is_none();
        let base = (!is_empty).then(|| Arc::new(Base { body, chunk }));
        SumTree { base, tail_len: tail_len as u32 }
    }

    /// How many items there are.
    pub fn len(&self) -> usize {
        self.body_len() + self.tail_len as usize
    }

    /// Whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The summary of all items. It is made from that of the body and the items of the tail: to get
    /// a single number out of it, [`measure`](Self::measure) is quicker.
    pub fn summary(&self) -> T::Summary {
        let mut sum = self.body_summary().cloned().unwrap_or_default();
        if self.tail_len > 0 {
            sum.add(&T::sum(self.tail().items()));
        }
        sum
    }

    fn body(&self) -> Option<&Subtree<T>> {
        self.base.as_ref()?.body.as_ref()
    }

    fn chunk(&self) -> Option<&Chunk<T>> {
        self.base.as_ref()?.chunk.as_ref()
    }

    pub(crate) fn root(&self) -> Option<&Link<T>> {
        self.body().map(|body| &body.entry.link)
    }

    pub(crate) fn body_summary(&self) -> Option<&T::Summary> {
        self.body().map(|body| &body.entry.summary)
    }

    /// How many levels of inner nodes there are.
    pub(crate) fn height(&self) -> u8 {
        self.body().map_or(0, |body| body.height)
    }

    pub(crate) fn tail(&self) -> Tail<'_, T> {
        Tail::new(self.chunk(), self.tail_len as usize)
    }

    /// How many items stand before the tail.
    pub(crate) fn body_len(&self) -> usize {
        self.body().map_or(0, |body| body.entry.count())
    }

    /// Everything, the tail included, as a tree without a tail.
    pub(crate) fn whole(&self) -> Option<Subtree<T>> {
        let tail = self.tail().items();
        if tail.len() == 0 {
            return self.body().cloned();
        }
        let tail = Subtree { entry: Entry::leaf(tail.cloned()), height: 0 };
        Some(self.body().map_or_else(|| tail.clone(), |body| body.join(&tail)))
    }

    /// Whether the other is a clone of this tree, or was one: then both hold the same items. It
    /// may say no of trees that hold equal ones.
    pub fn is_clone_of(&self, other: &Self) -> bool {
        let has_same_base = match (&self.base, &other.base) {
            (Some(base), Some(others)) => Arc::ptr_eq(base, others),
            (None, None) => true,
            _ => false,
        };
        has_same_base && self.tail_len == other.tail_len
    }

    /// The item at `position`.
    pub fn get(&self, position: usize) -> Option<&T> {
        let body = self.body_len();
        if position >= body {
            return self.tail().get(position - body);
        }
        let (items, at) = self.leaf_around(position)?;
        items.get(at)
    }

    /// What the items around `position` add up to, if that is known without reading them: then it
    /// tells what one of them can be without a look at memory that was not read for long.
    pub fn summary_around(&self, position: usize) -> Option<&T::Summary> {
        self.entry_around(position).map(|(leaf, _)| &leaf.summary)
    }

    /// The leaf that holds the item at `position`, and its place in it; none if it is in the tail.
    pub(crate) fn leaf_around(&self, position: usize) -> Option<(&[T], usize)> {
        let (leaf, at) = self.entry_around(position)?;
        match &leaf.link {
            Link::Leaf(items) => Some((&items.slice, at)),
            Link::Inner(_) => None,
        }
    }

    fn entry_around(&self, position: usize) -> Option<(&Entry<T>, usize)> {
        let mut entry = &self.body()?.entry;
        let mut at = position;
        if at >= entry.count() {
            return None;
        }
        while let Link::Inner(children) = &entry.link {
            entry = children.slice.iter().find(|child| {
                let count = child.count();
                let is_inside = at < count;
                at -= if is_inside { 0 } else { count };
                is_inside
            })?;
        }
        Some((entry, at))
    }

    /// Adds an item at the end: O(1), and O(log n) once in a leaf's length.
    pub fn push(&mut self, item: T) {
        let free = self.chunk().and_then(|chunk| chunk.slice.get(self.tail_len as usize));
        let claimed = match free {
            Some(slot) => slot.set(item),
            None => Err(item),
        };
        if let Err(item) = claimed {
            let chunk = chunk(self.tail().items().cloned().chain([item]));
            self.base = Some(Arc::new(Base { body: self.body().cloned(), chunk: Some(chunk) }));
        }
        self.tail_len += 1;
        if self.tail_len as usize >= leaf_size::<T>() {
            // A full tail becomes a leaf of the body.
            *self = Self::from_body(self.whole());
        }
    }

    /// The items of `range` as a sequence of their own, in O(log n).
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Self {
        let Range { start, end } = cut(range, self.len());
        if start >= end {
            return Self::default();
        }
        let body_len = self.body_len();
        if start > body_len {
            let items = self.iter_range(start..end).cloned();
            return Self::from_parts(None, Some(chunk(items)), end - start);
        }
        let tail_len = end.saturating_sub(body_len);
        if start == 0 && end >= body_len {
            return SumTree { base: self.base.clone(), tail_len: tail_len as u32 };
        }
        let inside = |body: &Subtree<T>| body.slice(start, end.min(body_len));
        let body = self.body().filter(|_| start < body_len).map(inside);
        Self::from_parts(body, self.chunk().cloned(), tail_len)
    }

    /// Puts all items of `other` behind those of `self`, in O(log n).
    pub fn append(&mut self, other: &Self) {
        if other.is_empty() {
            return;
        }
        if self.is_empty() {
            *self = other.clone();
            return;
        }
        let Some(body) = other.body() else {
            // Nothing but a tail: pushing keeps this tree's own tail shared.
            other.tail().items().for_each(|item| self.push(item.clone()));
            return;
        };
        let joined = self.whole().map(|whole| whole.join(body));
        *self = Self::from_parts(joined, other.chunk().cloned(), other.tail().len());
    }

    /// Takes `range` out and puts `items` in its place: O(log n) plus the number of new items.
    pub fn splice(&mut self, range: impl RangeBounds<usize>, items: impl IntoIterator<Item = T>) {
        let Range { start, end } = cut(range, self.len());
        let items: Vec<T> = items.into_iter().collect();
        if start >= end && items.is_empty() {
            return;
        }
        let end = end.max(start);
        let body_len = self.body_len();
        *self = if start >= body_len {
            self.splice_tail(start - body_len, end - body_len, items)
        } else if end <= body_len {
            let body = self.splice_body(start, end, items);
            Self::from_parts(body, self.chunk().cloned(), self.tail().len())
        } else {
            let body = self.body().expect("the range starts in the body");
            let rest = self.tail().items().skip(end - body_len).cloned();
            let kept = (start > 0).then(|| body.slice(0, start));
            let added =
                Subtree::build(items.into_iter().chain(rest).collect::<Vec<_>>().into_iter());
            Self::from_body(Subtree::join_some(kept, added))
        };
    }

    /// A splice inside the tail; what outgrows the tail moves into the body.
    fn splice_tail(&self, start: usize, end: usize, items: Vec<T>) -> Self {
        let before = self.tail().items().take(start).cloned();
        let behind = self.tail().items().skip(end).cloned();
        let all: Vec<T> = before.chain(items).chain(behind).collect();
        if all.len() < leaf_size::<T>() {
            let len = all.len();
            return Self::from_parts(self.body().cloned(), Some(chunk(all.into_iter())), len);
        }
        let all = Subtree::build(all.into_iter());
        Self::from_body(Subtree::join_some(self.body().cloned(), all))
    }

    fn splice_body(&self, start: usize, end: usize, items: Vec<T>) -> Option<Subtree<T>> {
        let body = self.body()?;
        if let Some(joined) = edit(&body.entry, start, end, &items, true) {
            return Some(match joined {
                Joined::One(entry) => Subtree { entry, height: body.height },
                Joined::Two(a, b) => {
                    Subtree { entry: Entry::inner(vec![a, b]), height: body.height + 1 }
                }
            });
        }
        let left = (start > 0).then(|| body.slice(0, start));
        let right = (end < body.entry.count()).then(|| body.slice(end, body.entry.count()));
        let middle = Subtree::build(items.into_iter());
        Subtree::join_some(Subtree::join_some(left, middle), right)
    }
}

/// Edits one leaf and the path to it. `None` where the edit reaches over several leaves or leaves
/// one less than half full: cutting and joining handles those.
fn edit<T: Item>(
    entry: &Entry<T>,
    start: usize,
    end: usize,
    items: &[T],
    is_root: bool,
) -> Option<Joined<T>> {
    match &entry.link {
        Link::Leaf(old) => {
            let len = old.slice.len() - (end - start) + items.len();
            let least = if is_root { 1 } else { leaf_min::<T>() };
            if len < least || len > 2 * leaf_size::<T>() {
                return None;
            }
            let mut all = Vec::with_capacity(len);
            all.extend_from_slice(&old.slice[..start]);
            all.extend_from_slice(items);
            all.extend_from_slice(&old.slice[end..]);
            Some(Joined::gather_items(all))
        }
        Link::Inner(children) => {
            let mut at = 0;
            for (number, child) in children.slice.iter().enumerate() {
                let past = at + child.count();
                if start >= at && end <= past {
                    let edited = edit(child, start - at, end - at, items, false)?;
                    let mut all = Vec::with_capacity(children.slice.len() + 1);
                    all.extend_from_slice(&children.slice[..number]);
                    edited.push_to(&mut all);
                    all.extend_from_slice(&children.slice[number + 1..]);
                    return Some(Joined::gather(all));
                }
                at = past;
            }
            None
        }
    }
}

/// `range` in numbers, cut to a sequence of `len` items.
pub(crate) fn cut(range: impl RangeBounds<usize>, len: usize) -> Range<usize> {
    let start = match range.start_bound() {
        Bound::Included(&start) => start,
        Bound::Excluded(&before) => before.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(&last) => last.saturating_add(1),
        Bound::Excluded(&end) => end,
        Bound::Unbounded => len,
    };
    start.min(len)..end.min(len)
}
