//! Requests about lists of messages that are not stored: fit a token budget, repair for a provider, count
//! tokens.
//!
//! The crate has no clock, files, network or async, so it is also compiled to WebAssembly, for browsers.
//! `recto-service` has these requests too, and adds those about stored conversations.
//!
//! ```
//! let request = r#"{"countTokens": [{"role": "user", "content": "hi"}], "counter": "approx"}"#;
//! assert_eq!(recto_lists::compute(request), r#"{"tokens":4,"each":[4]}"#);
//!
//! let refused = recto_lists::compute(r#"{"fit": [], "maxTokens": "many"}"#);
//! assert!(refused.starts_with(r#"{"error":{"code":"invalid_operation""#));
//! ```
//!
//! [`compute`] performs a request that is JSON text. Each request is also a struct with public fields and
//! the method `compute`: [`FitList`], [`RepairList`], [`CountTokens`].
//!
//! | to find | look at |
//! |---|---|
//! | the table of the requests | `lib.rs` |
//! | their fields, and how they are performed | `requests.rs` |
//! | how a text is read, and what its errors say | `read.rs`, `error.rs` |
//! | types of fields: providers, formats, counters | `values.rs` |
//! | how lists are fitted and repaired | `ForeignList` of the crate `recto-format` |
//! | which files a new request needs | `ARCHITECTURE.md` of the repository |

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

/// The table of the requests. This macro passes its rows in a group `$group { … }` to the macro `$callback`,
/// between the tokens that the caller gives. A row is `NAME => VARIANT(REQUEST) -> RESPONSE`.
#[doc(hidden)]
#[macro_export]
macro_rules! with_list_requests {
    ($callback:ident! $lifetime:lifetime { $($before:tt)* } $group:ident { $($after:tt)* }) => {
        $callback! { $lifetime;
            $($before)*
            $group {
                "fit" => FitList($crate::FitList<$lifetime>) -> $crate::FittedList,
                "repair" => RepairList($crate::RepairList<$lifetime>) -> $crate::FittedList,
                "countTokens" => CountTokens($crate::CountTokens<$lifetime>) -> $crate::TokenCount,
            }
            $($after)*
        }
    };
}

macro_rules! dispatch {
    ($lifetime:lifetime; Requests {
        $($name:literal => $variant:ident($request:ty) -> $response:ty,)*
    }) => {
        /// The names of the requests, and how each is performed.
        const REQUESTS: &[(&str, fn(&str) -> Result<String, Error>)] = &[
            $(($name, |text| Ok(one_line(&read::read::<$request>(text)?.compute()?))),)*
        ];
    };
}

with_list_requests! { dispatch! '_ {} Requests {} }

/// Performs a request: JSON text in, one line of JSON out. An error is also returned as a response.
pub fn compute(text: &str) -> String {
    match perform(text) {
        Ok(response) => response,
        Err(error) => error.to_json().to_string(),
    }
}

fn perform(text: &str) -> Result<String, Error> {
    let read::Fields(fields) = read::read(text)?;
    let mut given = REQUESTS.iter().filter(|(name, _)| fields.has(name));
    match (given.next(), given.next()) {
        (Some((_, perform)), None) => perform(text),
        (Some((one, _)), Some((other, _))) => {
            let reason = format!("{one} and {other} exclude each other; give one of them");
            Err(wrong(other, reason).into())
        }
        (None, _) => {
            let field = fields.0.into_iter().next().map(|(name, _)| name);
            let names: Vec<&str> = REQUESTS.iter().map(|(name, _)| *name).collect();
            let reason = format!("a request without a store is one of these: {}", names.join(", "));
            Err(recto_core::Error::InvalidOperation { reason, field }.into())
        }
    }
}

/// A response as one line of JSON, without a line break.
#[doc(hidden)]
pub fn one_line(response: &impl Serialize) -> String {
    let mut written = serde_json::to_string(response).expect("responses can be written");
    // Messages keep their bytes. Line breaks occur only between their fields, because strings escape them.
    // Two searches for a byte take less time than one for two characters.
    if written.contains('\n') || written.contains('\r') {
        written = written.replace(['\n', '\r'], " ");
    }
    written
}
