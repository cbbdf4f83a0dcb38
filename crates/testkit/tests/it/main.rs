//! Tests of the model, of the generator, of the validators, and of `docs/seeds.md`.

mod conformance;
mod contract;
mod corpus;
mod provider;
mod random_steps;
mod seeds_page;
