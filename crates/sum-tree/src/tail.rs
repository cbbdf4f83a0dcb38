//! The tail: the newest items of a tree, in a chunk of slots that clones share.
//!
//! A tree reads only the slots below its tail length, and a slot is written once. A push to one clone
//! therefore never affects another. If the next slot of a clone is taken, a push copies the chunk.

use std::sync::OnceLock;

use triomphe::ThinArc;

use crate::{Item, node};

/// Slots for the items of one leaf.
pub(crate) type Chunk<T> = ThinArc<(), OnceLock<T>>;

/// A chunk whose first slots contain `items`: at most as many as fit into a leaf.
pub(crate) fn chunk<T: Item>(mut items: impl Iterator<Item = T>) -> Chunk<T> {
    let slot = |_| items.next().map_or_else(OnceLock::new, OnceLock::from);
    ThinArc::from_header_and_iter((), (0..node::leaf_size::<T>()).map(slot))
}

/// The tail of a tree: fewer items than a leaf can hold.
pub(crate) struct Tail<'a, T> {
    /// The slots below the tail length. All of them are filled.
    slots: &'a [OnceLock<T>],
}

impl<'a, T> Tail<'a, T> {
    pub(crate) fn new(chunk: Option<&'a Chunk<T>>, len: usize) -> Self {
        Tail { slots: chunk.map_or(&[], |chunk| &chunk.slice[..len]) }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn slots(&self) -> &'a [OnceLock<T>] {
        self.slots
    }

    pub(crate) fn items(&self) -> impl ExactSizeIterator<Item = &'a T> + Clone + use<'a, T> {
        self.slots.iter().map(filled)
    }

    pub(crate) fn get(&self, at: usize) -> Option<&'a T> {
        self.slots.get(at).map(filled)
    }

    /// Address of the chunk; 0 if the tail is empty.
    pub(crate) fn address(&self) -> usize {
        if self.slots.is_empty() { 0 } else { self.slots.as_ptr().addr() }
    }

    /// Number of leading items in a chunk that both tails share.
    pub(crate) fn shared_with(&self, other: &Self) -> usize {
        if self.address() == other.address() { self.len().min(other.len()) } else { 0 }
    }
}

pub(crate) fn filled<T>(slot: &OnceLock<T>) -> &T {
    slot.get().expect("slots below the tail length are filled")
}
