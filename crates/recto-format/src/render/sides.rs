//! Requests whose messages alternate between two sides: the message that is open, and what starts one.

use super::Body;
use super::turn::Side;

/// The messages of two sides, written one behind the other; neighbours of one side are one message.
pub(super) struct Sides {
    user: &'static str,
    assistant: &'static str,
    /// The message that is open, and whether something is in it.
    open: Option<(Side, bool)>,
}

impl Sides {
    /// `user` and `assistant` are what their messages start with, up to the list of what is said.
    pub(super) fn new(user: &'static str, assistant: &'static str) -> Sides {
        Sides { user, assistant, open: None }
    }

    /// Goes on with the message of a side, or starts it.
    pub(super) fn go_on(&mut self, side: Side, body: &mut Body) {
        match self.open {
            Some((same, _)) if same == side => return,
            Some(_) => body.push("]},"),
            None => {}
        }
        body.has_content = true;
        body.push(if side == Side::Assistant { self.assistant } else { self.user });
        self.open = Some((side, false));
    }

    /// Something more is said in the message that is open.
    pub(super) fn next(&mut self, body: &mut Body) {
        if let Some((_, has_some)) = &mut self.open
            && std::mem::replace(has_some, true)
        {
            body.push(",");
        }
    }

    /// Ends the list of messages, and the request.
    pub(super) fn end(&self, body: &mut Body) {
        body.may_change();
        body.push(if self.open.is_some() { "]}]}" } else { "]}" });
    }
}
