//! Repeats requests that conflict with other writers, for as long as the others make progress.

use recto_store::ConversationId;

use crate::Error;
use crate::clock::now;
use crate::row_reader::damaged;

/// Maximum attempts in a row that find the conversation as the attempt before found it.
const MAX_STALLED: u32 = 100;

/// The attempts of one request. A conflict follows a change that another process has stored, so the next
/// attempt reads that change. If no attempt does, the store has rows that cannot be read, because they are
/// damaged.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    /// The newest version and the number of rewrites that the last attempt found.
    found: Option<(u32, u64)>,
    stalled: u32,
}

impl Attempts {
    /// Begins an attempt on a conversation with this newest version and this number of rewrites. Fails after
    /// more than [`MAX_STALLED`] attempts in a row that found the same.
    pub(crate) async fn begin(
        &mut self,
        conversation: ConversationId,
        found: (u32, u64),
    ) -> Result<(), Error> {
        if self.found.replace(found) != Some(found) {
            self.stalled = 0;
            return Ok(());
        }
        self.stalled += 1;
        if self.stalled > MAX_STALLED {
            let reason = format!("rows after version {} cannot be read", found.0);
            return Err(damaged(conversation, reason));
        }
        pause(self.stalled).await;
        Ok(())
    }
}

/// Waits longer after each conflict, so that many writers do not keep conflicting.
pub(crate) async fn pause(attempt: u32) {
    if attempt > 2 {
        // Writers arrive here at different times, so the milliseconds of the clock are random enough.
        let jitter = u64::from(now().unsigned_abs() as u32 % 4);
        let longest = u64::from(attempt.min(20));
        tokio::time::sleep(std::time::Duration::from_millis(jitter * longest / 4)).await;
    }
}
