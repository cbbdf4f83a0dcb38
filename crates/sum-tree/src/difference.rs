//! Comparison of two trees that skips the nodes they share.
//!
//! Nodes are compared by address, level by level from the root: nodes that are in both trees are paired,
//! and only the others are opened. The cost depends on the differences, not on the size of the trees.

use std::collections::HashMap;

use crate::iter::Run;
use crate::node::Link;
use crate::{Item, SumTree};

/// A range of consecutive items of one tree.
#[derive(Clone, Copy, Debug)]
pub struct Block<'a, T: Item> {
    /// Position of its first item.
    pub start: usize,
    /// Number of items.
    pub len: usize,
    /// Position of the same block in the other tree, if the trees share it.
    pub shared: Option<usize>,
    run: Option<Run<'a, T>>,
}

impl<'a, T: Item> Block<'a, T> {
    /// The items of a block that is not shared. Empty for a shared block.
    pub fn items(&self) -> impl Iterator<Item = &'a T> + use<'a, T> {
        self.run.into_iter().flat_map(Run::iter)
    }
}

/// Two trees, divided into blocks; see [`SumTree::difference`].
#[derive(Clone, Debug)]
pub struct Difference<'a, T: Item> {
    /// The blocks of the first tree, in order.
    pub left: Vec<Block<'a, T>>,
    /// The blocks of the second tree, in order.
    pub right: Vec<Block<'a, T>>,
}

impl<T: Item> SumTree<T> {
    /// Compares this tree with `other`. Blocks that are not shared may still have equal items; the caller
    /// has to compare those.
    pub fn difference<'a>(&'a self, other: &'a Self) -> Difference<'a, T> {
        let mut left = Side::new(self);
        let mut right = Side::new(other);
        for height in (0..=self.height().max(other.height())).rev() {
            pair_off(&mut left, &mut right, height);
            left.open(height);
            right.open(height);
        }
        let shared = self.tail().shared_with(&other.tail());
        left.finish(self, shared, other.body_len());
        right.finish(other, shared, self.body_len());
        Difference { left: left.blocks, right: right.blocks }
    }

    /// Number of leading items that are equal in both trees. `same` compares two items. Shared nodes at
    /// the same position are skipped.
    pub fn common_prefix(&self, other: &Self, same: impl Fn(&T, &T) -> bool) -> usize {
        let mut at = 0;
        let end = self.len().min(other.len());
        while at < end {
            let shared = shared_at(self, other, at);
            if shared > 0 {
                at += shared;
                continue;
            }
            // No shared node starts here: compare up to the end of the leaf.
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

    /// Addresses and item counts of the nodes whose first item has this position, from the highest down.
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

/// Length of the longest shared block that starts at `at` in both trees.
fn shared_at<T: Item>(a: &SumTree<T>, b: &SumTree<T>, at: usize) -> usize {
    if at == a.body_len() && at == b.body_len() {
        return a.tail().shared_with(&b.tail());
    }
    let nodes_of_b = b.nodes_at(at);
    let found = a.nodes_at(at).into_iter().find(|node| nodes_of_b.contains(node));
    found.map_or(0, |(_, count)| count)
}

/// The state of one tree during a comparison.
struct Side<'a, T: Item> {
    /// Nodes that are neither paired nor opened yet.
    unpaired: Vec<UnpairedNode<'a, T>>,
    blocks: Vec<Block<'a, T>>,
}

struct UnpairedNode<'a, T: Item> {
    /// Position of its first item.
    start: usize,
    len: usize,
    height: u8,
    link: &'a Link<T>,
}

impl<'a, T: Item> Side<'a, T> {
    fn new(tree: &'a SumTree<T>) -> Self {
        let root = tree.root().map(|link| UnpairedNode {
            start: 0,
            len: tree.body_len(),
            height: tree.height(),
            link,
        });
        Side { unpaired: root.into_iter().collect(), blocks: Vec::new() }
    }

    /// Replaces nodes of this height with their children, and leaves with blocks.
    fn open(&mut self, height: u8) {
        let mut next = Vec::with_capacity(self.unpaired.len());
        for node in self.unpaired.drain(..) {
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
                        next.push(UnpairedNode {
                            start,
                            len,
                            height: height - 1,
                            link: &child.link,
                        });
                        start += len;
                    }
                }
            }
        }
        self.unpaired = next;
    }

    /// Sorts the blocks and adds the tail. The first `shared` items of the tail are at position
    /// `other_start` of the other tree.
    fn finish(&mut self, tree: &'a SumTree<T>, shared: usize, other_start: usize) {
        self.blocks.sort_unstable_by_key(|block| block.start);
        let start = tree.body_len();
        if shared > 0 {
            self.blocks.push(Block { start, len: shared, shared: Some(other_start), run: None });
        }
        let len = tree.tail().len() - shared;
        if len > 0 {
            let run = Some(Run::slots(&tree.tail().slots()[shared..]));
            self.blocks.push(Block { start: start + shared, len, shared: None, run });
        }
    }
}

/// Pairs the nodes of this height that are in both trees, and converts them to shared blocks.
fn pair_off<T: Item>(left: &mut Side<'_, T>, right: &mut Side<'_, T>, height: u8) {
    let mut left_starts: HashMap<usize, usize> = HashMap::new();
    for node in left.unpaired.iter().filter(|node| node.height == height) {
        left_starts.insert(node.link.address(), node.start);
    }
    let mut right_starts: HashMap<usize, usize> = HashMap::new();
    right.unpaired.retain(|node| {
        let address = node.link.address();
        if node.height != height || right_starts.contains_key(&address) {
            return true;
        }
        let Some(&start) = left_starts.get(&address) else { return true };
        right_starts.insert(address, node.start);
        right.blocks.push(Block {
            start: node.start,
            len: node.len,
            shared: Some(start),
            run: None,
        });
        false
    });
    left.unpaired.retain(|node| {
        if node.height != height || left_starts.get(&node.link.address()) != Some(&node.start) {
            return true;
        }
        let Some(&start) = right_starts.get(&node.link.address()) else { return true };
        left.blocks.push(Block {
            start: node.start,
            len: node.len,
            shared: Some(start),
            run: None,
        });
        false
    });
}
