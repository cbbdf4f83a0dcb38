//! The sequence and its edits.

use std::fmt;
use std::ops::{Bound, Range, RangeBounds};

use triomphe::Arc;

use crate::node::{Entry, Joined, Link, Subtree, leaf_min, leaf_size};
use crate::tail::{Chunk, Tail, chunk};
use crate::{Item, Summary};

/// A persistent sequence of items; see the [crate docs](crate).
///
/// A position outside the sequence is clamped to its length; no method panics on it.
pub struct SumTree<T: Item> {
    /// Body and tail, shared by trees that differ only in the length of their tail. A clone therefore
    /// increments a single reference count.
    base: Option<Arc<Base<T>>>,
    tail_len: u32,
}

struct Base<T: Item> {
    /// All items except those of the tail.
    body: Option<Subtree<T>>,
    /// The slots of the tail.
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
    /// Builds the tree in O(n).
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let items: Vec<T> = items.into_iter().collect();
        Self::from_body(Subtree::build(items.into_iter()))
    }
}

impl<T: Item> Extend<T> for SumTree<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        let items = items.into_iter();
        // A few items are pushed one by one; a long list is built as a tree and joined.
        if items.size_hint().1.is_some_and(|upper| upper <= 2 * leaf_size::<T>()) {
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

    /// A sequence of `count` clones of an item. It uses O(log n) memory, because nodes are shared.
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

    /// A tree whose tail is the first `tail_len` slots of `chunk`.
    fn from_parts(body: Option<Subtree<T>>, chunk: Option<Chunk<T>>, tail_len: usize) -> Self {
        let chunk = chunk.filter(|_| tail_len > 0);
        let is_empty = body.is_none() && chunk.is_none();
        let base = (!is_empty).then(|| Arc::new(Base { body, chunk }));
        SumTree { base, tail_len: tail_len as u32 }
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        self.body_len() + self.tail_len as usize
    }

    /// True if there are no items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The summary of all items: that of the body, plus the items of the tail. For a single number,
    /// [`measure`](Self::measure) is faster.
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

    /// Number of levels of inner nodes.
    pub(crate) fn height(&self) -> u8 {
        self.body().map_or(0, |body| body.height)
    }

    pub(crate) fn tail(&self) -> Tail<'_, T> {
        Tail::new(self.chunk(), self.tail_len as usize)
    }

    /// Number of items before the tail.
    pub(crate) fn body_len(&self) -> usize {
        self.body().map_or(0, |body| body.entry.count())
    }

    /// All items, including the tail, as a tree without a tail.
    pub(crate) fn whole(&self) -> Option<Subtree<T>> {
        let tail = self.tail().items();
        if tail.len() == 0 {
            return self.body().cloned();
        }
        let tail = Subtree { entry: Entry::leaf(tail.cloned()), height: 0 };
        Some(self.body().map_or_else(|| tail.clone(), |body| body.join(&tail)))
    }

    /// True if the trees share their nodes and therefore have the same items. False does not mean that
    /// the items differ.
    pub fn is_clone_of(&self, other: &Self) -> bool {
        let has_same_base = match (&self.base, &other.base) {
            (Some(base), Some(other)) => Arc::ptr_eq(base, other),
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

    /// The summary of the leaf that contains `position`; `None` in the tail. It allows a check of a
    /// property of the item without reading the leaf, which is often not in the CPU cache.
    pub fn summary_around(&self, position: usize) -> Option<&T::Summary> {
        self.entry_around(position).map(|(leaf, _)| &leaf.summary)
    }

    /// The leaf that contains `position`, and the index in it; `None` in the tail.
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

    /// Appends an item. O(1), and O(log n) each time the tail is full.
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

    /// The items of `range` as a new sequence, in O(log n).
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Self {
        let Range { start, end } = clamp(range, self.len());
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

    /// Appends all items of `other`, in O(log n).
    pub fn append(&mut self, other: &Self) {
        if other.is_empty() {
            return;
        }
        if self.is_empty() {
            *self = other.clone();
            return;
        }
        let Some(body) = other.body() else {
            // `other` is only a tail. Pushing its items keeps the tail of this tree shared with clones.
            other.tail().items().for_each(|item| self.push(item.clone()));
            return;
        };
        let joined = self.whole().map(|whole| whole.join(body));
        *self = Self::from_parts(joined, other.chunk().cloned(), other.tail().len());
    }

    /// Replaces `range` with `items`. O(log n) plus the number of new items.
    pub fn splice(&mut self, range: impl RangeBounds<usize>, items: impl IntoIterator<Item = T>) {
        let Range { start, end } = clamp(range, self.len());
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

    /// A splice inside the tail. If the tail becomes too long, it moves into the body.
    fn splice_tail(&self, start: usize, end: usize, items: Vec<T>) -> Self {
        let before = self.tail().items().take(start).cloned();
        let after = self.tail().items().skip(end).cloned();
        let all: Vec<T> = before.chain(items).chain(after).collect();
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

/// Edits one leaf and copies the path to it. `None` if the edit concerns several leaves, makes the leaf
/// less than half full, or needs more than two leaves. The caller then splits and joins.
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
            let min = if is_root { 1 } else { leaf_min::<T>() };
            if len < min || len > 2 * leaf_size::<T>() {
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

/// Clamps `range` to a sequence of `len` items.
pub(crate) fn clamp(range: impl RangeBounds<usize>, len: usize) -> Range<usize> {
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
