//! A test of everything that always holds.

use std::collections::HashSet;
use std::fmt;

use crate::node::{Entry, Link, fan, fan_min, leaf_min, leaf_size, summarize};
use crate::{Item, SumTree, Summary};

/// What [`SumTree::check`] found broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault(String);

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Fault {}

/// Nodes that [`SumTree::check_except`] found to be right, by where they are and how high.
#[derive(Debug, Default)]
pub struct KnownNodes(HashSet<(usize, u8)>);

impl<T: Item> SumTree<T>
where
    T::Summary: PartialEq + fmt::Debug,
{
    /// Walks over the whole tree and tests that it is balanced, that its nodes are neither too full
    /// nor too empty, and that each summary is the sum of what is below it.
    pub fn check(&self) -> Result<(), Fault> {
        self.check_except(&mut KnownNodes::default())
    }

    /// [`check`](Self::check), but for nodes that were found to be right before: so many trees that
    /// share most of their nodes cost little more than one. Trees that were checked with the same
    /// `known` must stay alive as long as it is used.
    pub fn check_except(&self, known: &mut KnownNodes) -> Result<(), Fault> {
        if let Some(root) = self.root() {
            check_link(root, self.height(), true, known)?;
            let summary = self.body_summary().expect("a root has a summary");
            equal("the body", summary, &summarize(root))?;
        }
        match self.tail().len() {
            len if len < leaf_size::<T>() => Ok(()),
            len => Err(Fault(format!("the tail holds {len} items, a leaf's worth"))),
        }
    }
}

fn check_entry<T: Item>(entry: &Entry<T>, height: u8, known: &mut KnownNodes) -> Result<(), Fault>
where
    T::Summary: PartialEq + fmt::Debug,
{
    let place = (entry.link.address(), height);
    if !known.0.contains(&place) {
        check_link(&entry.link, height, false, known)?;
        known.0.insert(place);
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
                return Err(Fault(format!("a leaf stands {height} levels above the others")));
            }
            let least = if is_root { 1 } else { leaf_min::<T>().max(1) };
            between("a leaf", items.slice.len(), least, leaf_size::<T>())
        }
        Link::Inner(children) => {
            if height == 0 {
                return Err(Fault("an inner node stands where leaves should".into()));
            }
            let least = if is_root { 2 } else { fan_min::<T>() };
            between("an inner node", children.slice.len(), least, fan::<T>())?;
            children.slice.iter().try_for_each(|child| check_entry(child, height - 1, known))
        }
    }
}

fn between(what: &str, len: usize, least: usize, most: usize) -> Result<(), Fault> {
    if (least..=most).contains(&len) {
        return Ok(());
    }
    Err(Fault(format!("{what} holds {len} entries instead of {least} to {most}")))
}

fn equal<S: Summary + PartialEq + fmt::Debug>(what: &str, is: &S, ought: &S) -> Result<(), Fault> {
    if is == ought {
        return Ok(());
    }
    Err(Fault(format!("the summary of {what} is {is:?} instead of {ought:?}")))
}
