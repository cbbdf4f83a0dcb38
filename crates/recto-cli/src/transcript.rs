//! Imports a transcript into a store, with progress and cancellation. A failed import leaves nothing
//! behind.

use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use recto::blocking::Recto;
use recto::{Import, Naming, Settings};
use recto_format::{Error, Format, ImportOptions, Input, Sink, Step, TranscriptWarning};
use recto_service::{Transcript, finish_import};

use crate::failure::Failure;

/// An import: the target store and the options.
pub(crate) struct ImportJob<'a> {
    pub(crate) recto: &'a Recto,
    pub(crate) format: Option<Format>,
    pub(crate) options: ImportOptions,
    pub(crate) naming: Naming,
    pub(crate) settings: Settings,
}

impl ImportJob<'_> {
    /// Imports everything or nothing. Setting `stop` cancels the import between two steps.
    pub(crate) fn run<I: Input + ?Sized>(
        self,
        input: &I,
        stop: &AtomicBool,
        watch: &mut dyn FnMut(u64),
    ) -> Result<Transcript, Failure> {
        let ImportJob { recto, format, options, naming, settings } = self;
        let into = Import::new(recto.inner(), naming, settings);
        let mut sink = StoreSink { recto, into, remarks: Vec::new(), refused: None, stop, watch };
        let read =
            recto_format::import(&StoppableInput { input, stop }, format, &options, &mut sink);
        let StoreSink { mut into, remarks, refused, .. } = sink;
        let failure = match (refused, read) {
            (None, Ok(format)) => {
                return Ok(recto.wait(finish_import(into, format, remarks))?);
            }
            (Some(failure), _) => failure,
            (None, Err(_)) if stop.load(Ordering::Relaxed) => Failure::Interrupted,
            (None, Err(error)) => error.into(),
        };
        let left = recto.wait(into.abandon());
        let left = left.into_iter().map(|(name, error)| (name, error.to_string()));
        Err(Failure::NotImported { cause: Box::new(failure), left: left.collect() })
    }
}

/// Writes the steps of a transcript to a store.
struct StoreSink<'a> {
    recto: &'a Recto,
    into: Import,
    remarks: Vec<TranscriptWarning>,
    /// The error of the step that failed.
    refused: Option<Failure>,
    stop: &'a AtomicBool,
    watch: &'a mut dyn FnMut(u64),
}

impl Sink for StoreSink<'_> {
    fn step(&mut self, step: Step) -> Result<(), Error> {
        let done = match self.stop.load(Ordering::Relaxed) {
            true => Err(Failure::Interrupted),
            // A step is not cancelled half way: what it creates would be unknown and could not be
            // removed.
            false => self.recto.wait(self.into.step(step)).map_err(Failure::from),
        };
        done.map_err(|failure| {
            let stopped = Error::Stopped(failure.to_string());
            self.refused = Some(failure);
            stopped
        })
    }

    fn warning(&mut self, warning: TranscriptWarning) {
        self.remarks.push(warning);
    }

    fn progress(&mut self, bytes: u64) {
        (self.watch)(bytes);
    }
}

/// An input whose reads fail once `stop` is set.
struct StoppableInput<'a, I: ?Sized> {
    input: &'a I,
    stop: &'a AtomicBool,
}

impl<I: Input + ?Sized> Input for StoppableInput<'_, I> {
    fn open(&self) -> io::Result<Box<dyn Read + '_>> {
        Ok(Box::new(StoppableRead { bytes: self.input.open()?, stop: self.stop }))
    }
}

struct StoppableRead<'a> {
    bytes: Box<dyn Read + 'a>,
    stop: &'a AtomicBool,
}

impl Read for StoppableRead<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.stop.load(Ordering::Relaxed) {
            true => Err(io::Error::other("stopped")),
            false => self.bytes.read(buffer),
        }
    }
}

/// The bytes of a transcript. They must be readable twice, because the format is detected first, so a
/// stream is copied.
#[derive(Debug)]
pub(crate) enum TranscriptInput {
    File(File, u64),
    Memory(Vec<u8>),
}

/// Longest stream that is copied to memory, in bytes. A longer one is copied to a temporary file.
const MAX_IN_MEMORY: u64 = 4 << 20;

impl TranscriptInput {
    /// Copies a stream. A long one is copied to an unnamed temporary file, which the system deletes when
    /// the process ends.
    pub(crate) fn copied(stream: &mut dyn Read) -> io::Result<TranscriptInput> {
        let mut beginning = Vec::new();
        stream.take(MAX_IN_MEMORY + 1).read_to_end(&mut beginning)?;
        if beginning.len() as u64 <= MAX_IN_MEMORY {
            return Ok(TranscriptInput::Memory(beginning));
        }
        let about = |error: io::Error| {
            let folder = std::env::temp_dir();
            let reason = format!("cannot copy it to {}: {error}", folder.display());
            io::Error::new(error.kind(), format!("{reason}; set TMPDIR to use another folder"))
        };
        let mut file = tempfile::tempfile().map_err(about)?;
        file.write_all(&beginning).map_err(about)?;
        let mut piece = beginning;
        piece.truncate(1 << 16);
        let mut all = MAX_IN_MEMORY + 1;
        loop {
            match stream.read(&mut piece) {
                Ok(0) => return Ok(TranscriptInput::File(file, all)),
                Ok(read) => {
                    file.write_all(&piece[..read]).map_err(about)?;
                    all += read as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The number of bytes, for the progress bar.
    pub(crate) fn len(&self) -> u64 {
        match self {
            TranscriptInput::File(_, len) => *len,
            TranscriptInput::Memory(bytes) => bytes.len() as u64,
        }
    }
}

impl Input for TranscriptInput {
    fn open(&self) -> io::Result<Box<dyn Read + '_>> {
        match self {
            TranscriptInput::File(file, _) => Input::open(file),
            TranscriptInput::Memory(bytes) => Input::open(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_stream_stays_in_memory_and_a_long_one_becomes_a_file() {
        for (length, is_file) in [(0, false), (9, false), (4 << 20, false), (5 << 20, true)] {
            let bytes: Vec<u8> = (0..length).map(|number: u32| (number % 251) as u8).collect();
            let source = TranscriptInput::copied(&mut &bytes[..]).unwrap();
            assert_eq!(matches!(source, TranscriptInput::File(..)), is_file, "{length}");
            assert_eq!(source.len(), u64::from(length));
            // It can be read several times, always from the start.
            for _ in 0..2 {
                let mut read = Vec::new();
                source.open().unwrap().read_to_end(&mut read).unwrap();
                assert!(read == bytes, "{length}");
            }
        }
    }
}
