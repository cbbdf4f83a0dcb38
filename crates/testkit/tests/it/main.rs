//! The model on the conformance cases and on random steps, and the pages of the documentation.

mod conformance;
mod contract;
mod corpus;
mod links;
mod provider;
mod random_steps;
mod seeds_page;
