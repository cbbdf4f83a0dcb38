//! `recto exec`: one JSON request a line in, one JSON line out each, in order.
//!
//! `exec/lines.rs` reads lines, `exec/request.rs` what they ask for, `exec/service.rs` does it.
//!
//! Whoever waits for an answer has it: answers are flushed before more input is waited for, and no
//! answer is kept back for longer than [`PATIENCE`] while others are worked on.

mod lines;
mod request;
mod service;
mod settings;

use std::io::Write;
use std::time::{Duration, Instant};

use clap::Args;
use recto::EngineError;

use self::lines::{Lines, Next};
use self::service::Service;
pub(crate) use self::settings::{counter_named, read_settings};
use crate::desk::Desk;
use crate::failure::Failure;
use crate::printable;

/// Answer requests of a program, one JSON line each.
///
/// Reads one JSON request a line from standard input, and answers each with one JSON line, in
/// order. A line that is wrong is answered with {"error": …}, which says its number, and the next
/// one goes on.
#[derive(Args, Debug)]
#[command(after_help = r#"Requests:
  {"create": NAME, "settings": {…}}
  {"import": NAME, "format": FORMAT, "data": …} the transcript as JSON, or as a string
  {"conversation": NAME, "op": {…}}             or "ops": […]; with "expectedVersion", "idempotencyKey"
  {"conversation": NAME, "ask": {QUERY}}        answers {"messages": […]}
  {"conversation": NAME, "markMap": true}
  {"conversation": NAME, "snapshot": BATCH}
  {"conversation": NAME, "diff": {"from": VERSION, "to": VERSION}}
  {"conversation": NAME, "render": PROVIDER}    answers {"request": …, "repairs": […], "warnings": […]}
  {"conversation": NAME, "lint": PROVIDER}      answers {"findings": […]}

Example:
  printf '%s\n' '{"create": "a"}' \
    '{"conversation": "a", "op": {"operation": "APPEND", "messages": [{"role": "user", "content": "hi"}]}}' \
    '{"conversation": "a", "ask": {"last": 1}}' | recto exec --store memory:"#)]
pub(crate) struct Exec {}

/// So long may an answer wait for the next one.
const PATIENCE: Duration = Duration::from_millis(1);

impl Exec {
    pub(crate) fn run(self, desk: &mut Desk<'_>) -> Result<(), Failure> {
        let session = desk.service_session()?;
        let mut service = Service::new(&session);
        let is_terminal = desk.output.is_terminal();
        let crate::Surroundings { input, output, .. } = &mut *desk.surroundings;
        let mut lines = Lines::new(input);
        let mut number = 0;
        // The oldest answer that nobody can have seen.
        let mut waiting: Option<Instant> = None;
        loop {
            if waiting.is_some_and(|since| !lines.has_next() || since.elapsed() >= PATIENCE) {
                output.flush()?;
                waiting = None;
            }
            let line = match lines.next() {
                Next::End => return Ok(()),
                Next::Broken(error) => {
                    return Err(Failure::Input { file: "-".into(), reason: error.to_string() });
                }
                Next::Line(line) => Ok(line),
                Next::TooLong { size, limit } => {
                    let what = "the number of bytes in the line";
                    Err(EngineError::TooLarge { what, size, limit, field: None })
                }
            };
            number += 1;
            let answer = service.answer(line, number);
            match is_terminal {
                true => output.write_all(printable::escaped_json(&answer).as_bytes())?,
                false => output.write_all(answer.as_bytes())?,
            }
            output.write_all(b"\n")?;
            waiting.get_or_insert_with(Instant::now);
        }
    }
}
