//! Errors of commands: message, code and exit code.

use std::io;
use std::path::Path;

use serde_json::{Value, json};

use crate::advice;
use crate::store_location::LocationSource;

/// Error of a command.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The engine or the store refused something.
    #[error("{}", advice::error_text(.0))]
    Recto(#[source] recto::Error),
    /// A transcript that cannot be read, or a view that cannot be rendered.
    #[error(transparent)]
    Format(#[from] recto_format::Error),
    /// One of several messages is invalid.
    #[error("message {number}: {cause}")]
    Message { number: usize, cause: recto::EngineError },
    /// A message in another format. Recto's own format would lose part of its content.
    #[error(
        "message {number} is in the format {format}; convert it with --format {format}, or import a \
         whole transcript with `recto import --format {format}`"
    )]
    Foreign { number: usize, format: recto_format::Format },
    /// A model call failed, or a request cannot be sent. The advice is about this conversation.
    #[error("{}{}", advice::agent_error_text(.cause), sentence(.advice.as_deref()))]
    Agent { cause: recto_agent::Error, advice: Option<String> },
    /// Another failure, with a text that fits the command better.
    #[error("{text}")]
    Reworded { cause: Box<Failure>, text: String },
    /// A file without messages.
    #[error("the file contains no messages (read as {format})")]
    NothingToImport { format: &'static str },
    /// An import failed. `left` lists the conversations that could not be removed, with the reason.
    #[error("{}; {}", import_cause(.cause), left_behind(.left))]
    NotImported { cause: Box<Failure>, left: Vec<(String, String)> },
    /// The arguments are wrong.
    #[error("{0}")]
    Usage(String),
    /// An input file cannot be read.
    #[error("cannot read {file}: {}", without_os_code(.reason))]
    Input { file: String, reason: String },
    /// Several conversations match.
    #[error("{given:?} matches {}; write more of the name", .candidates.join(", "))]
    Ambiguous { given: String, candidates: Vec<String> },
    /// No conversation has this name, but some have a similar one.
    #[error("there is no conversation {given:?}; did you mean {}?", .similar.join(" or "))]
    Misnamed { given: String, similar: Vec<String> },
    /// `@` in a store in which no conversation was used yet.
    #[error(
        "no conversation was used in this store yet; `recto list` lists all, `-c NAME` selects one, `recto new` \
         creates one"
    )]
    NothingUsed,
    /// `now-9` in a conversation with fewer versions.
    #[error("there is no version now-{back}; use now-0 to now-{newest}, or v0 to v{newest}")]
    BeforeStart { back: u32, newest: u32 },
    /// The store does not exist.
    #[error(
        "there is no store at {location} ({}); `recto new NAME` or `recto import FILE` creates it, and \
         --store selects another",
        .named_by.name()
    )]
    NoStore { location: String, named_by: LocationSource },
    /// A check found damage.
    #[error("{0}")]
    Unsound(String),
    /// The result of the command already describes the error; only the exit code is left.
    #[error("see the output")]
    Reported(u8),
    /// A change that cannot be undone was not confirmed.
    #[error("{0} cannot be undone; confirm it with --yes")]
    NotConfirmed(String),
    /// Ctrl-C.
    #[error("interrupted; completed changes are kept, an incomplete one is discarded")]
    Interrupted,
    /// Standard output cannot be written.
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
    /// A file cannot be written.
    #[error("cannot write {file}: {reason}")]
    Write { file: String, reason: String },
}

impl From<recto_agent::Error> for Failure {
    fn from(cause: recto_agent::Error) -> Failure {
        Failure::Agent { cause, advice: None }
    }
}

impl From<recto::EngineError> for Failure {
    fn from(error: recto::EngineError) -> Failure {
        Failure::Recto(error.into())
    }
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

impl From<recto_service::Error> for Failure {
    fn from(error: recto_service::Error) -> Failure {
        use recto_service::Error;
        match error {
            Error::Recto(error) => error.into(),
            Error::Format(error) => error.into(),
            Error::Agent(error) => error.into(),
            Error::InField { cause, .. } => Failure::from(*cause),
            Error::NoPrices { model, known } => Failure::Usage(format!(
                "there are no prices for {model:?}; use --prices FILE, or one of {known}"
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
    /// The same failure with another text.
    pub(crate) fn with_text(self, text: String) -> Failure {
        Failure::Reworded { cause: Box::new(self), text }
    }

    /// Whether the reader closed the pipe early, as `head` does.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        matches!(self, Failure::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// The exit code: 1 refused by a rule, 2 wrong usage, 3 storage, 130 after Ctrl-C as shells expect.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Failure::Recto(recto::Error::Store(
                recto::StoreError::InvalidAddress { .. }
                | recto::StoreError::InvalidParameter { .. },
            ))
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
                recto_format::Error::UnknownFormat { .. }
                | recto_format::Error::Prices(_)
                | recto_format::Error::InvalidField { .. },
            ) => 2,
            Failure::Agent { cause, .. } => match cause {
                recto_agent::Error::Endpoint(_) | recto_agent::Error::UnknownStrategy { .. } => 2,
                cause if cause.code() == "storage" => 3,
                _ => 1,
            },
            Failure::Format(error) if error.code() == "storage" => 3,
            Failure::Format(_)
            | Failure::NothingToImport { .. }
            | Failure::Message { .. }
            | Failure::Foreign { .. } => 1,
            Failure::NotImported { cause, .. } | Failure::Reworded { cause, .. } => {
                cause.exit_code()
            }
            Failure::NoStore { .. }
            | Failure::Unsound(_)
            | Failure::Output(_)
            | Failure::Write { .. } => 3,
            Failure::Reported(exit_code) => *exit_code,
            Failure::Interrupted => 130,
        }
    }

    pub(crate) fn code(&self) -> &'static str {
        match self {
            Failure::Recto(error) => error.code(),
            Failure::Format(error) => error.code(),
            Failure::Message { cause, .. } => cause.code().as_str(),
            Failure::Foreign { .. } => "invalid_message",
            Failure::Agent { cause, .. } => cause.code(),
            Failure::NothingToImport { .. } => "empty_content",
            Failure::NotImported { cause, .. } | Failure::Reworded { cause, .. } => cause.code(),
            Failure::Usage(_) | Failure::Input { .. } | Failure::NotConfirmed(_) => "usage",
            Failure::Ambiguous { .. } | Failure::Misnamed { .. } | Failure::NothingUsed => {
                "conversation_not_found"
            }
            Failure::BeforeStart { .. } => "version_not_found",
            Failure::NoStore { .. }
            | Failure::Unsound(_)
            | Failure::Reported(_)
            | Failure::Output(_)
            | Failure::Write { .. } => "storage",
            Failure::Interrupted => "interrupted",
        }
    }

    /// Error for a file that cannot be written. A wrong path is a usage error.
    pub(crate) fn writing(file: &Path, error: &io::Error) -> Failure {
        let name = file.display();
        let folder = file.parent().unwrap_or(file).display();
        match error.kind() {
            io::ErrorKind::NotFound => Failure::Usage(format!(
                "cannot write {name}: the folder {folder} does not exist; create it first"
            )),
            io::ErrorKind::NotADirectory => {
                Failure::Usage(format!("cannot write {name}: {folder} is not a folder"))
            }
            io::ErrorKind::IsADirectory => Failure::Usage(format!(
                "cannot write {name}: it is a folder; give the path of a file"
            )),
            kind => Failure::Write { file: name.to_string(), reason: kind.to_string() },
        }
    }

    /// The error as JSON, in the form of the contract.
    pub(crate) fn to_json(&self) -> Value {
        match self {
            Failure::Recto(error) => error.to_json(),
            Failure::Reworded { cause, text } => {
                let mut written = cause.to_json();
                written["error"]["message"] = text.as_str().into();
                written
            }
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

/// An error text of the system without its error number.
fn without_os_code(reason: &str) -> &str {
    reason.split(" (os error ").next().unwrap_or(reason)
}

/// A further sentence of a text.
fn sentence(text: Option<&str>) -> String {
    text.map_or(String::new(), |text| format!(". {text}"))
}

/// Why an import failed. The usual text for an interruption does not apply, because an interrupted
/// import keeps nothing.
fn import_cause(cause: &Failure) -> String {
    match cause {
        Failure::Interrupted => "interrupted".to_owned(),
        cause => cause.to_string(),
    }
}

/// The conversations that a failed import could not remove.
fn left_behind(left: &[(String, String)]) -> String {
    if left.is_empty() {
        return "nothing was imported".to_owned();
    }
    let left: Vec<String> =
        left.iter().map(|(name, reason)| format!("{name:?} ({reason})")).collect();
    format!("these conversations could not be removed; remove them: {}", left.join(", "))
}
