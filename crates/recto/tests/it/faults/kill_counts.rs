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
    /// How many of them waited until other processes could see the change.
    waited: usize,
}

/// Kills by the time at which they came.
#[derive(Debug, Default)]
pub(super) struct KillCounts {
    /// While the process opened the file, before any operation.
    pub(super) opening: usize,
    operations: BTreeMap<&'static str, Kills>,
}

/// Minimum number of kills for a check. With fewer kills, the share of each kind is random.
const MIN_KILLS: usize = 30;
/// The same for the kills in one kind of operation.
const MIN_KILLS_OF_KIND: usize = 24;
/// The same for kinds that only reply after their change: the time in which a kill comes after it is short.
const MIN_KILLS_BEFORE_REPLY: usize = 80;
/// The same for kills that waited for the change. The operating system may delay the one or the other process.
const MIN_WAITED: usize = 3;
/// The kinds that go on after their first change.
const LONG_AFTER_CHANGE: [&str; 4] = ["erase", "prune", "remove", "restore"];

impl Kills {
    fn inside(&self) -> usize {
        self.inside_before_change + self.inside_after_change
    }

    fn all(&self) -> usize {
        self.inside() + self.after
    }
}

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

    pub(super) fn waited(&mut self, operation: &'static str) {
        self.operations.entry(operation).or_default().waited += 1;
    }

    /// Fails if hardly any process was killed during an operation, or if a kind of operation was never
    /// interrupted before its change, or never between its change and its reply. At least half of the kills
    /// that waited for the change of a long operation must come before its reply.
    pub(super) fn check(&self) {
        let all: usize = self.operations.values().map(Kills::all).sum();
        let inside: usize = self.operations.values().map(Kills::inside).sum();
        assert!(all < MIN_KILLS || 3 * inside >= all, "hardly any kill was in time: {self}");
        for (name, kills) in &self.operations {
            let all = kills.all();
            let before = all < MIN_KILLS_OF_KIND || kills.inside_before_change > 0;
            assert!(before, "no {name} was killed before its change: {self}");
            let is_long = LONG_AFTER_CHANGE.contains(name);
            let enough = if is_long { MIN_KILLS_OF_KIND } else { MIN_KILLS_BEFORE_REPLY };
            let after = all < enough || kills.inside_after_change > 0;
            assert!(after, "no {name} was killed between its change and its reply: {self}");
            let at_change =
                kills.waited < MIN_WAITED || 2 * kills.inside_after_change >= kills.waited;
            assert!(!is_long || at_change, "hardly any {name} was killed at its change: {self}");
        }
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
            sum.waited += kills.waited;
        }
    }
}

impl fmt::Display for KillCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kills while opening: {}", self.opening)?;
        for (name, kills) in &self.operations {
            let Kills { inside_before_change, inside_after_change, after, waited } = kills;
            let inside = inside_before_change + inside_after_change;
            write!(
                f,
                "; {name}: {inside} inside ({inside_before_change} before its change was stored, \
                 {inside_after_change} after), {after} after its reply, {waited} waited for the change"
            )?;
        }
        Ok(())
    }
}
