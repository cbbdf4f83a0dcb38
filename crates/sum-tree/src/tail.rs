//! The newest items of a tree, in a chunk of slots that clones share.
//!
//! A tail value reads only the slots below its own length, and a slot is written once: so a clone
//! that pushes never disturbs another one. Whoever finds the next slot taken copies the chunk.

use std::sync::OnceLock;

use triomphe::ThinArc;

use crate::{Item, node};

/// The detached tail: at most one leaf of items.
#[derive(Clone)]
pub(crate) struct Tail<T> {
    slots: Option<ThinArc<(), OnceLock<T>>>,
    len: u32,
}

impl<T> Default for Tail<T> {
    fn default() -> Self {
        Tail { slots: None, len: 0 }
    }
}

impl<T: Item> Tail<T> {
    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }

    pub(crate) fn is_full(&self) -> bool {
        self.len() >= node::leaf_size::<T>()
    }

    /// The slots that this value may read; all of them are filled.
    pub(crate) fn slots(&self) -> &[OnceLock<T>] {
        match &self.slots {
            Some(slots) => &slots.slice[..self.len()],
            None => &[],
        }
    }

    pub(crate) fn items(&self) -> impl ExactSizeIterator<Item = &T> + Clone {
        self.slots().iter().map(filled)
    }

    pub(crate) fn get(&self, at: usize) -> Option<&T> {
        self.slots().get(at).map(filled)
    }

    /// Adds an item behind the others. The caller empties a full tail first.
    pub(crate) fn push(&mut self, item: T) {
        let at = self.len();
        let taken = match &self.slots {
            Some(slots) => match slots.slice.get(at) {
                Some(slot) => slot.set(item),
                None => Err(item),
            },
            None => Err(item),
        };
        if let Err(item) = taken {
            let kept = self.items().cloned().chain([item]);
            self.slots = Some(chunk(kept.collect()));
        }
        self.len += 1;
    }

    /// The first `len` items, in the same shared chunk.
    pub(crate) fn prefix(&self, len: usize) -> Self {
        debug_assert!(len <= self.len());
        Tail { slots: if len == 0 { None } else { self.slots.clone() }, len: len as u32 }
    }

    pub(crate) fn from_items(items: Vec<T>) -> Self {
        let len = items.len() as u32;
        let slots = if items.is_empty() { None } else { Some(chunk(items)) };
        Tail { slots, len }
    }

    /// Where the chunk is; 0 if there is none.
    pub(crate) fn address(&self) -> usize {
        self.slots.as_ref().map_or(0, |slots| slots.slice.as_ptr().addr())
    }

    /// How many items at the front both have in one shared chunk.
    pub(crate) fn shared_with(&self, other: &Self) -> usize {
        if self.address() == other.address() { self.len().min(other.len()) } else { 0 }
    }
}

/// A chunk with room for a leaf of items, the first of which are given.
fn chunk<T: Item>(items: Vec<T>) -> ThinArc<(), OnceLock<T>> {
    let mut slots: Vec<OnceLock<T>> = items.into_iter().map(OnceLock::from).collect();
    slots.resize_with(node::leaf_size::<T>().max(slots.len()), OnceLock::new);
    ThinArc::from_header_and_iter((), slots.into_iter())
}

pub(crate) fn filled<T>(slot: &OnceLock<T>) -> &T {
    slot.get().expect("slots below a tail's length are filled")
}
