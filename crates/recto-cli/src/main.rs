//! `recto`: the command line of Recto.
//!
//! One file a command in `command/`. This file reads the arguments, hands standard output to the
//! command, and turns what went wrong into an exit code: 1 for a command that failed, 2 (clap's) for
//! arguments that make no sense. A reader that closes the pipe early is not a failure.

mod command;
mod failure;
mod printable;
mod speaker;

use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use crate::command::Command;
use crate::failure::Failure;

/// See, cut and take back what a model reads.
///
/// Recto keeps every message of a conversation and decides which of them the model reads. Every
/// change of that is a version: it can be compared, explained and taken back.
#[derive(Parser)]
#[command(name = "recto", version, after_help = "New here? Try `recto demo`.")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // Colours only on a terminal, and not under NO_COLOR.
    let mut out = anstream::stdout().lock();
    let result = arguments
        .command
        .run(Arguments::command(), &mut out)
        .and_then(|()| out.flush().map_err(Failure::from));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) if failure.is_closed_pipe() => ExitCode::SUCCESS,
        Err(failure) => {
            // Nobody is left to tell if this fails too.
            let _ = writeln!(anstream::stderr(), "recto: {failure}");
            ExitCode::FAILURE
        }
    }
}
