//! Tests of the model, of the generator, of the validators, and of the pages of the documentation.

mod conformance;
mod contract;
mod corpus;
mod files_page;
mod links;
mod provider;
mod random_steps;
mod seeds_page;
