//! `{"conversation": NAME, "setTools": […]}`

use recto::{Tool, WriteOptions};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::Applied;
use super::apply::{check_dry_run, read_note};
use super::state::state_after;
use crate::error::wrong;
use crate::read::check_tool_names;
use crate::{At, Error, Include, Perform, Service, schema};

/// Sets the tools that the model may call.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SetTools<'a> {
    /// The conversation: its whole name, or its id.
    pub conversation: String,
    /// The tools; an empty list for none.
    #[serde(borrow)]
    #[schemars(with = "Vec<schema::Tool>")]
    pub set_tools: &'a RawValue,
    /// The version that the caller has seen. The request fails with `version_conflict` if it is not
    /// the newest.
    pub expected_version: Option<At>,
    /// A request that is repeated with the same key is not applied again, and returns the first
    /// result.
    pub idempotency_key: Option<String>,
    /// JSON that is stored with the version, at most 16 KiB. Default: none.
    #[serde(borrow)]
    #[schemars(with = "Option<schema::Anything>")]
    pub note: Option<&'a RawValue>,
    /// Whether to return the result of the change without making it. Default: `false`.
    pub dry_run: Option<bool>,
    /// Additional fields of the response: `["state"]`. Default: none.
    #[serde(rename = "return", default, deserialize_with = "crate::values::or_default")]
    #[schemars(with = "Option<Vec<Include>>")]
    pub include: Vec<Include>,
}

impl Perform for SetTools<'_> {
    type Response = Applied;

    async fn perform(self, service: &Service) -> Result<Applied, Error> {
        check_tool_names(self.set_tools, "setTools")?;
        let tools = Tool::list_from_json(self.set_tools.get());
        let tools = tools.map_err(|error| wrong("setTools", error.to_string()))?;
        let dry_run = self.dry_run.unwrap_or(false);
        check_dry_run(dry_run, self.idempotency_key.as_deref(), &self.include)?;
        let conversation = service.conversation(&self.conversation).await?;
        let write = WriteOptions {
            expected_version: self.expected_version.map(|at| at.0),
            idempotency_key: self.idempotency_key,
            note: read_note(self.note)?,
        };
        if dry_run {
            let preview = conversation.handle.preview_tools_with(tools, write).await?;
            return Ok(Applied { outcome: preview.outcome, dry_run, state: None });
        }
        let outcome = conversation.handle.set_tools_with(tools, write).await?;
        let state = state_after(&self.include, &conversation, Some(outcome.version)).await?;
        Ok(Applied { outcome, dry_run, state })
    }
}
