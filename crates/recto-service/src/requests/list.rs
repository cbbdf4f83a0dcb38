//! `{"list": true}` and `{"list": {"after": NAME, "limit": COUNT}}`

use recto::ConversationInfo;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Error, Perform, Service, TrueOr};

/// Lists conversations by name.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct List {
    /// `true`, or options.
    pub list: TrueOr<ListOptions>,
}

/// Which conversations are listed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ListOptions {
    /// Only names after this one.
    pub after: Option<String>,
    /// The largest number of conversations. Default: 1000.
    pub limit: Option<u64>,
}

/// Conversations, in the order of their names.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Conversations {
    /// The conversations.
    pub conversations: Vec<ListedConversation>,
    /// Whether there are more after the last one.
    pub more: bool,
}

/// A conversation in a list.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListedConversation {
    /// Its name.
    pub name: String,
    /// Its id, which never changes.
    pub id: String,
    /// Its newest version.
    pub version: u32,
    /// The length of its log.
    pub messages: u32,
    /// When it was created, in milliseconds since 1970.
    pub created: i64,
    /// When its newest version was made, in milliseconds since 1970.
    pub updated: i64,
    /// For a fork: the conversation and the version that it was forked from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<ForkOriginById>,
    /// The newest hash of the chain of its versions.
    pub link: String,
}

/// The conversation and the version that a fork started from.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ForkOriginById {
    /// The id of the conversation that it was forked from.
    pub id: String,
    /// The version that it was forked at.
    pub version: u32,
}

impl From<ConversationInfo> for ListedConversation {
    fn from(info: ConversationInfo) -> ListedConversation {
        ListedConversation {
            name: info.name,
            id: info.id.to_string(),
            version: info.version.0,
            messages: info.messages,
            created: info.created,
            updated: info.updated,
            forked_from: info
                .forked_from
                .map(|(id, version)| ForkOriginById { id: id.to_string(), version: version.0 }),
            link: super::verify::hexadecimal(&info.link.0),
        }
    }
}

impl Perform for List {
    type Response = Conversations;

    async fn perform(self, service: &Service) -> Result<Conversations, Error> {
        let TrueOr(ListOptions { after, limit }) = self.list;
        let limit = usize::try_from(limit.unwrap_or(1_000)).unwrap_or(usize::MAX);
        let mut found = service.recto().list(after.as_deref(), limit.saturating_add(1)).await?;
        let more = found.len() > limit;
        found.truncate(limit);
        let conversations = found.into_iter().map(ListedConversation::from).collect();
        Ok(Conversations { conversations, more })
    }
}
