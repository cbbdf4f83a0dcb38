//! The messages at the end of a view that have no answer, and the advice about them.

use recto::{Conversation, Entry, LogIndex, Role};

use crate::failure::Failure;
use crate::numbers::counted;

/// The end of a view, from its last answer on.
pub(super) struct Unanswered {
    /// The last answer: a message of the model without tool calls.
    answer: Option<LogIndex>,
    /// The messages after the last answer: user messages, tool calls and their results. System messages and
    /// summaries are not listed, because they need no answer.
    entries: Vec<LogIndex>,
}

impl Unanswered {
    pub(super) async fn of(conversation: &Conversation) -> Result<Unanswered, recto::Error> {
        let view = conversation.messages().await?;
        let is_answer = |entry: &Entry| {
            entry.message.role() == Role::Assistant && entry.message.tool_calls().next().is_none()
        };
        let needs_answer = |entry: &&Entry| {
            entry.message.role() != Role::System
                && recto_agent::summarised_entries(&entry.message).is_none()
        };
        let answer = view.iter().rposition(is_answer);
        let after = &view[answer.map_or(0, |at| at + 1)..];
        Ok(Unanswered {
            answer: answer.map(|at| view[at].index),
            entries: after.iter().filter(needs_answer).map(|entry| entry.index).collect(),
        })
    }

    /// Fails if there is no message to answer.
    pub(super) fn check(&self) -> Result<(), Failure> {
        match self.answer {
            _ if !self.entries.is_empty() => Ok(()),
            None => Err(Failure::Usage(
                "the conversation has no message to answer; give a message".into(),
            )),
            Some(answer) => Err(Failure::Usage(format!(
                "the model has already answered; give a message, or hide the answer first: `recto delete \
                 {answer}`"
            ))),
        }
    }

    /// The note before another message is sent: the provider request also contains these messages.
    pub(super) fn note(&self) -> Option<String> {
        (!self.entries.is_empty()).then(|| {
            format!(
                "the request also contains {} without an answer before this one; {}",
                counted(self.entries.len() as u64, "message"),
                self.hide()
            )
        })
    }

    /// The advice after an agent run that failed.
    pub(super) fn advice(&self) -> Option<String> {
        match (self.answer, &self.entries[..]) {
            (None, []) => None,
            (Some(answer), []) => Some(format!(
                "The received part of the answer is stored; `recto delete {answer}` hides it, and then \
                 `recto chat --again` asks again"
            )),
            (_, [_]) => Some(format!(
                "The message is stored: `recto chat --again` asks again, {}",
                self.hide()
            )),
            (_, entries) => Some(format!(
                "{} without an answer are stored: `recto chat --again` asks again, {}",
                counted(entries.len() as u64, "message"),
                self.hide()
            )),
        }
    }

    /// A text with the command that hides exactly these messages.
    fn hide(&self) -> String {
        let pronoun = if self.entries.len() == 1 { "it" } else { "them" };
        format!("`recto delete {}` hides {pronoun}", arguments(&self.entries))
    }
}

/// Ascending log entries as arguments of a command: `3 5-8`.
fn arguments(entries: &[LogIndex]) -> String {
    let runs = entries.chunk_by(|one, next| next.0 == one.0 + 1);
    let runs = runs.map(|run| match run {
        [first, .., last] => format!("{first}-{last}"),
        _ => run[0].to_string(),
    });
    runs.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_entries_are_one_argument() {
        let entries =
            |numbers: &[u32]| arguments(&numbers.iter().copied().map(LogIndex).collect::<Vec<_>>());
        assert_eq!(entries(&[3]), "3");
        assert_eq!(entries(&[3, 5, 6, 8, 9, 10]), "3 5-6 8-10");
    }
}
