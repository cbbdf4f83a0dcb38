//! Hints for arguments that cannot be parsed.

use std::ffi::OsString;
use std::num::ParseIntError;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::command_line::Arguments;

/// Adds a hint to an error. Common mistakes are a value without its option, above all a conversation
/// without `-c`, and options of other commands.
pub(crate) fn with_hint(mut error: clap::Error, arguments: &[OsString]) -> clap::Error {
    let kind = match error.kind() {
        ErrorKind::UnknownArgument => ContextKind::InvalidArg,
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => ContextKind::InvalidValue,
        _ => return error,
    };
    if std::error::Error::source(&error).is_some_and(|source| source.is::<ParseIntError>()) {
        return of_number(&error);
    }
    let Some(ContextValue::String(value)) = error.get(kind) else { return error };
    let argument = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(argument)) => argument.as_str(),
        _ => "",
    };
    // An invalid value gets a hint if it is a role or may be a name: `recto show support`.
    if kind == ContextKind::InvalidValue
        && !["--role", "ENTRIES"].iter().any(|it| argument.contains(it))
    {
        return error;
    }
    let commands = Arguments::usage();
    let mut given = arguments.iter().skip(1).filter_map(|argument| argument.to_str());
    let Some(command) = given.find_map(|argument| commands.find_subcommand(argument)) else {
        return error;
    };
    let hint = match kind {
        ContextKind::InvalidValue if argument.contains("--role") => of_role(value),
        _ if value.starts_with('-') => of_option(command, value),
        _ => of_value(command, value),
    };
    if let Some(hint) = hint {
        // Clap suggests arguments with a similar spelling, which is misleading here.
        error.remove(ContextKind::SuggestedArg);
        error.remove(ContextKind::SuggestedValue);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![hint.into()]));
    }
    error
}

/// The error for a value that is not a number, without the text of the parser.
fn of_number(error: &clap::Error) -> clap::Error {
    let mut again = clap::Error::new(error.kind()).with_cmd(&Arguments::usage());
    for (kind, value) in error.context() {
        again.insert(kind, value.clone());
    }
    let hint = "use a whole number, such as 8000".to_owned();
    again.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![hint.into()]));
    again
}

/// What to use instead of `call`, a label that lists print in the column of the role.
fn of_role(value: &str) -> Option<String> {
    let is_call = matches!(value, "call" | "calls");
    is_call.then(|| {
        "a call is a message of the assistant with tool calls: use `--role assistant`".to_owned()
    })
}

/// What to use instead of an option that the command does not have.
fn of_option(command: &clap::Command, option: &str) -> Option<String> {
    let option = option.split('=').next().unwrap_or(option);
    let number = option.trim_start_matches('-');
    if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(format!("the number has no sign: {number}"));
    }
    match (command.get_name(), option) {
        ("insert" | "replace", "--at") => {
            Some("use `--position`; `--at` is a version in other commands".to_owned())
        }
        (_, "--version") if has_option(command, "at") => {
            Some("use `--at VERSION`, such as `--at 2`".to_owned())
        }
        ("undo" | "redo", "--version" | "--to-version" | "--at" | "--to") => {
            Some("use `recto rollback --to-version VERSION`".to_owned())
        }
        (name, "-c" | "--conversation") if names_by_position(command) => {
            Some(format!("the name stands without `{option}`: `recto {name} NAME`"))
        }
        (_, "--for") => Some("use `recto render --for PROVIDER` or `recto lint`".to_owned()),
        (_, "--position") => {
            Some("use log entries, such as 3 or 5-8: `recto show` prints them".to_owned())
        }
        _ => None,
    }
}

/// Whether a command takes the name of a conversation without an option.
fn names_by_position(command: &clap::Command) -> bool {
    let names = ["conversation", "conversations", "name"];
    command.get_positionals().any(|argument| names.contains(&argument.get_id().as_str()))
}

fn has_option(command: &clap::Command, name: &str) -> bool {
    command.get_arguments().any(|argument| argument.get_long() == Some(name))
}

/// The option that a value probably belongs to, or the form that it should have.
fn of_value(command: &clap::Command, value: &str) -> Option<String> {
    let is_number = value.trim_start_matches('v').parse::<u64>().is_ok();
    let has_name = command
        .get_arguments()
        .any(|argument| argument.get_id() == "conversation" && argument.get_short() == Some('c'));
    let is_list =
        value.contains(',') && value.bytes().all(|it| it.is_ascii_digit() || b",-".contains(&it));
    if is_list {
        return Some(format!("separate entries by spaces: `{}`", value.replace(',', " ")));
    }
    match (command.get_name(), is_number) {
        (name @ ("mark" | "unmark"), false) => {
            Some(format!("the mark precedes the entries: `recto {name} {value} ENTRIES`"))
        }
        ("fit", true) => Some(format!("use `--max-tokens {value}`")),
        ("rollback", true) => Some(format!("use `--to-version {value}`")),
        ("log", true) => Some(format!("use `-n {value}`")),
        ("truncate", true) => Some(format!("use `--keep-last {value}`")),
        ("insert" | "replace", true) => Some(format!("use `--position {value}`")),
        ("append" | "insert" | "replace", _) => Some(format!("use `--text '{value}'`")),
        (_, false) if has_name => Some(format!("to select a conversation, use `-c {value}`")),
        _ => None,
    }
}
