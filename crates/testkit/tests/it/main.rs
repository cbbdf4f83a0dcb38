//! The model against the conformance cases, and on its own under random steps.

mod conformance;
mod contract;
mod corpus;
mod provider;
mod random_steps;
mod seeds_page;
