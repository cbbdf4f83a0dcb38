//! The description of a conversation's tools: a system message (section 8).

use serde_json::json;

use super::draft::Draft;
use super::message::{Entry, Message};
use super::settings::{Settings, Tool};

/// The heading, then a line for each tool. A conversation without tools has none.
pub(super) fn text(heading: &str, tools: &[Tool]) -> Option<String> {
    if tools.is_empty() {
        return None;
    }
    let mut lines = vec![heading.to_owned()];
    lines.extend(tools.iter().map(|tool| format!("- {}: {}", tool.name, tool.description)));
    Some(lines.join("\n"))
}

/// A description as a log entry.
pub(super) fn entry(text: &str, settings: &Settings, now: i64) -> Entry {
    Entry::arrive(message(text), settings, now)
}

fn message(text: &str) -> Message {
    let json = json!({"role": "system", "content": text});
    Message::read(&json).expect("a description is never empty")
}

impl Draft<'_> {
    /// The present description, if there are tools.
    fn present_description(&self) -> Option<String> {
        text(&self.settings.heading, &self.state.tools)
    }

    /// A system message that says exactly this.
    fn says(&self, index: usize, text: &str) -> bool {
        self.is_system(index) && self.log[index].message.text == text
    }

    /// A system message whose text starts with the heading, and that does not say
    /// what the present tools say. Without tools nothing is a description.
    pub(super) fn is_stale_description(&self, index: usize) -> bool {
        self.present_description().is_some_and(|present| {
            self.is_system(index)
                && self.log[index].message.text.starts_with(&self.settings.heading)
                && !self.says(index, &present)
        })
    }

    /// "If the present one is not among what was kept, the newest log entry with
    /// exactly its text, else a new one, comes to the end of the view."
    pub(super) fn description_to_add_after_clear(&mut self, kept: &[usize]) -> Option<usize> {
        let present = self.present_description()?;
        if kept.iter().any(|&index| self.says(index, &present)) {
            return None;
        }
        let newest = (0..self.log.len()).rev().find(|&index| self.says(index, &present));
        Some(newest.unwrap_or_else(|| self.log_messages(&[message(&present)])[0]))
    }

    /// The new description takes the place of a visible stale one (a new batch),
    /// or is appended. One that is visible already need not come again, and a
    /// pinned stale one keeps its place. "A conversation without tools has none":
    /// then all that are not pinned go (a new batch).
    pub(super) fn set_tools(&mut self, tools: Vec<Tool>) {
        self.state.tools = tools;
        let Some(present) = self.present_description() else { return self.hide_descriptions() };
        let mut view = self.state.view().to_vec();
        if view.iter().any(|&index| self.says(index, &present)) {
            return;
        }
        let is_replaceable =
            |&index: &usize| self.is_stale_description(index) && !self.state.is_pinned(index);
        let stale = view.iter().position(is_replaceable);
        let added = self.log_messages(&[message(&present)]);
        match stale {
            Some(position) => {
                view.splice(position..=position, added);
                self.open_batch(view);
            }
            None => self.extend_view(&added),
        }
    }

    fn hide_descriptions(&mut self) {
        let heading = &self.settings.heading;
        let may_stay = |index: usize| {
            let is_description = !heading.is_empty()
                && self.is_system(index)
                && self.log[index].message.text.starts_with(heading);
            !is_description || self.state.is_pinned(index)
        };
        let view = self.state.view();
        let left: Vec<usize> = view.iter().copied().filter(|&index| may_stay(index)).collect();
        if left.len() < view.len() {
            self.open_batch(left);
        }
    }
}
