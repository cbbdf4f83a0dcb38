//! The commands of `recto`, one file each.

mod completions;
mod demo;

use std::io::Write;

use clap::Subcommand;

use crate::failure::Failure;

/// The commands.
#[derive(Subcommand)]
pub(crate) enum Command {
    Demo(demo::Demo),
    Completions(completions::Completions),
}

impl Command {
    /// Does what was asked for. `usage` is the command line itself, for those that describe it.
    pub(crate) fn run(self, usage: clap::Command, out: &mut impl Write) -> Result<(), Failure> {
        match self {
            Command::Demo(demo) => demo.run(out),
            Command::Completions(completions) => completions.run(usage, out),
        }
    }
}
