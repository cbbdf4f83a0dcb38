//! Token usage and cost, summed over calls.

use recto_format::{CacheTime, Price};
use serde::{Deserialize, Serialize};

use crate::{CompactionUsage, Usage};

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
        self.usage = self.usage.plus(usage);
        self.cost += price.map_or(0.0, |price| cost(usage, price));
        self
    }
}

/// The cost of a call in US dollars.
pub(crate) fn cost(usage: Usage, price: &Price) -> f64 {
    let CompactionUsage { input, cached, cache_written, output, .. } = usage.compaction;
    let compaction = Usage { input, cached, cache_written, output, ..Usage::default() };
    cost_of_a_pass(usage, price) + cost_of_a_pass(compaction, price)
}

/// The cost of the fields of `usage` other than `compaction`. A compaction is priced separately, because it
/// reads another prompt, which may have another price tier.
fn cost_of_a_pass(usage: Usage, price: &Price) -> f64 {
    let price = price.at(usage.input);
    let written = usage.cache_written.saturating_sub(usage.cache_written_1h);
    let fresh = usage.input.saturating_sub(usage.cached).saturating_sub(usage.cache_written);
    let tokens = [
        (fresh, price.input),
        (usage.cached, price.cached),
        (written, price.write(CacheTime::FiveMinutes)),
        (usage.cache_written_1h, price.write(CacheTime::OneHour)),
        (usage.output, price.output.unwrap_or(0.0)),
    ];
    tokens.iter().map(|&(tokens, dollars)| tokens as f64 * dollars / 1e6).sum()
}

#[cfg(test)]
mod tests {
    use recto_format::PriceTier;

    use super::*;

    #[test]
    fn each_kind_of_token_has_its_own_price() {
        let price = Price {
            model: "m".into(),
            input: 3.0,
            cached: 0.3,
            cache_write: Some(3.75),
            cache_write_1h: Some(6.0),
            output: Some(15.0),
            ..Price::default()
        };
        let usage = Usage {
            input: 1_000_000,
            cached: 600_000,
            cache_written: 100_000,
            cache_written_1h: 40_000,
            output: 10_000,
            reasoning: 5,
            ..Usage::default()
        };
        let sum =
            Totals::default().with_call(Some(usage), Some(&price)).with_call(None, Some(&price));
        // 300,000 × 3 + 600,000 × 0.3 + 60,000 × 3.75 + 40,000 × 6 + 10,000 × 15, in millionths
        assert!((sum.cost - 1.695).abs() < 1e-9, "{sum:?}");
        assert_eq!((sum.calls, sum.unreported, sum.usage), (2, 1, usage));
    }

    #[test]
    fn a_compaction_by_the_provider_is_paid_for_at_the_prices_of_its_own_prompt() {
        let long =
            PriceTier { above: 200_000, input: 6.0, output: Some(20.0), ..Default::default() };
        let price = Price { input: 3.0, output: Some(10.0), tiers: vec![long], ..Price::default() };
        let compaction = CompactionUsage {
            input: 300_000,
            cached: 100_000,
            output: 1_000,
            ..Default::default()
        };
        let usage = Usage { compaction, ..Usage::new(20_000, 100) };
        let sum = Totals::default().with_call(Some(usage), Some(&price));
        // 20,000 × 3 + 100 × 10 + 200,000 × 6 + 1,000 × 20, in millionths
        assert!((sum.cost - 1.281).abs() < 1e-9, "{sum:?}");
        let twice = sum.with_call(Some(usage), None).usage;
        assert_eq!((twice.input, twice.compaction.input), (40_000, 600_000));
        let json = serde_json::to_value(sum).unwrap();
        assert_eq!(json["compaction"]["input"], 300_000);
        assert_eq!(serde_json::from_value::<Totals>(json).unwrap(), sum);
        let without = serde_json::to_string(&Usage::new(1, 2)).unwrap();
        assert!(!without.contains("compaction") && !without.contains("1h"), "{without}");
    }
}
