//! Strategies one after the other, until a view is short enough.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use recto::{
    Entry, LogIndex, Message, Moment, Preview, Query, Request, Role, Tool, Version, WriteOptions,
};
use recto_format::{CachePlan, PaysOff};

use super::{Part, Strategy};
use crate::call::Compressed;
use crate::{Agent, CancellationToken, Error, Event};

/// A strategy is tried so often at most, as long as it makes progress.
const MOST_ROUNDS: usize = 4;
/// So often others may write in between, before a strategy has failed.
const MOST_OVERTAKEN: usize = 8;
const OVERTAKEN: &str = "others wrote in between again and again";

/// What is sent of a view, with what a budget wants to know of it.
///
/// The view's tool descriptions are not part of it: the provider receives the tools themselves, and
/// their tokens are `tools_tokens`. So no strategy hides a description, and its tokens, which the
/// statistics of the conversation include, count for no budget.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) version: Version,
    /// The visible entries without tool descriptions, in order.
    pub(crate) entries: Vec<Entry>,
    pub(crate) tools: Vec<Tool>,
    /// The tokens of the entries.
    pub(crate) tokens: u64,
    /// The tokens of the tools beside it.
    pub(crate) tools_tokens: u64,
    /// Where the newest exchange starts: what the model is to answer.
    pub(crate) tail: usize,
    /// The newest messages of the user, if they are before the newest exchange: what tools run for.
    pub(crate) question: Range<usize>,
    pinned: HashSet<LogIndex>,
}

impl Seen {
    pub(crate) fn is_pinned(&self, index: LogIndex) -> bool {
        self.pinned.contains(&index)
    }

    /// The tokens of the whole request, as the conversation counts.
    pub(crate) fn counted(&self) -> u64 {
        self.tokens.saturating_add(self.tools_tokens)
    }

    /// The tokens of what a request would leave to be sent.
    fn tokens_after(&self, preview: &Preview) -> u64 {
        let known = self.entries.iter().chain(&preview.added);
        let known: HashMap<LogIndex, u64> = known.map(|it| (it.index, it.tokens)).collect();
        preview.outcome.view().iter().filter_map(|index| known.get(&index)).sum()
    }

    /// Whether the entry at a place is part of the floor.
    pub(crate) fn stays(&self, at: usize) -> bool {
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

    /// What the view is to come down to if the request may have `fitting` tokens: never below the
    /// floor.
    fn goal(&self, fitting: u64) -> u64 {
        fitting.max(self.floor_tokens()).saturating_sub(self.tools_tokens)
    }

    /// What no strategy hides, the largest first.
    fn floor(&self) -> Vec<Part> {
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
            Part { name: "system messages", tokens: system },
            Part { name: "tools", tokens: self.tools_tokens },
            Part { name: "pinned messages", tokens: pinned },
            Part { name: "the newest exchange", tokens: newest },
            Part { name: "the newest question", tokens: question },
        ];
        parts.retain(|part| part.tokens > 0);
        parts.sort_by_key(|part| std::cmp::Reverse(part.tokens));
        parts
    }
}

/// Where the newest exchange starts: the newest messages of the user, or the newest results with the
/// answer that asked for them.
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

/// The newest messages of the user before the newest exchange; nothing if that starts with them.
fn question_of(entries: &[Entry], tail: usize) -> Range<usize> {
    if entries.get(tail).is_some_and(is_question) {
        return tail..tail;
    }
    let Some(newest) = entries[..tail].iter().rposition(is_question) else { return tail..tail };
    let before = entries[..newest].iter().rev().take_while(|entry| is_question(entry));
    newest - before.count()..newest + 1
}

/// Whether a message is one that the user has said. A summary only looks like one.
fn is_question(entry: &Entry) -> bool {
    entry.message.role() == Role::User && crate::stands_for(&entry.message).is_none()
}

impl Agent {
    /// What would be sent of the view as it is now.
    pub(crate) async fn look(&self) -> Result<Seen, Error> {
        let version = self.talk.version().await?;
        let entries = self.talk.messages_to_send(version).await?;
        let tools = self.talk.tools_at(version).await?;
        let tools_tokens = self.tokens_of_tools(&tools).await?;
        let tokens = entries.iter().map(|entry| entry.tokens).sum();
        let tail = tail_of(&entries);
        let (question, pinned) = (question_of(&entries, tail), HashSet::new());
        Ok(Seen { version, entries, tools, tokens, tools_tokens, tail, question, pinned })
    }

    /// The view, and what is pinned in it.
    pub(crate) async fn look_closely(&self) -> Result<Seen, Error> {
        let seen = self.look().await?;
        let (mark, moment) = (Some(recto::PINNED.to_owned()), Moment::Version(seen.version));
        let pinned = self.talk.query(&Query { mark, moment, ..Query::default() }).await?;
        Ok(Seen { pinned: pinned.into_iter().map(|entry| entry.index).collect(), ..seen })
    }

    /// Makes the view fit the budget before it is sent. Gives the view, and says what was done. Once
    /// it is cancelled it ends soon, and the view may be as long as it was.
    pub(crate) async fn make_room(
        &self,
        cancel: &CancellationToken,
    ) -> Result<(Seen, Vec<Compressed>), Error> {
        let seen = self.look().await?;
        let calibration = self.calibration().await?;
        let expected = calibration.at_most(seen.counted());
        let limit = self.budget.limit.filter(|&limit| expected > limit);
        let due = self.budget.threshold.filter(|&threshold| expected > threshold);
        if limit.is_none() && due.is_none() {
            return Ok((seen, Vec::new()));
        }
        let seen = self.look_closely().await?;
        if let Some(limit) = limit {
            self.tell(&Event::TokenLimitExceeded { tokens: expected, limit });
            // In tokens of the model, as the limit is.
            let total = calibration.at_most(seen.floor_tokens());
            if total > limit {
                let mut parts = seen.floor();
                for part in &mut parts {
                    part.tokens = calibration.at_most(part.tokens);
                }
                return Err(Error::FloorTooHigh { limit, total, parts });
            }
        }
        let Some(threshold) = due.or(self.budget.threshold.filter(|_| limit.is_some())) else {
            let limit = limit.expect("one of the two is over");
            return Err(Error::OverLimit { limit, tokens: expected, tried: Vec::new() });
        };
        let target = self.budget.target.min(self.budget.limit.unwrap_or(u64::MAX));
        self.tell(&Event::CompressionRequested { tokens: expected, threshold, target });
        let why = match limit {
            Some(limit) => format!("{expected} tokens are over the limit of {limit}"),
            None => format!("{expected} tokens are over the threshold of {threshold}"),
        };
        let may_wait = limit.is_none();
        let climbed = self.climb(calibration.fitting(target), &why, may_wait, cancel).await?;
        // A summary was a call too, and may have taught something.
        let (seen, calibration) = (self.look().await?, self.calibration().await?);
        let tokens = calibration.at_most(seen.counted());
        match self.budget.limit.filter(|&limit| tokens > limit) {
            // Whoever has cancelled sends nothing, and wants to hear of no limit.
            Some(limit) if !cancel.is_cancelled() => {
                Err(Error::OverLimit { limit, tokens, tried: climbed.tried })
            }
            _ => Ok((seen, climbed.done)),
        }
    }

    /// How many tokens the results of tools may have, so that the next request is well under the limit;
    /// `None` if there is no limit.
    pub(crate) async fn room_for_results(&self) -> Result<Option<u64>, Error> {
        let Some(limit) = self.budget.limit else { return Ok(None) };
        let seen = self.look_closely().await?;
        // What a strategy is sure to hide need not be counted.
        let is_sure = self.budget.threshold.is_some()
            && self.budget.strategies.iter().any(|strategy| strategy.is_sure());
        let stays = if is_sure { seen.floor_tokens() } else { seen.counted() };
        Ok(Some(self.calibration().await?.fitting(limit).saturating_sub(stays) / 2))
    }

    /// Makes the view shorter after the provider has said that it is too long, whatever the budget says.
    /// `None` if there is nothing that could be left out.
    pub(crate) async fn make_more_room(
        &self,
        cancel: &CancellationToken,
    ) -> Result<Option<(Seen, Vec<Compressed>)>, Error> {
        let seen = self.look_closely().await?;
        let calibration = self.calibration().await?;
        let (counted, tokens) = (seen.counted(), calibration.at_most(seen.counted()));
        // How much is too much is not known: half of it, or what the budget aims at, if that is less.
        let half = counted / 2;
        let fitting = match self.budget.target {
            0 => half,
            target => calibration.fitting(target).min(half),
        };
        if self.budget.strategies.is_empty() || seen.goal(fitting) >= seen.tokens {
            return Ok(None);
        }
        let target = calibration.expected(fitting);
        self.tell(&Event::CompressionRequested { tokens, threshold: target, target });
        let why = format!("the provider says that about {tokens} tokens are too long");
        let done = self.climb(fitting, &why, false, cancel).await?.done;
        Ok(match done.is_empty() {
            true => None,
            false => Some((self.look().await?, done)),
        })
    }

    /// Tries the strategies in order, each as long as it makes progress, until the request has
    /// `fitting` tokens, as the conversation counts.
    async fn climb(
        &self,
        fitting: u64,
        why: &str,
        may_wait: bool,
        cancel: &CancellationToken,
    ) -> Result<Climbed, Error> {
        let mut climbed = Climbed::default();
        for &strategy in &self.budget.strategies {
            let name = strategy.name();
            let (mut rounds, mut overtaken) = (0, 0);
            let reason = loop {
                let seen = self.look_closely().await?;
                let goal = seen.goal(fitting);
                if cancel.is_cancelled() || seen.tokens <= goal {
                    return Ok(climbed);
                }
                if rounds == MOST_ROUNDS {
                    break format!("{} tokens are left", seen.tokens);
                }
                if may_wait && let Some(reason) = self.back_off.rests(strategy, seen.tokens) {
                    self.tell(&Event::CompressionFailed { strategy: name, reason: &reason });
                    break reason;
                }
                let step = match strategy {
                    Strategy::Summarise => {
                        self.attempt_summary(&seen, goal, why, may_wait, cancel).await?
                    }
                    _ => match strategy.plan(&seen, goal, why) {
                        Ok(request) => self.attempt(strategy, &seen, request, may_wait).await?,
                        Err(reason) => Step::Failed(reason),
                    },
                };
                let reason = match step {
                    Step::Waits => return Ok(climbed),
                    Step::Overtaken if overtaken < MOST_OVERTAKEN => {
                        overtaken += 1;
                        continue;
                    }
                    Step::Overtaken => OVERTAKEN.to_owned(),
                    Step::Failed(reason) => reason,
                    Step::Done { version, before, after } => {
                        rounds += 1;
                        self.back_off.forget();
                        self.tell(&Event::CompressionCompleted {
                            strategy: name,
                            before,
                            after,
                            version,
                        });
                        let (strategy, why) = (name.to_owned(), why.to_owned());
                        climbed.done.push(Compressed { strategy, why, version, before, after });
                        continue;
                    }
                };
                self.tell(&Event::CompressionFailed { strategy: name, reason: &reason });
                // What was stopped may well succeed the next time.
                if !cancel.is_cancelled() {
                    self.back_off.failed(strategy, seen.tokens, &reason);
                }
                break reason;
            };
            climbed.tried.push(format!("{name} ({reason})"));
        }
        Ok(climbed)
    }

    /// Has a summary written, unless it would have to wait anyway. It was paid for: if somebody writes
    /// in the meantime, it is put where it belongs all the same.
    async fn attempt_summary(
        &self,
        seen: &Seen,
        goal: u64,
        why: &str,
        may_wait: bool,
        cancel: &CancellationToken,
    ) -> Result<Step, Error> {
        let strategy = Strategy::Summarise;
        if may_wait
            && self.budget.horizon.is_some()
            && let Some(likely) = self.likely_summary(seen, goal).await?
            && let Ok(preview) = self.talk.preview(likely).await
            && self.must_wait(strategy, seen, &preview)?
        {
            return Ok(Step::Waits);
        }
        let mut written = match self.summarise(seen, goal, cancel).await? {
            Ok(written) => written,
            Err(reason) => return Ok(Step::Failed(reason)),
        };
        let (mut now, mut overtaken) = (seen.clone(), 0);
        let step = loop {
            let request = self.request_of(&mut written, why).await?;
            match self.attempt(strategy, &now, request, may_wait).await? {
                Step::Overtaken if overtaken < MOST_OVERTAKEN => overtaken += 1,
                Step::Overtaken => break Step::Failed(OVERTAKEN.to_owned()),
                step => break step,
            }
            now = self.look_closely().await?;
            if !written.stands_in(&now) {
                let reason = "somebody else has changed what the summary stands for";
                break Step::Failed(reason.to_owned());
            }
        };
        let unused = match &step {
            Step::Failed(reason) => Some(reason.as_str()),
            Step::Waits => Some("it does not pay off yet"),
            Step::Done { .. } | Step::Overtaken => None,
        };
        if let Some(reason) = unused {
            self.note_unused(&mut written.call, reason).await?;
        }
        Ok(step)
    }

    /// Performs a request if it makes the view shorter, and leaves the floor as it is.
    async fn attempt(
        &self,
        strategy: Strategy,
        seen: &Seen,
        request: Request,
        may_wait: bool,
    ) -> Result<Step, Error> {
        let write = WriteOptions { expected_version: Some(seen.version), idempotency_key: None };
        let preview = match self.talk.preview_with(request.clone(), write.clone()).await {
            Ok(preview) => preview,
            Err(error) if error.is_conflict() => return Ok(Step::Overtaken),
            Err(recto::Error::Engine(error)) => return Ok(Step::Failed(error.to_string())),
            Err(error) => return Err(error.into()),
        };
        let (before, after) = (seen.tokens, seen.tokens_after(&preview));
        if after >= before {
            let reason = format!("{after} tokens would be no fewer than {before}");
            return Ok(Step::Failed(reason));
        }
        let left: HashSet<LogIndex> = preview.outcome.view().iter().collect();
        let goes = |at: &usize| !left.contains(&seen.entries[*at].index);
        if let Some(at) = (0..seen.entries.len()).filter(|&at| strategy.keeps(seen, at)).find(goes)
        {
            let index = seen.entries[at].index;
            return Ok(Step::Failed(format!("entry {index} would go, and has to stay")));
        }
        if may_wait && self.must_wait(strategy, seen, &preview)? {
            return Ok(Step::Waits);
        }
        match self.talk.apply_with(request, write).await {
            Ok(outcome) => Ok(Step::Done { version: outcome.version, before, after }),
            Err(error) if error.is_conflict() => Ok(Step::Overtaken),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether an edit would cost more than it saves within the horizon, if there is one.
    fn must_wait(&self, strategy: Strategy, seen: &Seen, preview: &Preview) -> Result<bool, Error> {
        let Some(horizon) = self.budget.horizon else { return Ok(false) };
        let plan = self.cache_plan(seen, preview)?;
        let pays_off_after = match plan.map(|plan| plan.pays_off) {
            None | Some(PaysOff::Now) => Some(0),
            Some(PaysOff::AfterTurns(turns)) => Some(turns),
            Some(PaysOff::Never) => None,
        };
        let must_wait = pays_off_after.is_none_or(|turns| turns > horizon);
        if must_wait {
            let strategy = strategy.name();
            self.tell(&Event::CompressionWaits { strategy, pays_off_after });
        }
        Ok(must_wait)
    }

    /// What an edit costs at the provider's cache; `None` if the model's prices are not known.
    fn cache_plan(&self, seen: &Seen, preview: &Preview) -> Result<Option<CachePlan>, Error> {
        let Some(price) = self.prices.of(self.model.name()) else { return Ok(None) };
        let known = seen.entries.iter().chain(&preview.added);
        let known: HashMap<LogIndex, &Message> =
            known.map(|entry| (entry.index, &entry.message)).collect();
        let after = preview.outcome.view().iter().filter_map(|index| known.get(&index).copied());
        let before = self.render(seen.entries.iter().map(|entry| &entry.message), &seen.tools)?;
        let after = self.render(after, &seen.tools)?;
        Ok(Some(CachePlan::of(&before.body, &after.body, &recto::Approx, price)))
    }
}

/// What an attempt came to.
enum Step {
    Failed(String),
    Waits,
    /// Somebody else has written since the view was looked at.
    Overtaken,
    Done {
        version: Version,
        before: u64,
        after: u64,
    },
}

/// What the ladder came to.
#[derive(Default)]
struct Climbed {
    done: Vec<Compressed>,
    /// The strategies that were not enough, each with the reason.
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
    fn the_newest_exchange_is_what_the_model_answers() {
        let (user, says) = (Message::user("?"), Message::assistant("!"));
        let call = Message::tool_call("c", "f", &serde_json::json!({}));
        let result = Message::tool_result("c", "r");
        assert_eq!(tail(&[]), 0);
        assert_eq!(tail(&[user.clone(), says.clone(), user.clone(), user.clone()]), 2);
        assert_eq!(tail(&[user.clone(), call.clone(), result.clone(), result.clone()]), 1);
        assert_eq!(tail(&[user.clone(), call.clone(), result, says, call]), 4);
        assert_eq!(tail(&[user, Message::system("s")]), 0);
    }

    #[test]
    fn the_question_that_tools_run_for_is_no_summary() {
        let (user, says) = (Message::user("?"), Message::assistant("!"));
        let call = Message::tool_call("c", "f", &serde_json::json!({}));
        let result = Message::tool_result("c", "r");
        let summary = r#"{"role":"user","content":"s","metadata":{"summary":{"of":[0]}}}"#;
        let summary = Message::from_json(summary).unwrap();
        let question = |messages: &[Message]| {
            let entries = entries(messages);
            question_of(&entries, tail_of(&entries))
        };
        let old = [user.clone(), says];
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
        // A summary before the newest message of the user can go into the next.
        assert_eq!(tail(&[summary, user]), 1);
    }
}
