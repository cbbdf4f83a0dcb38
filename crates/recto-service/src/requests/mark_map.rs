//! `{"conversation": NAME, "markMap": true}` and `{"conversation": NAME, "markMap": {"scope": "all"}}`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::InField as _;
use crate::{At, Error, Perform, Scope, Service, TrueOr, schema};

/// The mark map, as section 7 of the contract defines it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MarkMap {
    /// The conversation: its whole name, or its id.
    pub conversation: String,
    /// `true`, or options.
    pub mark_map: TrueOr<MarkMapOptions>,
    /// The version to read. Default: the newest.
    pub at: Option<At>,
}

/// Options of `markMap`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MarkMapOptions {
    /// The entries that `typeIndices` lists. Default: `visible`.
    pub scope: Option<Scope>,
}

/// The mark map.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct ExportedMarkMap(#[schemars(with = "schema::MarkMap")] pub recto::MarkMap);

impl Perform for MarkMap {
    type Response = ExportedMarkMap;

    async fn perform(self, service: &Service) -> Result<ExportedMarkMap, Error> {
        let scope = self.mark_map.0.scope.unwrap_or_default().into();
        let conversation = service.conversation(&self.conversation).await?;
        Ok(ExportedMarkMap(match self.at {
            Some(At(version)) => {
                conversation.handle.mark_map_at(version, scope).await.in_field("at")?
            }
            None => conversation.handle.mark_map(scope).await?,
        }))
    }
}
