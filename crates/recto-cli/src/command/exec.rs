//! `recto exec`: reads one JSON request per line and writes one JSON response per line, in the same order.
//!
//! `recto-service` defines and executes the requests. This file reads lines with `exec/lines.rs`, writes
//! the responses, and adds the number of the line to errors.
//!
//! Responses are flushed before the command waits for more input. While more requests are in the buffer,
//! the age of the oldest response is compared with [`MAX_DELAY`] before each request, but not during it.

mod lines;

use std::io::Write;
use std::time::{Duration, Instant};

use clap::Args;
use recto::EngineError;
use recto_service::{Error, Service};

use self::lines::{Lines, Next};
use crate::context::Context;
use crate::failure::Failure;
use crate::printable;

/// Execute JSON requests from standard input, one per line.
///
/// Writes one JSON response per line, in order. The response to a request that fails is {"error": …}, with
/// the number of its line, and the next request is read.
#[derive(Args, Debug)]
#[command(after_help = r#"Requests about the store:
  create, import, list, search, verify
Requests about a list of messages, which store nothing:
  fit, repair, countTokens
Requests about a conversation, with {"conversation": NAME, …}:
  op, ops, append, setTools, tools, ask, show, count, stats, info, log, blame, tokens, timeline,
  tokenCheck, marks, markMap, state, snapshot, diff, render, lint, cachePlan, calls, export, fork, rename, remove,
  settings, verify, prune, erase
docs/exec.md describes them, --schema prints their JSON Schema.

Example:
  printf '%s\n' '{"create": "a"}' \
    '{"conversation": "a", "op": {"operation": "APPEND", "messages": [{"role": "user", "content": "hi"}]}}' \
    '{"conversation": "a", "ask": {"last": 1}}' | recto exec --store memory:"#)]
pub(crate) struct Exec {
    /// Print the JSON Schema of all requests and responses, and exit
    #[arg(long)]
    schema: bool,
}

/// Age of a buffered response from which it is flushed before the next request is executed.
const MAX_DELAY: Duration = Duration::from_millis(1);

impl Exec {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<(), Failure> {
        if self.schema {
            return context.output.json(&recto_service::schema(), context.environment);
        }
        let session = context.service_session()?;
        let recto = session.recto.inner().clone();
        let service = match session.is_in_memory() {
            true => Service::exclusive(recto),
            false => Service::new(recto),
        };
        let is_terminal = context.output.is_terminal();
        let crate::Environment { input, output, .. } = &mut *context.environment;
        let mut lines = Lines::new(input);
        let mut number = 0;
        // When the oldest response that is not flushed was written.
        let mut oldest_unflushed: Option<Instant> = None;
        loop {
            if oldest_unflushed
                .is_some_and(|since| !lines.has_next() || since.elapsed() >= MAX_DELAY)
            {
                output.flush()?;
                oldest_unflushed = None;
            }
            let line = match lines.next() {
                Next::End => return Ok(()),
                Next::Failed(error) => {
                    return Err(Failure::Input { file: "-".into(), reason: error.to_string() });
                }
                Next::Line(line) => text_of(line),
                Next::TooLong { size, limit } => {
                    let what = "the number of bytes in the line";
                    Err(EngineError::TooLarge { what, size, limit, field: None })
                }
            };
            number += 1;
            let response = match line {
                Ok(line) => session.recto.wait(service.try_request(line)),
                Err(error) => Err(error.into()),
            };
            let response = match response {
                Ok(response) => response.to_json(),
                Err(error) => error_at(number, &error),
            };
            match is_terminal {
                true => output.write_all(printable::escaped_json(&response).as_bytes())?,
                false => output.write_all(response.as_bytes())?,
            }
            output.write_all(b"\n")?;
            oldest_unflushed.get_or_insert_with(Instant::now);
        }
    }
}

fn text_of(line: &[u8]) -> Result<&str, EngineError> {
    std::str::from_utf8(line).map_err(|error| EngineError::InvalidJson {
        reason: format!("it is not UTF-8 at byte {}", error.valid_up_to()),
    })
}

/// An error with the number of its line.
fn error_at(line: u64, error: &Error) -> String {
    let mut written = error.to_json();
    written["error"]["line"] = line.into();
    written.to_string()
}
