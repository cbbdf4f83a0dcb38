//! The newest items of a tree, in a chunk of slots that clones share.
//!
//! A tree reads only as many slots as it has items there, and a slot is written once: so a clone
//! that pushes never disturbs another one. Whoever finds the next slot taken copies the chunk.

use std::sync::OnceLock;

use triomphe::ThinArc;

use crate::{Item, node};

/// Room for a leaf of items.
pub(crate) type Chunk<T> = ThinArc<(), OnceLock<T>>;

/// A chunk of which the first slots hold `items`: at most one leaf's worth.
pub(crate) fn chunk<T: Item>(mut items: impl Iterator<Item = T>) -> Chunk<T> {
    let slot = |_| items.next().map_or_else(OnceLock::new, OnceLock::from);
    ThinArc::from_header_and_iter((), (0..node::leaf_size::<T>()).map(slot))
}

/// The detached tail of a tree, as it is read: less than a leaf of items.
pub(crate) struct Tail<'a, T> {
    /// The slots that the tree may read; all of them are filled.
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

    /// Where the chunk is; 0 if nothing of it is read.
    pub(crate) fn address(&self) -> usize {
        if self.slots.is_empty() { 0 } else { self.slots.as_ptr().addr() }
    }

    /// How many items at the front both have in one shared chunk.
    pub(crate) fn shared_with(&self, other: &Self) -> usize {
        if self.address() == other.address() { self.len().min(other.len()) } else { 0 }
    }
}

pub(crate) fn filled<T>(slot: &OnceLock<T>) -> &T {
    slot.get().expect("slots below a tail's length are filled")
}
