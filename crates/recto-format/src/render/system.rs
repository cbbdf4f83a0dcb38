//! Rules for system messages: where the provider accepts them.

use recto_core::Role;

use super::plan::Planner;
use super::turn::{Block, Call, Side};
use super::{Target, models, rule};
use crate::Format;
use crate::parts::{MessageParts, Part};

/// The place of a system message in the request.
pub(super) enum SystemPlace {
    /// The system field, or a system message at providers without the field.
    Field,
    /// The list of messages, at Anthropic.
    List,
    /// A message of the user.
    User,
}

impl Planner<'_, '_> {
    /// The place of the system message at position `at`. Reports a violation if it cannot stay where it is.
    pub(super) fn place_of_system(&mut self, at: usize, blocks: &[Block<'_>]) -> SystemPlace {
        if self.dialect.provider == "openai"
            && self.options.model.is_some_and(models::rejects_system)
        {
            let message = "a system or developer message that the model does not accept";
            self.report(&rule::SYSTEM_FOR_THE_MODEL, at, message);
            return SystemPlace::User;
        }
        if self.is_rejected_system(at) {
            let message = "a message of role system that the model does not accept";
            self.report(&rule::SYSTEM_FOR_THE_MODEL, at, message);
            return if self.has_dialogue { SystemPlace::User } else { SystemPlace::Field };
        }
        if self.is_listed_system(at, blocks) {
            return SystemPlace::List;
        }
        if self.dialect.requires_alternation && self.has_dialogue {
            self.report(&rule::SYSTEM_IN_FRONT, at, "a system message follows other messages");
            return SystemPlace::User;
        }
        SystemPlace::Field
    }

    /// True for a message that was imported from Anthropic's list of messages and that cannot keep its bytes:
    /// the model rejects messages of role system there, or an edit has moved this one to a place where they
    /// are rejected.
    fn is_rejected_system(&self, at: usize) -> bool {
        let source = self.messages[at].source.filter(|source| source.field.is_none());
        let role = |at: usize| self.messages.get(at).map(|message| message.role);
        let ends_with_result = |message: &MessageParts<'_>| match message.parts.last() {
            Some(Part::Other { kind, .. }) => kind.text().ends_with("_tool_result"),
            _ => false,
        };
        // A result of a tool that the provider ran is in a message of the assistant.
        let can_precede = |message: &MessageParts<'_>| match message.role {
            Role::User | Role::Tool => true,
            _ => ends_with_result(message),
        };
        let is_in_place = at > 0
            && can_precede(&self.messages[at - 1])
            && matches!(role(at + 1), None | Some(Role::Assistant));
        let is_system = self.messages[at].role == Role::System;
        self.dialect.target == Target::Anthropic
            && source.is_some_and(|source| source.is_from(Format::Anthropic.name()))
            && (self.options.model.is_some_and(models::rejects_listed_system)
                || is_system && !is_in_place)
    }

    /// True for a system message that can stay in the list of messages: the model accepts such messages, a
    /// message of the user precedes it, and it is the last message or a message of the assistant follows
    /// it.
    fn is_listed_system(&self, at: usize, blocks: &[Block<'_>]) -> bool {
        let follows_user = match self.turns.last() {
            Some(turn) => turn.side == Side::User || turn.has_calls(),
            None => false,
        };
        let is_text = |block: &Block<'_>| matches!(block, Block::Text { .. });
        // Results of earlier calls are written before the system message. A missing result, or one in a
        // later message, cannot be.
        let is_open = |call: &Call<'_>| call.result.from.is_none_or(|from| from > at);
        let next = self.messages.get(at + 1);
        self.dialect.target == Target::Anthropic
            && self.has_dialogue
            && follows_user
            && next.is_none_or(|next| next.role == Role::Assistant)
            && blocks.iter().all(is_text)
            && !self.turns.last().is_some_and(|turn| turn.calls().any(is_open))
            && self.options.model.is_some_and(models::accepts_listed_system)
    }
}
