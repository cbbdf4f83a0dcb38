//! Filtering: keeps some items in order, and shares large nodes whose items are all kept.

use crate::node::{Entry, Link, Subtree, leaf_size};
use crate::{Item, SumTree};

/// Which items below a node are kept. The enum is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// All items.
    All,
    /// No item.
    None,
    /// Some items. The node is entered.
    Some,
}

impl<T: Item> SumTree<T> {
    /// The kept items as a new sequence. `keep_node` decides for all items below a node, `keep` for a
    /// single item. Both receive the position of the (first) item, in increasing order.
    ///
    /// A node for which `keep_node` returns [`Keep::All`] is shared with this tree, not copied, if it has at
    /// least as many items as three full leaves. `keep_node` is not called for the root.
    pub fn retain(
        &self,
        mut keep_node: impl FnMut(usize, &T::Summary) -> Keep,
        mut keep: impl FnMut(usize, &T) -> bool,
    ) -> Self {
        let mut kept = Builder { joined: None, leaves: Vec::new(), items: Vec::new() };
        if let Some(root) = self.root() {
            kept.take(root, self.height(), 0, &mut keep_node, &mut keep);
        }
        let body = self.body_len();
        for (number, item) in self.tail().items().enumerate() {
            if keep(body + number, item) {
                kept.push(item);
            }
        }
        kept.finish()
    }
}

/// Builds the sequence of kept items.
struct Builder<'a, T: Item> {
    joined: Option<Subtree<T>>,
    /// Full leaves after `joined`.
    leaves: Vec<Entry<T>>,
    /// Kept items after the leaves, too few for a leaf.
    items: Vec<&'a T>,
}

impl<'a, T: Item> Builder<'a, T> {
    fn take(
        &mut self,
        link: &'a Link<T>,
        height: u8,
        at: usize,
        keep_node: &mut impl FnMut(usize, &T::Summary) -> Keep,
        keep: &mut impl FnMut(usize, &T) -> bool,
    ) {
        match link {
            Link::Leaf(items) => {
                for (number, item) in items.slice.iter().enumerate() {
                    if keep(at + number, item) {
                        self.push(item);
                    }
                }
            }
            Link::Inner(children) => {
                let mut at = at;
                for child in &children.slice {
                    match keep_node(at, &child.summary) {
                        Keep::All => self.take_all(child, height - 1),
                        Keep::None => {}
                        Keep::Some => self.take(&child.link, height - 1, at, keep_node, keep),
                    }
                    at += child.count();
                }
            }
        }
    }

    fn take_all(&mut self, entry: &'a Entry<T>, height: u8) {
        // A join is more expensive than copying a few leaves.
        if entry.count() >= 3 * leaf_size::<T>() {
            self.flush();
            let part = Subtree { entry: entry.clone(), height };
            self.joined = Subtree::join_some(self.joined.take(), Some(part));
        } else {
            self.copy(&entry.link);
        }
    }

    fn copy(&mut self, link: &'a Link<T>) {
        match link {
            Link::Leaf(items) => items.slice.iter().for_each(|item| self.push(item)),
            Link::Inner(children) => children.slice.iter().for_each(|child| self.copy(&child.link)),
        }
    }

    fn push(&mut self, item: &'a T) {
        self.items.push(item);
        if self.items.len() == leaf_size::<T>() {
            self.leaves.push(Entry::leaf_of(&self.items));
            self.items.clear();
        }
    }

    /// Appends the leaves and the items to `joined`.
    fn flush(&mut self) {
        let leaves = Subtree::gather(std::mem::take(&mut self.leaves));
        self.joined = Subtree::join_some(self.joined.take(), leaves);
        if !self.items.is_empty() {
            let last = Subtree { entry: Entry::leaf_of(&self.items), height: 0 };
            self.joined = Subtree::join_some(self.joined.take(), Some(last));
            self.items.clear();
        }
    }

    fn finish(mut self) -> SumTree<T> {
        self.flush();
        SumTree::from_body(self.joined)
    }
}
