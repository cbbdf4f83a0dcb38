//! `{"create": NAME, "settings": {…}, "messages": […]}`

use recto::{LogIndex, Message, Policy, Version, Warning, WarningCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use serde_json::value::RawValue;

use super::ArrayState;
use super::state::state_after;
use crate::error::InField as _;
use crate::error::wrong;
use crate::settings::NewSettings;
use crate::{Error, Include, NamedConversation, Perform, Service, schema};

/// Creates a conversation.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Create<'a> {
    /// The name of the conversation.
    pub create: String,
    /// Its settings. All have defaults.
    #[serde(borrow, default, deserialize_with = "crate::values::optional_object")]
    pub settings: Option<NewSettings<'a>>,
    /// Messages that are visible at version 0, after the tool description if there is one.
    #[serde(borrow)]
    #[schemars(with = "Option<Vec<schema::Message>>")]
    pub messages: Option<Vec<&'a RawValue>>,
    /// Additional fields of the response: `["state"]`. Default: none.
    #[serde(rename = "return", default, deserialize_with = "crate::values::or_default")]
    #[schemars(with = "Option<Vec<Include>>")]
    pub include: Vec<Include>,
}

/// A conversation that was created.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Created {
    /// The conversation's name.
    pub conversation: String,
    /// Its id, which never changes.
    pub id: String,
    /// Its version: 0.
    pub version: u32,
    /// Warnings about its view and its messages. Missing if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::Warning>")]
    pub warnings: Vec<Warning>,
    /// The state after the change, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<ArrayState>,
}

impl Perform for Create<'_> {
    type Response = Created;

    async fn perform(self, service: &Service) -> Result<Created, Error> {
        let (settings, policy) =
            self.settings.unwrap_or_default().checked().in_object("settings")?;
        let mut messages = Vec::new();
        let (size, limit) =
            (self.messages.as_ref().map_or(0, Vec::len), service.recto().limits().messages);
        if size > limit {
            let what = "the number of messages in the request";
            let field = Some("messages".to_owned());
            return Err(recto::EngineError::TooLarge { what, size, limit, field }.into());
        }
        for (number, json) in self.messages.unwrap_or_default().into_iter().enumerate() {
            let message = Message::from_json_within(json.get(), service.recto().limits());
            messages.push(message.map_err(|error| at_message(number, error))?);
        }
        let (recto, name) = (service.recto(), self.create);
        let handle = recto.create_with_messages(&name, settings, &messages).await?;
        if policy != Policy::default() {
            handle.set_policy(&policy).await?;
        }
        service.cache(&name, &handle);
        let conversation = NamedConversation { name, handle };
        let warnings = match messages.is_empty() {
            true => Vec::new(),
            false => warnings(&conversation, &messages).await?,
        };
        let state = state_after(&self.include, &conversation, Some(Version(0))).await?;
        let NamedConversation { name, handle } = conversation;
        Ok(Created { conversation: name, id: handle.id().to_string(), version: 0, warnings, state })
    }
}

/// Adds the path of a message to an error: `messages[NUMBER]`.
fn at_message(number: usize, error: recto::EngineError) -> recto::EngineError {
    use recto::EngineError::{EmptyContent, InvalidMessage, TooLarge};
    let place = |field: Option<String>| {
        Some(match field {
            Some(field) => format!("messages[{number}].{field}"),
            None => format!("messages[{number}]"),
        })
    };
    match error {
        InvalidMessage { reason, field } => InvalidMessage { reason, field: place(field) },
        EmptyContent { role, is_foreign, field } => {
            EmptyContent { role, is_foreign, field: place(field) }
        }
        TooLarge { what, size, limit, field } => {
            TooLarge { what, size, limit, field: place(field) }
        }
        recto::EngineError::InvalidOperation { reason, field } => {
            wrong(&place(field).unwrap_or_default(), reason)
        }
        error => error,
    }
}

/// The warnings about the view, and about messages of other formats.
async fn warnings(
    conversation: &NamedConversation,
    messages: &[Message],
) -> Result<Vec<Warning>, Error> {
    let mut warnings = conversation.handle.warnings().await?;
    // A tool description may precede the messages.
    let before = conversation.handle.stats().await?.total_messages.saturating_sub(messages.len());
    let foreign = (before..).zip(messages).filter(|(_, message)| message.is_foreign());
    let indices: Vec<LogIndex> = foreign.map(|(index, _)| LogIndex(index as u32)).collect();
    warnings.extend(Warning::about(WarningCode::ForeignMessage, indices));
    Ok(warnings)
}
