//! A persistent sequence with summaries.
//!
//! [`SumTree`] is a B+ tree of shared, immutable nodes. A clone takes O(1). An edit copies the path from
//! the root to the changed leaf and shares all other nodes with the tree before it, so keeping every
//! version of a long sequence is cheap.
//!
//! The crate has three concepts:
//!
//! - An [`Item`] is an element of the sequence. It can be added to a [`Summary`].
//! - Every node is stored in its parent together with the summary of the items below it.
//! - A [`Dimension`] extracts a number from a summary, such as the number of items or tokens. Any
//!   dimension can be used to [`seek`](SumTree::seek), to [`measure`](SumTree::measure) a range, and to
//!   [`visit`](SumTree::visit) the tree while skipping irrelevant nodes.
//!
//! Invariants: every leaf has the same depth; every node except the root is at least half full; the
//! summary of a node is the sum of the items below it. [`SumTree::check`] tests all of them.
//!
//! The newest items are in a detached **tail** that clones share: a push claims the next free slot of
//! the tail and copies nothing. If another clone has already claimed the slot, the tail (less than one
//! leaf) is copied.
//!
//! ```text
//!                  ┌───────────┬───────────┐
//!    body ───►     │ Σ  ●      │ Σ  ●      │           tail: the newest items, in slots
//!                  └────┼──────┴────┼──────┘                 ┌──┬──┬──┬──┬──┬──┐
//!               ┌───────┴┐      ┌───┴────┐                   │ x│ y│ z│  │  │  │  shared by clones;
//!               │Σ ● Σ ● │      │Σ ● Σ ● │                   └──┴──┴──┴──┴──┴──┘  each has its own length
//!               └──┼───┼─┘      └──┼───┼─┘
//!                [items] …
//! ```
//!
//! A comparison of two trees skips the nodes that they share, so its cost is proportional to the
//! difference.
//!
//! ```
//! use sum_tree::{Count, Dimension, Item, SumTree, Summary};
//!
//! #[derive(Clone, Debug)]
//! struct Word(&'static str);
//!
//! #[derive(Clone, Default, Debug)]
//! struct Size { words: usize, bytes: usize }
//!
//! impl Summary for Size {
//!     fn add(&mut self, later: &Self) {
//!         self.words += later.words;
//!         self.bytes += later.bytes;
//!     }
//!     fn count(&self) -> usize { self.words }
//! }
//!
//! impl Item for Word {
//!     type Summary = Size;
//!     fn add_to(&self, size: &mut Size) {
//!         size.words += 1;
//!         size.bytes += self.0.len();
//!     }
//! }
//!
//! struct Bytes;
//! impl Dimension<Word> for Bytes {
//!     fn of_summary(&self, size: &Size) -> u64 { size.bytes as u64 }
//!     fn of_item(&self, word: &Word) -> u64 { word.0.len() as u64 }
//! }
//!
//! let words: SumTree<Word> = ["to", "be", "or", "not"].map(Word).into_iter().collect();
//! let mut edited = words.clone();               // O(1)
//! edited.splice(2..3, [Word("and")]);           // copies one path
//!
//! assert_eq!(edited.get(2).unwrap().0, "and");
//! assert_eq!(words.get(2).unwrap().0, "or");    // the older value is unchanged
//! assert_eq!(words.summary().bytes, 9);
//! assert_eq!(words.seek(5, &Bytes).unwrap().position, 2); // the sixth byte is in "or"
//! assert_eq!(words.measure(1..3, &Bytes), 4);
//! ```
//!
//! Where to go next: `tree.rs` implements edits, `node.rs` nodes and the join of two subtrees, `tail.rs`
//! the tail, `seek.rs` and `iter.rs` reading, `retain.rs` filtering, and `difference.rs` a comparison
//! that skips shared nodes.

mod check;
mod difference;
mod iter;
mod node;
mod retain;
mod seek;
mod tail;
#[cfg(test)]
mod tests;
mod tree;

pub use check::{Fault, KnownNodes};
pub use difference::{Block, Difference};
pub use iter::{Iter, Run, Runs};
pub use retain::Keep;
pub use seek::{Found, Seen};
pub use tree::SumTree;

/// An element of a [`SumTree`].
pub trait Item: Clone {
    /// The summary of a sequence of items.
    type Summary: Summary;

    /// Maximum number of items of a leaf. Small items need long leaves, large items short ones.
    const LEAF: usize = 32;

    /// Maximum number of children of an inner node. An edit copies one node per level: with a summary of
    /// 64 bytes, six children keep the copies below 4 KB for a million items. With small summaries, more
    /// children make the tree lower and faster to read.
    const FAN: usize = 6;

    /// Adds this item to a summary, after the items that it already contains.
    fn add_to(&self, summary: &mut Self::Summary);

    /// The summary of several items. Override it if adding many items at once is faster.
    fn sum<'a>(items: impl Iterator<Item = &'a Self> + Clone) -> Self::Summary
    where
        Self: 'a,
    {
        items.fold(Self::Summary::default(), |mut sum, item| {
            item.add_to(&mut sum);
            sum
        })
    }
}

/// The summary of a sequence of items. The default value is the summary of no items.
pub trait Summary: Clone + Default {
    /// Adds the summary of the items that directly follow. The order matters for a summary that describes
    /// the ends of its sequence.
    fn add(&mut self, later: &Self);

    /// Number of items.
    fn count(&self) -> usize;

    /// The sum of the summaries of consecutive sequences. Override it like [`Item::sum`].
    fn sum<'a>(parts: impl Iterator<Item = &'a Self> + Clone) -> Self
    where
        Self: 'a,
    {
        parts.fold(Self::default(), |mut sum, part| {
            sum.add(part);
            sum
        })
    }
}

/// A number that grows along the sequence, by which it can be searched and measured.
pub trait Dimension<T: Item> {
    /// The value of the dimension for all items of a summary.
    fn of_summary(&self, summary: &T::Summary) -> u64;

    /// The value of the dimension for one item.
    fn of_item(&self, item: &T) -> u64;
}

/// The number of items, a dimension of every tree.
#[derive(Clone, Copy, Debug, Default)]
pub struct Count;

impl<T: Item> Dimension<T> for Count {
    fn of_summary(&self, summary: &T::Summary) -> u64 {
        summary.count() as u64
    }

    fn of_item(&self, _: &T) -> u64 {
        1
    }
}

/// A summary that only counts items. A tree with it is a persistent list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Length(pub usize);

impl Summary for Length {
    fn add(&mut self, later: &Self) {
        self.0 += later.0;
    }

    fn count(&self) -> usize {
        self.0
    }
}
