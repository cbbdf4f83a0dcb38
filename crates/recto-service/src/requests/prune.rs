//! `{"conversation": NAME, "prune": {"keepVersions": COUNT}}`

use recto::{Keep, LogIndex};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ArrayState;
use super::apply::check_dry_run;
use super::state::state_after;
use crate::error::InField as _;
use crate::{At, Error, Include, Perform, Service};

/// Permanently overwrites the messages that no kept version shows. Entries keep their indices.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Prune {
    /// The conversation: its whole name, or its id.
    pub conversation: String,
    /// The versions to keep. At least one field is required. A version is kept if any field selects it.
    /// The newest version is always kept.
    #[serde(deserialize_with = "crate::values::object")]
    pub prune: PruneOptions,
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

/// The versions that a prune keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PruneOptions {
    /// The number of newest versions to keep.
    pub keep_versions: Option<u64>,
    /// A count of batches: all versions since the COUNT-th newest batch of the live path was opened are
    /// kept.
    pub keep_batches: Option<u64>,
    /// Keeps the versions since a time, in milliseconds since 1970.
    pub keep_since: Option<i64>,
    /// Keeps these versions.
    pub versions: Option<Vec<At>>,
}

/// The result of a prune, or of its dry run.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Pruned {
    /// The conversation's name.
    pub conversation: String,
    /// Whether this is a dry run, which overwrites nothing.
    pub dry_run: bool,
    /// The log entries whose messages were overwritten.
    #[schemars(with = "Vec<u32>")]
    pub entries: Vec<LogIndex>,
    /// The number of bytes of these messages.
    pub bytes: usize,
    /// The number of versions that were kept.
    pub kept_versions: u32,
    /// The state after the change, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<ArrayState>,
}

impl From<PruneOptions> for Keep {
    fn from(options: PruneOptions) -> Keep {
        let PruneOptions { keep_versions, keep_batches, keep_since, versions } = options;
        Keep {
            last_versions: keep_versions.map(|count| u32::try_from(count).unwrap_or(u32::MAX)),
            last_batches: keep_batches.map(|count| usize::try_from(count).unwrap_or(usize::MAX)),
            since: keep_since,
            versions: versions.unwrap_or_default().into_iter().map(|at| at.0).collect(),
        }
    }
}

impl Perform for Prune {
    type Response = Pruned;

    async fn perform(self, service: &Service) -> Result<Pruned, Error> {
        let (keep, dry_run) = (Keep::from(self.prune), self.dry_run.unwrap_or(false));
        check_dry_run(dry_run, None, &self.include)?;
        let conversation = service.conversation(&self.conversation).await?;
        let (handle, expected) = (&conversation.handle, self.expected_version.map(|at| at.0));
        let pruned = match dry_run {
            true => handle.preview_prune_if(&keep, expected).await,
            false => handle.prune_if(&keep, expected).await,
        };
        let field = match &pruned {
            Err(recto::Error::Engine(recto::EngineError::VersionNotFound { .. })) => {
                "prune.versions"
            }
            _ => "prune",
        };
        let pruned = pruned.in_field(field)?;
        let state = state_after(&self.include, &conversation, None).await?;
        let recto::PruneReport { entries, bytes, kept_versions, .. } = pruned;
        let conversation = conversation.name;
        Ok(Pruned { conversation, dry_run, entries, bytes, kept_versions, state })
    }
}
