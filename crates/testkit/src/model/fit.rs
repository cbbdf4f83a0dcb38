//! FIT: the token budget (section 9).

use std::collections::BTreeSet;

use serde_json::json;

use super::draft::{Draft, Effect};
use super::operation::Fit;
use super::refusal::Refusal;
use super::tool_exchange::Pairing;

impl Draft<'_> {
    pub(super) fn fit(&mut self, fit: &Fit) -> Result<Effect, Refusal> {
        let view = self.state.view().to_vec();
        let all_tokens = self.tokens_of(&view);
        if all_tokens <= fit.max_tokens {
            return Ok(Effect::Nothing);
        }
        let must_stay = |index: usize| {
            self.state.is_pinned(index) || (fit.keep_system && self.is_system(index))
        };
        let (stay, others): (Vec<usize>, Vec<usize>) =
            view.iter().partition(|&&index| must_stay(index));
        let pairing = Pairing::of(&self.log, &view);
        let is_allowed = |&start: &usize| {
            let (before, run) = others.split_at(start);
            fit.start_on.is_none_or(|role| self.log[run[0]].message.role == role)
                && !starts_inside_an_exchange(&pairing, before, run)
        };
        let tokens_kept = |start: usize| self.tokens_of(&stay) + self.tokens_of(&others[start..]);
        // A run has at least one entry: FIT never hides all entries that it may hide.
        let starts: Vec<usize> = (0..others.len()).filter(is_allowed).collect();
        // The longest run is the one that starts earliest.
        let found = starts.iter().copied().find(|&start| tokens_kept(start) <= fit.max_tokens);
        let Some(start) = found else {
            // A budget for the whole view succeeds too, because nothing is hidden then.
            let budgets = starts.into_iter().map(tokens_kept).chain([all_tokens]);
            let needed = budgets.min().expect("the whole view is a candidate");
            let message = format!("{} tokens are too few, {needed} are needed", fit.max_tokens);
            return Err(
                Refusal::new("budget_too_small", message).with_details(json!({"needed": needed}))
            );
        };
        let kept: BTreeSet<usize> = stay.iter().chain(&others[start..]).copied().collect();
        let view = view.into_iter().filter(|index| kept.contains(index)).collect();
        self.open_batch(view);
        Ok(Effect::Applied)
    }

    fn tokens_of(&self, indices: &[usize]) -> u64 {
        indices.iter().map(|&index| self.log[index].tokens).sum()
    }
}

/// Whether a result in the run belongs to a call that is before the run and is not kept.
fn starts_inside_an_exchange(pairing: &Pairing, before: &[usize], run: &[usize]) -> bool {
    let crosses =
        |&(call, result): &(usize, usize)| before.contains(&call) && run.contains(&result);
    pairing.exchanges.iter().any(crosses)
}
