//! Counts when processes were killed. A campaign whose kills come too early or too late tests nothing.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::AddAssign;

/// Kills of one kind of operation.
#[derive(Clone, Copy, Debug, Default)]
struct Kills {
    /// During the operation, before its change was stored.
    inside_before_change: usize,
    /// During the operation, after its change was stored.
    inside_after_change: usize,
    /// After the process had replied.
    after: usize,
}

/// Kills by the time at which they came.
#[derive(Debug, Default)]
pub(super) struct KillCounts {
    /// While the process opened the file, before any operation.
    pub(super) opening: usize,
    operations: BTreeMap<&'static str, Kills>,
}

/// Minimum number of kills for the checks. With fewer kills, the share of each kind is random.
const MIN_KILLS: usize = 30;

impl KillCounts {
    pub(super) fn inside(&mut self, operation: &'static str, is_changed: bool) {
        let kills = self.operations.entry(operation).or_default();
        match is_changed {
            true => kills.inside_after_change += 1,
            false => kills.inside_before_change += 1,
        }
    }

    pub(super) fn after(&mut self, operation: &'static str) {
        self.operations.entry(operation).or_default().after += 1;
    }

    /// Fails if a long run has no kill between the change and the reply of an operation that overwrites
    /// messages.
    pub(super) fn check_overwriting(&self) {
        for name in ["erase", "prune", "remove"] {
            let kills = self.operations.get(name).copied().unwrap_or_default();
            let all = kills.inside_before_change + kills.inside_after_change + kills.after;
            let hits = kills.inside_after_change;
            assert!(all < MIN_KILLS || hits > 0, "no {name} was killed after its change: {self}");
        }
    }

    /// Fails if hardly any process was killed during an operation.
    pub(super) fn check(&self) {
        let inside = |kills: &Kills| kills.inside_before_change + kills.inside_after_change;
        let all_inside: usize = self.operations.values().map(inside).sum();
        let after: usize = self.operations.values().map(|kills| kills.after).sum();
        let all = all_inside + after;
        assert!(all < MIN_KILLS || 4 * all_inside >= all, "hardly any kill was in time: {self}");
    }
}

impl AddAssign for KillCounts {
    fn add_assign(&mut self, other: KillCounts) {
        self.opening += other.opening;
        for (name, kills) in other.operations {
            let sum = self.operations.entry(name).or_default();
            sum.inside_before_change += kills.inside_before_change;
            sum.inside_after_change += kills.inside_after_change;
            sum.after += kills.after;
        }
    }
}

impl fmt::Display for KillCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kills while opening: {}", self.opening)?;
        for (name, kills) in &self.operations {
            let Kills { inside_before_change, inside_after_change, after } = kills;
            let inside = inside_before_change + inside_after_change;
            write!(
                f,
                "; {name}: {inside} inside ({inside_before_change} before its change was stored, \
                 {inside_after_change} after), {after} after its reply"
            )?;
        }
        Ok(())
    }
}
