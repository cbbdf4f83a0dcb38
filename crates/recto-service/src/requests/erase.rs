//! `{"conversation": NAME, "erase": [INDEX, …]}`

use recto::{ErasedMessage, LogIndex};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ArrayState;
use super::apply::{check_dry_run, check_version};
use super::state::state_after;
use super::verify::hexadecimal;
use crate::entry::{check_indices, entries_at, indices_of};
use crate::error::InField as _;
use crate::{At, Error, Include, Perform, Service, ShownEntry};

/// Overwrites messages permanently, in all versions and forks.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Erase {
    /// The conversation: its whole name, or its id.
    pub conversation: String,
    /// The log indices of the messages.
    pub erase: Vec<u64>,
    /// The version that the caller has seen. The request fails with `version_conflict` if it is not
    /// the newest.
    pub expected_version: Option<At>,
    /// Whether to return the response of the change without making it. Default: `false`.
    pub dry_run: Option<bool>,
    /// Additional fields of the response: `["state"]`. Default: none.
    #[serde(rename = "return", default, deserialize_with = "crate::values::or_default")]
    #[schemars(with = "Option<Vec<Include>>")]
    pub include: Vec<Include>,
}

/// The result of an erasure, or of its dry run.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Erased {
    /// The conversation's name.
    pub conversation: String,
    /// `true` if nothing was erased.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// The messages that were erased.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub erased: Option<Vec<ErasedEntry>>,
    /// The entries that would be erased.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entries: Option<Vec<ShownEntry>>,
    /// The state after the change, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<ArrayState>,
}

/// A message that was erased.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ErasedEntry {
    /// Its index in the log.
    #[schemars(with = "u32")]
    pub index: LogIndex,
    /// The number of bytes that were overwritten.
    pub bytes: usize,
    /// Whether it had been erased or pruned before.
    pub was_gone: bool,
    /// The SHA-256 of the message.
    pub hash: String,
}

impl From<ErasedMessage> for ErasedEntry {
    fn from(receipt: ErasedMessage) -> ErasedEntry {
        let ErasedMessage { index, hash, bytes, was_gone, .. } = receipt;
        ErasedEntry { index, bytes, was_gone, hash: hexadecimal(&hash) }
    }
}

impl Perform for Erase {
    type Response = Erased;

    async fn perform(self, service: &Service) -> Result<Erased, Error> {
        let (indices, dry_run) = (indices_of(&self.erase), self.dry_run.unwrap_or(false));
        check_dry_run(dry_run, None, &self.include)?;
        if indices.is_empty() {
            return Err(Error::field("erase", "erase is empty; give at least one log index"));
        }
        let conversation = service.conversation(&self.conversation).await?;
        let handle = &conversation.handle;
        // All of them must exist before the first is erased.
        check_indices(&indices, handle.stats().await?.total_messages).in_field("erase")?;
        let expected = self.expected_version.map(|at| at.0);
        if dry_run {
            check_version(handle, expected).await?;
            let entries = Some(entries_at(handle, &indices).await?);
            let conversation = conversation.name;
            return Ok(Erased { conversation, dry_run, erased: None, entries, state: None });
        }
        let mut erased = Vec::new();
        for index in indices {
            erased.push(handle.erase_if(index, expected).await?.into());
        }
        let state = state_after(&self.include, &conversation, None).await?;
        let (conversation, erased) = (conversation.name, Some(erased));
        Ok(Erased { conversation, dry_run, erased, entries: None, state })
    }
}
