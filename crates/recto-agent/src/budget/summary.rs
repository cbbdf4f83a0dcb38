//! A summary, written by a model.
//!
//! The model is asked in a small conversation of its own: instructions, and the old messages as one
//! text. What it writes is handed back and takes their place (COMPRESS). A summary knows which entries
//! it stands for (`metadata.summary.of`).
//!
//! A summary that failed, is empty, was cut off, or is no shorter than what it stands for replaces
//! nothing.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use recto::{Compress, Counter, Entry, LogIndex, Message, Request, Role};
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

/// What a message has beside its text.
const A_MESSAGE: u64 = 3;

/// So many messages more are taken to get to the start of a turn.
const TO_A_TURN: usize = 8;

/// A summary that a model wrote, and the call that wrote it: if it is not used, the call has cost
/// something all the same.
pub(super) struct Written {
    entries: Vec<LogIndex>,
    content: String,
    source: Value,
    pub(super) call: Call,
}

impl Written {
    /// Whether all that it stands for is in a view, and may go.
    pub(super) fn stands_in(&self, seen: &Seen) -> bool {
        let may_go = (0..seen.entries.len()).filter(|&at| !seen.stays(at));
        let may_go: HashSet<LogIndex> = may_go.map(|at| seen.entries[at].index).collect();
        self.entries.iter().all(|entry| may_go.contains(entry))
    }
}

impl Agent {
    /// Has a model write a summary of the oldest messages. The inner error says why there is none.
    pub(super) async fn summarise(
        &self,
        seen: &Seen,
        goal: u64,
        cancel: &CancellationToken,
    ) -> Result<Result<Written, String>, Error> {
        let counter = self.counter().await?;
        let room = self.room(counter.as_ref()).await?;
        let old = oldest(seen, goal, room, counter.as_ref());
        if old.len() < 2 {
            let reason = match room {
                u64::MAX => String::new(),
                room => format!(" within the {room} tokens that may be read for one"),
            };
            let what = "there are no old messages that a summary could stand for";
            return Ok(Err(format!("{what}{reason}")));
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
        let counted = question.iter().map(|it| counter.count(&it.text()) + A_MESSAGE).sum();
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
            let what = if text.is_empty() { "an empty summary" } else { "no whole summary" };
            let reason = format!("the model wrote {what}");
            self.note_unused(&mut call, &reason).await?;
            return Ok(Err(reason));
        }
        // The numbers are for tools that look behind it.
        let (first, last) = (old[0].index, old[old.len() - 1].index);
        let heading = format!("Summary of the entries {first} to {last} of this conversation:");
        let content = format!("{heading}\n\n{text}");
        let source = source(model.target(), model.name());
        Ok(Ok(Written { entries, content, source, call }))
    }

    /// The request that puts a summary in the place of what it stands for. Its call is numbered for the
    /// version that is the newest now: on any other one the request must be refused.
    pub(super) async fn request_of(
        &self,
        written: &mut Written,
        why: &str,
    ) -> Result<Request, Error> {
        self.enter(&mut written.call).await?;
        let Written { entries, content, source, call } = written;
        let metadata = json!({
            "summary": { "of": entries },
            "source": source,
            "call": serde_json::to_value(call).unwrap_or(Value::Null),
        });
        let message = json!({ "role": "user", "content": content, "metadata": metadata });
        let summary = Message::from_json(&message.to_string())?;
        let compress = Compress { indices: entries.clone(), summary: Some(summary) };
        Ok(compress.reason(why).into())
    }

    /// Keeps the manifest of a call whose summary was not used.
    pub(super) async fn note_unused(&self, call: &mut Call, reason: &str) -> Result<(), Error> {
        call.failure = Some(format!("the summary was not used: {reason}"));
        self.note(call).await
    }

    /// The request of a summary as long as they usually are, to see what it would be worth.
    pub(super) async fn likely_summary(
        &self,
        seen: &Seen,
        goal: u64,
    ) -> Result<Option<Request>, Error> {
        let counter = self.counter().await?;
        let room = self.room(counter.as_ref()).await?;
        let old = oldest(seen, goal, room, counter.as_ref());
        if old.len() < 2 {
            return Ok(None);
        }
        let indices = old.iter().map(|entry| entry.index).collect();
        let summary = Message::user(&"so ".repeat(EXPECTED_TOKENS as usize));
        Ok(Some(Compress { indices, summary: Some(summary) }.into()))
    }

    /// So many tokens of old messages may be in a question for a summary: what the limit leaves beside
    /// the instructions and the answer.
    async fn room(&self, counter: &dyn Counter) -> Result<u64, Error> {
        let Some(limit) = self.budget.limit else { return Ok(u64::MAX) };
        let mut fitting = self.calibration().await?.fitting(limit);
        if let Some(summariser) = &self.summariser {
            fitting = fitting.min(self.calibration_of(summariser.name()).await?.fitting(limit));
        }
        let around = question(INSTRUCTIONS, []);
        let around: u64 = around.iter().map(|it| counter.count(&it.text()) + A_MESSAGE).sum();
        Ok(fitting.saturating_sub(around).saturating_sub(EXPECTED_TOKENS.min(fitting / 4)))
    }

    /// What counts tokens here as the conversation does.
    pub(crate) async fn counter(&self) -> Result<Arc<dyn Counter>, Error> {
        let settings = self.talk.settings().await?;
        // A counter of the user's own is not at hand here.
        Ok(<dyn Counter>::named(&settings.counter).unwrap_or_else(|| Arc::new(recto::Approx)))
    }
}

/// The oldest messages that a summary may stand for: as many as needed, no more than the model can
/// read, and never half of a tool exchange. They are before the newest question, or all behind it.
fn oldest<'a>(seen: &'a Seen, goal: u64, room: u64, counter: &dyn Counter) -> Vec<&'a Entry> {
    let between = |places: Range<usize>| -> Vec<&Entry> {
        places.filter(|&at| !seen.stays(at)).map(|at| &seen.entries[at]).collect()
    };
    let tokens = |entries: &[&Entry]| entries.iter().map(|entry| entry.tokens).sum::<u64>();
    let (before, behind) = (between(0..seen.question.start), between(seen.question.end..seen.tail));
    // What is before the question, unless that is too little, and there is more behind it.
    let is_little = tokens(&before) < (2 * EXPECTED_TOKENS).min(tokens(&behind));
    let order = if is_little { [behind, before] } else { [before, behind] };
    let needed = seen.tokens.saturating_sub(goal).saturating_add(EXPECTED_TOKENS);
    let fronts = order.iter().map(|candidates| front(candidates, needed, room, counter));
    fronts.into_iter().find(|old| old.len() > 1).unwrap_or_default()
}

/// As many of the first candidates as are needed and can be read, in whole exchanges.
fn front<'a>(
    candidates: &[&'a Entry],
    needed: u64,
    room: u64,
    counter: &dyn Counter,
) -> Vec<&'a Entry> {
    let mut read = 0_u64;
    let (mut sum, mut whole, mut enough) = (0_u64, 0, None);
    let mut open: Vec<String> = Vec::new();
    for (number, entry) in candidates.iter().enumerate() {
        sum = sum.saturating_add(entry.tokens);
        // One more, since texts side by side may have more tokens than each by itself.
        read = read.saturating_add(counter.count(&piece(entry)) + 1);
        if read > room || enough.is_some_and(|enough| number > enough + TO_A_TURN) {
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
        text.push_str(&piece(entry));
    }
    [Message::system(instructions), Message::user(&text)]
}

/// A message in the question.
fn piece(entry: &Entry) -> String {
    format!("\n[{}]\n{}\n", entry.message.role().as_str(), entry.message.text())
}
