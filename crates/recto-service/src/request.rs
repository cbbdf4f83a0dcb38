//! The table of requests. [`Request`], [`Response`], dispatch and the schema are generated from it. The rows of
//! requests about lists come from `recto-lists`, whose own dispatch uses them too.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;

use crate::requests::*;
use crate::{Error, Service, read};

/// A request. The fields of the type are the fields of its JSON.
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
    /// The store, or a list of messages that is not stored.
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
                        // Boxed, so that the future of this match is not as large as its largest arm.
                        Response::$variant(Box::pin(request.perform(service)).await?)
                    })*)*
                })
            }
        }
    };
}

recto_lists::with_list_requests! { requests! 'a {
    Creating {
        "create" => Create(Create<'a>) -> Created,
        "import" => Import(Import<'a>) -> Imported,
    }
    Store {
        "list" => List(List) -> Conversations,
        "search" => Search(Search) -> SearchResults,
        "verify" => VerifyStore(VerifyStore) -> StoreVerification,
    }
} Store {
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
} }

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

macro_rules! list_requests {
    ($lifetime:lifetime; Lists {
        $($name:literal => $variant:ident($request:ty) -> $response:ty,)*
    }) => {
        $(impl<$lifetime> Perform for $request {
            type Response = $response;

            async fn perform(self, _: &Service) -> Result<$response, Error> {
                Ok(self.compute()?)
            }
        })*

        /// The response to a request about a list; `None` for every other request.
        fn response_to_list(request: Request<'_>) -> Result<Option<Response>, Error> {
            Ok(match request {
                $(Request::$variant(request) => Some(Response::$variant(request.compute()?)),)*
                _ => None,
            })
        }
    };
}

recto_lists::with_list_requests! { list_requests! 'a {} Lists {} }

/// Performs a request that needs no store: `fit`, `repair` or `countTokens`.
///
/// ```
/// let request = r#"{"countTokens": [{"role": "user", "content": "hi"}], "counter": "approx"}"#;
/// let response = recto_service::compute(request)?;
/// assert_eq!(response.to_json(), r#"{"tokens":4,"each":[4]}"#);
/// # Ok::<(), recto_service::Error>(())
/// ```
pub fn compute(text: &str) -> Result<Response, Error> {
    response_to_list(Request::read(text)?)?.ok_or_else(|| {
        let reason =
            "this request needs a store; only fit, repair and countTokens do not".to_owned();
        recto::EngineError::InvalidOperation { reason, field: None }.into()
    })
}

impl Response {
    /// The response as one line of JSON, without a line break.
    pub fn to_json(&self) -> String {
        recto_lists::one_line(self)
    }
}
