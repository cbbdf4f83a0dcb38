//! The native library of the npm package `recto-context`: an open store that performs requests of
//! `recto-service`.
//!
//! Requests and responses are JSON text, so that the vocabulary is the one of `recto exec`. The TypeScript
//! files in `src/` add types and methods, and turn `{"error": …}` into exceptions.
//!
//! Asynchronous methods run on the runtime of `napi`, which all stores of a process share. A synchronous
//! method waits for the same future on the thread of JavaScript.

use std::sync::{Arc, PoisonError, RwLock};

use napi::Env;
use napi::bindgen_prelude::{Error, PromiseRaw, Result, block_on};
use napi_derive::napi;
use recto::engine::WithoutLists;
use recto::{Address, Limits, LogIndex, Options, Outcome, Recto, Tenant};
use recto_service::{Response, Service};
use serde::Serialize;

/// The response of a store that was closed.
const CLOSED: &str =
    r#"{"error":{"code":"storage","message":"the store is closed; open it again"}}"#;

/// An open store. The class `Store` wraps it.
#[napi]
pub struct NativeStore {
    service: RwLock<Option<Arc<Service>>>,
}

/// Options of an opened store.
#[napi(object)]
pub struct NativeOptions {
    /// The tenant whose conversations are read and written.
    pub tenant: Option<String>,
    /// Whether a store that is created here has an index for `search`.
    pub search: Option<bool>,
    /// The largest accepted message, in bytes of its JSON.
    pub max_message_bytes: Option<u32>,
}

#[napi]
impl NativeStore {
    /// Opens a store by its address: `memory:`, `sqlite:PATH` or `postgres://…`.
    #[napi]
    pub async fn open(address: String, options: NativeOptions) -> Result<NativeStore> {
        open(address, options).await
    }

    /// `open` on the thread of JavaScript.
    #[napi]
    pub fn open_sync(address: String, options: NativeOptions) -> Result<NativeStore> {
        block_on(open(address, options))
    }

    /// Performs a request. An error of the contract is a response.
    #[napi(ts_return_type = "Promise<string>")]
    pub fn request<'env>(&self, env: &'env Env, text: String) -> Result<PromiseRaw<'env, String>> {
        // Taken here and not in the future, so that a store that is closed next completes the request.
        let service = self.service();
        env.spawn_future(async move {
            Ok(match service {
                Some(service) => service.request(&text).await,
                None => CLOSED.to_owned(),
            })
        })
    }

    /// `request` on the thread of JavaScript.
    #[napi]
    pub fn request_sync(&self, text: String) -> String {
        match self.service() {
            Some(service) => block_on(service.request(&text)),
            None => CLOSED.to_owned(),
        }
    }

    /// `requestSync` for a change whose lists of indices are read when they are used.
    #[napi]
    pub fn change_sync(&self, text: String) -> NativeChange {
        let Some(service) = self.service() else {
            return NativeChange { response: CLOSED.to_owned(), outcome: None };
        };
        match block_on(service.try_request(&text)) {
            Ok(Response::Apply(applied)) if !applied.dry_run && applied.state.is_none() => {
                let response = to_json(&WithoutLists(&applied.outcome));
                NativeChange { response, outcome: Some(applied.outcome) }
            }
            Ok(response) => NativeChange { response: response.to_json(), outcome: None },
            Err(error) => NativeChange { response: error.to_json().to_string(), outcome: None },
        }
    }

    /// Closes the store. Requests that run are completed. Closing it again has no effect.
    #[napi]
    pub fn close(&self) {
        drop(self.service.write().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Whether the store was closed.
    #[napi(getter)]
    pub fn closed(&self) -> bool {
        self.service.read().unwrap_or_else(PoisonError::into_inner).is_none()
    }
}

impl NativeStore {
    fn service(&self) -> Option<Arc<Service>> {
        self.service.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The response to a change. The lists of indices are not part of the text, because they may have an index for
/// every message: reading them takes longer than most changes.
#[napi]
pub struct NativeChange {
    response: String,
    /// Nothing if the response is complete, such as an error.
    outcome: Option<Outcome>,
}

#[napi]
impl NativeChange {
    /// The response as JSON.
    #[napi(getter)]
    pub fn response(&self) -> &str {
        &self.response
    }

    /// Whether the response has the lists.
    #[napi(getter)]
    pub fn is_complete(&self) -> bool {
        self.outcome.is_none()
    }

    /// The list `hidden` as JSON.
    #[napi]
    pub fn hidden(&self) -> String {
        self.list(Outcome::hidden)
    }

    /// The list `shown` as JSON.
    #[napi]
    pub fn shown(&self) -> String {
        self.list(Outcome::shown)
    }

    /// The list `added` as JSON.
    #[napi]
    pub fn added(&self) -> String {
        self.list(Outcome::added)
    }
}

impl NativeChange {
    fn list(&self, read: impl Fn(&Outcome) -> Vec<LogIndex>) -> String {
        to_json(&self.outcome.as_ref().map(read).unwrap_or_default())
    }
}

fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("plain data can be written")
}

async fn open(address: String, options: NativeOptions) -> Result<NativeStore> {
    let is_in_memory = matches!(address.parse(), Ok(Address::Memory));
    let mut limits = Limits::default();
    if let Some(bytes) = options.max_message_bytes {
        limits.message_bytes = bytes as usize;
    }
    let options = Options {
        limits,
        tenant: Tenant(options.tenant.unwrap_or_default()),
        // As in `recto exec`: an index of a store in memory seldom pays off.
        search: options.search.unwrap_or(!is_in_memory),
        ..Options::default()
    };
    let opened = Recto::open_with(&address, options).await;
    // The message of the exception is the error of the contract as JSON.
    let recto = opened.map_err(|error| Error::from_reason(error.to_json().to_string()))?;
    let service = match is_in_memory {
        true => Service::exclusive(recto),
        false => Service::new(recto),
    };
    Ok(NativeStore { service: RwLock::new(Some(Arc::new(service))) })
}

/// The JSON Schema of all requests and responses.
#[napi]
pub fn schema() -> String {
    recto_service::schema().to_string()
}

/// Performs a request about a list of messages, which needs no store: `fit`, `repair` or `countTokens`.
#[napi]
pub fn compute(text: String) -> String {
    recto_lists::compute(&text)
}
