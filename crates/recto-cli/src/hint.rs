//! Hints for arguments that cannot be parsed.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::arguments::Arguments;

/// Adds a hint to an error. A common mistake is a value without its option, above all a conversation
/// without `-c`.
pub(crate) fn with_hint(mut error: clap::Error, arguments: &[OsString]) -> clap::Error {
    let kind = match error.kind() {
        ErrorKind::UnknownArgument => ContextKind::InvalidArg,
        ErrorKind::ValueValidation => ContextKind::InvalidValue,
        _ => return error,
    };
    // An invalid value gets a hint only if it may be a name: `recto show support`.
    let is_entries = matches!(error.get(ContextKind::InvalidArg),
        Some(ContextValue::String(argument)) if argument.contains("ENTRIES"));
    if kind == ContextKind::InvalidValue && !is_entries {
        return error;
    }
    let Some(ContextValue::String(value)) = error.get(kind) else { return error };
    let commands = Arguments::usage();
    let mut given = arguments.iter().skip(1).filter_map(|argument| argument.to_str());
    let command = given.find_map(|argument| commands.find_subcommand(argument));
    let hint = command.filter(|_| !value.starts_with('-')).and_then(|command| of(command, value));
    if let Some(hint) = hint {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![hint.into()]));
    }
    error
}

/// The option that a value probably belongs to.
fn of(command: &clap::Command, value: &str) -> Option<String> {
    let is_number = value.trim_start_matches('v').parse::<u64>().is_ok();
    let has_name = command
        .get_arguments()
        .any(|argument| argument.get_id() == "conversation" && argument.get_short() == Some('c'));
    match (command.get_name(), is_number) {
        ("fit", true) => Some(format!("use `--max-tokens {value}`")),
        ("rollback", true) => Some(format!("use `--to-version {value}`")),
        ("log", true) => Some(format!("use `-n {value}`")),
        ("truncate", true) => Some(format!("use `--keep-last {value}`")),
        ("append" | "insert" | "replace", _) => Some(format!("use `--text '{value}'`")),
        (_, false) if has_name => Some(format!("to select a conversation, use `-c {value}`")),
        _ => None,
    }
}
