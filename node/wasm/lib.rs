//! The WebAssembly module of `recto-context/wasm`: requests of `recto-lists` as JSON text.
//!
//! A module and its caller share memory only, so a request takes three steps: `recto_input` allocates a
//! buffer for the text, the caller writes the text into it, and `recto_compute` replaces the text with the
//! response. `recto_output` returns the address of the response. All three functions use one buffer, so the
//! caller frees no memory.

#![allow(unsafe_code, reason = "`no_mangle` is an unsafe attribute; the functions are safe code")]

use std::cell::RefCell;

thread_local! {
    /// The request, then the response.
    static TEXT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Allocates the buffer for a request of `length` bytes. Returns its address.
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
    // The caller encodes the text as UTF-8. Invalid bytes are replaced.
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
