//! The public API, on every store.

mod blocking;
mod clock;
mod conformance;
mod corpus;
mod damaged;
mod driver;
#[cfg(unix)]
mod faults;
mod forgetting_model;
mod golden;
mod growth;
#[cfg(feature = "format")]
mod import;
mod interrupted_store;
mod model;
mod places;
mod previews;
mod stored;
mod temporary;
