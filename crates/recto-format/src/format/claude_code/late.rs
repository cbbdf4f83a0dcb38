//! Lines that stand in front of their parents in the file: they wait for them.
//!
//! Which parents come later is found out beforehand, while titles are looked for: a line whose parent is
//! nowhere is read at once.

use std::collections::{HashMap, HashSet};

use memchr::memmem;

use super::line::Line;
use crate::source::quick_hash;

/// An id and what stands around it are shorter.
const LONGEST: usize = 512;

/// Which lines are the parents of lines before them. Ids are known by their hashes.
pub(super) struct LateParents {
    finders: [memmem::Finder<'static>; 2],
    /// What was read and not looked at yet.
    buffer: Vec<u8>,
    seen: HashSet<u64>,
    /// The parents that no line before has shown.
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
    /// The next bytes of the file.
    pub(super) fn see(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
        // The rest of an id may be in the next bytes.
        let end = self.buffer.len().saturating_sub(LONGEST);
        self.look(end);
        self.buffer.drain(..end);
    }

    /// The lines that are parents of lines before them.
    pub(super) fn found(mut self) -> HashSet<u64> {
        self.look(self.buffer.len());
        self.found
    }

    /// Looks for ids that start in front of a place.
    fn look(&mut self, end: usize) {
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

/// The string behind a key.
fn id_at(rest: &[u8]) -> Option<&[u8]> {
    let rest =
        rest.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start().strip_prefix(b"\"")?;
    let end = memchr::memchr(b'"', &rest[..rest.len().min(LONGEST)])?;
    Some(&rest[..end])
}

/// Lines that wait for their parents. They have only so much room: what finds none does not wait.
pub(super) struct Late {
    parents: HashSet<u64>,
    /// The lines that wait, or did: who hangs on one of them waits too.
    held: HashSet<u64>,
    waiting: HashMap<String, Vec<(String, u64)>>,
    room: usize,
}

impl Late {
    pub(super) fn new(parents: HashSet<u64>, room: usize) -> Late {
        Late { parents, held: HashSet::new(), waiting: HashMap::new(), room }
    }

    /// Keeps a line whose parent comes later. `is_there`: whether a line was read.
    pub(super) fn holds_back(&mut self, line: &Line<'_>, is_there: impl Fn(&str) -> bool) -> bool {
        let Some(parent) = line.parent.filter(|_| !self.parents.is_empty()).map(|it| it.text())
        else {
            return false;
        };
        let hash = quick_hash(parent.as_bytes());
        let is_late = self.parents.contains(&hash) || self.held.contains(&hash);
        let is_own = line.uuid.is_some_and(|uuid| uuid.text() == parent);
        if !is_late || is_own || is_there(&parent) || line.json.len() > self.room {
            return false;
        }
        self.held.extend(line.uuid.map(|uuid| quick_hash(uuid.text().as_bytes())));
        self.room -= line.json.len();
        let waiting = self.waiting.entry(parent.into_owned()).or_default();
        waiting.push((line.json.to_owned(), line.number));
        true
    }

    /// The lines that waited for this one, the last first.
    pub(super) fn release(&mut self, uuid: &str) -> Vec<(String, u64)> {
        let mut lines = self.waiting.remove(uuid).unwrap_or_default();
        self.room += lines.iter().map(|(line, _)| line.len()).sum::<usize>();
        lines.reverse();
        lines
    }

    /// All that still wait, in the order of the file.
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
        file.as_bytes().chunks(chunk).for_each(|bytes| parents.see(bytes));
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
