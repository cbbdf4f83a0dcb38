//! `recto cache-plan`: estimates what an edit costs because the provider's prompt cache becomes invalid.

use clap::Args;
use recto_service::PlannedEdit;

use crate::arguments::ConversationArgument;
use crate::cache_plan::{PlanArguments, ShowPlan as _};
use crate::context::Context;
use crate::failure::Failure;
use crate::numbers::VersionArgument;
use crate::output::CommandResult;
use crate::page::{Line, Page, STRONG};
use crate::provider::sent_at;

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
            return context.output.document(recto_format::PriceTable::JSON, context.environment);
        };
        let session = context.session()?;
        let named = session.conversation(&self.conversation.conversation)?;
        let before = sent_at(&session, &named, Some(from))?;
        let after = sent_at(&session, &named, Some(self.to))?;
        let counter = session.recto.wait(named.handle.inner().settings())?.counter;
        let plan = self.plan.compare(&before, &after, &counter, context)?;
        context.print(&PlannedEdit {
            conversation: named.name,
            from: before.version.0,
            to: after.version.0,
            plan: match self.turns {
                Some(turns) => plan.over(turns),
                None => plan,
            },
        })
    }
}

impl CommandResult for PlannedEdit {
    fn show(&self, page: &mut Page) {
        let title = format!("v{} → v{}", self.from, self.to);
        page.line(Line::new().styled(STRONG, title));
        self.plan.show(page);
    }
}
