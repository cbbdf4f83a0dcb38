//! Back-off of failed strategies, so that a failing summary is not paid for again in every turn.

use std::sync::{Mutex, PoisonError};

use super::Strategy;

/// A failed strategy is skipped until the number of tokens of the view has changed by 1 / `CHANGE_DIVISOR` of
/// the number at the failure.
const CHANGE_DIVISOR: u64 = 8;

/// The strategies that failed since the last successful compression.
#[derive(Debug, Default)]
pub(crate) struct BackOff(Mutex<Vec<Failed>>);

#[derive(Debug)]
struct Failed {
    strategy: Strategy,
    /// The tokens of the view when the strategy failed.
    tokens: u64,
    reason: String,
}

impl BackOff {
    /// Records that a strategy failed for a view of `tokens` tokens.
    pub(super) fn failed(&self, strategy: Strategy, tokens: u64, reason: &str) {
        let mut failed = self.lock();
        failed.retain(|failed| failed.strategy != strategy);
        failed.push(Failed { strategy, tokens, reason: reason.to_owned() });
    }

    /// Why a strategy is skipped for a view of `tokens` tokens; `None` if it is not.
    pub(super) fn skip_reason(&self, strategy: Strategy, tokens: u64) -> Option<String> {
        let failed = self.lock();
        let failed = failed.iter().find(|failed| failed.strategy == strategy)?;
        let (change, at) = (failed.tokens / CHANGE_DIVISOR, failed.tokens);
        (tokens.abs_diff(at) < change).then(|| {
            let (above, below) = (at + change, at.saturating_sub(change));
            format!(
                "not tried again before the view has {above} or more, or {below} or fewer tokens: {}",
                failed.reason
            )
        })
    }

    /// Clears all failures. Called after a strategy has shortened the view.
    pub(super) fn reset(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Failed>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_strategy_is_skipped_until_the_view_has_changed() {
        let back_off = BackOff::default();
        let summarise = Strategy::Summarise;
        assert_eq!(back_off.skip_reason(summarise, 800), None);
        back_off.failed(summarise, 800, "no reply");
        let reason = back_off.skip_reason(summarise, 899).unwrap();
        assert!(reason.ends_with("900 or more, or 700 or fewer tokens: no reply"), "{reason}");
        assert_eq!(back_off.skip_reason(summarise, 900), None);
        assert_eq!(back_off.skip_reason(summarise, 700), None);
        assert_eq!(back_off.skip_reason(Strategy::KeepRecent, 800), None);
        back_off.reset();
        assert_eq!(back_off.skip_reason(summarise, 800), None);
    }
}
