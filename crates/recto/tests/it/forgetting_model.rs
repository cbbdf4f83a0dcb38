//! Random requests, forks, erasures, prunes, removals, backups and restorations on the conversations of a
//! store and on the plain model: every kept version reads as before, and every dropped message is gone, for
//! every `Recto`.

use std::path::PathBuf;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use recto::{Clock, Keep, LogIndex, Options, Recto, Request, Tool, Version};
use testkit::StoreModel;
use testkit::generate::{self, Choices, Step};

use crate::driver::{compare_results, create, difference, numbers};
use crate::places::{self, Place};

/// The conversations of a store and their model. Two `Recto` values have the store open and take turns.
struct World {
    rectos: [Recto; 2],
    clock: Arc<AtomicI64>,
    model: StoreModel,
    forks: usize,
    /// Files, and the model at that time.
    backups: Vec<(PathBuf, StoreModel)>,
    folder: tempfile::TempDir,
    counts: Counts,
}

/// What a run has done.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Messages.
    pub(crate) erased: usize,
    /// Messages.
    pub(crate) pruned: usize,
    pub(crate) backups: usize,
    /// Conversations.
    pub(crate) restored: usize,
    /// Restorations that were refused.
    pub(crate) refused: usize,
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.erased += other.erased;
        self.pruned += other.pruned;
        self.backups += other.backups;
        self.restored += other.restored;
        self.refused += other.refused;
    }
}

impl World {
    fn new(place: &Place) -> World {
        let clock = Arc::new(AtomicI64::new(0));
        let recto = || {
            let clock = clock.clone();
            let clock = Clock::new(move || clock.load(Ordering::Relaxed));
            Recto::with_store(place.store.clone(), Options { clock, ..Options::default() })
        };
        World {
            rectos: [recto(), recto()],
            clock,
            model: StoreModel::default(),
            forks: 0,
            backups: Vec::new(),
            folder: tempfile::tempdir().expect("a folder can be made"),
            counts: Counts::default(),
        }
    }

    async fn step(&mut self, prefix: &str, choices: &mut Choices<'_>) {
        let now = self.clock.fetch_add(1, Ordering::Relaxed) + 1;
        let turn = choices.below(2);
        let recto = self.rectos[turn].clone();
        let names = self.model.names();
        let name = choices.pick(&names).clone();
        let conversation = recto.conversation(&name).await.unwrap();
        let versions = self.model.get(&name).version() as usize + 1;
        let entries = self.model.get(&name).log_len();
        match choices.below(20) {
            0 | 1 if names.len() < 12 => {
                let at = choices.below(versions) as u32;
                let fork = format!("{prefix} fork {}", self.forks);
                self.forks += 1;
                conversation.fork(&fork, Version(at)).await.unwrap();
                self.model.fork(&name, u64::from(at), &fork);
            }
            2 if entries > 0 => {
                let index = choices.below(entries);
                let receipt = conversation.erase(LogIndex(index as u32)).await.unwrap();
                assert_eq!(receipt.was_gone, self.model.is_lost(&name, index));
                self.model.erase(&name, index);
                self.counts.erased += usize::from(!receipt.was_gone);
                self.compare(1 - turn).await;
            }
            3 | 4 => {
                let keep = testkit::Keep {
                    last_versions: (choices.chance(8)).then(|| choices.below(4) as u64 + 1),
                    last_batches: choices.chance(4).then(|| choices.below(4)),
                    since: choices.chance(4).then(|| now - choices.below(20) as i64),
                    versions: vec![choices.below(versions) as u64],
                };
                let ours = Keep {
                    last_versions: keep.last_versions.map(|last| last as u32),
                    since: keep.since,
                    last_batches: keep.last_batches,
                    versions: keep.versions.iter().map(|&v| Version(v as u32)).collect(),
                };
                let preview = conversation.preview_prune(&ours).await.unwrap();
                let pruned = conversation.prune(&ours).await.unwrap();
                assert_eq!(preview, pruned);
                let expected = self.model.prune(&name, &keep);
                assert_eq!(numbers(pruned.entries), expected, "{name} keeping {keep:?}");
                self.counts.pruned += expected.len();
                self.compare(1 - turn).await;
            }
            5 | 8 if names.len() > 2 => {
                recto.remove(&name).await.unwrap();
                self.model.remove(&name);
            }
            6 if self.backups.len() < 4 => {
                let path = self.folder.path().join(format!("{}.db", self.backups.len()));
                recto.backup(&path).await.unwrap();
                self.backups.push((path, self.model.clone()));
                self.counts.backups += 1;
            }
            7 if !self.backups.is_empty() => {
                // Into an empty store, or into one that has conversations.
                if choices.chance(8) {
                    for name in &names {
                        recto.remove(name).await.unwrap();
                        self.model.remove(name);
                    }
                }
                let (path, backup) = choices.pick(&self.backups);
                match (recto.restore(path).await, self.model.restore(backup)) {
                    (Ok(ours), Ok([restored, present])) => {
                        assert_eq!((ours.conversations, ours.already_there), (restored, present));
                        self.counts.restored += restored;
                    }
                    (Err(error), Err(code)) => {
                        assert_eq!(error.code(), code, "{error}");
                        self.counts.refused += 1;
                    }
                    (ours, theirs) => panic!("{ours:?} against {theirs:?}"),
                }
                self.compare(1 - turn).await;
            }
            _ => match generate::step(choices, self.model.get(&name)) {
                Step::Apply(request) => {
                    let ours = match Request::from_json(&request.to_string()) {
                        Ok(request) => conversation.apply(request).await,
                        Err(error) => Err(error.into()),
                    };
                    let theirs = self.model.change(&name, |model| model.apply(&request, now));
                    compare_results(ours, theirs);
                }
                Step::SetTools(tools) => {
                    let ours = match Tool::list_from_json(&tools.to_string()) {
                        Ok(tools) => conversation.set_tools(tools).await,
                        Err(error) => Err(error.into()),
                    };
                    let theirs = self.model.change(&name, |model| model.set_tools(&tools, now));
                    compare_results(ours, theirs);
                }
                // Other steps only read.
                _ => {}
            },
        }
    }

    /// Compares every version of every conversation, as one of the `Recto` values reads it, with the model.
    async fn compare(&self, turn: usize) {
        assert_eq!(difference(&self.rectos[turn], &self.model, "").await, None);
    }

    /// Restores every backup into an empty store.
    async fn compare_backups(&self) {
        for (path, backup) in &self.backups {
            let recto = places::memory().await.recto();
            let restored = recto.restore(path).await.unwrap();
            assert_eq!(restored.conversations, backup.names().len());
            assert_eq!(difference(&recto, backup, "").await, None);
        }
    }
}

/// Runs random steps on an empty store.
pub(crate) async fn run(place: &Place, seed: u64, steps: u64) -> Counts {
    let mut world = World::new(place);
    let prefix = format!("seed {seed}");
    let model = generate::conversation(&mut Choices::new(&generate::numbers(seed, 60)), 0);
    create(&world.rectos[0], &prefix, &model).await;
    world.model.create(&prefix, model);
    for number in 0..steps {
        let numbers = generate::numbers(seed.wrapping_mul(1_000_003).wrapping_add(number), 120);
        world.step(&prefix, &mut Choices::new(&numbers)).await;
    }
    world.compare(0).await;
    world.compare(1).await;
    world.compare_backups().await;
    for (_, report) in place.recto().verify_all(&mut |_, _| {}).await.unwrap() {
        assert_eq!(report.faults, Vec::<String>::new());
    }
    assert_eq!(place.recto().check().await.unwrap(), Vec::<String>::new());
    world.counts
}

async fn forgets_like_the_model(
    place: impl AsyncFn() -> Place,
    seeds: std::ops::Range<u64>,
    steps: u64,
) {
    let mut counts = Counts::default();
    let runs = seeds.end - seeds.start;
    for seed in seeds {
        counts += run(&place().await, seed, steps).await;
    }
    let Counts { erased, pruned, backups, restored, .. } = counts;
    let is_all = [erased, pruned, backups, restored].iter().all(|count| *count > 0);
    assert!(is_all || runs == 1, "{counts:?}");
}

#[tokio::test]
async fn the_store_in_memory_forgets_like_the_model() {
    forgets_like_the_model(places::memory, 0..5, 90).await;
}

#[tokio::test]
async fn the_store_in_a_file_forgets_like_the_model() {
    forgets_like_the_model(places::sqlite, 100..102, 70).await;
}

#[cfg(all(unix, feature = "postgres"))]
#[tokio::test]
async fn the_store_on_a_server_forgets_like_the_model() {
    forgets_like_the_model(places::postgres, 200..201, 60).await;
}
