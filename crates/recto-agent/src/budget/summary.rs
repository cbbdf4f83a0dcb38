//! Summaries that a model writes.
//!
//! The model receives a separate request: instructions, and the old messages as one text. The summary
//! replaces the messages (COMPRESS) and lists their entries in `metadata.summary.of`.
//!
//! If the call fails, or the summary is empty, incomplete or not shorter than the messages, the view is
//! unchanged.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use recto::{Compress, Counter, Entry, LogIndex, Message, Request, Role};
use recto_format::{RenderOptions, render};
use serde_json::{Value, json};
use tracing::{Instrument as _, Span};

use super::ViewToSend;
use crate::call::SummaryPrompt;
use crate::reply::source;
use crate::{Agent, Call, CancelToken, Error, Finish, trace};

/// The instructions to the model.
const INSTRUCTIONS: &str = "\
You are given the older part of a conversation between a user and an assistant who uses tools. \
Write a summary that takes its place: the assistant will read the summary and go on working. \
Keep what is needed for that: the task, decisions and their reasons, names, paths, numbers and exact \
values, what was tried and failed, what is still to be done. Leave out pleasantries and everything \
that was superseded. Write the summary alone, in the language of the conversation.";

/// Assumed maximum tokens of a summary. It determines how many messages are summarised.
const EXPECTED_TOKENS: u64 = 600;

/// Tokens that a message has in addition to those of its text.
const MESSAGE_OVERHEAD: u64 = 3;

/// Maximum number of additional messages that are summarised so that the rest starts with a user
/// message.
const MAX_EXTRA_MESSAGES: usize = 8;

/// A summary that a model wrote, and the manifest of the call. The call is recorded even if the summary
/// is not used, because it was paid for.
pub(super) struct WrittenSummary {
    entries: Vec<LogIndex>,
    content: String,
    source: Value,
    pub(super) call: Call,
    /// The span of the call.
    pub(super) span: Span,
}

impl WrittenSummary {
    /// Whether all entries that the summary replaces are in the view and outside its floor.
    pub(super) fn applies_to(&self, view: &ViewToSend) -> bool {
        let may_hide = (0..view.entries.len()).filter(|&at| !view.is_in_floor(at));
        let may_hide: HashSet<LogIndex> = may_hide.map(|at| view.entries[at].index).collect();
        self.entries.iter().all(|entry| may_hide.contains(entry))
    }
}

impl Agent {
    /// Calls a model to summarise the oldest messages. The inner error is the reason why there is no
    /// summary.
    pub(super) async fn summarise(
        &self,
        view: &ViewToSend,
        goal: u64,
        cancel: &CancelToken,
    ) -> Result<Result<WrittenSummary, String>, Error> {
        let counter = self.counter().await?;
        let max_tokens = self.max_summarised_tokens(counter.as_ref()).await?;
        let old = oldest(view, goal, max_tokens, counter.as_ref());
        if old.len() < 2 {
            let limit = match max_tokens {
                u64::MAX => String::new(),
                max_tokens => format!(" within the {max_tokens} tokens that a request may have"),
            };
            return Ok(Err(format!("there are no old messages to summarise{limit}")));
        }
        let entries: Vec<LogIndex> = old.iter().map(|entry| entry.index).collect();
        let model = self.summariser.as_ref().unwrap_or(&self.model);
        let messages = summary_request(INSTRUCTIONS, old.iter().copied());
        let fields = model.fields();
        let fields_given: Vec<(&str, &str)> =
            fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let api_version = model.api_version();
        let options =
            RenderOptions { fields: &fields_given, api_version, ..RenderOptions::default() };
        let body = render(&messages, model.target(), &options)?.body;
        let instructions = INSTRUCTIONS.to_owned();
        let prompt = SummaryPrompt { entries: entries.clone(), instructions };
        let counted = messages.iter().map(|it| counter.count(&it.text()) + MESSAGE_OVERHEAD).sum();
        let request = crate::agent::PreparedRequest {
            model: model.as_ref(),
            version: view.version,
            body,
            fields,
            counted,
            summary_prompt: Some(prompt),
            compressed: Vec::new(),
        };
        // Deltas of a summary are not deltas of the reply, so they are not emitted as events.
        let span = trace::model_call(model.as_ref(), "summary");
        let sending = self.send_request(request, cancel, &|_| {});
        let (mut call, result) = sending.instrument(span.clone()).await?;
        let reply = match result {
            Ok(reply) => reply,
            Err(error) => {
                self.append_manifest(&mut call).instrument(span).await?;
                return Ok(Err(format!("the model wrote no summary: {error}")));
            }
        };
        let text = reply.text().trim().to_owned();
        if reply.finish != Finish::Stop || text.is_empty() {
            let what = if text.is_empty() { "an empty summary" } else { "an incomplete summary" };
            let reason = format!("the model wrote {what}");
            self.record_unused(&mut call, &reason).instrument(span).await?;
            return Ok(Err(reason));
        }
        // The model passes these log indices to `recto_expand`.
        let (first, last) = (old[0].index, old[old.len() - 1].index);
        let heading = format!("Summary of the entries {first} to {last} of this conversation:");
        let content = format!("{heading}\n\n{text}");
        let source = source(model.target(), model.name());
        Ok(Ok(WrittenSummary { entries, content, source, call, span }))
    }

    /// The request that replaces messages by a summary. The number of the call is valid for the newest
    /// version only, so the request must be applied with that version as the precondition.
    pub(super) async fn compress_request(
        &self,
        written: &mut WrittenSummary,
        reason: &str,
    ) -> Result<Request, Error> {
        self.assign_number(&mut written.call).instrument(written.span.clone()).await?;
        let WrittenSummary { entries, content, source, call, .. } = written;
        let metadata = json!({
            "summary": { "of": entries },
            "source": source,
            "call": crate::record::to_value(call),
        });
        let message = json!({ "role": "user", "content": content, "metadata": metadata });
        let summary = Message::from_json(&message.to_string())?;
        let compress = Compress { indices: entries.clone(), summary: Some(summary) };
        Ok(compress.reason(reason).into())
    }

    /// Records the call of a summary that was not used.
    pub(super) async fn record_unused(&self, call: &mut Call, reason: &str) -> Result<(), Error> {
        call.failure = Some(format!("the summary was not used: {reason}"));
        self.append_manifest(call).await
    }

    /// A COMPRESS request whose summary is a placeholder of the expected length. Its preview shows whether
    /// the call of a model would pay off. `None` if fewer than two messages can be summarised.
    pub(super) async fn estimated_summary(
        &self,
        view: &ViewToSend,
        goal: u64,
    ) -> Result<Option<Request>, Error> {
        let counter = self.counter().await?;
        let max_tokens = self.max_summarised_tokens(counter.as_ref()).await?;
        let old = oldest(view, goal, max_tokens, counter.as_ref());
        if old.len() < 2 {
            return Ok(None);
        }
        let indices = old.iter().map(|entry| entry.index).collect();
        let summary = Message::user(&"so ".repeat(EXPECTED_TOKENS as usize));
        Ok(Some(Compress { indices, summary: Some(summary) }.into()))
    }

    /// Maximum tokens of old messages in a request for a summary: the limit minus the instructions and
    /// the expected summary.
    async fn max_summarised_tokens(&self, counter: &dyn Counter) -> Result<u64, Error> {
        let Some(limit) = self.budget.limit else { return Ok(u64::MAX) };
        let mut fitting = self.calibration().await?.counted_within(limit);
        if let Some(summariser) = &self.summariser {
            fitting =
                fitting.min(self.calibration_of(summariser.name()).await?.counted_within(limit));
        }
        let overhead = summary_request(INSTRUCTIONS, []);
        let overhead: u64 =
            overhead.iter().map(|it| counter.count(&it.text()) + MESSAGE_OVERHEAD).sum();
        Ok(fitting.saturating_sub(overhead).saturating_sub(EXPECTED_TOKENS.min(fitting / 4)))
    }

    /// The token counter of the conversation.
    pub(crate) async fn counter(&self) -> Result<Arc<dyn Counter>, Error> {
        let settings = self.conversation.settings().await?;
        // Only built-in counters can be found by name. `approx` replaces any other one, because the counts
        // only estimate the size of a request.
        Ok(<dyn Counter>::named(&settings.counter).unwrap_or_else(|| Arc::new(recto::Approx)))
    }
}

/// The oldest messages to summarise: as many as needed to reach `goal`, at most `max_tokens`, in
/// complete tool exchanges, and either all before or all after the newest question.
fn oldest<'a>(
    view: &'a ViewToSend,
    goal: u64,
    max_tokens: u64,
    counter: &dyn Counter,
) -> Vec<&'a Entry> {
    let between = |places: Range<usize>| -> Vec<&Entry> {
        places.filter(|&at| !view.is_in_floor(at)).map(|at| &view.entries[at]).collect()
    };
    let tokens = |entries: &[&Entry]| entries.iter().map(|entry| entry.tokens).sum::<u64>();
    let (before, after) = (between(0..view.question.start), between(view.question.end..view.tail));
    // Prefer messages before the question, unless they have few tokens and those after it have more.
    let are_few = tokens(&before) < (2 * EXPECTED_TOKENS).min(tokens(&after));
    let order = if are_few { [after, before] } else { [before, after] };
    let needed = view.tokens.saturating_sub(goal).saturating_add(EXPECTED_TOKENS);
    let prefixes = order.iter().map(|candidates| prefix(candidates, needed, max_tokens, counter));
    prefixes.into_iter().find(|old| old.len() > 1).unwrap_or_default()
}

/// The shortest prefix of the candidates that has `needed` tokens, or the longest one if none has that many.
/// It consists of complete tool exchanges, and its text has at most `max_tokens` tokens. It is up to
/// `MAX_EXTRA_MESSAGES` messages longer if the rest then starts with a user message.
fn prefix<'a>(
    candidates: &[&'a Entry],
    needed: u64,
    max_tokens: u64,
    counter: &dyn Counter,
) -> Vec<&'a Entry> {
    let mut read = 0_u64;
    let (mut sum, mut whole, mut enough) = (0_u64, 0, None);
    let mut open: Vec<String> = Vec::new();
    for (number, entry) in candidates.iter().enumerate() {
        sum = sum.saturating_add(entry.tokens);
        // One more, because concatenated texts may have more tokens than the texts themselves.
        read = read.saturating_add(counter.count(&as_text(entry)) + 1);
        if read > max_tokens || enough.is_some_and(|enough| number > enough + MAX_EXTRA_MESSAGES) {
            break;
        }
        open.extend(entry.message.tool_calls().map(|call| call.id.into_owned()));
        for id in entry.message.tool_result_ids() {
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
            // The rest should start with a user message, if one is near.
            if next.is_none_or(|next| next == Role::User) {
                return candidates[..whole].to_vec();
            }
            enough = enough.or(Some(whole));
        }
    }
    candidates[..enough.unwrap_or(whole)].to_vec()
}

/// The messages of a request for a summary.
pub(crate) fn summary_request<'a>(
    instructions: &str,
    entries: impl IntoIterator<Item = &'a Entry>,
) -> [Message; 2] {
    let mut text = String::from("The older part of the conversation:\n");
    for entry in entries {
        text.push_str(&as_text(entry));
    }
    [Message::system(instructions), Message::user(&text)]
}

/// A message in the text of a request for a summary.
fn as_text(entry: &Entry) -> String {
    format!("\n[{}]\n{}\n", entry.message.role().as_str(), entry.message.text())
}
