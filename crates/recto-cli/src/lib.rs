//! The `recto` command as a library, so that tests can run it in process.
//!
//! ```text
//! command_line.rs ──► command/NAME.rs ──► session.rs ──► recto
//!  (parsed)           (one file per        (store, names,
//!                      command)             last used)
//!                           │
//!                           ▼
//!                    a CommandResult ──► output.rs: JSON, or a Page of text (terminal or plain)
//! ```
//!
//! Invariants:
//! - A command has one result. It is printed as JSON or as a page; both come from the same value.
//! - Text reaches a page only through `page::Line`, which escapes it: nothing in a message, a name or
//!   a reason can move the cursor, change colours or change the direction of writing.
//! - The exit code is the kind of failure: 0 success, 1 refused by a rule, 2 wrong usage,
//!   3 storage. A reader that closes the pipe early is not a failure.
//!
//! | to find | look at |
//! |---|---|
//! | what a command does | `command/`, one file per command; the operations are in `command/change/` |
//! | the groups of `recto help` | the table in `command.rs` |
//! | how the store and the conversation are selected | `store_location.rs`, `session.rs`, `last_used.rs` |
//! | how text is printed | `page.rs`, `printable.rs`, `entry_line.rs`, `reason.rs`, `remarks.rs`, `table.rs`, `pager.rs`, `progress.rs` |
//! | transcripts and providers | `transcript.rs`, `tool_input.rs`, `provider.rs`, `cache_plan.rs` |
//! | the model loop | `command/chat.rs` (feature `chat`) |
//! | error messages | `failure.rs`, `advice.rs`, `hint.rs` |
//! | JSON requests | `command/exec.rs` |
//! | log messages (`RECTO_LOG`) | `log.rs` |
//! | which files a new command needs | `ARCHITECTURE.md` of the repository |

mod advice;
mod arguments;
mod cache_plan;
mod command;
mod command_line;
mod context;
mod difference;
mod entry_line;
mod environment;
mod failure;
mod hint;
mod last_used;
mod log;
mod message_input;
mod numbers;
mod opencode_storage;
mod output;
mod page;
mod pager;
mod printable;
mod progress;
mod provider;
mod reason;
mod remarks;
mod role_label;
mod session;
mod store_location;
mod table;
mod time;
mod tool_input;
mod transcript;

use std::ffi::OsString;
use std::io::Write;

use clap::ValueEnum as _;

use crate::arguments::{Colours, General};
use crate::command_line::Arguments;
use crate::context::Context;
pub use crate::environment::{Environment, StreamInfo, VariableLookup};
use crate::failure::Failure;
use crate::output::Output;

/// Runs a command in the environment of this process, and returns the exit code.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    ignore_file_size_signal();
    run(arguments, &mut Environment::of_process())
}

/// A write beyond the file size limit of the process fails with an error. By default the signal SIGXFSZ
/// would end the process instead, without an error message.
fn ignore_file_size_signal() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        // The same number on Linux, macOS and the BSDs.
        const SIGXFSZ: i32 = 25;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
        // The handler stays after the runtime has ended. Without it, only the error text is missing.
        let _ = runtime.map(|runtime| {
            runtime.block_on(async { signal(SignalKind::from_raw(SIGXFSZ)).map(drop) })
        });
    }
}

/// Runs a command, and returns the exit code. The first argument is the name of the program.
pub fn run(arguments: impl IntoIterator<Item = OsString>, environment: &mut Environment) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let Arguments { general, command } = match Arguments::parse_from(&arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            let (error, arguments) = escape_arguments(error, arguments);
            let error = hint::with_hint(error, &arguments);
            return report_usage_error(error, &arguments, environment);
        }
    };
    let output = Output::new(&general, environment);
    if let Err(failure) = log::install(environment) {
        return report_failure(&failure, &output, environment);
    }
    let _span = tracing::info_span!("command", name = command.name()).entered();
    let mut context = Context { general: &general, environment, output: &output };
    let result = command.run(&mut context).map_err(|failure| context.naming_conversation(failure));
    let result = result.and_then(|()| Ok(environment.output.flush()?));
    match result {
        Ok(()) => 0,
        Err(failure) => report_failure(&failure, &output, environment),
    }
}

/// Prints why a command failed, and returns the exit code.
fn report_failure(failure: &Failure, output: &Output, environment: &mut Environment) -> u8 {
    if failure.is_closed_pipe() {
        return 0;
    }
    // If this fails too, no stream is left to report it on.
    let _ = output.failure(failure, environment);
    failure.exit_code()
}

/// Prints why arguments cannot be parsed. Help and the version also arrive here, as clap's errors.
fn report_usage_error(
    error: clap::Error,
    arguments: &[OsString],
    environment: &mut Environment,
) -> u8 {
    if !error.use_stderr() || !has_json_option(arguments) {
        return print_clap_error(&error, colours_in(arguments), environment);
    }
    let general = General { json: true, ..General::default() };
    let output = Output::new(&general, environment);
    report_failure(&Failure::Usage(without_usage(&error)), &output, environment)
}

/// Escapes control characters in the arguments. Clap repeats arguments in its errors, so the error is
/// made again from the escaped ones.
fn escape_arguments(error: clap::Error, arguments: Vec<OsString>) -> (clap::Error, Vec<OsString>) {
    let escaped =
        |argument: &OsString| OsString::from(&*printable::escaped(&argument.to_string_lossy()));
    let safe: Vec<OsString> = arguments.iter().map(escaped).collect();
    if safe == arguments {
        return (error, arguments);
    }
    let again = match Arguments::parse_from(&safe) {
        Err(again) if again.kind() == error.kind() => again,
        // The escaped arguments have another meaning, so the error cannot repeat them.
        _ => clap::Error::new(error.kind()).with_cmd(&Arguments::usage()),
    };
    (again, safe)
}

/// Whether arguments that cannot be parsed contain `--json`.
fn has_json_option(arguments: &[OsString]) -> bool {
    arguments.iter().take_while(|argument| *argument != "--").any(|argument| argument == "--json")
}

/// The value of `--color` in arguments that cannot be parsed.
fn colours_in(arguments: &[OsString]) -> Colours {
    let mut given = arguments.iter().filter_map(|argument| argument.to_str());
    let mut colours = Colours::default();
    while let Some(argument) = given.next().filter(|argument| *argument != "--") {
        let value = match argument {
            "--color" => given.next(),
            argument => argument.strip_prefix("--color="),
        };
        if let Some(value) = value.and_then(|value| Colours::from_str(value, true).ok()) {
            colours = value;
        }
    }
    colours
}

/// The text of an error of clap in one line, without the usage.
fn without_usage(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let text = text.split("\n\nUsage:").next().unwrap_or_default();
    let text = text.split("\n\nFor more information").next().unwrap_or_default();
    let paragraphs = text.trim_start_matches("error: ").split("\n\n").map(|paragraph| {
        let words: Vec<&str> = paragraph.split_whitespace().collect();
        words.join(" ")
    });
    paragraphs.collect::<Vec<_>>().join("; ")
}

/// Prints help, the version, or an error of clap.
fn print_clap_error(error: &clap::Error, colours: Colours, environment: &mut Environment) -> u8 {
    let text = error.render();
    let (stream, info) = match error.use_stderr() {
        true => (&mut environment.errors, environment.errors_info),
        false => (&mut environment.output, environment.output_info),
    };
    let is_coloured = colours.for_stream(info);
    let text = if is_coloured { text.ansi().to_string() } else { text.to_string() };
    let printed = stream.write_all(text.as_bytes()).and_then(|()| stream.flush());
    match printed {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Failure::Output(error).exit_code()
        }
        _ => error.exit_code() as u8,
    }
}
