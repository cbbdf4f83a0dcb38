//! Lineages: which conversations a conversation was forked from.
//!
//! A store keeps only the direct ancestor of a fork, so a fork takes the same space however deep it is. Its
//! other ancestors are the ancestors of the direct one.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::{ConversationId, Error};

/// A conversation whose first versions a fork shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Ancestor {
    /// The conversation that holds the shared rows.
    #[serde(with = "id_text")]
    pub id: ConversationId,
    /// It holds the versions below this one, except those of an older ancestor.
    pub versions: u32,
    /// It holds the log entries below this one, except those of an older ancestor.
    pub entries: u32,
}

mod id_text {
    //! Ids as text, which keeps a lineage readable.

    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use super::ConversationId;

    pub(super) fn serialize<S: Serializer>(id: &ConversationId, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(id)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<ConversationId, D::Error> {
        let text = String::deserialize(d)?;
        text.parse().map(ConversationId).map_err(D::Error::custom)
    }
}

/// The conversations that a conversation was forked from, the oldest first. A clone costs O(1), and
/// the lineages of forks of forks that were read together share memory.
#[derive(Clone, Default)]
pub struct Lineage {
    /// The ancestors of the deepest fork that shares this memory. The first `len` belong to this lineage.
    chain: Arc<Vec<Ancestor>>,
    len: usize,
}

impl Lineage {
    /// The lineage of the first `len` ancestors. O(1).
    pub fn up_to(&self, len: usize) -> Lineage {
        Lineage { chain: self.chain.clone(), len: len.min(self.len) }
    }
}

impl Deref for Lineage {
    type Target = [Ancestor];

    fn deref(&self) -> &[Ancestor] {
        &self.chain[..self.len]
    }
}

impl From<Vec<Ancestor>> for Lineage {
    fn from(ancestors: Vec<Ancestor>) -> Lineage {
        Lineage { len: ancestors.len(), chain: Arc::new(ancestors) }
    }
}

impl fmt::Debug for Lineage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl PartialEq for Lineage {
    fn eq(&self, other: &Lineage) -> bool {
        **self == **other
    }
}

impl Eq for Lineage {}

/// Lineages of conversations, assembled from their direct ancestors.
#[derive(Debug, Default)]
pub(crate) struct Lineages(HashMap<ConversationId, Lineage>);

impl Lineages {
    /// The lineage of a conversation with this direct ancestor. `parent_of` returns the direct ancestor of
    /// an ancestor; it is called once for each.
    pub(crate) fn of<E: From<Error>>(
        &mut self,
        id: ConversationId,
        parent: Option<Ancestor>,
        mut parent_of: impl FnMut(ConversationId) -> Result<Option<Ancestor>, E>,
    ) -> Result<Lineage, E> {
        let (mut at, mut next) = (id, parent);
        let mut passed = HashSet::new();
        // The conversations from this one up, each with its direct ancestor.
        let mut forks: Vec<(ConversationId, Ancestor)> = Vec::new();
        let start = loop {
            if let Some(known) = self.0.get(&at) {
                break known.clone();
            }
            let Some(ancestor) = next else { break Lineage::default() };
            if !passed.insert(at) {
                let reason = "it is its own ancestor".to_owned();
                return Err(Error::Damaged { conversation: id, reason }.into());
            }
            forks.push((at, ancestor));
            at = ancestor.id;
            next = if self.0.contains_key(&at) { None } else { parent_of(at)? };
        };
        if forks.is_empty() {
            return Ok(start);
        }
        let mut chain = start.to_vec();
        chain.extend(forks.iter().rev().map(|(_, ancestor)| *ancestor));
        let chain = Arc::new(chain);
        for (below, (fork, _)) in forks.into_iter().enumerate() {
            self.0.insert(fork, Lineage { chain: chain.clone(), len: chain.len() - below });
        }
        Ok(Lineage { len: chain.len(), chain })
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn id(number: u128) -> ConversationId {
        ConversationId(Uuid::from_u128(number))
    }

    fn ancestor(number: u128) -> Option<Ancestor> {
        number.checked_sub(1).map(|parent| Ancestor {
            id: id(parent),
            versions: number as u32,
            entries: number as u32,
        })
    }

    #[test]
    fn a_chain_of_forks_is_followed_once_and_shared() {
        let mut asked = 0;
        let mut lineages = Lineages::default();
        let mut of = |number: u128| {
            let parent_of = |ConversationId(id): ConversationId| {
                asked += 1;
                Ok::<_, Error>(ancestor(id.as_u128()))
            };
            lineages.of(id(number), ancestor(number), parent_of).unwrap()
        };
        let deep = of(1_000);
        assert!(deep.iter().map(|from| from.id).eq((0..1_000).map(id)));
        for number in [999, 500, 1, 0] {
            let above = of(number);
            assert_eq!(above.len(), number as usize);
            assert!(number == 0 || Arc::ptr_eq(&above.chain, &deep.chain));
        }
        assert_eq!(asked, 1_000);
    }

    #[test]
    fn a_conversation_that_is_its_own_ancestor_is_damaged() {
        let circle = |ConversationId(id): ConversationId| {
            Ok::<_, Error>(ancestor((id.as_u128() + 2) % 3 + 1))
        };
        let refused = Lineages::default().of(id(2), ancestor(2), circle).unwrap_err();
        assert!(matches!(refused, Error::Damaged { .. }));
    }
}
