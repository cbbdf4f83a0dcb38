//! The arguments as they are written. What they mean is found out by the commands.

use clap::{Args, Parser, ValueEnum};

use crate::command::Command;

/// See, cut and take back what a model reads.
///
/// Recto keeps every message of a conversation and decides which of them the model reads. Every
/// change of that is a version: it can be compared, explained and taken back.
#[derive(Parser)]
#[command(
    name = "recto",
    version,
    propagate_version = false,
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "\
Conversations  new list info rename remove fork import export settings
Look           show log diff blame tokens grep timeline markmap snapshot
Change         append insert replace delete compress truncate filter clear arrange restore fit
               batch rollback undo redo mark unmark apply
Models         chat render lint cache-plan
Care           verify prune erase backup restore-backup doctor
Programs       exec completions (and --json everywhere)

New here? Try `recto demo`. Every command has examples: `recto help COMMAND`."
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) general: General,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command takes.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "General options")]
pub(crate) struct General {
    /// Where conversations are kept: sqlite:PATH, postgres://… or memory:
    ///
    /// Otherwise RECTO_STORE says it; otherwise it is a file in your data folder.
    #[arg(long, global = true, value_name = "ADDRESS")]
    pub(crate) store: Option<String>,

    /// Print one JSON document (docs/cli.md describes it)
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// When to use colours; NO_COLOR is respected
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        hide_default_value = true
    )]
    pub(crate) color: Colours,

    /// Never open a pager for long output
    #[arg(long, global = true)]
    pub(crate) no_pager: bool,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Colours {
    /// On a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    Always,
    Never,
}

/// Which conversation is meant.
#[derive(Args, Clone, Debug)]
pub(crate) struct OfConversation {
    /// The conversation: its name, its id, the beginning of one of them, or @ for the last one used,
    /// also if it was only looked at
    #[arg(short, long, value_name = "CONVERSATION", default_value = "@")]
    pub(crate) conversation: String,
}

/// What commands take that change something for good.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Caution {
    /// Print what would be gone, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Refuse if this is not the newest version any more
    #[arg(long, value_name = "VERSION")]
    pub(crate) expect_version: Option<u32>,

    /// Do not ask
    #[arg(long)]
    pub(crate) yes: bool,
}
