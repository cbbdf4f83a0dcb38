//! The input of an import: a file, or a copy of a stream.

use std::fs::File;
use std::io::{self, Read, Write};

use recto_format::Input;

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
        let copy_error = |error: io::Error| {
            let folder = std::env::temp_dir();
            let reason = format!("cannot copy it to {}: {error}", folder.display());
            io::Error::new(error.kind(), format!("{reason}; set TMPDIR to use another folder"))
        };
        let mut file = tempfile::tempfile().map_err(copy_error)?;
        file.write_all(&beginning).map_err(copy_error)?;
        let mut piece = beginning;
        piece.truncate(1 << 16);
        let mut all = MAX_IN_MEMORY + 1;
        loop {
            match stream.read(&mut piece) {
                Ok(0) => return Ok(TranscriptInput::File(file, all)),
                Ok(read) => {
                    file.write_all(&piece[..read]).map_err(copy_error)?;
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
