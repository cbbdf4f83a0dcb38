//! `recto cache-plan`: estimates what an edit costs in the provider's prompt cache.

use clap::Args;
use recto_format::PriceTable;
use recto_service::{At, CachePlan as CachePlanRequest, CachePlanOptions, PlannedEdit, Provider};
use serde_json::value::RawValue;

use crate::arguments::ConversationArgument;
use crate::cache_plan::{PlanArguments, ShowPlan as _};
use crate::context::Context;
use crate::failure::Failure;
use crate::numbers::VersionArgument;
use crate::output::CommandResult;
use crate::page::{Line, Page, STRONG};
use crate::provider::ProviderArguments;

/// Estimate what an edit costs in the prompt cache.
///
/// Both versions are rendered for the provider. Everything before the first byte that differs is still
/// cached; everything after it is billed again once. Tokens are counted over the JSON of the request.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto cache-plan now-1 now --for anthropic
  recto cache-plan 3 12 --for openai-responses --model gpt-5-mini --turns 20
  recto cache-plan now-1 --prices prices.json
  recto cache-plan --print-prices > prices.json    # the default table, for editing")]
pub(crate) struct CachePlan {
    /// Version before the edit: 12, or now-3 for three before the newest
    #[arg(required_unless_present = "print_prices")]
    from: Option<VersionArgument>,
    /// Version after the edit
    #[arg(default_value = "now")]
    to: VersionArgument,

    #[command(flatten)]
    conversation: ConversationArgument,

    #[command(flatten)]
    plan: PlanArguments,

    /// Print also the savings over COUNT turns
    #[arg(long, value_name = "COUNT")]
    turns: Option<u64>,

    /// Print the default prices, and exit
    #[arg(long)]
    print_prices: bool,
}

impl CachePlan {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<(), Failure> {
        let Some(from) = self.from.filter(|_| !self.print_prices) else {
            return context.output.document(PriceTable::JSON, context.environment);
        };
        let session = context.session()?;
        let named = session.conversation(&self.conversation.conversation)?;
        let newest = named.handle.version()?;
        let prices = self.plan.prices(context)?;
        let prices = prices.as_deref().map(json_of_prices).transpose()?;
        let ProviderArguments { target, model, api_version } = self.plan.provider;
        let cache_plan = CachePlanOptions {
            from: At(from.from(newest)?),
            to: Some(At(self.to.from(newest)?)),
            target: target.map(Provider),
            model,
            api_version,
            prices,
            turns: self.turns,
        };
        let request = CachePlanRequest { conversation: named.name, cache_plan };
        let planned = session.run(request)?;
        context.print(&planned)
    }
}

/// The table of prices as the JSON value of a field of the request. A table that is not valid is refused
/// here, because its text may not be JSON, and the field contains only JSON.
fn json_of_prices(table: &str) -> Result<&RawValue, Failure> {
    PriceTable::from_json(table)?;
    Ok(serde_json::from_str(table).expect("a table that was read is JSON"))
}

impl CommandResult for PlannedEdit {
    fn show(&self, page: &mut Page) {
        let title = format!("v{} → v{}", self.from, self.to);
        page.line(Line::new().styled(STRONG, title));
        self.plan.show(page);
    }
}
