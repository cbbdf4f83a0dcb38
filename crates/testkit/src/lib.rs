//! The plain list model of the contract, its conformance cases and a generator
//! of random steps. For tests only.
//!
//! - [`model`]: the contract written down with plain lists, so that it can be
//!   checked against the specification sentence by sentence. Start at
//!   [`Model::apply`].
//! - [`agent_run`]: the messages of a made-up agent, to measure stores with.
//! - [`conformance`]: the cases of the workspace's `conformance/` folder.
//! - [`corpus`]: hostile messages, requests and queries, with the verdict on each.
//! - [`generate`]: one generator of random steps for proptest, fuzzers and
//!   seeded loops.
//! - [`provider`]: what model providers refuse.
//! - [`tool_form`]: the flat and the nested form of tool parts.
//!
//! Nothing here knows the real engine: the engine is tested against this.

pub mod agent_run;
pub mod conformance;
pub mod corpus;
pub mod generate;
pub mod model;
pub mod provider;
pub mod tool_form;

pub use agent_run::AgentRun;
pub use model::{
    DEFAULT_HEADING, Diff, EARLIER_HEADING, Model, Outcome, Refusal, Role, Settings, Snapshot, Tool,
};
