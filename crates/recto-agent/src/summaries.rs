//! Summaries that open again.
//!
//! A summary says which entries it stands for (`metadata.summary.of`), and so does the placeholder of a
//! result that was cleared. Some of these may be summaries themselves. Nothing was lost: [`expand`] brings
//! the messages back, [`sources`] only names them, and [`gaps`] looks whether a summary left something
//! out.

use std::collections::{BTreeMap, BTreeSet};

use recto::{
    Delete, LogIndex, Message, Operation, Outcome, Request, Restore, StoredConversation, Version,
};
use serde::Deserialize;

use crate::Error;

/// So many entries are read at once.
const PAGE: usize = 256;

/// An entry that a version hid, and that no summary of that version stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The version that made the summary.
    pub version: Version,
    /// The entry.
    pub entry: LogIndex,
}

/// The entries that a message stands for; `None` if it is no summary.
pub fn stands_for(message: &Message) -> Option<Vec<LogIndex>> {
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
    // A quick look: most messages are none.
    if !message.json().contains("\"summary\"") {
        return None;
    }
    let holder = serde_json::from_str::<Holder>(message.json()).ok()?;
    holder.metadata?.summary.map(|summary| summary.of)
}

/// The messages that a summary stands for in the end: where it stands for other summaries, theirs.
pub async fn sources(talk: &StoredConversation, summary: LogIndex) -> Result<Vec<LogIndex>, Error> {
    let message = talk.message(summary).await?;
    let Some(of) = message.as_ref().and_then(stands_for) else {
        return Err(Error::NoSummary { entry: summary });
    };
    let mut found = BTreeSet::new();
    // A summary stands for older entries only, so this ends.
    let mut waiting: Vec<LogIndex> = of.into_iter().filter(|entry| *entry < summary).collect();
    while !waiting.is_empty() {
        let entries = talk.entries(&waiting).await?;
        waiting.clear();
        for entry in entries {
            match stands_for(&entry.message) {
                Some(of) => waiting.extend(of.into_iter().filter(|it| *it < entry.index)),
                None => drop(found.insert(entry.index)),
            }
        }
    }
    Ok(found.into_iter().collect())
}

/// Brings back what a summary stands for, each message to its place, and hides the summary: one request,
/// one UNDO.
pub async fn expand(talk: &StoredConversation, summary: LogIndex) -> Result<Outcome, Error> {
    let indices = sources(talk, summary).await?;
    let why = format!("expand the summary {summary}");
    let restore = Operation::from(Restore { indices }).reason(&why);
    let delete = Operation::from(Delete { indices: vec![summary] }).reason(&why);
    let request: Request = [restore, delete].into_iter().collect();
    Ok(talk.apply(request).await?)
}

/// Looks at every summary of the conversation: does it stand for everything that was hidden with it?
pub async fn gaps(talk: &StoredConversation) -> Result<Vec<Gap>, Error> {
    let newest = talk.version().await?;
    let versions = talk.versions(0..newest.0 + 1).await?;
    let log = versions.last().map_or(0, |info| info.log);
    let mut covered: BTreeMap<Version, BTreeSet<LogIndex>> = BTreeMap::new();
    for start in (0..log).step_by(PAGE) {
        let page: Vec<LogIndex> =
            (start..(start + PAGE).min(log)).map(|index| LogIndex(index as u32)).collect();
        for entry in talk.entries(&page).await? {
            if let Some(of) = stands_for(&entry.message) {
                // The version that added it is the first whose log reaches so far.
                let at = versions.partition_point(|info| info.log <= entry.index.as_usize());
                covered.entry(versions[at].version).or_default().extend(of);
            }
        }
    }
    let mut gaps = Vec::new();
    for (version, of) in covered {
        let Some(before) = version.0.checked_sub(1) else { continue };
        let hidden = talk.diff(Version(before), version).await?.hidden.indices;
        let missing = hidden.into_iter().filter(|entry| !of.contains(entry));
        gaps.extend(missing.map(|entry| Gap { version, entry }));
    }
    Ok(gaps)
}
