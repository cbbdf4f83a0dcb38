//! Why a command failed, and which exit code says so.

use std::io;
use std::path::Path;

use serde_json::{Value, json};

use crate::advice;
use crate::place::Source;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The engine or the store refused something.
    #[error("{}", advice::said(.0))]
    Recto(#[source] recto::Error),
    /// A transcript that cannot be read, or a view that cannot be rendered.
    #[error(transparent)]
    Format(#[from] recto_format::Error),
    /// A message among several.
    #[error("message {number}: {cause}")]
    Message { number: usize, cause: recto::EngineError },
    /// A message in the words of another format, which would be lost.
    #[error(
        "message {number} is written as {format} has it, and would lose its meaning here; \
         say --format {format} to convert it, or `recto import --format {format}` a whole transcript"
    )]
    Foreign { number: usize, format: recto_format::Format },
    /// A model that did not answer, or a request that cannot be sent.
    #[error("{}", advice::of_agent(.0))]
    Agent(#[from] recto_agent::Error),
    /// A file without a single message.
    #[error("the file holds no messages (read as {format})")]
    NothingToImport { format: &'static str },
    /// An import that failed, and what it has left in the store: names and reasons.
    #[error("{}; {}", said(.cause), left_behind(.left))]
    NotImported { cause: Box<Failure>, left: Vec<(String, String)> },
    /// The arguments do not say what is wanted.
    #[error("{0}")]
    Usage(String),
    /// A file that a command should read.
    #[error("cannot read {file}: {}", without_number(.reason))]
    Input { file: String, reason: String },
    /// Several conversations could be meant.
    #[error("{given:?} could be {}; write more of it", .candidates.join(", "))]
    Ambiguous { given: String, candidates: Vec<String> },
    /// None is called that, but something like it.
    #[error("there is no conversation {given:?}; did you mean {}?", .similar.join(" or "))]
    Misnamed { given: String, similar: Vec<String> },
    /// `@` where nothing was used yet.
    #[error(
        "no conversation was used in this store yet; name one with -c, or create one with `recto new`"
    )]
    NothingUsed,
    /// `now-9` where there are fewer versions.
    #[error("there is no version now-{back}; use now-0 to now-{newest}, or v0 to v{newest}")]
    BeforeStart { back: u32, newest: u32 },
    /// There is no store yet.
    #[error(
        "there is no store at {place} ({}); `recto new NAME` or `recto import FILE` creates it, and \
         --store names another",
        .said_by.name()
    )]
    NoStore { place: String, said_by: Source },
    /// Something that was looked at does not hold together.
    #[error("{0}")]
    Unsound(String),
    /// The answer has said already what is wrong; this is the exit code.
    #[error("see the answer")]
    Told(u8),
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

impl From<recto::Error> for Failure {
    fn from(error: recto::Error) -> Failure {
        use recto::Error;
        match error {
            Error::Format(error) => error.into(),
            Error::NothingToImport { format } => Failure::NothingToImport { format: format.name() },
            Error::Cancelled => Failure::Interrupted,
            Error::NotImported { cause, left } => {
                Failure::NotImported { cause: Box::new(Failure::from(*cause)), left }
            }
            error => Failure::Recto(error),
        }
    }
}

impl From<recto::EngineError> for Failure {
    fn from(error: recto::EngineError) -> Failure {
        Failure::Recto(error.into())
    }
}

impl From<recto_service::Error> for Failure {
    fn from(error: recto_service::Error) -> Failure {
        use recto_service::Error;
        match error {
            Error::Recto(error) => error.into(),
            Error::Format(error) => error.into(),
            Error::Agent(error) => error.into(),
            Error::NoPrices { model, known } => Failure::Usage(format!(
                "there are no prices of {model:?}; give --prices, or use {known}"
            )),
            error => Failure::Usage(error.to_string()),
        }
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
            Failure::Recto(_)
            | Failure::Ambiguous { .. }
            | Failure::Misnamed { .. }
            | Failure::NothingUsed
            | Failure::BeforeStart { .. } => 1,
            Failure::Format(
                recto_format::Error::UnknownFormat
                | recto_format::Error::Prices(_)
                | recto_format::Error::InvalidField { .. },
            ) => 2,
            Failure::Agent(
                recto_agent::Error::Endpoint(_) | recto_agent::Error::UnknownStrategy { .. },
            ) => 2,
            Failure::Agent(error) if error.code() == "storage" => 3,
            Failure::Agent(_) => 1,
            Failure::Format(error) if error.code() == "storage" => 3,
            Failure::Format(_)
            | Failure::NothingToImport { .. }
            | Failure::Message { .. }
            | Failure::Foreign { .. } => 1,
            Failure::NotImported { cause, .. } => cause.exit_code(),
            Failure::NoStore { .. }
            | Failure::Unsound(_)
            | Failure::Output(_)
            | Failure::Write { .. } => 3,
            Failure::Told(exit_code) => *exit_code,
            Failure::Interrupted => 130,
        }
    }

    pub(crate) fn code(&self) -> &'static str {
        match self {
            Failure::Recto(error) => error.code(),
            Failure::Format(error) => error.code(),
            Failure::Message { cause, .. } => cause.code().as_str(),
            Failure::Foreign { .. } => "invalid_message",
            Failure::Agent(error) => error.code(),
            Failure::NothingToImport { .. } => "empty_content",
            Failure::NotImported { cause, .. } => cause.code(),
            Failure::Usage(_) | Failure::Input { .. } | Failure::NotConfirmed(_) => "usage",
            Failure::Ambiguous { .. } | Failure::Misnamed { .. } | Failure::NothingUsed => {
                "conversation_not_found"
            }
            Failure::BeforeStart { .. } => "version_not_found",
            Failure::NoStore { .. }
            | Failure::Unsound(_)
            | Failure::Told(_)
            | Failure::Output(_)
            | Failure::Write { .. } => "storage",
            Failure::Interrupted => "interrupted",
        }
    }

    /// A file that could not be written. Where it cannot be put, another path would be right.
    pub(crate) fn writing(file: &Path, error: &io::Error) -> Failure {
        let name = file.display();
        let folder = file.parent().unwrap_or(file).display();
        match error.kind() {
            io::ErrorKind::NotFound => Failure::Usage(format!(
                "cannot write {name}: there is no folder {folder}; make it first"
            )),
            io::ErrorKind::NotADirectory => {
                Failure::Usage(format!("cannot write {name}: {folder} is no folder"))
            }
            io::ErrorKind::IsADirectory => {
                Failure::Usage(format!("cannot write {name}: it is a folder; name a file in it"))
            }
            kind => Failure::Write { file: name.to_string(), reason: kind.to_string() },
        }
    }

    /// As the contract writes errors.
    pub(crate) fn to_json(&self) -> Value {
        match self {
            Failure::Recto(error) => error.to_json(),
            Failure::Format(error) => error.to_json(),
            Failure::NotImported { cause, left } => {
                let mut written = cause.to_json();
                written["error"]["message"] = self.to_string().into();
                let left: Vec<&str> = left.iter().map(|(name, _)| &**name).collect();
                written["error"]["details"]["left"] = json!(left);
                written
            }
            Failure::Message { number, cause } => {
                let mut written = cause.to_json();
                written["error"]["message"] = self.to_string().into();
                written["error"]["details"]["number"] = json!(number);
                written
            }
            Failure::Foreign { number, format } => json!({
                "error": {
                    "code": self.code(),
                    "message": self.to_string(),
                    "details": { "number": number, "format": format.name() },
                }
            }),
            Failure::Ambiguous { candidates, .. }
            | Failure::Misnamed { similar: candidates, .. } => json!({
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

/// What the system says, without the number that it has for it.
fn without_number(reason: &str) -> &str {
    reason.split(" (os error ").next().unwrap_or(reason)
}

/// Why an import failed. Of an interrupted one, nothing is kept.
fn said(cause: &Failure) -> String {
    match cause {
        Failure::Interrupted => "interrupted".to_owned(),
        cause => cause.to_string(),
    }
}

/// What a failed import has left in the store.
fn left_behind(left: &[(String, String)]) -> String {
    if left.is_empty() {
        return "nothing was imported".to_owned();
    }
    let left: Vec<String> =
        left.iter().map(|(name, reason)| format!("{name:?} ({reason})")).collect();
    format!("what it left could not be removed; remove it yourself: {}", left.join(", "))
}
