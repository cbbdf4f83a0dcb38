//! How a model's tokens compare with those that the conversation counts.
//!
//! Some providers publish no tokenizer, and all add something of their own. So the count is multiplied
//! by a factor that is learnt from what the provider reports. It is not kept by itself: every manifest
//! has both figures, so the newest ones teach it again ([`Calibration::learn`]).

/// How much the reports before count against a new one. What a provider adds to every request weighs
/// less in a long one, so reports count by their length: the sums are compared, not the ratios.
const MEMORY: f64 = 0.5;
/// How much a new error counts against those before it.
const WEIGHT: f64 = 0.3;
/// A report that is further off than this says something else: a count of zero, a cut history.
const FURTHEST: f64 = 10.0;

/// What is known of a model's tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calibration {
    /// A token that the conversation counts is so many of the model's.
    pub factor: f64,
    /// How far off the expectation has been of late, as a share of what was reported. Nothing is known
    /// before the second report.
    pub error: Option<f64>,
    /// How many reports were learnt from.
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
    /// Learns from a call: what was counted, and what the provider reported.
    pub fn learn(&mut self, counted: u64, reported: u64) {
        let ratio = reported as f64 / counted as f64;
        if !ratio.is_finite() || !(1.0 / FURTHEST..=FURTHEST).contains(&ratio) {
            return;
        }
        if self.reports > 0 {
            let off = (self.factor / ratio - 1.0).abs();
            self.error = Some(match self.error {
                Some(error) => error + WEIGHT * (off - error),
                None => off,
            });
        }
        self.counted = self.counted * MEMORY + counted as f64;
        self.reported = self.reported * MEMORY + reported as f64;
        self.factor = self.reported / self.counted;
        self.reports += 1;
    }

    /// What the model is expected to report for so many counted tokens.
    pub fn expected(&self, counted: u64) -> u64 {
        (counted as f64 * self.factor).ceil() as u64
    }

    /// What the model will hardly report more than: the expectation, and the error on top.
    pub fn at_most(&self, counted: u64) -> u64 {
        (counted as f64 * self.careful_factor()).ceil() as u64
    }

    /// How many counted tokens fit into so many of the model's, the error included.
    pub fn fitting(&self, tokens: u64) -> u64 {
        (tokens as f64 / self.careful_factor()).floor() as u64
    }

    fn careful_factor(&self) -> f64 {
        self.factor * (1.0 + self.error.unwrap_or(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_calls_are_enough() {
        let mut known = Calibration::default();
        assert_eq!(known.expected(1_000), 1_000);
        for (turn, noise) in [20, -15, 10, -5, 12].into_iter().enumerate() {
            let counted = 1_000 * (turn as u64 + 1);
            let reported = (counted as i64 * 1_350 / 1_000 + noise) as u64;
            known.learn(counted, reported);
        }
        assert!((known.factor - 1.35).abs() < 0.01, "{known:?}");
        assert!(known.error.unwrap() < 0.02, "{known:?}");
        assert!(known.at_most(known.fitting(9_999)) <= 9_999);
        assert!(known.expected(1_000) <= known.at_most(1_000));
    }

    #[test]
    fn reports_that_cannot_be_are_left_out() {
        let mut known = Calibration::default();
        for (counted, reported) in [(0, 5), (0, 0), (100, 0), (5, 5_000)] {
            known.learn(counted, reported);
        }
        assert_eq!(known, Calibration::default());
    }
}
