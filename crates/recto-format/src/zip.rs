//! A streaming reader of ZIP files: it reads the entries from the start of the file to its end.
//!
//! The reader ignores the central directory at the end of the file. A stream is therefore enough, and a
//! directory cannot hide or duplicate entries. Entry names are only compared and never used as paths.
//! The decompressed size of every entry that is decompressed is bounded, and its checksum is verified.

use std::io::{self, BufRead, BufReader, Read};

use flate2::Crc;
use flate2::bufread::DeflateDecoder;

use crate::Error;
use crate::unpack::{BoundedReader, CompressedInput, CountingReader};

/// Signature of a local file header, with which a ZIP file starts.
pub(crate) const MAGIC: &[u8] = b"PK\x03\x04";

const DESCRIPTOR: [u8; 4] = *b"PK\x07\x08";
const ENCRYPTED: u16 = 1;
/// Flag: sizes and checksum are in a data descriptor after the entry.
const STREAMED: u16 = 1 << 3;

/// Reader of a ZIP file.
pub(crate) struct Zip<'r> {
    file: BufReader<CountingReader<Box<dyn Read + 'r>>>,
    input: CompressedInput,
    /// Signature of the next record, if it was already read.
    next: Option<[u8; 4]>,
}

/// Local file header of an entry.
struct Head {
    name: String,
    flags: u16,
    method: u16,
    checksum: u32,
    compressed_size: u64,
    is_zip64: bool,
}

impl<'r> Zip<'r> {
    pub(crate) fn new(file: Box<dyn Read + 'r>) -> Zip<'r> {
        let file = CountingReader::new(file);
        let input = file.input();
        Zip { file: BufReader::new(file), input, next: None }
    }

    /// Calls `each` with every entry for whose name `wanted` returns true, and skips the others.
    pub(crate) fn each(
        &mut self,
        wanted: impl Fn(&str) -> bool,
        mut each: impl FnMut(&str, &mut dyn Read) -> Result<(), Error>,
    ) -> Result<(), Error> {
        while let Some(head) = self.head()? {
            if wanted(&head.name) {
                self.entry(&head, &mut each)?;
            } else if head.flags & STREAMED == 0 {
                skip(&mut self.file, head.compressed_size)?;
            } else {
                self.entry(&head, &mut |_, entry| {
                    io::copy(entry, &mut io::sink())?;
                    Ok(())
                })?;
            }
        }
        Ok(())
    }

    fn head(&mut self) -> Result<Option<Head>, Error> {
        let signature = match self.next.take() {
            Some(signature) => signature,
            None => self.bytes()?,
        };
        if signature != MAGIC {
            // The central directory, or the end record of a file without entries.
            let is_end = [*b"PK\x01\x02", *b"PK\x05\x06", *b"PK\x06\x06"].contains(&signature);
            return if is_end { Ok(None) } else { Err(unreadable("an entry is missing")) };
        }
        let fixed: [u8; 26] = self.bytes()?;
        let short = |at: usize| u16::from_le_bytes([fixed[at], fixed[at + 1]]);
        let long = |at: usize| u32::from(short(at)) | u32::from(short(at + 2)) << 16;
        let mut name = vec![0; short(22).into()];
        self.file.read_exact(&mut name).map_err(truncated)?;
        let mut extra = vec![0; short(24).into()];
        self.file.read_exact(&mut extra).map_err(truncated)?;
        let large =
            (long(14) == u32::MAX || long(18) == u32::MAX).then(|| large_size(&extra)).flatten();
        Ok(Some(Head {
            name: String::from_utf8_lossy(&name).into_owned(),
            flags: short(2),
            method: short(4),
            checksum: long(10),
            compressed_size: large.unwrap_or(long(14).into()),
            is_zip64: large.is_some(),
        }))
    }

    fn entry(
        &mut self,
        head: &Head,
        each: &mut dyn FnMut(&str, &mut dyn Read) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if head.flags & ENCRYPTED != 0 {
            return Err(unreadable(&format!("{:?} is encrypted", head.name)));
        }
        let is_streamed = head.flags & STREAMED != 0;
        let file: &mut dyn BufRead = &mut self.file;
        let checksum = match (head.method, is_streamed) {
            (0, false) => read(file.take(head.compressed_size), &self.input, &head.name, each)?,
            (8, false) => {
                let mut packed = file.take(head.compressed_size);
                let sum = read(DeflateDecoder::new(&mut packed), &self.input, &head.name, each)?;
                let rest = packed.limit();
                skip(packed.into_inner(), rest)?;
                sum
            }
            (8, true) => read(DeflateDecoder::new(file), &self.input, &head.name, each)?,
            (method, _) => {
                let reason = format!(
                    "{:?} uses compression method {method}; 0 (stored) and 8 (deflate) are supported",
                    head.name
                );
                return Err(unreadable(&reason));
            }
        };
        let expected = if is_streamed { self.descriptor(head.is_zip64)? } else { head.checksum };
        match checksum == expected {
            true => Ok(()),
            false => Err(unreadable(&format!("the checksum of {:?} is wrong", head.name))),
        }
    }

    /// Reads the checksum of a data descriptor. A header does not always declare 64-bit sizes, so the
    /// signature of the next record decides how long the sizes are.
    fn descriptor(&mut self, is_zip64: bool) -> Result<u32, Error> {
        let first: [u8; 4] = self.bytes()?;
        let checksum = if first == DESCRIPTOR { self.bytes()? } else { first };
        let _sizes: [u8; 8] = self.bytes()?;
        let mut next: [u8; 4] = self.bytes()?;
        if is_zip64 || !next.starts_with(b"PK") {
            let _rest: [u8; 4] = self.bytes()?;
            next = self.bytes()?;
        }
        self.next = Some(next);
        Ok(u32::from_le_bytes(checksum))
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let mut bytes = [0; N];
        self.file.read_exact(&mut bytes).map_err(truncated)?;
        Ok(bytes)
    }
}

/// Calls `each` with a decompressed entry, reads the rest of the entry, and returns its checksum.
fn read(
    entry: impl Read,
    input: &CompressedInput,
    name: &str,
    each: &mut dyn FnMut(&str, &mut dyn Read) -> Result<(), Error>,
) -> Result<u32, Error> {
    let inner = BoundedReader::new(entry, input.clone());
    let mut entry = ChecksumReader { inner, sum: Crc::new() };
    each(name, &mut entry)?;
    io::copy(&mut entry, &mut io::sink())?;
    Ok(entry.sum.sum())
}

/// Computes the checksum of the bytes that are read.
struct ChecksumReader<R> {
    inner: R,
    sum: Crc,
}

impl<R: Read> Read for ChecksumReader<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(out)?;
        self.sum.update(&out[..read]);
        Ok(read)
    }
}

fn skip(file: &mut (impl BufRead + ?Sized), count: u64) -> Result<(), Error> {
    let skipped = io::copy(&mut file.take(count), &mut io::sink())?;
    if skipped == count { Ok(()) } else { Err(unreadable("the file is truncated")) }
}

/// The compressed size in the ZIP64 extra field, which entries of 4 GiB and more have.
fn large_size(mut extra: &[u8]) -> Option<u64> {
    while let [a, b, c, d, rest @ ..] = extra {
        let len = usize::from(u16::from_le_bytes([*c, *d]));
        let body = rest.get(..len)?;
        if (*a, *b) == (1, 0) {
            // The uncompressed size is the first of the two.
            return body.get(8..16)?.try_into().ok().map(u64::from_le_bytes);
        }
        extra = &rest[len..];
    }
    None
}

fn truncated(error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => unreadable("the file is truncated"),
        _ => error.into(),
    }
}

fn unreadable(reason: &str) -> Error {
    let reason = format!("the ZIP file cannot be read: {reason}");
    Error::Malformed { format: None, line: 1, field: String::new(), reason }
}
