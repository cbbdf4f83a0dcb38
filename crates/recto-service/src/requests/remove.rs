//! `{"conversation": NAME, "remove": true}`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{At, Error, Perform, Service, True};

/// Deletes a conversation permanently. Messages that a version of a fork shows stay readable in the forks.
/// Placeholders replace the others in the logs of the forks.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Remove {
    /// The conversation: its whole name, or its id.
    pub conversation: String,
    /// `true`.
    pub remove: True,
    /// The version that the caller has seen. The request fails with `version_conflict` if it is not
    /// the newest.
    pub expected_version: Option<At>,
    /// Whether to return the response of the change without making it. Default: `false`.
    pub dry_run: Option<bool>,
}

/// A conversation that was removed, or would be.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
#[non_exhaustive]
pub enum Removed {
    /// It was removed.
    Done {
        /// Its name.
        removed: String,
    },
    /// It would be removed.
    #[serde(rename_all = "camelCase")]
    DryRun {
        /// Its name.
        conversation: String,
        /// `true`.
        dry_run: bool,
        /// Its newest version.
        version: u32,
        /// The length of its log.
        messages: u32,
        /// The names of its forks. Messages that a version of a fork shows stay readable.
        forks: Vec<String>,
    },
}

impl Perform for Remove {
    type Response = Removed;

    async fn perform(self, service: &Service) -> Result<Removed, Error> {
        let recto = service.recto();
        let name = service.conversation(&self.conversation).await?.name;
        let expected = self.expected_version.map(|at| at.0);
        if !self.dry_run.unwrap_or(false) {
            recto.remove_if(&name, expected).await?;
            service.forget(&name);
            return Ok(Removed::Done { removed: name });
        }
        let info = recto.info(&name).await?;
        if let Some(expected) = expected.filter(|expected| *expected != info.version) {
            let (expected, current) = (expected.0, info.version.0);
            return Err(recto::StoreError::VersionConflict { expected, current }.into());
        }
        let forks = recto.store().forks(info.id).await?;
        Ok(Removed::DryRun {
            conversation: name,
            dry_run: true,
            version: info.version.0,
            messages: info.messages,
            forks: forks.into_iter().map(|fork| fork.name).collect(),
        })
    }
}
