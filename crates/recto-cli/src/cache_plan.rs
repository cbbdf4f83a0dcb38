//! Arguments and output of cache plans. A cache plan says what an edit costs in a provider's prompt cache.

use clap::Args;
use recto_format::PriceTable;
use recto_service::{Plan, PlanOptions, ProviderView, Savings};

use crate::context::Context;
use crate::failure::Failure;
use crate::numbers::{counted, grouped};
use crate::page::{FAINT, Line, Page};
use crate::provider::ProviderArguments;

/// The provider, the model and the prices of a cache plan.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct PlanArguments {
    #[command(flatten)]
    pub(crate) provider: ProviderArguments,

    /// File with prices of models. Default: the table of `recto cache-plan --print-prices`
    #[arg(long, value_name = "FILE")]
    pub(crate) prices: Option<String>,
}

impl PlanArguments {
    /// For commands that print a plan only with `--dry-run`: fails if one of the options is given without it.
    pub(crate) fn check(&self, is_dry_run: bool) -> Result<(), Failure> {
        match self.is_given() && !is_dry_run {
            true => Err(Failure::Usage(
                "--for, --model, --api-version and --prices apply to the cache plan of --dry-run; add --dry-run"
                    .to_owned(),
            )),
            false => Ok(()),
        }
    }

    /// Whether any of the options is given.
    pub(crate) fn is_given(&self) -> bool {
        let ProviderArguments { target, model, api_version } = &self.provider;
        let is_version = api_version.is_some();
        target.is_some() || model.is_some() || is_version || self.prices.is_some()
    }

    /// The text of the file of `--prices`.
    pub(crate) fn prices(&self, context: &mut Context<'_>) -> Result<Option<String>, Failure> {
        self.prices.as_ref().map(|file| context.read(file)).transpose()
    }

    /// The cache plan of an edit: compares the provider requests for the views before and after it.
    pub(crate) fn compare(
        &self,
        before: &ProviderView,
        after: &ProviderView,
        counter: &str,
        context: &mut Context<'_>,
    ) -> Result<Plan, Failure> {
        let prices = self.prices(context)?.map(|text| PriceTable::from_json(&text)).transpose()?;
        let ProviderArguments { target, model, api_version } = self.provider.clone();
        Ok(PlanOptions { target, model, api_version, prices }.compare(before, after, counter)?)
    }
}

/// Printing of cache plans.
pub(crate) trait ShowPlan {
    /// Writes the plan as text.
    fn show(&self, page: &mut Page);
}

impl ShowPlan for Plan {
    fn show(&self, page: &mut Page) {
        let mut field = |name: &str, text: String| {
            page.line(Line::wrapping().styled(FAINT, format!("{name:<9}")).text(text));
        };
        let (cached, new) = (self.cached_tokens, self.new_tokens);
        let cache = format!(
            "{} still cached, {} billed again",
            counted(cached, "token"),
            counted(new, "token")
        );
        field("cache", cache);
        let prices = match (&self.prices_of, &self.unknown_model) {
            (Some(model), _) => format!("at the prices of {model}"),
            (None, Some(model)) => {
                format!("whose prices of {model} are unknown: use --prices FILE")
            }
            (None, None) => "at unknown prices".to_owned(),
        };
        field("", format!("{}, {prices}", self.target));
        if self.old_tokens.min(cached + new) < self.minimum {
            field("", format!("under {} tokens nothing is cached there", grouped(self.minimum)));
        }
        let (Some(now), Some(saved)) = (self.cost_now, self.saved_a_turn) else { return };
        let (now, later) = (cost_change(now), cost_change(-saved));
        field("cost", format!("{now} for the next turn, {later} for each after it"));
        let pays_off = match self.pays_off_after {
            Some(0) => "pays off at once".to_owned(),
            Some(turns) => format!("pays off after {}", counted(turns, "turn")),
            None => "never pays off".to_owned(),
        };
        field("", pays_off);
        if self.thinking_blocks > 0 {
            let blocks = counted(self.thinking_blocks, "thinking block");
            let tokens = counted(self.thinking_tokens, "token");
            field("thinking", format!("{blocks}, {tokens}, lost for models that bind thinking"));
        }
        if let Some(Savings { turns, saved, .. }) = self.over {
            field("", format!("{} over {}", cost_change(-saved), counted(turns, "turn")));
        }
    }
}

/// A cost with its direction: `$0.0123 more`, `$0.0123 less`.
fn cost_change(dollars: f64) -> String {
    let amount = dollars.abs();
    let amount = match amount {
        0.0 => return "nothing more".to_owned(),
        _ if amount < 0.000_05 => "<$0.0001".to_owned(),
        _ if amount < 1.0 => format!("${amount:.4}"),
        _ => format!("${amount:.2}"),
    };
    format!("{amount} {}", if dollars > 0.0 { "more" } else { "less" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_a_direction() {
        let texts = [0.0, 0.00001, -0.0123, 12.345].map(cost_change);
        assert_eq!(texts, ["nothing more", "<$0.0001 more", "$0.0123 less", "$12.35 more"]);
    }
}
