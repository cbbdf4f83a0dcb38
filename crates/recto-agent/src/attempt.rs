//! Failed attempts of a model call.

use serde::{Deserialize, Serialize};

/// A failed attempt to send a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Attempt {
    /// The HTTP status, if a response was received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Why the attempt failed.
    pub failure: String,
    /// Duration of the attempt in milliseconds.
    pub millis: u64,
    /// Delay before the next attempt in milliseconds; 0 if no attempt followed.
    pub waited_millis: u64,
}

impl Attempt {
    /// An attempt that failed after `millis` milliseconds.
    pub fn new(failure: impl Into<String>, millis: u64) -> Attempt {
        Attempt { status: None, failure: failure.into(), millis, waited_millis: 0 }
    }
}
