//! The requests of Recto: one JSON vocabulary for every surface.
//!
//! `recto exec` reads one request per line, and other surfaces take the same requests. A [`Service`]
//! performs them:
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use recto::Recto;
//! use recto_service::Service;
//!
//! let service = Service::new(Recto::open("memory:").await?);
//! service.request(r#"{"create": "a", "settings": {"counter": "approx"}}"#).await;
//! let response = service.request(
//!     r#"{"conversation": "a", "op": {"operation": "APPEND", "messages": [{"role": "user", "content": "hi"}]}}"#,
//! ).await;
//! assert!(response.starts_with(r#"{"version":1,"#));
//!
//! // The response to a refused request is an error. The request changes nothing.
//! let response = service.request(r#"{"conversation": "a", "stats": 7}"#).await;
//! assert!(response.contains(r#""code":"invalid_operation""#) && response.contains(r#""field":"stats""#));
//! # Ok::<(), recto::Error>(())
//! # }).unwrap();
//! ```
//!
//! # Two layers
//!
//! - [`Service::request`] takes JSON text and returns JSON text. It never fails: an error is a
//!   response.
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
//! The JSON of requests and responses is the stable interface. Structs with the fields of a response are
//! `#[non_exhaustive]`. The structs of requests are not: a new option of a request is a new field, so a
//! release that adds one is a breaking release of this crate, but does not break the JSON. The surfaces that
//! construct these structs are released together with this crate.
//!
//! # Rules for all requests
//!
//! - A request is an object. One of its fields names the request (`create`, `log`), the others are
//!   its options. A request about a conversation has `conversation`: its whole name, or its id.
//! - Unknown fields, fields given twice and values of a wrong type are `invalid_operation`. The
//!   whole request is read before anything is done.
//! - Messages, operations, queries and tools are passed on as the JSON text that the request has. The bytes
//!   of messages and tools are stored unchanged. A response contains the same bytes, except that spaces
//!   replace the line breaks between fields, because a response is one line.
//! - The service holds no lock while it performs a request, so any number of requests can run concurrently.
//! - [`schema`] describes all requests and responses as JSON Schema, generated from the types.
//!
//! # To add a request
//!
//! `ARCHITECTURE.md` of the repository lists the files. A request is a struct with the fields, a struct for
//! the response, `impl Perform`, and one row of the table in `src/request.rs`: reading, dispatch, the schema
//! and the tests that go over all requests follow from it.
//!
//! # Files
//!
//! | file | content |
//! |---|---|
//! | `request.rs` | the table of requests; [`Request`], [`Response`] |
//! | `requests/` | one file per request |
//! | `read.rs` | determines which request a text contains |
//! | crate `recto-lists` | the requests about lists, which need no store; reads JSON text, explains errors |
//! | `values.rs` | types of fields that several requests share |
//! | `service.rs` | [`Service`]: finds conversations, performs requests |
//! | `request_schema.rs` | the JSON Schema of all requests and responses |
//! | `schema.rs` | schemas of values whose types are in other crates |
//! | `entry.rs` `provider_view.rs` `cache_plan.rs` `settings.rs` `transcript.rs` | values that the command line shares |

mod cache_plan;
mod entry;
mod error;
mod provider_view;
mod read;
mod request;
mod request_schema;
mod requests;
mod schema;
mod service;
mod settings;
mod transcript;
mod values;

pub use self::cache_plan::{Plan, PlanOptions, Savings};
pub use self::entry::{MarkedEntries, ShownEntry, entries_of, with_marks};
pub use self::error::Error;
pub use self::provider_view::{
    DEFAULT_TARGET, ProviderView, Recipient, RenderWarning, ShownFinding, source_format,
};
pub use self::read::check_names;
pub use self::request::{Perform, Request, RequestKind, Response, Scoped, compute};
pub use self::request_schema::schema;
pub use self::requests::{
    Append, Appended, Applied, Apply, ArrayState, Ask, BatchSnapshot, Blame, CachePlan,
    CachePlanOptions, CallList, Calls, CallsOptions, CheckedTokens, ConversationSettings,
    ConversationStats, ConversationSummary, Conversations, Count, Create, Created, Diff,
    DiffOptions, Difference, Entries, EntryCount, EntryHistory, EntrySelection, Erase, Erased,
    ErasedEntry, Export, ExportOptions, Exported, ExportedMarkMap, Findings, Fork, ForkOptions,
    ForkOriginById, Forked, Import, Imported, Info, Lint, List, ListOptions, ListedConversation,
    ListedVersion, Log, LogOptions, MarkList, MarkMap, MarkMapOptions, Marks, ModelTokens,
    PlannedEdit, Prune, PruneOptions, Pruned, Remove, Removed, Rename, Renamed, Render, Rendered,
    Search, SearchHit, SearchResults, SetTools, Settings, Show, Shown, Snapshot, State, Stats,
    StoreVerification, Timeline, TimelineEvent, TimelinePoint, TokenCheck, TokenShare, TokenShares,
    Tokens, TokensOptions, TokensOverTime, ToolList, Tools, Verification, Verify, VerifyStore,
    Versions, converted,
};
pub use self::service::{NamedConversation, Service};
pub use self::settings::{
    ChangedSettings, CompressionSettings, DEFAULT_STRATEGY, NewSettings, counter_named,
    read_strategies,
};
pub use self::transcript::{ForkOrigin, ImportedConversation, ShownRemark, imported};
pub use self::values::{At, Include, Scope, True, TrueOr};
pub use recto_lists::read::{Fields, read_as};
pub use recto_lists::{
    CountTokens, FitList, FittedList, FittedMessage, ListRepair, Provider, RepairList, TokenCount,
    TranscriptFormat,
};
