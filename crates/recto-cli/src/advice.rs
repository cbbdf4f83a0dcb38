//! Error texts for the command line.
//!
//! The texts of the engine and of the store name fields and operations of the API. The texts here name
//! commands and options instead.

use recto::blocking::Conversation;
use recto::{EngineError, Error, OperationKind, Outcome, PINNED, Query, StoreError, WarningCode};

use crate::failure::Failure;
use crate::numbers::runs;

/// The text of an error.
pub(crate) fn error_text(error: &Error) -> String {
    match error {
        Error::Engine(error) => engine_error_text(error),
        Error::Store(error) => store_error_text(error),
        error => error.to_string(),
    }
}

/// The text of an error of the model loop, with the command to use next.
pub(crate) fn agent_error_text(error: &recto_agent::Error) -> String {
    use recto_agent::Error as AgentError;
    match error {
        AgentError::Recto(error) => error_text(error),
        AgentError::OverLimit { limit, tokens, tried } if tried.is_empty() => format!(
            "the request has about {tokens} tokens, and the limit is {limit}; no compression is set: \
             `recto settings --compress-over TOKENS --compress-to TOKENS --compress-with STRATEGY` \
             sets one, `recto settings --token-limit TOKENS` raises the limit"
        ),
        AgentError::OverLimit { .. } => format!(
            "{error}; `recto settings --token-limit TOKENS` raises the limit, `recto truncate` and \
             `recto delete` hide messages"
        ),
        AgentError::FloorTooHigh { .. } => format!(
            "{error}: `recto settings --token-limit TOKENS` raises the limit, `recto unmark pinned ENTRY` \
             unpins an entry"
        ),
        error => error.to_string(),
    }
}

/// Adds advice to the error of a restoration: the name of a conversation in a backup cannot be chosen.
pub(crate) fn of_restoration(failure: Failure) -> Failure {
    let Failure::Recto(Error::Store(StoreError::ConversationExists { name })) = &failure else {
        return failure;
    };
    let text = format!(
        "nothing was copied: the store has another conversation {name:?}, or this one under another name \
         or with other versions; rename that one with `recto rename`, or restore into another store with \
         `--store sqlite:FILE`"
    );
    failure.with_text(text)
}

/// Adds the visible pinned entries to the error of a FIT whose budget is too small for what must stay.
pub(crate) fn of_budget(error: Error, conversation: &Conversation) -> Failure {
    let Error::Engine(cause) = &error else { return error.into() };
    let EngineError::BudgetTooSmall { .. } = cause.root() else { return error.into() };
    let pinned = conversation.query(&Query::marked(PINNED)).unwrap_or_default();
    if pinned.is_empty() {
        return error.into();
    }
    let pinned = runs(pinned.into_iter().map(|entry| entry.index));
    let text = format!(
        "{}, or `recto unpin {}` (pinned: {pinned})",
        engine_error_text(cause),
        pinned.replace('#', "")
    );
    Failure::Recto(error).with_text(text)
}

/// Adds the name of the conversation to an error about its versions.
pub(crate) fn of_version(failure: Failure, conversation: &str) -> Failure {
    let text = match &failure {
        Failure::Recto(Error::Engine(EngineError::VersionNotFound {
            version, current, ..
        })) => {
            format!("{conversation:?} has no version {version} yet; use 0 to {current}")
        }
        Failure::BeforeStart { back, newest } => format!(
            "{conversation:?} has no version now-{back}; use now-0 to now-{newest}, or v0 to v{newest}"
        ),
        _ => return failure,
    };
    failure.with_text(text)
}

/// The meaning of a warning, and the command that resolves it. The command for an empty view depends on the
/// request: [`empty_view_advice`].
pub(crate) fn warning_text(code: WarningCode) -> (&'static str, &'static str) {
    match code {
        WarningCode::TornCall => (
            "these tool calls are visible without their results",
            "`recto restore` shows the results again, `recto lint --fix` repairs the view",
        ),
        WarningCode::TornResult => (
            "these tool results are visible without their calls",
            "`recto restore` shows the calls again, `recto lint --fix` repairs the view",
        ),
        WarningCode::StaleTools => (
            "these tool descriptions do not describe the tools of the conversation",
            "`recto delete` hides them",
        ),
        WarningCode::ForeignMessage => (
            "these messages have tool calls in a field of another format, which is not read",
            "`recto import` and `recto append --messages FILE --format FORMAT` convert them",
        ),
        WarningCode::ViewEmpty => ("no message is visible", ""),
        WarningCode::IgnoredIndices => (
            "insert adds messages to the end and ignores indices",
            "`recto insert` and `recto replace` take a position",
        ),
        _ => ("the view has a problem", "`recto lint` names it"),
    }
}

/// The command that shows the messages again that a request hid, if it emptied the view.
pub(crate) fn empty_view_advice(outcome: &Outcome) -> Option<&'static str> {
    Some(match outcome.restored_by()? {
        OperationKind::Redo => "`recto redo` restores the view",
        _ => "`recto undo` restores the view",
    })
}

fn engine_error_text(error: &EngineError) -> String {
    match error {
        EngineError::Pinned { index, .. } => {
            format!("log entry {index} is pinned; unpin it first: `recto unpin {index}`")
        }
        EngineError::NotVisible { index } => format!(
            "log entry {index} is hidden; choose a visible one, or restore it first: \
             `recto restore {index}`"
        ),
        EngineError::BudgetTooSmall { needed, max_tokens } => format!(
            "no messages fit into {max_tokens} tokens in addition to those that must stay; use \
             --max-tokens {needed} or more, or --drop-system"
        ),
        EngineError::NoBatchStarted => {
            "no `recto batch start` is open; give the batch: `recto batch end BATCH`".to_owned()
        }
        EngineError::NothingToCompress => {
            "none of the entries is visible, so there is no position for the summary; omit the \
             summary, or give entries that `recto show` lists"
                .to_owned()
        }
        EngineError::NothingToRedo => {
            "there is nothing to redo: `recto redo` works directly after `recto undo`, before any \
             other change"
                .to_owned()
        }
        EngineError::TooLarge { what, size, limit, .. } => {
            format!("{what} is {size}, over the limit of {limit}; split it")
        }
        EngineError::InList { number, error } => {
            format!("operation {} of the list: {}", number + 1, engine_error_text(error))
        }
        error => error.to_string(),
    }
}

fn store_error_text(error: &StoreError) -> String {
    match error {
        StoreError::NotBuilt { store } => format!(
            "this build of recto has no {store} store; build it with that feature: `cargo install --locked --path \
             crates/recto-cli --features {store}`"
        ),
        StoreError::ConversationNotFound { name } => format!(
            "there is no conversation {name:?}; `recto list` lists all, `recto new` creates one"
        ),
        StoreError::ConversationExists { name } => format!(
            "the conversation {name:?} already exists; choose another name, or rename that one with \
             `recto rename`"
        ),
        StoreError::VersionConflict { expected, current } => format!(
            "the conversation is at version {current}, not {expected}; `recto log` shows what \
             changed"
        ),
        StoreError::KeyReused { key } => {
            format!("the key {key:?} was used for another request; use a new --key")
        }
        StoreError::UnknownOutcome => {
            "the store failed during the commit, so the change may or may not be stored; `recto log` and \
             `recto list` show what is stored. A change with a --key, and `recto restore-backup`, can be repeated: \
             what is stored is not stored again"
                .to_owned()
        }
        error => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use recto::StoreError;

    use crate::failure::Failure;

    #[test]
    fn a_build_without_a_store_names_the_feature() {
        let failure = Failure::from(StoreError::NotBuilt { store: "postgres" });
        assert_eq!(failure.exit_code(), 3);
        let text = failure.to_string();
        assert!(text.contains("no postgres store"), "{text}");
        assert!(text.contains("--features postgres"), "{text}");
    }
}
