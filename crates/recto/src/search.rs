//! Search for words in the messages of all conversations.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use recto_core::{LogIndex, Message, Query, Scope};
use recto_store::{ConversationId, ConversationRow, Hit, Words, words_of};

use crate::{Error, Recto};

/// A message that a search found.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FoundMessage {
    /// The name of the conversation that the message was added to. If that one was removed, the name
    /// of a fork that shares the message.
    pub conversation: String,
    /// The index of the message in the log.
    pub index: LogIndex,
    /// The message.
    pub message: Message,
}

impl Recto {
    /// Finds messages that contain all words of `text`, visible or hidden, in any conversation.
    ///
    /// A word is a run of letters and digits, compared without case and as a whole: "gate" does not
    /// find "gateway". A message that forks share is found once, in the conversation that it was added
    /// to. The messages of the newest conversation come first, and of each conversation the newest
    /// message.
    pub async fn search(&self, text: &str, limit: usize) -> Result<Vec<FoundMessage>, Error> {
        if !self.shared.is_searched {
            return Err(recto_store::Error::NoSearch.into());
        }
        let words = words_of(text);
        if words.is_empty() {
            return Ok(Vec::new());
        }
        let mut known = KnownRows::default();
        let mut requested = limit;
        loop {
            let hits = self.shared.store.search(&self.tenant, &words, requested).await?;
            let is_all = hits.len() < requested;
            known.read(self, &hits).await?;
            let shown = hits.iter().filter_map(|hit| Some((known.row_of(hit)?, hit.entry)));
            let shown: Vec<_> = shown.take(limit).collect();
            if shown.len() < limit && !is_all {
                // Some hits belong to removed conversations: request more.
                requested = requested.saturating_mul(4);
                continue;
            }
            let mut found = Vec::new();
            for (row, entry) in shown {
                let index = LogIndex(entry);
                let message = self.handle_of((*row).clone()).message(index).await?;
                // A message without the words was erased in between, or the index is damaged.
                if let Some(message) = message.filter(|message| has_all(message, &words)) {
                    found.push(FoundMessage { conversation: row.name.clone(), index, message });
                }
            }
            return Ok(found);
        }
    }

    /// [`search`](Self::search) in a store without an index: it reads every message, and returns the same
    /// hits in the same order.
    pub async fn search_without_index(
        &self,
        text: &str,
        limit: usize,
    ) -> Result<Vec<FoundMessage>, Error> {
        let words = words_of(text);
        let mut found = Vec::new();
        if words.is_empty() {
            return Ok(found);
        }
        let mut rows = self.shared.store.list(&self.tenant, None, usize::MAX).await?;
        rows.sort_by_key(|row| Reverse(row.id));
        let present: HashSet<ConversationId> = rows.iter().map(|row| row.id).collect();
        let mut removed = BTreeSet::new();
        for row in rows {
            let query = Query { scope: Scope::All, ..Query::default() };
            let mut entries = self.handle_of(row.clone()).query(&query).await?;
            entries.sort_by_key(|entry| Reverse(entry.index));
            for entry in entries {
                if found.len() == limit {
                    return Ok(found);
                }
                // The message of an ancestor is found there or, if that was removed, in one of its forks.
                let hit = Hit { conversation: owner(&row, entry.index.0), entry: entry.index.0 };
                let is_elsewhere =
                    hit.conversation != row.id && present.contains(&hit.conversation);
                if !is_elsewhere
                    && has_all(&entry.message, &words)
                    && (hit.conversation == row.id || removed.insert(hit))
                {
                    let (index, message) = (entry.index, entry.message);
                    let conversation = row.name.clone();
                    found.push(FoundMessage { conversation, index, message });
                }
            }
        }
        Ok(found)
    }
}

/// Rows of the conversations with hits, by the id of the conversation that the message was added to:
/// its own row or, if it was removed, those of its forks.
#[derive(Default)]
struct KnownRows(HashMap<ConversationId, Vec<Arc<ConversationRow>>>);

impl KnownRows {
    /// Reads the rows that are not known yet: those of named conversations together, so that ancestors that
    /// they share are read once.
    async fn read(&mut self, recto: &Recto, hits: &[Hit]) -> Result<(), Error> {
        let ids = hits.iter().map(|hit| hit.conversation);
        let mut unknown: BTreeSet<_> = ids.filter(|id| !self.0.contains_key(id)).collect();
        let store = &recto.shared.store;
        for row in store.get_all(&recto.tenant, unknown.iter().copied().collect()).await? {
            unknown.remove(&row.id);
            self.0.insert(row.id, vec![Arc::new(row)]);
        }
        for removed in unknown {
            let forks = match store.forks(removed).await {
                // The conversation and its forks were removed in between.
                Err(recto_store::Error::ConversationNotFound { .. }) => Vec::new(),
                forks => forks?,
            };
            self.0.insert(removed, forks.into_iter().map(Arc::new).collect());
        }
        Ok(())
    }

    /// The conversation that a message was added to, or a fork that shares it.
    fn row_of(&self, hit: &Hit) -> Option<Arc<ConversationRow>> {
        let mut rows = self.0.get(&hit.conversation)?.iter();
        rows.find(|row| owner(row, hit.entry) == hit.conversation).cloned()
    }
}

/// The conversation to which an entry in the log of `of` was added: `of` or one of its ancestors.
fn owner(of: &ConversationRow, entry: u32) -> ConversationId {
    // Each ancestor has the entries that follow those of the ancestor before it.
    let ancestor = of.lineage.partition_point(|ancestor| ancestor.entries <= entry);
    of.lineage.get(ancestor).map_or(of.id, |ancestor| ancestor.id)
}

fn has_all(message: &Message, words: &[String]) -> bool {
    let contained = Words::of(&message.text());
    words.iter().all(|word| contained.contains(word))
}
