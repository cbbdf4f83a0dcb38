//! The description of a conversation's tools: a system message (section 8).
//!
//! Whether a message is a description, and whether it is present or stale, depends
//! on the present tools of the conversation.

use std::sync::Arc;

use serde_json::json;

use super::draft::Draft;
use super::message::{Entry, Message};
use super::role::Role;
use super::settings::{DEFAULT_HEADING, EARLIER_HEADING, Settings, Tool};

/// The heading, then a line for each tool; `None` without tools.
pub(super) fn text(heading: &str, tools: &[Tool]) -> Option<String> {
    list(tools).map(|list| format!("{heading}\n{list}"))
}

/// The part of a description below its heading.
fn list(tools: &[Tool]) -> Option<String> {
    let lines: Vec<String> =
        tools.iter().map(|tool| format!("- {}: {}", tool.name, tool.description)).collect();
    if lines.is_empty() { None } else { Some(lines.join("\n")) }
}

/// A description that the engine writes, as a log entry.
pub(super) fn entry(text: &str, settings: &Settings, now: i64) -> Entry {
    let json = json!({"role": "system", "content": text});
    let message = Message::read(&json).expect("a description is never empty");
    Entry { is_written_by_engine: true, ..Entry::new(message, settings, now) }
}

/// Decides which messages are tool descriptions, for one list of tools.
pub(super) struct Descriptions<'a> {
    heading: &'a str,
    /// The text of the present description below its heading; `None` without tools.
    present_list: Option<String>,
}

impl<'a> Descriptions<'a> {
    pub(super) fn of(settings: &'a Settings, tools: &[Tool]) -> Descriptions<'a> {
        Descriptions { heading: &settings.heading, present_list: list(tools) }
    }

    /// The text below the heading, for every recognised heading with which the text
    /// of a system message begins.
    fn below_heading<'b>(&self, entry: &'b Entry) -> Vec<&'b str> {
        if entry.message.role != Role::System {
            return Vec::new();
        }
        let headings = [self.heading, DEFAULT_HEADING, EARLIER_HEADING];
        let text = &entry.message.text;
        let below = |heading: &str| text.strip_prefix(heading)?.strip_prefix('\n');
        headings.into_iter().filter_map(below).collect()
    }

    /// Whether an entry is a description: a system message whose whole text is a recognised heading and
    /// at least one line, all of which start with `- `, or whose text below a heading is exactly that of
    /// the present description, or that the engine wrote.
    pub(super) fn is_description(&self, entry: &Entry) -> bool {
        let is_list = |below: &str| below.split('\n').all(|line| line.starts_with("- "));
        entry.is_written_by_engine
            || self.is_present(entry)
            || self.below_heading(entry).into_iter().any(is_list)
    }

    /// Whether an entry lists the present tools below a recognised heading.
    pub(super) fn is_present(&self, entry: &Entry) -> bool {
        let present = self.present_list.as_deref();
        present.is_some_and(|present| self.below_heading(entry).contains(&present))
    }

    /// Whether an entry is a description that is not present. Without tools no entry is stale.
    pub(super) fn is_stale(&self, entry: &Entry) -> bool {
        self.present_list.is_some() && self.is_description(entry) && !self.is_present(entry)
    }

    /// Whether a visible entry gets the warning `stale_tools`. Without tools that
    /// is every description that the engine wrote.
    pub(super) fn is_warned_about(&self, entry: &Entry) -> bool {
        self.is_stale(entry) || (self.present_list.is_none() && entry.is_written_by_engine)
    }
}

impl Draft<'_> {
    fn descriptions(&self) -> Descriptions<'_> {
        Descriptions::of(self.settings, &self.state.tools)
    }

    pub(super) fn is_stale_description(&self, index: usize) -> bool {
        self.descriptions().is_stale(&self.log[index])
    }

    pub(super) fn is_present_description(&self, index: usize) -> bool {
        self.descriptions().is_present(&self.log[index])
    }

    /// The present description, if there are tools and the view does not show it: the newest log entry
    /// that is one, or else a new entry.
    pub(super) fn missing_description(&mut self, view: &[usize]) -> Option<usize> {
        let present = text(&self.settings.heading, &self.state.tools)?;
        if view.iter().any(|&index| self.is_present_description(index)) {
            return None;
        }
        let newest = (0..self.log.len()).rev().find(|&index| self.is_present_description(index));
        Some(newest.unwrap_or_else(|| {
            self.log.push(Arc::new(entry(&present, self.settings, self.now)));
            self.log.len() - 1
        }))
    }

    /// The view without its stale descriptions that are not pinned. The present one, if it is not
    /// visible, is at the position of the first of them. `None` if there are no such descriptions.
    pub(super) fn view_without_stale_descriptions(&mut self) -> Option<Vec<usize>> {
        let is_removed =
            |&index: &usize| self.is_stale_description(index) && !self.state.is_pinned(index);
        let first = self.state.view().iter().position(is_removed)?;
        let mut view: Vec<usize> =
            self.state.view().iter().copied().filter(|index| !is_removed(index)).collect();
        if let Some(present) = self.missing_description(&view) {
            view.insert(first, present);
        }
        Some(view)
    }

    /// Sets other tools than the present ones.
    pub(super) fn set_tools(&mut self, tools: Vec<Tool>) {
        self.state.tools = tools;
        if self.state.tools.is_empty() {
            return self.hide_descriptions();
        }
        match self.view_without_stale_descriptions() {
            Some(view) => self.open_batch(view),
            None => {
                let view = self.state.view().to_vec();
                let missing = self.missing_description(&view);
                self.extend_view(missing.as_slice());
            }
        }
    }

    /// Hides every visible description that is not pinned, in a new batch. Without such a description,
    /// no batch is opened.
    fn hide_descriptions(&mut self) {
        let descriptions = self.descriptions();
        let may_stay = |&index: &usize| {
            !descriptions.is_description(&self.log[index]) || self.state.is_pinned(index)
        };
        let view = self.state.view();
        let left: Vec<usize> = view.iter().copied().filter(may_stay).collect();
        if left.len() < view.len() {
            self.open_batch(left);
        }
    }
}
