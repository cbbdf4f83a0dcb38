//! The conversations that are open in this process.
//!
//! What always holds:
//! - whoever asks for the same conversation at the same time gets the same slot, so that its lock
//!   gives all of them their turns in order;
//! - after [`OpenSlots::close_all`], no slot holds what was put into one before it was called.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use recto_store::ConversationId;

use crate::sync::Mutex;

/// A conversation that may be open, behind a lock that gives writers their turns in order.
pub(crate) type Slot<T> = Arc<tokio::sync::Mutex<Option<T>>>;

/// The slots of conversations. The ones that were used last are kept open.
pub(crate) struct OpenSlots<T> {
    slots: Mutex<Slots<T>>,
    most_kept: usize,
}

struct Slots<T> {
    /// Also slots that are not kept any more and are still used somewhere.
    all: HashMap<ConversationId, Weak<tokio::sync::Mutex<Option<T>>>>,
    /// The ones to be kept, the one used last at the end.
    kept: Vec<(ConversationId, Slot<T>)>,
}

impl<T> OpenSlots<T> {
    /// Keeps so many open.
    pub(crate) fn keeping(most_kept: usize) -> OpenSlots<T> {
        let slots = Slots { all: HashMap::new(), kept: Vec::new() };
        OpenSlots { slots: Mutex::new(slots), most_kept: most_kept.max(1) }
    }

    /// The place of a conversation, open or not.
    pub(crate) fn slot(&self, id: ConversationId) -> Slot<T> {
        let mut slots = self.slots.lock().expect("nothing panics while it is held");
        if let Some(at) = slots.kept.iter().position(|(other, _)| *other == id) {
            let kept = slots.kept.remove(at);
            let slot = kept.1.clone();
            slots.kept.push(kept);
            return slot;
        }
        let used = slots.all.get(&id).and_then(Weak::upgrade);
        let slot = used.unwrap_or_else(|| Arc::new(tokio::sync::Mutex::new(None)));
        slots.all.insert(id, Arc::downgrade(&slot));
        slots.kept.push((id, slot.clone()));
        if slots.kept.len() > self.most_kept {
            slots.kept.remove(0);
            slots.all.retain(|_, slot| slot.strong_count() > 0);
        }
        slot
    }

    /// Does not keep a conversation any more.
    pub(crate) fn forget(&self, id: ConversationId) {
        let mut slots = self.slots.lock().expect("nothing panics while it is held");
        slots.kept.retain(|(other, _)| *other != id);
    }

    /// Lets go of every open conversation.
    pub(crate) async fn close_all(&self) {
        let slots: Vec<Slot<T>> = {
            let slots = self.slots.lock().expect("nothing panics while it is held");
            slots.all.values().filter_map(Weak::upgrade).collect()
        };
        for slot in slots {
            *slot.lock().await = None;
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

    /// Stored conversations of which only one thing is known: how often something was erased.
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

        /// Reads a conversation, opening it if need be, and says what it saw.
        async fn read(&self, number: u8) -> u32 {
            let slot = self.open.slot(id(number));
            let mut slot = slot.lock().await;
            let in_use = &self.in_use[usize::from(number)];
            assert!(!in_use.swap(true, Ordering::SeqCst), "two have the same turn");
            if slot.is_none() {
                let stored = self.erased.load(Ordering::SeqCst);
                thread::yield_now();
                *slot = Some(stored);
            }
            thread::yield_now();
            let seen = slot.expect("it is open");
            in_use.store(false, Ordering::SeqCst);
            seen
        }

        /// Erases something. Whoever reads afterwards does not see what was before.
        async fn erase(&self) {
            let erased = self.erased.fetch_add(1, Ordering::SeqCst) + 1;
            self.open.close_all().await;
            for number in 0..3 {
                let seen = self.read(number).await;
                assert!(seen >= erased, "conversation {number} shows what was erased");
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
    fn whoever_reads_and_erases_in_whatever_order_takes_turns_and_sees_what_is_stored() {
        shuttle::check_random(race, 3_000);
        shuttle::check_pct(race, 3_000, 3);
    }
}
