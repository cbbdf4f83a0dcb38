//! Temporary scopes: what is appended inside is gone afterwards, whatever happened.
//!
//! A scope is a batch, and a lease on it. The lease is a note in the log (it was in no view) with the
//! mark `lease`; it says which batch to go back to, and until when the scope may take. Whoever holds the
//! scope ends it, also when the work fails or panics. If the holder dies, the next one who looks ends
//! it: [`end_expired`], which every run of an agent does first.
//!
//! ```text
//! batch 2 ──► [note, MARK lease, BATCH_START] ──► batch 3: the work ──► [BATCH_END 2 with carry, UNMARK]
//!                                                     ✗ the holder dies
//!                                                     └─ later, anybody: [BATCH_END 2, UNMARK]
//! ```

use std::panic::{AssertUnwindSafe, resume_unwind};
use std::time::{Duration, SystemTime};

use futures_util::FutureExt as _;
use recto::{
    Append, BatchEnd, BatchIndex, BatchStart, Carry, LogIndex, Mark, Message, Operation, Request,
    Rollback, StoredConversation, Unmark, Version, Write,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::Error;

/// The mark on notes of leases.
const LEASE: &str = "lease";

/// How a temporary scope is held.
#[derive(Clone, Debug)]
pub struct Temporary {
    /// What it is for; it is kept with the batch.
    pub why: String,
    /// What stays afterwards, at the end of the view. It is not carried if the holder dies.
    pub carry: Carry,
    /// How long the scope may take before others may end it.
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
    /// The batch to go back to.
    batch: BatchIndex,
    /// The reason of the batch that was opened: so it is known again.
    reason: String,
    /// When others may end it, in milliseconds since 1970.
    until: i64,
}

/// Does some work in a temporary scope of a conversation, and takes back what was appended, but for
/// what is carried. If the work panics, the scope is ended first.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// use recto::{Carry, Message, Recto, Role, Settings};
/// use recto_agent::{Temporary, with_temporary};
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
/// # Ok::<(), recto_agent::Error>(())
/// # }).unwrap();
/// ```
pub async fn with_temporary<T>(
    talk: &StoredConversation,
    scope: Temporary,
    work: impl Future<Output = T>,
) -> Result<T, Error> {
    let note = begin(talk, &scope).await?;
    let done = AssertUnwindSafe(work).catch_unwind().await;
    let carry = if done.is_ok() { scope.carry } else { Carry::None };
    end(talk, note, carry).await?;
    match done {
        Ok(done) => Ok(done),
        Err(panic) => resume_unwind(panic),
    }
}

/// Ends the scopes whose lease has run out. Answers how many there were.
pub async fn end_expired(talk: &StoredConversation) -> Result<usize, Error> {
    end_those(talk, |lease| lease.until <= now()).await
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
    let notes = talk.marks().await?.into_iter().find(|(label, _)| label == LEASE);
    // The innermost first.
    for note in notes.into_iter().flat_map(|(_, notes)| notes).rev() {
        if lease(talk, note).await?.is_none_or(|lease| is_due(&lease)) {
            end(talk, note, Carry::None).await?;
            ended += 1;
        }
    }
    Ok(ended)
}

/// Opens the batch, with a note of the lease.
async fn begin(talk: &StoredConversation, scope: &Temporary) -> Result<LogIndex, Error> {
    loop {
        let version = talk.version().await?;
        let info = talk.version_info(version).await?;
        let note = LogIndex(info.log as u32);
        // The entry's number makes the reason one of its kind.
        let reason = format!("{} (scope {note})", scope.why);
        let until = now().saturating_add(scope.lease.as_millis().min(i64::MAX as u128) as i64);
        let lease = Lease { batch: info.batch, reason: reason.clone(), until };
        let message = json!({
            "role": "assistant",
            "content": format!("[a temporary scope: {}]", scope.why),
            "metadata": { "lease": lease },
        });
        let message = Message::from_json(&message.to_string())?;
        let steps = [
            Operation::from(Append { messages: vec![message] }),
            Operation::from(Rollback::ToVersion(version)),
            Operation::from(Mark { indices: vec![note], mark: LEASE.into() }),
            Operation::from(BatchStart { boundary: None }),
        ];
        let request = steps.into_iter().map(|step| step.because(&reason)).collect();
        if accepted(talk, request, version).await? {
            return Ok(note);
        }
    }
}

/// Goes back to the batch below, if the scope's is still on the live path, and gives the lease up.
async fn end(talk: &StoredConversation, note: LogIndex, carry: Carry) -> Result<(), Error> {
    loop {
        let version = talk.version().await?;
        let marks = talk.marks().await?;
        let is_held = marks.iter().any(|(label, notes)| label == LEASE && notes.contains(&note));
        if !is_held {
            return Ok(());
        }
        let mut steps: Vec<Operation> = Vec::new();
        if let Some(lease) = lease(talk, note).await? {
            let opened = BatchIndex(lease.batch.0 + 1);
            let is_live = match talk.snapshot(opened).await {
                Ok(snapshot) => snapshot.description == lease.reason,
                Err(error) if error.code() == "batch_not_found" => false,
                Err(error) => return Err(error.into()),
            };
            if is_live {
                steps.push(BatchEnd { target: lease.batch, carry }.into());
            }
        }
        steps.push(Unmark { indices: vec![note], mark: LEASE.into() }.into());
        let why = format!("end of scope {note}");
        let request = steps.into_iter().map(|step| step.because(&why)).collect();
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
        Err(error) => Err(error.into()),
    }
}

async fn lease(talk: &StoredConversation, note: LogIndex) -> Result<Option<Lease>, Error> {
    #[derive(Deserialize)]
    struct Holder {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    struct Metadata {
        lease: Lease,
    }
    let message = talk.message(note).await?;
    let holder = message.and_then(|message| serde_json::from_str::<Holder>(message.json()).ok());
    Ok(holder.map(|holder| holder.metadata.lease))
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    since.as_millis() as i64
}
