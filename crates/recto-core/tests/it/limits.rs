//! Input at the limits: the largest numbers, the deepest JSON, the longest lists. Each request is applied
//! or refused with a typed error; none panics or overflows the stack.

mod crowds;
mod depth;
mod histories;
mod lists;
mod nothing;
mod numbers;
mod sizes;

use recto_core::{
    Append, Approx, BatchIndex, BatchStart, Code, Compress, Conversation, Delete, Error, Fit,
    Limits, LogIndex, Mark, Message, Operation, PINNED, Pick, Position, Query, QueryAt, Redo,
    Request, Restore, Role, RoleSet, Rollback, Settings, Tool, Truncate, Undo, Unmark, Version,
    WarningCode,
};

use crate::conversations::{after, append, fresh, send, tools, view, with_tools};
use crate::driver::fingerprint;

/// Runs a test on a small stack, which recursion over deep input would overflow.
fn on_a_small_stack(test: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(256 << 10);
    thread.spawn(test).expect("a thread can be started").join().expect("it does not panic");
}

/// A conversation of `count` user messages that share one body.
fn long(count: usize) -> Conversation {
    let messages = vec![Message::user("word of a message"); count];
    fresh().append(messages, 1).expect("it is accepted").0
}

/// `ok`, or the code of the error.
fn code_of<T>(result: &Result<T, Error>) -> &'static str {
    match result {
        Ok(_) => "ok",
        Err(error) => error.code().as_str(),
    }
}
