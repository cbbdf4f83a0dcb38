//! `recto completions`: what a shell needs to complete the commands of `recto`.

use std::io::Write;

use clap::Args;
use clap_complete::{Shell, generate};

use crate::desk::Desk;
use crate::failure::Failure;

/// Print a completion script for a shell.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto completions bash > ~/.local/share/bash-completion/completions/recto
  recto completions zsh > ~/.zfunc/_recto
  recto completions fish > ~/.config/fish/completions/recto.fish")]
pub(crate) struct Completions {
    /// The shell to print it for
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self, mut usage: clap::Command, desk: &mut Desk<'_>) -> Result<(), Failure> {
        // Into memory first: `generate` panics where it cannot write.
        let mut script = Vec::new();
        generate(self.shell, &mut usage, "recto", &mut script);
        if desk.output.is_json() {
            let shell = self.shell.to_string();
            let script = String::from_utf8_lossy(&script);
            let document = serde_json::json!({ "shell": shell, "script": script });
            return desk.output.json(&document, desk.surroundings);
        }
        Ok(desk.surroundings.output.write_all(&script)?)
    }
}
