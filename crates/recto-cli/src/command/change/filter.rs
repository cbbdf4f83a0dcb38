//! `recto filter`: FILTER.

use clap::Args;
use recto::{Filter as Operation, Role};

use super::ChangeArguments;
use super::clear::scope;
use crate::context::Context;
use crate::failure::Failure;
use crate::message_input::{role_parser, role_set};

/// Keep messages by role and text, and hide the others.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto filter --role user --role assistant
  recto filter --contains checkout --contains payment
  recto filter --excludes 'DEBUG' --dry-run")]
#[group(id = "criteria", required = true, multiple = true)]
pub(crate) struct Filter {
    /// Keep messages of this role; can be repeated
    #[arg(long, value_name = "ROLE", value_parser = role_parser(), group = "criteria")]
    role: Vec<Role>,
    /// Keep messages that contain this text; if repeated, at least one of them
    #[arg(long, value_name = "TEXT", aliases = ["keyword", "keywords"], group = "criteria")]
    contains: Vec<String>,
    /// Hide messages that contain this text; can be repeated
    #[arg(long, value_name = "TEXT", group = "criteria")]
    excludes: Vec<String>,
    /// Select from the whole log instead of the view
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    change: ChangeArguments,
}

impl Filter {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<(), Failure> {
        let given = |words: Vec<String>| (!words.is_empty()).then_some(words);
        let operation = Operation {
            roles: role_set(&self.role),
            content_contains: given(self.contains),
            content_excludes: given(self.excludes),
            scope: scope(self.all),
        };
        self.change.operation(operation, context)
    }
}
