//! Encoding of records and messages as the bytes of a row.
//!
//! ```text
//!   a packed value     1 · length unpacked (4 bytes, little-endian) · a zstd frame
//!   a plain value      2 · checksum (8 bytes) · the bytes as they are
//!   body of a commit   packed or plain { record, log entries }
//!   page of records    meta: links              body: packed [record]
//!   page of entries    meta: packed columns     body: packed messages, one behind the other
//! ```
//!
//! Values are encoded with postcard, and each zstd frame ends with a checksum. A small commit stays
//! plain, because a writer waits for it, and it is soon packed together with its neighbours, which
//! saves far more. Messages keep their bytes. Decoding any bytes returns a value or [`Unreadable`], and
//! allocates at most 4 MiB for a stated length that it has not verified.

use std::borrow::Cow;
use std::cell::RefCell;
use std::io::Read;

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{EntryMeta, Link, Page, PageKind, hash_of};

/// The first byte of a packed value.
const PACKED: u8 = 1;
/// The first byte of a plain value.
const PLAIN: u8 = 2;

/// Maximum size of a plain commit body: about one page of a SQLite file.
const MAX_PLAIN_BYTES: usize = 4 * 1024;

/// Compression level of zstd.
#[derive(Clone, Copy)]
enum Level {
    /// For pages.
    Usual = 3,
    /// For commits, which a writer waits for and which are packed again soon.
    Quick = -5,
}

/// An error of decoding: the bytes are not what was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unreadable(pub String);

fn unreadable(what: impl ToString) -> Unreadable {
    Unreadable(what.to_string())
}

/// A log entry. The type of its body is any text that serializes as a string.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry<B = String> {
    /// The facts about the entry that need no message.
    pub meta: EntryMeta,
    /// The message, as the original JSON.
    pub body: B,
}

impl<B: AsRef<str>> Entry<B> {
    /// The hash of the original message, also after it was erased.
    pub fn body_hash(&self) -> [u8; 32] {
        self.meta.gone.unwrap_or_else(|| hash_of(self.body.as_ref().as_bytes()))
    }
}

/// The content of a commit's row.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitBody {
    /// The record of the version, as JSON.
    pub record: String,
    /// The log entries that the version adds, unless they are in pages.
    pub entries: Vec<Entry>,
}

impl CommitBody {
    /// Encodes the body.
    pub fn pack(&self) -> Vec<u8> {
        pack_commit(&self.record, &self.entries)
    }

    /// Decodes a body.
    pub fn unpack(bytes: &[u8]) -> Result<CommitBody, Unreadable> {
        from_bytes(&unpack(bytes)?)
    }
}

/// Encodes the content of a commit's row.
pub fn pack_commit<B: AsRef<str> + Serialize>(record: &str, entries: &[Entry<B>]) -> Vec<u8> {
    let bodies: usize = entries.iter().map(|entry| entry.body.as_ref().len() + 64).sum();
    let mut bytes = Vec::with_capacity(PLAIN_HEAD + record.len() + bodies + 16);
    bytes.push(PLAIN);
    bytes.extend([0; size_of::<PlainChecksum>()]);
    // postcard encodes a struct as its fields in order, so a tuple gives the same bytes.
    let mut bytes =
        postcard::to_extend(&(record, entries), bytes).expect("plain data can be written");
    if bytes.len() > MAX_PLAIN_BYTES {
        return pack(&bytes[PLAIN_HEAD..], Level::Quick);
    }
    let checksum = plain_checksum(&bytes[PLAIN_HEAD..]);
    bytes[1..PLAIN_HEAD].copy_from_slice(&checksum);
    bytes
}

type PlainChecksum = [u8; 8];

/// Length of the header of a plain value.
const PLAIN_HEAD: usize = 1 + size_of::<PlainChecksum>();

fn plain_checksum(bytes: &[u8]) -> PlainChecksum {
    *hash_of(bytes).first_chunk().expect("a hash has 32 bytes")
}

/// Packs records of consecutive versions from `first` on, with their links.
pub fn pack_records<'a>(first: u32, records: impl IntoIterator<Item = (&'a str, Link)>) -> Page {
    let (records, links): (Vec<&str>, Vec<Link>) = records.into_iter().unzip();
    Page {
        kind: PageKind::Records,
        first,
        count: records.len() as u32,
        meta: links.iter().flat_map(|link| link.0).collect(),
        body: pack(&to_bytes(&records), Level::Usual),
    }
}

/// Packs consecutive log entries from index `first` on.
pub fn pack_entries<'a, B: AsRef<str> + 'a>(
    first: u32,
    entries: impl IntoIterator<Item = &'a Entry<B>>,
) -> Page {
    let entries: Vec<&Entry<B>> = entries.into_iter().collect();
    let bodies: String = entries.iter().map(|entry| entry.body.as_ref()).collect();
    Page {
        kind: PageKind::Entries,
        first,
        count: entries.len() as u32,
        meta: pack(&to_bytes(&Columns::of(&entries)), Level::Usual),
        body: pack(bodies.as_bytes(), Level::Usual),
    }
}

impl Page {
    /// The records of the page with their links, in order.
    pub fn records(&self) -> Result<Vec<(String, Link)>, Unreadable> {
        let records: Vec<String> = from_bytes(&unpack(&self.body)?)?;
        let (links, rest) = self.meta.as_chunks::<32>();
        self.check_count(records.len())?;
        self.check_count(links.len())?;
        match rest {
            [] => Ok(records.into_iter().zip(links.iter().copied().map(Link)).collect()),
            _ => Err(unreadable("a link is cut")),
        }
    }

    /// The metadata of the page's entries, in order.
    pub fn metas(&self) -> Result<Vec<EntryMeta>, Unreadable> {
        self.columns()?.metas()
    }

    /// The entries of the page, in order.
    pub fn entries(&self) -> Result<Vec<Entry>, Unreadable> {
        let columns = self.columns()?;
        let lens = columns.lens.clone();
        let metas = columns.metas()?;
        let bodies = String::from_utf8(unpack(&self.body)?.into_owned()).map_err(unreadable)?;
        let mut rest = &*bodies;
        let mut entries = Vec::with_capacity(metas.len());
        for (meta, len) in metas.into_iter().zip(lens) {
            let (body, behind) =
                rest.split_at_checked(len as usize).ok_or_else(|| unreadable("a body is cut"))?;
            entries.push(Entry { meta, body: body.to_owned() });
            rest = behind;
        }
        match rest {
            "" => Ok(entries),
            _ => Err(unreadable("there is something behind the last body")),
        }
    }

    fn columns(&self) -> Result<Columns, Unreadable> {
        let columns: Columns = from_bytes(&unpack(&self.meta)?)?;
        self.check_count(columns.roles.len())?;
        Ok(columns)
    }

    fn check_count(&self, found: usize) -> Result<(), Unreadable> {
        match found == self.count as usize {
            true => Ok(()),
            false => Err(Unreadable(format!("{found} of {} are there", self.count))),
        }
    }
}

/// The metadata of many entries, stored by column.
#[derive(Serialize, Deserialize)]
struct Columns {
    roles: Vec<u8>,
    tokens: Vec<u32>,
    /// The first time, then the difference of each time from the one before.
    times: Vec<i64>,
    lens: Vec<u32>,
    /// The index in the page of each entry that has edges, with the edges. `gone` has the same form.
    edges: Vec<(u32, Vec<u64>)>,
    gone: Vec<(u32, [u8; 32])>,
}

impl Columns {
    fn of<B: AsRef<str>>(entries: &[&Entry<B>]) -> Columns {
        let metas = || entries.iter().map(|entry| &entry.meta);
        let numbered = || (0..).zip(metas());
        let mut before = 0_i64;
        Columns {
            roles: metas().map(|meta| meta.role).collect(),
            tokens: metas().map(|meta| meta.tokens).collect(),
            times: metas()
                .map(|meta| {
                    meta.timestamp.wrapping_sub(std::mem::replace(&mut before, meta.timestamp))
                })
                .collect(),
            lens: entries.iter().map(|entry| entry.body.as_ref().len() as u32).collect(),
            edges: numbered()
                .filter(|(_, meta)| !meta.edges.is_empty())
                .map(|(number, meta)| (number, meta.edges.clone()))
                .collect(),
            gone: numbered().filter_map(|(number, meta)| Some((number, meta.gone?))).collect(),
        }
    }

    fn metas(self) -> Result<Vec<EntryMeta>, Unreadable> {
        let count = self.roles.len();
        if [self.tokens.len(), self.times.len(), self.lens.len()] != [count; 3] {
            return Err(unreadable("columns are not of one length"));
        }
        let mut time = 0_i64;
        let rows = self.roles.into_iter().zip(self.tokens).zip(self.times);
        let mut metas: Vec<EntryMeta> = rows
            .map(|((role, tokens), step)| {
                time = time.wrapping_add(step);
                EntryMeta { role, tokens, timestamp: time, edges: Vec::new(), gone: None }
            })
            .collect();
        let missing = || unreadable("a column names an entry that is not there");
        for (number, edges) in self.edges {
            metas.get_mut(number as usize).ok_or_else(missing)?.edges = edges;
        }
        for (number, hash) in self.gone {
            metas.get_mut(number as usize).ok_or_else(missing)?.gone = Some(hash);
        }
        Ok(metas)
    }
}

fn to_bytes<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
    postcard::to_stdvec(value).expect("plain data can be written")
}

fn from_bytes<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Unreadable> {
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Ok(value),
        Ok(_) => Err(unreadable("there is something behind the value")),
        Err(error) => Err(unreadable(error)),
    }
}

fn pack(bytes: &[u8], level: Level) -> Vec<u8> {
    let packer = match level {
        Level::Usual => &PACKER,
        Level::Quick => &QUICK_PACKER,
    };
    packer.with_borrow_mut(|packer| packer.pack(bytes))
}

/// A zstd compressor with an output buffer. Creating them costs more than packing a message.
struct Packer {
    zstd: zstd::bulk::Compressor<'static>,
    output: Vec<u8>,
}

/// A larger output buffer is freed after use.
const MAX_OUTPUT_BYTES: usize = 256 * 1024;

impl Packer {
    fn new(level: Level) -> Packer {
        let mut zstd = zstd::bulk::Compressor::new(level as i32).expect("the level is a usual one");
        let checksum = zstd::zstd_safe::CParameter::ChecksumFlag(true);
        zstd.set_parameter(checksum).expect("every build of zstd has checksums");
        Packer { zstd, output: Vec::new() }
    }

    fn pack(&mut self, bytes: &[u8]) -> Vec<u8> {
        let bound = zstd::zstd_safe::compress_bound(bytes.len());
        if self.output.len() < bound {
            self.output.resize(bound, 0);
        }
        let frame = self.zstd.compress_to_buffer(bytes, &mut *self.output);
        let frame = &self.output[..frame.expect("memory can be packed")];
        let mut packed = Vec::with_capacity(1 + 4 + frame.len());
        packed.push(PACKED);
        packed.extend((bytes.len() as u32).to_le_bytes());
        packed.extend(frame);
        if self.output.len() > MAX_OUTPUT_BYTES {
            self.output = Vec::new();
        }
        packed
    }
}

thread_local! {
    static PACKER: RefCell<Packer> = Packer::new(Level::Usual).into();
    static QUICK_PACKER: RefCell<Packer> = Packer::new(Level::Quick).into();
}

/// Largest stated length for which memory is allocated before the length is verified.
const SMALL: usize = 4 * 1024 * 1024;

thread_local! {
    /// A reused decompressor: creating one costs more than unpacking a page.
    static UNPACKER: RefCell<zstd::bulk::Decompressor<'static>> =
        RefCell::new(zstd::bulk::Decompressor::new().expect("there is memory for it"));
}

fn unpack_small(frame: &[u8], len: usize) -> Result<Vec<u8>, Unreadable> {
    let bytes = UNPACKER.with_borrow_mut(|unpacker| unpacker.decompress(frame, len));
    let bytes = bytes.map_err(unreadable)?;
    match bytes.len() == len {
        true => Ok(bytes),
        false => Err(unreadable("its length is not what was written")),
    }
}

/// Decodes a packed or plain value.
fn unpack(value: &[u8]) -> Result<Cow<'_, [u8]>, Unreadable> {
    let (&format, rest) = value.split_first().ok_or_else(|| unreadable("it is empty"))?;
    match format {
        PACKED => unpack_frame(rest).map(Cow::Owned),
        PLAIN => check_plain(rest).map(Cow::Borrowed),
        _ => Err(Unreadable(format!(
            "format {format} is not known; this program reads {PACKED} and {PLAIN}"
        ))),
    }
}

fn check_plain(value: &[u8]) -> Result<&[u8], Unreadable> {
    match value.split_first_chunk() {
        Some((checksum, bytes)) if plain_checksum(bytes) == *checksum => Ok(bytes),
        Some(_) => Err(unreadable("its checksum is not that of its bytes")),
        None => Err(unreadable("it is cut")),
    }
}

fn unpack_frame(packed: &[u8]) -> Result<Vec<u8>, Unreadable> {
    let (len, frame) = packed.split_first_chunk().ok_or_else(|| unreadable("it is cut"))?;
    let len = u32::from_le_bytes(*len) as usize;
    if len <= SMALL {
        return unpack_small(frame, len);
    }
    let decoder = zstd::stream::read::Decoder::with_buffer(frame).map_err(unreadable)?;
    let mut bytes = Vec::with_capacity(len.min(256 * 1024));
    // One byte more than stated detects a longer frame, and makes zstd verify its checksum.
    decoder.take(len as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    match bytes.len() == len {
        true => Ok(bytes),
        false => Err(unreadable("its length is not what was written")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(number: u32) -> Entry {
        let body = format!(r#"{{"role":"user","content":"number {number}"}}"#);
        Entry {
            meta: EntryMeta {
                role: (number % 4) as u8,
                tokens: number * 7,
                timestamp: 1_000 - i64::from(number) * 3,
                edges: if number.is_multiple_of(3) {
                    vec![u64::MAX - u64::from(number)]
                } else {
                    vec![]
                },
                gone: number.is_multiple_of(5).then(|| hash_of(body.as_bytes())),
            },
            body,
        }
    }

    #[test]
    fn what_is_packed_comes_out_again() {
        let entries: Vec<Entry> = (0..100).map(entry).collect();
        let page = pack_entries(40, &entries);
        assert_eq!(page.entries().unwrap(), entries);
        assert_eq!(
            page.metas().unwrap(),
            entries.iter().map(|e| e.meta.clone()).collect::<Vec<_>>()
        );
        let body = CommitBody { record: "{}".into(), entries };
        assert_eq!(CommitBody::unpack(&body.pack()).unwrap(), body);
        let records = [("a".to_owned(), Link([1; 32])), (String::new(), Link([2; 32]))];
        let page = pack_records(3, records.iter().map(|(record, link)| (&**record, *link)));
        assert_eq!(page.records().unwrap(), records);
    }

    #[test]
    fn every_cut_and_every_changed_bit_that_says_something_is_noticed() {
        for (count, format) in [(20, PLAIN), (100, PACKED)] {
            let entries = (0..count).map(entry).collect();
            let body = CommitBody { record: "{}".into(), entries };
            let packed = body.pack();
            assert_eq!(packed[0], format);
            for at in 0..packed.len() {
                for bit in 0..8 {
                    let mut bytes = packed.clone();
                    bytes[at] ^= 1 << bit;
                    // Some bits of a frame's head mean nothing.
                    let is_noticed = CommitBody::unpack(&bytes).map_or(true, |read| read == body);
                    assert!(is_noticed, "bit {bit} of byte {at}");
                }
                assert!(CommitBody::unpack(&packed[..at]).is_err(), "cut at {at}");
            }
        }
    }
}
