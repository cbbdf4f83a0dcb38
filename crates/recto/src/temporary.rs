//! Temporary scopes: what is appended inside is gone afterwards, whatever happened.
//!
//! A scope is a batch, and a lease on it. The lease is a note in the log (it was in no view) with the
//! mark `lease`; it says which batch to go back to, and until when the scope may take. Whoever holds the
//! scope renews the lease while it works, and ends the scope, also when the work fails or panics. If the
//! holder dies, the next one who opens the conversation ends it.
//!
//! ```text
//! batch 2 ──► [note, MARK lease, BATCH_START] ──► batch 3: the work ──► [BATCH_END 2 with carry, UNMARK]
//!                                                  │  │  ✗ the holder dies
//!                                                  │  └─ the next open: [BATCH_END 2, UNMARK]
//!                                                  └─ half of the lease is over: [note, MARK, UNMARK]
//! ```
//!
//! Whether a holder on the same machine lives is known at once: it holds a lock on a file of its own,
//! which the system gives up for it when it dies (`holder.rs`). Of one on another machine only the time
//! is known.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, SystemTime};

use recto_core::{
    Append, BatchEnd, BatchIndex, BatchStart, Carry, LogIndex, Mark, Message, Operation, Request,
    Rollback, Unmark, Version,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use crate::holder::{Holder, Life};
use crate::{Error, StoredConversation, Write};

/// The mark on notes of leases.
const LEASE: &str = "lease";
/// A lease is not renewed more often than this.
const SHORTEST: Duration = Duration::from_millis(20);

/// How a temporary scope is held.
#[derive(Clone, Debug)]
pub struct Temporary {
    /// What it is for; it is kept with the batch.
    pub why: String,
    /// What stays afterwards, at the end of the view. It is not carried if the holder dies.
    pub carry: Carry,
    /// How long others wait for a holder of whom they hear nothing. The lease is renewed when half of
    /// it is over, as long as the scope lives; each time is a version.
    pub lease: Duration,
}

impl Default for Temporary {
    /// Nothing stays; ten minutes.
    fn default() -> Self {
        Temporary { why: "temporary".into(), carry: Carry::None, lease: Duration::from_secs(600) }
    }
}

/// What a note says of a scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Lease {
    /// Which scope it is: the same in every renewal.
    scope: String,
    /// The batch to go back to.
    batch: BatchIndex,
    /// The reason of the batch that was opened: so it is known again.
    reason: String,
    /// When others may end it, in milliseconds since 1970.
    until: i64,
}

/// Does some work in a temporary scope of a conversation, and takes back what was appended, but for
/// what is carried. If the work panics, the scope is ended first; if the program dies, by whoever opens
/// the conversation next.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// use recto::{Carry, Message, Recto, Role, Settings, Temporary, with_temporary};
///
/// let talk = Recto::open("memory:").await?.create("talk", Settings::default()).await?;
/// talk.append([Message::user("What does the manual say?")]).await?;
/// let scope = Temporary { carry: Carry::Roles(Role::Assistant.into()), ..Temporary::default() };
/// with_temporary(&talk, scope, async {
///     talk.append([Message::user("The manual: …"), Message::assistant("Press the button.")]).await
/// })
/// .await??;
/// let left: Vec<String> =
///     talk.messages().await?.iter().map(|entry| entry.message.text().into_owned()).collect();
/// assert_eq!(left, ["What does the manual say?", "Press the button."]);
/// # Ok::<(), recto::Error>(())
/// # }).unwrap();
/// ```
pub async fn with_temporary<T>(
    talk: &StoredConversation,
    scope: Temporary,
    work: impl Future<Output = T>,
) -> Result<T, Error> {
    let id = Uuid::now_v7().to_string();
    // Before anybody can see the lease.
    let holder = Holder::new(&id);
    begin(talk, &scope, &id).await?;
    let done = {
        let (mut work, mut renewing) = (pin!(work), pin!(renew(talk, &scope, &id)));
        // Both go on at the same time: the work may hold what the renewal waits for.
        std::future::poll_fn(|context| {
            match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
                Ok(Poll::Ready(done)) => return Poll::Ready(Ok(done)),
                Err(panic) => return Poll::Ready(Err(panic)),
                Ok(Poll::Pending) => {}
            }
            match renewing.as_mut().poll(context) {
                Poll::Ready(never) => match never {},
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    };
    let carry = if done.is_ok() { scope.carry } else { Carry::None };
    end(talk, &id, carry).await?;
    holder.release();
    match done {
        Ok(done) => Ok(done),
        Err(panic) => resume_unwind(panic),
    }
}

/// Ends the scopes of a conversation whose holder has died or whose lease has run out. Answers how many
/// there were. Opening a conversation by its name does it already.
pub async fn end_expired(talk: &StoredConversation) -> Result<usize, Error> {
    end_those(talk, |lease| match Holder::life(&lease.scope) {
        Life::Dead => true,
        Life::Alive => false,
        Life::Unknown => lease.until <= now(),
    })
    .await
}

/// Ends all temporary scopes, for a program that knows that nobody else is in one.
pub async fn end_all(talk: &StoredConversation) -> Result<usize, Error> {
    end_those(talk, |_| true).await
}

async fn end_those(
    talk: &StoredConversation,
    is_due: impl Fn(&Lease) -> bool,
) -> Result<usize, Error> {
    let mut ended = 0;
    // The innermost first.
    for (note, lease) in leases(talk).await?.into_iter().rev() {
        match lease {
            Some(lease) if is_due(&lease) => {
                end(talk, &lease.scope, Carry::None).await?;
                Holder::forget(&lease.scope);
                ended += 1;
            }
            Some(_) => {}
            // A note that says nothing, erased perhaps, holds nothing.
            None => {
                talk.apply(Unmark { indices: vec![note], mark: LEASE.into() }).await?;
            }
        }
    }
    Ok(ended)
}

/// The leases that are held, oldest first.
async fn leases(talk: &StoredConversation) -> Result<Vec<(LogIndex, Option<Lease>)>, Error> {
    let marks = talk.marks().await?;
    let notes = marks.into_iter().find(|(label, _)| label == LEASE);
    let mut leases = Vec::new();
    for note in notes.into_iter().flat_map(|(_, notes)| notes) {
        leases.push((note, lease(talk, note).await?));
    }
    Ok(leases)
}

/// A note of a lease, as the next entry of the log.
fn note(lease: &Lease, why: &str) -> Result<Message, Error> {
    let message = json!({
        "role": "assistant",
        "content": format!("[a temporary scope: {why}]"),
        "metadata": { "lease": lease },
    });
    Ok(Message::from_json(&message.to_string())?)
}

fn until(lease: Duration) -> i64 {
    now().saturating_add(lease.as_millis().min(i64::MAX as u128) as i64)
}

/// Opens the batch, with a note of the lease.
async fn begin(talk: &StoredConversation, scope: &Temporary, id: &str) -> Result<(), Error> {
    loop {
        let version = talk.version().await?;
        let info = talk.version_info(version).await?;
        let index = LogIndex(info.log as u32);
        // The entry's number makes the reason one of its kind.
        let reason = format!("{} (scope {index})", scope.why);
        let (batch, until) = (info.batch, until(scope.lease));
        let lease = Lease { scope: id.to_owned(), batch, reason: reason.clone(), until };
        let steps = [
            Operation::from(Append { messages: vec![note(&lease, &scope.why)?] }),
            Operation::from(Rollback::ToVersion(version)),
            Operation::from(Mark { indices: vec![index], mark: LEASE.into() }),
            Operation::from(BatchStart::default()),
        ];
        let request = steps.into_iter().map(|step| step.reason(&reason)).collect();
        if accepted(talk, request, version).await? {
            return Ok(());
        }
    }
}

/// Renews the lease again and again. A time that fails is made up for by the next.
async fn renew(talk: &StoredConversation, scope: &Temporary, id: &str) -> std::convert::Infallible {
    loop {
        tokio::time::sleep((scope.lease / 2).max(SHORTEST)).await;
        let _ = renew_once(talk, scope, id).await;
    }
}

async fn renew_once(talk: &StoredConversation, scope: &Temporary, id: &str) -> Result<(), Error> {
    loop {
        let version = talk.version().await?;
        let held = leases(talk).await?;
        let mine = held.into_iter().find_map(|(note, lease)| {
            lease.filter(|lease| lease.scope == id).map(|lease| (note, lease))
        });
        // The work may have gone back behind the start of the scope.
        let Some((old, lease)) = mine else { return Ok(()) };
        let new = LogIndex(talk.version_info(version).await?.log as u32);
        let lease = Lease { until: until(scope.lease), ..lease };
        let steps = [
            Operation::from(Append { messages: vec![note(&lease, &scope.why)?] }),
            Operation::from(Rollback::ToVersion(version)),
            Operation::from(Mark { indices: vec![new], mark: LEASE.into() }),
            Operation::from(Unmark { indices: vec![old], mark: LEASE.into() }),
        ];
        let why = "a lease is renewed";
        let request = steps.into_iter().map(|step| step.reason(why)).collect();
        if accepted(talk, request, version).await? {
            return Ok(());
        }
    }
}

/// Goes back to the batch below, if the scope's is still on the live path, and gives the lease up.
async fn end(talk: &StoredConversation, id: &str, carry: Carry) -> Result<(), Error> {
    loop {
        let version = talk.version().await?;
        let held = leases(talk).await?.into_iter();
        let mine = held.filter_map(|(note, lease)| Some((note, lease?)));
        let mine: Vec<(LogIndex, Lease)> = mine.filter(|(_, lease)| lease.scope == id).collect();
        let Some((first, lease)) = mine.first() else { return Ok(()) };
        let mut steps: Vec<Operation> = Vec::new();
        let opened = BatchIndex(lease.batch.0 + 1);
        let is_live = match talk.snapshot(opened).await {
            Ok(snapshot) => snapshot.description == lease.reason,
            Err(error) if error.code() == "batch_not_found" => false,
            Err(error) => return Err(error),
        };
        if is_live {
            steps.push(BatchEnd { target: Some(lease.batch), carry }.into());
        }
        let indices = mine.iter().map(|(note, _)| *note).collect();
        steps.push(Unmark { indices, mark: LEASE.into() }.into());
        let why = format!("end of scope {first}");
        let request = steps.into_iter().map(|step| step.reason(&why)).collect();
        if accepted(talk, request, version).await? {
            return Ok(());
        }
    }
}

/// Performs a request on a version; false if somebody else was quicker.
async fn accepted(
    talk: &StoredConversation,
    request: Request,
    version: Version,
) -> Result<bool, Error> {
    match talk.apply_with(request, Write { expected_version: Some(version), key: None }).await {
        Ok(_) => Ok(true),
        Err(error) if error.is_conflict() => Ok(false),
        Err(error) => Err(error),
    }
}

async fn lease(talk: &StoredConversation, note: LogIndex) -> Result<Option<Lease>, Error> {
    #[derive(Deserialize)]
    struct Noted {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    struct Metadata {
        lease: Lease,
    }
    let message = talk.message(note).await?;
    let noted = message.and_then(|message| serde_json::from_str::<Noted>(message.json()).ok());
    Ok(noted.map(|noted| noted.metadata.lease))
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    since.as_millis() as i64
}
