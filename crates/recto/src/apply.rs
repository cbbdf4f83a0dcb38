//! How a request is accepted: the engine makes the next version, the store keeps it, and only then
//! is it visible.

use recto_core::{LogIndex, Outcome, PartialConversation, Request, Tool, Version};
use recto_store::{IdempotencyKey, hash_of};

use crate::clock::now;
use crate::open_slots::Slot;
use crate::opened::Opened;
use crate::{Entry, Error, StoredConversation};

/// What a writer may ask for beside the request itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Write {
    /// The version that the writer has seen: refused with `version_conflict` if it is not the
    /// newest any more. Without it, the request is applied to whatever is newest.
    pub expected_version: Option<Version>,
    /// A key of the writer's own, for this conversation. A request that is repeated with the same
    /// key is not applied again; it answers what the first one answered, whatever the expected
    /// version says. Keys are kept as long as the conversation; forks do not have them. A good key
    /// is random and long.
    pub key: Option<String>,
}

/// What a request would do.
#[derive(Clone, Debug)]
pub struct Preview {
    /// What it would answer.
    pub outcome: Outcome,
    /// The messages that it would add to the log. They are nowhere else.
    pub added: Vec<Entry>,
    /// The entries of the view afterwards that describe tools, in ascending order. They are not sent
    /// to a provider, which receives the tools themselves.
    pub descriptions: Vec<LogIndex>,
}

/// A request that is tried again for as long as others keep winning.
const MOST_ATTEMPTS: u32 = 10_000;

impl StoredConversation {
    /// Performs a request on the newest version. `Ok` means that it is durable.
    pub async fn apply(&self, request: impl Into<Request>) -> Result<Outcome, Error> {
        self.apply_with(request, Write::default()).await
    }

    /// [`apply`](Self::apply), with an expected version or an idempotency key.
    pub async fn apply_with(
        &self,
        request: impl Into<Request>,
        write: Write,
    ) -> Result<Outcome, Error> {
        let request = request.into();
        let hash = || hash_of(request.to_json().as_bytes());
        let perform =
            |conversation: &PartialConversation| conversation.apply_request(&request, self.now());
        let mut outcome = self.perform(perform, hash, write).await?;
        // A repeated request is not performed again, but its warnings are the same.
        outcome.add_warnings_of(&request);
        Ok(outcome)
    }

    /// What a request would do to the newest version. Nothing is kept.
    pub async fn preview(&self, request: impl Into<Request>) -> Result<Preview, Error> {
        self.preview_with(request, Write::default()).await
    }

    /// [`preview`](Self::preview) with an expected version.
    pub async fn preview_with(
        &self,
        request: impl Into<Request>,
        write: Write,
    ) -> Result<Preview, Error> {
        let request = request.into();
        let perform =
            |conversation: &PartialConversation| conversation.apply_request(&request, self.now());
        self.foretell(perform, write).await
    }

    /// What [`set_tools`](Self::set_tools) would do to the newest version. Nothing is kept.
    pub async fn preview_tools(&self, tools: Vec<Tool>, write: Write) -> Result<Preview, Error> {
        let perform =
            |conversation: &PartialConversation| conversation.set_tools(tools.clone(), self.now());
        self.foretell(perform, write).await
    }

    async fn foretell(
        &self,
        perform: impl Fn(
            &PartialConversation,
        ) -> Result<(PartialConversation, Outcome), recto_core::Error>,
        write: Write,
    ) -> Result<Preview, Error> {
        let mut opened = self.reading().await?;
        check_expected(&opened, write.expected_version)?;
        let perform = |conversation: &PartialConversation| {
            let (next, outcome) = perform(conversation)?;
            let descriptions = next.tool_descriptions()?;
            Ok((next, outcome, descriptions))
        };
        let (next, outcome, descriptions) = opened.with(perform).await?;
        let entry = |index: LogIndex| {
            let entry = next.entry(index)?;
            let (message, timestamp) = (entry.message.clone(), entry.timestamp);
            let tokens = next.tokens(index)?;
            Ok(Entry {
                index,
                position: next.view().position_of(index),
                message,
                tokens,
                timestamp,
            })
        };
        let added: Result<Vec<Entry>, recto_core::Error> =
            outcome.added().into_iter().map(entry).collect();
        let added = added?;
        Ok(Preview { outcome, added, descriptions })
    }

    /// Sets other tools: a request of its own.
    pub async fn set_tools(&self, tools: Vec<Tool>, write: Write) -> Result<Outcome, Error> {
        let hash = || {
            let list = serde_json::to_string(&tools).expect("tools are JSON");
            hash_of(format!(r#"{{"operation":"SET_TOOLS","tools":{list}}}"#).as_bytes())
        };
        let perform =
            |conversation: &PartialConversation| conversation.set_tools(tools.clone(), self.now());
        self.perform(perform, hash, write).await
    }

    async fn perform(
        &self,
        perform: impl Fn(
            &PartialConversation,
        ) -> Result<(PartialConversation, Outcome), recto_core::Error>,
        hash: impl Fn() -> [u8; 32],
        write: Write,
    ) -> Result<Outcome, Error> {
        let slot = self.recto.shared.open.slot(self.id);
        let mut open = slot.writer.lock().await;
        for attempt in 0..MOST_ATTEMPTS {
            self.opened_for(&slot, &mut open, write.expected_version).await?;
            if let Some(key) = &write.key
                && let Some(answer) = self.repeated(&slot, &mut open, key, hash()).await?
            {
                return Ok(answer);
            }
            let opened = open.as_mut().expect("it is open");
            check_expected(opened, write.expected_version)?;
            let done = opened.with(&perform).await;
            if !matches!(&done, Ok((_, outcome)) if outcome.changed) {
                // A refusal stands only if it is about the newest version.
                let seen = opened.conversation.version();
                let opened = self.newest(&slot, &mut open).await?;
                if opened.conversation.version() != seen {
                    continue;
                }
            }
            let (next, outcome) = done?;
            let opened = open.as_mut().expect("it is open");
            let key = write.key.as_ref().map(|key| IdempotencyKey {
                key: key.clone(),
                request: hash(),
                version: next.version().0,
                changed: outcome.changed,
            });
            let stored = self.keep(opened, next, &outcome, key).await;
            match stored {
                Ok(()) => {
                    slot.publish(opened.clone());
                    return Ok(outcome);
                }
                Err(Error::Store(
                    recto_store::Error::VersionConflict { .. }
                    | recto_store::Error::KeyReused { .. },
                )) => {
                    // Others were quicker. Look at what they did, and try again.
                    let is_close = opened.catch_up().await?;
                    if !is_close {
                        *open = None;
                        slot.withdraw();
                    }
                    pause(attempt).await;
                }
                // What is open here is not what is stored any more.
                Err(Error::Store(recto_store::Error::RowsChanged)) => {
                    *open = None;
                    slot.withdraw();
                }
                Err(error) => {
                    // What is stored now is known to the store alone.
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

    /// Stores what the engine made, and goes on from it.
    async fn keep(
        &self,
        opened: &mut Opened,
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
        let prepared = opened.prepare(&next, key, self.recto.shared.is_searched).await?;
        let packed_below = prepared.commit.seal.as_ref().map_or(0, |seal| seal.below);
        store.commit(prepared.commit).await?;
        opened.advance(prepared.open.into(), next, packed_below);
        Ok(())
    }

    /// The answer of an earlier request with this key.
    async fn repeated(
        &self,
        slot: &Slot<Opened>,
        open: &mut Option<Opened>,
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
        let seen = open.as_ref().map(|opened| opened.conversation.version());
        if seen < Some(version) {
            self.newest(slot, open).await?;
        }
        let opened = open.as_mut().expect("it is open");
        let answer = opened.with(|conversation| match known.changed {
            true => conversation.outcome(version),
            false => conversation.idle_outcome(version),
        });
        answer.await.map(Some)
    }

    /// Opens the conversation for a writer. It follows others only if the writer has seen something
    /// else than is open here: the store notices it anyway.
    async fn opened_for(
        &self,
        slot: &Slot<Opened>,
        open: &mut Option<Opened>,
        seen: Option<Version>,
    ) -> Result<(), Error> {
        let light = open.as_ref().filter(|opened| !opened.is_heavy());
        let known = light.map(|opened| opened.conversation.version());
        if known.is_none() || seen.is_some() && seen != known {
            self.newest(slot, open).await?;
        }
        Ok(())
    }
}

/// Refuses a writer who has not seen the newest version.
pub(crate) fn check_expected(opened: &Opened, expected: Option<Version>) -> Result<(), Error> {
    let current = opened.conversation.version();
    match expected {
        Some(expected) if expected != current => {
            let (expected, current) = (expected.0, current.0);
            Err(recto_store::Error::VersionConflict { expected, current }.into())
        }
        _ => Ok(()),
    }
}

/// Waits a little longer each time, so that many writers do not keep running into each other.
async fn pause(attempt: u32) {
    if attempt > 2 {
        // What differs between writers is when they get here; the clock's fraction is random enough.
        let jitter = u64::from(now().unsigned_abs() as u32 % 4);
        let longest = u64::from(attempt.min(20));
        tokio::time::sleep(std::time::Duration::from_millis(jitter * longest / 4)).await;
    }
}
