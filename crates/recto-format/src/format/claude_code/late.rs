//! Lines that precede their parents in the file. They are held back until their parent is read.
//!
//! The first pass over the file, which searches for titles, also finds the parents that come late. A line
//! whose parent is not in the file is therefore not held back.

use std::collections::{HashMap, HashSet};

use memchr::memmem;

use super::line::Line;
use crate::source::quick_hash;

/// Maximum length in bytes of a key and its id.
const MAX_ID: usize = 512;

/// Finds the lines that are parents of earlier lines. Ids are stored as hashes.
pub(super) struct LateParents {
    finders: [memmem::Finder<'static>; 2],
    /// Bytes that are not scanned yet.
    buffer: Vec<u8>,
    seen: HashSet<u64>,
    /// Parents whose line was not seen yet.
    unseen: HashSet<u64>,
    found: HashSet<u64>,
}

impl Default for LateParents {
    fn default() -> Self {
        LateParents {
            finders: ["\"uuid\"", "\"parentUuid\""].map(memmem::Finder::new),
            buffer: Vec::new(),
            seen: HashSet::new(),
            unseen: HashSet::new(),
            found: HashSet::new(),
        }
    }
}

impl LateParents {
    /// Scans the next bytes of the file.
    pub(super) fn scan(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
        // An id at the end may be incomplete.
        let end = self.buffer.len().saturating_sub(MAX_ID);
        self.scan_until(end);
        self.buffer.drain(..end);
    }

    /// Hashes of the lines that are parents of earlier lines.
    pub(super) fn found(mut self) -> HashSet<u64> {
        self.scan_until(self.buffer.len());
        self.found
    }

    /// Scans for ids that start before `end`.
    fn scan_until(&mut self, end: usize) {
        let buffer = std::mem::take(&mut self.buffer);
        let next = |finder: &memmem::Finder<'_>, from: usize| {
            finder.find(&buffer[from..]).map_or(buffer.len(), |place| from + place)
        };
        let mut places = [0, 1].map(|which| next(&self.finders[which], 0));
        loop {
            let which = usize::from(places[1] < places[0]);
            let place = places[which];
            if place >= end {
                break;
            }
            let behind = place + self.finders[which].needle().len();
            places[which] = next(&self.finders[which], behind);
            let Some(id) = id_at(&buffer[behind..]) else { continue };
            let id = quick_hash(id);
            if which == 1 {
                if !self.seen.contains(&id) {
                    self.unseen.insert(id);
                }
            } else if self.seen.insert(id) && self.unseen.remove(&id) {
                self.found.insert(id);
            }
        }
        self.buffer = buffer;
    }
}

/// The string after a key.
fn id_at(rest: &[u8]) -> Option<&[u8]> {
    let rest =
        rest.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start().strip_prefix(b"\"")?;
    let end = memchr::memchr(b'"', &rest[..rest.len().min(MAX_ID)])?;
    Some(&rest[..end])
}

/// Lines that are held back for their parents. Their total size is limited; lines beyond the limit are
/// not held back.
pub(super) struct LateLines {
    parents: HashSet<u64>,
    /// Lines that are or were held back. Their children are held back too.
    held: HashSet<u64>,
    /// The lines that are held back, by the uuid of their parent.
    waiting: HashMap<String, Vec<(String, u64)>>,
    /// Number of bytes that can be added.
    capacity: usize,
}

impl LateLines {
    pub(super) fn new(parents: HashSet<u64>, capacity: usize) -> LateLines {
        LateLines { parents, held: HashSet::new(), waiting: HashMap::new(), capacity }
    }

    /// Holds a line back if its parent comes later. `is_known` is true for lines that were read. Returns
    /// whether the line is held back.
    pub(super) fn holds_back(&mut self, line: &Line<'_>, is_known: impl Fn(&str) -> bool) -> bool {
        let Some(parent) = line.parent.filter(|_| !self.parents.is_empty()).map(|it| it.text())
        else {
            return false;
        };
        let hash = quick_hash(parent.as_bytes());
        let is_late = self.parents.contains(&hash) || self.held.contains(&hash);
        let is_own = line.uuid.is_some_and(|uuid| uuid.text() == parent);
        if !is_late || is_own || is_known(&parent) || line.json.len() > self.capacity {
            return false;
        }
        self.held.extend(line.uuid.map(|uuid| quick_hash(uuid.text().as_bytes())));
        self.capacity -= line.json.len();
        let waiting = self.waiting.entry(parent.into_owned()).or_default();
        waiting.push((line.json.to_owned(), line.number));
        true
    }

    /// Removes and returns the lines that were held back for this line, the last one first.
    pub(super) fn release(&mut self, uuid: &str) -> Vec<(String, u64)> {
        let mut lines = self.waiting.remove(uuid).unwrap_or_default();
        self.capacity += lines.iter().map(|(line, _)| line.len()).sum::<usize>();
        lines.reverse();
        lines
    }

    /// Removes and returns all lines, in the order of the file.
    pub(super) fn rest(&mut self) -> Vec<(String, u64)> {
        let mut lines: Vec<_> = self.waiting.drain().flat_map(|(_, lines)| lines).collect();
        lines.sort_by_key(|(_, number)| *number);
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(file: &str, chunk: usize) -> Vec<String> {
        let mut parents = LateParents::default();
        file.as_bytes().chunks(chunk).for_each(|bytes| parents.scan(bytes));
        let found = parents.found();
        let names = ["a", "b", "c", "d", "gone"].into_iter();
        names
            .filter(|name| found.contains(&quick_hash(name.as_bytes())))
            .map(String::from)
            .collect()
    }

    #[test]
    fn parents_that_come_later_are_found_wherever_a_chunk_ends() {
        let filler = "x".repeat(2_000);
        let file = format!(
            r#"{{"uuid":"a","parentUuid":null,"t":"{filler}"}}
{{"parentUuid": "c", "uuid": "b"}}
{{"parentUuid":"gone","t":"{filler}","uuid":"d"}}
{{"parentUuid":"a","uuid":"c","t":"\"uuid\":\"gone\""}}"#
        );
        for chunk in [1, 7, 100, 511, 513, 10_000] {
            assert_eq!(found(&file, chunk), ["c"], "{chunk}");
        }
    }
}
