//! The errors of a store.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use crate::ConversationId;

/// An error of a store. Unless its text says otherwise, nothing has changed.
///
/// Texts and causes contain no message of a database, because that can quote stored data.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address is not one of a store.
    #[error(
        "{given:?} is not an address of a store; use memory:, sqlite:PATH (sqlite:/PATH for an absolute \
         one) or postgres://…"
    )]
    InvalidAddress {
        /// What was given.
        given: String,
    },
    /// A parameter in the address of a store is unknown or has an invalid value.
    #[error("the address of the store is invalid: {reason}")]
    InvalidParameter {
        /// What is wrong, and what is allowed. It contains no part of a password.
        reason: String,
    },
    /// This build cannot open such a store.
    #[error("this build has no {store} store; build it with the feature {store:?}")]
    NotBuilt {
        /// The kind of store, which is the name of the feature.
        store: &'static str,
    },
    /// Another writer has added a version.
    #[error(
        "the conversation is at version {current}, not at {expected}; read it again before the next attempt"
    )]
    VersionConflict {
        /// The version that the writer expected.
        expected: u32,
        /// The newest one.
        current: u32,
    },
    /// Rows to be packed or replaced differ from those that the writer has read.
    #[error(
        "older versions were packed or rewritten at the same time; read the conversation again"
    )]
    RowsChanged,
    /// A fork was created that the rewrite does not take into account.
    #[error(
        "the conversation was forked at the same time; read its forks again before the next attempt"
    )]
    Forked,
    /// There is no such conversation.
    #[error("there is no conversation {name:?}; create it, or list the existing ones")]
    ConversationNotFound {
        /// Its name or id.
        name: String,
    },
    /// A conversation of that name or id exists.
    #[error("there is a conversation {name:?} already; choose another name, or rename that one")]
    ConversationExists {
        /// The name.
        name: String,
    },
    /// The idempotency key was used for another request.
    #[error("the idempotency key {key:?} was used for another request; choose a new key")]
    KeyReused {
        /// The key.
        key: String,
    },
    /// A name, key or tenant that not every store can hold, or a malformed id of a conversation.
    #[error("a {what} cannot {reason}")]
    InvalidText {
        /// The kind of text: `name`, `key`, `tenant` or `conversation id`.
        what: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The store has no search index.
    #[error(
        "this store was created without a search index, so it cannot be searched; \
         make a backup and restore it into a store that is created with search"
    )]
    NoSearch,
    /// The file exists and is not a store.
    #[error("{path} is not a store of Recto; choose another file, nothing was written to this one")]
    NotAStore {
        /// The file.
        path: String,
    },
    /// The format of the store is newer than this program.
    #[error(
        "the store has format {found} and this program supports formats up to {known}; use a newer program"
    )]
    NewerFormat {
        /// The format of the store.
        found: u32,
        /// The newest format that this program supports.
        known: u32,
    },
    /// Stored rows are damaged.
    #[error("what is stored of conversation {conversation} is damaged: {reason}")]
    Damaged {
        /// The conversation.
        conversation: ConversationId,
        /// What is damaged.
        reason: String,
    },
    /// Rows of the store are damaged.
    #[error("the store is damaged: {}", first_of(.damage))]
    DamagedStore {
        /// Descriptions of the damage.
        damage: Vec<String>,
    },
    /// The disk or the database failed.
    #[error("the store failed while {action}: {reason}; nothing was changed")]
    Failed {
        /// The operation that failed.
        action: &'static str,
        /// The reason in words, without any stored data.
        reason: String,
        /// The cause, if there is one.
        source: Option<Cause>,
    },
    /// An earlier commit could not be synced. The store is read-only until it is opened again.
    #[error(
        "an earlier write could not be made durable, so the store is read-only; \
         look at the disk, then open the store again"
    )]
    ReadOnly,
    /// The request may be stored: the connection or the disk failed during the commit, or the server did not
    /// answer.
    #[error(
        "the store failed while it accepted the request, so the outcome is unknown; \
         repeat the request with the same idempotency key to find out"
    )]
    UnknownOutcome,
    /// Data was erased or removed, but copies may be left in the files.
    #[error(
        "the data is erased, but copies of it may be left in the files: {reason}; clean the store, or \
         erase it again"
    )]
    CopiesLeft {
        /// The reason in words, without any stored data.
        reason: String,
        /// The cause, if there is one.
        source: Option<Cause>,
    },
}

impl Error {
    /// The code of the contract.
    pub fn code(&self) -> &'static str {
        match self {
            Error::VersionConflict { .. } | Error::RowsChanged | Error::Forked => {
                "version_conflict"
            }
            Error::ConversationNotFound { .. } => "conversation_not_found",
            Error::ConversationExists { .. } => "conversation_exists",
            Error::KeyReused { .. }
            | Error::InvalidAddress { .. }
            | Error::InvalidParameter { .. }
            | Error::InvalidText { .. }
            | Error::NoSearch => "invalid_operation",
            Error::NotBuilt { .. }
            | Error::NotAStore { .. }
            | Error::NewerFormat { .. }
            | Error::Damaged { .. }
            | Error::DamagedStore { .. }
            | Error::Failed { .. }
            | Error::ReadOnly
            | Error::UnknownOutcome
            | Error::CopiesLeft { .. } => "storage",
        }
    }

    /// Whether another writer changed the conversation first. Read it again before the next attempt.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Error::VersionConflict { .. } | Error::RowsChanged | Error::Forked)
    }

    /// Whether the rows or the structures of the database are damaged. A database that is locked, stopped,
    /// full or cannot be reached is not damaged.
    pub fn is_damage(&self) -> bool {
        match self {
            Error::Damaged { .. } | Error::DamagedStore { .. } => true,
            Error::Failed { source, .. } => source.as_ref().is_some_and(Cause::is_damage),
            _ => false,
        }
    }

    pub(crate) fn failed(action: &'static str, reason: impl Into<Reason>) -> Error {
        let Reason { text, cause } = reason.into();
        Error::Failed { action, reason: text, source: cause }
    }
}

/// The first of several texts, and how many follow.
fn first_of(texts: &[String]) -> String {
    match texts {
        [] => String::new(),
        [only] => only.clone(),
        [first, rest @ ..] => format!("{first} (and {} more)", rest.len()),
    }
}

/// The cause of a store error: an I/O error, a result code of SQLite, a stored value of the wrong type, or a
/// SQLSTATE. It contains no stored data and no password.
#[derive(Clone)]
pub struct Cause {
    error: Arc<dyn StdError + Send + Sync>,
    is_damage: bool,
}

impl Cause {
    pub(crate) fn new(error: impl StdError + Send + Sync + 'static, is_damage: bool) -> Cause {
        Cause { error: Arc::new(error), is_damage }
    }

    /// Whether the database reports damage, or fails in a way that only damage explains.
    pub(crate) fn is_damage(&self) -> bool {
        self.is_damage
    }

    /// The cause as a concrete type, such as [`std::io::Error`].
    pub fn downcast_ref<T: StdError + 'static>(&self) -> Option<&T> {
        self.error.downcast_ref()
    }
}

impl From<std::io::Error> for Cause {
    fn from(error: std::io::Error) -> Cause {
        Cause::new(error, false)
    }
}

impl fmt::Debug for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.error, f)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.error, f)
    }
}

impl StdError for Cause {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.error.source()
    }
}

impl PartialEq for Cause {
    /// Causes are equal if their texts are.
    fn eq(&self, other: &Cause) -> bool {
        self.to_string() == other.to_string()
    }
}

impl Eq for Cause {}

/// Why a store failed: a text without stored data, and the cause.
#[derive(Debug)]
pub(crate) struct Reason {
    pub(crate) text: String,
    pub(crate) cause: Option<Cause>,
}

impl Reason {
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub(crate) fn with_cause(self, cause: Cause) -> Reason {
        Reason { cause: Some(cause), ..self }
    }
}

impl From<String> for Reason {
    fn from(text: String) -> Reason {
        Reason { text, cause: None }
    }
}

impl From<&str> for Reason {
    fn from(text: &str) -> Reason {
        text.to_owned().into()
    }
}

impl From<std::io::Error> for Reason {
    fn from(error: std::io::Error) -> Reason {
        Reason { text: error.kind().to_string(), cause: Some(error.into()) }
    }
}
