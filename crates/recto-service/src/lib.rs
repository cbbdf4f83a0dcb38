//! The requests of Recto: one JSON vocabulary for every surface.
//!
//! `recto exec` reads these requests from lines; HTTP, MCP, Python and Node read the same ones. A
//! [`Service`] answers them:
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use recto::Recto;
//! use recto_service::Service;
//!
//! let service = Service::new(Recto::open("memory:").await?);
//! service.request(r#"{"create": "a", "settings": {"counter": "approx"}}"#).await;
//! let answer = service.request(
//!     r#"{"conversation": "a", "op": {"operation": "APPEND", "messages": [{"role": "user", "content": "hi"}]}}"#,
//! ).await;
//! assert!(answer.starts_with(r#"{"version":1,"#));
//!
//! // A refused request is answered with an error, and has changed nothing.
//! let answer = service.request(r#"{"conversation": "a", "stats": 7}"#).await;
//! assert!(answer.contains(r#""code":"invalid_operation""#) && answer.contains(r#""field":"stats""#));
//! # Ok::<(), recto::Error>(())
//! # }).unwrap();
//! ```
//!
//! # Two layers
//!
//! - [`Service::request`] takes JSON text and returns JSON text. It never fails: an error is an
//!   answer.
//! - [`Request::read`] and [`Service::perform`] are the typed layer below it. Each request is a
//!   struct with public fields and a typed response; [`Service::run`] performs one such struct.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use recto::Recto;
//! use recto_service::{List, Service};
//!
//! let service = Service::new(Recto::open("memory:").await?);
//! let listed = service.run(List::default()).await?;
//! assert!(listed.conversations.is_empty());
//! # Ok::<(), recto_service::Error>(())
//! # }).unwrap();
//! ```
//!
//! # What holds for all requests
//!
//! - A request is an object. One of its fields names the request (`create`, `log`), the others are
//!   its options. A request about a conversation has `conversation`: its whole name, or its id.
//! - Unknown fields, fields given twice and values of a wrong type are `invalid_operation`. The
//!   whole request is read before anything is done.
//! - Messages, operations, queries and tools are passed as the JSON text that they came as.
//!   Their bytes are stored and returned unchanged, but for line ends between fields, which become
//!   spaces: an answer is one line.
//! - A request that reads locks nothing in the service: any number may run at the same time.
//! - [`schema`] describes all requests and responses as JSON Schema, generated from the types.
//!
//! # To add a request
//!
//! 1. Write `src/requests/NAME.rs`: a struct with the fields, a struct for the response, both with
//!    `JsonSchema`, and `impl Perform`. Start from `src/requests/stats.rs`.
//! 2. Add one line to the table in `src/request.rs`. Reading, dispatch, the schema and the tests
//!    that go over all requests follow from it.
//! 3. Describe it in `docs/exec.md`; a test compares that page with the table.
//!
//! # Where to find what
//!
//! | file | content |
//! |---|---|
//! | `request.rs` | the table of requests; [`Request`], [`Response`] |
//! | `requests/` | one file per request |
//! | `read.rs` | text to request: which request it is, and what is wrong with it |
//! | `values.rs` | types of fields that several requests share |
//! | `service.rs` | [`Service`]: finds conversations, performs requests |
//! | `schema.rs` | the JSON Schema, with the schemas of the engine's own types |
//! | `entry.rs` `sent.rs` `cache_plan.rs` `settings.rs` `transcript.rs` | values that the command line shares |

mod cache_plan;
mod entry;
mod error;
mod read;
mod request;
mod requests;
mod schema;
mod sent;
mod service;
mod settings;
mod transcript;
mod values;

pub use self::cache_plan::{Plan, PlanFor, Savings};
pub use self::entry::{MarkedEntries, ShownEntry, entries_of, with_marks};
pub use self::error::Error;
pub use self::read::{Fields, check_names};
pub use self::request::{Perform, Request, RequestKind, Response, Scoped, compute};
pub use self::requests::*;
pub use self::schema::schema;
pub use self::sent::{
    DEFAULT_TARGET, RenderWarning, Sent, ShownFinding, render_warnings, source_format,
};
pub use self::service::{NamedConversation, Service};
pub use self::settings::{
    ChangedSettings, CompressionSettings, DEFAULT_STRATEGY, NewSettings, counter_named,
    read_strategies,
};
pub use self::transcript::{ForkOf, ImportedConversation, ShownRemark, imported};
pub use self::values::{At, Include, Provider, Scope, TranscriptFormat, True, TrueOr};
