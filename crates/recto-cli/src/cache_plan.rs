//! What an edit costs at a provider's prompt cache, for people and programs.

use clap::Args;
use recto::Counter;
use recto_format::{CachePlan, PaysOff, Price, PriceTable, Rendered, Target};
use serde::Serialize;

use crate::desk::Desk;
use crate::failure::Failure;
use crate::numbers::{counted, grouped};
use crate::page::{FAINT, Line, Page};
use crate::provider::{Reader, Sent, USUAL};

/// For whom an edit is planned, and at which prices.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct PlanArguments {
    #[command(flatten)]
    pub(crate) reader: Reader,

    /// A file with prices of models, in the form of Recto's own table
    #[arg(long, value_name = "FILE")]
    pub(crate) prices: Option<String>,
}

/// A plan, with what it was made for.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Plan {
    #[serde(rename = "for")]
    target: &'static str,
    /// The prices are those of these models.
    prices_of: String,
    /// The first byte of the request that is another.
    first_difference: usize,
    cached_tokens: u64,
    new_tokens: u64,
    old_tokens: u64,
    /// In dollars: what the next turn costs more, and what every turn after it costs less.
    cost_now: f64,
    saved_a_turn: f64,
    /// After so many turns; 0 is at once, and `null` is never.
    pays_off_after: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    over: Option<Over>,
    #[serde(skip)]
    minimum: u64,
}

/// What is saved in some turns together.
#[derive(Clone, Copy, Debug, Serialize)]
struct Over {
    turns: u64,
    saved: f64,
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
        // The view that is asked of now says it, as it does where only one is looked at.
        let known = || after.target().or_else(|| before.target());
        let target = self.reader.target.or_else(known).unwrap_or(USUAL);
        let model = self.reader.model.as_deref();
        let table = match &self.prices {
            Some(file) => PriceTable::from_json(&desk.read(file)?)?,
            None => PriceTable::default(),
        };
        let price = price(&table, target, model, [after, before])?;
        let body = |sent: &Sent| match sent.render(target, model, &[]) {
            Ok(Rendered { body, .. }) => Ok(body),
            // A view with nothing in it costs nothing.
            Err(recto_format::Error::NothingToSend { .. }) => Ok(String::new()),
            Err(error) => Err(error),
        };
        let counter = <dyn Counter>::named(counter);
        let counter = counter.unwrap_or_else(|| std::sync::Arc::new(recto::Approx));
        let plan = CachePlan::of(&body(before)?, &body(after)?, &*counter, price);
        Ok(Plan::new(&plan, target, price))
    }
}

/// The prices of the model that was named, else of the one that spoke last, else of a usual one.
fn price<'t>(
    table: &'t PriceTable,
    target: Target,
    model: Option<&str>,
    newest_first: [&Sent; 2],
) -> Result<&'t Price, Failure> {
    let unknown = |model: &str| {
        let known: Vec<&str> = table.models.iter().map(|price| &*price.model).collect();
        let known = known.join(", ");
        Failure::Usage(format!("there are no prices of {model:?}; give --prices, or use {known}"))
    };
    if let Some(model) = model {
        return table.of(model).ok_or_else(|| unknown(model));
    }
    let family = match target {
        Target::Anthropic => "claude",
        Target::OpenAiChat | Target::OpenAiResponses => "gpt",
        Target::Gemini => "gemini",
    };
    let spoke = newest_first.iter().find_map(|sent| sent.likely_model());
    let spoke = spoke.filter(|model| model.starts_with(family));
    let usual = match target {
        Target::Anthropic => "claude-sonnet",
        Target::OpenAiChat | Target::OpenAiResponses => "gpt-5",
        Target::Gemini => "gemini-2.5-pro",
    };
    let found = spoke.and_then(|model| table.of(&model)).or_else(|| table.of(usual));
    // A table of somebody's own may have other names.
    found.or_else(|| table.models.first()).ok_or_else(|| unknown(usual))
}

impl Plan {
    fn new(plan: &CachePlan, target: Target, price: &Price) -> Plan {
        Plan {
            target: target.name(),
            prices_of: price.model.clone(),
            first_difference: plan.first_difference,
            cached_tokens: plan.cached_tokens,
            new_tokens: plan.new_tokens,
            old_tokens: plan.old_tokens,
            cost_now: plan.cost_now,
            saved_a_turn: plan.saved_a_turn,
            pays_off_after: match plan.pays_off {
                PaysOff::Now => Some(0),
                PaysOff::AfterTurns(turns) => Some(turns),
                PaysOff::Never => None,
            },
            over: None,
            minimum: price.minimum,
        }
    }

    /// Says also what is saved in so many turns.
    pub(crate) fn over(mut self, turns: u64) -> Plan {
        let saved = self.saved_a_turn * turns as f64 - self.cost_now;
        self.over = Some(Over { turns, saved });
        self
    }

    pub(crate) fn show(&self, page: &mut Page) {
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
        if let Some(Over { turns, saved }) = self.over {
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
