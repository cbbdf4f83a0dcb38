//! `recto`: the command line of Recto, as a library, so that tests can drive it in process.
//!
//! ```text
//! arguments.rs ──► command/NAME.rs ──► session.rs ──► recto
//!  (as written)    (typed, one file     (store, names,
//!                   a command)           last used)
//!                        │
//!                        ▼
//!                    an Answer ──► output.rs: JSON, or a Page for people (terminal or plain)
//! ```
//!
//! What always holds:
//! - A command has one answer. It is printed as JSON or as a page; both are made from the same value.
//! - Text reaches a page only through `page::Line`, which escapes it: nothing in a message, a
//!   name or a reason can move the cursor, change colours or turn the direction of writing.
//! - The exit code says what kind of failure it was: 0 done, 1 refused by a rule, 2 wrong usage,
//!   3 storage. A reader that closes the pipe early is no failure.
//!
//! | to find | look at |
//! |---|---|
//! | what a command does | `command/`, one file each; the operations are in `command/change/` |
//! | which store and conversation is meant | `place.rs`, `session.rs`, `last_used.rs` |
//! | how things look | `page.rs`, `printable.rs`, `entry_line.rs`, `reason.rs`, `table.rs`, `pager.rs`, `progress.rs` |
//! | transcripts, providers, the model loop | `transcript.rs`, `foreign.rs`, `provider.rs`, `cache_plan.rs`, `strategy.rs` |
//! | what is said when something fails | `failure.rs`, `advice.rs`, `hint.rs` |
//! | requests of programs | `command/exec.rs` |

mod advice;
mod arguments;
mod cache_plan;
mod command;
mod desk;
mod difference;
mod entry_line;
mod failure;
mod foreign;
mod hint;
mod last_used;
mod message_input;
mod numbers;
mod output;
mod page;
mod pager;
mod place;
mod printable;
mod progress;
mod provider;
mod reason;
mod session;
mod speaker;
mod surroundings;
mod table;
mod time;
mod transcript;

use std::ffi::OsString;
use std::io::Write;

use clap::{CommandFactory, Parser};

use crate::arguments::{Arguments, General};
use crate::desk::Desk;
use crate::failure::Failure;
use crate::output::Output;
pub use crate::surroundings::{Screen, Surroundings, Variables};

/// Does what the arguments say, in the surroundings of this process, and gives the exit code.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    run(arguments, &mut Surroundings::of_process())
}

/// Does what the arguments say, in these surroundings, and gives the exit code. The first argument
/// is the name of the program.
pub fn run(arguments: impl IntoIterator<Item = OsString>, surroundings: &mut Surroundings) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let Arguments { general, command } = match Arguments::try_parse_from(&arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            let (error, arguments) = harmless(error, arguments);
            return misread(hint::with_hint(error, &arguments), &arguments, surroundings);
        }
    };
    let output = Output::new(&general, surroundings);
    let mut desk = Desk { general: &general, surroundings, output: &output };
    let result = command.run(&mut desk, Arguments::command());
    let result = result.and_then(|()| Ok(surroundings.output.flush()?));
    match result {
        Ok(()) => 0,
        Err(failure) => failed(&failure, &output, surroundings),
    }
}

/// Says why a command failed, and gives the exit code.
fn failed(failure: &Failure, output: &Output, surroundings: &mut Surroundings) -> u8 {
    if failure.is_closed_pipe() {
        return 0;
    }
    // Nobody is left to tell if this fails too.
    let _ = output.failure(failure, surroundings);
    failure.exit_code()
}

/// Says what is wrong with arguments that cannot be read, or what help says.
fn misread(error: clap::Error, arguments: &[OsString], surroundings: &mut Surroundings) -> u8 {
    if !error.use_stderr() || !wants_json(arguments) {
        return usage(&error, surroundings);
    }
    let general = General { json: true, ..General::default() };
    let output = Output::new(&general, surroundings);
    failed(&Failure::Usage(said(&error)), &output, surroundings)
}

/// The same complaint about arguments in which nothing steers a terminal: complaints repeat them.
fn harmless(error: clap::Error, arguments: Vec<OsString>) -> (clap::Error, Vec<OsString>) {
    let escaped =
        |argument: &OsString| OsString::from(&*printable::escaped(&argument.to_string_lossy()));
    let safe: Vec<OsString> = arguments.iter().map(escaped).collect();
    if safe == arguments {
        return (error, arguments);
    }
    let again = match Arguments::try_parse_from(&safe) {
        Err(again) if again.kind() == error.kind() => again,
        // What was escaped means something else now, so it cannot be repeated.
        _ => clap::Error::new(error.kind()).with_cmd(&Arguments::command()),
    };
    (again, safe)
}

/// Whether arguments that could not be read ask for JSON.
fn wants_json(arguments: &[OsString]) -> bool {
    arguments.iter().take_while(|argument| *argument != "--").any(|argument| argument == "--json")
}

/// What is wrong with the arguments, in one paragraph without the usage.
fn said(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let text = text.split("\n\nUsage:").next().unwrap_or_default();
    let text = text.split("\n\nFor more information").next().unwrap_or_default();
    let paragraphs = text.trim_start_matches("error: ").split("\n\n").map(|paragraph| {
        let words: Vec<&str> = paragraph.split_whitespace().collect();
        words.join(" ")
    });
    paragraphs.collect::<Vec<_>>().join("; ")
}

/// Prints help, the version, or what is wrong with the arguments.
fn usage(error: &clap::Error, surroundings: &mut Surroundings) -> u8 {
    let text = error.render();
    let (stream, is_coloured) = match error.use_stderr() {
        true => (&mut surroundings.errors, surroundings.errors_screen.colours),
        false => (&mut surroundings.output, surroundings.screen.colours),
    };
    let text = if is_coloured { text.ansi().to_string() } else { text.to_string() };
    let printed = stream.write_all(text.as_bytes()).and_then(|()| stream.flush());
    match printed {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Failure::Output(error).exit_code()
        }
        _ => error.exit_code() as u8,
    }
}
