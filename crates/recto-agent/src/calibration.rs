//! Calibration of token counts: the ratio between a provider's tokens and the conversation's.
//!
//! Some providers publish no tokenizer, and all of them add tokens to a request. So the local count is
//! multiplied by a factor that is learnt from the reported usage. The factor is not stored: every
//! manifest holds the local count and the reported usage, so it is learnt again from the newest
//! manifests ([`Calibration::learn`]).

/// Decay of older reports per new report. The factor is a ratio of decayed sums, not a mean of ratios,
/// so long requests weigh more: the constant overhead of a provider distorts short ones.
const DECAY: f64 = 0.5;
/// Weight of the newest error in the moving average of errors.
const ERROR_WEIGHT: f64 = 0.3;
/// Reports with a ratio above this value or below its inverse are ignored. Such a ratio has another cause
/// than the tokenizer, such as a count of zero or a request that the provider shortened.
const MAX_RATIO: f64 = 10.0;

/// The calibration of one model.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Calibration {
    /// Provider tokens per locally counted token.
    pub factor: f64,
    /// Moving average of the relative error of the expectation. `None` before the second report.
    pub error: Option<f64>,
    /// The number of reports that were learnt from.
    pub reports: u64,
    counted: f64,
    reported: f64,
}

impl Default for Calibration {
    fn default() -> Self {
        Calibration { factor: 1.0, error: None, reports: 0, counted: 0.0, reported: 0.0 }
    }
}

impl Calibration {
    /// Learns from one call: the locally counted and the reported input tokens.
    pub fn learn(&mut self, counted: u64, reported: u64) {
        let ratio = reported as f64 / counted as f64;
        if !ratio.is_finite() || !(1.0 / MAX_RATIO..=MAX_RATIO).contains(&ratio) {
            return;
        }
        if self.reports > 0 {
            let newest = (self.factor / ratio - 1.0).abs();
            self.error = Some(match self.error {
                Some(error) => error + ERROR_WEIGHT * (newest - error),
                None => newest,
            });
        }
        self.counted = self.counted * DECAY + counted as f64;
        self.reported = self.reported * DECAY + reported as f64;
        self.factor = self.reported / self.counted;
        self.reports += 1;
    }

    /// Expected provider tokens for `counted` local tokens.
    pub fn expected(&self, counted: u64) -> u64 {
        (counted as f64 * self.factor).ceil() as u64
    }

    /// Expected provider tokens plus the observed error.
    pub fn upper_bound(&self, counted: u64) -> u64 {
        (counted as f64 * self.upper_factor()).ceil() as u64
    }

    /// The number of local tokens whose [upper bound](Self::upper_bound) is at most `tokens` provider
    /// tokens.
    pub fn counted_within(&self, tokens: u64) -> u64 {
        (tokens as f64 / self.upper_factor()).floor() as u64
    }

    fn upper_factor(&self) -> f64 {
        self.factor * (1.0 + self.error.unwrap_or(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_reports_are_enough() {
        let mut calibration = Calibration::default();
        assert_eq!(calibration.expected(1_000), 1_000);
        for (turn, noise) in [20, -15, 10, -5, 12].into_iter().enumerate() {
            let counted = 1_000 * (turn as u64 + 1);
            let reported = (counted as i64 * 1_350 / 1_000 + noise) as u64;
            calibration.learn(counted, reported);
        }
        assert!((calibration.factor - 1.35).abs() < 0.01, "{calibration:?}");
        assert!(calibration.error.unwrap() < 0.02, "{calibration:?}");
        assert!(calibration.upper_bound(calibration.counted_within(9_999)) <= 9_999);
        assert!(calibration.expected(1_000) <= calibration.upper_bound(1_000));
    }

    #[test]
    fn implausible_reports_are_ignored() {
        let mut calibration = Calibration::default();
        for (counted, reported) in [(0, 5), (0, 0), (100, 0), (5, 5_000)] {
            calibration.learn(counted, reported);
        }
        assert_eq!(calibration, Calibration::default());
    }
}
