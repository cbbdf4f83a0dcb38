//! Strategies one after the other, until a view is short enough.

use std::collections::HashSet;

use recto::{Entry, LogIndex, Moment, Query, Request, Role, Tool, Version, Write};
use recto_format::{CachePlan, PaysOff};

use super::{Part, Strategy};
use crate::call::Compressed;
use crate::{Agent, CancellationToken, Error, Event};

/// A strategy is tried so often at most, as long as it makes progress.
const MOST_ROUNDS: usize = 4;

/// A view, with what a budget wants to know of it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) version: Version,
    pub(crate) entries: Vec<Entry>,
    pub(crate) tools: Vec<Tool>,
    /// The tokens of the view.
    pub(crate) tokens: u64,
    /// The tokens of the tools beside it.
    pub(crate) tools_tokens: u64,
    /// Where the newest exchange starts: what the model is to answer.
    pub(crate) tail: usize,
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

    /// What no strategy hides, the largest first.
    fn floor(&self) -> Vec<Part> {
        let (mut system, mut pinned, mut newest) = (0, 0, 0);
        for (at, entry) in self.entries.iter().enumerate() {
            if entry.message.role() == Role::System {
                system += entry.tokens;
            } else if self.is_pinned(entry.index) {
                pinned += entry.tokens;
            } else if at >= self.tail {
                newest += entry.tokens;
            }
        }
        let mut parts = vec![
            Part { name: "system messages", tokens: system },
            Part { name: "tools", tokens: self.tools_tokens },
            Part { name: "pinned messages", tokens: pinned },
            Part { name: "the newest exchange", tokens: newest },
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
    let newest = role(at - 1);
    while at > 0 && role(at - 1) == newest {
        at -= 1;
        if newest == Role::Assistant {
            break;
        }
    }
    at
}

impl Agent {
    /// The view as it is now.
    pub(crate) async fn look(&self) -> Result<Seen, Error> {
        let version = self.talk.version().await?;
        let entries = self.talk.messages_at(version).await?;
        let tools = self.talk.tools_at(version).await?;
        let tools_tokens = self.tokens_of_tools(&tools).await?;
        let tokens = entries.iter().map(|entry| entry.tokens).sum();
        let tail = tail_of(&entries);
        Ok(Seen { version, entries, tools, tokens, tools_tokens, tail, pinned: HashSet::new() })
    }

    /// The view, and what is pinned in it.
    async fn look_closely(&self) -> Result<Seen, Error> {
        let seen = self.look().await?;
        let (mark, moment) = (Some(recto::PINNED.to_owned()), Moment::Version(seen.version));
        let pinned = self.talk.ask(&Query { mark, moment, ..Query::default() }).await?;
        Ok(Seen { pinned: pinned.into_iter().map(|entry| entry.index).collect(), ..seen })
    }

    /// Makes the view fit the budget before it is sent. Gives the view, and says what was done.
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
        let floor = seen.floor();
        let total = floor.iter().map(|part| part.tokens).sum();
        if let Some(limit) = limit {
            self.tell(&Event::TokenLimitExceeded { tokens: expected, limit });
            if calibration.at_most(total) > limit {
                return Err(Error::FloorTooHigh { limit, total, parts: floor });
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
        // In tokens of the view, as the conversation counts them; never below the floor.
        let fitting = calibration.fitting(target);
        let goal = fitting.max(total).saturating_sub(seen.tools_tokens);
        let may_wait = limit.is_none();
        let done = self.climb(goal, &why, may_wait, cancel).await?;
        // A summary was a call too, and may have taught something.
        let (seen, calibration) = (self.look().await?, self.calibration().await?);
        let tokens = calibration.at_most(seen.counted());
        if let Some(limit) = self.budget.limit.filter(|&limit| tokens > limit) {
            let tried = self.budget.strategies.iter().map(|it| it.name().to_owned()).collect();
            return Err(Error::OverLimit { limit, tokens, tried });
        }
        Ok((seen, done))
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
        let total: u64 = seen.floor().iter().map(|part| part.tokens).sum();
        let goal = fitting.max(total).saturating_sub(seen.tools_tokens);
        if self.budget.strategies.is_empty() || goal >= seen.tokens {
            return Ok(None);
        }
        let target = calibration.expected(fitting);
        self.tell(&Event::CompressionRequested { tokens, threshold: target, target });
        let why = format!("the provider says that about {tokens} tokens are too long");
        let done = self.climb(goal, &why, false, cancel).await?;
        Ok(match done.is_empty() {
            true => None,
            false => Some((self.look().await?, done)),
        })
    }

    /// Tries the strategies in order, each as long as it makes progress.
    async fn climb(
        &self,
        goal: u64,
        why: &str,
        may_wait: bool,
        cancel: &CancellationToken,
    ) -> Result<Vec<Compressed>, Error> {
        let mut done = Vec::new();
        for &strategy in &self.budget.strategies {
            for _ in 0..MOST_ROUNDS {
                let seen = self.look_closely().await?;
                if seen.tokens <= goal {
                    return Ok(done);
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
                match step {
                    Step::Failed(reason) => {
                        let strategy = strategy.name();
                        self.tell(&Event::CompressionFailed { strategy, reason: &reason });
                        break;
                    }
                    Step::Waits => return Ok(done),
                    Step::Done { version, after } => {
                        let (before, name) = (seen.tokens, strategy.name());
                        self.tell(&Event::CompressionCompleted {
                            strategy: name,
                            before,
                            after,
                            version,
                        });
                        let (strategy, why) = (name.to_owned(), why.to_owned());
                        done.push(Compressed { strategy, why, version, before, after });
                    }
                }
            }
        }
        Ok(done)
    }

    /// Has a summary written, unless it would have to wait anyway.
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
        let (request, mut call) = match self.summarise(seen, goal, why, cancel).await? {
            Ok(written) => written,
            Err(reason) => return Ok(Step::Failed(reason)),
        };
        let step = self.attempt(strategy, seen, request, may_wait).await?;
        if !matches!(step, Step::Done { .. }) {
            self.note(&mut call).await?;
        }
        Ok(step)
    }

    /// Performs a request if it makes the view shorter.
    async fn attempt(
        &self,
        strategy: Strategy,
        seen: &Seen,
        request: Request,
        may_wait: bool,
    ) -> Result<Step, Error> {
        let write = Write { expected_version: Some(seen.version), key: None };
        let preview = match self.talk.preview_with(request.clone(), write.clone()).await {
            Ok(preview) => preview,
            Err(recto::Error::Engine(error)) => return Ok(Step::Failed(error.to_string())),
            Err(error) if error.is_conflict() => return Ok(Step::Failed(error.to_string())),
            Err(error) => return Err(error.into()),
        };
        let after = preview.outcome.stats().tokens;
        if after >= seen.tokens {
            return Ok(Step::Failed(format!(
                "{after} tokens would be no fewer than {}",
                seen.tokens
            )));
        }
        if may_wait && self.must_wait(strategy, seen, &preview)? {
            return Ok(Step::Waits);
        }
        match self.talk.apply_with(request, write).await {
            Ok(outcome) => Ok(Step::Done { version: outcome.version, after }),
            Err(error) if error.is_conflict() => Ok(Step::Failed(error.to_string())),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether an edit would cost more than it saves within the horizon, if there is one.
    fn must_wait(
        &self,
        strategy: Strategy,
        seen: &Seen,
        preview: &recto::Preview,
    ) -> Result<bool, Error> {
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
    fn cache_plan(
        &self,
        seen: &Seen,
        preview: &recto::Preview,
    ) -> Result<Option<CachePlan>, Error> {
        let Some(price) = self.prices.of(self.model.name()) else { return Ok(None) };
        let known = seen.entries.iter().chain(&preview.added);
        let known: std::collections::HashMap<LogIndex, &recto::Message> =
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
    Done { version: Version, after: u64 },
}

#[cfg(test)]
mod tests {
    use super::*;
    use recto::Message;

    fn tail(messages: &[Message]) -> usize {
        let entry = |(at, message): (usize, &Message)| Entry {
            index: LogIndex(at as u32),
            position: None,
            message: message.clone(),
            tokens: 1,
            timestamp: 0,
        };
        tail_of(&messages.iter().enumerate().map(entry).collect::<Vec<_>>())
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
}
