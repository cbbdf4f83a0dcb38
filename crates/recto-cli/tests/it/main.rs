//! Tests of the `recto` command: its output and its exit codes.

#[cfg(feature = "chat")]
mod chat;
#[cfg(all(unix, feature = "chat"))]
mod chat_advice;
#[cfg(all(unix, feature = "chat"))]
mod chat_trouble;
mod command_line;
mod commands;
mod demo;
mod every_command;
mod exec;
mod features;
mod first_use;
mod hostile;
mod looking;
mod notes;
mod provider_requests;
mod rules;
mod stage;
mod surroundings;
#[cfg(unix)]
mod terminal;
mod transcripts;
mod walk_through;

use std::process::{Command, Output};

/// `recto` with these arguments, in an environment without variables for colours and the log.
fn recto(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_recto"));
    command.args(arguments);
    for variable in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "RECTO_LOG"] {
        command.env_remove(variable);
    }
    command
}

fn run(arguments: &[&str]) -> Output {
    recto(arguments).output().expect("the command was built with this test")
}

/// The output of a command that must succeed and print nothing on standard error.
fn printed(command: &mut Command) -> String {
    let output = command.output().expect("the command was built with this test");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert_eq!(errors, "");
    String::from_utf8(output.stdout).expect("recto prints UTF-8")
}

/// An emulated terminal of 80 columns.
fn emulator(rows: u16) -> vt100::Parser {
    let size = |number: u16| number.try_into().expect("a terminal has rows and columns");
    vt100::Parser::new(size(rows), size(80), 0)
}
