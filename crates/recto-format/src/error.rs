//! What can go wrong, with the place where it did.

use serde_json::{Value, json};

use crate::Format;
use crate::unpack::{Bomb, Damaged};

/// Why something could not be read, written or rendered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The input is not JSON, or not the JSON that the format has.
    #[error("{}line {line}: {field}{reason}", in_format(.format), field = in_field(.field))]
    Malformed {
        /// The format that was read.
        format: Option<Format>,
        /// The line, from 1.
        line: u64,
        /// The field, such as `messages[3].role`; empty where it is the whole line.
        field: String,
        /// What is wrong and what would be right.
        reason: String,
    },
    /// One value of the input is larger than the limits allow.
    #[error("{}{what} is {size}, more than the {limit} that are allowed", in_line(.line))]
    TooLarge {
        /// The line, from 1; 0 where it is the whole file.
        line: u64,
        /// What is too large.
        what: &'static str,
        /// How large it is, as far as it was read.
        size: u64,
        /// How large it may be.
        limit: u64,
    },
    /// The format could not be recognised.
    #[error("the format was not recognised; if the file is not empty, name one of {}", names())]
    UnknownFormat,
    /// Nothing in the file could be read as a message of the format that was named.
    #[error("nothing in the file could be read as {format}; it looks like {looks_like}")]
    OtherFormat {
        /// The format that was read.
        format: Format,
        /// The format that the file looks like.
        looks_like: Format,
    },
    /// The view has nothing that can be sent.
    #[error(
        "nothing in the view can be sent to {target}; it needs a text, an image or a file from the user or the model"
    )]
    NothingToSend {
        /// The target's name.
        target: &'static str,
    },
    /// A field that was given for the request would make it invalid.
    #[error("the field {field:?} for {target}: {reason}")]
    InvalidField {
        /// The target's name.
        target: &'static str,
        /// The field.
        field: String,
        /// What is wrong and what would be right.
        reason: String,
    },
    /// Reading or writing failed.
    #[error("reading or writing failed: {0}")]
    Io(std::io::Error),
    /// The engine refused a message or a step.
    #[error(transparent)]
    Engine(#[from] recto_core::Error),
    /// Whoever takes the steps wants no more of them.
    #[error("stopped: {0}")]
    Stopped(String),
    /// A price table cannot be read.
    #[error("the price table: {0}")]
    Prices(String),
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Error {
        let inner = error.get_ref();
        if let Some(&Bomb { size, limit }) = inner.and_then(|inner| inner.downcast_ref()) {
            return Error::TooLarge { line: 0, what: "what the file holds unpacked", size, limit };
        }
        if let Some(damaged) = inner.and_then(|inner| inner.downcast_ref::<Damaged>()) {
            let (format, line, field) = (None, 1, String::new());
            return Error::Malformed { format, line, field, reason: damaged.reason() };
        }
        Error::Io(error)
    }
}

impl Error {
    /// A code for programs, in the manner of the contract.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Malformed { .. } => "invalid_json",
            Error::TooLarge { .. } => "too_large",
            Error::UnknownFormat
            | Error::OtherFormat { .. }
            | Error::Prices(_)
            | Error::InvalidField { .. } => "invalid_operation",
            Error::NothingToSend { .. } => "empty_content",
            Error::Io(_) | Error::Stopped(_) => "storage",
            Error::Engine(error) => error.code().as_str(),
        }
    }

    /// The JSON form of the contract: `{error: {code, message, field?, details?}}`. `details.line` is the
    /// line of the file.
    pub fn to_json(&self) -> Value {
        let mut written = match self {
            Error::Engine(error) => error.to_json(),
            _ => json!({ "error": { "code": self.code(), "message": self.to_string() } }),
        };
        if let Error::Malformed { line, field, .. } = self {
            if !field.is_empty() {
                written["error"]["field"] = json!(field);
            }
            written["error"]["details"] = json!({ "line": line });
        }
        written
    }
}

fn in_format(format: &Option<Format>) -> String {
    format.map(|format| format!("{format}: ")).unwrap_or_default()
}

fn in_line(line: &u64) -> String {
    if *line == 0 { String::new() } else { format!("line {line}: ") }
}

fn in_field(field: &str) -> String {
    if field.is_empty() { String::new() } else { format!("{field}: ") }
}

fn names() -> String {
    let names: Vec<&str> = Format::ALL.iter().map(|format| format.name()).collect();
    names.join(", ")
}
