//! Differences between the views of two versions.

use super::outcome::without;

/// The difference from one view to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diff {
    /// Entries in both views, sorted.
    pub kept: Vec<usize>,
    /// Entries of the first view only, sorted.
    pub hidden: Vec<usize>,
    /// Entries of the second view only, sorted, including new ones.
    pub shown: Vec<usize>,
    /// Number of kept entries that moved: those outside a longest common
    /// subsequence of both views. It is a number, because there can be several longest
    /// subsequences.
    pub moved_count: usize,
    /// The tokens of `kept`.
    pub kept_tokens: u64,
    /// The tokens of `hidden`.
    pub hidden_tokens: u64,
    /// The tokens of `shown`.
    pub shown_tokens: u64,
}

impl Diff {
    pub(super) fn between(from: &[usize], to: &[usize], tokens: impl Fn(usize) -> u64) -> Diff {
        let hidden = without(from, to);
        let shown = without(to, from);
        let kept = without(from, &hidden);
        let sum = |indices: &[usize]| indices.iter().map(|&index| tokens(index)).sum();
        Diff {
            moved_count: kept.len() - longest_common_subsequence(from, to),
            kept_tokens: sum(&kept),
            hidden_tokens: sum(&hidden),
            shown_tokens: sum(&shown),
            kept,
            hidden,
            shown,
        }
    }
}

/// The length of a longest common subsequence, by dynamic programming, row by row:
/// `row[j]` is the length for the part of `a` read so far and `b[..j]`.
fn longest_common_subsequence(a: &[usize], b: &[usize]) -> usize {
    let mut row = vec![0; b.len() + 1];
    for x in a {
        let above = row.clone();
        for (j, y) in b.iter().enumerate() {
            row[j + 1] = if x == y { above[j] + 1 } else { above[j + 1].max(row[j]) };
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_that_moves_past_others_is_one_move() {
        let diff = Diff::between(&[0, 1, 2, 3, 4], &[4, 0, 1, 7, 3], |_| 10);
        assert_eq!(diff.kept, [0, 1, 3, 4]);
        assert_eq!(diff.hidden, [2]);
        assert_eq!(diff.shown, [7]);
        assert_eq!(diff.moved_count, 1);
        assert_eq!((diff.kept_tokens, diff.hidden_tokens, diff.shown_tokens), (40, 10, 10));
    }
}
