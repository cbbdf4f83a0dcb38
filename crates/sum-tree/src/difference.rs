//! Comparing two trees without looking into what they share.
//!
//! Nodes are compared by where they are: from the top level down, nodes that stand in both trees
//! are paired off, and only the others are opened. So the cost is that of what differs, not that of
//! the trees.

use std::collections::HashMap;

use crate::iter::Run;
use crate::node::Link;
use crate::{Item, SumTree};

/// A stretch of one tree.
#[derive(Clone, Copy, Debug)]
pub struct Block<'a, T: Item> {
    /// The position of its first item.
    pub start: usize,
    /// How many items it has.
    pub len: usize,
    /// Where the same stretch stands in the other tree, if the two share it.
    pub shared: Option<usize>,
    run: Option<Run<'a, T>>,
}

impl<'a, T: Item> Block<'a, T> {
    /// The items of a stretch that is not shared; nothing for a shared one.
    pub fn items(&self) -> impl Iterator<Item = &'a T> + use<'a, T> {
        self.run.into_iter().flat_map(Run::iter)
    }
}

/// Two trees cut into stretches, in order; see [`SumTree::difference`].
#[derive(Clone, Debug)]
pub struct Difference<'a, T: Item> {
    /// The stretches of the tree that was asked.
    pub left: Vec<Block<'a, T>>,
    /// The stretches of the tree it was compared with.
    pub right: Vec<Block<'a, T>>,
}

impl<T: Item> SumTree<T> {
    /// Compares this tree with `other`. Whatever is not marked as shared may still hold equal
    /// items: the caller looks at those itself.
    pub fn difference<'a>(&'a self, other: &'a Self) -> Difference<'a, T> {
        let mut left = Side::new(self);
        let mut right = Side::new(other);
        for height in (0..=self.height().max(other.height())).rev() {
            pair_off(&mut left, &mut right, height);
            left.open(height);
            right.open(height);
        }
        let shared = self.tail().shared_with(&other.tail());
        left.close(self, shared, other.body_len());
        right.close(other, shared, self.body_len());
        Difference { left: left.blocks, right: right.blocks }
    }

    /// How many items at the front are the same in both trees, where `same` compares two items.
    /// Shared nodes at the same position are not looked into.
    pub fn common_prefix(&self, other: &Self, same: impl Fn(&T, &T) -> bool) -> usize {
        let mut at = 0;
        let end = self.len().min(other.len());
        while at < end {
            let shared = shared_at(self, other, at);
            if shared > 0 {
                at += shared;
                continue;
            }
            // No shared node starts here: compare to the end of this leaf, then look again.
            let (Some(a), Some(b)) = (self.runs(at..).next(), other.runs(at..).next()) else {
                break;
            };
            let equal = a.iter().zip(b.iter()).take_while(|(a, b)| same(a, b)).count();
            at += equal;
            if equal < a.len().min(b.len()) {
                return at;
            }
        }
        at.min(end)
    }

    /// The nodes whose first item has this position, highest first, with their counts.
    fn nodes_at(&self, position: usize) -> Vec<(usize, usize)> {
        let mut nodes = Vec::new();
        let Some(mut link) = self.root() else { return nodes };
        let (mut at, mut count) = (0, self.body_len());
        if position >= count {
            return nodes;
        }
        loop {
            if at == position {
                nodes.push((link.address(), count));
            }
            let Some(child) = link.children().iter().find(|child| {
                let inside = position < at + child.count();
                if !inside {
                    at += child.count();
                }
                inside
            }) else {
                return nodes;
            };
            link = &child.link;
            count = child.count();
        }
    }
}

/// The length of the longest stretch that both trees share and that starts at `at` in both.
fn shared_at<T: Item>(a: &SumTree<T>, b: &SumTree<T>, at: usize) -> usize {
    if at == a.body_len() && at == b.body_len() {
        return a.tail().shared_with(&b.tail());
    }
    let theirs = b.nodes_at(at);
    let found = a.nodes_at(at).into_iter().find(|node| theirs.contains(node));
    found.map_or(0, |(_, count)| count)
}

/// One of the two trees while they are compared.
struct Side<'a, T: Item> {
    /// Nodes that are neither paired off nor opened yet, with the position of their first item and
    /// their height and count.
    waiting: Vec<Waiting<'a, T>>,
    blocks: Vec<Block<'a, T>>,
}

struct Waiting<'a, T: Item> {
    start: usize,
    len: usize,
    height: u8,
    link: &'a Link<T>,
}

impl<'a, T: Item> Side<'a, T> {
    fn new(tree: &'a SumTree<T>) -> Self {
        let root = tree.root().map(|link| Waiting {
            start: 0,
            len: tree.body_len(),
            height: tree.height(),
            link,
        });
        Side { waiting: root.into_iter().collect(), blocks: Vec::new() }
    }

    /// Replaces nodes of this height by their children, and leaves by their items.
    fn open(&mut self, height: u8) {
        let mut next = Vec::with_capacity(self.waiting.len());
        for node in self.waiting.drain(..) {
            if node.height != height {
                next.push(node);
                continue;
            }
            match node.link {
                Link::Leaf(items) => self.blocks.push(Block {
                    start: node.start,
                    len: node.len,
                    shared: None,
                    run: Some(Run::items(&items.slice)),
                }),
                Link::Inner(children) => {
                    let mut start = node.start;
                    for child in &children.slice {
                        let len = child.count();
                        next.push(Waiting { start, len, height: height - 1, link: &child.link });
                        start += len;
                    }
                }
            }
        }
        self.waiting = next;
    }

    /// Adds the tail, of which `shared` items stand in the other one at `elsewhere`.
    fn close(&mut self, tree: &'a SumTree<T>, shared: usize, elsewhere: usize) {
        self.blocks.sort_unstable_by_key(|block| block.start);
        let start = tree.body_len();
        if shared > 0 {
            self.blocks.push(Block { start, len: shared, shared: Some(elsewhere), run: None });
        }
        let len = tree.tail().len() - shared;
        if len > 0 {
            let run = Some(Run::slots(&tree.tail().slots()[shared..]));
            self.blocks.push(Block { start: start + shared, len, shared: None, run });
        }
    }
}

/// Takes nodes of this height that both sides have out of both.
fn pair_off<T: Item>(left: &mut Side<'_, T>, right: &mut Side<'_, T>, height: u8) {
    let mut here: HashMap<usize, usize> = HashMap::new();
    for node in left.waiting.iter().filter(|node| node.height == height) {
        here.insert(node.link.address(), node.start);
    }
    let mut pairs: HashMap<usize, usize> = HashMap::new();
    right.waiting.retain(|node| {
        let address = node.link.address();
        if node.height != height || pairs.contains_key(&address) {
            return true;
        }
        let Some(&start) = here.get(&address) else { return true };
        pairs.insert(address, node.start);
        right.blocks.push(Block {
            start: node.start,
            len: node.len,
            shared: Some(start),
            run: None,
        });
        false
    });
    left.waiting.retain(|node| {
        if node.height != height || here.get(&node.link.address()) != Some(&node.start) {
            return true;
        }
        let Some(&start) = pairs.get(&node.link.address()) else { return true };
        left.blocks.push(Block {
            start: node.start,
            len: node.len,
            shared: Some(start),
            run: None,
        });
        false
    });
}
