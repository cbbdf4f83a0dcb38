//! Budgets: how many tokens a request may have, and how a view is made to fit.
//!
//! ```text
//!          floor            target     threshold     limit
//!  ──────────┼────────────────┼───────────┼────────────┼──────► tokens of the request
//!            │                │           │            └ never sent: an error, or made shorter
//!            │                │           └ over this, strategies run
//!            │                └ down to this
//!            └ system messages, tools, pins, the newest question and exchange: they stay
//! ```
//!
//! The tokens of a request are those of the messages that are sent and those of the tools. The view's
//! tool description is not sent and not counted, unlike in the statistics of the conversation.
//!
//! The floor is looked at first: what is over the limit by itself cannot be helped, and the error says
//! which part is how large. Then strategies are tried in order. Each must make the view shorter, or the
//! next is tried; each is tried a few times at most, so it always ends. What failed rests until the view
//! has changed notably, unless the limit is reached. `ladder.rs` does that, `back_off.rs` knows what
//! rests, `strategy.rs` says what each hides, `summary.rs` asks a model.

mod back_off;
mod ladder;
mod strategy;
mod summary;

use std::fmt;

use recto::Policy;

use crate::Error;

pub(crate) use back_off::BackOff;
pub(crate) use ladder::Seen;
pub use strategy::Strategy;
pub(crate) use summary::question;

/// How many tokens a request may have, and what to do about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// No request has more tokens than this.
    pub limit: Option<u64>,
    /// Over so many tokens, strategies run.
    pub threshold: Option<u64>,
    /// Down to so many.
    pub target: u64,
    /// The strategies, in the order in which they are tried.
    pub strategies: Vec<Strategy>,
    /// If it is given, a compression waits that would not pay off within so many turns, since the
    /// provider's cache is lost with it. Over the limit nothing waits.
    pub horizon: Option<u64>,
}

impl Budget {
    /// The budget that a conversation's policy asks for. Its strategy may name several, separated by
    /// commas: `clear-tool-results, summarise`.
    pub fn of_policy(policy: &Policy) -> Result<Budget, Error> {
        let mut budget = Budget { limit: policy.token_limit, ..Budget::default() };
        if let Some(compression) = policy.compression.as_ref().filter(|it| it.enabled) {
            budget.threshold = Some(compression.threshold);
            budget.target = compression.target_tokens;
            budget.strategies = Strategy::list(&compression.strategy)?;
        }
        Ok(budget)
    }
}

/// A part of a request, and its tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// What it is.
    pub name: &'static str,
    /// Its tokens.
    pub tokens: u64,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.tokens)
    }
}
