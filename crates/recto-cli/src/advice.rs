//! What the engine and the store refuse, in the words of the command line: their own advice names
//! fields and operations, which nobody types here.

use recto::{EngineError, Error, StoreError, WarningCode};

/// What is said of an error to whoever typed a command.
pub(crate) fn said(error: &Error) -> String {
    match error {
        Error::Engine(error) => of_engine(error),
        Error::Store(error) => of_store(error),
        error => error.to_string(),
    }
}

/// What is said of a run that failed, and what to type next.
pub(crate) fn of_agent(error: &recto_agent::Error) -> String {
    use recto_agent::Error as AgentError;
    match error {
        AgentError::Recto(error) => said(error),
        AgentError::Call(_) => format!(
            "{error}. What was said is kept: `recto chat --again` asks again, `recto truncate \
             --remove-last 1` takes it back"
        ),
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
            "{error}: `recto settings --token-limit TOKENS` raises it, `recto unmark pinned ENTRY` \
             unpins. A message that is too long is not kept"
        ),
        error => error.to_string(),
    }
}

/// What an edit tore apart, and what to do about it.
pub(crate) fn of_warning(code: WarningCode) -> (&'static str, &'static str) {
    match code {
        WarningCode::TornCall => (
            "these tool calls are visible without their results",
            "`recto restore` brings the results back, `recto lint --fix` puts the view right",
        ),
        WarningCode::TornResult => (
            "these tool results are visible without their calls",
            "`recto restore` brings the calls back, `recto lint --fix` puts the view right",
        ),
        WarningCode::StaleTools => (
            "these tool descriptions do not describe the tools of the conversation",
            "`recto delete` hides them",
        ),
        WarningCode::ForeignMessage => (
            "these messages have tool calls in a field of another format, which is not read",
            "`recto import` and `recto append --messages FILE --format FORMAT` convert them",
        ),
        WarningCode::ViewEmpty => ("nothing is visible", "`recto undo` brings the view back"),
        WarningCode::IgnoredIndices => (
            "insert adds to the end and does not use indices",
            "`recto insert` and `recto replace` act on a place",
        ),
        _ => ("the view has a problem", "`recto lint` names it"),
    }
}

fn of_engine(error: &EngineError) -> String {
    match error {
        EngineError::Pinned { index, .. } => format!(
            "log entry {index} is pinned; take the mark off first: `recto unmark pinned {index}`"
        ),
        EngineError::NotVisible { index } => format!(
            "log entry {index} is hidden; name a visible one, or bring it back first: \
             `recto restore {index}`"
        ),
        EngineError::BudgetTooSmall { needed, max_tokens } => format!(
            "no run of messages fits into {max_tokens} tokens beside what must stay; use \
             --max-tokens {needed} or more, --drop-system, or unpin entries with `recto unmark pinned`"
        ),
        EngineError::NoBatchStarted => {
            "there is no `recto batch start` to return from; name the batch: `recto batch end BATCH`"
                .to_owned()
        }
        EngineError::NothingToCompress => {
            "none of the entries is visible, so the summary has no place; leave it out, or name \
             entries that `recto show` lists"
                .to_owned()
        }
        EngineError::NothingToRedo => {
            "there is nothing to put back: `recto redo` follows `recto undo`, and any other change \
             ends it"
                .to_owned()
        }
        EngineError::TooLarge { what, size, limit, .. } => {
            format!("{what} is {size}, over the limit of {limit}; split it")
        }
        EngineError::InList { number, error } => {
            format!("operation {} of the list: {}", number + 1, of_engine(error))
        }
        error => error.to_string(),
    }
}

fn of_store(error: &StoreError) -> String {
    match error {
        StoreError::ConversationNotFound { name } => format!(
            "there is no conversation {name:?}; `recto list` names those that there are, `recto \
             new` makes one"
        ),
        StoreError::ConversationExists { name } => format!(
            "there is a conversation {name:?} already; choose another name, or give that one \
             another with `recto rename`"
        ),
        StoreError::VersionConflict { expected, current } => format!(
            "the conversation is at version {current}, not at {expected}; look at it again with \
             `recto log`, and decide anew"
        ),
        StoreError::KeyReused { key } => {
            format!("the key {key:?} was used for another request; choose a new --key")
        }
        StoreError::UnknownOutcome => {
            "the store failed while the request was being accepted, so it may or may not have \
             been; look at `recto log`, or repeat it with the same --key"
                .to_owned()
        }
        error => error.to_string(),
    }
}
