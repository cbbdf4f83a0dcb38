//! The operations of section 4, except FIT. Each checks the conversation first:
//! existence, then visibility, then pins.

use std::collections::BTreeSet;

use serde_json::json;

use super::draft::Draft;
use super::message::Message;
use super::operation::{Carry, Filter, Scope, Truncate};
use super::refusal::Refusal;
use super::role::Role;
use super::state::find_version;

impl Draft<'_> {
    pub(super) fn append(&mut self, messages: &[Message]) {
        let added = self.log_messages(messages);
        self.extend_view(&added);
    }

    pub(super) fn insert(&mut self, position: usize, messages: &[Message]) -> Result<(), Refusal> {
        let mut view = self.state.view().to_vec();
        if position > view.len() {
            let message = format!("position {position} is past the view's end, {}", view.len());
            return Err(Refusal::new("position_out_of_range", message));
        }
        let added = self.log_messages(messages);
        view.splice(position..position, added);
        self.open_batch(view);
        Ok(())
    }

    pub(super) fn replace(&mut self, position: usize, message: &Message) -> Result<(), Refusal> {
        let mut view = self.state.view().to_vec();
        if position >= view.len() {
            let message = format!("index {position} is past the view's end, {}", view.len());
            return Err(Refusal::new("index_out_of_range", message));
        }
        self.require_unpinned(&[view[position]])?;
        let added = self.log_messages(std::slice::from_ref(message));
        view.splice(position..=position, added);
        self.open_batch(view);
        Ok(())
    }

    /// The `replace` of the modification form: the messages replace the first of `indices`, which must be
    /// visible, and the others are hidden.
    pub(super) fn replace_entries(
        &mut self,
        indices: &[usize],
        messages: &[Message],
    ) -> Result<(), Refusal> {
        self.require_logged(indices)?;
        let first = indices[0];
        if !self.state.is_visible(first) {
            return Err(Refusal::new("not_visible", format!("entry {first} is hidden")));
        }
        self.require_unpinned(indices)?;
        let added = self.log_messages(messages);
        let view = self.view_with_one_replaced(indices, first, &added);
        self.open_batch(view);
        Ok(())
    }

    pub(super) fn delete(&mut self, indices: &[usize]) -> Result<(), Refusal> {
        self.require_logged(indices)?;
        self.require_unpinned(indices)?;
        let view = self.state.view().iter().copied();
        let view = view.filter(|index| !indices.contains(index)).collect();
        self.open_batch(view);
        Ok(())
    }

    pub(super) fn compress(
        &mut self,
        indices: &[usize],
        summary: Option<&Message>,
    ) -> Result<(), Refusal> {
        let Some(summary) = summary else { return self.delete(indices) };
        self.require_logged(indices)?;
        let first_hidden = self.state.view().iter().copied().find(|index| indices.contains(index));
        let Some(first_hidden) = first_hidden else {
            let message = "none of the entries that the summary replaces is visible";
            return Err(Refusal::new("nothing_to_compress", message));
        };
        self.require_unpinned(indices)?;
        let added = self.log_messages(std::slice::from_ref(summary));
        let view = self.view_with_one_replaced(indices, first_hidden, &added);
        self.open_batch(view);
        Ok(())
    }

    pub(super) fn truncate(&mut self, truncate: &Truncate) -> Result<(), Refusal> {
        if let Some(range) = truncate.range {
            range.require_order()?;
        }
        let base = self.base_list(truncate.scope);
        let has_role =
            |index: &usize| truncate.role.is_none_or(|role| self.log[*index].message.role == role);
        let of_role: Vec<usize> = base.iter().copied().filter(|index| has_role(index)).collect();

        // The criteria, in the order of the contract.
        let mut left = &of_role[..];
        if let Some(count) = truncate.keep_first {
            left = &left[..count.min(left.len())];
        }
        if let Some(count) = truncate.keep_last {
            left = &left[left.len().saturating_sub(count)..];
        }
        if let Some(count) = truncate.remove_first {
            left = &left[count.min(left.len())..];
        }
        if let Some(count) = truncate.remove_last {
            left = &left[..left.len().saturating_sub(count)];
        }
        if let Some(range) = truncate.range {
            left = range.of(left);
        }

        let is_chosen =
            |index: &usize| left.contains(index) || (truncate.keep_others && !has_role(index));
        let chosen = base.iter().copied().filter(is_chosen).collect();
        let view = self.with_visible_pins(&base, &chosen);
        self.open_batch(view);
        Ok(())
    }

    pub(super) fn filter(&mut self, filter: &Filter) {
        let base = self.base_list(filter.scope);
        let is_chosen = |index: &usize| {
            let message = &self.log[*index].message;
            let contains = |word: &String| message.text.contains(word);
            filter.roles.as_ref().is_none_or(|roles| roles.contains(&message.role))
                && filter.content_contains.as_ref().is_none_or(|words| words.iter().any(contains))
                && filter.content_excludes.as_ref().is_none_or(|words| !words.iter().any(contains))
        };
        let chosen = base.iter().copied().filter(is_chosen).collect();
        let view = self.with_visible_pins(&base, &chosen);
        self.open_batch(view);
    }

    pub(super) fn clear(&mut self, keep_system_message: bool, scope: Scope) {
        let base = self.base_list(scope);
        let is_chosen = |index: &usize| {
            keep_system_message && self.is_system(*index) && !self.is_stale_description(*index)
        };
        let chosen = base.iter().copied().filter(is_chosen).collect();
        let mut view = self.with_visible_pins(&base, &chosen);
        view.extend(self.missing_description(&view));
        self.open_batch(view);
    }

    pub(super) fn restore(&mut self, indices: &[usize]) -> Result<(), Refusal> {
        self.require_logged(indices)?;
        let mut view = self.state.view().to_vec();
        let ascending: BTreeSet<usize> = indices.iter().copied().collect();
        for index in ascending {
            if view.contains(&index) {
                continue;
            }
            let nearest_smaller = view.iter().copied().filter(|&other| other < index).max();
            let position = match nearest_smaller {
                Some(neighbour) => position_of(&view, neighbour) + 1,
                None => 0,
            };
            view.insert(position, index);
        }
        self.open_batch(view);
        Ok(())
    }

    /// Sets the view to exactly these entries in this order. The list may contain hidden entries and
    /// must contain the visible pinned ones.
    pub(super) fn arrange(&mut self, indices: &[usize]) -> Result<(), Refusal> {
        self.require_logged(indices)?;
        let view = self.state.view().iter().copied();
        let left_out: Vec<usize> = view.filter(|index| !indices.contains(index)).collect();
        self.require_unpinned(&left_out)?;
        self.open_batch(indices.to_vec());
        Ok(())
    }

    /// With `with_tools`, stale descriptions that are not pinned are hidden, and visible present ones stay
    /// in spite of the boundary. If there is none, one is inserted after the leading system messages of
    /// the new view. Without tools the option has no effect.
    pub(super) fn batch_start(
        &mut self,
        boundary: Option<usize>,
        with_tools: bool,
        expected_batch: Option<usize>,
    ) -> Result<(), Refusal> {
        let new_batch = self.state.batch_index() + 1;
        if let Some(expected) = expected_batch.filter(|&expected| expected != new_batch) {
            let message = format!("the new batch is {new_batch}, not {expected}");
            return Err(Refusal::operation(message)
                .with_field("batch")
                .with_details(json!({"expected": expected, "actual": new_batch})));
        }
        let boundary = boundary.unwrap_or(0);
        if boundary > self.log.len() {
            let message = format!("boundary {boundary} is past the log's end, {}", self.log.len());
            return Err(Refusal::new("index_out_of_range", message));
        }
        let base = self.state.view().to_vec();
        let is_chosen = |&index: &usize| {
            let is_present = with_tools && self.is_present_description(index);
            let is_stale = with_tools && self.is_stale_description(index);
            is_present || (index >= boundary && !is_stale)
        };
        let chosen = base.iter().copied().filter(is_chosen).collect();
        let mut view = self.with_visible_pins(&base, &chosen);
        if with_tools && let Some(present) = self.missing_description(&view) {
            let leading = view.iter().take_while(|&&index| self.is_system(index)).count();
            view.insert(leading, present);
        }
        self.open_batch(view);
        self.state.current_mut().is_started = true;
        Ok(())
    }

    pub(super) fn batch_end(
        &mut self,
        target_batch: Option<usize>,
        carry: &Carry,
    ) -> Result<(), Refusal> {
        let target_batch = match target_batch {
            Some(batch) => batch,
            None => self.state.batch_before_newest_start()?,
        };
        let left_at_log_len = self.state.batch(target_batch)?.left_at_log_len;
        // The current batch was not left, so nothing was added since.
        let added_since = left_at_log_len.unwrap_or(self.log.len())..self.log.len();
        let is_carried = |index: &usize| match carry {
            Carry::None => false,
            Carry::All => true,
            Carry::Roles(roles) => roles.contains(&self.log[*index].message.role),
        };
        let carried: Vec<usize> =
            added_since.filter(|&index| self.state.is_visible(index)).filter(is_carried).collect();
        self.return_to_batch(target_batch)?;
        let is_skipped =
            |&index: &usize| self.state.is_visible(index) || self.is_stale_description(index);
        let carried: Vec<usize> = carried.into_iter().filter(|index| !is_skipped(index)).collect();
        self.extend_view(&carried);
        Ok(())
    }

    /// Makes a batch current again. The tools do not change, so stale descriptions
    /// in its view that are not pinned are replaced. No batch is opened.
    pub(super) fn return_to_batch(&mut self, target_batch: usize) -> Result<(), Refusal> {
        self.state.return_to_batch(target_batch)?;
        if let Some(view) = self.view_without_stale_descriptions() {
            self.state.current_mut().view = view;
        }
        Ok(())
    }

    /// The exact state at a version: its view, its live path, its marks and its
    /// tools.
    pub(super) fn rollback_to_version(&mut self, target_version: u64) -> Result<(), Refusal> {
        self.state = find_version(self.history, target_version)?.state.clone();
        Ok(())
    }

    pub(super) fn mark(&mut self, indices: &[usize], mark: &str) -> Result<(), Refusal> {
        self.require_logged(indices)?;
        self.state.marks.entry(mark.to_owned()).or_default().extend(indices);
        Ok(())
    }

    pub(super) fn unmark(&mut self, indices: &[usize], mark: &str) -> Result<(), Refusal> {
        self.require_logged(indices)?;
        if let Some(marked) = self.state.marks.get_mut(mark) {
            marked.retain(|index| !indices.contains(index));
            if marked.is_empty() {
                self.state.marks.remove(mark);
            }
        }
        Ok(())
    }
}

/// Reads that several operations share.
impl Draft<'_> {
    pub(super) fn is_system(&self, index: usize) -> bool {
        self.log[index].message.role == Role::System
    }

    fn base_list(&self, scope: Scope) -> Vec<usize> {
        match scope {
            Scope::Visible => self.state.view().to_vec(),
            Scope::All => (0..self.log.len()).collect(),
        }
    }

    /// The selected entries and the visible pinned ones, in the order of the base
    /// list.
    pub(super) fn with_visible_pins(&self, base: &[usize], chosen: &BTreeSet<usize>) -> Vec<usize> {
        let stays = |index: &usize| {
            chosen.contains(index)
                || (self.state.is_visible(*index) && self.state.is_pinned(*index))
        };
        base.iter().copied().filter(stays).collect()
    }

    /// The view without `indices`, with `added` at the position of `replaced`.
    fn view_with_one_replaced(
        &self,
        indices: &[usize],
        replaced: usize,
        added: &[usize],
    ) -> Vec<usize> {
        let mut view = Vec::new();
        for &index in self.state.view() {
            if index == replaced {
                view.extend(added);
            } else if !indices.contains(&index) {
                view.push(index);
            }
        }
        view
    }

    fn require_logged(&self, indices: &[usize]) -> Result<(), Refusal> {
        match indices.iter().find(|&&index| index >= self.log.len()) {
            Some(index) => {
                let message = format!("index {index} is past the log's end, {}", self.log.len());
                Err(Refusal::new("index_out_of_range", message))
            }
            None => Ok(()),
        }
    }

    /// A visible pinned entry in the list is an error; a hidden one is allowed.
    fn require_unpinned(&self, indices: &[usize]) -> Result<(), Refusal> {
        let is_protected =
            |index: &&usize| self.state.is_visible(**index) && self.state.is_pinned(**index);
        match indices.iter().find(is_protected) {
            Some(index) => Err(Refusal::new("pinned", format!("entry {index} is pinned"))),
            None => Ok(()),
        }
    }
}

fn position_of(view: &[usize], index: usize) -> usize {
    view.iter().position(|&other| other == index).expect("the entry was found in this view")
}
