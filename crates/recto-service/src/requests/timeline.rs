//! `{"conversation": NAME, "timeline": true}`

use recto::{OperationKind, Version, VersionInfo};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Error, Perform, Service, True};

/// The tokens of the view and of the log at each version.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Timeline {
    /// The conversation: its whole name, or its id.
    pub conversation: String,
    /// `true`.
    pub timeline: True,
}

/// The tokens of the view and of the log at each version.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TokensOverTime {
    /// The conversation's name.
    pub conversation: String,
    /// The versions, in ascending order.
    pub versions: Vec<TimelinePoint>,
}

/// A version of a timeline.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TimelinePoint {
    /// The version.
    pub version: u32,
    /// The operation that made it.
    #[schemars(with = "String")]
    pub operation: OperationKind,
    /// Its current batch.
    pub batch: usize,
    /// Its effect on the batches.
    pub event: TimelineEvent,
    /// The tokens of its view.
    pub tokens: u64,
    /// The tokens of its log.
    pub log_tokens: u64,
}

/// The effect of a version on the batches. If several apply, the last one of this list is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum TimelineEvent {
    /// Nothing.
    None,
    /// It opened a batch.
    Batch,
    /// It restored an earlier view: ROLLBACK, BATCH_END, UNDO or REDO.
    Back,
    /// It made the view shorter with COMPRESS or FIT.
    Compression,
}

impl TimelinePoint {
    /// A version in batch 0 without an effect on the batches.
    pub fn new(
        version: u32,
        operation: OperationKind,
        tokens: u64,
        log_tokens: u64,
    ) -> TimelinePoint {
        TimelinePoint {
            version,
            operation,
            batch: 0,
            event: TimelineEvent::None,
            tokens,
            log_tokens,
        }
    }

    fn of(info: &VersionInfo, log_tokens: u64) -> TimelinePoint {
        use OperationKind::{Compress, Fit};
        let opened = info.batch_opened_by == info.version && info.version.0 > 0;
        let event = match info.operation {
            Compress | Fit => TimelineEvent::Compression,
            kind if kind.restores_view() => TimelineEvent::Back,
            _ if opened => TimelineEvent::Batch,
            _ => TimelineEvent::None,
        };
        TimelinePoint {
            batch: info.batch.0,
            event,
            ..TimelinePoint::new(info.version.0, info.operation, info.tokens, log_tokens)
        }
    }
}

impl Perform for Timeline {
    type Response = TokensOverTime;

    async fn perform(self, service: &Service) -> Result<TokensOverTime, Error> {
        let conversation = service.conversation(&self.conversation).await?;
        let handle = &conversation.handle;
        let end = Version(handle.version().await?.0.saturating_add(1));
        let versions = handle.versions(Version(0)..end).await?;
        let lengths: Vec<usize> = versions.iter().map(|info| info.log).collect();
        let log_tokens = handle.log_tokens(&lengths).await?;
        let points = versions.iter().zip(log_tokens);
        let versions = points.map(|(info, tokens)| TimelinePoint::of(info, tokens)).collect();
        Ok(TokensOverTime { conversation: conversation.name, versions })
    }
}
