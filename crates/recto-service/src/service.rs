//! The service: finds conversations and performs requests.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use recto::{Conversation, Error as RectoError, Recto, StoreError};

use crate::{Error, Perform, Request, Response};

/// Performs requests about the conversations of a store.
///
/// All methods take `&self`, so any number of requests can run concurrently. The store orders changes of the
/// same conversation.
pub struct Service {
    recto: Recto,
    /// Handles by name, if this service is the only user of the store.
    cache: Option<Mutex<HashMap<String, Conversation>>>,
}

/// A conversation and its name.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NamedConversation {
    /// The name. A request may have given the id.
    pub name: String,
    /// The conversation.
    pub handle: Conversation,
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Service({:?})", self.recto)
    }
}

impl Service {
    /// A service for a store.
    pub fn new(recto: Recto) -> Service {
        Service { recto, cache: None }
    }

    /// A service for a store that no other program changes, such as one in memory. It caches the handles of
    /// conversations.
    pub fn exclusive(recto: Recto) -> Service {
        Service { recto, cache: Some(Mutex::default()) }
    }

    /// The store.
    pub fn recto(&self) -> &Recto {
        &self.recto
    }

    /// Performs a request that is JSON text, and returns the response as one line of JSON without a line
    /// break. An error is a response: `{"error": {code, message, field?, details?}}`.
    pub async fn request(&self, text: &str) -> String {
        match self.try_request(text).await {
            Ok(response) => response.to_json(),
            Err(error) => error.to_json().to_string(),
        }
    }

    /// [`request`](Self::request) with the error as a value.
    pub async fn try_request(&self, text: &str) -> Result<Response, Error> {
        self.perform(Request::read(text)?).await
    }

    /// Performs one request.
    pub async fn perform(&self, request: Request<'_>) -> Result<Response, Error> {
        request.perform(self).await
    }

    /// Performs one request whose type is known.
    pub async fn run<R: Perform>(&self, request: R) -> Result<R::Response, Error> {
        request.perform(self).await
    }

    /// A conversation by its whole name or its id. A prefix of a name is not accepted, so that a misspelt name
    /// does not select another conversation.
    pub async fn conversation(&self, given: &str) -> Result<NamedConversation, Error> {
        if let Some(handle) = self.cached(given) {
            return Ok(NamedConversation { name: given.to_owned(), handle });
        }
        let (name, handle) = match self.recto.conversation(given).await {
            Err(error @ RectoError::Store(StoreError::ConversationNotFound { .. })) => {
                let id = given.parse().map_err(|_| error)?;
                let name = self.recto.info_by_id(id).await?.name;
                (name, self.recto.conversation_by_id(id).await?)
            }
            found => (given.to_owned(), found?),
        };
        self.cache(&name, &handle);
        Ok(NamedConversation { name, handle })
    }

    fn cached(&self, name: &str) -> Option<Conversation> {
        let cache = self.cache.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
        cache.get(name).cloned()
    }

    pub(crate) fn cache(&self, name: &str, handle: &Conversation) {
        if let Some(cache) = &self.cache {
            let mut cache = cache.lock().unwrap_or_else(PoisonError::into_inner);
            cache.insert(name.to_owned(), handle.clone());
        }
    }

    /// Drops the cached handle of a name. Called after the conversation was renamed or removed, or its
    /// settings have changed.
    pub(crate) fn forget(&self, name: &str) {
        if let Some(cache) = &self.cache {
            cache.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
        }
    }
}
