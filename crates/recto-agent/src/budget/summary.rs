//! A summary, written by a model.
//!
//! The model is asked in a small conversation of its own: instructions, and the old messages as one
//! text. What it writes is handed back and takes their place (COMPRESS). A summary knows which entries
//! it stands for (`metadata.summary.of`).
//!
//! A summary that failed, is empty, was cut off, or is no shorter than what it stands for replaces
//! nothing.

use recto::{Compress, Entry, LogIndex, Message, Request, Role};
use recto_format::{RenderOptions, render};
use serde_json::{Value, json};

use super::Seen;
use crate::answer::source;
use crate::call::About;
use crate::{Agent, Call, CancellationToken, Error, Finish};

/// What the model is told to do.
const INSTRUCTIONS: &str = "\
You are given the older part of a conversation between a user and an assistant who uses tools. \
Write a summary that takes its place: the assistant will read the summary and go on working. \
Keep what is needed for that: the task, decisions and their reasons, names, paths, numbers and exact \
values, what was tried and failed, what is still to be done. Leave out pleasantries and everything \
that was superseded. Write the summary alone, in the language of the conversation.";

/// How many tokens a summary is expected to have at most, when it is decided how much it stands for.
const EXPECTED_TOKENS: u64 = 600;

/// So many messages more are taken to get to the start of a turn.
const TO_A_TURN: usize = 8;

impl Agent {
    /// The request that puts a summary in the place of the oldest messages, and the call that wrote
    /// it: if the request is not performed, the call has cost something all the same. The inner error
    /// says why there is none.
    pub(super) async fn summarise(
        &self,
        seen: &Seen,
        goal: u64,
        why: &str,
        cancel: &CancellationToken,
    ) -> Result<Result<(Request, Call), String>, Error> {
        let old = oldest(seen, goal, self.room().await?);
        if old.len() < 2 {
            return Ok(Err("there are no old messages that a summary could stand for".into()));
        }
        let entries: Vec<LogIndex> = old.iter().map(|entry| entry.index).collect();
        let model = self.summariser.as_ref().unwrap_or(&self.model);
        let question = question(INSTRUCTIONS, old.iter().copied());
        let fields = model.fields();
        let fields_given: Vec<(&str, &str)> =
            fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let options = RenderOptions { fields: &fields_given, ..RenderOptions::default() };
        let body = render(&question, model.target(), &options)?.body;
        let instructions = INSTRUCTIONS.to_owned();
        let about = About { entries: entries.clone(), instructions };
        let counted = old.iter().map(|entry| entry.tokens).sum();
        let sending = crate::agent::Sending {
            model: model.as_ref(),
            version: seen.version,
            body,
            fields,
            counted,
            about: Some(about),
            compressed: Vec::new(),
        };
        // Nobody reads along: what comes is not the answer.
        let (mut call, answered) = self.send(sending, cancel, &|_| {}).await?;
        let answer = match answered {
            Ok(answer) => answer,
            Err(error) => {
                self.note(&mut call).await?;
                return Ok(Err(format!("the model wrote no summary: {error}")));
            }
        };
        let text = answer.said().trim().to_owned();
        if answer.finish != Finish::Stop || text.is_empty() {
            self.note(&mut call).await?;
            let what = if text.is_empty() { "an empty summary" } else { "no whole summary" };
            return Ok(Err(format!("the model wrote {what}")));
        }
        // If somebody writes in between, the request is refused: it is for the version that was seen.
        self.enter(&mut call).await?;
        let metadata = json!({
            "summary": { "of": entries },
            "source": source(model.target(), model.name()),
            "call": serde_json::to_value(&call).unwrap_or(Value::Null),
        });
        // The numbers are for tools that look behind it.
        let (first, last) = (old[0].index, old[old.len() - 1].index);
        let heading = format!("Summary of the entries {first} to {last} of this conversation:");
        let content = format!("{heading}\n\n{text}");
        let message = json!({ "role": "user", "content": content, "metadata": metadata });
        let summary = Message::from_json(&message.to_string())?;
        let compress = Compress { indices: entries, summary: Some(summary) };
        Ok(Ok((compress.because(why).into(), call)))
    }

    /// The request of a summary as long as they usually are, to see what it would be worth.
    pub(super) async fn likely_summary(
        &self,
        seen: &Seen,
        goal: u64,
    ) -> Result<Option<Request>, Error> {
        let old = oldest(seen, goal, self.room().await?);
        if old.len() < 2 {
            return Ok(None);
        }
        let indices = old.iter().map(|entry| entry.index).collect();
        let summary = Message::user(&"so ".repeat(EXPECTED_TOKENS as usize));
        Ok(Some(Compress { indices, summary: Some(summary) }.into()))
    }

    /// So many tokens may be summarised at once.
    async fn room(&self) -> Result<u64, Error> {
        Ok(match self.budget.limit {
            Some(limit) => self.fitting(limit).await?,
            None => u64::MAX,
        })
    }
}

/// The oldest messages that a summary may stand for: as many as needed, no more than the model can
/// read, and never half of a tool exchange.
fn oldest(seen: &Seen, goal: u64, room: u64) -> Vec<&Entry> {
    let may_go =
        |entry: &&Entry| entry.message.role() != Role::System && !seen.is_pinned(entry.index);
    let candidates: Vec<&Entry> = seen.entries[..seen.tail].iter().filter(may_go).collect();
    let needed = seen.tokens.saturating_sub(goal).saturating_add(EXPECTED_TOKENS);
    // The instructions and the answer want room too.
    let room = room.saturating_sub(2 * EXPECTED_TOKENS).max(EXPECTED_TOKENS);
    let (mut sum, mut whole, mut enough) = (0_u64, 0, None);
    let mut open: Vec<String> = Vec::new();
    for (number, entry) in candidates.iter().enumerate() {
        sum = sum.saturating_add(entry.tokens);
        if sum > room || enough.is_some_and(|enough| number > enough + TO_A_TURN) {
            break;
        }
        open.extend(entry.message.tool_calls().map(|call| call.id.into_owned()));
        for id in entry.message.tool_results() {
            if let Some(at) = open.iter().rposition(|open| *open == *id) {
                open.remove(at);
            }
        }
        let next = candidates.get(number + 1).map(|next| next.message.role());
        if !open.is_empty() || next == Some(Role::Tool) {
            continue;
        }
        whole = number + 1;
        if sum >= needed {
            // What stays starts with a message of the user, if that is near.
            if next.is_none_or(|next| next == Role::User) {
                return candidates[..whole].to_vec();
            }
            enough = enough.or(Some(whole));
        }
    }
    candidates[..enough.unwrap_or(whole)].to_vec()
}

/// The small conversation in which the model is asked.
pub(crate) fn question<'a>(
    instructions: &str,
    entries: impl IntoIterator<Item = &'a Entry>,
) -> [Message; 2] {
    let mut text = String::from("The older part of the conversation:\n");
    for entry in entries {
        text.push_str(&format!(
            "\n[{}]\n{}\n",
            entry.message.role().as_str(),
            entry.message.text()
        ));
    }
    [Message::system(instructions), Message::user(&text)]
}
