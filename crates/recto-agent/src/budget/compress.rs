//! Compression: runs the strategies in order until the view fits the budget.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use recto::{
    Entry, LogIndex, Message, Preview, Query, QueryAt, Request, Role, Tool, Version, WriteOptions,
};
use recto_format::CachePlan;
use tracing::Instrument as _;

use super::Strategy;
use crate::call::Compressed;
use crate::{Agent, CancelToken, Error, Event, FloorPart};

/// Maximum number of times that a strategy runs while it makes progress.
const MAX_ROUNDS: usize = 4;
/// Maximum number of version conflicts of a strategy. After more, the strategy fails.
const MAX_CONFLICTS: usize = 8;
const TOO_MANY_CONFLICTS: &str = "other writers changed the conversation each time";

/// The messages and tools of a version that a request contains, with their tokens.
///
/// Tool descriptions in the view are not included: the provider receives the tools themselves, whose
/// tokens are `tools_tokens`. So no strategy hides a description, and no budget counts its tokens,
/// although the statistics of the conversation do.
#[derive(Clone, Debug)]
pub(crate) struct ViewToSend {
    pub(crate) version: Version,
    /// The visible entries without tool descriptions, in order.
    pub(crate) entries: Vec<Entry>,
    pub(crate) tools: Vec<Tool>,
    /// The tokens of the entries.
    pub(crate) tokens: u64,
    /// The tokens of the tools.
    pub(crate) tools_tokens: u64,
    /// The position at which the newest exchange starts. It consists of the messages that the model replies to.
    pub(crate) tail: usize,
    /// The newest user messages, if they precede the newest exchange: the task for which tools run.
    pub(crate) question: Range<usize>,
    pinned: HashSet<LogIndex>,
    /// Positions of entries whose thinking is invalid, because earlier messages were edited afterwards.
    pub(crate) invalid_thinking: Vec<usize>,
}

impl ViewToSend {
    pub(crate) fn is_pinned(&self, index: LogIndex) -> bool {
        self.pinned.contains(&index)
    }

    /// The tokens of the request, as the conversation's counter counts them.
    pub(crate) fn counted(&self) -> u64 {
        self.counted_with(self.tokens)
    }

    /// The tokens of the request if its entries have `tokens` tokens.
    fn counted_with(&self, tokens: u64) -> u64 {
        tokens.saturating_add(self.tools_tokens)
    }

    /// The tokens of the entries that are sent after a previewed request.
    fn tokens_after(&self, preview: &Preview) -> u64 {
        let entries = self.entries.iter().chain(&preview.added);
        let tokens: HashMap<LogIndex, u64> =
            entries.map(|entry| (entry.index, entry.tokens)).collect();
        preview.outcome.view().iter().filter_map(|index| tokens.get(&index)).sum()
    }

    /// Whether the entry at a position is part of the floor (see the module `budget`).
    pub(crate) fn is_in_floor(&self, at: usize) -> bool {
        let entry = &self.entries[at];
        at >= self.tail
            || self.question.contains(&at)
            || entry.message.role() == Role::System
            || self.is_pinned(entry.index)
    }

    /// The tokens of the floor.
    pub(crate) fn floor_tokens(&self) -> u64 {
        self.floor().iter().map(|part| part.tokens).sum()
    }

    /// The tokens that the entries may have in a request of `request_tokens` tokens: never less than the
    /// floor.
    fn goal(&self, request_tokens: u64) -> u64 {
        request_tokens.max(self.floor_tokens()).saturating_sub(self.tools_tokens)
    }

    /// The parts of the floor, the largest first.
    fn floor(&self) -> Vec<FloorPart> {
        let (mut system, mut pinned, mut newest, mut question) = (0, 0, 0, 0);
        for (at, entry) in self.entries.iter().enumerate() {
            if entry.message.role() == Role::System {
                system += entry.tokens;
            } else if self.is_pinned(entry.index) {
                pinned += entry.tokens;
            } else if at >= self.tail {
                newest += entry.tokens;
            } else if self.question.contains(&at) {
                question += entry.tokens;
            }
        }
        let mut parts = vec![
            FloorPart { name: "system messages", tokens: system },
            FloorPart { name: "tools", tokens: self.tools_tokens },
            FloorPart { name: "pinned messages", tokens: pinned },
            FloorPart { name: "the newest exchange", tokens: newest },
            FloorPart { name: "the newest question", tokens: question },
        ];
        parts.retain(|part| part.tokens > 0);
        parts.sort_by_key(|part| std::cmp::Reverse(part.tokens));
        parts
    }
}

/// The position at which the newest exchange starts: at the newest user messages, or at the reply whose
/// tool results are the newest messages.
fn tail_of(entries: &[Entry]) -> usize {
    let role = |at: usize| entries[at].message.role();
    let mut at = entries.len();
    while at > 0 && matches!(role(at - 1), Role::Tool | Role::System) {
        at -= 1;
    }
    if at == 0 {
        return 0;
    }
    at -= 1;
    if role(at) == Role::User {
        while at > 0 && is_question(&entries[at - 1]) {
            at -= 1;
        }
    }
    at
}

/// The newest user messages before the newest exchange; empty if the exchange starts with them.
fn question_of(entries: &[Entry], tail: usize) -> Range<usize> {
    if entries.get(tail).is_some_and(is_question) {
        return tail..tail;
    }
    let Some(newest) = entries[..tail].iter().rposition(is_question) else { return tail..tail };
    let before = entries[..newest].iter().rev().take_while(|entry| is_question(entry));
    newest - before.count()..newest + 1
}

/// Whether an entry is a message of the user. Summaries have the role `user` too, but a model has written
/// them.
fn is_question(entry: &Entry) -> bool {
    entry.message.role() == Role::User && crate::summarised_entries(&entry.message).is_none()
}

impl Agent {
    /// Loads the newest view, without its pins.
    pub(crate) async fn load_view(&self) -> Result<ViewToSend, Error> {
        let version = self.conversation.version().await?;
        let entries = self.conversation.messages_to_send(version).await?;
        let tools = self.conversation.tools_at(version).await?;
        let tools_tokens = self.tokens_of_tools(&tools).await?;
        let tokens = entries.iter().map(|entry| entry.tokens).sum();
        let tail = tail_of(&entries);
        let (question, pinned) = (question_of(&entries, tail), HashSet::new());
        let invalid_thinking = self.conversation.invalid_thinking(version, &entries).await?;
        Ok(ViewToSend {
            version,
            entries,
            tools,
            tokens,
            tools_tokens,
            tail,
            question,
            pinned,
            invalid_thinking,
        })
    }

    /// Loads the newest view with its pins.
    pub(crate) async fn load_view_with_pins(&self) -> Result<ViewToSend, Error> {
        let view = self.load_view().await?;
        let at = QueryAt::Version(view.version);
        let pinned = Query { at, ..Query::marked(recto::PINNED) };
        let pinned = self.conversation.query(&pinned).await?;
        Ok(ViewToSend { pinned: pinned.into_iter().map(|entry| entry.index).collect(), ..view })
    }

    /// Compresses the view to fit the budget. Returns the view to send and the compressions that ran.
    /// When `cancel` is cancelled, it returns early with a view that may still be too long.
    pub(crate) async fn fit_budget(
        &self,
        cancel: &CancelToken,
    ) -> Result<(ViewToSend, Vec<Compressed>), Error> {
        let view = self.load_view().await?;
        let calibration = self.calibration().await?;
        let expected = calibration.upper_bound(view.counted());
        let limit = self.budget.limit.filter(|&limit| expected > limit);
        let due = self.budget.threshold.filter(|&threshold| expected > threshold);
        if limit.is_none() && due.is_none() {
            return Ok((view, Vec::new()));
        }
        let view = self.load_view_with_pins().await?;
        if let Some(limit) = limit {
            self.emit(&Event::TokenLimitExceeded { tokens: expected, limit });
            // The limit is in provider tokens, so the parts are as well.
            let total = calibration.upper_bound(view.floor_tokens());
            if total > limit {
                let mut parts = view.floor();
                for part in &mut parts {
                    part.tokens = calibration.upper_bound(part.tokens);
                }
                return Err(Error::FloorTooHigh { limit, total, parts });
            }
        }
        let Some(threshold) = due.or(self.budget.threshold.filter(|_| limit.is_some())) else {
            let limit = limit.expect("one of the two is over");
            return Err(Error::OverLimit { limit, tokens: expected, tried: Vec::new() });
        };
        let target = self.budget.target.min(self.budget.limit.unwrap_or(u64::MAX));
        self.emit(&Event::CompressionRequested { tokens: expected, threshold, target });
        let reason = match limit {
            Some(limit) => format!("{expected} tokens are over the limit of {limit}"),
            None => format!("{expected} tokens are over the threshold of {threshold}"),
        };
        let may_defer = limit.is_none();
        let target = calibration.counted_within(target);
        let ran = self.run_strategies(target, &reason, may_defer, cancel).await?;
        // The call of a summary may have changed the calibration.
        let (view, calibration) = (self.load_view().await?, self.calibration().await?);
        let tokens = calibration.upper_bound(view.counted());
        match self.budget.limit.filter(|&limit| tokens > limit) {
            // A cancelled run sends nothing, so the limit does not matter.
            Some(limit) if !cancel.is_cancelled() => {
                Err(Error::OverLimit { limit, tokens, tried: ran.tried })
            }
            _ => Ok((view, ran.done)),
        }
    }

    /// Maximum tokens of the next tool results: half of what the limit leaves. `None` without a limit.
    pub(crate) async fn tokens_for_results(&self) -> Result<Option<u64>, Error> {
        let Some(limit) = self.budget.limit else { return Ok(None) };
        let view = self.load_view_with_pins().await?;
        // If a strategy can hide everything but the floor, only the floor counts.
        let reaches_floor = self.budget.threshold.is_some()
            && self.budget.strategies.iter().any(|strategy| strategy.reaches_floor());
        let used = if reaches_floor { view.floor_tokens() } else { view.counted() };
        Ok(Some(self.calibration().await?.counted_within(limit).saturating_sub(used) / 2))
    }

    /// Compresses the view after the provider rejected the request as too long, independent of the
    /// budget. `None` if nothing can be hidden.
    pub(crate) async fn shrink_after_rejection(
        &self,
        cancel: &CancelToken,
    ) -> Result<Option<(ViewToSend, Vec<Compressed>)>, Error> {
        let view = self.load_view_with_pins().await?;
        let calibration = self.calibration().await?;
        let (counted, tokens) = (view.counted(), calibration.upper_bound(view.counted()));
        // The provider's limit is not known: aim at half, or at the budget's target if that is lower.
        let half = counted / 2;
        let goal = match self.budget.target {
            0 => half,
            target => calibration.counted_within(target).min(half),
        };
        if self.budget.strategies.is_empty() || view.goal(goal) >= view.tokens {
            return Ok(None);
        }
        let target = calibration.expected(goal);
        self.emit(&Event::CompressionRequested { tokens, threshold: target, target });
        let reason = format!("the provider rejected about {tokens} tokens as too long");
        let done = self.run_strategies(goal, &reason, false, cancel).await?.done;
        Ok(match done.is_empty() {
            true => None,
            false => Some((self.load_view().await?, done)),
        })
    }

    /// Runs the strategies in order, each while it makes progress, until the request has at most
    /// `request_tokens` tokens, as the conversation's counter counts them.
    async fn run_strategies(
        &self,
        request_tokens: u64,
        reason: &str,
        may_defer: bool,
        cancel: &CancelToken,
    ) -> Result<StrategyRun, Error> {
        let mut ran = StrategyRun::default();
        for &strategy in &self.budget.strategies {
            let name = strategy.name();
            let named_reason = format!("{name}: {reason}");
            let (mut rounds, mut conflicts) = (0, 0);
            let failure = loop {
                let view = self.load_view_with_pins().await?;
                let goal = view.goal(request_tokens);
                if cancel.is_cancelled() || view.tokens <= goal {
                    return Ok(ran);
                }
                if rounds == MAX_ROUNDS {
                    break format!("{} tokens are left", view.tokens);
                }
                if may_defer && let Some(failure) = self.back_off.skip_reason(strategy, view.tokens)
                {
                    self.emit(&Event::CompressionFailed { strategy: name, reason: &failure });
                    break failure;
                }
                let attempt = match strategy {
                    Strategy::Summarise => {
                        self.attempt_summary(&view, goal, &named_reason, may_defer, cancel).await?
                    }
                    _ => match strategy.plan(&view, goal, &named_reason) {
                        Ok(request) => self.attempt(strategy, &view, request, may_defer).await?,
                        Err(failure) => Attempt::Failed(failure),
                    },
                };
                let failure = match attempt {
                    Attempt::Deferred => return Ok(ran),
                    Attempt::Conflict if conflicts < MAX_CONFLICTS => {
                        conflicts += 1;
                        continue;
                    }
                    Attempt::Conflict => TOO_MANY_CONFLICTS.to_owned(),
                    Attempt::Failed(failure) => failure,
                    Attempt::Done { version, before, after } => {
                        // In the unit of the threshold and the limit.
                        let calibration = self.calibration().await?;
                        let in_request =
                            |tokens| calibration.upper_bound(view.counted_with(tokens));
                        let (before, after) = (in_request(before), in_request(after));
                        rounds += 1;
                        self.back_off.reset();
                        self.emit(&Event::CompressionCompleted {
                            strategy: name,
                            before,
                            after,
                            version,
                        });
                        let (strategy, reason) = (name.to_owned(), reason.to_owned());
                        ran.done.push(Compressed { strategy, reason, version, before, after });
                        continue;
                    }
                };
                self.emit(&Event::CompressionFailed { strategy: name, reason: &failure });
                // A cancelled strategy has not failed: it may succeed in the next run.
                if !cancel.is_cancelled() {
                    self.back_off.failed(strategy, view.tokens, &failure);
                }
                break failure;
            };
            ran.tried.push(format!("{name} ({failure})"));
        }
        Ok(ran)
    }

    /// Requests a summary, unless the compression would be deferred. The summary was paid for, so after
    /// a version conflict it is applied to the newest view if the entries it replaces are still there.
    async fn attempt_summary(
        &self,
        view: &ViewToSend,
        goal: u64,
        reason: &str,
        may_defer: bool,
        cancel: &CancelToken,
    ) -> Result<Attempt, Error> {
        let strategy = Strategy::Summarise;
        if may_defer
            && self.budget.horizon.is_some()
            && let Some(estimate) = self.estimated_summary(view, goal).await?
        {
            match self.conversation.preview(estimate).await {
                Ok(preview) if self.is_deferred(strategy, view, &preview)? => {
                    return Ok(Attempt::Deferred);
                }
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(code = error.code(), "the cost of a summary was not estimated");
                }
            }
        }
        let mut summary = match self.summarise(view, goal, cancel).await? {
            Ok(summary) => summary,
            Err(failure) => return Ok(Attempt::Failed(failure)),
        };
        let (mut newest, mut conflicts) = (view.clone(), 0);
        let attempt = loop {
            let request = self.compress_request(&mut summary, reason).await?;
            match self.attempt(strategy, &newest, request, may_defer).await? {
                Attempt::Conflict if conflicts < MAX_CONFLICTS => conflicts += 1,
                Attempt::Conflict => break Attempt::Failed(TOO_MANY_CONFLICTS.to_owned()),
                attempt => break attempt,
            }
            newest = self.load_view_with_pins().await?;
            if !summary.applies_to(&newest) {
                let failure = "another writer changed the messages that the summary replaces";
                break Attempt::Failed(failure.to_owned());
            }
        };
        let unused = match &attempt {
            Attempt::Failed(failure) => Some(failure.as_str()),
            Attempt::Deferred => Some("it does not pay off yet"),
            Attempt::Done { .. } | Attempt::Conflict => None,
        };
        if let Some(reason) = unused {
            let span = summary.span.clone();
            self.record_unused(&mut summary.call, reason).instrument(span).await?;
        }
        Ok(attempt)
    }

    /// Applies a request if it shortens the view and hides no entry that the strategy has to keep.
    async fn attempt(
        &self,
        strategy: Strategy,
        view: &ViewToSend,
        request: Request,
        may_defer: bool,
    ) -> Result<Attempt, Error> {
        let write =
            WriteOptions { expected_version: Some(view.version), ..WriteOptions::default() };
        let preview = match self.conversation.preview_with(request.clone(), write.clone()).await {
            Ok(preview) => preview,
            Err(error) if error.is_conflict() => return Ok(Attempt::Conflict),
            Err(recto::Error::Engine(error)) => return Ok(Attempt::Failed(error.to_string())),
            Err(error) => return Err(error.into()),
        };
        let (before, after) = (view.tokens, view.tokens_after(&preview));
        if after >= before {
            let failure = format!("{after} tokens would not be fewer than {before}");
            return Ok(Attempt::Failed(failure));
        }
        let left: HashSet<LogIndex> = preview.outcome.view().iter().collect();
        let is_hidden = |at: &usize| !left.contains(&view.entries[*at].index);
        let mut kept = (0..view.entries.len()).filter(|&at| strategy.keeps(view, at));
        if let Some(at) = kept.find(is_hidden) {
            let index = view.entries[at].index;
            return Ok(Attempt::Failed(format!("entry {index} would be hidden, and must stay")));
        }
        if may_defer && self.is_deferred(strategy, view, &preview)? {
            return Ok(Attempt::Deferred);
        }
        match self.conversation.apply_with(request, write).await {
            Ok(outcome) => Ok(Attempt::Done { version: outcome.version, before, after }),
            Err(error) if error.is_conflict() => Ok(Attempt::Conflict),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether a compression is deferred, because it would cost more than it saves within the horizon.
    fn is_deferred(
        &self,
        strategy: Strategy,
        view: &ViewToSend,
        preview: &Preview,
    ) -> Result<bool, Error> {
        let Some(horizon) = self.budget.horizon else { return Ok(false) };
        let plan = self.cache_plan(view, preview)?;
        let pays_off_after = plan.map_or(Some(0), |plan| plan.pays_off.turns());
        let is_deferred = pays_off_after.is_none_or(|turns| turns > horizon);
        if is_deferred {
            let strategy = strategy.name();
            self.emit(&Event::CompressionDeferred { strategy, pays_off_after });
        }
        Ok(is_deferred)
    }

    /// The prompt-cache cost of a compression; `None` if the prices of the model are not known.
    fn cache_plan(&self, view: &ViewToSend, preview: &Preview) -> Result<Option<CachePlan>, Error> {
        let Some(price) = self.prices.of(self.model.name()) else { return Ok(None) };
        let entries = view.entries.iter().chain(&preview.added);
        let messages: HashMap<LogIndex, &Message> =
            entries.map(|entry| (entry.index, &entry.message)).collect();
        let indices = || preview.outcome.view().iter().filter(|index| messages.contains_key(index));
        let is_same = |(entry, index): &(&Entry, LogIndex)| entry.index == *index;
        let unchanged = view.entries.iter().zip(indices()).take_while(is_same).count();
        let mut edited: Vec<usize> = view.invalid_thinking.clone();
        edited.retain(|&position| position < unchanged);
        edited.extend(unchanged..indices().count());
        let after = indices().filter_map(|index| messages.get(&index).copied());
        let before = self.render_view(view)?;
        let after = self.render(after, &view.tools, &edited)?;
        Ok(Some(CachePlan::of(&before.body, &after.body, &recto::Approx, price)))
    }
}

/// The result of one attempt of a strategy.
enum Attempt {
    Failed(String),
    Deferred,
    /// The conversation has changed since the view was loaded.
    Conflict,
    Done {
        version: Version,
        before: u64,
        after: u64,
    },
}

/// The result of running the strategies.
#[derive(Default)]
struct StrategyRun {
    done: Vec<Compressed>,
    /// The strategies that were not enough, each with its reason.
    tried: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(messages: &[Message]) -> Vec<Entry> {
        let entry = |(at, message): (usize, &Message)| {
            let mut entry = Entry::new(LogIndex(at as u32), message.clone());
            entry.tokens = 1;
            entry
        };
        messages.iter().enumerate().map(entry).collect()
    }

    fn tail(messages: &[Message]) -> usize {
        tail_of(&entries(messages))
    }

    #[test]
    fn the_newest_exchange_is_what_the_model_replies_to() {
        let (user, reply) = (Message::user("?"), Message::assistant("!"));
        let call = Message::tool_call("c", "f", &serde_json::json!({}));
        let result = Message::tool_result("c", "r");
        assert_eq!(tail(&[]), 0);
        assert_eq!(tail(&[user.clone(), reply.clone(), user.clone(), user.clone()]), 2);
        assert_eq!(tail(&[user.clone(), call.clone(), result.clone(), result.clone()]), 1);
        assert_eq!(tail(&[user.clone(), call.clone(), result, reply, call]), 4);
        assert_eq!(tail(&[user, Message::system("s")]), 0);
    }

    #[test]
    fn a_summary_is_not_the_question_that_tools_run_for() {
        let (user, reply) = (Message::user("?"), Message::assistant("!"));
        let call = Message::tool_call("c", "f", &serde_json::json!({}));
        let result = Message::tool_result("c", "r");
        let summary = r#"{"role":"user","content":"s","metadata":{"summary":{"of":[0]}}}"#;
        let summary = Message::from_json(summary).unwrap();
        let question = |messages: &[Message]| {
            let entries = entries(messages);
            question_of(&entries, tail_of(&entries))
        };
        let old = [user.clone(), reply];
        assert!(question(&[]).is_empty());
        assert!(question(&[old.as_slice(), std::slice::from_ref(&user)].concat()).is_empty());
        let work = [call, result];
        assert_eq!(question(&[&old, &[user.clone()][..], &work, &work].concat()), 2..3);
        assert_eq!(question(&[&old, &[user.clone(), summary.clone()][..], &work].concat()), 2..3);
        assert_eq!(
            question(&[&[summary.clone(), user.clone(), user.clone()][..], &work].concat()),
            1..3
        );
        assert!(question(&[&[summary.clone()][..], &work].concat()).is_empty());
        // A summary before the newest user message can be summarised again.
        assert_eq!(tail(&[summary, user]), 1);
    }
}
