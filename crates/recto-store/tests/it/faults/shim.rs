//! A shim that intercepts the system calls of a child process. Its source is the C file in this folder.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::note;

/// The shim, built for this run.
pub(super) struct Shim(PathBuf);

impl Shim {
    /// `None`, with a note, if it cannot be built.
    pub(super) fn build(folder: &Path) -> Option<Shim> {
        let library = folder.join("shim.so");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/faults/shim.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library);
        let built = compiler.args([source, "-ldl", "-lpthread"]).status();
        if cfg!(target_os = "linux") && built.is_ok_and(|status| status.success()) {
            return Some(Shim(library));
        }
        note("skipped: this test needs Linux and a C compiler called cc");
        None
    }

    /// Intercepts the calls of this command to the file.
    pub(super) fn between(&self, command: &mut Command, file: &Path) {
        command.env("LD_PRELOAD", &self.0).env("SHIM_FILE", file.canonicalize().unwrap());
    }
}

/// A recorded call of a process, or a line that it printed.
pub(super) enum Call {
    Write { file: usize, offset: usize, bytes: Vec<u8> },
    Cut { file: usize, len: usize },
    Sync { file: usize },
    Print(String),
}

/// Reads the record of the shim.
pub(super) fn calls(log: &Path) -> Vec<Call> {
    let log = std::fs::read(log).unwrap();
    let mut rest = &*log;
    let mut calls = Vec::new();
    while let Some((head, behind)) = rest.split_first_chunk::<16>() {
        let file = head[1] as usize;
        let len = u32::from_le_bytes(head[4..8].try_into().unwrap()) as usize;
        let offset = u64::from_le_bytes(head[8..].try_into().unwrap()) as usize;
        let (bytes, behind) = behind.split_at(len);
        calls.push(match head[0] {
            b'W' => Call::Write { file, offset, bytes: bytes.to_vec() },
            b'T' => Call::Cut { file, len: offset },
            b'S' => Call::Sync { file },
            _ => Call::Print(String::from_utf8_lossy(bytes).into_owned()),
        });
        rest = behind;
    }
    calls
}
