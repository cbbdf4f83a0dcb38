//! Summaries and the messages they replace.
//!
//! A summary lists the entries it replaces in `metadata.summary.of`. The placeholder of a cleared tool
//! result does the same. The listed entries may be summaries themselves. All replaced messages stay in
//! the log: [`expand`] restores them, [`sources`] lists them, and [`gaps`] finds entries that a version
//! with a summary hid although its summaries do not list them.

use std::collections::{BTreeMap, BTreeSet};

use recto::{
    Conversation, Delete, LogIndex, Message, Operation, Outcome, Request, Restore, Version,
};
use serde::Deserialize;

use crate::Error;

/// The number of entries that are read at once.
const PAGE: usize = 256;

/// An entry that a version hid and that no summary of that version lists.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SummaryGap {
    /// The version that added the summary.
    pub version: Version,
    /// The hidden entry.
    pub entry: LogIndex,
}

/// The entries that a message replaces (`metadata.summary.of`); `None` if the message is not a summary.
pub fn summarised_entries(message: &Message) -> Option<Vec<LogIndex>> {
    #[derive(Deserialize)]
    struct Holder {
        metadata: Option<Metadata>,
    }
    #[derive(Deserialize)]
    struct Metadata {
        summary: Option<Of>,
    }
    #[derive(Deserialize)]
    struct Of {
        of: Vec<LogIndex>,
    }
    // Most messages are not summaries, and a substring search is faster than parsing.
    if !message.json().contains("\"summary\"") {
        return None;
    }
    match serde_json::from_str::<Holder>(message.json()) {
        Ok(holder) => holder.metadata?.summary.map(|summary| summary.of),
        Err(error) => {
            // The text of the error may contain values of the message.
            let (kind, column) = (error.classify(), error.column());
            tracing::warn!(?kind, column, "the metadata of a summary cannot be read");
            None
        }
    }
}

/// See [`ConversationExt::summary_sources`](crate::ConversationExt::summary_sources).
pub(crate) async fn sources(
    conversation: &Conversation,
    summary: LogIndex,
) -> Result<Vec<LogIndex>, Error> {
    let message = conversation.message(summary).await?;
    let Some(of) = message.as_ref().and_then(summarised_entries) else {
        return Err(Error::NotASummary { entry: summary });
    };
    let mut found = BTreeSet::new();
    // Entries that are not older than their summary are ignored, so the loop terminates.
    let mut pending: Vec<LogIndex> = of.into_iter().filter(|entry| *entry < summary).collect();
    while !pending.is_empty() {
        let entries = conversation.entries(&pending).await?;
        pending.clear();
        for entry in entries {
            match summarised_entries(&entry.message) {
                Some(of) => pending.extend(of.into_iter().filter(|it| *it < entry.index)),
                None => drop(found.insert(entry.index)),
            }
        }
    }
    Ok(found.into_iter().collect())
}

/// See [`ConversationExt::expand_summary`](crate::ConversationExt::expand_summary).
pub(crate) async fn expand(
    conversation: &Conversation,
    summary: LogIndex,
) -> Result<Outcome, Error> {
    let indices = sources(conversation, summary).await?;
    let reason = format!("expand the summary {summary}");
    let restore = Operation::from(Restore { indices }).reason(&reason);
    let delete = Operation::from(Delete { indices: vec![summary] }).reason(&reason);
    let request: Request = [restore, delete].into_iter().collect();
    Ok(conversation.apply(request).await?)
}

/// See [`ConversationExt::summary_gaps`](crate::ConversationExt::summary_gaps).
pub(crate) async fn gaps(conversation: &Conversation) -> Result<Vec<SummaryGap>, Error> {
    let newest = conversation.version().await?;
    let versions = conversation.versions(Version(0)..Version(newest.0 + 1)).await?;
    let log = versions.last().map_or(0, |info| info.log);
    let mut covered: BTreeMap<Version, BTreeSet<LogIndex>> = BTreeMap::new();
    for start in (0..log).step_by(PAGE) {
        let page: Vec<LogIndex> =
            (start..(start + PAGE).min(log)).map(|index| LogIndex(index as u32)).collect();
        for entry in conversation.entries(&page).await? {
            if let Some(of) = summarised_entries(&entry.message) {
                // The first version whose log contains the entry is the version that added it.
                let at = versions.partition_point(|info| info.log <= entry.index.as_usize());
                covered.entry(versions[at].version).or_default().extend(of);
            }
        }
    }
    let mut gaps = Vec::new();
    for (version, of) in covered {
        let Some(before) = version.0.checked_sub(1) else { continue };
        let hidden = conversation.diff(Version(before), version).await?.hidden.indices;
        let missing = hidden.into_iter().filter(|entry| !of.contains(entry));
        gaps.extend(missing.map(|entry| SummaryGap { version, entry }));
    }
    Ok(gaps)
}
