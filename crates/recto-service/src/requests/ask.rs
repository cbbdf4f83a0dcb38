//! `{"conversation": NAME, "ask": {QUERY}}`; `query` is another name for `ask`.

use recto::Query;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use serde_json::value::RawValue;

use crate::read::check_names;
use crate::{Error, Perform, Service, ShownEntry, entries_of, schema};

/// Finds entries.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Ask<'a> {
    /// The conversation: its whole name, or its id.
    pub conversation: String,
    /// The query, as section 6 of the contract defines it.
    #[serde(borrow, alias = "query")]
    #[schemars(with = "schema::Query")]
    pub ask: &'a RawValue,
}

/// The entries that a query found.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Entries {
    /// The entries: visible ones in the order of the view, with scope `all` in the order of the log.
    pub messages: Vec<ShownEntry>,
}

impl Perform for Ask<'_> {
    type Response = Entries;

    async fn perform(self, service: &Service) -> Result<Entries, Error> {
        check_names(self.ask, "")?;
        let query = Query::from_json(self.ask.get())?;
        let conversation = service.conversation(&self.conversation).await?;
        Ok(Entries { messages: entries_of(&conversation.handle, &query).await? })
    }
}
