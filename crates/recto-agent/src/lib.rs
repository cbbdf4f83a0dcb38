//! The model loop of Recto: a view meets a model.
//!
//! An [`Agent`] holds a conversation, a [`Model`] and tools. It checks the budget, sends only what is
//! visible, records the answer, runs the tools that were called, and goes on until none is. What was
//! sent, and why, can be said of every call, for ever: each leaves a [manifest](Call) in the history.
//!
//! ```text
//!             ┌───────────────────────── Agent::run ─────────────────────────┐
//!  message ──►│ APPEND                                                       │
//!             │   │                                                          │
//!             │   ▼        over the threshold                                │
//!             │ budget ───────────────────────► strategies: ordinary         │
//!             │   │  ▲◄──────────────────────── operations on the view       │
//!             │   ▼                                                          │
//!             │ render the view ──► bytes ──► Model ──► answer               │──► Run
//!             │   ▲                   │                    │                 │
//!             │   │                   └─ SHA-256, length ──┤                 │
//!             │   │                                        ▼                 │
//!             │   └── APPEND results ◄── run tools ◄── APPEND answer         │
//!             │                                        with its manifest     │
//!             └──────────────────────────────────────────────────────────────┘
//! ```
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use recto::{Message, Recto, Settings};
//! use recto_agent::{Agent, Stop};
//! # use recto_agent::{Answer, BoxFuture, CallError, Model, Target, Watch};
//! # struct Parrot;
//! # impl Model for Parrot {
//! #     fn target(&self) -> Target { Target::OpenAiChat }
//! #     fn name(&self) -> &str { "parrot" }
//! #     fn call<'a>(&'a self, _: bytes::Bytes, _: &'a Watch<'a>) -> BoxFuture<'a, Result<Answer, CallError>> {
//! #         Box::pin(async { Ok(Answer::text("Hello!")) })
//! #     }
//! # }
//!
//! let recto = Recto::open("memory:").await?;
//! let talk = recto.create("hello", Settings::default()).await?;
//! let agent = Agent::new(talk.clone(), Parrot); // or HttpModel::anthropic(endpoint)?
//! let run = agent.say(Message::user("Hi!")).await?;
//! assert_eq!((run.stop, run.said.as_str()), (Stop::Done, "Hello!"));
//!
//! // What did the model see? The bytes are rendered again, and compared with the hash of those sent.
//! let sent = agent.sent(1).await?;
//! assert_eq!(sent, r#"{"messages":[{"role":"user","content":"Hi!"}]}"#);
//! # Ok::<(), recto_agent::Error>(())
//! # }).unwrap();
//! ```
//!
//! What always holds, whatever the network, the provider, a tool or the user does:
//!
//! - The conversation has none of an answer, all of it, or one that is marked incomplete
//!   (`metadata.incomplete`).
//! - The next request is valid for the provider.
//! - What a strategy hides is one RESTORE away; a summary that failed replaces nothing.
//!
//! | to find | look at |
//! |---|---|
//! | the loop | `agent.rs` |
//! | what a model is; its answer | `model.rs`, `answer.rs` |
//! | the three providers | `http.rs`, `decode/` (one file each), `refusal.rs`, `endpoint.rs`, `secrets.rs` |
//! | tools; programs and MCP servers as tools | `tool.rs`, `command_tool.rs`, `mcp/`, `program.rs` (how they are started and ended) |
//! | what was sent | `call.rs`, `record.rs`, `history.rs` |
//! | tokens: counted, reported, calibrated | `calibration.rs`, `totals.rs` |
//! | budgets and strategies | `budget/` |
//! | what is behind a summary | `summaries.rs`, `look_back.rs` (as tools) |
//! | temporary messages | `recto`'s `temporary.rs` |
//! | steps of a workflow | `hand_back.rs` |

mod agent;
mod answer;
mod budget;
mod calibration;
mod call;
#[cfg(feature = "clients")]
mod command_tool;
#[cfg(feature = "clients")]
mod decode;
#[cfg(feature = "clients")]
mod endpoint;
mod error;
mod event;
mod hand_back;
mod history;
#[cfg(feature = "clients")]
mod http;
mod look_back;
#[cfg(feature = "clients")]
mod mcp;
mod model;
#[cfg(feature = "clients")]
mod program;
mod record;
#[cfg(feature = "clients")]
mod refusal;
#[cfg(feature = "clients")]
mod secrets;
#[cfg(feature = "clients")]
mod shorten;
mod summaries;
mod tool;
mod totals;
#[cfg(feature = "clients")]
mod web_client;

pub use recto::Temporary;
pub use recto_format::Target;
pub use tokio_util::sync::CancellationToken;

pub use self::agent::{Agent, Run, Stop};
pub use self::answer::{Answer, AnswerPart};
pub use self::budget::{Budget, Part, Strategy};
pub use self::calibration::Calibration;
pub use self::call::{Attempt, Call, Compressed};
#[cfg(feature = "clients")]
pub use self::command_tool::CommandTool;
#[cfg(feature = "clients")]
pub use self::endpoint::{Endpoint, Patience, Retry, Secret};
pub use self::error::{CallError, Error, Failure};
pub use self::event::Event;
pub use self::hand_back::{hand_back, process};
pub use self::history::{call, calls, sent};
#[cfg(feature = "clients")]
pub use self::http::HttpModel;
pub use self::look_back::{ExpandTool, SearchTool};
#[cfg(feature = "clients")]
pub use self::mcp::{McpAddress, McpServer, McpTool};
pub use self::model::{BoxFuture, Delta, Finish, Model, Usage, Watch};
#[cfg(feature = "clients")]
pub use self::program::end_programs;
pub use self::summaries::{Gap, expand, gaps, sources, stands_for};
pub use self::tool::{RunTool, ToolInput, ToolOutput};
pub use self::totals::Totals;
