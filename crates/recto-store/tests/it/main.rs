//! The stores, from outside.

#[cfg(feature = "postgres")]
mod postgres;
