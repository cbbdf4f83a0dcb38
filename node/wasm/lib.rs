//! The WebAssembly module of `recto-context/wasm`: requests of `recto-lists` as JSON text.
//!
//! A module and its caller share memory only, so a request takes three steps: `recto_input` makes room for
//! the text, the caller writes it there, `recto_compute` replaces it by the response. `recto_output` says
//! where the response is. All three use one buffer, so no memory is ever freed by the caller.

#![allow(unsafe_code, reason = "`no_mangle` is an unsafe attribute; the functions are safe code")]

use std::cell::RefCell;

thread_local! {
    /// The request, then the response.
    static TEXT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Makes room for a request of `length` bytes. Returns where the caller writes it.
#[unsafe(no_mangle)]
pub extern "C" fn recto_input(length: usize) -> *mut u8 {
    TEXT.with_borrow_mut(|text| {
        text.clear();
        text.resize(length, 0);
        text.as_mut_ptr()
    })
}

/// Performs the request. Returns the length of the response.
#[unsafe(no_mangle)]
pub extern "C" fn recto_compute() -> usize {
    let request = TEXT.take();
    // The caller encodes text; bytes that are not UTF-8 give an error of the contract.
    let response = recto_lists::compute(&String::from_utf8_lossy(&request));
    let length = response.len();
    TEXT.set(response.into_bytes());
    length
}

/// The address of the response. It is valid until the next request.
#[unsafe(no_mangle)]
pub extern "C" fn recto_output() -> *const u8 {
    TEXT.with_borrow(|text| text.as_ptr())
}
