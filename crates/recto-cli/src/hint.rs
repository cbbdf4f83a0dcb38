//! What was probably meant by arguments that cannot be read.

use std::ffi::OsString;

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::arguments::Arguments;

/// The complaint with a hint: values are often given without their option, a conversation without
/// `-c` first of all.
pub(crate) fn with_hint(mut error: clap::Error, arguments: &[OsString]) -> clap::Error {
    let kind = match error.kind() {
        ErrorKind::UnknownArgument => ContextKind::InvalidArg,
        ErrorKind::ValueValidation => ContextKind::InvalidValue,
        _ => return error,
    };
    // Only for values that could be names: `recto show support`, where entries are numbers.
    let is_entries = matches!(error.get(ContextKind::InvalidArg),
        Some(ContextValue::String(argument)) if argument.contains("ENTRIES"));
    if kind == ContextKind::InvalidValue && !is_entries {
        return error;
    }
    let Some(ContextValue::String(value)) = error.get(kind) else { return error };
    let commands = Arguments::command();
    let mut given = arguments.iter().skip(1).filter_map(|argument| argument.to_str());
    let command = given.find_map(|argument| commands.find_subcommand(argument));
    let hint = command.filter(|_| !value.starts_with('-')).and_then(|command| of(command, value));
    if let Some(hint) = hint {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![hint.into()]));
    }
    error
}

/// Where a value of a command belongs.
fn of(command: &clap::Command, value: &str) -> Option<String> {
    let is_number = value.trim_start_matches('v').parse::<u64>().is_ok();
    let has_name = command
        .get_arguments()
        .any(|argument| argument.get_id() == "conversation" && argument.get_short() == Some('c'));
    match (command.get_name(), is_number) {
        ("fit", true) => Some(format!("the budget is named: `--max-tokens {value}`")),
        ("rollback", true) => Some(format!("a version is named: `--to-version {value}`")),
        ("log", true) => Some(format!("how many versions is named: `-n {value}`")),
        ("truncate", true) => Some(format!("how many stay is named: `--keep-last {value}`")),
        ("append" | "insert" | "replace", _) => {
            Some(format!("a text is named: `--text '{value}'`"))
        }
        (_, false) if has_name => Some(format!("a conversation is named with -c: `-c {value}`")),
        _ => None,
    }
}
