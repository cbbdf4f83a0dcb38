//! Snapshots of batches: [`BatchSnapshot`] and [`ArrayState`].

use std::collections::BTreeSet;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::message_log::{MessageLog, check_loaded};
use crate::{BatchIndex, Conversation, Error, LogIndex, Message, Timestamp, View};

impl Conversation {
    /// The view of a batch of the live path: its last view, or the present one of the current batch.
    pub fn batch_view(&self, batch: BatchIndex) -> Result<View, Error> {
        Ok(self.batch(batch)?.view)
    }

    /// A batch of the live path: when and why it was opened, and its messages.
    pub fn snapshot(&self, batch: BatchIndex) -> Result<BatchSnapshot, Error> {
        let snapshot = self.batch(batch)?;
        snapshot.check_loaded()?;
        Ok(snapshot)
    }

    /// A batch of the live path, whose messages may not be loaded.
    fn batch(&self, batch: BatchIndex) -> Result<BatchSnapshot, Error> {
        let path = &self.state().path;
        let current = path.current_number();
        let left =
            if batch == current { None } else { path.left(batch, &self.shared.loaded_batches)? };
        if left.is_none() && batch != current {
            return Err(Error::BatchNotFound { batch, current, field: "batchIndex" });
        }
        let opening = &left.as_ref().map_or(&path.current, |left| &left.batch).opening;
        Ok(BatchSnapshot {
            batch,
            timestamp: opening.timestamp,
            reason: opening.reason.to_string(),
            view: left.as_ref().map_or(self.view(), |left| &left.view).clone(),
            log: self.log.clone(),
        })
    }

    /// The visible messages and a snapshot of each batch below the current one.
    pub fn array_state(&self) -> Result<ArrayState, Error> {
        let path = &self.state().path;
        // One error names all batches that are not loaded, because the caller loads them and calls again.
        path.check_left(&self.shared.loaded_batches)?;
        let number = path.current_number();
        let below = (0..number.0).map(|batch| self.batch(BatchIndex(batch)));
        let below: Vec<BatchSnapshot> = below.collect::<Result<_, Error>>()?;
        let current = self.batch(number)?;
        let mut absent = BTreeSet::new();
        below.iter().chain([&current]).for_each(|snapshot| absent.extend(snapshot.absent()));
        check_loaded(absent.into_iter().collect())?;
        Ok(ArrayState { current, below })
    }
}

/// A batch of the live path.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BatchSnapshot {
    /// The number of the batch.
    pub batch: BatchIndex,
    /// When the batch was opened.
    pub timestamp: Timestamp,
    /// Why the batch was opened.
    pub reason: String,
    /// Its last view, or the present one of the current batch.
    pub view: View,
    log: MessageLog,
}

impl Serialize for BatchSnapshot {
    /// In the form of the contract: `{batchIndex, timestamp, description, messageCount, messages}`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut snapshot = serializer.serialize_struct("BatchSnapshot", 5)?;
        let messages: Vec<&Message> = self.messages().map(|(_, message)| message).collect();
        snapshot.serialize_field("batchIndex", &self.batch)?;
        snapshot.serialize_field("timestamp", &self.timestamp)?;
        snapshot.serialize_field("description", &self.reason)?;
        snapshot.serialize_field("messageCount", &messages.len())?;
        snapshot.serialize_field("messages", &messages)?;
        snapshot.end()
    }
}

impl BatchSnapshot {
    /// Tests that the messages are loaded.
    fn check_loaded(&self) -> Result<(), Error> {
        check_loaded(self.absent().collect())
    }

    /// The entries whose messages are not loaded.
    fn absent(&self) -> impl Iterator<Item = LogIndex> {
        self.messages().filter(|(_, message)| message.is_absent()).map(|(index, _)| index)
    }

    /// The messages of the view, in order.
    pub fn messages(&self) -> impl DoubleEndedIterator<Item = (LogIndex, &Message)> {
        self.view.iter().map(|index| (index, self.log.message(index)))
    }
}

/// The view as an array of messages, and the batches below the current one.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ArrayState {
    /// The current batch.
    pub current: BatchSnapshot,
    /// The batches below it, from batch 0.
    pub below: Vec<BatchSnapshot>,
}

impl Serialize for ArrayState {
    /// In the form of the contract: `{messages, batchSnapshots, currentBatchIndex,
    /// totalMessageCount}`. The count is that of the visible messages.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut state = serializer.serialize_struct("ArrayState", 4)?;
        let messages: Vec<&Message> = self.current.messages().map(|(_, message)| message).collect();
        state.serialize_field("messages", &messages)?;
        state.serialize_field("batchSnapshots", &self.below)?;
        state.serialize_field("currentBatchIndex", &self.current.batch)?;
        state.serialize_field("totalMessageCount", &messages.len())?;
        state.end()
    }
}
