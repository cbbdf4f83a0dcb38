//! The return type of a store's methods.

use std::pin::Pin;

use crate::Error;

/// A boxed future, so that a program can choose a store at run time.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;
