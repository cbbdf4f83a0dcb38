//! The native module `recto._recto`: an open store that answers requests of `recto-service`.
//!
//! Requests and responses are JSON text, so that the vocabulary is the one of `recto exec`. The Python
//! files beside it add types and methods. A blocking call releases the interpreter.
//!
//! `fork.rs` describes what happens in a process that was created with `fork`.

mod fork;
mod json;

use std::mem;
use std::process;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use recto::{Address, Limits, Options, Tenant, blocking};
use recto_service::Service;

use crate::fork::{OpenFile, Running};

const CLOSED: &str = "the store is closed; open it again";
const MEMORY_OF_PARENT: &str = "a store in memory belongs to the process that opened it; open a store in this \
    process, or use an address that both processes can open";
const FILE_OF_PARENT: &str = "this process was forked while a store was open, without the hooks of \
    os.register_at_fork; open stores after the fork, or start processes with the method 'spawn'";

/// A store. The class `recto.Store` wraps it.
#[pyclass(frozen, module = "recto._recto", name = "NativeStore")]
struct NativeStore {
    address: String,
    options: Options,
    is_closed: AtomicBool,
    open: Arc<Slot>,
}

/// An open store, or nothing: in a closed store, and before the first request after a fork.
pub(crate) struct Slot(RwLock<Option<Arc<OpenStore>>>);

impl Slot {
    /// The open store, which nothing else opens or closes meanwhile.
    fn write(&self) -> RwLockWriteGuard<'_, Option<Arc<OpenStore>>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self) -> Option<Arc<OpenStore>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn take(&self) -> Option<Arc<OpenStore>> {
        self.write().take()
    }
}

/// An open store with its runtime. It is dropped when it is closed and its last request has ended.
pub(crate) struct OpenStore {
    process: u32,
    parts: Option<Parts>,
}

struct Parts {
    service: Service,
    recto: blocking::Recto,
    /// Dropped last. `None` for a store in memory.
    _file: Option<OpenFile>,
}

impl OpenStore {
    /// Opens a store. An error is an error of the contract as JSON.
    fn open(address: &str, options: Options) -> Result<OpenStore, String> {
        let is_in_memory = is_in_memory(address);
        let file = match is_in_memory {
            true => None,
            false => Some(OpenFile::new().ok_or_else(|| refusal(FILE_OF_PARENT))?),
        };
        let opened = blocking::Recto::open_with(address, options);
        let recto = opened.map_err(|error| error.to_json().to_string())?;
        let inner = recto.inner().clone();
        let service = match is_in_memory {
            true => Service::exclusive(inner),
            false => Service::new(inner),
        };
        let parts = Parts { service, recto, _file: file };
        Ok(OpenStore { process: process::id(), parts: Some(parts) })
    }

    fn is_of_this_process(&self) -> bool {
        self.process == process::id()
    }
}

impl Drop for OpenStore {
    fn drop(&mut self) {
        if !self.is_of_this_process() {
            // Its threads do not exist here, and its connections belong to the parent.
            mem::forget(self.parts.take());
        }
    }
}

fn is_in_memory(address: &str) -> bool {
    matches!(address.parse(), Ok(Address::Memory))
}

/// An error of the contract as JSON.
fn refusal(message: &str) -> String {
    format!(r#"{{"error":{{"code":"storage","message":"{message}"}}}}"#)
}

#[pymethods]
impl NativeStore {
    /// Opens a store by its address: `memory:`, `sqlite:PATH` or `postgres://…`.
    #[staticmethod]
    #[pyo3(signature = (address, tenant=None, search=None, max_message_bytes=None))]
    fn open(
        py: Python<'_>,
        address: String,
        tenant: Option<&str>,
        search: Option<bool>,
        max_message_bytes: Option<usize>,
    ) -> PyResult<NativeStore> {
        let options = Options {
            tenant: Tenant(tenant.unwrap_or_default().to_owned()),
            // As in `recto exec`: an index of a store in memory seldom pays off.
            search: search.unwrap_or(!is_in_memory(&address)),
            limits: Limits {
                message_bytes: max_message_bytes.unwrap_or(Limits::default().message_bytes),
                ..Limits::default()
            },
            ..Options::default()
        };
        let opened = py.detach(|| {
            let running = Running::begin();
            let open = OpenStore::open(&address, options.clone())?;
            let slot = Arc::new(Slot(RwLock::new(Some(Arc::new(open)))));
            // A store in memory stays open.
            if !is_in_memory(&address) {
                running.register(&slot);
            }
            Ok(slot)
        });
        let open = opened.map_err(|error: String| exception(py, &error))?;
        Ok(NativeStore { address, options, is_closed: AtomicBool::new(false), open })
    }

    /// Answers a request. Raises a `RectoError` if it is refused.
    fn request(&self, py: Python<'_>, text: &str) -> PyResult<String> {
        py.detach(|| self.answer(text)).map_err(|error| exception(py, &error))
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
        self.is_closed.store(true, SeqCst);
        py.detach(|| {
            let _running = Running::begin();
            drop(self.open.take());
        });
    }

    /// Whether the store was closed.
    fn is_closed(&self) -> bool {
        self.is_closed.load(SeqCst)
    }
}

impl NativeStore {
    /// The response to a request, or an error of the contract as JSON.
    fn answer(&self, text: &str) -> Result<String, String> {
        let _running = Running::begin();
        let open = self.opened()?;
        let Parts { service, recto, .. } = open.parts.as_ref().expect("only drop takes the parts");
        let answer = recto.wait(service.try_request(text));
        answer.map(|response| response.to_json()).map_err(|error| error.to_json().to_string())
    }

    /// The open store. It is opened if this is the first request after a fork.
    fn opened(&self) -> Result<Arc<OpenStore>, String> {
        if let Some(open) = self.open.read() {
            let of_parent =
                if is_in_memory(&self.address) { MEMORY_OF_PARENT } else { FILE_OF_PARENT };
            return if open.is_of_this_process() { Ok(open) } else { Err(refusal(of_parent)) };
        }
        let mut slot = self.open.write();
        if self.is_closed.load(SeqCst) {
            return Err(refusal(CLOSED));
        }
        if slot.is_none() {
            *slot = Some(Arc::new(OpenStore::open(&self.address, self.options.clone())?));
        }
        Ok(slot.clone().expect("it is open"))
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
    use super::fork::{after_fork_in_child, after_fork_in_parent, before_fork};
    #[pymodule_export]
    use super::{NativeStore, call, compute};
}
