//! The table of requests. [`Request`], [`Response`], dispatch and the schema are generated from it.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;

use crate::requests::*;
use crate::{Error, Service, read};

/// A request. Its fields are the fields of the type.
pub trait Perform: JsonSchema {
    /// Its response.
    type Response: Serialize + JsonSchema;

    /// Performs the request.
    fn perform(
        self,
        service: &Service,
    ) -> impl Future<Output = Result<Self::Response, Error>> + Send;
}

/// The subject of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scoped {
    /// A conversation that it creates.
    Creating,
    /// The store.
    Store,
    /// One conversation, named by the field `conversation`.
    Conversation,
}

/// One row of the table of requests.
#[derive(Debug)]
#[non_exhaustive]
pub struct RequestKind {
    /// The names of the request. The first is its usual name; the others are aliases.
    pub names: &'static [&'static str],
    /// Its subject.
    pub scoped: Scoped,
    pub(crate) read: for<'a> fn(&'a str) -> Result<Request<'a>, Error>,
    pub(crate) request_schema: fn(&mut SchemaGenerator) -> Schema,
    pub(crate) response_schema: fn(&mut SchemaGenerator) -> Schema,
}

macro_rules! requests {
    ($lifetime:lifetime; $($scoped:ident { $($($name:literal)|+ => $variant:ident($request:ty) -> $response:ty,)* })*) => {
        /// A request that was read. `docs/exec.md` describes each.
        #[derive(Debug)]
        #[non_exhaustive]
        #[allow(missing_docs)]
        pub enum Request<$lifetime> {
            $($($variant($request),)*)*
        }

        /// The response to a request.
        #[derive(Debug, Serialize)]
        #[serde(untagged)]
        #[non_exhaustive]
        #[allow(missing_docs)]
        pub enum Response {
            $($($variant($response),)*)*
        }

        impl<$lifetime> Request<$lifetime> {
            const KINDS: &'static [RequestKind] = &[$($(RequestKind {
                names: &[$($name),+],
                scoped: Scoped::$scoped,
                read: |text| Ok(Request::$variant(recto_lists::read::read(text)?)),
                request_schema: |generator| generator.subschema_for::<$request>(),
                response_schema: |generator| generator.subschema_for::<$response>(),
            },)*)*];
        }

        impl Request<'_> {
            pub(crate) async fn perform(self, service: &Service) -> Result<Response, Error> {
                Ok(match self {
                    $($(Request::$variant(request) => {
                        // Boxed, so that the future of this match is not as large as the largest request.
                        Response::$variant(Box::pin(request.perform(service)).await?)
                    })*)*
                })
            }
        }
    };
}

requests! {'a;
    Creating {
        "create" => Create(Create<'a>) -> Created,
        "import" => Import(Import<'a>) -> Imported,
    }
    Store {
        "list" => List(List) -> Conversations,
        "search" => Search(Search) -> SearchResults,
        "verify" => VerifyStore(VerifyStore) -> StoreVerification,
        "fit" => FitList(FitList<'a>) -> FittedList,
        "repair" => RepairList(RepairList<'a>) -> FittedList,
        "countTokens" => CountTokens(CountTokens<'a>) -> TokenCount,
    }
    Conversation {
        "op" | "ops" => Apply(Apply<'a>) -> Applied,
        "append" => Append(Append<'a>) -> Appended,
        "setTools" => SetTools(SetTools<'a>) -> Applied,
        "tools" => Tools(Tools) -> ToolList,
        "ask" | "query" => Ask(Ask<'a>) -> Entries,
        "show" => Show(Show) -> Shown,
        "count" => Count(Count<'a>) -> EntryCount,
        "stats" => Stats(Stats) -> ConversationStats,
        "info" => Info(Info) -> ConversationSummary,
        "log" | "history" => Log(Log) -> Versions,
        "blame" => Blame(Blame) -> EntryHistory,
        "tokens" => Tokens(Tokens) -> TokenShares,
        "timeline" => Timeline(Timeline) -> TokensOverTime,
        "tokenCheck" => TokenCheck(TokenCheck) -> CheckedTokens,
        "marks" => Marks(Marks) -> MarkList,
        "markMap" => MarkMap(MarkMap) -> ExportedMarkMap,
        "state" => State(State) -> ArrayState,
        "snapshot" => Snapshot(Snapshot) -> BatchSnapshot,
        "diff" => Diff(Diff) -> Difference,
        "render" => Render(Render<'a>) -> Rendered,
        "lint" => Lint(Lint<'a>) -> Findings,
        "cachePlan" => CachePlan(CachePlan<'a>) -> PlannedEdit,
        "calls" => Calls(Calls) -> CallList,
        "export" => Export(Export) -> Exported,
        "fork" => Fork(Fork) -> Forked,
        "rename" => Rename(Rename) -> Renamed,
        "remove" => Remove(Remove) -> Removed,
        "settings" => Settings(Settings<'a>) -> ConversationSettings,
        "verify" => Verify(Verify) -> Verification,
        "prune" => Prune(Prune) -> Pruned,
        "erase" => Erase(Erase) -> Erased,
    }
}

impl RequestKind {
    /// All requests.
    pub const ALL: &'static [RequestKind] = Request::<'static>::KINDS;
}

impl<'a> Request<'a> {
    /// Reads a request. The whole text is read before the request is performed.
    pub fn read(text: &'a str) -> Result<Request<'a>, Error> {
        let kind = read::kind_of(text)?;
        (kind.read)(text)
    }
}

/// Answers a request that needs no store: `fit`, `repair` and `countTokens`.
///
/// ```
/// let request = r#"{"countTokens": [{"role": "user", "content": "hi"}], "counter": "approx"}"#;
/// let response = recto_service::compute(request)?;
/// assert_eq!(response.to_json(), r#"{"tokens":4,"each":[4]}"#);
/// # Ok::<(), recto_service::Error>(())
/// ```
pub fn compute(text: &str) -> Result<Response, Error> {
    Ok(match Request::read(text)? {
        Request::FitList(request) => Response::FitList(request.compute()?),
        Request::RepairList(request) => Response::RepairList(request.compute()?),
        Request::CountTokens(request) => Response::CountTokens(request.compute()?),
        _ => {
            let reason = "this request needs a store; only fit, repair and countTokens do not";
            return Err(wrong_request(reason));
        }
    })
}

fn wrong_request(reason: &str) -> Error {
    recto::EngineError::InvalidOperation { reason: reason.to_owned(), field: None }.into()
}

impl Response {
    /// The response as one line of JSON, without a line break.
    pub fn to_json(&self) -> String {
        let mut written = serde_json::to_string(self).expect("responses can be written");
        // Messages keep their bytes. Line breaks occur only between their fields, because strings escape
        // them.
        // Two searches for a byte take less time than one for two characters.
        if written.contains('\n') || written.contains('\r') {
            written = written.replace(['\n', '\r'], " ");
        }
        written
    }
}
