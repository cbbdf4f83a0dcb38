//! The command line as a whole: the general options and one command.

use clap::{CommandFactory, FromArgMatches, Parser};

use crate::arguments::General;
use crate::command::{Command, GROUPS};
use crate::page::{HEADING, STRONG};

/// View, cut and restore what a model reads.
///
/// Recto keeps every message of a conversation and decides which of them the model reads. Every
/// change is a version, which can be compared, explained and undone.
#[derive(Parser)]
#[command(
    name = "recto",
    version,
    propagate_version = false,
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "\
New to Recto? Start with `recto demo`. `recto help COMMAND` describes a command, with examples."
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) general: General,
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Arguments {
    /// Parses arguments. The first one is the name of the program.
    pub(crate) fn parse_from(arguments: &[std::ffi::OsString]) -> Result<Arguments, clap::Error> {
        let mut usage = Self::usage();
        let matches = usage.try_get_matches_from_mut(arguments)?;
        Arguments::from_arg_matches(&matches).map_err(|error| error.format(&mut usage))
    }

    /// The description of the command line. Help lists the commands by group.
    pub(crate) fn usage() -> clap::Command {
        let usage = Arguments::command();
        let groups = command_groups(&usage);
        let template = format!(
            "{{before-help}}{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}\
             {HEADING}Options:{HEADING:#}\n{{options}}{{after-help}}"
        );
        usage.help_template(template)
    }
}

/// The commands by group, each with its summary.
fn command_groups(usage: &clap::Command) -> String {
    let width = usage.get_subcommands().map(|command| command.get_name().len()).max().unwrap_or(0);
    let mut text = String::new();
    for (group, commands) in GROUPS {
        text.push_str(&format!("{HEADING}{group}:{HEADING:#}\n"));
        for name in *commands {
            let command = usage.find_subcommand(name).expect("groups list existing commands");
            let summary = command.get_about().cloned().unwrap_or_default();
            text.push_str(&format!("  {STRONG}{name:<width$}{STRONG:#}  {summary}\n"));
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All commands and their subcommands, such as `batch start`.
    fn with_subcommands(command: &clap::Command) -> Vec<clap::Command> {
        let subcommands = command.get_subcommands().filter(|command| command.get_name() != "help");
        subcommands
            .flat_map(|command| std::iter::once(command.clone()).chain(with_subcommands(command)))
            .collect()
    }

    #[test]
    fn a_summary_is_an_imperative_of_at_most_ten_words() {
        for command in with_subcommands(&Arguments::usage()) {
            let name = command.get_name();
            let summary = command.get_about().expect("a command has a summary").to_string();
            let words: Vec<&str> = summary.split_whitespace().collect();
            assert!(words.len() <= 10, "{name} has {} words: {summary}", words.len());
            // An imperative has no -s, and no article in front.
            let verb = words[0];
            assert!(verb.starts_with(char::is_uppercase), "{name}: {summary}");
            assert!(
                !verb.ends_with('s') && !["The", "A", "An"].contains(&verb),
                "{name}: {summary}"
            );
            assert!(!summary.ends_with('.'), "{name}: {summary}");
        }
    }

    #[test]
    fn each_command_is_in_exactly_one_group() {
        let usage = Arguments::usage();
        let mut listed: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        let mut known: Vec<&str> = usage.get_subcommands().map(clap::Command::get_name).collect();
        listed.sort_unstable();
        known.sort_unstable();
        assert_eq!(listed, known);
    }

    #[test]
    fn the_help_of_an_option_starts_with_a_noun_or_a_verb_and_names_its_default() {
        for command in with_subcommands(&Arguments::usage()) {
            for argument in command.get_arguments() {
                let name = format!("{} {}", command.get_name(), argument.get_id());
                let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
                let first = help.split_whitespace().next().unwrap_or_else(|| panic!("{name}"));
                let not_allowed =
                    ["The", "A", "An", "What", "Which", "Why", "How", "So", "It", "As", "Of"];
                assert!(!not_allowed.contains(&first), "{name}: {help}");
                if argument.is_hide_default_value_set() && !argument.get_default_values().is_empty()
                {
                    assert!(help.contains("Default: "), "{name}: {help}");
                }
            }
        }
    }
}
