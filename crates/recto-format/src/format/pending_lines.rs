//! Session lines without a message, which are stored with the next message.

use crate::Error;
use crate::step_writer::{Document, StepWriter};

/// Lines without a message, held until the next message of their chain stores them in
/// `metadata.source.before`. Their total size is limited; lines beyond the limit are dropped and counted.
pub(crate) struct PendingLines {
    /// The lines of each chain, as a JSON list without its closing bracket.
    lists: Vec<String>,
    /// Number of bytes that can be added.
    capacity: usize,
    /// Number of the first dropped line, and number of dropped lines.
    dropped: Option<(u64, u64)>,
}

impl PendingLines {
    /// No lines, with capacity for this number of bytes.
    pub(crate) fn with_capacity(capacity: usize) -> PendingLines {
        PendingLines { lists: Vec::new(), capacity, dropped: None }
    }

    /// Adds a line, which must be JSON. `number` is its number in the file.
    pub(crate) fn add(&mut self, chain: usize, line: &str, number: u64) {
        let Some(capacity) = self.capacity.checked_sub(line.len() + 1) else {
            self.dropped =
                Some(self.dropped.map_or((number, 1), |(first, count)| (first, count + 1)));
            return;
        };
        self.capacity = capacity;
        if self.lists.len() <= chain {
            self.lists.resize_with(chain + 1, String::new);
        }
        let list = &mut self.lists[chain];
        list.push(if list.is_empty() { '[' } else { ',' });
        list.push_str(line);
    }

    /// True if any chain has lines.
    pub(crate) fn has_lines(&self) -> bool {
        self.lists.iter().any(|list| !list.is_empty())
    }

    /// Removes and returns the lines of a chain, as a JSON list.
    pub(crate) fn take(&mut self, chain: usize) -> Option<String> {
        let list = self.lists.get_mut(chain).filter(|list| !list.is_empty())?;
        let mut list = std::mem::take(list);
        self.capacity += list.len();
        list.push(']');
        Some(list)
    }

    /// Undoes [`take`](Self::take).
    pub(crate) fn put_back(&mut self, chain: usize, list: Option<String>) {
        if let Some(mut list) = list {
            list.pop();
            self.capacity = self.capacity.saturating_sub(list.len());
            self.lists[chain] = list;
        }
    }

    /// Removes and returns the lines of all chains, as one JSON list.
    pub(crate) fn take_all(&mut self) -> Option<String> {
        let lists = (0..self.lists.len()).filter_map(|chain| self.take(chain));
        let inner: Vec<String> = lists.map(|list| list[1..list.len() - 1].to_owned()).collect();
        (!inner.is_empty()).then(|| format!("[{}]", inner.join(",")))
    }

    /// Stores the remaining lines, and the document that contains all lines, with the last message. Lines
    /// of other chains, and lines that the message cannot store, become the envelope.
    pub(crate) fn finish(
        &mut self,
        out: &mut StepWriter<'_>,
        document: Option<Document<'_>>,
    ) -> Result<(), Error> {
        self.report(out);
        let chain = out.last_branch();
        let lines = self.take(chain);
        if (lines.is_some() || document.is_some()) && !out.behind(lines.as_deref(), document)? {
            self.put_back(chain, lines);
        }
        self.take_all().map_or(Ok(()), |rest| out.envelope(rest))
    }

    /// Reports the lines dropped since the last call.
    pub(crate) fn report(&mut self, out: &mut StepWriter<'_>) {
        if let Some((first, count)) = self.dropped.take() {
            let reason = format!(
                "skipped: {count} lines; the lines between two messages exceed the size limit"
            );
            out.warn(first, "", reason);
        }
    }
}
