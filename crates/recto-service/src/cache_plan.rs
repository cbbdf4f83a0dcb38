//! Cache plans: the effect of an edit on the prompt cache of a provider, and its cost.

use recto::Counter;
use recto_format::{CachePlan, Price, PriceTable, Rendered, Target};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{DEFAULT_TARGET, Error, ProviderView, Recipient};

/// The provider, the model and the prices of a cache plan.
#[derive(Clone, Debug, Default)]
pub struct PlanOptions {
    /// The provider. By default the one that the messages come from, else [`DEFAULT_TARGET`].
    pub target: Option<Target>,
    /// The model whose prices are used. By default the one that wrote the newest message, if its name starts
    /// with the family of the provider (`claude`, `gpt` or `gemini`), else a common model of that family.
    pub model: Option<String>,
    /// The version of the provider's API. By default the oldest.
    pub api_version: Option<String>,
    /// The prices of models. By default Recto's own table.
    pub prices: Option<PriceTable>,
}

/// A cache plan: the effect of an edit on the prompt cache of a provider, its cost, and when it pays off.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Plan {
    /// The provider.
    #[serde(rename = "for")]
    pub target: &'static str,
    /// The model whose prices are used; `null` if they are unknown.
    pub prices_of: Option<String>,
    /// The model whose prices are unknown. Missing if the prices are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown_model: Option<String>,
    /// Offset of the first byte of the provider request that differs.
    pub first_difference: usize,
    /// The tokens of the provider request after the edit that the cache still has.
    pub cached_tokens: u64,
    /// The other tokens of that request. The next turn pays the price of tokens that are not cached for them.
    pub new_tokens: u64,
    /// The tokens of the provider request before the edit.
    pub old_tokens: u64,
    /// Additional cost of the next turn, in dollars; `null` if the prices are unknown.
    pub cost_now: Option<f64>,
    /// Savings of each later turn, in dollars; `null` if the prices are unknown.
    pub saved_a_turn: Option<f64>,
    /// The number of turns after which the edit has paid off; 0 is at once, `null` is never. It is also
    /// `null` if the prices are unknown.
    pub pays_off_after: Option<u64>,
    /// Number of thinking blocks that the provider request before the edit has after the first byte that
    /// differs. Models that bind thinking to everything before it, such as Claude Fable 5.1, no longer accept
    /// them. Missing if it is 0.
    #[serde(skip_serializing_if = "is_zero")]
    pub thinking_blocks: u64,
    /// Tokens of these blocks. Missing if it is 0.
    #[serde(skip_serializing_if = "is_zero")]
    pub thinking_tokens: u64,
    /// The savings over a number of turns. Missing if no number was given or the prices are unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over: Option<Savings>,
    /// Minimum length in tokens of a prompt that the provider caches; 0 if the prices are unknown.
    #[serde(skip)]
    pub minimum: u64,
}

/// Savings over a number of turns.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Savings {
    /// The number of turns.
    pub turns: u64,
    /// Total savings, in dollars.
    pub saved: f64,
}

impl PlanOptions {
    /// Compares the provider requests before and after an edit. `counter` is the name of a built-in token
    /// counter; with any other name, `approx` is used.
    pub fn compare(
        &self,
        before: &ProviderView,
        after: &ProviderView,
        counter: &str,
    ) -> Result<Plan, Error> {
        let known = || after.target().or_else(|| before.target());
        let target = self.target.or_else(known).unwrap_or(DEFAULT_TARGET);
        let model = self.model.as_deref();
        let to = Recipient { target, model, api_version: self.api_version.as_deref() };
        let default;
        let table = match &self.prices {
            Some(table) => table,
            None => {
                default = PriceTable::default();
                &default
            }
        };
        let price = price(table, target, model, [after, before])?;
        let body = |sent: &ProviderView| match sent.render(to, &[]) {
            Ok(Rendered { body, .. }) => Ok(body),
            // An empty view costs nothing.
            Err(recto_format::Error::NothingToSend { .. }) => Ok(String::new()),
            Err(error) => Err(error),
        };
        let counter = <dyn Counter>::named(counter);
        let counter = counter.unwrap_or_else(|| std::sync::Arc::new(recto::Approx));
        let plan = |price: &Price| {
            Ok::<_, Error>(CachePlan::of(&body(before)?, &body(after)?, &*counter, price))
        };
        Ok(match price {
            Priced::At(price) => Plan::new(&plan(price)?, target, price),
            Priced::Unknown(model) => {
                let free = Price::default();
                let plan = Plan::new(&plan(&free)?, target, &free);
                Plan {
                    prices_of: None,
                    unknown_model: Some(model),
                    cost_now: None,
                    saved_a_turn: None,
                    pays_off_after: None,
                    ..plan
                }
            }
        })
    }
}

/// Maximum number of models that an error names.
const MAX_NAMED_MODELS: usize = 12;

/// Prices for a plan.
enum Priced<'t> {
    At(&'t Price),
    /// The table does not have this model, which wrote the newest message.
    Unknown(String),
}

/// The prices of the given model, else of the model that wrote the newest message. If that model is not known
/// or its name does not start with the family of the provider, the prices of a common model of the family, or
/// of the first model of a table that lacks the common one.
fn price<'t>(
    table: &'t PriceTable,
    target: Target,
    model: Option<&str>,
    newest_first: [&ProviderView; 2],
) -> Result<Priced<'t>, Error> {
    let unknown = |model: &str| {
        let names = table.models.iter().map(|price| &*price.model);
        let family = model.split('-').next().unwrap_or(model);
        let related: Vec<&str> = names.clone().filter(|name| name.starts_with(family)).collect();
        let mut known = if related.is_empty() { names.collect() } else { related };
        let is_long = known.len() > MAX_NAMED_MODELS;
        known.truncate(MAX_NAMED_MODELS);
        let more = if is_long { ", …" } else { "" };
        Error::NoPrices { model: model.to_owned(), known: known.join(", ") + more }
    };
    if let Some(model) = model {
        return table.of(model).map(Priced::At).ok_or_else(|| unknown(model));
    }
    let (family, usual) = match target {
        Target::Anthropic | Target::BedrockConverse => ("claude", "claude-sonnet-4-5"),
        Target::OpenAiChat | Target::OpenAiResponses => ("gpt", "gpt-5"),
        _ => ("gemini", "gemini-2.5-pro"),
    };
    let newest = newest_first.iter().find_map(|sent| sent.likely_model());
    if let Some(model) = newest.filter(|model| model.starts_with(family)) {
        return Ok(table.of(&model).map_or_else(|| Priced::Unknown(model), Priced::At));
    }
    // A table from the caller may lack the usual model.
    let common = table.of(usual).or_else(|| table.models.first());
    common.map(Priced::At).ok_or_else(|| unknown(usual))
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Plan {
    fn new(plan: &CachePlan, target: Target, price: &Price) -> Plan {
        Plan {
            target: target.name(),
            prices_of: Some(price.model.clone()),
            unknown_model: None,
            first_difference: plan.first_difference,
            cached_tokens: plan.cached_tokens,
            new_tokens: plan.new_tokens,
            old_tokens: plan.old_tokens,
            cost_now: Some(plan.cost_now),
            saved_a_turn: Some(plan.saved_per_turn),
            pays_off_after: plan.pays_off.turns(),
            thinking_blocks: plan.thinking_blocks,
            thinking_tokens: plan.thinking_tokens,
            over: None,
            minimum: price.minimum,
        }
    }

    /// The plan with the savings over a number of turns; unchanged if the prices are unknown.
    pub fn over(mut self, turns: u64) -> Plan {
        if let (Some(now), Some(saved)) = (self.cost_now, self.saved_a_turn) {
            self.over = Some(Savings { turns, saved: saved * turns as f64 - now });
        }
        self
    }
}
