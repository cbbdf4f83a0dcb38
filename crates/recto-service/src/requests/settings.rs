//! `{"conversation": NAME, "settings": true}` and `{"conversation": NAME, "settings": {…}}`

use recto::{Policy, SavedSettings, Tool, WriteOptions};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ArrayState;
use super::apply::{check_dry_run, check_version};
use super::state::state_after;
use crate::error::InField as _;
use crate::settings::ChangedSettings;
use crate::{At, Error, Include, Perform, Service, TrueOr, schema};

/// Reads the settings of a conversation, or changes its tools, token limit and compression.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Settings<'a> {
    /// The conversation: its whole name, or its id.
    pub conversation: String,
    /// `true` to read them, or the settings to change.
    #[serde(borrow)]
    pub settings: TrueOr<ChangedSettings<'a>>,
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

/// The settings of a conversation.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ConversationSettings {
    /// The conversation's name.
    pub conversation: String,
    /// Whether this is a dry run, which changes nothing. The response then has the settings as they would be
    /// after the change.
    pub dry_run: bool,
    /// The version that set the tools. Missing if the tools are unchanged, and in a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// The token counter.
    pub counter: String,
    /// The tokens of an image, audio or file part.
    pub media_tokens: u64,
    /// The first line of the tool description.
    pub heading: String,
    /// The tools that the model may call.
    #[schemars(with = "Vec<schema::Tool>")]
    pub tools: Vec<Tool>,
    /// The token limit and the compression.
    #[serde(flatten)]
    #[schemars(with = "schema::Policy")]
    pub policy: Policy,
    /// The state after the change, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<ArrayState>,
}

impl Perform for Settings<'_> {
    type Response = ConversationSettings;

    async fn perform(self, service: &Service) -> Result<ConversationSettings, Error> {
        let TrueOr(mut changed) = self.settings;
        let dry_run = self.dry_run.unwrap_or(false);
        check_dry_run(dry_run, None, &self.include)?;
        let tools = changed.tools().in_object("settings")?;
        let conversation = service.conversation(&self.conversation).await?;
        let handle = &conversation.handle;
        let before = conversation.handle.policy().await?;
        let policy = changed.policy(&before).in_object("settings")?;
        let expected_version = self.expected_version.map(|at| at.0);
        let write = WriteOptions { expected_version, ..WriteOptions::default() };
        let mut version = None;
        // The tools are set before the policy: the engine can refuse them or the expected version, but the
        // policy was checked above.
        match &tools {
            Some(tools) if dry_run => {
                handle.preview_tools_with(tools.clone(), write).await?;
            }
            Some(tools) => {
                let outcome = handle.set_tools_with(tools.clone(), write).await?;
                version = outcome.changed.then_some(outcome.version);
            }
            None => check_version(handle, expected_version).await?,
        }
        if !dry_run && policy != before {
            conversation.handle.set_policy(&policy).await?;
            service.forget(&conversation.name);
        }
        let SavedSettings { counter, media_tokens, heading, .. } = handle.settings().await?;
        let tools = match tools.filter(|_| dry_run) {
            Some(tools) => tools,
            None => handle.tools().await?,
        };
        let state = state_after(&self.include, &conversation, version).await?;
        Ok(ConversationSettings {
            conversation: conversation.name,
            dry_run,
            version: version.map(|version| version.0),
            counter,
            media_tokens,
            heading,
            tools,
            policy,
            state,
        })
    }
}
