//! The calls of a conversation: manifests read from the log, totals, and requests rendered again.

use std::collections::BTreeMap;

use recto::{Conversation, Entry, LogIndex, OperationKind, Version};
use recto_format::{RenderOptions, Target, render};

use crate::budget::summary_request;
use crate::call::sha256;
use crate::{Agent, Calibration, Call, Error, Totals};

/// The number of entries that are read at once.
const PAGE: usize = 256;
/// The number of newest manifests that are enough for the calibration. It learns from more if the pages
/// that were read contain more.
const REPORTS: usize = 16;

/// What an agent has learnt from the manifests in the log, so that `catch_up` reads only new entries.
#[derive(Debug, Default)]
pub(crate) struct CallCache {
    /// The length of the log prefix that was searched for manifests.
    log: usize,
    /// The newest manifest in that prefix.
    newest: Option<Call>,
    /// The calibration of each model, by name.
    calibrations: BTreeMap<String, Calibration>,
    /// The cumulative totals at a version.
    cumulative: Option<(Version, Totals)>,
    /// The JSON of the tools and its number of tokens.
    pub(crate) tools: Option<(String, u64)>,
}

/// See [`ConversationExt::calls`](crate::ConversationExt::calls).
pub(crate) async fn calls(conversation: &Conversation) -> Result<Vec<Call>, Error> {
    let mut calls = Vec::new();
    let log = conversation.stats().await?.total_messages;
    for start in (0..log).step_by(PAGE) {
        let page = page(conversation, start, (start + PAGE).min(log)).await?;
        calls.extend(page.iter().filter_map(|entry| Call::of(&entry.message)));
    }
    Ok(calls)
}

/// See [`ConversationExt::call`](crate::ConversationExt::call).
pub(crate) async fn call(conversation: &Conversation, number: u64) -> Result<Call, Error> {
    let calls = calls(conversation).await?;
    let count = calls.len() as u64;
    let found = calls.into_iter().find(|call| call.number == number);
    found.ok_or(Error::CallNotFound { number, calls: count })
}

/// See [`ConversationExt::request_of_call`](crate::ConversationExt::request_of_call).
///
/// Older releases also sent thinking that an edit had made invalid, and tool descriptions as messages. If
/// the hash does not match, the request is rendered with that thinking, then with both.
pub(crate) async fn request_of_call(
    conversation: &Conversation,
    number: u64,
) -> Result<String, Error> {
    let call = call(conversation, number).await?;
    let target = Target::named(&call.target).unwrap_or(Target::OpenAiChat);
    let fields: Vec<(&str, &str)> =
        call.fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let api_version = call.api_version.as_deref();
    let is_same = |body: &str| sha256(body.as_bytes()) == call.sha256;
    let body = match &call.summary_prompt {
        None => {
            let tools = conversation.tools_at(call.version).await?;
            let model = Some(call.model.as_str());
            let fields = &fields;
            let options = RenderOptions {
                model,
                fields,
                tools: &tools,
                api_version,
                ..RenderOptions::default()
            };
            let rendered = |entries: &[Entry], invalid_thinking: &[usize]| {
                let options = RenderOptions { invalid_thinking, ..options };
                render(entries.iter().map(|entry| &entry.message), target, &options)
            };
            let entries = conversation.messages_to_send(call.version).await?;
            let invalid_thinking = conversation.invalid_thinking(call.version, &entries).await?;
            for invalid_thinking in [&invalid_thinking[..], &[]] {
                if let Ok(rendered) = rendered(&entries, invalid_thinking)
                    && is_same(&rendered.body)
                {
                    return Ok(rendered.body);
                }
            }
            let whole_view = conversation.messages_at(call.version).await?;
            rendered(&whole_view, &[])?.body
        }
        Some(prompt) => {
            let entries = conversation.entries(&prompt.entries).await?;
            let options =
                RenderOptions { fields: &fields, api_version, ..RenderOptions::default() };
            render(&summary_request(&prompt.instructions, &entries), target, &options)?.body
        }
    };
    if !is_same(&body) {
        let reason =
            "a message was erased or pruned since, or another release rendered the request";
        let (reason, sha256) = (reason.to_owned(), call.sha256);
        return Err(Error::RequestNotReproducible { number, target, reason, sha256 });
    }
    Ok(body)
}

/// The number of the next call, and the totals before it.
pub(crate) struct NextCall {
    pub(crate) number: u64,
    /// Totals of all calls so far.
    pub(crate) lifetime: Totals,
}

impl CallCache {
    fn learn(&mut self, call: &Call) {
        // Requests for summaries have no tools and a different overhead, so their ratio differs.
        if let (Some(usage), None) = (call.usage, &call.summary_prompt) {
            let calibration = self.calibrations.entry(call.model.clone()).or_default();
            calibration.learn(call.counted, usage.input);
        }
    }
}

impl Agent {
    /// All calls of the conversation, oldest first. Calls that were rolled back are included.
    pub async fn calls(&self) -> Result<Vec<Call>, Error> {
        calls(&self.conversation).await
    }

    /// The call with this number. Numbers start at 1.
    pub async fn call(&self, number: u64) -> Result<Call, Error> {
        call(&self.conversation, number).await
    }

    /// The request body of call `number`, rendered again and checked against the SHA-256 in its
    /// manifest.
    pub async fn request_of_call(&self, number: u64) -> Result<String, Error> {
        request_of_call(&self.conversation, number).await
    }

    /// Totals of the calls on the path to the current version. A rollback excludes the calls after its
    /// target version.
    pub async fn cumulative_totals(&self) -> Result<Totals, Error> {
        let newest = self.conversation.version().await?;
        let cached = self.call_cache.lock().await.cumulative;
        let mut at = Some(newest);
        let mut totals = Totals::default();
        while let Some(version) = at {
            if let Some((cached_version, cached)) = cached
                && cached_version == version
            {
                totals = cached;
                break;
            }
            let Some(before) = version.0.checked_sub(1).map(Version) else { break };
            let infos = self.conversation.versions(before..Version(version.0 + 1)).await?;
            if let Some(call) = self.call_in(infos[0].log, infos[1].log).await? {
                totals = call.cumulative;
                break;
            }
            at = match infos[1].operation {
                OperationKind::Append | OperationKind::Mark | OperationKind::List => Some(before),
                _ => self.conversation.parent(version).await?,
            };
        }
        self.call_cache.lock().await.cumulative = Some((newest, totals));
        Ok(totals)
    }

    /// Totals of all calls of the conversation, those that were rolled back included.
    pub async fn lifetime_totals(&self) -> Result<Totals, Error> {
        self.catch_up().await?;
        let cache = self.call_cache.lock().await;
        Ok(cache.newest.as_ref().map_or(Totals::default(), |call| call.lifetime))
    }

    /// The calibration of the agent's model.
    pub async fn calibration(&self) -> Result<Calibration, Error> {
        self.calibration_of(self.model.name()).await
    }

    /// The calibration of a model.
    pub(crate) async fn calibration_of(&self, model: &str) -> Result<Calibration, Error> {
        self.catch_up().await?;
        let cache = self.call_cache.lock().await;
        Ok(cache.calibrations.get(model).copied().unwrap_or_default())
    }

    /// The number of the next call, and the totals before it.
    pub(crate) async fn next_call(&self) -> Result<NextCall, Error> {
        self.catch_up().await?;
        let cache = self.call_cache.lock().await;
        let newest = cache.newest.as_ref();
        Ok(NextCall {
            number: newest.map_or(0, |call| call.number) + 1,
            lifetime: newest.map_or(Totals::default(), |call| call.lifetime),
        })
    }

    /// Adds a call to the cache. `entry` is the log entry with its manifest.
    pub(crate) async fn cache_call(&self, call: &Call, version: Version, entry: LogIndex) {
        let mut cache = self.call_cache.lock().await;
        cache.cumulative = Some((version, call.cumulative));
        // After writes by other callers, the next `catch_up` reads the new entries instead.
        if cache.log == entry.as_usize() {
            cache.learn(call);
            cache.newest = Some(call.clone());
            cache.log += 1;
        }
    }

    /// Updates the cache from the newest manifests among the log entries that it has not read yet.
    async fn catch_up(&self) -> Result<(), Error> {
        let mut cache = self.call_cache.lock().await;
        let log = self.conversation.stats().await?.total_messages;
        if cache.log > log {
            *cache = CallCache::default();
        }
        let mut found: Vec<Call> = Vec::new();
        let mut end = log;
        // The newest manifest has the totals. Some older ones are read for the calibration.
        while end > cache.log && found.len() < REPORTS {
            let start = end.saturating_sub(PAGE).max(cache.log);
            let page = page(&self.conversation, start, end).await?;
            found.extend(page.iter().rev().filter_map(|entry| Call::of(&entry.message)));
            end = start;
        }
        for call in found.iter().rev() {
            cache.learn(call);
        }
        if let Some(newest) = found.into_iter().next() {
            cache.newest = Some(newest);
        }
        cache.log = log;
        Ok(())
    }

    /// The newest manifest in a range of the log.
    async fn call_in(&self, start: usize, mut end: usize) -> Result<Option<Call>, Error> {
        while end > start {
            let from = end.saturating_sub(PAGE).max(start);
            let page = page(&self.conversation, from, end).await?;
            if let Some(call) = page.iter().rev().find_map(|entry| Call::of(&entry.message)) {
                return Ok(Some(call));
            }
            end = from;
        }
        Ok(None)
    }
}

async fn page(conversation: &Conversation, start: usize, end: usize) -> Result<Vec<Entry>, Error> {
    let indices: Vec<LogIndex> = (start..end).map(|index| LogIndex(index as u32)).collect();
    Ok(conversation.entries(&indices).await?)
}

#[cfg(test)]
mod tests {
    use recto::{Message, Recto, Settings, Tool};
    use serde_json::json;

    use super::*;

    /// A manifest of a release that sent tool descriptions as messages.
    #[tokio::test]
    async fn a_call_that_sent_a_tool_description_is_rendered_with_it() {
        let recto = Recto::open("memory:").await.unwrap();
        let conversation = recto.create("conversation", Settings::default()).await.unwrap();
        let tools = vec![Tool::new("load", "How busy a host is.")];
        conversation.set_tools(tools.clone()).await.unwrap();
        conversation.append([Message::user("Is a idle?")]).await.unwrap();
        let version = conversation.version().await.unwrap();
        let entries = conversation.messages_at(version).await.unwrap();
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
            conversation.append([Message::from_json(&call.to_string()).unwrap()]).await.unwrap();
        }
        assert_eq!(request_of_call(&conversation, 1).await.unwrap(), body);
        assert!(matches!(
            request_of_call(&conversation, 2).await,
            Err(Error::RequestNotReproducible { number: 2, .. })
        ));
    }
}
