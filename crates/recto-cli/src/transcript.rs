//! The input of an import: a file, or a copy of a stream.

use std::fs::File;
use std::io::{self, Read, Write};

use recto_format::Input;

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
