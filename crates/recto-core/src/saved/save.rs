//! From a conversation to plain data. Values that versions share are written once.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::value::RawValue;
use sum_tree::Identity;

use super::{
    Part, SAVED_FORMAT, SavedBatch, SavedConversation, SavedEntry, SavedMarks, SavedOpening,
    SavedStep, SavedVersion, SavedView,
};
use crate::history::Record;
use crate::live_path::{LeftBatch, LivePath, OpenBatch};
use crate::operation::OperationKind;
use crate::view::Placed;
use crate::{Conversation, LogIndex, Marks, MessageLog, ToolSet, View};

impl Conversation {
    /// The whole conversation as one value: every message, every version.
    ///
    /// ```
    /// use recto_core::{Approx, Conversation, Message, SavedConversation, Settings};
    ///
    /// let start = Conversation::new(Settings::counting_with(Approx), 0)?;
    /// let (conversation, _) = start.append([Message::user("hello")], 1)?;
    ///
    /// let json = serde_json::to_string(&conversation.save()).unwrap();
    /// let saved: SavedConversation = serde_json::from_str(&json).unwrap();
    /// let loaded = Conversation::load(&saved)?;
    /// assert_eq!(loaded.version(), conversation.version());
    /// # Ok::<(), recto_core::Error>(())
    /// ```
    pub fn save(&self) -> SavedConversation {
        let mut saving = Saving::default();
        let versions: Vec<SavedVersion> = self
            .history
            .iter()
            .map(|(version, record)| {
                // An APPEND without a reason needs no words.
                let is_plain = record.kind == OperationKind::Append && record.is_plain();
                let description = (!is_plain).then(|| self.history.description(version, record));
                saving.version(record, description)
            })
            .collect();
        SavedConversation {
            format: SAVED_FORMAT,
            counter: self.setup.meter.counter.name().to_owned(),
            media_tokens: self.setup.meter.media_tokens,
            heading: self.setup.heading.clone(),
            log: save_log(&self.log),
            tools: saving.tools.iter().map(|tools| tools.tools().to_vec()).collect(),
            views: saving.views,
            marks: saving.marks,
            openings: saving.openings,
            batches: saving.batches,
            versions,
        }
    }
}

fn save_log(log: &MessageLog) -> Vec<SavedEntry> {
    let measured = log.iter().zip(log.as_view().0.iter());
    measured
        .map(|(entry, placed)| SavedEntry {
            message: RawValue::from_string(entry.message.json().to_owned())
                .expect("a message is kept as the JSON it came as"),
            timestamp: entry.timestamp,
            tokens: placed.tokens(),
        })
        .collect()
}

/// What has been written so far, and where it is.
#[derive(Default)]
struct Saving {
    views: Vec<SavedView>,
    view_places: HashMap<Identity, usize>,
    /// The view that the next one is most like: the one written or met last.
    last_view: Option<(usize, View)>,
    marks: Vec<SavedMarks>,
    mark_places: HashMap<usize, usize>,
    last_marks: Option<(usize, Marks)>,
    openings: Vec<SavedOpening>,
    opening_places: HashMap<*const OpenBatch, usize>,
    batches: Vec<SavedBatch>,
    batch_places: HashMap<*const LeftBatch, usize>,
    tools: Vec<Arc<ToolSet>>,
}

impl Saving {
    fn version(&mut self, record: &Record, description: Option<String>) -> SavedVersion {
        let state = &record.state;
        let steps = record
            .steps()
            .iter()
            .map(|step| SavedStep {
                operation: step.kind,
                description: step.description.to_string(),
                view: self.view(&step.view),
            })
            .collect();
        SavedVersion {
            operation: record.kind,
            description,
            timestamp: record.timestamp,
            log_len: record.log_len,
            below: self.batches_below(&state.path),
            opening: self.opening(&state.path.current),
            view: self.view(&state.view),
            marks: self.marks(&state.marks),
            tools: state.tools.as_ref().map(|tools| self.tools(tools)),
            undo: record.undo.target(),
            redo: record.redo.target(),
            steps,
        }
    }

    fn view(&mut self, view: &View) -> usize {
        let identity = view.0.identity();
        let place = match self.view_places.get(&identity) {
            Some(&place) => place,
            None => {
                let saved = match &self.last_view {
                    Some((base, last)) => {
                        SavedView { base: Some(*base), parts: changes(last, view) }
                    }
                    None => SavedView { base: None, parts: changes(&View::default(), view) },
                };
                self.views.push(saved);
                self.view_places.insert(identity, self.views.len() - 1);
                self.views.len() - 1
            }
        };
        self.last_view = Some((place, view.clone()));
        place
    }

    fn batches_below(&mut self, path: &LivePath) -> Option<usize> {
        let is_new = |left: &&Arc<LeftBatch>| !self.batch_places.contains_key(&Arc::as_ptr(left));
        let new: Vec<Arc<LeftBatch>> = path.left_batches().take_while(is_new).cloned().collect();
        for left in new.iter().rev() {
            let batch = SavedBatch {
                below: left.below().map(|below| self.batch_places[&Arc::as_ptr(below)]),
                opening: self.opening(&left.batch),
                view: self.view(&left.view),
                log_len: left.log_len,
            };
            self.batches.push(batch);
            self.batch_places.insert(Arc::as_ptr(left), self.batches.len() - 1);
        }
        path.left_batches().next().map(|left| self.batch_places[&Arc::as_ptr(left)])
    }

    fn opening(&mut self, batch: &Arc<OpenBatch>) -> usize {
        *self.opening_places.entry(Arc::as_ptr(batch)).or_insert_with(|| {
            let opening = &batch.opening;
            self.openings.push(SavedOpening {
                timestamp: opening.timestamp,
                description: opening.description.to_string(),
                boundary: opening.boundary,
            });
            self.openings.len() - 1
        })
    }

    fn marks(&mut self, marks: &Marks) -> Option<usize> {
        if marks.is_empty() {
            return None;
        }
        let place = match self.mark_places.get(&marks.address()) {
            Some(&place) => place,
            None => {
                let (base, last) = match &self.last_marks {
                    Some((place, last)) => (Some(*place), last.clone()),
                    None => (None, Marks::default()),
                };
                let changes = marks.changes_since(&last);
                self.marks.push(SavedMarks {
                    base,
                    changes: changes
                        .into_iter()
                        .map(|(label, set, unset)| super::SavedMark { label, set, unset })
                        .collect(),
                });
                self.mark_places.insert(marks.address(), self.marks.len() - 1);
                self.marks.len() - 1
            }
        };
        self.last_marks = Some((place, marks.clone()));
        Some(place)
    }

    fn tools(&mut self, tools: &Arc<ToolSet>) -> usize {
        let known = self.tools.iter().rposition(|other| Arc::ptr_eq(other, tools));
        known.unwrap_or_else(|| {
            self.tools.push(tools.clone());
            self.tools.len() - 1
        })
    }
}

/// How `view` is made of stretches of `base` and of log entries.
fn changes(base: &View, view: &View) -> Vec<Part> {
    let difference = base.0.difference(&view.0);
    // Of what the two do not share: where those entries stood in the base that the view has too.
    let new = difference.right.iter().flat_map(|block| block.items());
    let mut places: HashMap<LogIndex, Option<usize>> =
        new.map(|entry| (entry.index(), None)).collect();
    if !places.is_empty() {
        for block in &difference.left {
            for (number, entry) in block.items().enumerate() {
                if let Some(place) = places.get_mut(&entry.index()) {
                    *place = Some(block.start + number);
                }
            }
        }
    }
    let mut parts = Vec::new();
    for block in &difference.right {
        match block.shared {
            Some(start) => push(&mut parts, Part::Keep(start, block.len)),
            None => {
                for index in block.items().map(Placed::index) {
                    push(
                        &mut parts,
                        match places[&index] {
                            Some(place) => Part::Keep(place, 1),
                            None => Part::Add(index.0, 1),
                        },
                    );
                }
            }
        }
    }
    parts
}

/// Adds a part, as one with the part before it if it goes on from there.
fn push(parts: &mut Vec<Part>, part: Part) {
    match (parts.last_mut(), part) {
        (Some(Part::Keep(start, len)), Part::Keep(next, more)) if *start + *len == next => {
            *len += more;
        }
        (Some(Part::Add(first, len)), Part::Add(next, more)) if *first + *len == next => {
            *len += more;
        }
        _ => parts.push(part),
    }
}
