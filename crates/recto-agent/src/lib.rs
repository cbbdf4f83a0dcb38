//! The model loop of Recto: sends the view of a conversation to a model, records the reply, and runs the
//! tools that the model calls.
//!
//! # The first reply
//!
//! ```no_run
//! # #[cfg(feature = "clients")]
//! # async fn example(key: String) -> Result<(), recto_agent::Error> {
//! # use recto::{Message, Recto, Settings};
//! # use recto_agent::{Agent, Endpoint, HttpModel};
//! let conversation = Recto::open("sqlite:chat.db").await?.create("hello", Settings::default()).await?;
//! let model = HttpModel::anthropic(
//!     Endpoint::new("https://api.anthropic.com/v1", "claude-sonnet-4-5").key(key),
//! )?;
//! println!("{}", Agent::new(conversation, model).send(Message::user("Hi!")).await?.text);
//! # Ok(()) }
//! ```
//!
//! [`HttpModel`] has clients for OpenAI's chat completions API and compatible servers, OpenAI's Responses
//! API and Anthropic's Messages API. For any other provider, and for tests, implement [`Model`].
//!
//! # Tools
//!
//! A tool implements [`RunTool`]. [`CommandTool`] runs a program, and [`McpServer`] provides the tools of
//! a Model Context Protocol server:
//!
//! ```no_run
//! # #[cfg(feature = "mcp")]
//! # async fn example(agent: recto_agent::Agent) -> Result<(), recto_agent::Error> {
//! # use recto_agent::{CommandTool, McpServer};
//! let disk = recto::Tool::new("disk", "Shows the free disk space.");
//! let agent = agent
//!     .tool(CommandTool::new(disk, "df").arguments(["-h"]))
//!     .tools(McpServer::program("files", "mcp-server-filesystem").arguments(["/srv"]).tools().await?)
//!     .max_turns(20);
//! # Ok(()) }
//! ```
//!
//! A run calls the model until a reply has no tool calls. Tool calls of one reply run concurrently.
//!
//! # Budgets
//!
//! A [`Budget`] limits the tokens of a request. Above its threshold, [strategies](Strategy) compress the
//! view with ordinary operations: UNDO reverts them, and RESTORE shows the hidden messages again.
//! [`Agent::policy`] sets the budget to that of a policy, such as the conversation's.
//!
//! ```
//! # use recto_agent::{Budget, Strategy};
//! let budget = Budget {
//!     limit: Some(100_000),
//!     threshold: Some(80_000),
//!     target: 40_000,
//!     strategies: vec![Strategy::ClearToolResults, Strategy::Summarise],
//!     ..Budget::default()
//! };
//! ```
//!
//! # What did the model receive?
//!
//! Every call leaves a [manifest](Call) in the log. With the manifest, the exact bytes of the request can be
//! rendered again and checked against their SHA-256:
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use recto::{Message, Recto, Settings};
//! use recto_agent::{Agent, Stop};
//! # use recto_agent::{BoxFuture, CallContext, CallError, Model, Reply, Target};
//! # struct Constant;
//! # impl Model for Constant {
//! #     fn target(&self) -> Target { Target::OpenAiChat }
//! #     fn name(&self) -> &str { "constant" }
//! #     fn call<'a>(&'a self, _: bytes::Bytes, _: &'a CallContext<'a>) -> BoxFuture<'a, Result<Reply, CallError>> {
//! #         Box::pin(async { Ok(Reply::from_text("Hello!")) })
//! #     }
//! # }
//! # let model = Constant;
//!
//! let recto = Recto::open("memory:").await?;
//! let conversation = recto.create("hello", Settings::default()).await?;
//! let agent = Agent::new(conversation, model);
//! let run = agent.send(Message::user("Hi!")).await?;
//! assert_eq!((run.stop, run.text.as_str()), (Stop::Done, "Hello!"));
//!
//! let request = agent.request_of_call(1).await?;
//! assert_eq!(request, r#"{"messages":[{"role":"user","content":"Hi!"}]}"#);
//! # Ok::<(), recto_agent::Error>(())
//! # }).unwrap();
//! ```
//!
//! [`ConversationExt`] has `request_of_call` and `calls` for a conversation without an agent.
//!
//! # Events and cancellation
//!
//! [`Agent::on_event`] registers a callback for every [`Event`]: deltas of a reply, calls, tools,
//! compressions. [`Agent::send_cancellable`] takes a [`CancelToken`].
//!
//! # Observability
//!
//! The crate emits [`tracing`](https://docs.rs/tracing) spans: `model_call` (provider, model, number of
//! the call, HTTP status, attempts, duration, tokens) and `tool_call` (tool, duration, size of the
//! output). Errors that do not end a run are warnings. Spans and events contain no text of messages and
//! no keys.
//!
//! # The loop
//!
//! ```text
//!             ┌───────────────────────── Agent::run ─────────────────────────┐
//!  message ──►│ APPEND                                                       │
//!             │   │                                                          │
//!             │   ▼        above the threshold                               │
//!             │ budget ───────────────────────► strategies: ordinary         │
//!             │   │  ▲◄──────────────────────── operations on the view       │
//!             │   ▼                                                          │
//!             │ render the view ──► bytes ──► Model ──► reply                │──► Run
//!             │   ▲                   │                    │                 │
//!             │   │                   └─ SHA-256, length ──┤                 │
//!             │   │                                        ▼                 │
//!             │   └── APPEND results ◄── run tools ◄── APPEND reply          │
//!             │                                        with its manifest     │
//!             └──────────────────────────────────────────────────────────────┘
//! ```
//!
//! # Invariants
//!
//! They hold for every failure of the network, the provider or a tool, and after a cancellation:
//!
//! - A reply is stored completely, or not at all, or as a part that is marked as incomplete
//!   (`metadata.incomplete`).
//! - The next request is valid for the provider.
//! - RESTORE shows the messages that a strategy hid. A failed summary replaces nothing.
//! - No error, no manifest and no `tracing` event contains an API key. No `tracing` event contains text
//!   of messages.
//!
//! # Features
//!
//! | feature | default | adds |
//! |---|---|---|
//! | `clients` | yes | [`HttpModel`] and [`CommandTool`]; without it the crate has no network code |
//! | `mcp` | yes | [`McpServer`]; implies `clients` |
//!
//! # Source files
//!
//! | topic | files |
//! |---|---|
//! | the loop | `agent.rs`, `event.rs`, `cancel.rs` |
//! | the model trait and its reply | `model.rs`, `reply.rs`, `attempt.rs` |
//! | HTTP clients | `http.rs`, `decode/` (one file per provider), `http_error.rs`, `endpoint.rs`, `secrets.rs`, `web_client.rs` |
//! | tools | `tool.rs`, `command_tool.rs`, `mcp/`, `shorten.rs`, `history_tools.rs` |
//! | child processes | `program.rs`, `hidden_variables.rs` |
//! | manifests | `call.rs`, `record.rs` (writes them), `calls.rs` (reads them) |
//! | `tracing` spans | `trace.rs` |
//! | tokens and cost | `calibration.rs`, `usage.rs`, `totals.rs` |
//! | budgets and strategies | `budget/`, `floor_part.rs` |
//! | errors | `error.rs` |
//! | methods of a conversation | `conversation_ext.rs`, `summaries.rs`, `workflow.rs` |

mod agent;
mod attempt;
mod budget;
mod calibration;
mod call;
mod calls;
mod cancel;
#[cfg(feature = "clients")]
mod command_tool;
mod conversation_ext;
#[cfg(feature = "clients")]
mod decode;
#[cfg(feature = "clients")]
mod endpoint;
mod error;
mod event;
mod floor_part;
#[cfg(feature = "clients")]
mod hidden_variables;
mod history_tools;
#[cfg(feature = "clients")]
mod http;
#[cfg(feature = "clients")]
mod http_error;
#[cfg(feature = "mcp")]
mod mcp;
mod model;
#[cfg(feature = "clients")]
mod program;
mod record;
mod reply;
#[cfg(feature = "clients")]
mod secrets;
#[cfg(feature = "mcp")]
mod shorten;
mod summaries;
mod tool;
mod totals;
mod trace;
mod usage;
#[cfg(feature = "clients")]
mod web_client;
mod workflow;

pub use recto_format::Target;

pub use self::agent::{Agent, Run, Stop};
pub use self::attempt::Attempt;
pub use self::budget::{Budget, Strategy};
pub use self::calibration::Calibration;
pub use self::call::{Call, Compressed, SummaryPrompt};
pub use self::cancel::CancelToken;
#[cfg(feature = "clients")]
pub use self::command_tool::CommandTool;
pub use self::conversation_ext::ConversationExt;
#[cfg(feature = "clients")]
pub use self::endpoint::{Endpoint, Retry, Timeouts};
pub use self::error::{CallError, Error, Failure};
pub use self::event::Event;
pub use self::floor_part::FloorPart;
#[cfg(feature = "clients")]
pub use self::hidden_variables::{hidden_variables, hide_variables};
pub use self::history_tools::{ExpandTool, SearchTool};
#[cfg(feature = "clients")]
pub use self::http::HttpModel;
#[cfg(feature = "mcp")]
pub use self::mcp::{McpAddress, McpServer, McpTool};
pub use self::model::{BoxFuture, CallContext, Delta, Model};
#[cfg(feature = "clients")]
pub use self::program::{isolate_programs, kill_programs};
pub use self::reply::{Finish, Reply, ReplyPart};
#[cfg(feature = "clients")]
pub use self::secrets::Secret;
pub use self::summaries::{SummaryGap, summarised_entries};
pub use self::tool::{RunTool, ToolInput, ToolOutput};
pub use self::totals::Totals;
pub use self::usage::{CompactionUsage, Usage};

/// The example of `docs/agent.md`, as a test.
#[cfg(all(doctest, feature = "clients"))]
#[doc = include_str!("../../../docs/agent.md")]
struct AgentPage;
