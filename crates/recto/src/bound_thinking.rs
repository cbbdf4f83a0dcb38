//! Thinking that is bound to everything before it: which of it an edit made invalid.

use recto_core::{LogIndex, Message, OperationKind, Version};
use recto_format::{MessageParts, Part, binds_thinking};

use crate::{Conversation, Entry, Error};

impl Conversation {
    /// Positions of the messages with thinking of models that bind it to everything before it, if an
    /// edit changed the messages before them later. `entries` are those that are sent at `version`:
    /// [`messages_to_send`](Self::messages_to_send). For `RenderOptions::edited_before`.
    pub async fn edited_before(
        &self,
        version: Version,
        entries: &[Entry],
    ) -> Result<Vec<usize>, Error> {
        let is_bound = |(position, entry): (usize, &Entry)| {
            has_bound_thinking(&entry.message).then_some((position, entry.index))
        };
        let mut waiting: Vec<(usize, LogIndex)> =
            entries.iter().enumerate().filter_map(is_bound).collect();
        let mut edited = Vec::new();
        if waiting.is_empty() {
            return Ok(edited);
        }
        let versions = self.versions(0..version.0 + 1).await?;
        // From the newest version to the first that has none of these messages.
        for pair in versions.windows(2).rev() {
            let [before, later] = pair else { continue };
            waiting.retain(|(_, index)| (index.0 as usize) < before.log);
            if waiting.is_empty() {
                break;
            }
            if later.operation != OperationKind::Append {
                let diff = self.diff(before.version, later.version).await?;
                let hidden = diff.hidden.indices.first().copied();
                let is_new = |entry: &Entry| {
                    diff.shown.indices.contains(&entry.index)
                        || diff.moved.indices.contains(&entry.index)
                };
                let first_new = entries.iter().position(is_new);
                waiting.retain(|&(position, index)| {
                    let is_changed = hidden.is_some_and(|hidden| hidden < index)
                        || first_new.is_some_and(|first| first < position);
                    if is_changed {
                        edited.push(position);
                    }
                    !is_changed
                });
            }
        }
        edited.sort_unstable();
        Ok(edited)
    }
}

/// True for a message with thinking by a model that binds it to everything before it.
fn has_bound_thinking(message: &Message) -> bool {
    let parts = MessageParts::of(message);
    let model = parts.source.and_then(|source| source.model);
    model.is_some_and(|model| binds_thinking(&model.text()))
        && parts.parts.iter().any(|part| match part {
            Part::Thinking { .. } => true,
            Part::Other { kind, .. } => kind.text() == "redacted_thinking",
            _ => false,
        })
}
