//! What a store's methods return.

use std::pin::Pin;

use crate::Error;

/// The answer of a store, to be awaited. Boxed, so that a store can be chosen when a program runs.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;
