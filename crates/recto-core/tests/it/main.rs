//! Tests of the public API of the engine: the cases of the contract, the comparison with the plain model,
//! saving, invalid input, limits and history.

mod conformance;
mod contract;
mod corpus;
mod driver;
mod history;
mod limits;
mod model;
mod refusals;
mod saved;
mod seeds;
mod conversations;
mod tools;
mod written;
