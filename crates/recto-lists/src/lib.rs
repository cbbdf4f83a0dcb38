//! Requests about lists of messages that are not stored: fit a token budget, repair for a provider, count
//! tokens.
//!
//! The crate has no clock, files, network or async, so it is also compiled to WebAssembly, for browsers.
//! `recto-service` adds the requests about stored conversations to the same vocabulary.
//!
//! ```
//! let request = r#"{"countTokens": [{"role": "user", "content": "hi"}], "counter": "approx"}"#;
//! assert_eq!(recto_lists::compute(request), r#"{"tokens":4,"each":[4]}"#);
//!
//! let refused = recto_lists::compute(r#"{"fit": [], "maxTokens": "many"}"#);
//! assert!(refused.starts_with(r#"{"error":{"code":"invalid_operation""#));
//! ```

mod error;
#[doc(hidden)]
pub mod read;
mod requests;
mod values;

use serde::Serialize;

pub use self::error::Error;
#[doc(hidden)]
pub use self::error::wrong;
pub use self::requests::{
    CountTokens, FitList, FittedList, FittedMessage, ListRepair, RepairList, TokenCount,
    counter_named,
};
pub use self::values::{Provider, TranscriptFormat, schema};

/// The names of the requests.
const NAMES: [&str; 3] = ["fit", "repair", "countTokens"];

/// Performs a request: JSON text in, one line of JSON out. An error is also returned as a response.
pub fn compute(text: &str) -> String {
    match perform(text) {
        Ok(response) => response,
        Err(error) => error.to_json().to_string(),
    }
}

fn perform(text: &str) -> Result<String, Error> {
    let fields: read::Fields<'_> = read::read(text)?;
    let mut given = NAMES.into_iter().filter(|name| fields.has(name));
    match (given.next(), given.next()) {
        (Some("fit"), None) => Ok(written(&read::read::<FitList<'_>>(text)?.compute()?)),
        (Some("repair"), None) => Ok(written(&read::read::<RepairList<'_>>(text)?.compute()?)),
        (Some(_), None) => Ok(written(&read::read::<CountTokens<'_>>(text)?.compute()?)),
        (Some(one), Some(other)) => {
            let reason = format!("{one} and {other} exclude each other; give one of them");
            Err(wrong(other, reason).into())
        }
        (None, _) => {
            let field = fields.0.first().map(|(name, _)| name.to_string());
            let reason = format!("a request without a store is one of these: {}", NAMES.join(", "));
            Err(recto_core::Error::InvalidOperation { reason, field }.into())
        }
    }
}

/// The response as one line.
fn written(response: &impl Serialize) -> String {
    let json = serde_json::to_string(response).expect("responses can be written");
    // Messages keep their bytes, so they may contain line breaks. These are between fields, because strings
    // escape them.
    match json.contains(['\n', '\r']) {
        true => json.replace(['\n', '\r'], " "),
        false => json,
    }
}
