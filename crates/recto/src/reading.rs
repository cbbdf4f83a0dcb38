//! Snapshots for readers. A reader loads data into a copy of the published snapshot, waits for no writer,
//! and publishes its copy for the next reader.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use recto_core::{PartialConversation, Version};
use tracing::Instrument;

use crate::loaded::LoadedConversation;
use crate::open_slots::{Epoch, Slot};
use crate::{Conversation, Error};

/// A snapshot in use by one reader. Dropping it publishes what was loaded.
pub(crate) struct Reading {
    /// `Some` until the value is dropped.
    loaded: Option<LoadedConversation>,
    /// Where it is published. `None` for a version that is not the newest.
    slot: Option<(Arc<Slot<LoadedConversation>>, Epoch)>,
}

impl Deref for Reading {
    type Target = LoadedConversation;

    fn deref(&self) -> &LoadedConversation {
        self.loaded.as_ref().expect("it is there until it is dropped")
    }
}

impl DerefMut for Reading {
    fn deref_mut(&mut self) -> &mut LoadedConversation {
        self.loaded.as_mut().expect("it is there until it is dropped")
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        if let (Some(loaded), Some((slot, epoch))) = (self.loaded.take(), &self.slot) {
            slot.publish_again(loaded, *epoch, LoadedConversation::is_better_than);
        }
    }
}

impl Conversation {
    /// Loads the newest version from the store.
    pub(crate) async fn load(&self) -> Result<LoadedConversation, Error> {
        let shared = &self.recto.shared;
        let span = tracing::debug_span!("load", conversation = %self.id);
        LoadedConversation::load(shared.store.clone(), self.id, &self.creation, &shared.counters)
            .instrument(span)
            .await
    }

    /// The value of the writer that holds the slot's lock, at the newest version.
    pub(crate) async fn newest<'a>(
        &self,
        slot: &Slot<LoadedConversation>,
        open: &'a mut Option<LoadedConversation>,
    ) -> Result<&'a mut LoadedConversation, Error> {
        let known = open.take().or_else(|| slot.snapshot().0);
        Ok(open.insert(self.brought_up_to_date(known).await?))
    }

    /// A snapshot of the newest version, for reading.
    pub(crate) async fn reading(&self) -> Result<Reading, Error> {
        let slot = self.recto.shared.open.slot(self.id);
        let (snapshot, epoch) = slot.snapshot();
        let loaded = self.brought_up_to_date(snapshot).await?;
        Ok(Reading { loaded: Some(loaded), slot: Some((slot, epoch)) })
    }

    /// A snapshot for reading a version. If the newest version needs rows that are damaged, the
    /// conversation is loaded as it was at that version.
    pub(crate) async fn reading_at(&self, version: Version) -> Result<Reading, Error> {
        match self.reading().await {
            Err(damage) if damage.is_damage() => {
                let shared = &self.recto.shared;
                let (store, creation) = (shared.store.clone(), &self.creation);
                let loaded = LoadedConversation::load_at(
                    store,
                    self.id,
                    creation,
                    &shared.counters,
                    Some(version),
                );
                // The damage of the newest version says more than that this version is missing.
                let loaded = loaded.await.map_err(|_| damage)?;
                Ok(Reading { loaded: Some(loaded), slot: None })
            }
            reading => reading,
        }
    }

    /// A loaded conversation with the versions that were stored since. It is loaded again if it has become
    /// too large, or if [`catch_up`](LoadedConversation::catch_up) cannot add the new versions.
    async fn brought_up_to_date(
        &self,
        known: Option<LoadedConversation>,
    ) -> Result<LoadedConversation, Error> {
        if let Some(mut loaded) = known.filter(|loaded| !loaded.is_too_large())
            && loaded.catch_up().await?
        {
            return Ok(loaded);
        }
        self.load().await
    }

    /// Reads from the engine at the newest version. `read` is called again after data that it needs
    /// was loaded. It must use methods of the engine that return `NotLoaded` for missing data; for
    /// messages use [`messages`](Self::messages) and similar methods.
    pub(crate) async fn read<T>(
        &self,
        read: impl FnMut(&PartialConversation) -> Result<T, recto_core::Error>,
    ) -> Result<T, Error> {
        self.reading().await?.with(read).await
    }

    /// [`read`](Self::read) at a version.
    pub(crate) async fn read_at<T>(
        &self,
        version: Version,
        read: impl FnMut(&PartialConversation) -> Result<T, recto_core::Error>,
    ) -> Result<T, Error> {
        self.reading_at(version).await?.with(read).await
    }
}

#[cfg(test)]
mod tests {
    use recto_core::{Approx, LogIndex, Message, Query, Settings, Version};
    use shuttle::future::block_on;

    use crate::{Keep, Recto};

    /// Shuttle fails the test if every task waits.
    #[test]
    fn reads_do_not_wait_for_a_writer() {
        let mut config = shuttle::Config::new();
        config.stack_size = 4 << 20;
        let scheduler = shuttle::scheduler::RandomScheduler::new(1);
        shuttle::Runner::new(scheduler, config).run(|| block_on(read_beside_a_writer()));
    }

    async fn read_beside_a_writer() {
        let recto = Recto::open("memory:").await.unwrap();
        let settings = Settings::counting_with(Approx);
        let conversation = recto.create("a", settings).await.unwrap();
        conversation.append([Message::user("x")]).await.unwrap();
        // A writer holds this lock while it waits for its commit.
        let slot = recto.shared.open.slot(conversation.id);
        let _writer = slot.writer.lock().await;
        assert_eq!(conversation.stats().await.unwrap().total_messages, 1);
        assert_eq!(conversation.messages().await.unwrap().len(), 1);
        assert_eq!(conversation.query(&Query::containing("x")).await.unwrap().len(), 1);
        assert_eq!(conversation.version().await.unwrap(), Version(1));
        assert_eq!(conversation.versions(Version(0)..Version(2)).await.unwrap().len(), 2);
        assert_eq!(conversation.entries(&[LogIndex(0)]).await.unwrap().len(), 1);
        conversation.diff(Version(0), Version(1)).await.unwrap();
        conversation.state().await.unwrap();
        conversation.messages_to_send(Version(1)).await.unwrap();
        assert!(conversation.verify().await.unwrap().is_sound());
        let keep = Keep { last_versions: Some(1), ..Keep::default() };
        conversation.preview_prune(&keep).await.unwrap();
    }
}
