//! `{"conversation": NAME, "append": […], "format": FORMAT}`

use recto::{Message, Step, WriteOptions};
use recto_format::{Collected, Format, ImportOptions, TranscriptWarning, import};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::apply::{Applied, check_dry_run, read_note};
use super::state::state_after;
use crate::error::InField as _;
use crate::{At, Error, Include, Perform, Service, ShownRemark, TranscriptFormat, schema};

/// Converts messages of another format to Recto's own, and adds them as APPEND does.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Append<'a> {
    /// The conversation: its whole name, or its id.
    pub conversation: String,
    /// The messages: a list, or one message, such as `choices[0].message` of a response of OpenAI.
    #[serde(borrow)]
    #[schemars(with = "schema::Anything")]
    pub append: &'a RawValue,
    /// The format of the messages.
    pub format: TranscriptFormat,
    /// The reason of the change. Default: a description of it.
    #[serde(rename = "description")]
    pub reason: Option<String>,
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

/// The result of adding messages of another format.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Appended {
    /// The result of the change.
    #[serde(flatten)]
    pub applied: Applied,
    /// Content that could not be represented.
    pub remarks: Vec<ShownRemark>,
}

impl Perform for Append<'_> {
    type Response = Appended;

    async fn perform(self, service: &Service) -> Result<Appended, Error> {
        let dry_run = self.dry_run.unwrap_or(false);
        check_dry_run(dry_run, self.idempotency_key.as_deref(), &self.include)?;
        let (messages, remarks) = converted(self.append.get(), self.format.0)?;
        let mut operation = Step::from(recto::Append { messages });
        operation.reason = self.reason;
        let conversation = service.conversation(&self.conversation).await?;
        let write = WriteOptions {
            expected_version: self.expected_version.map(|at| at.0),
            idempotency_key: self.idempotency_key,
            note: read_note(self.note)?,
        };
        let remarks = remarks.iter().map(ShownRemark::from).collect();
        if dry_run {
            let preview = conversation.handle.preview_with(operation, write).await;
            let outcome = preview.in_field("append")?.outcome;
            return Ok(Appended { applied: Applied { outcome, dry_run, state: None }, remarks });
        }
        let outcome = conversation.handle.apply_with(operation, write).await.in_field("append")?;
        let state = state_after(&self.include, &conversation, Some(outcome.version)).await?;
        Ok(Appended { applied: Applied { outcome, dry_run, state }, remarks })
    }
}

/// Converts messages of a format to Recto's own. The warnings list what cannot be represented.
pub fn converted(
    text: &str,
    format: Format,
) -> Result<(Vec<Message>, Vec<TranscriptWarning>), Error> {
    let mut read = Collected::default();
    let options = ImportOptions { ignores_white_space: true, ..ImportOptions::default() };
    import(text, Some(format), &options, &mut read)?;
    let mut messages = Vec::new();
    for step in read.steps {
        match step {
            recto_format::Step::Append(more) => messages.extend(more),
            recto_format::Step::Start(_) if messages.is_empty() => {}
            recto_format::Step::Envelope(_) => {}
            _ => {
                return Err(Error::NotOnlyMessages { format });
            }
        }
    }
    match messages.is_empty() {
        true => Err(recto::Error::NothingToImport { format }.into()),
        false => Ok((messages, read.warnings)),
    }
}
