//! The public API, on every store.

mod clock;
mod conformance;
mod corpus;
mod damaged;
mod driver;
mod forgetting_model;
mod golden;
mod growth;
#[cfg(feature = "format")]
mod import;
mod meddled;
mod model;
mod places;
mod previews;
mod stored;
mod temporary;
