//! A reference model of the contract, conformance cases, a generator of random
//! steps, and validators of provider requests. For tests only.
//!
//! - [`model`]: the contract implemented with plain lists, so that it can be compared
//!   with the specification sentence by sentence. Start with [`Model::apply`].
//! - [`agent_run`]: messages of a synthetic agent, for benchmarks of stores.
//! - [`conformance`]: the cases of the workspace's `conformance/` folder.
//! - [`corpus`]: hostile messages, requests and queries, with the expected results.
//! - [`generate`]: one generator of random steps for proptest, fuzzers and
//!   seeded loops.
//! - [`provider`]: validators of provider requests.
//! - [`random_case`]: fresh conformance cases from a seed.
//! - [`store_model`]: the conversations of a store, with forks, erase, prune and remove.
//! - [`tool_form`]: the flat and the nested form of tool parts.
//!
//! The crate does not depend on the engine; the engine is tested against it.

pub mod agent_run;
pub mod conformance;
pub mod corpus;
pub mod generate;
pub mod model;
pub mod provider;
pub mod random_case;
pub mod store_model;
pub mod tool_form;

pub use agent_run::AgentRun;
pub use model::{
    DEFAULT_HEADING, Diff, EARLIER_HEADING, Model, Outcome, Refusal, Role, Settings, Snapshot, Tool,
};
pub use store_model::{Keep, StoreModel};
