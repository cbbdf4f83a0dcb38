//! Conversations in stores, from the outside.

mod driver;
mod golden;
mod model;
mod places;
mod stored;
