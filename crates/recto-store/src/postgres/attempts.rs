//! Which failures are retried, how often, and which error is returned in the end.
//!
//! | failure | reaction |
//! |---|---|
//! | conflict with another transaction (40001, 40P01) | up to 12 attempts within seconds |
//! | connection lost, or 40003 | up to 12 attempts: each can detect what an earlier one did. If all fail, the outcome is unknown |
//! | no answer within the time limit | none. If it was a write, the outcome is unknown |
//! | server not reachable | 3 attempts; 12 if the outcome of an earlier one is in doubt |
//! | any other | returned at once |

use std::ops::ControlFlow;
use std::time::Duration;

use super::fault::Fault;
use crate::Error;
use crate::new_id::new_id_now;

const TRIES: u32 = 12;
const TRIES_TO_CONNECT: u32 = 3;
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The attempts at one request.
#[derive(Debug)]
pub(super) struct Attempts {
    doing: &'static str,
    made: u32,
    in_doubt: bool,
    reads: bool,
}

impl Attempts {
    /// Starts a request that changes something.
    pub(super) fn at(doing: &'static str) -> Attempts {
        Attempts { doing, made: 0, in_doubt: false, reads: false }
    }

    /// Starts a request that only reads, so repeating it is safe.
    pub(super) fn at_reading(doing: &'static str) -> Attempts {
        Attempts { reads: true, ..Attempts::at(doing) }
    }

    /// Whether an earlier attempt may have done the work.
    pub(super) fn in_doubt(&self) -> bool {
        self.in_doubt
    }

    /// Takes the result of an attempt: breaks with the final result, or continues after a pause.
    pub(super) async fn settle<T>(
        &mut self,
        attempt: Result<T, Fault>,
    ) -> ControlFlow<Result<T, Error>> {
        self.made += 1;
        let (reason, tries) = match attempt {
            Ok(done) => return ControlFlow::Break(Ok(done)),
            Err(Fault::Refused(error)) => return ControlFlow::Break(Err(error)),
            Err(Fault::Failed(reason)) => (reason, 0),
            Err(Fault::Collided(reason)) => (reason, TRIES),
            Err(Fault::Lost(reason)) => {
                self.in_doubt |= !self.reads;
                (reason, TRIES)
            }
            Err(Fault::Silent(reason)) => {
                self.in_doubt |= !self.reads;
                (reason, 0)
            }
            Err(Fault::Unreachable(reason)) => {
                (reason, if self.in_doubt { TRIES } else { TRIES_TO_CONNECT })
            }
        };
        if self.made >= tries {
            return ControlFlow::Break(Err(match self.in_doubt {
                true => Error::UnknownOutcome,
                false => Error::failed(self.doing, reason),
            }));
        }
        tokio::time::sleep(self.pause()).await;
        ControlFlow::Continue(())
    }

    /// The pause before the next attempt: exponential back-off with jitter.
    fn pause(&self) -> Duration {
        let longest = FIRST_PAUSE * 2_u32.pow(self.made.min(10) - 1);
        let chance = (new_id_now().as_u128() % 1024) as u32;
        longest.min(LONGEST_PAUSE) * (512 + chance) / 1024
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn attempts_are_bounded_and_end_in_the_right_answer() {
        let lost = || Err::<(), _>(Fault::Lost("gone".into()));
        let collided = || Err::<(), _>(Fault::Collided("40001".into()));
        let unreachable = || Err::<(), _>(Fault::Unreachable("down".into()));
        for (fault, made, answer) in [
            (&lost as &dyn Fn() -> Result<(), Fault>, TRIES, Error::UnknownOutcome),
            (&collided, TRIES, Error::failed("testing", "40001")),
            (&unreachable, TRIES_TO_CONNECT, Error::failed("testing", "down")),
        ] {
            let mut attempts = Attempts::at("testing");
            loop {
                if let ControlFlow::Break(end) = attempts.settle(fault()).await {
                    assert_eq!(end, Err(answer));
                    break;
                }
            }
            assert_eq!(attempts.made, made);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_vanishes_after_a_doubt_leaves_the_outcome_unknown() {
        let mut attempts = Attempts::at("testing");
        let _ = attempts.settle(Err::<(), _>(Fault::Lost("gone".into()))).await;
        loop {
            let down = Err::<(), _>(Fault::Unreachable("down".into()));
            if let ControlFlow::Break(end) = attempts.settle(down).await {
                assert_eq!(end, Err(Error::UnknownOutcome));
                break;
            }
        }
    }
}
