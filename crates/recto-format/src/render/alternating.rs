//! A writer for requests whose messages alternate between user and assistant.

use super::Body;
use super::turn::{Block, Side, Turn};

/// Writes messages of alternating roles. Consecutive blocks of one role become one message.
pub(super) struct AlternatingWriter {
    user: &'static str,
    assistant: &'static str,
    /// Role of the open message, and whether it has a block.
    open: Option<(Side, bool)>,
}

impl AlternatingWriter {
    /// `user` and `assistant` are the JSON with which their messages start, up to the list of blocks.
    pub(super) fn new(user: &'static str, assistant: &'static str) -> AlternatingWriter {
        AlternatingWriter { user, assistant, open: None }
    }

    /// Starts the message of a turn, and returns the blocks to write: none if the turn keeps its bytes, which
    /// are written here.
    pub(super) fn start_turn<'t, 'a>(
        &mut self,
        turn: &'t Turn<'a>,
        body: &mut Body,
    ) -> &'t [Block<'a>] {
        match &turn.original {
            Some(original) => {
                self.message(&original.text, body);
                &[]
            }
            None => {
                self.switch_to(turn.side, body);
                &turn.blocks
            }
        }
    }

    /// Continues the open message if it has this role; otherwise starts a message.
    pub(super) fn switch_to(&mut self, side: Side, body: &mut Body) {
        match self.open {
            Some((same, _)) if same == side => return,
            Some(_) => body.push("]},"),
            None if body.has_content => body.push(","),
            None => {}
        }
        body.has_content = true;
        body.push(match side {
            Side::Assistant => self.assistant,
            Side::User => self.user,
            Side::System => r#"{"role":"system","content":["#,
        });
        self.open = Some((side, false));
    }

    /// Must be called before every block: writes the comma between blocks.
    pub(super) fn start_block(&mut self, body: &mut Body) {
        if let Some((_, has_some)) = &mut self.open
            && std::mem::replace(has_some, true)
        {
            body.push(",");
        }
    }

    /// Writes a whole message as it is.
    fn message(&mut self, text: &str, body: &mut Body) {
        if self.open.take().is_some() {
            body.push("]}");
        }
        if body.has_content {
            body.push(",");
        }
        body.has_content = true;
        body.push(text);
    }

    /// Ends the list of messages and the request.
    pub(super) fn end(&self, body: &mut Body) {
        body.mark_unstable();
        body.push(if self.open.is_some() { "]}]}" } else { "]}" });
    }
}
