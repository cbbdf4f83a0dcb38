//! The calls of a conversation: found again, counted, and shown as they were sent.

use std::collections::BTreeMap;

use recto::{Conversation, Entry, LogIndex, OperationKind, Version};
use recto_format::{RenderOptions, Target, render};

use crate::budget::question;
use crate::call::sha256;
use crate::{Agent, Calibration, Call, Error, Totals};

/// So many entries are read at once.
const PAGE: usize = 256;
/// So many of the newest reports teach a factor.
const REPORTS: usize = 16;

/// What an agent has read of the history.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// How much of the log was looked through for manifests.
    log: usize,
    /// The newest manifest in that part.
    newest: Option<Call>,
    /// What is known of models' tokens.
    calibrations: BTreeMap<String, Calibration>,
    /// The cumulative totals at a version.
    cumulative: Option<(Version, Totals)>,
    /// The tokens of tools, by their JSON.
    pub(crate) tools: Option<(String, u64)>,
}

/// Every call of a conversation, oldest first, those that were rolled back included.
pub async fn calls(talk: &Conversation) -> Result<Vec<Call>, Error> {
    let mut calls = Vec::new();
    let log = talk.stats().await?.total_messages;
    for start in (0..log).step_by(PAGE) {
        let page = page(talk, start, (start + PAGE).min(log)).await?;
        calls.extend(page.iter().filter_map(|entry| Call::of(&entry.message)));
    }
    Ok(calls)
}

/// A call by its number, from 1.
pub async fn call(talk: &Conversation, number: u64) -> Result<Call, Error> {
    let calls = calls(talk).await?;
    let count = calls.len() as u64;
    let found = calls.into_iter().find(|call| call.number == number);
    found.ok_or(Error::NoSuchCall { number, calls: count })
}

/// The exact request that a call sent: rendered again, and compared with the hash in its manifest.
///
/// Releases before tool descriptions were left out of requests sent the whole view. Their calls are
/// rendered that way if the hash says so.
pub async fn sent(talk: &Conversation, number: u64) -> Result<String, Error> {
    let call = call(talk, number).await?;
    let target = Target::named(&call.target).unwrap_or(Target::OpenAiChat);
    let fields: Vec<(&str, &str)> =
        call.fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let is_same = |body: &str| sha256(body.as_bytes()) == call.sha256;
    let body = match &call.about {
        None => {
            let tools = talk.tools_at(call.version).await?;
            let model = Some(call.model.as_str());
            let options = RenderOptions { model, fields: &fields, tools: &tools };
            let rendered = |entries: &[Entry]| {
                render(entries.iter().map(|entry| &entry.message), target, &options)
            };
            let entries = talk.messages_to_send(call.version).await?;
            if let Ok(rendered) = rendered(&entries)
                && is_same(&rendered.body)
            {
                return Ok(rendered.body);
            }
            let whole_view = talk.messages_at(call.version).await?;
            rendered(&whole_view)?.body
        }
        Some(about) => {
            let entries = talk.entries(&about.entries).await?;
            let options = RenderOptions { fields: &fields, ..RenderOptions::default() };
            render(&question(&about.instructions, &entries), target, &options)?.body
        }
    };
    if !is_same(&body) {
        let reason = "a message was erased or pruned since, or another release has rendered it";
        let (reason, sent) = (reason.to_owned(), call.sha256);
        return Err(Error::NotTheSame { number, target, reason, sent });
    }
    Ok(body)
}

/// What is known before a call is made.
pub(crate) struct Before {
    /// The number of the call.
    pub(crate) number: u64,
    /// What all calls so far have used.
    pub(crate) lifetime: Totals,
}

impl Known {
    fn learn(&mut self, call: &Call) {
        // A question about entries is counted another way.
        if let (Some(usage), None) = (call.usage, &call.about) {
            let factor = self.calibrations.entry(call.model.clone()).or_default();
            factor.learn(call.counted, usage.input);
        }
    }
}

impl Agent {
    /// Every call of the conversation, oldest first, those that were rolled back included.
    pub async fn calls(&self) -> Result<Vec<Call>, Error> {
        calls(&self.talk).await
    }

    /// A call by its number, from 1.
    pub async fn call(&self, number: u64) -> Result<Call, Error> {
        call(&self.talk, number).await
    }

    /// The exact request that a call sent: rendered again, and compared with the hash in its manifest.
    pub async fn sent(&self, number: u64) -> Result<String, Error> {
        sent(&self.talk, number).await
    }

    /// What the calls have used that lead to the present state. A rollback takes from it.
    pub async fn cumulative(&self) -> Result<Totals, Error> {
        let newest = self.talk.version().await?;
        let known = self.known.lock().await.cumulative;
        let mut at = Some(newest);
        let mut totals = Totals::default();
        while let Some(version) = at {
            if let Some((known, sum)) = known
                && known == version
            {
                totals = sum;
                break;
            }
            let Some(before) = version.0.checked_sub(1).map(Version) else { break };
            let infos = self.talk.versions(before.0..version.0 + 1).await?;
            if let Some(call) = self.call_in(infos[0].log, infos[1].log).await? {
                totals = call.cumulative;
                break;
            }
            at = match infos[1].operation {
                OperationKind::Append | OperationKind::Mark | OperationKind::List => Some(before),
                _ => self.talk.parent(version).await?,
            };
        }
        self.known.lock().await.cumulative = Some((newest, totals));
        Ok(totals)
    }

    /// What all calls have used that were ever made.
    pub async fn lifetime(&self) -> Result<Totals, Error> {
        self.catch_up().await?;
        let known = self.known.lock().await;
        Ok(known.newest.as_ref().map_or(Totals::default(), |call| call.lifetime))
    }

    /// What is known of the model's tokens.
    pub async fn calibration(&self) -> Result<Calibration, Error> {
        self.calibration_of(self.model.name()).await
    }

    /// What is known of a model's tokens.
    pub(crate) async fn calibration_of(&self, model: &str) -> Result<Calibration, Error> {
        self.catch_up().await?;
        let known = self.known.lock().await;
        Ok(known.calibrations.get(model).copied().unwrap_or_default())
    }

    /// What the calls so far come to.
    pub(crate) async fn before_a_call(&self) -> Result<Before, Error> {
        self.catch_up().await?;
        let known = self.known.lock().await;
        let newest = known.newest.as_ref();
        Ok(Before {
            number: newest.map_or(0, |call| call.number) + 1,
            lifetime: newest.map_or(Totals::default(), |call| call.lifetime),
        })
    }

    /// A call has brought a message. What is known anyway need not be read again.
    pub(crate) async fn recorded(&self, call: &Call, version: Version, entry: LogIndex) {
        let mut known = self.known.lock().await;
        known.cumulative = Some((version, call.cumulative));
        // If others have written in between, all of it is read.
        if known.log == entry.as_usize() {
            known.learn(call);
            known.newest = Some(call.clone());
            known.log += 1;
        }
    }

    /// Looks through what the log has got since the last time.
    async fn catch_up(&self) -> Result<(), Error> {
        let mut known = self.known.lock().await;
        let log = self.talk.stats().await?.total_messages;
        if known.log > log {
            *known = Known::default();
        }
        let mut found: Vec<Call> = Vec::new();
        let mut end = log;
        // The newest manifest has all sums; a few more teach the factors.
        while end > known.log && found.len() < REPORTS {
            let start = end.saturating_sub(PAGE).max(known.log);
            let page = page(&self.talk, start, end).await?;
            found.extend(page.iter().rev().filter_map(|entry| Call::of(&entry.message)));
            end = start;
        }
        for call in found.iter().rev() {
            known.learn(call);
        }
        if let Some(newest) = found.into_iter().next() {
            known.newest = Some(newest);
        }
        known.log = log;
        Ok(())
    }

    /// The newest manifest in a stretch of the log.
    async fn call_in(&self, start: usize, mut end: usize) -> Result<Option<Call>, Error> {
        while end > start {
            let from = end.saturating_sub(PAGE).max(start);
            let page = page(&self.talk, from, end).await?;
            if let Some(call) = page.iter().rev().find_map(|entry| Call::of(&entry.message)) {
                return Ok(Some(call));
            }
            end = from;
        }
        Ok(None)
    }
}

async fn page(talk: &Conversation, start: usize, end: usize) -> Result<Vec<Entry>, Error> {
    let indices: Vec<LogIndex> = (start..end).map(|index| LogIndex(index as u32)).collect();
    Ok(talk.entries(&indices).await?)
}

#[cfg(test)]
mod tests {
    use recto::{Message, Recto, Settings, Tool};
    use serde_json::json;

    use super::*;

    /// A call as releases recorded it that sent the whole view.
    #[tokio::test]
    async fn a_call_that_sent_a_tool_description_is_shown_as_it_was_sent() {
        let recto = Recto::open("memory:").await.unwrap();
        let talk = recto.create("talk", Settings::default()).await.unwrap();
        let tools = vec![Tool::new("load", "How busy a host is.")];
        talk.set_tools(tools.clone()).await.unwrap();
        talk.append([Message::user("Is a idle?")]).await.unwrap();
        let version = talk.version().await.unwrap();
        let entries = talk.messages_at(version).await.unwrap();
        let options = RenderOptions { model: Some("m"), tools: &tools, ..RenderOptions::default() };
        let messages = entries.iter().map(|entry| &entry.message);
        let body = render(messages, Target::OpenAiChat, &options).unwrap().body;
        assert!(body.contains("Available tools:"), "{body}");
        let call = |number: u64, sha256: &str| {
            json!({"role": "assistant", "content": "Yes.", "metadata": {"call": {
                "number": number, "version": version, "target": "openai-chat", "model": "m",
                "fields": [], "sha256": sha256, "bytes": body.len(), "at": 0, "millis": 1,
                "counted": 1, "expected": 1, "cumulative": Totals::default(),
                "lifetime": Totals::default(),
            }}})
        };
        for call in [call(1, &sha256(body.as_bytes())), call(2, &sha256(b"another"))] {
            talk.append([Message::from_json(&call.to_string()).unwrap()]).await.unwrap();
        }
        assert_eq!(sent(&talk, 1).await.unwrap(), body);
        assert!(matches!(sent(&talk, 2).await, Err(Error::NotTheSame { number: 2, .. })));
    }
}
