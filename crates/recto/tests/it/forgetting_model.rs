//! Random requests, forks, erasures, prunes and removals on the conversations of a store and on the plain
//! model: every kept version reads as before, and every dropped message is gone, for every `Recto`.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use recto::{Clock, Keep, LogIndex, Options, Recto, Request, Tool, Version};
use testkit::StoreModel;
use testkit::generate::{self, Choices, Step};

use crate::driver::{compare_results, create, numbers};
use crate::places::{self, Place};

/// The conversations of a store and their model. Two `Recto` values have the store open and take turns.
struct World {
    rectos: [Recto; 2],
    clock: Arc<AtomicI64>,
    model: StoreModel,
    forks: usize,
    /// The number of messages that were erased and pruned.
    lost: [usize; 2],
}

impl World {
    fn new(place: &Place) -> World {
        let clock = Arc::new(AtomicI64::new(0));
        let recto = || {
            let clock = clock.clone();
            let clock = Clock::new(move || clock.load(Ordering::Relaxed));
            Recto::with_store(place.store.clone(), Options { clock, ..Options::default() })
        };
        let rectos = [recto(), recto()];
        World { rectos, clock, model: StoreModel::default(), forks: 0, lost: [0; 2] }
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
                self.lost[0] += usize::from(!receipt.was_gone);
                self.compare().await;
            }
            3 | 4 => {
                let keep = testkit::Keep {
                    last_versions: (choices.chance(8)).then(|| choices.below(4) as u64 + 1),
                    since: choices.chance(4).then(|| now - choices.below(20) as i64),
                    versions: vec![choices.below(versions) as u64],
                };
                let ours = Keep {
                    last_versions: keep.last_versions.map(|last| last as u32),
                    since: keep.since,
                    versions: keep.versions.iter().map(|&v| Version(v as u32)).collect(),
                    ..Keep::default()
                };
                let preview = conversation.preview_prune(&ours).await.unwrap();
                let pruned = conversation.prune(&ours).await.unwrap();
                assert_eq!(preview, pruned);
                let expected = self.model.prune(&name, &keep);
                assert_eq!(numbers(pruned.entries), expected, "{name} keeping {keep:?}");
                self.lost[1] += expected.len();
                self.compare().await;
            }
            5 if names.len() > 3 => {
                recto.remove(&name).await.unwrap();
                self.model.remove(&name);
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

    /// Compares every version of every conversation, read by both `Recto` values, with the model.
    async fn compare(&self) {
        for recto in &self.rectos {
            for name in self.model.names() {
                let (conversation, model) =
                    (recto.conversation(&name).await.unwrap(), self.model.get(&name));
                let newest = conversation.version().await.unwrap();
                assert_eq!(u64::from(newest.0), model.version());
                for version in (0..=newest.0).map(Version) {
                    let entries = conversation.messages_at(version).await.unwrap();
                    let view = model.view_at(u64::from(version.0)).unwrap();
                    assert_eq!(numbers(entries.iter().map(|entry| entry.index)), view);
                    for entry in entries {
                        let index = entry.index.as_usize();
                        assert_eq!(entry.message.text(), model.text(index), "{name} {version}");
                        assert_eq!(entry.tokens, model.entry_tokens(index));
                    }
                }
                for index in 0..model.log_len() {
                    let message = conversation.message(LogIndex(index as u32)).await.unwrap();
                    assert_eq!(message.unwrap().text(), model.text(index), "{name} #{index}");
                }
            }
        }
    }
}

/// Runs random steps, and returns how many messages were erased and pruned.
pub(crate) async fn run(place: &Place, seed: u64, steps: u64) -> [usize; 2] {
    let mut world = World::new(place);
    let prefix = format!("seed {seed}");
    let model = generate::conversation(&mut Choices::new(&generate::numbers(seed, 60)), 0);
    create(&world.rectos[0], &prefix, &model).await;
    world.model.create(&prefix, model);
    for number in 0..steps {
        let numbers = generate::numbers(seed.wrapping_mul(1_000_003).wrapping_add(number), 120);
        world.step(&prefix, &mut Choices::new(&numbers)).await;
    }
    world.compare().await;
    for name in world.model.names() {
        let conversation = place.recto().conversation(&name).await.unwrap();
        assert_eq!(conversation.verify().await.unwrap().faults, Vec::<String>::new());
    }
    world.lost
}

async fn forgets_like_the_model(place: Place, seeds: std::ops::Range<u64>, steps: u64) {
    let mut lost = [0; 2];
    for seed in seeds {
        let [erased, pruned] = run(&place, seed, steps).await;
        lost = [lost[0] + erased, lost[1] + pruned];
    }
    assert!(lost[0] > 0 && lost[1] > 0, "messages were erased and pruned: {lost:?}");
}

#[tokio::test]
async fn the_store_in_memory_forgets_like_the_model() {
    forgets_like_the_model(places::memory().await, 0..12, 100).await;
}

#[tokio::test]
async fn the_store_in_a_file_forgets_like_the_model() {
    forgets_like_the_model(places::sqlite().await, 100..103, 100).await;
}

#[cfg(all(unix, feature = "postgres"))]
#[tokio::test]
async fn the_store_on_a_server_forgets_like_the_model() {
    forgets_like_the_model(places::postgres().await, 200..202, 80).await;
}
