//! `{"conversation": NAME, "op": {…}}` and `{"conversation": NAME, "ops": […]}`

use recto::{Limits, Note, Outcome, Request, WriteOptions};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use serde_json::value::RawValue;

use super::ArrayState;
use super::state::state_after;
use crate::read::check_names;
use crate::{At, Error, Include, Perform, Service, schema};

/// Applies one operation, or a list of operations as one request.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Apply<'a> {
    /// The conversation: its whole name, or its id.
    pub conversation: String,
    /// An operation, in any of the three forms. Either `op` or `ops` is given.
    #[serde(borrow)]
    #[schemars(with = "Option<schema::Operation>")]
    pub op: Option<&'a RawValue>,
    /// A list of operations, which is one request and one version.
    #[serde(borrow)]
    #[schemars(with = "Option<Vec<schema::Operation>>")]
    pub ops: Option<&'a RawValue>,
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

/// The result of a change, as section 7 of the contract defines it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Applied {
    /// The result.
    #[serde(flatten)]
    #[schemars(with = "schema::Outcome")]
    pub outcome: Outcome,
    /// `true` for a dry run, which stores nothing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// The state at the version of the result, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<ArrayState>,
}

impl Perform for Apply<'_> {
    type Response = Applied;

    async fn perform(self, service: &Service) -> Result<Applied, Error> {
        let request = self.request(service.recto().limits())?;
        let dry_run = self.dry_run.unwrap_or(false);
        check_dry_run(dry_run, self.idempotency_key.as_deref(), &self.include)?;
        let conversation = service.conversation(&self.conversation).await?;
        let write = WriteOptions {
            expected_version: self.expected_version.map(|at| at.0),
            idempotency_key: self.idempotency_key,
            note: read_note(self.note)?,
        };
        if dry_run {
            let preview = conversation.handle.preview_with(request, write).await?;
            return Ok(Applied { outcome: preview.outcome, dry_run, state: None });
        }
        let outcome = conversation.handle.apply_with(request, write).await?;
        let state = state_after(&self.include, &conversation, Some(outcome.version)).await?;
        Ok(Applied { outcome, dry_run, state })
    }
}

impl Apply<'_> {
    fn request(&self, limits: &Limits) -> Result<Request, Error> {
        let (name, value) = match (self.op, self.ops) {
            (Some(op), None) => ("op", op),
            (None, Some(ops)) => ("ops", ops),
            (Some(_), Some(_)) => {
                return Err(Error::field("ops", "op and ops exclude each other; give one of them"));
            }
            (None, None) => return Err(Error::field("op", "op is null; give an operation")),
        };
        // The engine names a field of a single operation `mark`, and of one in a list `ops[0].mark`.
        check_names(value, if name == "op" { "" } else { name })?;
        Ok(Request::from_json_within(&format!("{{\"{name}\":{value}}}"), limits)?)
    }
}

/// The note of a change.
pub(super) fn read_note(note: Option<&RawValue>) -> Result<Option<Note>, Error> {
    Ok(note.map(|note| Note::from_json(note.get())).transpose()?)
}

/// Refuses a version that is not the newest.
pub(crate) async fn check_version(
    conversation: &recto::Conversation,
    expected: Option<recto::Version>,
) -> Result<(), Error> {
    let Some(expected) = expected else { return Ok(()) };
    let current = conversation.version().await?;
    match expected == current {
        true => Ok(()),
        false => {
            let (expected, current) = (expected.0, current.0);
            Err(recto::StoreError::VersionConflict { expected, current }.into())
        }
    }
}

/// Refuses a dry run with an idempotency key or a requested state.
pub(super) fn check_dry_run(
    dry_run: bool,
    key: Option<&str>,
    include: &[Include],
) -> Result<(), Error> {
    match dry_run {
        true if key.is_some() => Err(Error::field(
            "idempotencyKey",
            "idempotencyKey and dryRun exclude each other: a dry run keeps nothing",
        )),
        true if !include.is_empty() => Err(Error::field(
            "return",
            "return and dryRun exclude each other: a dry run leads to no state",
        )),
        _ => Ok(()),
    }
}
