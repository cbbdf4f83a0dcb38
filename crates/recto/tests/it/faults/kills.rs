//! Processes that are killed while they append, fork, erase, prune, remove, back up and restore.
//!
//! Two processes work on one file, each on conversations of its own. The parent sends both an operation, waits
//! until they have begun, and kills one of them after a random part of the time that the operation usually takes.
//! Or it sends the operation to one process alone and kills it when the change is visible in the files, which is
//! before the process has replied. The kinds of operations take turns. The other process must succeed. The operation of the killed process is applied
//! completely or not at all: the store is equal to the plain model before the operation or after it.
//! Operations that are not atomic (the files of a backup and of a restoration, the copies that an erasure
//! removes) are complete after they were repeated.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use recto::Recto;
use rusqlite::{Connection, OpenFlags};
use serde_json::json;
use testkit::StoreModel;
use testkit::generate::{self, Choices};
use tokio::runtime::Runtime;

use super::child::{self, Done, Worker};
use super::family::{Family, KINDS, Operation};
use super::kill_counts::KillCounts;
use super::{Dice, note};
use crate::driver::{create, difference};

#[test]
fn an_operation_of_a_killed_process_has_happened_completely_or_not_at_all() {
    run(super::setting("RECTO_SIM_SEED", 1), 14);
}

/// Runs `rounds` rounds on one file. Returns when the processes were killed.
pub(super) fn run(seed: u64, rounds: usize) -> KillCounts {
    note(&format!("kills during erase, prune, fork, backup and restore: seed {seed}"));
    let mut world = World::new(seed);
    for round in 0..rounds {
        world.round(&format!("seed {seed}, round {round}"));
        if round % 10 == 9 {
            world.check_all();
        }
    }
    world.check_all();
    world.kills.check();
    std::mem::take(&mut world.kills)
}

/// How long the parent waits until it sees the change of an operation. An accepted request may change nothing.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Number of recent durations that are kept for each kind of operation.
const RECENT: usize = 5;

struct World {
    runtime: Runtime,
    dice: Dice,
    folder: tempfile::TempDir,
    store: PathBuf,
    now: Arc<AtomicI64>,
    /// A third process: it has the conversations open all the time.
    recto: Recto,
    families: [Family; 2],
    /// How long the last operations of each kind took, at most [`RECENT`]. It depends on the machine.
    durations: BTreeMap<&'static str, VecDeque<Duration>>,
    /// How long a process took until it was ready.
    opening: Duration,
    /// The index of the write-ahead log of the store.
    log_index: File,
    /// The number of processes that were killed in an operation.
    killed: usize,
    kills: KillCounts,
}

impl World {
    fn new(seed: u64) -> World {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("store.db");
        let now = Arc::new(AtomicI64::new(0));
        let recto = runtime.block_on(child::open(&store, &now)).unwrap();
        let families = ["a", "b"].map(|prefix| {
            let numbers = generate::numbers(seed, 60);
            let first = generate::conversation(&mut Choices::new(&numbers), 0);
            let name = format!("{prefix} 0");
            runtime.block_on(create(&recto, &name, &first));
            Family::new(prefix, &name, first, folder.path())
        });
        let (dice, durations, kills) = (Dice::new(seed), BTreeMap::new(), KillCounts::default());
        let opening = Duration::ZERO;
        let log_index = File::open(format!("{}-shm", store.display())).unwrap();
        let killed = 0;
        World {
            runtime,
            dice,
            folder,
            store,
            now,
            recto,
            families,
            durations,
            opening,
            log_index,
            killed,
            kills,
        }
    }

    /// Both processes perform an operation at the same time, and one of them may be killed.
    fn round(&mut self, place: &str) {
        let now = self.now.fetch_add(1, Ordering::Relaxed) + 1;
        self.start_workers(place);
        let victim = [None, Some(0), Some(1), Some(0), Some(1)][self.dice.below(5)];
        let operations = [0, 1].map(|number| self.choose(number, victim == Some(number), now));
        // Each kind of operation is killed at its change and at a random moment by turns. The first commit that
        // the parent sees must be that of the process that it kills: then the other one begins later.
        let is_watched = victim.is_some() && ((self.killed - 1) / KINDS.len()).is_multiple_of(2);
        let others = move || (0..2).filter(move |number| victim != Some(*number));
        if !is_watched {
            others().for_each(|number| self.send(number, &operations[number], now));
        }
        let mut ended = Vec::new();
        if let Some(victim) = victim {
            let done = self.kill_in(victim, &operations[victim], is_watched, now);
            ended.push((victim, done));
        }
        for number in others() {
            if is_watched {
                self.send(number, &operations[number], now);
            }
            let done = self.families[number].worker.as_mut().unwrap().done();
            ended.push((number, Some(done)));
        }
        for (number, done) in ended {
            let operation = &operations[number];
            let has_effect = operation.has_effect(&self.families[number].model, now);
            if is_watched && victim == Some(number) && has_effect {
                self.kills.waited(operation.name());
            }
            if let Some(done) = done.as_ref().filter(|_| has_effect) {
                let recent = self.durations.entry(operation.name()).or_default();
                recent.truncate(RECENT - 1);
                recent.push_front(done.took);
                if victim == Some(number) {
                    self.kills.after(operation.name());
                }
            }
            let place = format!("{place}, {operation:?}");
            self.settle(number, operation, done.map(|done| done.code), now, &place);
        }
        for number in 0..2 {
            self.check_words(number, place);
        }
    }

    /// A random operation. That of a process to be killed changes something, and its kinds take turns.
    fn choose(&mut self, number: usize, is_victim: bool, now: i64) -> Operation {
        if !is_victim {
            return self.families[number].operation(&mut self.dice);
        }
        let kind = self.killed % KINDS.len();
        self.killed += 1;
        if KINDS[kind] == "prune" {
            self.add_hidden_message(number, now);
        }
        self.families[number].effective_operation(kind, &mut self.dice, now)
    }

    /// Kills a process in an operation: when its change is visible, or at a random moment. Returns its reply
    /// if it was quicker.
    fn kill_in(
        &mut self,
        victim: usize,
        operation: &Operation,
        is_watched: bool,
        now: i64,
    ) -> Option<Done> {
        let before = self.change_counter(victim, operation);
        let family = &mut self.families[victim];
        let command = family.command(operation, now);
        family.worker.as_mut().unwrap().begin(&command);
        let start = Instant::now();
        // An operation of another kind is a guess until one of this kind has ended.
        let recent = self.durations.get(operation.name());
        let recent = recent.or_else(|| self.durations.values().next());
        let usual = recent.map(|recent| recent[self.dice.below(recent.len())]);
        let usual = usual.unwrap_or(Duration::from_millis(5));
        if is_watched {
            while self.change_counter(victim, operation) == before && start.elapsed() < LONGEST_WAIT
            {
            }
        } else {
            // A little more: what follows the change, such as VACUUM, comes last.
            let longest = (usual * 6 / 5).as_micros() as usize;
            let moment = Duration::from_micros(self.dice.below(longest) as u64);
            std::thread::sleep(moment.saturating_sub(start.elapsed()));
        }
        self.families[victim].worker.take().unwrap().kill()
    }

    fn send(&mut self, number: usize, operation: &Operation, now: i64) {
        let family = &mut self.families[number];
        let command = family.command(operation, now);
        family.worker.as_mut().unwrap().send(&command);
    }

    /// Adds a message that no version shows to a conversation, so that there is something to prune.
    fn add_hidden_message(&mut self, number: usize, now: i64) {
        let family = &mut self.families[number];
        let names = family.model.names();
        let name = names[self.dice.below(names.len())].clone();
        let word = format!("secret{}x{:x}", family.prefix, self.dice.below(1 << 40));
        let message = json!({"role": "user", "content": format!("the word is {word}")});
        let request = json!({"ops": [
            {"operation": "APPEND", "messages": [message]},
            {"operation": "DELETE", "indices": [family.model.get(&name).log_len()]},
        ]});
        let operation = Operation::Apply { name, request, word: None };
        let command = family.command(&operation, now);
        self.runtime.block_on(child::execute(&self.recto, &command)).unwrap();
        assert_eq!(operation.perform(&mut family.model, now), "ok");
        family.words.push(word);
    }

    /// A number that changes when other processes can see the change of an operation.
    fn change_counter(&self, number: usize, operation: &Operation) -> u64 {
        match operation {
            Operation::Backup | Operation::Restore => u64::from(self.is_visible(number, operation)),
            // The counter in the index of the write-ahead log. A query would take longer than a process needs
            // from its commit to its reply.
            _ => {
                let mut counter = [0; 4];
                self.log_index.read_exact_at(&mut counter, 8).unwrap();
                u32::from_ne_bytes(counter).into()
            }
        }
    }

    /// Whether there is a backup, or a conversation that was restored.
    fn is_visible(&self, number: usize, operation: &Operation) -> bool {
        let family = &self.families[number];
        match operation {
            Operation::Backup => family.backup.exists(),
            Operation::Restore => {
                let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
                let target = Connection::open_with_flags(&family.restored, flags);
                let count = "SELECT count(*) FROM conversations";
                let count = target.and_then(|db| db.query_row(count, [], |row| row.get(0)));
                count.unwrap_or(0) > 0
            }
            _ => false,
        }
    }

    /// Starts the processes that do not run. Some are killed while they open the file, and started again.
    fn start_workers(&mut self, place: &str) {
        for number in 0..2 {
            if self.families[number].worker.is_some() {
                continue;
            }
            if self.dice.below(8) == 0 {
                let worker = Worker::start(&self.store);
                let moment = self.dice.below(self.opening.as_micros() as usize);
                std::thread::sleep(Duration::from_micros(moment as u64));
                worker.kill();
                self.kills.opening += 1;
                let World { runtime, recto, families, .. } = self;
                let family = &families[number];
                let differs = runtime.block_on(difference(recto, &family.model, &family.prefix));
                assert_eq!(differs, None, "{place}: killed while opening");
            }
            let start = Instant::now();
            self.families[number].worker = Some(Worker::ready(&self.store));
            self.opening = start.elapsed();
        }
    }

    /// Compares the store with the model, and repeats what was interrupted. `reply` is `None` if the process
    /// was killed before it replied.
    fn settle(
        &mut self,
        number: usize,
        operation: &Operation,
        reply: Option<String>,
        now: i64,
        place: &str,
    ) {
        let is_killed = reply.is_none();
        // The store itself does not show whether a backup or a restoration has happened.
        let is_visible = self.is_visible(number, operation);
        let World { runtime, recto, families, kills, .. } = self;
        let family = &mut families[number];
        let mut after = family.model.clone();
        let expected = operation.perform(&mut after, now);
        let compare =
            |model: &StoreModel| runtime.block_on(difference(recto, model, &family.prefix));
        if let Some(reply) = reply {
            assert_eq!(reply, expected, "{place}");
            assert_eq!(compare(&after), None, "{place}: it was acknowledged");
            family.model = after;
        } else {
            let not_before = compare(&family.model);
            if operation.has_effect(&family.model, now) {
                kills.inside(operation.name(), is_visible || not_before.is_some());
            }
            if let Some(not_before) = not_before {
                let not_after = compare(&after);
                let both = format!("{not_before:?} and {not_after:?}");
                assert!(not_after.is_none(), "{place}: neither before nor after: {both}");
                family.model = after.clone();
            }
            // An interrupted erasure may have left copies; repeating it removes them.
            if matches!(operation, Operation::Erase { .. } | Operation::Prune { .. }) {
                let command = family.command(operation, now);
                runtime.block_on(child::execute(recto, &command)).unwrap();
                family.model = after;
                assert_eq!(
                    runtime.block_on(difference(recto, &family.model, &family.prefix)),
                    None,
                    "{place}"
                );
            }
            // A removal cannot be repeated.
            if matches!(operation, Operation::Remove { .. }) {
                runtime.block_on(recto.clean()).unwrap();
            }
        }
        match operation {
            Operation::Apply { word: Some(word), .. } if family.has(word) => {
                family.words.push(word.clone());
            }
            Operation::Backup => self.settle_backup(number, is_killed, place),
            Operation::Restore => self.settle_restore(number, is_killed, place),
            _ => {}
        }
    }

    /// A backup is absent or complete, and repeating it completes it.
    fn settle_backup(&mut self, number: usize, is_killed: bool, place: &str) {
        let World { runtime, recto, families, .. } = self;
        let family = &mut families[number];
        let existed = family.backup.exists();
        assert!(existed || is_killed, "{place}");
        if is_killed {
            let repeated = runtime.block_on(recto.backup(&family.backup));
            assert_eq!(repeated.is_err(), existed, "{place}: {repeated:?}");
        }
        let partial = PathBuf::from(format!("{}.partial", family.backup.display()));
        assert!(!partial.exists(), "{place}: a partial file is left");
        let backup = runtime.block_on(child::open(&family.backup, &Arc::default())).unwrap();
        let differs = runtime.block_on(difference(&backup, &family.model, &family.prefix));
        assert_eq!(differs, None, "{place}: the backup");
        assert_sound(runtime, &backup, place);
        family.backed_up = Some(family.model.clone());
    }

    /// A restoration leaves complete conversations only, and repeating it completes it.
    fn settle_restore(&mut self, number: usize, is_killed: bool, place: &str) {
        let World { runtime, families, .. } = self;
        let family = &mut families[number];
        let backed_up = family.backed_up.take().expect("there is a backup");
        {
            let target = runtime.block_on(child::open(&family.restored, &Arc::default())).unwrap();
            let listed = runtime.block_on(target.list(None, 1_000)).unwrap();
            let names: Vec<String> = listed.into_iter().map(|info| info.name).collect();
            let own: Vec<&String> =
                names.iter().filter(|name| name.starts_with(&family.prefix)).collect();
            let part = backed_up.only(|name| own.iter().any(|own| *own == name));
            let differs = runtime.block_on(difference(&target, &part, &family.prefix));
            assert_eq!(differs, None, "{place}: restored conversations are complete");
            assert_sound(runtime, &target, place);
            if is_killed {
                runtime.block_on(target.restore(&family.backup)).unwrap();
            }
            let differs = runtime.block_on(difference(&target, &backed_up, &family.prefix));
            assert_eq!(differs, None, "{place}: the restoration is complete");
            assert_sound(runtime, &target, place);
        }
        for file in [&family.backup, &family.restored] {
            for suffix in ["", "-wal", "-shm"] {
                let _ = std::fs::remove_file(format!("{}{suffix}", file.display()));
            }
        }
    }

    /// Words of erased, pruned and removed messages are in no file of the store.
    fn check_words(&mut self, number: usize, place: &str) {
        let family = &mut self.families[number];
        let gone: Vec<String> =
            family.words.iter().filter(|word| !family.has(word)).cloned().collect();
        for suffix in ["", "-wal"] {
            let file = format!("{}{suffix}", self.store.display());
            let bytes = std::fs::read(file).unwrap_or_default();
            for word in &gone {
                let found = bytes.windows(word.len()).any(|found| found == word.as_bytes());
                assert!(!found, "{place}: {word} is in the file{suffix}");
            }
        }
        family.words.retain(|word| !gone.contains(word));
    }

    /// Verifies the store, reads it in a process that has nothing loaded, and looks for files that no
    /// operation should leave.
    fn check_all(&self) {
        let World { runtime, folder, store, families, .. } = self;
        let recto = runtime.block_on(child::open(store, &Arc::default())).unwrap();
        assert_sound(runtime, &recto, "");
        for family in families {
            let differs = runtime.block_on(difference(&recto, &family.model, &family.prefix));
            assert_eq!(differs, None);
        }
        let known = [store, &families[0].backup, &families[1].backup];
        for file in std::fs::read_dir(folder.path()).unwrap() {
            let file = file.unwrap().path();
            let is_known = |known: &&Path| {
                let (known, file) = (known.display().to_string(), file.display().to_string());
                ["", "-wal", "-shm"].iter().any(|suffix| format!("{known}{suffix}") == file)
            };
            assert!(known.iter().any(|known| is_known(&known.as_path())), "{}", file.display());
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for family in &mut self.families {
            if let Some(worker) = family.worker.take() {
                worker.kill();
            }
        }
    }
}

fn assert_sound(runtime: &Runtime, recto: &Recto, place: &str) {
    for (_, report) in runtime.block_on(recto.verify_all(&mut |_, _| {})).unwrap() {
        assert_eq!(report.faults, Vec::<String>::new(), "{place}");
    }
    assert_eq!(runtime.block_on(recto.check()).unwrap(), Vec::<String>::new(), "{place}");
}
