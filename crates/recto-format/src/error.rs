//! The error type of the crate.

use serde_json::{Value, json};

use crate::Format;
use crate::unpack::{CorruptInput, DecompressionBomb, MissingFeature};

/// An error of import, export or rendering, with its location.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The input is not JSON, or not JSON of this format.
    #[error("{}line {line}: {field}{reason}", in_format(.format), field = in_field(.field))]
    Malformed {
        /// Format of the input, if it is known.
        format: Option<Format>,
        /// Line, from 1.
        line: u64,
        /// Field, such as `messages[3].role`. Empty for the whole line.
        field: String,
        /// What is wrong, and what is allowed.
        reason: String,
    },
    /// A value of the input exceeds a limit.
    #[error("{}{what} is {size}; at most {limit} is allowed", in_line(.line))]
    TooLarge {
        /// Line, from 1; 0 for the whole file.
        line: u64,
        /// The quantity that exceeds the limit.
        what: &'static str,
        /// Its value, as far as the input was read.
        size: u64,
        /// Its maximum.
        limit: u64,
    },
    /// The input needs a Cargo feature that is switched off.
    #[error("the file is {what}; recto-format was built without its feature {feature:?}")]
    Unsupported {
        /// What the file is, such as `compressed with zstd`.
        what: &'static str,
        /// Name of the feature.
        feature: &'static str,
    },
    /// The format of the input is not recognised.
    #[error("the format was not recognised: the file is {looks_like}; the formats are {}", names())]
    UnknownFormat {
        /// A description of the file.
        looks_like: String,
    },
    /// No message of the file can be read in the format that the caller named, and no other format is
    /// recognised. [`ForeignList::read`](crate::ForeignList::read) also returns this error for a format that
    /// is not a list of messages.
    #[error("nothing in the file could be read as {format}; the file is {looks_like}")]
    NotInFormat {
        /// The format that the caller named.
        format: Format,
        /// A description of the file.
        looks_like: String,
    },
    /// A document has no messages, or none at a path.
    #[error("{}; {}", no_messages(.path), other_messages(.found))]
    NoMessages {
        /// The path that the caller named.
        path: Option<String>,
        /// The paths of all lists of messages in the document.
        found: Vec<String>,
    },
    /// No message of the file can be read in the format that the caller named, and another format is
    /// recognised.
    #[error("nothing in the file could be read as {format}; it looks like {looks_like}")]
    OtherFormat {
        /// The format that the caller named.
        format: Format,
        /// The format that the file looks like.
        looks_like: Format,
    },
    /// A list of Recto's own messages has a message of another format.
    #[error(
        "the message at position {position} is {}, and only a part of it would be read; {}",
        foreign_form(.format),
        format_to_give(.format)
    )]
    ForeignMessage {
        /// Position in the list.
        position: usize,
        /// The format of the message, if it is recognised.
        format: Option<Format>,
    },
    /// The view has no content that the provider accepts.
    #[error(
        "nothing in the view can be sent to {target}; it needs a text, an image or a file from the user or the model"
    )]
    NothingToSend {
        /// Name of the target.
        target: &'static str,
    },
    /// A field that the caller passed would make the request invalid.
    #[error("the field {field:?} for {target}: {reason}")]
    InvalidField {
        /// Name of the target.
        target: &'static str,
        /// The field.
        field: String,
        /// What is wrong, and what is allowed.
        reason: String,
    },
    /// Reading or writing failed.
    #[error("reading or writing failed: {0}")]
    Io(#[source] std::io::Error),
    /// The engine rejected a message or a step.
    #[error(transparent)]
    Engine(#[from] recto_core::Error),
    /// The [`Sink`](crate::Sink) ended the import.
    #[error("stopped: {0}")]
    Stopped(String),
    /// A price table cannot be read.
    #[error("the price table: {0}")]
    Prices(String),
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Error {
        let inner = error.get_ref();
        if let Some(&DecompressionBomb { size, limit }) =
            inner.and_then(|inner| inner.downcast_ref())
        {
            return Error::TooLarge { line: 0, what: "the decompressed size", size, limit };
        }
        if let Some(&MissingFeature { what, feature }) =
            inner.and_then(|inner| inner.downcast_ref())
        {
            return Error::Unsupported { what, feature };
        }
        if let Some(damaged) = inner.and_then(|inner| inner.downcast_ref::<CorruptInput>()) {
            let (format, line, field) = (None, 1, String::new());
            return Error::Malformed { format, line, field, reason: damaged.reason() };
        }
        Error::Io(error)
    }
}

impl Error {
    /// The error with the format of the input, which the reader of one message does not know.
    pub(crate) fn in_format(self, format: Format) -> Error {
        match self {
            Error::Malformed { format: None, line, field, reason } => {
                Error::Malformed { format: Some(format), line, field, reason }
            }
            other => other,
        }
    }

    /// The error code, as defined by the contract.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Malformed { field, .. } if field.is_empty() => "invalid_json",
            // The file is JSON, but a field of a message has a value that is not accepted.
            Error::Malformed { .. } | Error::ForeignMessage { .. } => "invalid_message",
            Error::TooLarge { .. } => "too_large",
            Error::UnknownFormat { .. }
            | Error::OtherFormat { .. }
            | Error::NotInFormat { .. }
            | Error::NoMessages { .. }
            | Error::Unsupported { .. }
            | Error::Prices(_)
            | Error::InvalidField { .. } => "invalid_operation",
            Error::NothingToSend { .. } => "empty_content",
            Error::Io(_) | Error::Stopped(_) => "storage",
            Error::Engine(error) => error.code().as_str(),
        }
    }

    /// The JSON form of the contract: `{error: {code, message, field?, details?}}`. `details.line` is the
    /// line of the file, `details.format` the format of a foreign message.
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
        if let Error::NoMessages { path: Some(_), .. } = self {
            written["error"]["field"] = json!("select");
        }
        if let Error::ForeignMessage { position, format } = self {
            written["error"]["field"] = json!(format!("[{position}]"));
            if let Some(format) = format {
                written["error"]["details"] = json!({ "format": format.name() });
            }
        }
        written
    }
}

fn in_format(format: &Option<Format>) -> String {
    format.map(|format| format!("{format}: ")).unwrap_or_default()
}

fn foreign_form(format: &Option<Format>) -> String {
    match format {
        Some(format) => format!("in the format {format}"),
        None => "in another format: its tool calls are in a field such as tool_calls".to_owned(),
    }
}

fn format_to_give(format: &Option<Format>) -> String {
    match format {
        Some(format) => format!("give the format \"{format}\""),
        None => "give the format of the messages".to_owned(),
    }
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

fn no_messages(path: &Option<String>) -> String {
    match path {
        Some(path) => format!("there are no messages at {path:?}"),
        None => "there are no messages in the document".to_owned(),
    }
}

fn other_messages(found: &[String]) -> String {
    match found {
        [] => "a list of messages has objects with a role and content".to_owned(),
        [only] if only.is_empty() => "the document is the list of messages".to_owned(),
        found => format!("there are messages at {}", found.join(", ")),
    }
}
