//! `recto cache-plan`: what going from one version to another costs at a provider's cache.

use clap::Args;
use recto_service::PlannedEdit;

use crate::arguments::OfConversation;
use crate::cache_plan::{PlanArguments, ShowPlan as _};
use crate::desk::Desk;
use crate::failure::Failure;
use crate::numbers::WhichVersion;
use crate::output::Answer;
use crate::page::{Line, Page, STRONG};
use crate::provider::sent_at;

/// Say what an edit costs at a provider's prompt cache, and when it pays off.
///
/// Both versions are rendered for the provider. What stands in front of the first byte that differs is
/// still cached; everything behind it is billed anew once. Tokens are counted over the request as
/// JSON.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto cache-plan now-1 now --for anthropic
  recto cache-plan 3 12 --for openai-responses --model gpt-5-mini --turns 20
  recto cache-plan now-1 --prices prices.json
  recto cache-plan --print-prices > prices.json    # Recto's own table, to be edited")]
pub(crate) struct CachePlan {
    /// The version before the edit: 12, or now-3 for three before the newest
    #[arg(required_unless_present = "print_prices")]
    from: Option<WhichVersion>,
    /// The one after it; the newest unless told
    #[arg(default_value = "now")]
    to: WhichVersion,

    #[command(flatten)]
    of: OfConversation,

    #[command(flatten)]
    plan: PlanArguments,

    /// Say also what is saved in so many turns
    #[arg(long, value_name = "COUNT")]
    turns: Option<u64>,

    /// Print the prices that are used unless others are given
    #[arg(long)]
    print_prices: bool,
}

impl CachePlan {
    pub(crate) fn run(self, desk: &mut Desk<'_>) -> Result<(), Failure> {
        let Some(from) = self.from.filter(|_| !self.print_prices) else {
            return desk.output.document(recto_format::PriceTable::JSON, desk.surroundings);
        };
        let session = desk.session()?;
        let named = session.conversation(&self.of.conversation)?;
        let before = sent_at(&session, &named, Some(from))?;
        let after = sent_at(&session, &named, Some(self.to))?;
        let counter = session.recto.wait(named.talk.inner().settings())?.counter;
        let plan = self.plan.compare(&before, &after, &counter, desk)?;
        desk.answer(&PlannedEdit {
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

impl Answer for PlannedEdit {
    fn show(&self, page: &mut Page) {
        let title = format!("v{} → v{}", self.from, self.to);
        page.line(Line::new().styled(STRONG, title));
        self.plan.show(page);
    }
}
