//! The engine from the outside: the contract's cases, the plain model beside it, saving, bad input,
//! limits and history.

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
mod talk;
mod tools;
mod written;
