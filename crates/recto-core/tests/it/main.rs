//! Tests of the public API of the engine: the cases of the contract, the comparison with the plain model,
//! saving, invalid input, limits and history.

mod conformance;
mod contract;
mod conversations;
mod corpus;
mod driver;
mod history;
mod limits;
mod model;
mod refusals;
mod saved;
mod seeds;
mod tools;
mod written;
