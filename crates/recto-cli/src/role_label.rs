//! Who speaks, as lists of messages show it.

use anstyle::{AnsiColor, Style};
use recto::{Message, Role};

/// Who speaks, with tool calls apart from answers.
#[derive(Clone, Copy)]
pub(crate) enum Speaker {
    System,
    User,
    Assistant,
    Call,
    Result,
}

impl Speaker {
    /// Who speaks in `message`.
    pub(crate) fn of(message: &Message) -> Speaker {
        match message.role() {
            Role::System => Speaker::System,
            Role::User => Speaker::User,
            Role::Assistant if message.tool_calls().next().is_some() => Speaker::Call,
            Role::Assistant => Speaker::Assistant,
            Role::Tool => Speaker::Result,
        }
    }

    /// In a word.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Speaker::System => "system",
            Speaker::User => "user",
            Speaker::Assistant => "assistant",
            Speaker::Call => "call",
            Speaker::Result => "result",
        }
    }

    /// In a letter.
    pub(crate) fn letter(self) -> char {
        match self {
            Speaker::System => 'S',
            Speaker::User => 'U',
            Speaker::Assistant => 'A',
            Speaker::Call => 'C',
            Speaker::Result => 'R',
        }
    }

    /// How it looks on a terminal: a call looks as its result does.
    pub(crate) fn style(self) -> Style {
        match self {
            Speaker::System => AnsiColor::Magenta.on_default(),
            Speaker::User => AnsiColor::Cyan.on_default(),
            Speaker::Assistant => AnsiColor::Green.on_default(),
            Speaker::Call | Speaker::Result => AnsiColor::Yellow.on_default(),
        }
    }
}
