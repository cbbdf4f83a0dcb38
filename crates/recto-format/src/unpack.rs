//! Packed files: zstd is unpacked on the way in, whatever the format.
//!
//! What comes out may be many times what went in, but not endlessly: a file that unpacks to far more
//! than any transcript does is refused, while it is being read.

use std::cell::Cell;
use std::fmt;
use std::io::{self, BufReader, Cursor, Read};
use std::rc::Rc;

/// How many times its size a file may unpack to. Transcripts say much again: 50 times happens.
const MOST_TIMES: u64 = 500;
/// What may come out in any case.
const ALWAYS: u64 = 16 << 20;
/// How far back a stream may refer, as a power of two: 128 MiB, what zstd's own tools allow.
const WINDOW_LOG: u32 = 27;

const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// A file that unpacks to far too much.
#[derive(Debug)]
pub(crate) struct Bomb {
    pub(crate) size: u64,
    pub(crate) limit: u64,
}

impl fmt::Display for Bomb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it unpacks to {} bytes and more; {} are allowed", self.size, self.limit)
    }
}

impl std::error::Error for Bomb {}

/// A packed file whose bytes are wrong.
#[derive(Debug)]
pub(crate) struct Damaged(String);

impl Damaged {
    pub(crate) fn reason(&self) -> String {
        format!("the file cannot be unpacked: {}", self.0)
    }
}

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason())
    }
}

impl std::error::Error for Damaged {}

/// The bytes of a file, unpacked if they are packed with zstd.
pub(crate) fn open<'r>(mut file: Box<dyn Read + 'r>) -> io::Result<Box<dyn Read + 'r>> {
    let mut start = Vec::with_capacity(ZSTD.len());
    (&mut file).take(ZSTD.len() as u64).read_to_end(&mut start)?;
    let is_zstd = start == ZSTD;
    let whole = Cursor::new(start).chain(file);
    if !is_zstd {
        return Ok(Box::new(whole));
    }
    let packed = Counted::new(whole);
    let known = packed.packed();
    let mut decoder = zstd::Decoder::with_buffer(BufReader::new(packed))?;
    decoder.window_log_max(WINDOW_LOG)?;
    Ok(Box::new(Bounded::new(decoder, known)))
}

/// Counts what is read.
pub(crate) struct Counted<R> {
    inner: R,
    packed: Packed,
}

/// What is known of the packed bytes.
#[derive(Clone, Default)]
pub(crate) struct Packed {
    count: Rc<Cell<u64>>,
    /// Whether reading them failed.
    has_failed: Rc<Cell<bool>>,
}

impl<R> Counted<R> {
    pub(crate) fn new(inner: R) -> Counted<R> {
        Counted { inner, packed: Packed::default() }
    }

    pub(crate) fn packed(&self) -> Packed {
        self.packed.clone()
    }
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self.inner.read(out) {
            Ok(read) => {
                self.packed.count.set(self.packed.count.get() + read as u64);
                Ok(read)
            }
            Err(error) => {
                self.packed.has_failed.set(error.kind() != io::ErrorKind::Interrupted);
                Err(error)
            }
        }
    }
}

/// Refuses to hand out far more than was read, and says of what cannot be unpacked that it is damaged.
pub(crate) struct Bounded<R> {
    inner: R,
    packed: Packed,
    given: u64,
}

impl<R> Bounded<R> {
    pub(crate) fn new(inner: R, packed: Packed) -> Bounded<R> {
        Bounded { inner, packed, given: 0 }
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(out).map_err(|error| match self.packed.has_failed.get() {
            true => error,
            false => io::Error::other(Damaged(error.to_string())),
        })?;
        self.given += read as u64;
        let limit = self.packed.count.get().saturating_mul(MOST_TIMES).max(ALWAYS);
        if self.given > limit {
            return Err(io::Error::other(Bomb { size: self.given, limit }));
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
    fn plain_bytes_stay_as_they_are() {
        for bytes in [&b""[..], b"a", b"[1]", b"\x28\xb5\x2f", b"[1, 2, 3]"] {
            assert_eq!(unpacked(bytes).unwrap(), bytes);
        }
    }

    #[test]
    fn zstd_is_unpacked_frame_by_frame() {
        let mut packed = zstd::encode_all(&b"one "[..], 3).unwrap();
        packed.extend(zstd::encode_all(&b"two"[..], 3).unwrap());
        assert_eq!(unpacked(&packed).unwrap(), b"one two");
        let error = crate::Error::from(unpacked(&packed[..packed.len() - 3]).unwrap_err());
        assert_eq!(error.code(), "invalid_json", "{error}");
    }

    #[test]
    fn a_bomb_is_refused_while_it_is_read() {
        let packed = zstd::encode_all(io::repeat(b' ').take(64 << 20), 3).unwrap();
        assert!(packed.len() < 100 << 10);
        let error = crate::Error::from(unpacked(&packed).unwrap_err());
        let crate::Error::TooLarge { size, limit, .. } = error else { panic!("{error}") };
        assert!(size <= limit + (1 << 20), "{size} {limit}");
    }
}
