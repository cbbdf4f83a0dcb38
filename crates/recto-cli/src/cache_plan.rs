//! What an edit costs at a provider's prompt cache, for people and programs.

use clap::Args;
use recto_format::PriceTable;
use recto_service::{Plan, PlanFor, Savings, Sent};

use crate::desk::Desk;
use crate::failure::Failure;
use crate::numbers::{counted, grouped};
use crate::page::{FAINT, Line, Page};
use crate::provider::Reader;

/// For whom an edit is planned, and at which prices.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct PlanArguments {
    #[command(flatten)]
    pub(crate) reader: Reader,

    /// A file with prices of models, in the form of Recto's own table
    #[arg(long, value_name = "FILE")]
    pub(crate) prices: Option<String>,
}

impl PlanArguments {
    /// Without a dry run nothing is planned, so nobody should ask for it.
    pub(crate) fn check(&self, is_dry_run: bool) -> Result<(), Failure> {
        match self.is_given() && !is_dry_run {
            true => Err(Failure::Usage(
                "--for, --model and --prices are about the cache: use them with --dry-run"
                    .to_owned(),
            )),
            false => Ok(()),
        }
    }

    /// Whether somebody asks for a plan for one provider.
    pub(crate) fn is_given(&self) -> bool {
        let Reader { target, model } = &self.reader;
        target.is_some() || model.is_some() || self.prices.is_some()
    }

    /// Compares what is sent before and after an edit.
    pub(crate) fn compare(
        &self,
        before: &Sent,
        after: &Sent,
        counter: &str,
        desk: &mut Desk<'_>,
    ) -> Result<Plan, Failure> {
        let prices = match &self.prices {
            Some(file) => Some(PriceTable::from_json(&desk.read(file)?)?),
            None => None,
        };
        let Reader { target, model } = self.reader.clone();
        Ok(PlanFor { target, model, prices }.compare(before, after, counter)?)
    }
}

/// How a plan is printed.
pub(crate) trait ShowPlan {
    /// The plan for people.
    fn show(&self, page: &mut Page);
}

impl ShowPlan for Plan {
    fn show(&self, page: &mut Page) {
        let mut field = |name: &str, text: String| {
            page.line(Line::wrapping().styled(FAINT, format!("{name:<9}")).text(text));
        };
        let (cached, new) = (self.cached_tokens, self.new_tokens);
        let left = format!(
            "{} still cached, {} billed anew",
            counted(cached, "token"),
            counted(new, "token")
        );
        field("cache", left);
        field("", format!("{}, at the prices of {}", self.target, self.prices_of));
        if self.old_tokens.min(cached + new) < self.minimum {
            field("", format!("under {} tokens nothing is cached there", grouped(self.minimum)));
        }
        let (now, later) = (more(self.cost_now), more(-self.saved_a_turn));
        field("cost", format!("{now} for the next turn, {later} for each after it"));
        let pays_off = match self.pays_off_after {
            Some(0) => "pays off at once".to_owned(),
            Some(turns) => format!("pays off after {}", counted(turns, "turn")),
            None => "never pays off".to_owned(),
        };
        field("", pays_off);
        if let Some(Savings { turns, saved }) = self.over {
            field("", format!("{} over {}", more(-saved), counted(turns, "turn")));
        }
    }
}

/// `$0.0123 more`, `$0.0123 less`.
fn more(dollars: f64) -> String {
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
    fn amounts_say_in_which_direction() {
        let said = [0.0, 0.00001, -0.0123, 12.345].map(more);
        assert_eq!(said, ["nothing more", "<$0.0001 more", "$0.0123 less", "$12.35 more"]);
    }
}
