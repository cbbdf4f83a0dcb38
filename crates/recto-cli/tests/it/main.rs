//! The `recto` command as a user meets it: what it prints, and how it ends.

#[cfg(feature = "chat")]
mod chat;
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
mod rules;
mod stage;
mod surroundings;
#[cfg(unix)]
mod terminal;
mod transcripts;
mod walk_through;

use std::process::{Command, Output};

/// `recto` with these arguments, in an environment that says nothing about colours.
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

/// What a command prints that must succeed without a complaint.
fn printed(command: &mut Command) -> String {
    let output = command.output().expect("the command was built with this test");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaint}");
    assert_eq!(complaint, "");
    String::from_utf8(output.stdout).expect("recto prints UTF-8")
}

/// A terminal of 80 columns that keeps what it is shown.
fn emulator(rows: u16) -> vt100::Parser {
    let size = |number: u16| number.try_into().expect("a terminal has rows and columns");
    vt100::Parser::new(size(rows), size(80), 0)
}
