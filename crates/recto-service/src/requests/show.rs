//! `{"conversation": NAME, "show": true}` and `{"conversation": NAME, "show": [INDEX, …]}`

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt;

use recto::{LogIndex, Position, Query, QueryAt, Version};
use schemars::JsonSchema;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use serde::de;

use crate::entry::{check_indices, indices_of};
use crate::error::InField as _;
use crate::{At, Error, NamedConversation, Perform, Service, ShownEntry, entries_of, with_marks};

/// Reads the view, or log entries by their indices, visible or hidden.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Show {
    /// The conversation: its whole name, or its id.
    pub conversation: String,
    /// `true` for the view, or a list of log indices.
    pub show: EntrySelection,
    /// The version to read. Default: the newest. Positions and marks are those of that version.
    pub at: Option<At>,
}

/// The entries to show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum EntrySelection {
    /// `true`: the view.
    #[default]
    View,
    /// A list: these log entries, in this order.
    Entries(Vec<u64>),
}

impl<'de> Deserialize<'de> for EntrySelection {
    fn deserialize<D: serde::Deserializer<'de>>(
        deserializer: D,
    ) -> Result<EntrySelection, D::Error> {
        struct TrueOrList;
        impl<'de> de::Visitor<'de> for TrueOrList {
            type Value = EntrySelection;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true for the view, or a list of log indices")
            }
            fn visit_bool<E: de::Error>(self, given: bool) -> Result<EntrySelection, E> {
                match given {
                    true => Ok(EntrySelection::View),
                    false => Err(E::invalid_value(de::Unexpected::Bool(false), &self)),
                }
            }
            fn visit_seq<A: de::SeqAccess<'de>>(self, list: A) -> Result<EntrySelection, A::Error> {
                Vec::deserialize(de::value::SeqAccessDeserializer::new(list))
                    .map(EntrySelection::Entries)
            }
        }
        deserializer.deserialize_any(TrueOrList)
    }
}

impl JsonSchema for EntrySelection {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "EntrySelection".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let indices = generator.subschema_for::<Vec<u64>>();
        json_schema!({ "anyOf": [{ "const": true }, indices] })
    }
}

/// Entries of a conversation.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Shown {
    /// The conversation's name.
    pub conversation: String,
    /// The version that was read.
    pub version: u32,
    /// The sum of the tokens of the entries.
    pub tokens: u64,
    /// The entries: those of the view in its order, others in the order in which the request names them.
    pub messages: Vec<ShownEntry>,
}

impl Perform for Show {
    type Response = Shown;

    async fn perform(self, service: &Service) -> Result<Shown, Error> {
        let conversation = service.conversation(&self.conversation).await?;
        let handle = &conversation.handle;
        let version = match self.at {
            Some(at) => at.0,
            None => handle.version().await?,
        };
        // Another writer may add a version at any time, so `QueryAt::Now` could read a later one.
        let messages = match self.show {
            EntrySelection::View => {
                let query = Query { at: QueryAt::Version(version), ..Query::default() };
                entries_of(handle, &query).await.in_field("at")?
            }
            EntrySelection::Entries(numbers) => {
                entries_at(&conversation, &indices_of(&numbers), version).await?
            }
        };
        Ok(Shown {
            conversation: conversation.name,
            version: version.0,
            tokens: messages.iter().map(|entry| entry.tokens).sum(),
            messages,
        })
    }
}

/// Log entries with the positions and marks that they had at a version.
async fn entries_at(
    conversation: &NamedConversation,
    indices: &[LogIndex],
    version: Version,
) -> Result<Vec<ShownEntry>, Error> {
    let handle = &conversation.handle;
    let info = handle.version_info(version).await.in_field("at")?;
    check_indices(indices, info.log).in_field("show")?;
    let view = handle.mark_map_at(version, recto::Scope::Visible).await?.original_indices;
    let wanted: HashSet<LogIndex> = indices.iter().copied().collect();
    let shown = view.into_iter().enumerate().filter(|(_, index)| wanted.contains(index));
    let positions: HashMap<LogIndex, Position> =
        shown.map(|(at, index)| (index, Position(at))).collect();
    let mut entries = handle.entries(indices).await?;
    for entry in &mut entries {
        entry.position = positions.get(&entry.index).copied();
    }
    Ok(with_marks(entries, &handle.marks_at(version).await?))
}
