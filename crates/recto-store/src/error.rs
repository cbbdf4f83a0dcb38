//! Everything that can go wrong in a store.

use crate::ConversationId;

/// Why a store did not do what it was asked for. Unless it says otherwise, nothing has changed.
///
/// Details of a database never show up here: they can quote what is stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address is not one of a store.
    #[error(
        "{given:?} is no address of a store; use memory:, sqlite:PATH (sqlite:/PATH for an absolute \
         one) or postgres://…"
    )]
    InvalidAddress {
        /// What was given.
        given: String,
    },
    /// This build cannot open such a store.
    #[error("this build has no {store} store; build it with the feature {store:?}")]
    NotBuilt {
        /// Which.
        store: &'static str,
    },
    /// Somebody else was quicker.
    #[error(
        "the conversation is at version {current}, not at {expected}; read it again and decide anew"
    )]
    VersionConflict {
        /// The version that the writer had seen.
        expected: u32,
        /// The newest one.
        current: u32,
    },
    /// Rows that were to be packed or replaced are not what the writer has read.
    #[error("older versions were packed or rewritten meanwhile; read the conversation again")]
    RowsChanged,
    /// There are forks that were not asked what they show.
    #[error("the conversation was forked meanwhile; look at its forks again and decide anew")]
    Forked,
    /// There is no such conversation.
    #[error("there is no conversation {name:?}; create it, or list those that there are")]
    ConversationNotFound {
        /// Its name or id.
        name: String,
    },
    /// There is one of that name already.
    #[error("there is a conversation {name:?} already; choose another name, or rename that one")]
    ConversationExists {
        /// The name.
        name: String,
    },
    /// A key that stood for another request.
    #[error("the idempotency key {key:?} was used for another request; choose a new key")]
    KeyReused {
        /// The key.
        key: String,
    },
    /// A name, a key or a tenant that not every store could keep.
    #[error("a {what} cannot {reason}")]
    InvalidText {
        /// What it should have been.
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
    /// Something else is where the store should be.
    #[error("{path} is not a store of Recto; choose another file, nothing was written to this one")]
    NotAStore {
        /// The file.
        path: String,
    },
    /// The stored form is newer than this program.
    #[error(
        "the store has format {found} and this program knows formats up to {known}; use a newer program"
    )]
    NewerFormat {
        /// What the store says.
        found: u32,
        /// What this program can read.
        known: u32,
    },
    /// What is stored does not hold together.
    #[error("what is stored of conversation {conversation} is damaged: {reason}")]
    Damaged {
        /// Where.
        conversation: ConversationId,
        /// What does not hold.
        reason: String,
    },
    /// The disk or the database did not do what it was asked for.
    #[error("the store failed while {doing}: {reason}; nothing was changed")]
    Failed {
        /// What it was at.
        doing: &'static str,
        /// What is known of the cause, without any stored data.
        reason: String,
    },
    /// The disk failed to make something durable. The store only reads from then on.
    #[error(
        "an earlier write could not be made durable, so the store is read-only; \
         look at the disk, then open the store again"
    )]
    ReadOnly,
    /// The connection or the disk failed at the moment of acceptance.
    #[error(
        "the store failed while the request was being accepted, so it may or may not have been; \
         repeat it with the same idempotency key to find out"
    )]
    UnknownOutcome,
    /// Something was erased or removed, but it could not be cleaned up behind it.
    #[error(
        "it is gone, but copies of it may be left in the files: {reason}; clean the store, or erase \
         it again"
    )]
    CopiesLeft {
        /// What is known of the cause.
        reason: String,
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
            | Error::InvalidText { .. }
            | Error::NoSearch => "invalid_operation",
            Error::NotBuilt { .. }
            | Error::NotAStore { .. }
            | Error::NewerFormat { .. }
            | Error::Damaged { .. }
            | Error::Failed { .. }
            | Error::ReadOnly
            | Error::UnknownOutcome
            | Error::CopiesLeft { .. } => "storage",
        }
    }

    pub(crate) fn failed(doing: &'static str, reason: impl ToString) -> Error {
        Error::Failed { doing, reason: reason.to_string() }
    }
}
