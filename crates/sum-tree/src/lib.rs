//! A persistent sequence whose nodes carry a summary of what is below them.
//!
//! [`SumTree`] is a B+ tree of shared, immutable nodes. Cloning one costs O(1); an edit copies the
//! path from the root to the place that changed and shares everything else with the tree before it,
//! so keeping every version of a long sequence is cheap.
//!
//! Three ideas carry the crate:
//!
//! - an [`Item`] is what the sequence holds, and adds itself to a [`Summary`];
//! - every node stands in its parent beside the sum of the items below it;
//! - a [`Dimension`] reads one number out of a summary (how many, how many tokens …), and any
//!   dimension can be used to [`seek`](SumTree::seek), to [`measure`](SumTree::measure) a range, or
//!   to walk the tree while leaving out what cannot matter ([`visit`](SumTree::visit)).
//!
//! What always holds: every leaf is at the same depth; every node but the root is at least half
//! full; the summary beside a node is the sum of what is below it. [`SumTree::check`] tests it all.
//!
//! The newest items stand in a detached **tail** that clones share: a push into it claims the next
//! free slot and copies nothing. Only when another clone has claimed that slot before is the tail
//! (never more than one leaf) copied.
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
//! assert_eq!(words.get(2).unwrap().0, "or");    // the older value is untouched
//! assert_eq!(words.summary().bytes, 9);
//! assert_eq!(words.seek(5, &Bytes).unwrap().position, 2); // the sixth byte is in "or"
//! assert_eq!(words.measure(1..3, &Bytes), 4);
//! ```
//!
//! Where to go next: `tree.rs` holds the edits, `node.rs` how two subtrees are joined, `seek.rs`
//! and `iter.rs` the ways to read, `difference.rs` the comparison that skips what two trees share.

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

/// What a [`SumTree`] holds.
pub trait Item: Clone {
    /// What a node knows of the items below it.
    type Summary: Summary;

    /// How many items a leaf holds at most. Small items want long leaves, large items short ones.
    const LEAF: usize = 32;

    /// How many children an inner node has at most. An edit copies one node of each level: with a
    /// summary of 64 bytes, six children keep that below 4 KB for a million items. Where summaries
    /// are small, more children make the tree lower and quicker to read.
    const FAN: usize = 6;

    /// Adds this item to the end of what `summary` sums up.
    fn add_to(&self, summary: &mut Self::Summary);

    /// The summary of several items. Override it where adding one by one does work that a longer
    /// stretch can do at once.
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

/// What a node knows of the items below it. The default value sums up nothing.
pub trait Summary: Clone + Default {
    /// Adds what stands right behind the items summed up so far. The order matters where the
    /// summary says something of its edges.
    fn add(&mut self, later: &Self);

    /// How many items are summed up.
    fn count(&self) -> usize;

    /// The sum of several stretches that stand one behind the other. Override it like
    /// [`Item::sum`].
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

/// One number that grows along the sequence, by which it can be sought and measured.
pub trait Dimension<T: Item> {
    /// The number for all items that `summary` sums up.
    fn of_summary(&self, summary: &T::Summary) -> u64;

    /// The number for one item.
    fn of_item(&self, item: &T) -> u64;
}

/// The dimension that every tree has: how many items.
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

/// The summary for items of which only the number matters: a tree of them is a persistent list.
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
