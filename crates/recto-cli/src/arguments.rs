//! Arguments that several commands share, as clap parses them. `command_line.rs` puts them together.

use clap::{Args, ValueEnum};

use crate::StreamInfo;

/// Options of every command.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "General options")]
pub(crate) struct General {
    /// Address of the store: sqlite:PATH, postgres://… or memory:
    ///
    /// Default: the value of RECTO_STORE, else a SQLite file in your data folder. A postgres:// address can
    /// set time limits: ?lock_timeout=2s (docs/postgres.md).
    #[arg(long, global = true, value_name = "ADDRESS")]
    pub(crate) store: Option<String>,

    /// Print the result as one JSON document (docs/cli.md describes it)
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// Use of colours. Default: auto
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        hide_default_value = true
    )]
    pub(crate) color: Colours,

    /// Print long output without a pager
    #[arg(long, global = true)]
    pub(crate) no_pager: bool,

    /// Print long lines and messages in full. Default: lines are cut at the terminal's width, else at 100
    #[arg(long, global = true)]
    pub(crate) full: bool,

    /// Print the result without remarks and notes
    #[arg(long, global = true)]
    pub(crate) quiet: bool,
}

/// Use of colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Colours {
    /// On a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    Always,
    Never,
}

impl Colours {
    /// Whether to use colours on a stream.
    pub(crate) fn for_stream(self, stream: StreamInfo) -> bool {
        match self {
            Colours::Auto => stream.colours,
            Colours::Always => true,
            Colours::Never => false,
        }
    }
}

/// Selects a conversation.
#[derive(Args, Clone, Debug)]
pub(crate) struct ConversationArgument {
    /// Conversation: name, id, a unique prefix of either, or @ for the last one used
    #[arg(short, long, value_name = "CONVERSATION", default_value = "@")]
    pub(crate) conversation: String,
}

/// Options of commands that delete data permanently.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct DestructiveArguments {
    /// Print what would be deleted, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Fail with `version_conflict` unless this is the newest version
    #[arg(long, value_name = "VERSION")]
    pub(crate) expect_version: Option<u32>,

    /// Skip the confirmation
    #[arg(long)]
    pub(crate) yes: bool,
}
