//! The conversations that are open in this process.
//!
//! Each conversation has a slot with the value that writers change, behind a fair lock, and a published
//! snapshot for readers, which never wait for a writer.
//!
//! Invariants:
//! - all concurrent callers of [`OpenSlots::slot`] with the same id get the same slot;
//! - after [`OpenSlots::close_all`], no slot holds or publishes a value from before the call.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use recto_store::ConversationId;

use crate::sync::Mutex;

/// A conversation that may be open.
pub(crate) struct Slot<T> {
    /// Held by a writer from before it reads the newest version until its commit is stored.
    pub(crate) writer: tokio::sync::Mutex<Option<T>>,
    published: Mutex<Published<T>>,
}

struct Published<T> {
    snapshot: Option<T>,
    epoch: Epoch,
}

/// The number of times that the snapshot of a slot was withdrawn. A snapshot that was taken before must not
/// be published again.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Epoch(u64);

impl<T> Slot<T> {
    fn new() -> Slot<T> {
        Slot {
            writer: tokio::sync::Mutex::new(None),
            published: Mutex::new(Published { snapshot: None, epoch: Epoch(0) }),
        }
    }

    /// Removes the published snapshot. Snapshots that were taken before this call are not published again.
    pub(crate) fn withdraw(&self) {
        let mut published = self.published.lock().expect("nothing panics while it is held");
        published.epoch = Epoch(published.epoch.0 + 1);
        published.snapshot = None;
    }

    /// Whether a snapshot is published.
    pub(crate) fn is_published(&self) -> bool {
        self.published.lock().expect("nothing panics while it is held").snapshot.is_some()
    }

    /// Publishes a snapshot of the writer's value. The caller holds the writer lock.
    pub(crate) fn publish(&self, snapshot: T) {
        self.published.lock().expect("nothing panics while it is held").snapshot = Some(snapshot);
    }

    /// Publishes a snapshot that was taken in an epoch, unless [`withdraw`](Self::withdraw) was called since,
    /// or the published one is better.
    pub(crate) fn publish_again(
        &self,
        snapshot: T,
        taken_in: Epoch,
        is_better: impl FnOnce(&T, &T) -> bool,
    ) {
        let mut published = self.published.lock().expect("nothing panics while it is held");
        let is_outdated = published.epoch != taken_in
            || published.snapshot.as_ref().is_some_and(|other| is_better(other, &snapshot));
        if !is_outdated {
            published.snapshot = Some(snapshot);
        }
    }
}

impl<T: Clone> Slot<T> {
    /// The published snapshot, if there is one, and the present epoch.
    pub(crate) fn snapshot(&self) -> (Option<T>, Epoch) {
        let published = self.published.lock().expect("nothing panics while it is held");
        (published.snapshot.clone(), published.epoch)
    }
}

/// The slots of conversations. The least recently used ones are closed.
pub(crate) struct OpenSlots<T> {
    slots: Mutex<Slots<T>>,
    max_kept: usize,
}

struct Slots<T> {
    /// All slots that are in use, including those that are no longer kept.
    all: HashMap<ConversationId, Weak<Slot<T>>>,
    /// The slots that are kept open, least recently used first.
    kept: Vec<(ConversationId, Arc<Slot<T>>)>,
}

impl<T> OpenSlots<T> {
    /// Keeps at most this many conversations open.
    pub(crate) fn keeping(max_kept: usize) -> OpenSlots<T> {
        let slots = Slots { all: HashMap::new(), kept: Vec::new() };
        OpenSlots { slots: Mutex::new(slots), max_kept: max_kept.max(1) }
    }

    /// The slot of a conversation, open or not.
    pub(crate) fn slot(&self, id: ConversationId) -> Arc<Slot<T>> {
        let mut slots = self.slots.lock().expect("nothing panics while it is held");
        if let Some(at) = slots.kept.iter().rposition(|(other, _)| *other == id) {
            let kept = slots.kept.remove(at);
            let slot = kept.1.clone();
            slots.kept.push(kept);
            return slot;
        }
        let used = slots.all.get(&id).and_then(Weak::upgrade);
        let slot = used.unwrap_or_else(|| Arc::new(Slot::new()));
        slots.all.insert(id, Arc::downgrade(&slot));
        slots.kept.push((id, slot.clone()));
        if slots.kept.len() > self.max_kept {
            slots.kept.remove(0);
            slots.all.retain(|_, slot| slot.strong_count() > 0);
        }
        slot
    }

    /// Stops keeping a conversation open.
    pub(crate) fn forget(&self, id: ConversationId) {
        let mut slots = self.slots.lock().expect("nothing panics while it is held");
        slots.kept.retain(|(other, _)| *other != id);
    }

    /// Closes every open conversation.
    pub(crate) async fn close_all(&self) {
        let slots: Vec<Arc<Slot<T>>> = {
            let slots = self.slots.lock().expect("nothing panics while it is held");
            slots.all.values().filter_map(Weak::upgrade).collect()
        };
        for slot in slots {
            let mut writer = slot.writer.lock().await;
            *writer = None;
            slot.withdraw();
        }
    }
}

#[cfg(test)]
mod tests {
    use shuttle::future::block_on;
    use shuttle::sync::atomic::{AtomicBool, AtomicU32, Ordering};
    use shuttle::thread;

    use super::*;

    fn id(number: u8) -> ConversationId {
        ConversationId(uuid::Uuid::from_bytes([number; 16]))
    }

    /// A model of stored conversations, whose only content is the number of erasures.
    struct World {
        open: OpenSlots<u32>,
        erased: AtomicU32,
        in_use: [AtomicBool; 3],
    }

    impl World {
        fn new() -> Arc<World> {
            let in_use = std::array::from_fn(|_| AtomicBool::new(false));
            Arc::new(World { open: OpenSlots::keeping(1), erased: AtomicU32::new(0), in_use })
        }

        /// Reads a snapshot of a conversation, opens it if necessary, and returns the value.
        async fn read(&self, number: u8) -> u32 {
            let slot = self.open.slot(id(number));
            let (snapshot, epoch) = slot.snapshot();
            thread::yield_now();
            let seen = snapshot.unwrap_or_else(|| self.erased.load(Ordering::SeqCst));
            thread::yield_now();
            slot.publish_again(seen, epoch, |other, this| other > this);
            seen
        }

        /// Writes to a conversation, opens it if necessary, and returns the value.
        async fn write(&self, number: u8) -> u32 {
            let slot = self.open.slot(id(number));
            let mut open = slot.writer.lock().await;
            let in_use = &self.in_use[usize::from(number)];
            assert!(!in_use.swap(true, Ordering::SeqCst), "two writers hold the lock");
            if open.is_none() {
                let snapshot = slot.snapshot().0;
                let stored = snapshot.unwrap_or_else(|| self.erased.load(Ordering::SeqCst));
                thread::yield_now();
                *open = Some(stored);
            }
            thread::yield_now();
            let seen = open.expect("it is open");
            slot.publish(seen);
            in_use.store(false, Ordering::SeqCst);
            seen
        }

        /// Erases something. A reader or writer that starts afterwards must not see an older value.
        async fn erase(&self) {
            let erased = self.erased.fetch_add(1, Ordering::SeqCst) + 1;
            self.open.close_all().await;
            for number in 0..3 {
                let seen = [self.read(number).await, self.write(number).await];
                assert!(seen.iter().all(|&seen| seen >= erased), "{number} shows what was erased");
            }
        }
    }

    fn race() {
        let world = World::new();
        let mut threads = Vec::new();
        for reader in 0..3 {
            let world = world.clone();
            threads.push(thread::spawn(move || {
                block_on(async {
                    for step in 0..3 {
                        world.read((reader + step) % 3).await;
                        world.write((reader + step + 1) % 3).await;
                        if step == reader {
                            world.open.forget(id(step));
                        }
                    }
                });
            }));
        }
        let eraser = world.clone();
        threads.push(thread::spawn(move || block_on(eraser.erase())));
        block_on(world.erase());
        for thread in threads {
            thread.join().expect("it does not panic");
        }
        block_on(async {
            for number in 0..3 {
                assert_eq!(world.read(number).await, 2);
            }
            let all = world.open.slots.lock().expect("nothing panicked").all.len();
            assert!(all <= 2, "{all} slots are remembered, and one is kept");
        });
    }

    #[test]
    fn concurrent_readers_and_writers_see_no_erased_value() {
        shuttle::check_random(race, 3_000);
        shuttle::check_pct(race, 3_000, 3);
    }
}
