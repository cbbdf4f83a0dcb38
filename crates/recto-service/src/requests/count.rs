//! `{"conversation": NAME, "count": {QUERY}}`

use recto::Query;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use serde_json::value::RawValue;

use crate::read::check_names;
use crate::{Error, Perform, Service, schema};

/// Counts the entries that a query finds. Messages are loaded only if the query needs their content.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Count<'a> {
    /// The conversation: its whole name, or its id.
    pub conversation: String,
    /// The query, such as `{"role": "user"}` or `{"roles": ["user", "tool"], "scope": "all"}`.
    #[serde(borrow)]
    #[schemars(with = "schema::Query")]
    pub count: &'a RawValue,
}

/// The number of entries.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct EntryCount {
    /// The number of entries.
    pub count: usize,
}

impl Perform for Count<'_> {
    type Response = EntryCount;

    async fn perform(self, service: &Service) -> Result<EntryCount, Error> {
        check_names(self.count, "")?;
        let query = Query::from_json(self.count.get())?;
        let conversation = service.conversation(&self.conversation).await?;
        Ok(EntryCount { count: conversation.handle.count(&query).await? })
    }
}
