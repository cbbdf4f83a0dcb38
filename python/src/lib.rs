//! The native module `recto._recto`: an open store that answers requests of `recto-service`.
//!
//! Requests and responses are JSON text, so that the vocabulary is the one of `recto exec`. The Python
//! files beside it add types and methods. A blocking call releases the interpreter.
//!
//! A process that was created with `fork` must not use the connections and threads of its parent. A
//! store therefore compares the id of its process with the present one: in another process it refuses
//! requests, and it is neither closed nor freed there.

mod json;

use std::mem;
use std::process;
use std::sync::{Arc, PoisonError, RwLock};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use recto::{Address, Limits, Options, Tenant, blocking};
use recto_service::Service;

/// An open store. The class `recto.Store` wraps it.
#[pyclass(frozen, module = "recto._recto", name = "NativeStore")]
struct NativeStore {
    open: RwLock<Option<Arc<OpenStore>>>,
}

/// A store with its runtime. It is dropped when it is closed and its last request has ended.
struct OpenStore {
    process: u32,
    parts: Option<(Service, blocking::Recto)>,
}

impl Drop for OpenStore {
    fn drop(&mut self) {
        if self.process != process::id() {
            // Its threads do not exist here, and closing the file would release the parent's locks.
            mem::forget(self.parts.take());
        }
    }
}

#[pymethods]
impl NativeStore {
    /// Opens a store by its address: `memory:`, `sqlite:PATH` or `postgres://…`.
    #[staticmethod]
    #[pyo3(signature = (address, tenant=None, search=None, max_message_bytes=None))]
    fn open(
        py: Python<'_>,
        address: &str,
        tenant: Option<&str>,
        search: Option<bool>,
        max_message_bytes: Option<usize>,
    ) -> PyResult<NativeStore> {
        let is_in_memory = matches!(address.parse(), Ok(Address::Memory));
        let options = Options {
            tenant: Tenant(tenant.unwrap_or_default().to_owned()),
            // As in `recto exec`: an index of a store in memory seldom pays off.
            search: search.unwrap_or(!is_in_memory),
            limits: Limits {
                message_bytes: max_message_bytes.unwrap_or(Limits::default().message_bytes),
                ..Limits::default()
            },
            ..Options::default()
        };
        let opened = py.detach(|| blocking::Recto::open_with(address, options));
        let recto = opened.map_err(|error| exception(py, &error.to_json().to_string()))?;
        let inner = recto.inner().clone();
        let service = match is_in_memory {
            true => Service::exclusive(inner),
            false => Service::new(inner),
        };
        let open = OpenStore { process: process::id(), parts: Some((service, recto)) };
        Ok(NativeStore { open: RwLock::new(Some(Arc::new(open))) })
    }

    /// Answers a request. Raises a `RectoError` if it is refused.
    fn request(&self, py: Python<'_>, text: &str) -> PyResult<String> {
        let open = self.open_store(py)?;
        let (service, recto) = open.parts.as_ref().expect("parts are taken only by drop");
        let answered = py.detach(|| {
            let answer = recto.wait(service.try_request(text));
            answer.map(|response| response.to_json()).map_err(|error| error.to_json().to_string())
        });
        answered.map_err(|error| exception(py, &error))
    }

    /// Answers a request that is a Python object. Returns `NotImplemented` for an object whose JSON is
    /// written in Python.
    fn call<'py>(
        &self,
        py: Python<'py>,
        request: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match json::written(request) {
            Some(text) => value(py, &self.request(py, &text)?),
            None => Ok(py.NotImplemented().into_bound(py)),
        }
    }

    /// Closes the store when its running requests have ended. Closing it again has no effect.
    fn close(&self, py: Python<'_>) {
        let open = match self.is_of_this_process() {
            true => self.open.write().unwrap_or_else(PoisonError::into_inner).take(),
            false => None,
        };
        py.detach(|| drop(open));
    }

    /// Whether the store was closed.
    fn is_closed(&self) -> bool {
        self.open.read().unwrap_or_else(PoisonError::into_inner).is_none()
    }
}

impl NativeStore {
    fn open_store(&self, py: Python<'_>) -> PyResult<Arc<OpenStore>> {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner).clone();
        let refuse = |message: &str| {
            let code = r#"{"error":{"code":"storage","message":""#;
            exception(py, &format!("{code}{message}\"}}}}"))
        };
        let open = open.ok_or_else(|| refuse("the store is closed; open it again"))?;
        match open.process == process::id() {
            true => Ok(open),
            false => {
                // The clone must not end the parent's connection.
                mem::forget(open);
                Err(refuse(
                    "the store was opened before this process was forked; open it in this process, \
                     or start processes with the method 'spawn'",
                ))
            }
        }
    }

    fn is_of_this_process(&self) -> bool {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        open.as_ref().is_none_or(|open| open.process == process::id())
    }
}

/// Answers a request that needs no store: `fit`, `repair` or `countTokens`.
#[pyfunction]
#[pyo3(signature = (text, /))]
fn compute(py: Python<'_>, text: &str) -> PyResult<String> {
    let answered = py.detach(|| {
        let answer = recto_service::compute(text);
        answer.map(|response| response.to_json()).map_err(|error| error.to_json().to_string())
    });
    answered.map_err(|error| exception(py, &error))
}

/// [`compute`] for a request that is a Python object, as [`NativeStore::call`].
#[pyfunction]
#[pyo3(signature = (request, /))]
fn call<'py>(py: Python<'py>, request: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    match json::written(request) {
        Some(text) => value(py, &compute(py, &text)?),
        None => Ok(py.NotImplemented().into_bound(py)),
    }
}

/// The response as a Python object.
fn value<'py>(py: Python<'py>, response: &str) -> PyResult<Bound<'py, PyAny>> {
    match json::read(py, response) {
        Some(value) => Ok(value),
        None => py.import("recto._json")?.call_method1("decode", (response,)),
    }
}

/// The exception for an error of the contract: `recto.errors.error_of` chooses its class.
fn exception(py: Python<'_>, error: &str) -> PyErr {
    let make = || py.import("recto.errors")?.call_method1("error_of", (error,));
    match make() {
        Ok(exception) => PyErr::from_value(exception),
        Err(_) => PyRuntimeError::new_err(error.to_owned()),
    }
}

/// The native part of the package `recto`.
#[pymodule]
mod _recto {
    #[pymodule_export]
    use super::{NativeStore, call, compute};
}
