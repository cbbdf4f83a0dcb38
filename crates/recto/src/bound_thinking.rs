//! Finds thinking that an edit has made invalid. Some models bind their thinking to everything before it.

use recto_core::{LogIndex, Message, OperationKind, Role, Version, VersionInfo};
use recto_format::{MessageParts, Part, binds_thinking};

use crate::{Conversation, Entry, Error};

impl Conversation {
    /// Positions of messages whose thinking an edit has made invalid, for `RenderOptions::invalid_thinking`.
    /// Some models bind their thinking to everything before it. Such thinking is invalid if the earlier
    /// messages or the tools differ from those at the version that added the message. After an UNDO of the
    /// edit it is valid again. `entries` are the messages that are sent at `version`:
    /// [`messages_to_send`](Self::messages_to_send).
    ///
    /// A message without a recorded model, such as one of an imported request, counts as bound, and
    /// rendering decides by the model of the request. The first tools that are set after an imported message
    /// count as those of its request, because an import sets the tools last.
    pub async fn invalid_thinking(
        &self,
        version: Version,
        entries: &[Entry],
    ) -> Result<Vec<usize>, Error> {
        let is_bound = |(position, entry): (usize, &Entry)| {
            has_bound_thinking(&entry.message).then_some((position, entry.index))
        };
        let mut waiting: Vec<(usize, LogIndex)> =
            entries.iter().enumerate().filter_map(is_bound).collect();
        if waiting.is_empty() {
            return Ok(Vec::new());
        }
        let versions = self.versions(Version(0)..Version(version.0 + 1)).await?;
        let bound = waiting.clone();
        let mut edited = Vec::new();
        // From `version` backwards, until a version has none of these messages.
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
        let mut changed = Vec::new();
        for (position, index) in bound {
            let number = versions.partition_point(|version| version.log <= index.0 as usize);
            let Some(added) = versions.get(number) else { continue };
            let is_set = |later: &&VersionInfo| later.operation == OperationKind::SetTools;
            let first_set = versions[number + 1..].iter().find(is_set);
            let imported = first_set.filter(|_| is_imported(&entries[position].message));
            if first_set.is_some() && self.has_other_tools(added.version, imported, version).await?
                || edited.contains(&position)
                    && self.has_other_prefix(added.version, &entries[..position], index).await?
            {
                changed.push(position);
            }
        }
        Ok(changed)
    }

    /// True if `version` has other tools than the version `added`, or than `imported` if `added` has none.
    async fn has_other_tools(
        &self,
        added: Version,
        imported: Option<&VersionInfo>,
        version: Version,
    ) -> Result<bool, Error> {
        let mut before = self.tools_at(added).await?;
        if let Some(imported) = imported.filter(|_| before.is_empty()) {
            before = self.tools_at(imported.version).await?;
        }
        Ok(before != self.tools_at(version).await?)
    }

    /// True if the messages before an entry differ from those at the version that added it. A signed
    /// compaction block may replace the first of them: thinking in messages that directly follow it stays
    /// valid.
    async fn has_other_prefix(
        &self,
        added: Version,
        prefix: &[Entry],
        index: LogIndex,
    ) -> Result<bool, Error> {
        let entries = self.messages_to_send(added).await?;
        let before: Vec<LogIndex> = entries.iter().map(|entry| entry.index).collect();
        let end = before.iter().position(|it| *it == index).unwrap_or(before.len());
        let before = &before[..end];
        let now: Vec<LogIndex> = prefix.iter().map(|entry| entry.index).collect();
        // The system text is in front of the messages.
        let is_system = |entry: &&Entry| entry.message.role() == Role::System;
        let front = prefix.iter().take_while(is_system).count();
        let is_compacted = prefix.get(front).is_some_and(|first| is_compaction(&first.message))
            && before.starts_with(&now[..front])
            && before[front..].ends_with(&now[front + 1..]);
        Ok(before != now && !is_compacted)
    }
}

/// True for a message that consists of a signed compaction block, which Anthropic puts in place of the
/// messages that it summarises.
fn is_compaction(message: &Message) -> bool {
    let parts = MessageParts::of(message).parts;
    let [Part::Other { kind, json }] = &parts[..] else { return false };
    let is_signed = || {
        let block = serde_json::from_str::<serde_json::Value>(json);
        block.is_ok_and(|block| block["signature"].is_string())
    };
    kind.text() == "compaction" && is_signed()
}

/// True for a message of an imported transcript.
fn is_imported(message: &Message) -> bool {
    MessageParts::of(message).source.is_some_and(|source| source.format.is_some())
}

/// True for a message with thinking, if its model binds it to everything before it or is not known.
fn has_bound_thinking(message: &Message) -> bool {
    let parts = MessageParts::of(message);
    let model = parts.source.and_then(|source| source.model);
    model.is_none_or(|model| binds_thinking(&model.text()))
        && parts.parts.iter().any(|part| match part {
            Part::Thinking { .. } => true,
            Part::Other { kind, .. } => kind.text() == "redacted_thinking",
            _ => false,
        })
}
