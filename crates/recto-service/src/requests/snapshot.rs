//! `{"conversation": NAME, "snapshot": BATCH}`

use recto::BatchIndex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::InField as _;
use crate::{Error, Perform, Service, schema};

/// A batch of the live path: when and why it was opened, and its messages.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Snapshot {
    /// The conversation: its whole name, or its id.
    pub conversation: String,
    /// The number of the batch.
    pub snapshot: u64,
}

/// A batch of the live path.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct BatchSnapshot(#[schemars(with = "schema::BatchSnapshot")] pub recto::BatchSnapshot);

impl Perform for Snapshot {
    type Response = BatchSnapshot;

    async fn perform(self, service: &Service) -> Result<BatchSnapshot, Error> {
        let batch = BatchIndex(usize::try_from(self.snapshot).unwrap_or(usize::MAX));
        let conversation = service.conversation(&self.conversation).await?;
        Ok(BatchSnapshot(conversation.handle.snapshot(batch).await.in_field("snapshot")?))
    }
}
