//! Temporary scopes: messages that are appended inside leave the view when the scope ends, also if the
//! work fails, panics or its process dies.
//!
//! A scope is a batch with a lease. The lease is an entry that was never visible, with the mark `lease`. This
//! file calls it a note; it is not the note of a version. It holds the batch to return to, and the time until
//! which the scope is held. The holder renews the lease while the work runs, and ends the scope. If the
//! holder dies, the next process that opens the conversation ends the scope.
//!
//! ```text
//! batch 2 ──► [note, MARK lease, BATCH_START] ──► batch 3: the work ──► [BATCH_END 2 with carry, UNMARK]
//!                                                  │  │  ✗ the holder dies
//!                                                  │  └─ the next open: [BATCH_END 2, UNMARK]
//!                                                  └─ half of the lease is over: [note, MARK, UNMARK]
//! ```
//!
//! A holder on the same machine locks a file, and the operating system releases the lock when the process
//! dies (`holder.rs`). For a holder on another machine only the time of the lease is known. That time comes
//! from `Options::clock`: clocks of machines that share a store must not differ by more than the lease,
//! or one machine ends a scope that another one still uses.

use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use recto_core::{
    Append, BatchEnd, BatchIndex, BatchStart, Carry, LogIndex, Mark, Message, Operation, Request,
    Rollback, Timestamp, Unmark, Version,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::holder::{Holder, HolderState};
use crate::{Conversation, Error, WriteOptions};

/// The mark on notes of leases.
const LEASE: &str = "lease";
/// Minimum time between two renewals of a lease.
const MIN_RENEWAL_INTERVAL: Duration = Duration::from_millis(20);

/// Options of a temporary scope. Fields may be added: construct it with `..Temporary::default()`.
#[derive(Clone, Debug)]
pub struct Temporary {
    /// The reason of the batch. Default: "temporary".
    pub reason: String,
    /// The entries that stay visible afterwards, at the end of the view. Default: none. Nothing is
    /// carried if the work panics or the holder dies.
    pub carry: Carry,
    /// The time after which another process may end the scope if the lease was not renewed. Default:
    /// 10 minutes. The holder renews the lease when half of it is over; each renewal is a version.
    pub lease: Duration,
}

impl Default for Temporary {
    fn default() -> Self {
        let (reason, lease) = ("temporary".into(), Duration::from_secs(600));
        Temporary { reason, carry: Carry::None, lease }
    }
}

/// The content of a lease note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Lease {
    /// The id of the scope, the same in every renewal.
    scope: String,
    /// The batch to return to.
    batch: BatchIndex,
    /// The reason of the opened batch, by which the batch is recognised.
    reason: String,
    /// The time after which other processes may end the scope, in milliseconds since 1970.
    until: Timestamp,
}

impl Conversation {
    /// Runs work in a temporary scope. Afterwards the view is the one from before, plus the entries that
    /// are carried. If the work panics, the scope is ended before the panic continues. If the process
    /// dies or the future is dropped, the next process that opens the conversation ends the scope.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// use recto::{Approx, Carry, Message, Recto, Role, Settings, Temporary};
    ///
    /// let recto = Recto::open("memory:").await?;
    /// let conversation = recto.create("a", Settings::counting_with(Approx)).await?;
    /// conversation.append([Message::user("What does the manual say?")]).await?;
    /// let scope = Temporary { carry: Carry::Roles(Role::Assistant.into()), ..Temporary::default() };
    /// let manual = [Message::user("The manual: …"), Message::assistant("Press the button.")];
    /// conversation.with_temporary(scope, conversation.append(manual)).await??;
    /// let entries = conversation.messages().await?;
    /// let texts: Vec<_> = entries.iter().map(|entry| entry.message.text()).collect();
    /// assert_eq!(texts, ["What does the manual say?", "Press the button."]);
    /// # Ok::<(), recto::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn with_temporary<T>(
        &self,
        scope: Temporary,
        work: impl Future<Output = T>,
    ) -> Result<T, Error> {
        let held = HeldScope::begin(self, scope).await?;
        let done = {
            let (mut work, mut renewal) = (pin!(work), pin!(held.keep_renewing()));
            // Both are polled in turn, because the work may hold a lock that the renewal waits for.
            std::future::poll_fn(|context| {
                match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
                    Ok(Poll::Ready(done)) => return Poll::Ready(Ok(done)),
                    Err(panic) => return Poll::Ready(Err(panic)),
                    Ok(Poll::Pending) => {}
                }
                match renewal.as_mut().poll(context) {
                    Poll::Ready(never) => match never {},
                    Poll::Pending => Poll::Pending,
                }
            })
            .await
        };
        held.end(done.is_ok()).await?;
        match done {
            Ok(done) => Ok(done),
            Err(panic) => resume_unwind(panic),
        }
    }

    /// Ends the temporary scopes whose holder has died or whose lease is over. Returns how many were
    /// ended. [`Recto::conversation`](crate::Recto::conversation) calls it when the conversation is not
    /// open in the process yet.
    pub async fn end_expired_scopes(&self) -> Result<usize, Error> {
        let now = self.now();
        self.end_scopes(|lease| match Holder::state(&lease.scope) {
            HolderState::Dead => true,
            HolderState::Alive => false,
            HolderState::Unknown => lease.until <= now,
        })
        .await
    }

    /// Ends all temporary scopes, including those that other tasks and processes still use. Returns how
    /// many were ended.
    pub async fn end_all_scopes(&self) -> Result<usize, Error> {
        self.end_scopes(|_| true).await
    }

    async fn end_scopes(&self, is_due: impl Fn(&Lease) -> bool) -> Result<usize, Error> {
        let mut ended = 0;
        // Innermost first.
        for (note, lease) in leases(self).await?.into_iter().rev() {
            match lease {
                Some(lease) if is_due(&lease) => {
                    end(self, &lease.scope, Carry::None).await?;
                    Holder::remove_file(&lease.scope);
                    ended += 1;
                }
                Some(_) => {}
                // A note that cannot be read, for example because it was erased, holds no scope.
                None => {
                    self.apply(Unmark::label([note], LEASE)).await?;
                }
            }
        }
        Ok(ended)
    }
}

/// A temporary scope of this process.
pub(crate) struct HeldScope {
    conversation: Conversation,
    options: Temporary,
    id: String,
    holder: Holder,
}

impl HeldScope {
    /// Opens the batch, with a lease note.
    pub(crate) async fn begin(
        conversation: &Conversation,
        options: Temporary,
    ) -> Result<HeldScope, Error> {
        let id = recto_store::new_id(conversation.now()).to_string();
        // Locked before the lease is visible to other processes.
        let holder = Holder::lock(&id);
        let held = HeldScope { conversation: conversation.clone(), options, id, holder };
        loop {
            let version = conversation.version().await?;
            let info = conversation.version_info(version).await?;
            let index = LogIndex(info.log as u32);
            // The index of the note makes the reason unique.
            let reason = format!("{} (scope {index})", held.options.reason);
            let (scope, until) = (held.id.clone(), held.lease_end());
            let lease = Lease { scope, batch: info.batch, reason: reason.clone(), until };
            let operations = [
                Operation::from(Append { messages: vec![held.note(&lease)?] }),
                Operation::from(Rollback::ToVersion(version)),
                Operation::from(Mark::label([index], LEASE)),
                Operation::from(BatchStart::default()),
            ];
            let request = operations.into_iter().map(|step| step.reason(&reason)).collect();
            if is_accepted(conversation, request, version).await? {
                return Ok(held);
            }
        }
    }

    /// Renews the lease until the future is dropped. After a failure the next renewal follows at the
    /// usual time.
    pub(crate) async fn keep_renewing(&self) -> Infallible {
        loop {
            tokio::time::sleep((self.options.lease / 2).max(MIN_RENEWAL_INTERVAL)).await;
            if let Err(error) = self.renew().await {
                tracing::warn!(
                    conversation = %self.conversation.id,
                    error = error.for_log(),
                    "the lease of a temporary scope could not be renewed"
                );
            }
        }
    }

    async fn renew(&self) -> Result<(), Error> {
        loop {
            let version = self.conversation.version().await?;
            let held = leases(&self.conversation).await?;
            let own = held.into_iter().find_map(|(note, lease)| {
                lease.filter(|lease| lease.scope == self.id).map(|lease| (note, lease))
            });
            // The work may have restored a version from before the scope.
            let Some((old, lease)) = own else { return Ok(()) };
            let new = LogIndex(self.conversation.version_info(version).await?.log as u32);
            let lease = Lease { until: self.lease_end(), ..lease };
            let operations = [
                Operation::from(Append { messages: vec![self.note(&lease)?] }),
                Operation::from(Rollback::ToVersion(version)),
                Operation::from(Mark::label([new], LEASE)),
                Operation::from(Unmark::label([old], LEASE)),
            ];
            let reason = "a lease is renewed";
            let request = operations.into_iter().map(|step| step.reason(reason)).collect();
            if is_accepted(&self.conversation, request, version).await? {
                return Ok(());
            }
        }
    }

    /// Ends the scope. Entries are carried only if the work has returned.
    pub(crate) async fn end(self, has_returned: bool) -> Result<(), Error> {
        let carry = if has_returned { self.options.carry } else { Carry::None };
        end(&self.conversation, &self.id, carry).await?;
        self.holder.release();
        Ok(())
    }

    /// A lease note.
    fn note(&self, lease: &Lease) -> Result<Message, Error> {
        let message = json!({
            "role": "assistant",
            "content": format!("[a temporary scope: {}]", self.options.reason),
            "metadata": { "lease": lease },
        });
        Ok(Message::from_json(&message.to_string())?)
    }

    /// The end of a lease that starts now.
    fn lease_end(&self) -> Timestamp {
        let lease = self.options.lease.as_millis().min(i64::MAX as u128) as i64;
        self.conversation.now().saturating_add(lease)
    }
}

/// The present leases, oldest first. `None` for a note that cannot be read.
async fn leases(conversation: &Conversation) -> Result<Vec<(LogIndex, Option<Lease>)>, Error> {
    let marks = conversation.marks().await?;
    let notes = marks.into_iter().find(|(mark, _)| mark == LEASE);
    let mut leases = Vec::new();
    for note in notes.into_iter().flat_map(|(_, notes)| notes) {
        leases.push((note, lease(conversation, note).await?));
    }
    Ok(leases)
}

/// Returns to the batch below the scope, if the scope's batch is still on the live path, and unmarks the
/// lease.
async fn end(conversation: &Conversation, id: &str, carry: Carry) -> Result<(), Error> {
    loop {
        let version = conversation.version().await?;
        let held = leases(conversation).await?.into_iter();
        let own = held.filter_map(|(note, lease)| Some((note, lease?)));
        let own: Vec<(LogIndex, Lease)> = own.filter(|(_, lease)| lease.scope == id).collect();
        let Some((first, lease)) = own.first() else { return Ok(()) };
        let mut operations: Vec<Operation> = Vec::new();
        let opened = BatchIndex(lease.batch.0 + 1);
        let is_live = match conversation.snapshot(opened).await {
            Ok(snapshot) => snapshot.reason == lease.reason,
            Err(error) if error.code() == "batch_not_found" => false,
            Err(error) => return Err(error),
        };
        if is_live {
            operations.push(BatchEnd { target: Some(lease.batch), carry }.into());
        }
        let notes = own.iter().map(|(note, _)| *note);
        operations.push(Unmark::label(notes, LEASE).into());
        let reason = format!("end of scope {first}");
        let request = operations.into_iter().map(|step| step.reason(&reason)).collect();
        if is_accepted(conversation, request, version).await? {
            return Ok(());
        }
    }
}

/// Applies a request to a version. `false` after a version conflict.
async fn is_accepted(
    conversation: &Conversation,
    request: Request,
    version: Version,
) -> Result<bool, Error> {
    match conversation.apply_with(request, WriteOptions::expecting(version)).await {
        Ok(_) => Ok(true),
        Err(error) if error.is_conflict() => Ok(false),
        Err(error) => Err(error),
    }
}

/// The lease in a note.
async fn lease(conversation: &Conversation, note: LogIndex) -> Result<Option<Lease>, Error> {
    #[derive(Deserialize)]
    struct Note {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    struct Metadata {
        lease: Lease,
    }
    let Some(message) = conversation.message(note).await? else { return Ok(None) };
    match serde_json::from_str::<Note>(message.json()) {
        Ok(note) => Ok(Some(note.metadata.lease)),
        Err(error) => {
            // The text of the error can quote the message.
            let (kind, column) = (error.classify(), error.column());
            tracing::warn!(conversation = %conversation.id, ?kind, column, "a lease cannot be read");
            Ok(None)
        }
    }
}
