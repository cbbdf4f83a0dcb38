//! `{"conversation": NAME, "diff": {"from": VERSION, "to": VERSION}}`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::InField as _;
use crate::{At, Error, Perform, Service, schema};

/// Compares the views of two versions.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Diff {
    /// The conversation: its whole name, or its id.
    pub conversation: String,
    /// The two versions.
    #[serde(deserialize_with = "crate::values::object")]
    pub diff: DiffOptions,
}

/// Two versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DiffOptions {
    /// The first version.
    pub from: At,
    /// The second version.
    pub to: At,
}

/// The difference between the views of two versions.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Difference(#[schemars(with = "schema::Diff")] pub recto::Diff);

impl Perform for Diff {
    type Response = Difference;

    async fn perform(self, service: &Service) -> Result<Difference, Error> {
        let DiffOptions { from: At(from), to: At(to) } = self.diff;
        let conversation = service.conversation(&self.conversation).await?;
        let diff = conversation.handle.diff(from, to).await;
        let field =
            match &diff {
                Err(recto::Error::Engine(recto::EngineError::VersionNotFound {
                    version, ..
                })) if *version == from => "diff.from",
                _ => "diff.to",
            };
        Ok(Difference(diff.in_field(field)?))
    }
}
