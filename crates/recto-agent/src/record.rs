//! What a call brought, kept: an answer with its manifest, or the manifest alone.
//!
//! Manifests are numbered where they are written: behind a version that nobody else has gone on from. If
//! somebody was quicker, the call is numbered anew.

use recto::{Append, LogIndex, Message, Operation, Outcome, Request, Rollback, Version, Write};
use recto_format::RenamedTool;
use serde_json::{Value, json};

use crate::answer::source;
use crate::history::Before;
use crate::{Agent, Answer, AnswerPart, Call, Error, Event, Finish};

/// An answer in the log.
pub(crate) struct Recorded {
    pub(crate) index: LogIndex,
    pub(crate) message: Message,
    pub(crate) said: String,
    pub(crate) refusal: String,
}

impl Agent {
    /// Keeps what a call brought: an answer with its manifest, or the manifest alone.
    pub(crate) async fn keep(
        &self,
        answer: Option<Answer>,
        call: &mut Call,
        renamed: &[RenamedTool],
    ) -> Result<Option<Recorded>, Error> {
        let recorded = match answer {
            Some(answer) => self.record(answer, call, renamed).await?,
            None => None,
        };
        if recorded.is_none() {
            self.note(call).await?;
        }
        self.tell(&Event::CallEnded(call));
        Ok(recorded)
    }

    /// Gives a call the number behind the newest, and its sums. They hold for the version that is
    /// given back: whoever writes the manifest must write it there, so that no two have one number.
    pub(crate) async fn enter(&self, call: &mut Call) -> Result<Version, Error> {
        let version = self.talk.version().await?;
        let Before { number, lifetime } = self.before_a_call().await?;
        let price = self.prices.of(&call.model);
        call.number = number;
        call.lifetime = lifetime.and(call.usage, price);
        call.cumulative = self.cumulative().await?.and(call.usage, price);
        Ok(version)
    }

    /// Appends an answer with its manifest; `None` if there is nothing in it.
    async fn record(
        &self,
        mut answer: Answer,
        call: &mut Call,
        renamed: &[RenamedTool],
    ) -> Result<Option<Recorded>, Error> {
        for part in &mut answer.parts {
            // The model knows tools by the names that were sent.
            if let AnswerPart::Call { name, .. } = part
                && let Some(known) = renamed.iter().find(|known| known.written == *name)
            {
                name.clone_from(&known.name);
            }
        }
        let mut metadata = json!({ "source": source(self.model.target(), self.model.name()) });
        if answer.is_incomplete() {
            let reason = match (&call.failure, &answer.finish) {
                (Some(failure), _) => failure.as_str(),
                (None, Finish::Length) => "the model reached its limit of tokens",
                (None, _) => "a call was cut off",
            };
            metadata["incomplete"] = json!({ "reason": reason });
            if !answer.unfinished_calls.is_empty() {
                metadata["incomplete"]["unfinishedCalls"] = json!(answer.unfinished_calls);
            }
        }
        loop {
            let version = self.enter(call).await?;
            metadata["call"] = to_value(call);
            let Some(message) = answer.to_message(&metadata)? else { return Ok(None) };
            let append = Append { messages: vec![message.clone()] };
            let Some(outcome) = self.write(append, version).await? else { continue };
            let index = outcome.added().first().copied();
            let index = index.expect("an append of one message adds one");
            self.recorded(call, outcome.version, index).await;
            let (said, refusal) = (answer.said(), answer.refusal());
            return Ok(Some(Recorded { index, message, said, refusal }));
        }
    }

    /// Keeps the manifest of a call that brought no answer: a note in the log that was in no view.
    pub(crate) async fn note(&self, call: &mut Call) -> Result<(), Error> {
        let reason = call.failure.clone().unwrap_or("it was empty, or of no use".into());
        loop {
            let version = self.enter(call).await?;
            let what = if call.about.is_some() { "summary from" } else { "answer to" };
            let text = format!("[no {what} call {}: {reason}]", call.number);
            let note = json!({
                "role": "assistant", "content": text, "metadata": { "call": to_value(call) }
            });
            let note = Message::from_json(&note.to_string())?;
            let append = Operation::from(Append { messages: vec![note] });
            let back = Operation::from(Rollback::ToVersion(version));
            let why = format!("no {what} call {}", call.number);
            let request: Request = [append.reason(&why), back.reason(&why)].into_iter().collect();
            if self.write(request, version).await?.is_some() {
                return Ok(());
            }
        }
    }

    /// Performs a request on a version; `None` if somebody else was quicker.
    pub(crate) async fn write(
        &self,
        request: impl Into<Request>,
        version: Version,
    ) -> Result<Option<Outcome>, Error> {
        let write = Write { expected_version: Some(version), key: None };
        match self.talk.apply_with(request, write).await {
            Ok(outcome) => Ok(Some(outcome)),
            Err(error) if error.is_conflict() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

fn to_value(call: &Call) -> Value {
    serde_json::to_value(call).expect("a manifest is plain data")
}
