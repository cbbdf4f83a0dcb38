//! The entries of a ZIP file, one after the other, from the start of the file to its end.
//!
//! Nothing is looked up in the directory at the end of the file, so a stream is enough and no entry
//! can be hidden or doubled by it. Names are compared with what is looked for and never become paths.
//! Every entry is bounded in what it may unpack to, and its checksum is tested.

use std::io::{self, BufRead, BufReader, Read};

use flate2::Crc;
use flate2::bufread::DeflateDecoder;

use crate::Error;
use crate::unpack::{Bounded, Counted, Packed};

/// How a ZIP file starts.
pub(crate) const MAGIC: &[u8] = b"PK\x03\x04";

const DESCRIPTOR: [u8; 4] = *b"PK\x07\x08";
const ENCRYPTED: u16 = 1;
/// Sizes and checksum come behind the entry.
const STREAMED: u16 = 1 << 3;

/// A ZIP file that is being read.
pub(crate) struct Zip<'r> {
    file: BufReader<Counted<Box<dyn Read + 'r>>>,
    packed: Packed,
    /// The first bytes of what comes next, where they were read already.
    next: Option<[u8; 4]>,
}

/// What stands in front of an entry.
struct Head {
    name: String,
    flags: u16,
    method: u16,
    checksum: u32,
    packed: u64,
    is_zip64: bool,
}

impl<'r> Zip<'r> {
    pub(crate) fn new(file: Box<dyn Read + 'r>) -> Zip<'r> {
        let file = Counted::new(file);
        let packed = file.packed();
        Zip { file: BufReader::new(file), packed, next: None }
    }

    /// Hands every entry whose name is `wanted` to `each`, and goes over the others.
    pub(crate) fn each(
        &mut self,
        wanted: impl Fn(&str) -> bool,
        mut each: impl FnMut(&str, &mut dyn Read) -> Result<(), Error>,
    ) -> Result<(), Error> {
        while let Some(head) = self.head()? {
            if wanted(&head.name) {
                self.entry(&head, &mut each)?;
            } else if head.flags & STREAMED == 0 {
                skip(&mut self.file, head.packed)?;
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
            // The directory, or the end of a file without entries.
            let is_end = [*b"PK\x01\x02", *b"PK\x05\x06", *b"PK\x06\x06"].contains(&signature);
            return if is_end { Ok(None) } else { Err(damaged("an entry is missing")) };
        }
        let fixed: [u8; 26] = self.bytes()?;
        let short = |at: usize| u16::from_le_bytes([fixed[at], fixed[at + 1]]);
        let long = |at: usize| u32::from(short(at)) | u32::from(short(at + 2)) << 16;
        let mut name = vec![0; short(22).into()];
        self.file.read_exact(&mut name).map_err(cut)?;
        let mut extra = vec![0; short(24).into()];
        self.file.read_exact(&mut extra).map_err(cut)?;
        let large =
            (long(14) == u32::MAX || long(18) == u32::MAX).then(|| large_size(&extra)).flatten();
        Ok(Some(Head {
            name: String::from_utf8_lossy(&name).into_owned(),
            flags: short(2),
            method: short(4),
            checksum: long(10),
            packed: large.unwrap_or(long(14).into()),
            is_zip64: large.is_some(),
        }))
    }

    fn entry(
        &mut self,
        head: &Head,
        each: &mut dyn FnMut(&str, &mut dyn Read) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if head.flags & ENCRYPTED != 0 {
            return Err(damaged(&format!("{:?} is encrypted", head.name)));
        }
        let is_streamed = head.flags & STREAMED != 0;
        let file: &mut dyn BufRead = &mut self.file;
        let checksum = match (head.method, is_streamed) {
            (0, false) => read(file.take(head.packed), &self.packed, &head.name, each)?,
            (8, false) => {
                let mut packed = file.take(head.packed);
                let sum = read(DeflateDecoder::new(&mut packed), &self.packed, &head.name, each)?;
                let rest = packed.limit();
                skip(packed.into_inner(), rest)?;
                sum
            }
            (8, true) => read(DeflateDecoder::new(file), &self.packed, &head.name, each)?,
            (method, _) => {
                let reason = format!(
                    "{:?} is packed in a way (method {method}) that is not read",
                    head.name
                );
                return Err(damaged(&reason));
            }
        };
        let expected = if is_streamed { self.descriptor(head.is_zip64)? } else { head.checksum };
        match checksum == expected {
            true => Ok(()),
            false => Err(damaged(&format!("the checksum of {:?} is wrong", head.name))),
        }
    }

    /// The checksum behind an entry. Whether the sizes there are long is not always said: what comes
    /// next tells.
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
        self.file.read_exact(&mut bytes).map_err(cut)?;
        Ok(bytes)
    }
}

/// Hands an unpacked entry to `each`, reads what it left, and answers the checksum.
fn read(
    entry: impl Read,
    packed: &Packed,
    name: &str,
    each: &mut dyn FnMut(&str, &mut dyn Read) -> Result<(), Error>,
) -> Result<u32, Error> {
    let mut entry = Summed { inner: Bounded::new(entry, packed.clone()), sum: Crc::new() };
    each(name, &mut entry)?;
    io::copy(&mut entry, &mut io::sink())?;
    Ok(entry.sum.sum())
}

/// Counts the checksum of what is read.
struct Summed<R> {
    inner: R,
    sum: Crc,
}

impl<R: Read> Read for Summed<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(out)?;
        self.sum.update(&out[..read]);
        Ok(read)
    }
}

fn skip(file: &mut (impl BufRead + ?Sized), count: u64) -> Result<(), Error> {
    let skipped = io::copy(&mut file.take(count), &mut io::sink())?;
    if skipped == count { Ok(()) } else { Err(damaged("the file is cut off")) }
}

/// The packed size in the extra field of entries that are larger than 4 GiB.
fn large_size(mut extra: &[u8]) -> Option<u64> {
    while let [a, b, c, d, rest @ ..] = extra {
        let len = usize::from(u16::from_le_bytes([*c, *d]));
        let body = rest.get(..len)?;
        if (*a, *b) == (1, 0) {
            // The unpacked size stands first.
            return body.get(8..16)?.try_into().ok().map(u64::from_le_bytes);
        }
        extra = &rest[len..];
    }
    None
}

fn cut(error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => damaged("the file is cut off"),
        _ => error.into(),
    }
}

fn damaged(reason: &str) -> Error {
    let reason = format!("the ZIP file cannot be read: {reason}");
    Error::Malformed { format: None, line: 1, field: String::new(), reason }
}
