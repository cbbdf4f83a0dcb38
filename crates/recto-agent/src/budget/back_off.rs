//! What has failed rests for a while, so that it is not paid for again every turn.

use std::sync::{Mutex, PoisonError};

use super::Strategy;

/// A strategy rests until the view has changed by such a part of it.
const NOTABLY: u64 = 8;

/// The strategies that have failed since the view was last made shorter.
#[derive(Debug, Default)]
pub(crate) struct BackOff(Mutex<Vec<Failed>>);

#[derive(Debug)]
struct Failed {
    strategy: Strategy,
    /// The tokens of the view.
    tokens: u64,
    reason: String,
}

impl BackOff {
    /// A strategy has failed for a view of so many tokens.
    pub(super) fn failed(&self, strategy: Strategy, tokens: u64, reason: &str) {
        let mut failed = self.lock();
        failed.retain(|known| known.strategy != strategy);
        failed.push(Failed { strategy, tokens, reason: reason.to_owned() });
    }

    /// Why a strategy is not tried for a view of so many tokens; `None` if it may be.
    pub(super) fn rests(&self, strategy: Strategy, tokens: u64) -> Option<String> {
        let failed = self.lock();
        let failed = failed.iter().find(|known| known.strategy == strategy)?;
        let (notably, at) = (failed.tokens / NOTABLY, failed.tokens);
        (tokens.abs_diff(at) < notably).then(|| {
            let again = at + notably;
            format!("not tried again before the view has {again} tokens: {}", failed.reason)
        })
    }

    /// The view is another one now.
    pub(super) fn forget(&self) {
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
    fn what_failed_rests_until_the_view_is_another() {
        let back_off = BackOff::default();
        let summarise = Strategy::Summarise;
        assert_eq!(back_off.rests(summarise, 800), None);
        back_off.failed(summarise, 800, "it rained");
        assert!(back_off.rests(summarise, 899).unwrap().ends_with("900 tokens: it rained"));
        assert_eq!(back_off.rests(summarise, 900), None);
        assert_eq!(back_off.rests(summarise, 700), None);
        assert_eq!(back_off.rests(Strategy::KeepRecent, 800), None);
        back_off.forget();
        assert_eq!(back_off.rests(summarise, 800), None);
    }
}
