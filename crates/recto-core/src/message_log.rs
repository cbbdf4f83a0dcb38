//! The log: every message ever added, in order. Entries are never changed, moved or removed.

use std::cell::Cell;

use sum_tree::{Item, Length, Run, SumTree};

use crate::counter::Counter;
use crate::edges::Edges;
use crate::index_set::IndexSet;
use crate::view::{View, ViewEntry};
use crate::{Error, LogIndex, Message, Missing, Role, Timestamp};

/// A message in the log.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LogEntry {
    /// The message.
    pub message: Message,
    /// The timestamp of the message, or else the time at which it was added.
    pub timestamp: Timestamp,
}

impl Item for LogEntry {
    type Summary = Length;
    const FAN: usize = 24;

    fn add_to(&self, length: &mut Length) {
        length.0 += 1;
    }
}

/// Metadata of a log entry: the data that the engine needs if the message is not loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryMeta {
    /// The role of the message.
    pub role: Role,
    /// The tokens of the message.
    pub tokens: u64,
    /// The timestamp of the message, or else the time at which it was added.
    pub timestamp: Timestamp,
    /// The tool calls without a result and the results without a call in the message, as opaque numbers.
    /// Their meaning never changes, because stores keep them.
    pub edges: Vec<u64>,
    /// Whether the message is a tool description that the engine wrote.
    pub is_written_by_engine: bool,
}

impl EntryMeta {
    pub(crate) fn view_entry(&self, index: LogIndex) -> ViewEntry {
        ViewEntry::new(index, self.role, self.tokens, Edges::from_numbers(&self.edges))
    }
}

thread_local! {
    /// Buffer for decoded texts. Allocating it for each message would take as long as filling it.
    static SCRATCH: Cell<String> = const { Cell::new(String::new()) };
}

/// Maximum capacity of the buffer; a larger one is freed.
const MAX_SCRATCH_BYTES: usize = 256 * 1024;

/// Counts the tokens of messages.
#[derive(Clone, Debug)]
pub(crate) struct Meter {
    pub(crate) counter: std::sync::Arc<dyn Counter>,
    /// Tokens of an image, audio or file part.
    pub(crate) media_tokens: u64,
}

/// Tokens of every message in addition to those of its content.
const MESSAGE_OVERHEAD: u64 = 3;

impl Meter {
    fn count(&self, message: &Message) -> u64 {
        let text = match self.counter.reads_text() {
            true => {
                let mut scratch = SCRATCH.take();
                let tokens = self.counter.count(message.counted_text_in(&mut scratch));
                if scratch.capacity() <= MAX_SCRATCH_BYTES {
                    SCRATCH.set(scratch);
                }
                tokens
            }
            false => self.counter.count(""),
        };
        let media = self.media_tokens.saturating_mul(message.media_count() as u64);
        text.saturating_add(media).saturating_add(MESSAGE_OVERHEAD)
    }
}

/// The append-only log. A clone costs O(1).
#[derive(Clone, Debug, Default)]
pub struct MessageLog {
    entries: SumTree<LogEntry>,
    /// The log as a view: all entries in log order, with their metadata. Empty if the metadata is not
    /// loaded.
    all: View,
    /// The tool descriptions that the engine wrote.
    written_by_engine: IndexSet,
}

impl MessageLog {
    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the log has no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// An entry. O(log n).
    pub fn get(&self, index: LogIndex) -> Option<&LogEntry> {
        self.entries.get(index.as_usize())
    }

    /// The tokens of an entry, counted once when it entered the log.
    pub fn tokens(&self, index: LogIndex) -> Option<u64> {
        self.all.0.get(index.as_usize()).map(ViewEntry::tokens)
    }

    /// All entries in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &LogEntry> + ExactSizeIterator {
        self.entries.iter()
    }

    /// The whole log as a view.
    pub fn as_view(&self) -> &View {
        &self.all
    }

    /// A log of this length without loaded messages and metadata.
    pub(crate) fn not_loaded(len: usize) -> MessageLog {
        let absent = LogEntry { message: Message::absent(), timestamp: 0 };
        MessageLog { entries: SumTree::repeat(absent, len), ..MessageLog::default() }
    }

    /// Whether the metadata of every entry is loaded.
    pub(crate) fn has_metadata(&self) -> bool {
        self.all.len() == self.len()
    }

    pub(crate) fn check_metadata(&self) -> Result<(), Error> {
        if self.has_metadata() { Ok(()) } else { Err(Error::NotLoaded(Missing::Log)) }
    }

    /// Sets the metadata of every entry.
    pub(crate) fn load_metadata(&mut self, metadata: impl Iterator<Item = EntryMeta>) {
        let (mut entries, mut all) = (Vec::new(), Vec::new());
        let mut written_by_engine = IndexSet::default();
        for (entry, meta) in self.entries.iter().zip(metadata) {
            let index = LogIndex(all.len() as u32);
            if meta.is_written_by_engine {
                written_by_engine.push(index);
            }
            all.push(meta.view_entry(index));
            let message = entry.message.clone();
            entries.push(LogEntry { message, timestamp: meta.timestamp });
        }
        self.entries = entries.into_iter().collect();
        self.all = View(all.into_iter().collect());
        self.written_by_engine = written_by_engine;
    }

    /// Whether the log has tool descriptions that the engine wrote.
    pub(crate) fn has_written_by_engine(&self) -> bool {
        !self.written_by_engine.is_empty()
    }

    /// Whether an entry is a tool description that the engine wrote.
    pub(crate) fn is_written_by_engine(&self, index: LogIndex) -> bool {
        !self.written_by_engine.is_empty() && self.written_by_engine.contains(index)
    }

    /// The tool descriptions that the engine wrote, in log order.
    pub(crate) fn written_by_engine(&self) -> impl Iterator<Item = LogIndex> {
        self.written_by_engine.iter()
    }

    /// Records that the newest entry is a tool description that the engine wrote.
    pub(crate) fn note_written_by_engine(&mut self) {
        self.written_by_engine.push(LogIndex(self.len() as u32 - 1));
    }

    /// Records that these entries are tool descriptions that the engine wrote. For a log without the metadata
    /// of every entry.
    pub(crate) fn load_written_by_engine(&mut self, mut indices: Vec<LogIndex>) {
        if !indices.is_empty() {
            indices.sort_unstable();
            self.written_by_engine = self.written_by_engine.union(&indices);
        }
    }

    /// Sets the messages of entries.
    pub(crate) fn load_messages(
        &mut self,
        messages: impl IntoIterator<Item = (LogIndex, Message)>,
    ) {
        let entry = |log: &MessageLog, (index, message): (LogIndex, Message)| {
            let timestamp = log.get(index)?.timestamp;
            Some((index, LogEntry { message, timestamp }))
        };
        let entries = messages.into_iter().filter_map(|loaded| entry(self, loaded)).collect();
        self.set(entries);
    }

    /// Sets the timestamps of entries.
    pub(crate) fn load_timestamps(
        &mut self,
        times: impl IntoIterator<Item = (LogIndex, Timestamp)>,
    ) {
        let entry = |log: &MessageLog, (index, timestamp): (LogIndex, Timestamp)| {
            let entry = log.get(index).filter(|entry| entry.timestamp != timestamp)?;
            Some((index, LogEntry { message: entry.message.clone(), timestamp }))
        };
        let entries = times.into_iter().filter_map(|dated| entry(self, dated)).collect();
        self.set(entries);
    }

    /// Replaces entries. Consecutive entries are replaced in one edit.
    fn set(&mut self, entries: Vec<(LogIndex, LogEntry)>) {
        let mut entries = entries.into_iter().peekable();
        while let Some((first, entry)) = entries.next() {
            let mut run = vec![entry];
            let is_next =
                |(index, _): &(LogIndex, LogEntry), len| index.as_usize() == first.as_usize() + len;
            while let Some((_, entry)) = entries.next_if(|next| is_next(next, run.len())) {
                run.push(entry);
            }
            self.entries.splice(first.as_usize()..first.as_usize() + run.len(), run);
        }
    }

    /// The view entry of an existing log entry.
    pub(crate) fn view_entry(&self, index: LogIndex) -> &ViewEntry {
        self.all.0.get(index.as_usize()).expect("a view holds only entries of the log")
    }

    /// The message of an existing entry.
    pub(crate) fn message(&self, index: LogIndex) -> &Message {
        &self.get(index).expect("a view holds only entries of the log").message
    }

    /// A reader for messages that are close together in the log.
    pub(crate) fn reader(&self) -> LogReader<'_> {
        LogReader { log: self, run: None }
    }

    /// Counts messages and adds them.
    pub(crate) fn append(
        &mut self,
        messages: &[Message],
        now: Timestamp,
        meter: &Meter,
    ) -> Result<(), Error> {
        let size = self.len() + messages.len();
        let limit = u32::MAX as usize;
        if size > limit {
            return Err(Error::too_large("the number of log entries", size, limit));
        }
        for message in messages {
            message.check_content()?;
            let tokens = meter.count(message);
            self.append_counted(message.clone(), message.timestamp().unwrap_or(now), tokens);
        }
        Ok(())
    }

    /// Adds a message with its tokens.
    pub(crate) fn append_counted(&mut self, message: Message, timestamp: Timestamp, tokens: u64) {
        let index = LogIndex(self.len() as u32);
        let view_entry = ViewEntry::new(index, message.role(), tokens, message.edges().clone());
        self.entries.push(LogEntry { message, timestamp });
        self.all.push(view_entry);
    }

    /// Adds an entry from a store, whose message may not be loaded.
    pub(crate) fn append_stored(&mut self, message: Option<Message>, meta: &EntryMeta) {
        let index = LogIndex(self.len() as u32);
        let message = message.unwrap_or_else(Message::absent);
        self.entries.push(LogEntry { message, timestamp: meta.timestamp });
        self.all.push(meta.view_entry(index));
        if meta.is_written_by_engine {
            self.written_by_engine.push(index);
        }
    }

    /// The first `len` entries of the log; the whole log if it is shorter.
    pub(crate) fn prefix(&self, len: usize) -> MessageLog {
        if len >= self.len() {
            return self.clone();
        }
        MessageLog {
            entries: self.entries.slice(..len),
            all: View(self.all.0.slice(..len)),
            written_by_engine: self.written_by_engine.below(LogIndex(len as u32)),
        }
    }

    pub(crate) fn check_index(&self, index: LogIndex) -> Result<(), Error> {
        if index.as_usize() < self.len() {
            return Ok(());
        }
        Err(Error::IndexOutOfRange { index, len: self.len() })
    }

    /// Tests the structure of the trees.
    pub(crate) fn check_nodes(&self) -> Result<(), String> {
        self.entries.check().map_err(|fault| format!("log: {fault}"))?;
        self.all.0.check().map_err(|fault| format!("log as a view: {fault}"))
    }

    /// Tests the entries from `first` on: their messages are loaded and agree with their metadata.
    pub(crate) fn check_from(&self, first: usize) -> Result<(), String> {
        if self.all.len() != self.len() {
            return Err(format!("{} of {} log entries have metadata", self.all.len(), self.len()));
        }
        let entries = self.entries.iter_range(first..self.len());
        let view_entries = self.all.0.iter_range(first..self.len());
        for (number, (entry, view_entry)) in (first..).zip(entries.zip(view_entries)) {
            if entry.message.is_absent() {
                return Err(format!("the message of log entry {number} is not loaded"));
            }
            let expected = ViewEntry::new(
                LogIndex(number as u32),
                entry.message.role(),
                view_entry.tokens(),
                entry.message.edges().clone(),
            );
            if *view_entry != expected {
                return Err(format!("log entry {number} has {view_entry:?}, not {expected:?}"));
            }
        }
        Ok(())
    }
}

/// Reads entries of the log. Fast if each entry is close to the previous one.
pub(crate) struct LogReader<'a> {
    log: &'a MessageLog,
    /// The run that contains the previously read entry, and the index of its first entry.
    run: Option<(usize, Run<'a, LogEntry>)>,
}

impl<'a> LogReader<'a> {
    /// An existing entry.
    pub(crate) fn entry(&mut self, index: LogIndex) -> &'a LogEntry {
        let index = index.as_usize();
        let near = self.run.and_then(|(start, run)| run.get(index.checked_sub(start)?));
        near.unwrap_or_else(|| {
            self.run = self.log.entries.run_around(index);
            let (start, run) = self.run.expect("a view holds only entries of the log");
            run.get(index - start).expect("the run is around the entry")
        })
    }
}

/// Whether the message of an entry is loaded. If it is not, its index is added to `absent`.
pub(crate) fn is_loaded(entry: &LogEntry, index: LogIndex, absent: &mut Vec<LogIndex>) -> bool {
    let is_absent = entry.message.is_absent();
    if is_absent {
        absent.push(index);
    }
    !is_absent
}

/// Fails with [`Error::NotLoaded`] unless `absent`, the entries whose messages are not loaded, is empty.
pub(crate) fn check_loaded(mut absent: Vec<LogIndex>) -> Result<(), Error> {
    if absent.is_empty() {
        return Ok(());
    }
    absent.sort_unstable();
    absent.dedup();
    Err(Error::NotLoaded(Missing::Messages(absent)))
}

#[cfg(test)]
mod tests {
    use crate::{Approx, Conversation, Counter, Message, Settings};

    /// A counter that uses another conversation.
    #[derive(Debug)]
    struct Nested;

    impl Counter for Nested {
        fn name(&self) -> &str {
            "nested"
        }

        fn count(&self, text: &str) -> u64 {
            let inner = Conversation::new(Settings::counting_with(Approx), 0).unwrap();
            let (inner, _) = inner.append([Message::user(&format!("{text}\n{text}"))], 0).unwrap();
            inner.view().tokens() + text.len() as u64
        }
    }

    #[test]
    fn a_counter_may_append_to_another_conversation() {
        let start = Conversation::new(Settings::counting_with(Nested), 0).unwrap();
        for _ in 0..2 {
            let (conversation, _) = start.append([Message::user("four\nfive")], 0).unwrap();
            // The inner message has 19 bytes: 5 tokens, and an overhead of 3. The outer one adds 9 and 3.
            assert_eq!(conversation.view().tokens(), 5 + 3 + 9 + 3);
        }
    }
}
