//! `{"conversation": NAME, "log": true}`; `history` is another name for `log`.

mod ancestry;

use recto::{Conversation, LogIndex, OperationKind, Version, VersionInfo};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{At, Error, Perform, Service, TrueOr, schema};

/// Lists versions, newest first.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Log {
    /// The conversation: its whole name, or its id.
    pub conversation: String,
    /// `true`, or options.
    #[serde(alias = "history")]
    pub log: TrueOr<LogOptions>,
}

/// Which versions are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LogOptions {
    /// The largest number of versions. Default: 50.
    pub limit: Option<u64>,
    /// Only versions below this one. Default: all.
    pub before: Option<At>,
}

/// Versions of a conversation.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Versions {
    /// The conversation's name.
    pub conversation: String,
    /// The versions, newest first.
    pub versions: Vec<ListedVersion>,
    /// The number of older versions, which are not listed.
    pub older: u32,
}

/// A version, its parent, the version that it undid or redid, and the time of the newest message that it
/// added.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListedVersion {
    /// The version.
    #[serde(flatten)]
    #[schemars(with = "schema::VersionInfo")]
    pub info: VersionInfo,
    /// The version whose state this version continues. Missing for version 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u32>")]
    pub parent: Option<Version>,
    /// For UNDO and REDO: the version whose request was undone or redone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u32>")]
    pub target: Option<Version>,
    /// The time of the newest message that it added. Missing if it added none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub said_at: Option<i64>,
}

impl Perform for Log {
    type Response = Versions;

    async fn perform(self, service: &Service) -> Result<Versions, Error> {
        let TrueOr(LogOptions { limit, before }) = self.log;
        let conversation = service.conversation(&self.conversation).await?;
        let handle = &conversation.handle;
        let end = handle.version().await?.0.saturating_add(1);
        let end = before.map_or(end, |before| before.0.0.min(end));
        let limit = u32::try_from(limit.unwrap_or(50)).unwrap_or(u32::MAX);
        let start = end.saturating_sub(limit);
        let versions = handle.versions(Version(start)..Version(end)).await?;
        let parents = ancestry::parents(handle, &versions).await?;
        let times = newest_message_times(handle, &versions).await?;
        let mut listed = Vec::with_capacity(versions.len());
        for ((info, parent), said_at) in versions.into_iter().zip(parents).zip(times) {
            let target = match info.operation {
                OperationKind::Undo | OperationKind::Redo => {
                    handle.undo_target(info.version).await?
                }
                _ => None,
            };
            listed.push(ListedVersion { info, parent, target, said_at });
        }
        let versions = listed.into_iter().rev().collect();
        Ok(Versions { conversation: conversation.name, versions, older: start })
    }
}

/// The time of the newest message that each version added. It differs from the time of the version if the
/// message contains a timestamp, as imported messages do.
async fn newest_message_times(
    conversation: &Conversation,
    versions: &[VersionInfo],
) -> Result<Vec<Option<i64>>, Error> {
    let before = match versions.first().and_then(|first| first.version.0.checked_sub(1)) {
        Some(before) => conversation.version_info(Version(before)).await?.log,
        None => 0,
    };
    let lengths = std::iter::once(before).chain(versions.iter().map(|info| info.log));
    let newest: Vec<Option<LogIndex>> = lengths
        .zip(versions)
        .map(|(before, info)| (info.log > before).then(|| LogIndex(info.log as u32 - 1)))
        .collect();
    let added: Vec<LogIndex> = newest.iter().copied().flatten().collect();
    let mut times = conversation.times(&added).await?.into_iter();
    Ok(newest.into_iter().map(|added| added.and_then(|_| times.next())).collect())
}
