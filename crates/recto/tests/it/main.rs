//! Conversations in stores, from the outside.

mod clock;
mod conformance;
mod corpus;
mod damaged;
mod driver;
mod foretold;
mod golden;
mod growth;
#[cfg(feature = "format")]
mod import;
mod meddled;
mod model;
mod places;
mod stored;
