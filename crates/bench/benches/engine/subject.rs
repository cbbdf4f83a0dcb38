//! The conversations of one size on which all rows are measured.

use recto_core::{
    Append, Approx, Conversation, Counter, Delete, Error, Insert, LogIndex, Message, Outcome,
    Position, Replace, Settings,
};

use crate::plain::{PlainList, PlainMessage};
use crate::transcript::{Transcript, remarks};

/// Number of edits of the edited conversation.
pub(crate) const EDITS: usize = 200;

pub(crate) struct Subject {
    /// Number of messages in the view.
    pub(crate) size: usize,
    /// The transcript, appended in one request per turn, so it has a long history.
    pub(crate) fresh: Conversation,
    /// [`fresh`](Self::fresh) after [`EDITS`] scattered edits of one message each.
    pub(crate) edited: Conversation,
    /// [`fresh`](Self::fresh) with a counter that does not count.
    pub(crate) uncounted: Conversation,
    /// Messages to edit with.
    pub(crate) remarks: Vec<Message>,
    /// The bytes of all texts.
    pub(crate) text_bytes: usize,
}

impl Subject {
    pub(crate) fn new(transcript: &Transcript) -> Subject {
        let fresh = by_turns(transcript, Settings::counting_with(Approx));
        let uncounted = by_turns(transcript, Settings::counting_with(Uncounted));
        let remarks = remarks(64);
        let size = transcript.messages.len();
        let text_bytes = transcript.messages.iter().map(|message| message.text().len()).sum();
        let edited = fresh.clone();
        let mut subject = Subject { size, fresh, edited, uncounted, remarks, text_bytes };
        for number in 0..EDITS {
            subject.edited = subject.edit(&subject.edited, number).expect("the edit is right").0;
        }
        subject
    }

    /// One of a long series of scattered edits of one message each.
    pub(crate) fn edit(
        &self,
        on: &Conversation,
        number: usize,
    ) -> Result<(Conversation, Outcome), Error> {
        let place = self.place(number);
        match number % 3 {
            0 => on.apply(self.insert(number), 0),
            1 => on.apply(Replace { index: Position(place), message: self.remark(number) }, 0),
            _ => on.apply(Delete { indices: vec![LogIndex(place as u32)] }, 0),
        }
    }

    pub(crate) fn insert(&self, number: usize) -> Insert {
        let position = Position(self.place(number));
        Insert { position, messages: vec![self.remark(number)] }
    }

    pub(crate) fn remark(&self, number: usize) -> Message {
        self.remarks[number % self.remarks.len()].clone()
    }

    /// A position in the middle half of the view, scattered and different for each number.
    pub(crate) fn place(&self, number: usize) -> usize {
        scattered(number, self.size / 4, self.size / 2)
    }

    /// The index of the first of ten consecutive entries in the middle half of the log. No other number has
    /// any of these entries.
    pub(crate) fn block(&self, number: usize) -> usize {
        scattered(number, self.size / 40, self.size / 20) * 10
    }

    /// The messages as a plain list.
    pub(crate) fn plain(&self) -> PlainList {
        let log = self.fresh.log();
        let plain = |(number, entry): (usize, &recto_core::LogEntry)| {
            let index = LogIndex(number as u32);
            PlainMessage::new(index.0, &entry.message, log.tokens(index).expect("it exists"))
        };
        PlainList::new(log.iter().enumerate().map(plain).collect())
    }
}

/// The `number`th of the `count` numbers from `first` on, in an order that looks random.
pub(crate) fn scattered(number: usize, first: usize, count: usize) -> usize {
    // A prime that divides no size, so that no number occurs twice.
    const STEP: usize = 2_654_435_761;
    first + number * STEP % count
}

fn by_turns(transcript: &Transcript, settings: Settings) -> Conversation {
    let mut conversation = Conversation::new(settings, 0).expect("the settings are right");
    for turn in transcript.turns() {
        let append = Append { messages: turn.to_vec() };
        conversation = conversation.apply(append, 0).expect("the messages are right").0;
    }
    conversation
}

/// A counter that does not read the text.
#[derive(Debug)]
struct Uncounted;

impl Counter for Uncounted {
    fn name(&self) -> &str {
        "uncounted"
    }

    fn reads_text(&self) -> bool {
        false
    }

    fn count(&self, _: &str) -> u64 {
        0
    }
}
