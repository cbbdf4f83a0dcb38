//! Conversations in stores, from the outside.

mod driver;
mod model;
mod places;
mod stored;
