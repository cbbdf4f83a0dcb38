//! `{"import": NAME, "format": FORMAT, "select": PATH, "data": …, "settings": {…}}`

use recto::{ImportName, ImportOptions, Policy, Version};
use recto_format::find_messages;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use serde_json::value::RawValue;

use super::ArrayState;
use super::state::state_after;
use crate::TranscriptFormat;
use crate::error::InField as _;
use crate::settings::NewSettings;
use crate::{
    Error, ImportedConversation, Include, Perform, Service, ShownRemark, imported, schema,
};

/// Imports a transcript: the conversations in it, with their versions and forks. All of it is
/// imported, or nothing.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Import<'a> {
    /// The name of the conversation. If the transcript has several, a number is appended to the name of each
    /// further one. The name of a fork is `NAME/FORK`.
    pub import: String,
    /// The format of the transcript. Default: detected from the data.
    pub format: Option<TranscriptFormat>,
    /// The path of the messages in a larger document, such as `[*].traj` or `request.messages`. Default: if
    /// `format` is missing and the format of the data is not recognised, the path of the lists of messages
    /// that are nearest to the top, and of several such paths the one with the most messages.
    #[serde(default)]
    pub select: Option<String>,
    /// The transcript as JSON, or a string that contains it.
    #[serde(borrow)]
    #[schemars(with = "schema::Anything")]
    pub data: &'a RawValue,
    /// The settings of all imported conversations, without `tools`.
    #[serde(borrow, default, deserialize_with = "crate::values::optional_object")]
    pub settings: Option<NewSettings<'a>>,
    /// Additional fields of the response: `["state"]`. Default: none.
    #[serde(rename = "return", default, deserialize_with = "crate::values::or_default")]
    #[schemars(with = "Option<Vec<Include>>")]
    pub include: Vec<Include>,
}

/// A transcript that was imported.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Imported {
    /// The name of the first conversation.
    pub conversation: String,
    /// The id of the first conversation.
    pub id: String,
    /// The newest version of the first conversation.
    pub version: u32,
    /// The format of the transcript.
    pub format: &'static str,
    /// The conversations that were imported.
    pub conversations: Vec<ImportedConversation>,
    /// Content that could not be represented, and where the messages were found in a larger document.
    pub remarks: Vec<ShownRemark>,
    /// The state of the first conversation, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<ArrayState>,
}

impl Perform for Import<'_> {
    type Response = Imported;

    async fn perform(self, service: &Service) -> Result<Imported, Error> {
        let (settings, policy) =
            self.settings.unwrap_or_default().checked().in_object("settings")?;
        if !settings.tools.is_empty() {
            let reason = "a conversation is imported without tools; set them afterwards";
            return Err(Error::field("settings", reason));
        }
        let data: String = match self.data.get().starts_with('"') {
            true => recto_lists::read::read(self.data.get())?,
            false => self.data.get().to_owned(),
        };
        let (recto, naming) = (service.recto(), ImportName::Exactly(self.import));
        let format = self.format.map(|format| format.0);
        let options = ImportOptions { format, ..ImportOptions::new(naming, settings) };
        let found = find_messages(&data, format, self.select.as_deref())?;
        let found_at = found.as_ref().map(|found| ShownRemark::from(&found.warning()));
        let data = found.map_or(data, |found| found.transcript);
        let transcript = recto.import(data, options).await?;
        let conversations = imported(&transcript);
        if policy != Policy::default() {
            for made in &transcript.conversations {
                recto.conversation_by_id(made.id).await?.set_policy(&policy).await?;
            }
        }
        let first = &conversations[0];
        let conversation = service.conversation(&first.conversation).await?;
        let state = state_after(&self.include, &conversation, Some(Version(first.version))).await?;
        Ok(Imported {
            conversation: first.conversation.clone(),
            id: first.id.clone().unwrap_or_default(),
            version: first.version,
            format: transcript.format.name(),
            remarks: found_at
                .into_iter()
                .chain(transcript.warnings.iter().map(ShownRemark::from))
                .collect(),
            conversations,
            state,
        })
    }
}
