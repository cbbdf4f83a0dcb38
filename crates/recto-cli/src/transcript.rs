//! A transcript on its way into a store: read step by step, shown as it goes, given up as a whole.

use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use recto::blocking::Recto;
use recto::{Import, Naming, Settings};
use recto_format::{Error, Format, ImportOptions, Input, Remark, Sink, Step};
use recto_service::{Transcript, finish_import};

use crate::failure::Failure;

/// What is imported, and how.
pub(crate) struct Importing<'a> {
    pub(crate) recto: &'a Recto,
    pub(crate) format: Option<Format>,
    pub(crate) options: ImportOptions,
    pub(crate) naming: Naming,
    pub(crate) settings: Settings,
}

impl Importing<'_> {
    /// Imports everything or nothing. `stop` ends it between two steps.
    pub(crate) fn run<I: Input + ?Sized>(
        self,
        input: &I,
        stop: &AtomicBool,
        watch: &mut dyn FnMut(u64),
    ) -> Result<Transcript, Failure> {
        let Importing { recto, format, options, naming, settings } = self;
        let into = Import::new(recto.inner(), naming, settings);
        let mut sink = IntoStore { recto, into, remarks: Vec::new(), refused: None, stop, watch };
        let read = recto_format::import(&Watched { input, stop }, format, &options, &mut sink);
        let IntoStore { mut into, remarks, refused, .. } = sink;
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

/// Takes steps into a store.
struct IntoStore<'a> {
    recto: &'a Recto,
    into: Import,
    remarks: Vec<Remark>,
    /// Why the store or the engine refused a step.
    refused: Option<Failure>,
    stop: &'a AtomicBool,
    watch: &'a mut dyn FnMut(u64),
}

impl Sink for IntoStore<'_> {
    fn step(&mut self, step: Step) -> Result<(), Error> {
        let done = match self.stop.load(Ordering::Relaxed) {
            true => Err(Failure::Interrupted),
            // To the end: half a step could leave something that nobody knows of.
            false => self.recto.wait(self.into.step(step)).map_err(Failure::from),
        };
        done.map_err(|failure| {
            let told = Error::Stopped(failure.to_string());
            self.refused = Some(failure);
            told
        })
    }

    fn remark(&mut self, remark: Remark) {
        self.remarks.push(remark);
    }

    fn progress(&mut self, bytes: u64) {
        (self.watch)(bytes);
    }
}

/// An input that ends with an error when it is told to stop.
struct Watched<'a, I: ?Sized> {
    input: &'a I,
    stop: &'a AtomicBool,
}

impl<I: Input + ?Sized> Input for Watched<'_, I> {
    fn open(&self) -> io::Result<Box<dyn Read + '_>> {
        Ok(Box::new(WatchedBytes { bytes: self.input.open()?, stop: self.stop }))
    }
}

struct WatchedBytes<'a> {
    bytes: Box<dyn Read + 'a>,
    stop: &'a AtomicBool,
}

impl Read for WatchedBytes<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.stop.load(Ordering::Relaxed) {
            true => Err(io::Error::other("it was told to stop")),
            false => self.bytes.read(buffer),
        }
    }
}

/// A file, or a copy of what can be read only once: formats are recognised before they are read.
#[derive(Debug)]
pub(crate) enum Source {
    File(File, u64),
    Memory(Vec<u8>),
}

/// So much of a stream is kept in memory; a longer one is copied to a file.
const IN_MEMORY: u64 = 4 << 20;

impl Source {
    /// All of a stream. A long one becomes a file without a name in the folder for such files, which
    /// is gone with the program however that ends.
    pub(crate) fn copied(stream: &mut dyn Read) -> io::Result<Source> {
        let mut beginning = Vec::new();
        stream.take(IN_MEMORY + 1).read_to_end(&mut beginning)?;
        if beginning.len() as u64 <= IN_MEMORY {
            return Ok(Source::Memory(beginning));
        }
        let about = |error: io::Error| {
            let folder = std::env::temp_dir();
            let told = format!("it cannot be copied to {}: {error}", folder.display());
            io::Error::new(error.kind(), format!("{told}; TMPDIR names another folder"))
        };
        let mut file = tempfile::tempfile().map_err(about)?;
        file.write_all(&beginning).map_err(about)?;
        let mut piece = beginning;
        piece.truncate(1 << 16);
        let mut all = IN_MEMORY + 1;
        loop {
            match stream.read(&mut piece) {
                Ok(0) => return Ok(Source::File(file, all)),
                Ok(read) => {
                    file.write_all(&piece[..read]).map_err(about)?;
                    all += read as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// How many bytes it has, for a bar.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Source::File(_, len) => *len,
            Source::Memory(bytes) => bytes.len() as u64,
        }
    }
}

impl Input for Source {
    fn open(&self) -> io::Result<Box<dyn Read + '_>> {
        match self {
            Source::File(file, _) => Input::open(file),
            Source::Memory(bytes) => Input::open(bytes),
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
            let source = Source::copied(&mut &bytes[..]).unwrap();
            assert_eq!(matches!(source, Source::File(..)), is_file, "{length}");
            assert_eq!(source.len(), u64::from(length));
            // As often as it takes, from the start.
            for _ in 0..2 {
                let mut read = Vec::new();
                source.open().unwrap().read_to_end(&mut read).unwrap();
                assert!(read == bytes, "{length}");
            }
        }
    }
}
