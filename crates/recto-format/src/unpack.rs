//! Decompression: files compressed with zstd are decompressed while they are read, in every format.
//!
//! The output is bounded: a file that expands to far more than a transcript does (a decompression
//! bomb) fails while it is read.

use std::cell::Cell;
use std::fmt;
use std::io::{self, Cursor, Read};
use std::rc::Rc;

/// Maximum ratio of decompressed to compressed size. Transcripts are repetitive: ratios of 50 occur.
const MAX_RATIO: u64 = 500;
/// Decompressed size in bytes that is always allowed.
const ALWAYS_ALLOWED_BYTES: u64 = 16 << 20;
/// Maximum window of a zstd stream, as a power of two: 128 MiB, the default limit of zstd's own tools.
#[cfg(feature = "zstd")]
const WINDOW_LOG: u32 = 27;

const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// A file whose decompressed size exceeds the limit.
#[derive(Debug)]
pub(crate) struct DecompressionBomb {
    pub(crate) size: u64,
    pub(crate) limit: u64,
}

impl fmt::Display for DecompressionBomb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the decompressed size is {} bytes or more; at most {} are allowed",
            self.size, self.limit
        )
    }
}

impl std::error::Error for DecompressionBomb {}

/// A compressed file with invalid bytes.
#[derive(Debug)]
pub(crate) struct CorruptInput(String);

impl CorruptInput {
    pub(crate) fn reason(&self) -> String {
        format!("the file cannot be decompressed: {}", self.0)
    }
}

impl fmt::Display for CorruptInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason())
    }
}

impl std::error::Error for CorruptInput {}

/// A compression that this build does not support.
#[derive(Debug)]
pub(crate) struct MissingFeature {
    pub(crate) what: &'static str,
    pub(crate) feature: &'static str,
}

impl fmt::Display for MissingFeature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the file is {}, which needs the feature {}", self.what, self.feature)
    }
}

impl std::error::Error for MissingFeature {}

/// Opens a file and decompresses it if it is a zstd file.
pub(crate) fn open<'r>(mut file: Box<dyn Read + 'r>) -> io::Result<Box<dyn Read + 'r>> {
    let mut start = Vec::with_capacity(ZSTD_MAGIC.len());
    (&mut file).take(ZSTD_MAGIC.len() as u64).read_to_end(&mut start)?;
    let is_zstd = start == ZSTD_MAGIC;
    let whole = Cursor::new(start).chain(file);
    if is_zstd { open_zstd(whole) } else { Ok(Box::new(whole)) }
}

#[cfg(feature = "zstd")]
fn open_zstd<'r>(file: impl Read + 'r) -> io::Result<Box<dyn Read + 'r>> {
    let file = CountingReader::new(file);
    let input = file.input();
    let mut decoder = zstd::Decoder::with_buffer(io::BufReader::new(file))?;
    decoder.window_log_max(WINDOW_LOG)?;
    Ok(Box::new(BoundedReader::new(decoder, input)))
}

#[cfg(not(feature = "zstd"))]
fn open_zstd<'r>(_file: impl Read + 'r) -> io::Result<Box<dyn Read + 'r>> {
    Err(io::Error::other(MissingFeature { what: "compressed with zstd", feature: "zstd" }))
}

/// Counts the compressed bytes that are read.
pub(crate) struct CountingReader<R> {
    inner: R,
    input: CompressedInput,
}

/// State of the compressed input, shared by a [`CountingReader`] and its [`BoundedReader`].
#[derive(Clone, Default)]
pub(crate) struct CompressedInput {
    bytes_read: Rc<Cell<u64>>,
    /// True if a read of the input failed.
    has_failed: Rc<Cell<bool>>,
}

impl<R> CountingReader<R> {
    pub(crate) fn new(inner: R) -> CountingReader<R> {
        CountingReader { inner, input: CompressedInput::default() }
    }

    pub(crate) fn input(&self) -> CompressedInput {
        self.input.clone()
    }
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self.inner.read(out) {
            Ok(read) => {
                self.input.bytes_read.set(self.input.bytes_read.get() + read as u64);
                Ok(read)
            }
            Err(error) => {
                self.input.has_failed.set(error.kind() != io::ErrorKind::Interrupted);
                Err(error)
            }
        }
    }
}

/// Limits the decompressed size, and reports errors of the decoder as [`CorruptInput`].
pub(crate) struct BoundedReader<R> {
    inner: R,
    input: CompressedInput,
    bytes_written: u64,
}

impl<R> BoundedReader<R> {
    pub(crate) fn new(inner: R, input: CompressedInput) -> BoundedReader<R> {
        BoundedReader { inner, input, bytes_written: 0 }
    }
}

impl<R: Read> Read for BoundedReader<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(out).map_err(|error| match self.input.has_failed.get() {
            true => error,
            false => io::Error::other(CorruptInput(error.to_string())),
        })?;
        self.bytes_written += read as u64;
        let limit = self.input.bytes_read.get().saturating_mul(MAX_RATIO).max(ALWAYS_ALLOWED_BYTES);
        if self.bytes_written > limit {
            return Err(io::Error::other(DecompressionBomb { size: self.bytes_written, limit }));
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unpacked(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        open(Box::new(bytes))?.read_to_end(&mut out)?;
        Ok(out)
    }

    #[test]
    fn uncompressed_bytes_stay_unchanged() {
        for bytes in [&b""[..], b"a", b"[1]", b"\x28\xb5\x2f", b"[1, 2, 3]"] {
            assert_eq!(unpacked(bytes).unwrap(), bytes);
        }
    }

    #[test]
    #[cfg(not(feature = "zstd"))]
    fn a_zstd_file_needs_the_feature() {
        let error = crate::Error::from(unpacked(&ZSTD_MAGIC).unwrap_err());
        assert_eq!(
            error.to_string(),
            "the file is compressed with zstd; recto-format was built without its feature \"zstd\""
        );
    }

    #[test]
    #[cfg(feature = "zstd")]
    fn zstd_is_decompressed_frame_by_frame() {
        let mut packed = zstd::encode_all(&b"one "[..], 3).unwrap();
        packed.extend(zstd::encode_all(&b"two"[..], 3).unwrap());
        assert_eq!(unpacked(&packed).unwrap(), b"one two");
        let error = crate::Error::from(unpacked(&packed[..packed.len() - 3]).unwrap_err());
        assert_eq!(error.code(), "invalid_json", "{error}");
    }

    #[test]
    #[cfg(feature = "zstd")]
    fn a_decompression_bomb_fails_while_it_is_read() {
        let packed = zstd::encode_all(io::repeat(b' ').take(64 << 20), 3).unwrap();
        assert!(packed.len() < 100 << 10);
        let error = crate::Error::from(unpacked(&packed).unwrap_err());
        let crate::Error::TooLarge { size, limit, .. } = error else { panic!("{error}") };
        assert!(size <= limit + (1 << 20), "{size} {limit}");
    }
}
