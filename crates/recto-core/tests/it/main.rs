//! The engine from the outside: the contract's cases, and the plain model beside it.

mod conformance;
mod driver;
mod model;
mod saved;
