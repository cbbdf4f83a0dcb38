//! The label that lists print for the role of a message.

use anstyle::{AnsiColor, Style};
use recto::{Message, Role};

/// The role of a message, with tool calls apart from other assistant messages.
#[derive(Clone, Copy)]
pub(crate) enum RoleLabel {
    System,
    User,
    Assistant,
    Call,
    Result,
}

impl RoleLabel {
    /// The label of a message.
    pub(crate) fn of(message: &Message) -> RoleLabel {
        match message.role() {
            Role::System => RoleLabel::System,
            Role::User => RoleLabel::User,
            Role::Assistant if message.tool_calls().next().is_some() => RoleLabel::Call,
            Role::Assistant => RoleLabel::Assistant,
            Role::Tool => RoleLabel::Result,
        }
    }

    /// The label as a word.
    pub(crate) fn name(self) -> &'static str {
        match self {
            RoleLabel::System => "system",
            RoleLabel::User => "user",
            RoleLabel::Assistant => "assistant",
            RoleLabel::Call => "call",
            RoleLabel::Result => "result",
        }
    }

    /// The label as a letter.
    pub(crate) fn letter(self) -> char {
        match self {
            RoleLabel::System => 'S',
            RoleLabel::User => 'U',
            RoleLabel::Assistant => 'A',
            RoleLabel::Call => 'C',
            RoleLabel::Result => 'R',
        }
    }

    /// The style on a terminal. A call and its result have the same style.
    pub(crate) fn style(self) -> Style {
        match self {
            RoleLabel::System => AnsiColor::Magenta.on_default(),
            RoleLabel::User => AnsiColor::Cyan.on_default(),
            RoleLabel::Assistant => AnsiColor::Green.on_default(),
            RoleLabel::Call | RoleLabel::Result => AnsiColor::Yellow.on_default(),
        }
    }
}
