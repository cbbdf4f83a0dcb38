//! Every message ever added, in order. Entries are never changed, moved or taken out.

use std::cell::Cell;

use sum_tree::{Item, Length, Run, SumTree};

use crate::counter::Counter;
use crate::index_set::IndexSet;
use crate::view::{Placed, View};
use crate::{Error, LogIndex, Measure, Message, Missing, Timestamp};

/// A message in the log.
#[derive(Clone, Debug)]
pub struct LogEntry {
    /// The message.
    pub message: Message,
    /// The time that the message gives, or that of its arrival.
    pub timestamp: Timestamp,
}

impl Item for LogEntry {
    type Summary = Length;
    const FAN: usize = 24;

    fn add_to(&self, length: &mut Length) {
        length.0 += 1;
    }
}

thread_local! {
    /// Room for a text that is counted: making it anew for each message takes as long as filling it.
    static ROOM: Cell<String> = const { Cell::new(String::new()) };
}

/// Room for more is given back.
const MOST_ROOM: usize = 256 * 1024;

/// How messages are counted.
#[derive(Clone, Debug)]
pub(crate) struct Meter {
    pub(crate) counter: std::sync::Arc<dyn Counter>,
    /// What an image, audio or file part counts for.
    pub(crate) media_tokens: u64,
}

/// What every message counts for beside its content.
const MESSAGE_OVERHEAD: u64 = 3;

impl Meter {
    fn count(&self, message: &Message) -> u64 {
        let text = match self.counter.reads_text() {
            true => {
                let mut room = ROOM.take();
                let tokens = self.counter.count(message.counted_text_in(&mut room));
                if room.capacity() <= MOST_ROOM {
                    ROOM.set(room);
                }
                tokens
            }
            false => self.counter.count(""),
        };
        let media = self.media_tokens.saturating_mul(message.media() as u64);
        text.saturating_add(media).saturating_add(MESSAGE_OVERHEAD)
    }
}

/// The append-only log. Cloning one costs O(1).
#[derive(Clone, Debug, Default)]
pub struct MessageLog {
    entries: SumTree<LogEntry>,
    /// The log as a view: all entries in log order, with their measures.
    all: View,
    /// The tool descriptions that the engine wrote.
    written_by_engine: IndexSet,
}

impl MessageLog {
    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// An entry. O(log n).
    pub fn get(&self, index: LogIndex) -> Option<&LogEntry> {
        self.entries.get(index.as_usize())
    }

    /// The tokens of an entry, counted once when it entered the log.
    pub fn tokens(&self, index: LogIndex) -> Option<u64> {
        self.all.0.get(index.as_usize()).map(Placed::tokens)
    }

    /// All entries in order, from either end.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &LogEntry> + ExactSizeIterator {
        self.entries.iter()
    }

    /// The whole log as a view.
    pub fn as_view(&self) -> &View {
        &self.all
    }

    /// A log of which nothing but the length is known.
    pub(crate) fn opened(len: usize) -> MessageLog {
        let absent = LogEntry { message: Message::absent(), timestamp: 0 };
        MessageLog { entries: SumTree::repeat(absent, len), ..MessageLog::default() }
    }

    /// Whether it is known what every entry measures.
    pub(crate) fn is_measured(&self) -> bool {
        self.all.len() == self.len()
    }

    pub(crate) fn check_measured(&self) -> Result<(), Error> {
        if self.is_measured() { Ok(()) } else { Err(Error::NotLoaded(Missing::Log)) }
    }

    /// Takes note of what every entry measures.
    pub(crate) fn measure(&mut self, measures: impl Iterator<Item = Measure>) {
        let (mut entries, mut all) = (Vec::new(), Vec::new());
        let mut written_by_engine = IndexSet::default();
        for (entry, measure) in self.entries.iter().zip(measures) {
            let index = LogIndex(all.len() as u32);
            if measure.is_written_by_engine {
                written_by_engine.push(index);
            }
            all.push(measure.placed(index));
            let message = entry.message.clone();
            entries.push(LogEntry { message, timestamp: measure.timestamp });
        }
        self.entries = entries.into_iter().collect();
        self.all = View(all.into_iter().collect());
        self.written_by_engine = written_by_engine;
    }

    /// Whether the engine wrote a tool description.
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

    /// Takes note that the engine wrote the newest entry: a tool description.
    pub(crate) fn note_written_by_engine(&mut self) {
        self.written_by_engine.push(LogIndex(self.len() as u32 - 1));
    }

    /// Puts messages where they belong.
    pub(crate) fn fill(&mut self, messages: impl IntoIterator<Item = (LogIndex, Message)>) {
        let entry = |log: &MessageLog, (index, message): (LogIndex, Message)| {
            let timestamp = log.get(index)?.timestamp;
            Some((index, LogEntry { message, timestamp }))
        };
        let entries = messages.into_iter().filter_map(|filled| entry(self, filled)).collect();
        self.set(entries);
    }

    /// Takes note of the times of entries.
    pub(crate) fn date(&mut self, times: impl IntoIterator<Item = (LogIndex, Timestamp)>) {
        let entry = |log: &MessageLog, (index, timestamp): (LogIndex, Timestamp)| {
            let entry = log.get(index).filter(|entry| entry.timestamp != timestamp)?;
            Some((index, LogEntry { message: entry.message.clone(), timestamp }))
        };
        let entries = times.into_iter().filter_map(|dated| entry(self, dated)).collect();
        self.set(entries);
    }

    /// Puts entries in the place of others, neighbours in one go.
    fn set(&mut self, entries: Vec<(LogIndex, LogEntry)>) {
        let mut entries = entries.into_iter().peekable();
        while let Some((first, entry)) = entries.next() {
            let mut run = vec![entry];
            let goes_on =
                |(index, _): &(LogIndex, LogEntry), len| index.as_usize() == first.as_usize() + len;
            while let Some((_, entry)) = entries.next_if(|next| goes_on(next, run.len())) {
                run.push(entry);
            }
            self.entries.splice(first.as_usize()..first.as_usize() + run.len(), run);
        }
    }

    /// An entry that is known to exist, as it stands in a view.
    pub(crate) fn placed(&self, index: LogIndex) -> &Placed {
        self.all.0.get(index.as_usize()).expect("a view holds only entries of the log")
    }

    /// A message that is known to exist.
    pub(crate) fn message(&self, index: LogIndex) -> &Message {
        &self.get(index).expect("a view holds only entries of the log").message
    }

    /// Reads messages that stand close together in the log.
    pub(crate) fn reader(&self) -> LogReader<'_> {
        LogReader { log: self, around: None }
    }

    /// Adds messages, and counts them.
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
            let tokens = meter.count(message);
            self.append_counted(message.clone(), message.timestamp().unwrap_or(now), tokens);
        }
        Ok(())
    }

    /// Adds a message whose tokens are known.
    pub(crate) fn append_counted(&mut self, message: Message, timestamp: Timestamp, tokens: u64) {
        let index = LogIndex(self.len() as u32);
        let placed = Placed::new(index, message.role(), tokens, message.edges().clone());
        self.entries.push(LogEntry { message, timestamp });
        self.all.push(placed);
    }

    /// Adds a message that was measured elsewhere, and that may still be there.
    pub(crate) fn append_measured(&mut self, message: Option<Message>, measure: &Measure) {
        let index = LogIndex(self.len() as u32);
        let message = message.unwrap_or_else(Message::absent);
        self.entries.push(LogEntry { message, timestamp: measure.timestamp });
        self.all.push(measure.placed(index));
        if measure.is_written_by_engine {
            self.written_by_engine.push(index);
        }
    }

    /// The log as it was when it had `len` entries.
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

    pub(crate) fn check(&self) -> Result<(), String> {
        self.entries.check().map_err(|fault| format!("log: {fault}"))?;
        self.all.0.check().map_err(|fault| format!("log as a view: {fault}"))?;
        if self.all.len() != self.len() {
            return Err(format!("{} of {} log entries are measured", self.all.len(), self.len()));
        }
        for (number, (entry, placed)) in self.entries.iter().zip(self.all.0.iter()).enumerate() {
            let ought = Placed::new(
                LogIndex(number as u32),
                entry.message.role(),
                placed.tokens(),
                entry.message.edges().clone(),
            );
            if *placed != ought {
                return Err(format!("log entry {number} is measured as {placed:?}, not {ought:?}"));
            }
        }
        Ok(())
    }
}

/// Reads messages of the log, quickest where each stands near the one before.
pub(crate) struct LogReader<'a> {
    log: &'a MessageLog,
    /// The run that was read last, and the index of its first entry.
    around: Option<(usize, Run<'a, LogEntry>)>,
}

impl<'a> LogReader<'a> {
    /// An entry that is known to exist.
    pub(crate) fn entry(&mut self, index: LogIndex) -> &'a LogEntry {
        let index = index.as_usize();
        let near = self.around.and_then(|(start, run)| run.get(index.checked_sub(start)?));
        near.unwrap_or_else(|| {
            self.around = self.log.entries.run_around(index);
            let (start, run) = self.around.expect("a view holds only entries of the log");
            run.get(index - start).expect("the run is around the entry")
        })
    }
}

/// Whether a message can be read; if it is still in a store, it is added to `absent`.
pub(crate) fn is_at_hand(entry: &LogEntry, index: LogIndex, absent: &mut Vec<LogIndex>) -> bool {
    let is_absent = entry.message.is_absent();
    if is_absent {
        absent.push(index);
    }
    !is_absent
}

/// Tests that no message was found absent.
pub(crate) fn check_at_hand(mut absent: Vec<LogIndex>) -> Result<(), Error> {
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

    /// Counts with a conversation of its own.
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
    fn a_counter_may_append_to_a_conversation_of_its_own() {
        let start = Conversation::new(Settings::counting_with(Nested), 0).unwrap();
        for _ in 0..2 {
            let (talk, _) = start.append([Message::user("four\nfive")], 0).unwrap();
            // 19 bytes are 5 tokens, and both messages have 3 more.
            assert_eq!(talk.view().tokens(), 5 + 3 + 9 + 3);
        }
    }
}
