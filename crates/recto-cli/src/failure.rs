//! Why a command failed, and which exit code says so.

use std::io;

use serde_json::{Value, json};

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The engine or the store refused something.
    #[error(transparent)]
    Recto(#[from] recto::Error),
    /// The arguments do not say what is wanted.
    #[error("{0}")]
    Usage(String),
    /// A file that a command should read.
    #[error("cannot read {file}: {reason}")]
    Input { file: String, reason: String },
    /// Several conversations could be meant.
    #[error("{given:?} could be {}; write more of it", .candidates.join(", "))]
    Ambiguous { given: String, candidates: Vec<String> },
    /// `@` where nothing was used yet.
    #[error(
        "no conversation was used in this store yet; name one with -c, or create one with `recto new`"
    )]
    NothingUsed,
    /// There is no store yet.
    #[error("there is no store at {place} yet; `recto new NAME` creates it")]
    NoStore { place: String },
    /// Something that was looked at does not hold together.
    #[error("{0}")]
    Unsound(String),
    /// The same, where the answer has said it already.
    #[error("see the answer")]
    Told,
    /// Something that cannot be taken back, without a yes.
    #[error("{0} cannot be taken back; say --yes if you mean it")]
    NotConfirmed(String),
    /// Ctrl-C.
    #[error("interrupted; what was done before is kept, and nothing is half done")]
    Interrupted,
    /// The output could not be written.
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
    /// A file could not be written.
    #[error("cannot write {file}: {reason}")]
    Write { file: String, reason: String },
}

impl From<recto::EngineError> for Failure {
    fn from(error: recto::EngineError) -> Failure {
        Failure::Recto(error.into())
    }
}

impl From<recto::StoreError> for Failure {
    fn from(error: recto::StoreError) -> Failure {
        Failure::Recto(error.into())
    }
}

impl Failure {
    /// Whether the reader went away before everything was written, as `head` does.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        matches!(self, Failure::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// 1 refused by a rule, 2 wrong usage, 3 storage; 130 after Ctrl-C, as shells expect.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Failure::Recto(recto::Error::Store(recto::StoreError::InvalidAddress { .. }))
            | Failure::Usage(_)
            | Failure::Input { .. }
            | Failure::NotConfirmed(_) => 2,
            Failure::Recto(error) if error.code() == "storage" => 3,
            Failure::Recto(_) | Failure::Ambiguous { .. } | Failure::NothingUsed => 1,
            Failure::NoStore { .. }
            | Failure::Unsound(_)
            | Failure::Told
            | Failure::Output(_)
            | Failure::Write { .. } => 3,
            Failure::Interrupted => 130,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Failure::Recto(error) => error.code(),
            Failure::Usage(_) | Failure::Input { .. } | Failure::NotConfirmed(_) => "usage",
            Failure::Ambiguous { .. } | Failure::NothingUsed => "conversation_not_found",
            Failure::NoStore { .. }
            | Failure::Unsound(_)
            | Failure::Told
            | Failure::Output(_)
            | Failure::Write { .. } => "storage",
            Failure::Interrupted => "interrupted",
        }
    }

    /// As the contract writes errors.
    pub(crate) fn to_json(&self) -> Value {
        match self {
            Failure::Recto(error) => error.to_json(),
            Failure::Ambiguous { candidates, .. } => json!({
                "error": {
                    "code": self.code(),
                    "message": self.to_string(),
                    "details": { "candidates": candidates },
                }
            }),
            _ => json!({ "error": { "code": self.code(), "message": self.to_string() } }),
        }
    }
}
