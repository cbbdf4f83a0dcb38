//! `recto completions`: what a shell needs to complete the commands of `recto`.

use std::io::Write;

use clap::Args;
use clap_complete::{Shell, generate};

use crate::failure::Failure;

/// Print a completion script for a shell.
///
/// For bash: `recto completions bash > ~/.local/share/bash-completion/completions/recto`
#[derive(Args)]
pub(crate) struct Completions {
    /// The shell to print it for.
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self, mut usage: clap::Command, out: &mut impl Write) -> Result<(), Failure> {
        // Into memory first: `generate` panics where it cannot write.
        let mut script = Vec::new();
        generate(self.shell, &mut usage, "recto", &mut script);
        out.write_all(&script)?;
        Ok(())
    }
}
