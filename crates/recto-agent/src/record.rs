//! Recording a call: the reply with its manifest, or the manifest alone.
//!
//! Two agents may call models in one conversation at the same time. So a manifest gets its number just
//! before it is written, and the precondition of the write is the version for which the number was
//! computed. After a version conflict the call gets a new number, and the write is tried again.

use recto::{
    Append, LogIndex, Message, Operation, Outcome, Request, Rollback, Version, WriteOptions,
};
use recto_format::RenamedTool;
use serde_json::{Value, json};

use crate::calls::NextCall;
use crate::reply::source;
use crate::{Agent, Call, Error, Event, Finish, Reply, ReplyPart};

/// A reply that was appended to the log.
pub(crate) struct RecordedReply {
    pub(crate) index: LogIndex,
    pub(crate) message: Message,
    pub(crate) text: String,
    pub(crate) refusal: String,
}

impl Agent {
    /// Records a call: appends the reply with its manifest, or the manifest alone.
    pub(crate) async fn record_call(
        &self,
        reply: Option<Reply>,
        call: &mut Call,
        renamed: &[RenamedTool],
    ) -> Result<Option<RecordedReply>, Error> {
        let recorded = match reply {
            Some(reply) => self.append_reply(reply, call, renamed).await?,
            None => None,
        };
        if recorded.is_none() {
            self.append_manifest(call).await?;
        }
        self.emit(&Event::CallEnded(call));
        Ok(recorded)
    }

    /// Assigns the next number to a call and computes its totals. Both are valid for the returned
    /// version: the manifest must be written with that version as the precondition, so that no two
    /// calls get the same number.
    pub(crate) async fn assign_number(&self, call: &mut Call) -> Result<Version, Error> {
        let version = self.conversation.version().await?;
        let NextCall { number, lifetime } = self.next_call().await?;
        let price = self.prices.of(&call.model);
        call.number = number;
        tracing::Span::current().record("call", number);
        call.lifetime = lifetime.with_call(call.usage, price);
        call.cumulative = self.cumulative_totals().await?.with_call(call.usage, price);
        Ok(version)
    }

    /// Appends a reply with its manifest; `None` if the reply is empty.
    async fn append_reply(
        &self,
        mut reply: Reply,
        call: &mut Call,
        renamed: &[RenamedTool],
    ) -> Result<Option<RecordedReply>, Error> {
        for part in &mut reply.parts {
            // The model uses the names in the request, which rendering may have changed.
            if let ReplyPart::ToolCall { name, .. } = part
                && let Some(tool) = renamed.iter().find(|tool| tool.rendered_name == *name)
            {
                name.clone_from(&tool.name);
            }
        }
        let mut metadata = json!({ "source": source(self.model.target(), self.model.name()) });
        if reply.is_incomplete() {
            let reason = match (&call.failure, &reply.finish) {
                (Some(failure), _) => failure.as_str(),
                (None, Finish::Length) => "the model reached its output token limit",
                (None, _) => "a tool call was cut off",
            };
            metadata["incomplete"] = json!({ "reason": reason });
            if !reply.incomplete_calls.is_empty() {
                metadata["incomplete"]["unfinishedCalls"] = json!(reply.incomplete_calls);
            }
        }
        loop {
            let version = self.assign_number(call).await?;
            metadata["call"] = to_value(call);
            let Some(message) = reply.to_message(&metadata)? else { return Ok(None) };
            let append = Append { messages: vec![message.clone()] };
            let Some(outcome) = self.apply_at(append, version).await? else { continue };
            let index = outcome.added().first().copied();
            let index = index.expect("an append of one message adds one");
            self.cache_call(call, outcome.version, index).await;
            let (text, refusal) = (reply.text(), reply.refusal());
            return Ok(Some(RecordedReply { index, message, text, refusal }));
        }
    }

    /// Records a call without a reply: one request appends a message with the manifest and rolls back, so
    /// that the message is in the log but in no view.
    pub(crate) async fn append_manifest(&self, call: &mut Call) -> Result<(), Error> {
        let reason = call.failure.clone().unwrap_or("the reply was empty".into());
        loop {
            let version = self.assign_number(call).await?;
            let what = if call.summary_prompt.is_some() { "summary from" } else { "reply to" };
            let text = format!("[no {what} call {}: {reason}]", call.number);
            let note = json!({
                "role": "assistant", "content": text, "metadata": { "call": to_value(call) }
            });
            let note = Message::from_json(&note.to_string())?;
            let append = Operation::from(Append { messages: vec![note] });
            let back = Operation::from(Rollback::ToVersion(version));
            let reason = format!("no {what} call {}", call.number);
            let request: Request =
                [append.reason(&reason), back.reason(&reason)].into_iter().collect();
            if self.apply_at(request, version).await?.is_some() {
                return Ok(());
            }
        }
    }

    /// Applies a request to a version; `None` if the conversation has a newer version.
    pub(crate) async fn apply_at(
        &self,
        request: impl Into<Request>,
        version: Version,
    ) -> Result<Option<Outcome>, Error> {
        let write = WriteOptions { expected_version: Some(version), ..WriteOptions::default() };
        match self.conversation.apply_with(request, write).await {
            Ok(outcome) => Ok(Some(outcome)),
            Err(error) if error.is_conflict() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

pub(crate) fn to_value(call: &Call) -> Value {
    serde_json::to_value(call).expect("a manifest has only string keys")
}
