//! Budgets: the maximum tokens of a provider request, and how a view is compressed to fit.
//!
//! ```text
//!          floor            target     threshold     limit
//!  ──────────┼────────────────┼───────────┼────────────┼──────► tokens of the request
//!            │                │           │            └ maximum: a longer request is compressed or fails
//!            │                │           └ above it, strategies run
//!            │                └ the strategies aim at this
//!            └ system messages, tools, pins, the newest question and exchange: not hidden
//! ```
//!
//! The tokens of a request are those of the messages that are sent and those of the tools. The tool
//! description in the view is not sent and not counted, unlike in the statistics of the conversation.
//!
//! The floor is checked first: if it exceeds the limit, the error lists its parts. Then the strategies
//! run in order. A strategy that does not shorten the view is followed by the next, and each runs a
//! bounded number of times, so the loop terminates. A failed strategy is skipped until the number of tokens
//! of the view has changed by an eighth, unless the limit is exceeded. Only `keep-recent` hides messages of
//! the floor: system messages before the newest exchange.
//!
//! `compress.rs` runs the strategies, `strategy.rs` defines what each hides, `summary.rs` requests
//! summaries, `back_off.rs` records failures.

mod back_off;
mod compress;
mod strategy;
mod summary;

use recto::Policy;

use crate::Error;

pub(crate) use back_off::BackOff;
pub(crate) use compress::ViewToSend;
pub use strategy::Strategy;
pub(crate) use summary::summary_request;

/// The maximum tokens of a provider request, and how a view is compressed to fit. The default has no limit.
///
/// Later releases may add fields: end a literal with `..Budget::default()`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// Maximum tokens of a provider request. A longer request is never sent.
    pub limit: Option<u64>,
    /// Tokens above which the view is compressed.
    pub threshold: Option<u64>,
    /// Tokens that a compression aims at.
    pub target: u64,
    /// The strategies, in the order in which they are tried.
    pub strategies: Vec<Strategy>,
    /// Maximum number of turns within which a compression must save what it costs: it changes the front of
    /// the request, which invalidates the provider's prompt cache. A compression that takes longer is
    /// deferred, unless the request is above the limit. Default: nothing is deferred.
    pub horizon: Option<u64>,
}

impl Budget {
    /// A budget with a limit and without compression: a longer request fails.
    pub fn with_limit(limit: u64) -> Budget {
        Budget { limit: Some(limit), ..Budget::default() }
    }

    /// The budget of a conversation's policy. The policy may name several strategies, separated by
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
