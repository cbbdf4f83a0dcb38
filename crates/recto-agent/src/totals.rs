//! Token usage and cost, summed over calls.

use recto_format::Price;
use serde::{Deserialize, Serialize};

use crate::Usage;

/// Token usage and cost of several calls, as their providers reported it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Totals {
    /// The number of calls.
    pub calls: u64,
    /// The number of calls without reported usage. Part of `calls`.
    #[serde(default)]
    pub unreported: u64,
    /// The summed usage.
    #[serde(flatten)]
    pub usage: Usage,
    /// The cost in US dollars. Calls of models without a known price count as 0.
    #[serde(default)]
    pub cost: f64,
}

impl Totals {
    /// The totals with one more call.
    pub fn with_call(mut self, usage: Option<Usage>, price: Option<&Price>) -> Totals {
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

/// The cost of a call in US dollars.
pub(crate) fn cost(usage: Usage, price: &Price) -> f64 {
    let price = price.at(usage.input);
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
    fn each_kind_of_token_has_its_own_price() {
        let price = Price {
            model: "m".into(),
            input: 3.0,
            cached: 0.3,
            cache_write: Some(3.75),
            output: Some(15.0),
            ..Price::default()
        };
        let usage = Usage {
            input: 1_000_000,
            cached: 600_000,
            cache_written: 100_000,
            output: 10_000,
            reasoning: 5,
        };
        let sum =
            Totals::default().with_call(Some(usage), Some(&price)).with_call(None, Some(&price));
        // 300,000 × 3 + 600,000 × 0.3 + 100,000 × 3.75 + 10,000 × 15, in millionths
        assert!((sum.cost - 1.605).abs() < 1e-9, "{sum:?}");
        assert_eq!((sum.calls, sum.unreported, sum.usage), (2, 1, usage));
    }
}
