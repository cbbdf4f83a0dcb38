//! FIT: the token budget (section 9).

use std::collections::BTreeSet;

use super::draft::{Draft, Effect};
use super::operation::Fit;
use super::refusal::Refusal;
use super::tool_exchange::Pairing;

impl Draft<'_> {
    pub(super) fn fit(&mut self, fit: &Fit) -> Result<Effect, Refusal> {
        let view = self.state.view().to_vec();
        if self.tokens_of(&view) <= fit.max_tokens {
            return Ok(Effect::FitsAlready);
        }
        let must_stay = |index: usize| {
            self.state.is_pinned(index) || (fit.keep_system && self.is_system(index))
        };
        let (stay, others): (Vec<usize>, Vec<usize>) =
            view.iter().partition(|&&index| must_stay(index));
        if self.tokens_of(&stay) > fit.max_tokens {
            let message = format!("what must stay is over {} tokens", fit.max_tokens);
            return Err(Refusal::new("budget_too_small", message));
        }
        // The longest run is the one that starts earliest. No run: an empty one.
        let run_start = (0..others.len())
            .find(|&start| self.run_is_allowed(&others, start, self.tokens_of(&stay), fit))
            .unwrap_or(others.len());
        let kept: BTreeSet<usize> = stay.iter().chain(&others[run_start..]).copied().collect();
        let view = view.into_iter().filter(|index| kept.contains(index)).collect();
        self.open_batch(view);
        Ok(Effect::Applied)
    }

    /// Whether the run of `others` from `start` on fits, starts on the right role
    /// and starts outside of every tool exchange.
    fn run_is_allowed(&self, others: &[usize], start: usize, stay: u64, fit: &Fit) -> bool {
        let (before, run) = others.split_at(start);
        stay + self.tokens_of(run) <= fit.max_tokens
            && fit.start_on.is_none_or(|role| self.log[run[0]].message.role == role)
            && !self.run_answers_a_call_before_it(before, run)
    }

    /// "A result in the run answers a call (same id) that stands in the view
    /// before the run and is not kept otherwise."
    fn run_answers_a_call_before_it(&self, before: &[usize], run: &[usize]) -> bool {
        let pairing = Pairing::of(&self.log, self.state.view());
        let crosses =
            |&(call, result): &(usize, usize)| before.contains(&call) && run.contains(&result);
        pairing.exchanges.iter().any(crosses)
    }

    fn tokens_of(&self, indices: &[usize]) -> u64 {
        indices.iter().map(|&index| self.log[index].tokens).sum()
    }
}
