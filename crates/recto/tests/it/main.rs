//! Conversations in stores, from the outside.

mod driver;
mod model;
mod stored;
