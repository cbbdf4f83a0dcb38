//! What calls have used together.

use recto_format::Price;
use serde::{Deserialize, Serialize};

use crate::Usage;

/// What several calls have used, as their providers reported it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Totals {
    /// How many calls.
    pub calls: u64,
    /// Of these, how many had no usage reported.
    #[serde(default)]
    pub unreported: u64,
    /// What was used.
    #[serde(flatten)]
    pub usage: Usage,
    /// What it cost, in US dollars, as far as prices are known.
    #[serde(default)]
    pub cost: f64,
}

impl Totals {
    /// These, and one more call.
    pub fn and(mut self, usage: Option<Usage>, price: Option<&Price>) -> Totals {
        self.calls += 1;
        let Some(usage) = usage else {
            self.unreported += 1;
            return self;
        };
        let sum = &mut self.usage;
        sum.input = sum.input.saturating_add(usage.input);
        sum.cached = sum.cached.saturating_add(usage.cached);
        sum.cache_written = sum.cache_written.saturating_add(usage.cache_written);
        sum.output = sum.output.saturating_add(usage.output);
        sum.reasoning = sum.reasoning.saturating_add(usage.reasoning);
        self.cost += price.map_or(0.0, |price| cost(usage, price));
        self
    }
}

/// What a call cost, in US dollars.
pub(crate) fn cost(usage: Usage, price: &Price) -> f64 {
    let fresh = usage.input.saturating_sub(usage.cached).saturating_sub(usage.cache_written);
    let tokens = [
        (fresh, price.input),
        (usage.cached, price.cached),
        (usage.cache_written, price.cache_write.unwrap_or(price.input)),
        (usage.output, price.output.unwrap_or(0.0)),
    ];
    tokens.iter().map(|&(tokens, dollars)| tokens as f64 * dollars / 1e6).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_token_has_its_price() {
        let price = Price {
            model: "m".into(),
            input: 3.0,
            cached: 0.3,
            cache_write: Some(3.75),
            output: Some(15.0),
            minimum: 0,
        };
        let usage = Usage {
            input: 1_000_000,
            cached: 600_000,
            cache_written: 100_000,
            output: 10_000,
            reasoning: 5,
        };
        let sum = Totals::default().and(Some(usage), Some(&price)).and(None, Some(&price));
        // 300,000 × 3 + 600,000 × 0.3 + 100,000 × 3.75 + 10,000 × 15, in millionths
        assert!((sum.cost - 1.605).abs() < 1e-9, "{sum:?}");
        assert_eq!((sum.calls, sum.unreported, sum.usage), (2, 1, usage));
    }
}
