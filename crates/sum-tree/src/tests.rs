//! Random edits compared with a plain `Vec`. `cargo xtask test` also runs these tests with nodes of at most
//! four entries (`--cfg recto_tiny_nodes`).

use proptest::prelude::*;

use crate::{Count, Dimension, Item, Keep, SumTree, Summary};

/// The summary of a sequence of numbers.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[allow(unreachable_pub, reason = "the summary of a public type must be public")]
pub struct Sums {
    count: usize,
    odd: u64,
    total: u64,
    least: Option<u32>,
    most: u32,
    /// The last item. It depends on the order of additions.
    last: Option<u32>,
}

impl Summary for Sums {
    fn add(&mut self, later: &Self) {
        self.count += later.count;
        self.odd += later.odd;
        self.total += later.total;
        self.least = [self.least, later.least].into_iter().flatten().min();
        self.most = self.most.max(later.most);
        self.last = later.last.or(self.last);
    }

    fn count(&self) -> usize {
        self.count
    }
}

impl Item for u32 {
    type Summary = Sums;

    fn add_to(&self, sums: &mut Sums) {
        sums.add(&Sums {
            count: 1,
            odd: u64::from(self % 2),
            total: u64::from(*self),
            least: Some(*self),
            most: *self,
            last: Some(*self),
        });
    }
}

struct Odd;

impl Dimension<u32> for Odd {
    fn of_summary(&self, sums: &Sums) -> u64 {
        sums.odd
    }

    fn of_item(&self, item: &u32) -> u64 {
        u64::from(item % 2)
    }
}

struct Total;

impl Dimension<u32> for Total {
    fn of_summary(&self, sums: &Sums) -> u64 {
        sums.total
    }

    fn of_item(&self, item: &u32) -> u64 {
        u64::from(*item)
    }
}

#[derive(Clone, Debug)]
enum Edit {
    Push(u32),
    Extend(Vec<u32>),
    Splice(usize, usize, Vec<u32>),
    Slice(usize, usize),
    AppendSelfPart(usize, usize),
    AppendOlder(usize),
    KeepOdd,
    KeepAtLeast(u32),
    /// Continues from an older value, like a fork.
    Return(usize),
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let items = prop::collection::vec(0..1000u32, 0..9);
    let edit = prop_oneof![
        6 => (0..1000u32).prop_map(Edit::Push),
        2 => prop::collection::vec(0..1000u32, 0..40).prop_map(Edit::Extend),
        6 => (any::<usize>(), 0..6usize, items).prop_map(|(a, b, i)| Edit::Splice(a, b, i)),
        1 => (any::<usize>(), any::<usize>()).prop_map(|(a, b)| Edit::Slice(a, b)),
        1 => (any::<usize>(), any::<usize>()).prop_map(|(a, b)| Edit::AppendSelfPart(a, b)),
        1 => any::<usize>().prop_map(Edit::AppendOlder),
        1 => Just(Edit::KeepOdd),
        1 => (0..1000u32).prop_map(Edit::KeepAtLeast),
        2 => any::<usize>().prop_map(Edit::Return),
    ];
    prop::collection::vec(edit, 0..60)
}

fn in_order(a: usize, b: usize, len: usize) -> (usize, usize) {
    let (a, b) = (a % (len + 1), b % (len + 1));
    (a.min(b), a.max(b))
}

fn apply(
    edit: Edit,
    tree: &mut SumTree<u32>,
    list: &mut Vec<u32>,
    kept: &[(SumTree<u32>, Vec<u32>)],
) {
    match edit {
        Edit::Push(item) => {
            tree.push(item);
            list.push(item);
        }
        Edit::Extend(items) => {
            tree.extend(items.clone());
            list.extend(items);
        }
        Edit::Splice(start, len, items) => {
            let start = start % (list.len() + 1);
            let end = (start + len).min(list.len());
            tree.splice(start..end, items.clone());
            list.splice(start..end, items);
        }
        Edit::Slice(a, b) => {
            let (start, end) = in_order(a, b, list.len());
            *tree = tree.slice(start..end);
            *list = list[start..end].to_vec();
        }
        Edit::AppendSelfPart(a, b) => {
            let (start, end) = in_order(a, b, list.len().min(40));
            tree.append(&tree.slice(start..end));
            list.extend(list[start..end].to_vec());
        }
        Edit::AppendOlder(number) => {
            if list.len() < 400
                && let Some((older_tree, older_list)) = kept.get(number % kept.len().max(1))
            {
                tree.append(older_tree);
                list.extend(older_list);
            }
        }
        Edit::KeepOdd => {
            let judge = |_: usize, sums: &Sums| match sums.odd {
                0 => Keep::None,
                odd if odd == sums.count as u64 => Keep::All,
                _ => Keep::Some,
            };
            *tree = tree.retain(judge, |_, item| item % 2 == 1);
            list.retain(|item| item % 2 == 1);
        }
        Edit::KeepAtLeast(least) => {
            let judge = |_: usize, sums: &Sums| {
                if sums.most < least {
                    Keep::None
                } else if sums.least.is_some_and(|smallest| smallest >= least) {
                    Keep::All
                } else {
                    Keep::Some
                }
            };
            *tree = tree.retain(judge, |_, item| *item >= least);
            list.retain(|item| *item >= least);
        }
        Edit::Return(number) => {
            if let Some((older_tree, older_list)) = kept.get(number % kept.len().max(1)) {
                *tree = older_tree.clone();
                *list = older_list.clone();
            }
        }
    }
}

fn assert_same(tree: &SumTree<u32>, list: &[u32]) {
    tree.check().expect("the invariants hold");
    assert_eq!(tree.len(), list.len());
    assert!(tree.iter().eq(list));
    assert!(tree.iter().rev().eq(list.iter().rev()));
    assert!(tree.runs(..).flat_map(|run| run.iter()).eq(list));
}

/// `summary_around` is the summary of the run that contains the position.
fn assert_summary_around(tree: &SumTree<u32>, position: usize) {
    let Some(around) = tree.summary_around(position) else {
        return assert!(position >= tree.body_len());
    };
    assert!(position < tree.body_len());
    let (_, run) = tree.run_around(position).expect("it is inside");
    let items: Vec<u32> = run.iter().copied().collect();
    assert_eq!(*around, Item::sum(items.iter()));
}

fn assert_reads(tree: &SumTree<u32>, list: &[u32], a: usize, b: usize) {
    let (start, end) = in_order(a, b, list.len());
    let part = &list[start..end];
    assert!(tree.iter_range(start..end).eq(part));
    let mut both_ends = tree.iter_range(start..end);
    let mut expected = part.iter();
    while let Some(item) = both_ends.next() {
        assert_eq!(Some(item), expected.next());
        assert_eq!(both_ends.next_back(), expected.next_back());
    }
    assert!(tree.runs(start..end).flat_map(|run| run.iter()).eq(part));
    assert_eq!(tree.get(start), list.get(start));
    assert_summary_around(tree, start);
    assert_eq!(tree.measure(start..end, &Total), part.iter().map(|&i| u64::from(i)).sum::<u64>());
    assert_eq!(tree.measure(start..end, &Count), part.len() as u64);
    let summary = tree.summary_of(start..end);
    assert_eq!(summary.total, tree.measure(start..end, &Total));
    assert_eq!(summary.last, part.last().copied());

    let odd: Vec<usize> = (0..list.len()).filter(|&at| list[at] % 2 == 1).collect();
    let sought = tree.seek(a as u64 % (odd.len() as u64 + 1), &Odd);
    assert_eq!(sought.map(|found| found.position), odd.get(a % (odd.len() + 1)).copied());
    if let Some(found) = sought {
        assert_eq!(found.before, tree.measure(..found.position, &Odd));
    }
    let wanted = list.get(start).copied().unwrap_or(7);
    let found = tree.find(
        |sums| sums.least.is_some_and(|least| least <= wanted) && wanted <= sums.most,
        |&item| item == wanted,
    );
    assert_eq!(found.map(|(at, _)| at), list.iter().position(|&item| item == wanted));
}

fn assert_difference(a: &(SumTree<u32>, Vec<u32>), b: &(SumTree<u32>, Vec<u32>)) {
    let difference = a.0.difference(&b.0);
    for (blocks, own, other) in [(&difference.left, &a.1, &b.1), (&difference.right, &b.1, &a.1)] {
        let mut at = 0;
        for block in blocks {
            assert_eq!(block.start, at, "blocks cover the tree in order");
            let here = &own[at..at + block.len];
            match block.shared {
                Some(there) => assert_eq!(here, &other[there..there + block.len]),
                None => assert!(block.items().eq(here)),
            }
            at += block.len;
        }
        assert_eq!(at, own.len());
    }
    let common = a.1.iter().zip(&b.1).take_while(|(x, y)| x == y).count();
    assert_eq!(a.0.common_prefix(&b.0, |x, y| x == y), common);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn random_edits_agree_with_a_vec(edits in edits(), a in any::<usize>(), b in any::<usize>()) {
        let mut kept = vec![(SumTree::new(), Vec::new())];
        let (mut tree, mut list) = (SumTree::new(), Vec::new());
        for edit in edits {
            apply(edit, &mut tree, &mut list, &kept);
            assert_same(&tree, &list);
            assert_reads(&tree, &list, a, b);
            kept.push((tree.clone(), list.clone()));
        }
        // Older values have not changed, and any two values can be compared.
        for (tree, list) in &kept {
            assert_same(tree, list);
        }
        let last = kept.last().expect("the list always has the empty tree");
        for older in kept.iter().step_by(5) {
            assert_difference(older, last);
            assert_difference(last, older);
        }
    }
}

#[test]
fn a_difference_opens_only_changed_nodes() {
    let tree: SumTree<u32> = (0..100_000).collect();
    let mut edited = tree.clone();
    edited.splice(50_000..50_001, [7]);
    let blocks = tree.difference(&edited);
    let unshared: usize =
        blocks.left.iter().filter(|block| block.shared.is_none()).map(|block| block.len).sum();
    assert!(unshared <= 32, "{unshared} items are not shared");
    assert!(blocks.left.len() < 100, "{} blocks", blocks.left.len());
}

#[test]
fn clones_that_push_do_not_disturb_each_other() {
    let mut one: SumTree<u32> = (0..5).collect();
    one.push(5);
    let mut other = one.clone();
    one.push(6);
    other.push(60);
    other.push(70);
    one.push(7);
    assert!(one.iter().eq(&[0, 1, 2, 3, 4, 5, 6, 7]));
    assert!(other.iter().eq(&[0, 1, 2, 3, 4, 5, 60, 70]));
}

#[test]
fn positions_past_the_end_are_clamped() {
    let mut tree: SumTree<u32> = (0..5).collect();
    assert_eq!(tree.get(usize::MAX), None);
    assert_eq!(tree.slice(7..usize::MAX).len(), 0);
    assert_eq!(tree.slice(3..usize::MAX).len(), 2);
    assert_eq!(tree.measure(4..usize::MAX, &Count), 1);
    assert_eq!(tree.seek(u64::MAX, &Count), None);
    tree.splice(usize::MAX..usize::MAX, [9]);
    assert!(tree.iter().eq(&[0, 1, 2, 3, 4, 9]));
}
