//! `recto completions`: shell completion scripts.

use std::io::Write;

use clap::Args;
use clap_complete::{Shell, generate};

use crate::command_line::Arguments;
use crate::context::Context;
use crate::failure::Failure;

/// Print a shell completion script.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto completions bash > ~/.local/share/bash-completion/completions/recto
  recto completions zsh > ~/.zfunc/_recto
  recto completions fish > ~/.config/fish/completions/recto.fish")]
pub(crate) struct Completions {
    /// Shell to print the script for
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<(), Failure> {
        let mut usage = Arguments::usage();
        // Written to memory first, because `generate` panics if it cannot write.
        let mut script = Vec::new();
        generate(self.shell, &mut usage, "recto", &mut script);
        if context.output.is_json() {
            let shell = self.shell.to_string();
            let script = String::from_utf8_lossy(&script);
            let document = serde_json::json!({ "shell": shell, "script": script });
            return context.output.json(&document, context.environment);
        }
        Ok(context.environment.output.write_all(&script)?)
    }
}
