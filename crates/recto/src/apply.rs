//! How a request becomes a version: the engine makes the next value, the store commits it, and only then
//! is it visible.
//!
//! ```text
//! lock the slot's writer
//!   ├─ the idempotency key is known: return the earlier outcome
//!   ├─ the engine applies the request to the loaded version
//!   ├─ the store inserts the row of the next version
//!   │    └─ version conflict: load what other writers stored, try again
//!   └─ publish the next value, return the outcome
//! ```

use recto_core::{LogIndex, Note, Outcome, PartialConversation, Request, Tool, Version};
#[cfg(feature = "format")]
use recto_store::Commit;
use recto_store::{IdempotencyKey, hash_of};
use tracing::Instrument;

use crate::attempts::{Attempts, pause};
use crate::loaded::LoadedConversation;
use crate::open_slots::Slot;
use crate::{Conversation, Entry, Error};

/// Options of a write. Fields may be added: construct it with `..WriteOptions::default()`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// The request is refused with `version_conflict` if another version than this is the newest.
    /// Default: the request is applied to the newest version.
    pub expected_version: Option<Version>,
    /// A key that the caller chooses, unique within the conversation. A repeated request with the same
    /// key is not applied again: it returns the outcome of the first one, and the expected version is
    /// not compared. Keys are kept as long as the conversation; forks do not inherit them. Use a long
    /// random key.
    pub idempotency_key: Option<String>,
    /// JSON that is stored with the version, in the same transaction, and read with
    /// [`version_info`](Conversation::version_info). A request that makes no version stores no note.
    pub note: Option<Note>,
}

impl WriteOptions {
    /// Options with an expected version.
    pub fn expecting(version: Version) -> WriteOptions {
        WriteOptions { expected_version: Some(version), ..WriteOptions::default() }
    }

    /// Options with an idempotency key.
    pub fn keyed(idempotency_key: impl Into<String>) -> WriteOptions {
        WriteOptions { idempotency_key: Some(idempotency_key.into()), ..WriteOptions::default() }
    }
}

/// What a request would do.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Preview {
    /// The outcome that the request would return.
    pub outcome: Outcome,
    /// The entries that the request would add to the log.
    pub added: Vec<Entry>,
    /// The entries of the new view that are tool descriptions, in ascending order. A provider request
    /// does not contain them, because the provider receives the tools themselves.
    pub descriptions: Vec<LogIndex>,
}

/// Maximum attempts after version conflicts.
const MAX_COMMIT_ATTEMPTS: u32 = 10_000;

impl Conversation {
    /// Applies a request to the newest version. `Ok` means that the new version is durable.
    pub async fn apply(&self, request: impl Into<Request>) -> Result<Outcome, Error> {
        self.apply_with(request, WriteOptions::default()).await
    }

    /// [`apply`](Self::apply) with an expected version, an idempotency key or a note.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// use recto::{Append, Approx, Message, Recto, Settings, Version, WriteOptions};
    ///
    /// let recto = Recto::open("memory:").await?;
    /// let conversation = recto.create("a", Settings::counting_with(Approx)).await?;
    /// let hello = || Append::messages([Message::user("Hello!")]);
    /// let first = conversation.apply_with(hello(), WriteOptions::keyed("f81d4fae")).await?;
    /// let again = conversation.apply_with(hello(), WriteOptions::keyed("f81d4fae")).await?;
    /// assert_eq!((first.version, again.version), (Version(1), Version(1)));
    ///
    /// let late = conversation.apply_with(hello(), WriteOptions::expecting(Version(0))).await;
    /// assert!(late.unwrap_err().is_conflict());
    /// # Ok::<(), recto::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn apply_with(
        &self,
        request: impl Into<Request>,
        options: WriteOptions,
    ) -> Result<Outcome, Error> {
        let request = request.into();
        let hash = || hash_of(request.to_json().as_bytes());
        let perform =
            |conversation: &PartialConversation| conversation.apply_request(&request, self.now());
        let mut outcome = self.perform(perform, hash, options).await?;
        // A repeated request is not applied again, but its warnings are the same.
        outcome.add_warnings_of(&request);
        Ok(outcome)
    }

    /// Applies requests one after the other, the first one to the expected version, and commits their
    /// versions in groups. Returns the newest version. After an error, the first versions may be stored.
    #[cfg(feature = "format")]
    pub(crate) async fn apply_all(
        &self,
        requests: Vec<Request>,
        expected: Version,
    ) -> Result<Version, Error> {
        let slot = self.recto.shared.open.slot(self.id);
        let mut open = slot.writer.lock().await;
        self.load_for_write(&slot, &mut open, Some(expected)).await?;
        let loaded = open.as_mut().expect("it is loaded");
        check_expected(loaded, Some(expected))?;
        let span =
            tracing::debug_span!("apply", conversation = %self.id, requests = requests.len());
        match self.apply_in_groups(loaded, &requests).instrument(span).await {
            Ok(()) => {
                slot.publish(loaded.clone());
                Ok(loaded.conversation.version())
            }
            Err(error) => {
                // Some versions may be stored, others are only in memory.
                *open = None;
                slot.withdraw();
                Err(error)
            }
        }
    }

    #[cfg(feature = "format")]
    async fn apply_in_groups(
        &self,
        loaded: &mut LoadedConversation,
        requests: &[Request],
    ) -> Result<(), Error> {
        let mut group = Vec::new();
        for request in requests {
            let perform = |conversation: &PartialConversation| {
                conversation.apply_request(request, self.now())
            };
            let (next, outcome) = loaded.with(perform).await?;
            if !outcome.changed {
                continue;
            }
            let prepared = loaded.prepare(&next, None, self.recto.shared.is_searched)?;
            let packed_below = prepared.commit.seal.as_ref().map_or(0, |seal| seal.below);
            group.push(prepared.commit);
            // Packed rows are read from the store, so they must be there before the next request.
            if packed_below > 0 {
                self.commit_group(std::mem::take(&mut group)).await?;
            }
            loaded.advance(prepared.open.into(), next, packed_below);
        }
        self.commit_group(group).await
    }

    #[cfg(feature = "format")]
    async fn commit_group(&self, group: Vec<Commit>) -> Result<(), Error> {
        let Some(newest) = group.last().map(|commit| commit.row.head.version) else {
            return Ok(());
        };
        let span = tracing::debug_span!("commit", version = newest, versions = group.len());
        Ok(self.recto.shared.store.commit_all(group).instrument(span).await?)
    }

    /// What a request would do to the newest version. Nothing is stored.
    pub async fn preview(&self, request: impl Into<Request>) -> Result<Preview, Error> {
        self.preview_with(request, WriteOptions::default()).await
    }

    /// [`preview`](Self::preview) with an expected version.
    pub async fn preview_with(
        &self,
        request: impl Into<Request>,
        options: WriteOptions,
    ) -> Result<Preview, Error> {
        let request = request.into();
        let perform =
            |conversation: &PartialConversation| conversation.apply_request(&request, self.now());
        self.simulate(perform, options).await
    }

    /// Replaces the tools.
    pub async fn set_tools(&self, tools: Vec<Tool>) -> Result<Outcome, Error> {
        self.set_tools_with(tools, WriteOptions::default()).await
    }

    /// [`set_tools`](Self::set_tools) with an expected version, an idempotency key or a note.
    pub async fn set_tools_with(
        &self,
        tools: Vec<Tool>,
        options: WriteOptions,
    ) -> Result<Outcome, Error> {
        let hash = || {
            let list = serde_json::to_string(&tools).expect("tools are JSON");
            hash_of(format!(r#"{{"operation":"SET_TOOLS","tools":{list}}}"#).as_bytes())
        };
        let perform =
            |conversation: &PartialConversation| conversation.set_tools(tools.clone(), self.now());
        self.perform(perform, hash, options).await
    }

    /// What [`set_tools`](Self::set_tools) would do to the newest version. Nothing is stored.
    pub async fn preview_tools(&self, tools: Vec<Tool>) -> Result<Preview, Error> {
        self.preview_tools_with(tools, WriteOptions::default()).await
    }

    /// [`preview_tools`](Self::preview_tools) with an expected version.
    pub async fn preview_tools_with(
        &self,
        tools: Vec<Tool>,
        options: WriteOptions,
    ) -> Result<Preview, Error> {
        let perform =
            |conversation: &PartialConversation| conversation.set_tools(tools.clone(), self.now());
        self.simulate(perform, options).await
    }

    async fn simulate(
        &self,
        perform: impl Fn(
            &PartialConversation,
        ) -> Result<(PartialConversation, Outcome), recto_core::Error>,
        options: WriteOptions,
    ) -> Result<Preview, Error> {
        let mut loaded = self.reading().await?;
        check_expected(&loaded, options.expected_version)?;
        let perform = |conversation: &PartialConversation| {
            let (next, outcome) = perform(conversation)?;
            let descriptions = next.tool_descriptions()?;
            Ok((next, outcome, descriptions))
        };
        let (next, outcome, descriptions) = loaded.with(perform).await?;
        let entry = |index: LogIndex| {
            let entry = next.entry(index)?;
            let (message, timestamp) = (entry.message.clone(), entry.timestamp);
            let tokens = next.tokens(index)?;
            let position = next.view().position_of(index);
            Ok(Entry { index, position, message, tokens, timestamp })
        };
        let added: Result<_, recto_core::Error> = outcome.added().into_iter().map(entry).collect();
        let added = added?;
        Ok(Preview { outcome, added, descriptions })
    }

    async fn perform(
        &self,
        perform: impl Fn(
            &PartialConversation,
        ) -> Result<(PartialConversation, Outcome), recto_core::Error>,
        hash: impl Fn() -> [u8; 32],
        options: WriteOptions,
    ) -> Result<Outcome, Error> {
        let span = tracing::debug_span!("apply", conversation = %self.id);
        let attempts = self.perform_in_turn(perform, hash, options).instrument(span.clone());
        let outcome = attempts.await?;
        span.in_scope(|| {
            tracing::debug!(version = outcome.version.0, changed = outcome.changed, "applied");
        });
        Ok(outcome)
    }

    async fn perform_in_turn(
        &self,
        perform: impl Fn(
            &PartialConversation,
        ) -> Result<(PartialConversation, Outcome), recto_core::Error>,
        hash: impl Fn() -> [u8; 32],
        options: WriteOptions,
    ) -> Result<Outcome, Error> {
        // The hash that is stored with a key covers the request and its note.
        let hash = || match &options.note {
            Some(note) => hash_of(&[&hash(), note.json().as_bytes()].concat()),
            None => hash(),
        };
        let slot = self.recto.shared.open.slot(self.id);
        let mut open = slot.writer.lock().await;
        let mut attempts = Attempts::default();
        for attempt in 0..MAX_COMMIT_ATTEMPTS {
            self.load_for_write(&slot, &mut open, options.expected_version).await?;
            if let Some(key) = &options.idempotency_key
                && let Some(outcome) = self.repeated(&slot, &mut open, key, hash()).await?
            {
                return Ok(outcome);
            }
            let loaded = open.as_mut().expect("it is loaded");
            let found = (loaded.conversation.version().0, loaded.reader.rewrites);
            attempts.begin(self.id, found).await?;
            check_expected(loaded, options.expected_version)?;
            let done = loaded.with(&perform).await;
            if !matches!(&done, Ok((_, outcome)) if outcome.changed) {
                // An error, or an outcome without a change, is returned only if the loaded data is still
                // current: the version is the newest, and no message was erased or pruned since it was
                // loaded.
                let applied_to = (loaded.conversation.version(), loaded.reader.rewrites);
                let loaded = self.newest(&slot, &mut open).await?;
                if (loaded.conversation.version(), loaded.reader.rewrites) != applied_to {
                    continue;
                }
            }
            let (mut next, outcome) = done?;
            if let Some(note) = options.note.as_ref().filter(|_| outcome.changed) {
                next = next.with_note(note.clone());
            }
            let loaded = open.as_mut().expect("it is loaded");
            let key = options.idempotency_key.as_ref().map(|key| IdempotencyKey {
                key: key.clone(),
                request: hash(),
                version: next.version().0,
                changed: outcome.changed,
            });
            let stored = self.store(loaded, next, &outcome, key).await;
            match stored {
                Ok(()) => {
                    slot.publish(loaded.clone());
                    return Ok(outcome);
                }
                Err(Error::Store(
                    recto_store::Error::VersionConflict { .. }
                    | recto_store::Error::KeyReused { .. },
                )) => {
                    // Another writer was first. Load what it stored, and try again. Pause before loading,
                    // because the next attempt would lack what a busy writer stores during a later pause.
                    pause(attempt).await;
                    let is_close = loaded.catch_up().await?;
                    if !is_close {
                        *open = None;
                        slot.withdraw();
                    }
                }
                // Stored rows differ from the loaded ones: some were packed, erased or pruned.
                Err(Error::Store(recto_store::Error::RowsChanged)) => {
                    *open = None;
                    slot.withdraw();
                }
                Err(error) => {
                    // The commit may or may not be stored.
                    *open = None;
                    slot.withdraw();
                    return Err(error);
                }
            }
        }
        let current = self.recto.shared.store.commits(self.id, None).await?;
        let current = current.last().map_or(0, |row| row.head.version);
        Err(recto_store::Error::VersionConflict { expected: current, current }.into())
    }

    /// Commits the value that the engine made, and makes it the loaded one.
    async fn store(
        &self,
        loaded: &mut LoadedConversation,
        next: PartialConversation,
        outcome: &Outcome,
        key: Option<IdempotencyKey>,
    ) -> Result<(), Error> {
        let store = &self.recto.shared.store;
        if !outcome.changed {
            if let Some(key) = key {
                store.remember(self.id, key).await?;
            }
            return Ok(());
        }
        let prepared = loaded.prepare(&next, key, self.recto.shared.is_searched)?;
        let packed_below = prepared.commit.seal.as_ref().map_or(0, |seal| seal.below);
        let span = tracing::debug_span!("commit", version = next.version().0);
        store.commit(prepared.commit).instrument(span).await?;
        loaded.advance(prepared.open.into(), next, packed_below);
        Ok(())
    }

    /// The outcome of an earlier request with this idempotency key.
    async fn repeated(
        &self,
        slot: &Slot<LoadedConversation>,
        open: &mut Option<LoadedConversation>,
        key: &str,
        request: [u8; 32],
    ) -> Result<Option<Outcome>, Error> {
        let Some(known) = self.recto.shared.store.key(self.id, key).await? else {
            return Ok(None);
        };
        if known.request != request {
            return Err(recto_store::Error::KeyReused { key: key.to_owned() }.into());
        }
        let version = Version(known.version);
        let newest = open.as_ref().map(|loaded| loaded.conversation.version());
        if newest < Some(version) {
            self.newest(slot, open).await?;
        }
        let loaded = open.as_mut().expect("it is loaded");
        let outcome = loaded.with(|conversation| match known.changed {
            true => conversation.outcome(version),
            false => conversation.idle_outcome(version),
        });
        outcome.await.map(Some)
    }

    /// Loads the conversation for a writer. A loaded one is brought up to date only if the writer
    /// expects another version: otherwise the commit detects newer versions.
    async fn load_for_write(
        &self,
        slot: &Slot<LoadedConversation>,
        open: &mut Option<LoadedConversation>,
        expected: Option<Version>,
    ) -> Result<(), Error> {
        let usable = open.as_ref().filter(|loaded| !loaded.is_too_large());
        let known = usable.map(|loaded| loaded.conversation.version());
        if known.is_none() || expected.is_some() && expected != known {
            self.newest(slot, open).await?;
        }
        Ok(())
    }
}

/// Compares the version that a writer expects with the newest one.
pub(crate) fn check_expected(
    loaded: &LoadedConversation,
    expected: Option<Version>,
) -> Result<(), Error> {
    let current = loaded.conversation.version();
    match expected {
        Some(expected) if expected != current => {
            let (expected, current) = (expected.0, current.0);
            Err(recto_store::Error::VersionConflict { expected, current }.into())
        }
        _ => Ok(()),
    }
}
