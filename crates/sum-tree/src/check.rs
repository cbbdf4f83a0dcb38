//! A check of the invariants of a tree.

use std::collections::HashSet;
use std::fmt;

use crate::node::{Entry, Link, leaf_min, leaf_size, max_children, min_children, summarize};
use crate::{Item, SumTree, Summary};

/// An invariant that [`SumTree::check`] found violated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault(String);

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Fault {}

/// Nodes that [`SumTree::check_except`] has checked, by address and height.
#[derive(Debug, Default)]
pub struct KnownNodes(HashSet<(usize, u8)>);

impl<T: Item> SumTree<T>
where
    T::Summary: PartialEq + fmt::Debug,
{
    /// Checks that the tree is balanced, that the size of every node is within its limits, and that every
    /// summary is the sum of the items below it. O(n).
    pub fn check(&self) -> Result<(), Fault> {
        self.check_except(&mut KnownNodes::default())
    }

    /// Like [`check`](Self::check), but skips the nodes in `known`, and adds the nodes that it checks.
    /// Checking many trees that share most of their nodes takes little longer than checking one. All trees
    /// that were checked with the same `known` must stay alive while it is used, because it identifies nodes
    /// by address.
    pub fn check_except(&self, known: &mut KnownNodes) -> Result<(), Fault> {
        if let Some(root) = self.root() {
            check_link(root, self.height(), true, known)?;
            let summary = self.body_summary().expect("a root has a summary");
            equal("the body", summary, &summarize(root))?;
        }
        match self.tail().len() {
            len if len < leaf_size::<T>() => Ok(()),
            len => Err(Fault(format!("the tail has {len} items, enough for a leaf"))),
        }
    }
}

fn check_entry<T: Item>(entry: &Entry<T>, height: u8, known: &mut KnownNodes) -> Result<(), Fault>
where
    T::Summary: PartialEq + fmt::Debug,
{
    let node = (entry.link.address(), height);
    if !known.0.contains(&node) {
        check_link(&entry.link, height, false, known)?;
        known.0.insert(node);
    }
    equal("a node", &entry.summary, &summarize(&entry.link))
}

fn check_link<T: Item>(
    link: &Link<T>,
    height: u8,
    is_root: bool,
    known: &mut KnownNodes,
) -> Result<(), Fault>
where
    T::Summary: PartialEq + fmt::Debug,
{
    match link {
        Link::Leaf(items) => {
            if height != 0 {
                return Err(Fault(format!("a leaf is {height} levels above the others")));
            }
            let min = if is_root { 1 } else { leaf_min::<T>().max(1) };
            between("a leaf", items.slice.len(), min, leaf_size::<T>())
        }
        Link::Inner(children) => {
            if height == 0 {
                return Err(Fault("an inner node is at the level of the leaves".into()));
            }
            let min = if is_root { 2 } else { min_children::<T>() };
            between("an inner node", children.slice.len(), min, max_children::<T>())?;
            children.slice.iter().try_for_each(|child| check_entry(child, height - 1, known))
        }
    }
}

fn between(what: &str, len: usize, min: usize, max: usize) -> Result<(), Fault> {
    if (min..=max).contains(&len) {
        return Ok(());
    }
    Err(Fault(format!("{what} has {len} entries instead of {min} to {max}")))
}

fn equal<S: Summary + PartialEq + fmt::Debug>(
    what: &str,
    actual: &S,
    expected: &S,
) -> Result<(), Fault> {
    if actual == expected {
        return Ok(());
    }
    Err(Fault(format!("the summary of {what} is {actual:?} instead of {expected:?}")))
}
