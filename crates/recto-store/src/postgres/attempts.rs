//! Which failures are retried, how often, and which error is returned in the end.
//!
//! | failure | reaction |
//! |---|---|
//! | conflict with another transaction (40001, 40P01) | up to 12 attempts within seconds |
//! | connection lost, or 40003 | up to 12 attempts: each can detect what an earlier one did |
//! | no response within the time limit | no retry |
//! | server not reachable | 3 attempts; 12 if the outcome of an earlier one is in doubt |
//! | any other | returned at once |
//!
//! After the connection of a write was lost, or a write had no response, the outcome of the write is unknown
//! unless a later attempt succeeds or is refused.

use std::ops::ControlFlow;
use std::time::Duration;

use super::fault::Fault;
use crate::Error;
use crate::new_id::new_id_now;

const MAX_ATTEMPTS: u32 = 12;
const MAX_CONNECT_ATTEMPTS: u32 = 3;
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// The attempts at one request.
#[derive(Debug)]
pub(super) struct Attempts {
    action: &'static str,
    made: u32,
    in_doubt: bool,
    is_read: bool,
}

impl Attempts {
    /// Attempts at a request that changes something. `action` names it in errors.
    pub(super) fn of_write(action: &'static str) -> Attempts {
        Attempts { action, made: 0, in_doubt: false, is_read: false }
    }

    /// Attempts at a request that only reads, so repeating it is safe.
    pub(super) fn of_read(action: &'static str) -> Attempts {
        Attempts { is_read: true, ..Attempts::of_write(action) }
    }

    /// Performs the request. `attempt` receives whether an earlier attempt may have done the work.
    pub(super) async fn perform<T, F>(mut self, attempt: impl Fn(bool) -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Fault>>,
    {
        loop {
            if let ControlFlow::Break(result) =
                self.handle_result(attempt(self.in_doubt).await).await
            {
                return result;
            }
        }
    }

    /// Handles the result of an attempt: breaks with the final result, or continues after a pause.
    async fn handle_result<T>(
        &mut self,
        attempt: Result<T, Fault>,
    ) -> ControlFlow<Result<T, Error>> {
        self.made += 1;
        let (reason, max_attempts) = match attempt {
            Ok(done) => return ControlFlow::Break(Ok(done)),
            Err(Fault::Refused(error)) => return ControlFlow::Break(Err(error)),
            Err(Fault::Failed(reason)) => (reason, 0),
            Err(Fault::Collided(reason)) => (reason, MAX_ATTEMPTS),
            Err(Fault::Lost(reason)) => {
                self.in_doubt |= !self.is_read;
                (reason, MAX_ATTEMPTS)
            }
            Err(Fault::Silent(reason)) => {
                self.in_doubt |= !self.is_read;
                (reason, 0)
            }
            Err(Fault::Unreachable(reason)) => {
                (reason, if self.in_doubt { MAX_ATTEMPTS } else { MAX_CONNECT_ATTEMPTS })
            }
        };
        if self.made >= max_attempts {
            return ControlFlow::Break(Err(match self.in_doubt {
                true => Error::UnknownOutcome,
                false => Error::failed(self.action, reason),
            }));
        }
        tokio::time::sleep(self.pause()).await;
        ControlFlow::Continue(())
    }

    /// The pause before the next attempt: exponential back-off with jitter.
    fn pause(&self) -> Duration {
        let max = FIRST_PAUSE * 2_u32.pow(self.made.min(10) - 1);
        let random = (new_id_now().as_u128() % 1024) as u32;
        max.min(MAX_PAUSE) * (512 + random) / 1024
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn attempts_are_bounded_and_end_with_the_correct_error() {
        let lost = || Err::<(), _>(Fault::Lost("gone".into()));
        let collided = || Err::<(), _>(Fault::Collided("40001".into()));
        let unreachable = || Err::<(), _>(Fault::Unreachable("down".into()));
        for (fault, made, error) in [
            (&lost as &dyn Fn() -> Result<(), Fault>, MAX_ATTEMPTS, Error::UnknownOutcome),
            (&collided, MAX_ATTEMPTS, Error::failed("testing", "40001")),
            (&unreachable, MAX_CONNECT_ATTEMPTS, Error::failed("testing", "down")),
        ] {
            let mut attempts = Attempts::of_write("testing");
            loop {
                if let ControlFlow::Break(end) = attempts.handle_result(fault()).await {
                    assert_eq!(end, Err(error));
                    break;
                }
            }
            assert_eq!(attempts.made, made);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_unreachable_server_after_a_lost_connection_leaves_the_outcome_unknown() {
        let mut attempts = Attempts::of_write("testing");
        let _ = attempts.handle_result(Err::<(), _>(Fault::Lost("gone".into()))).await;
        loop {
            let down = Err::<(), _>(Fault::Unreachable("down".into()));
            if let ControlFlow::Break(end) = attempts.handle_result(down).await {
                assert_eq!(end, Err(Error::UnknownOutcome));
                break;
            }
        }
    }
}
