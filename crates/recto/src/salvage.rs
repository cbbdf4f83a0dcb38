//! Copies the readable part of a damaged conversation.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use recto_core::{
    Arrange, Limits, LogIndex, Message, SavedSettings, SavedVersions, Settings, Version,
};
use recto_store::{Ancestor, ConversationId, Entry, Lineage, MemoryStore, PageKind, Store};
use tracing::Instrument;

use crate::loaded::state_of;
use crate::recto::Options;
use crate::row_reader::{RowReader, UnpackedCommits, WRITTEN_BY_ENGINE};
use crate::{Error, Recto};

/// The result of a salvage.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SalvageReport {
    /// The id of the new conversation.
    pub id: ConversationId,
    /// The number of messages in the new conversation.
    pub messages: usize,
    /// The log entries of the damaged conversation that could not be read.
    pub missing_messages: Vec<LogIndex>,
    /// The version whose view the new conversation has, without the missing messages. `None` if no
    /// version could be read; then every message is visible.
    pub view_of: Option<Version>,
    /// The versions whose records could not be read.
    pub missing_versions: Vec<Version>,
    /// Descriptions of other parts that could not be read.
    pub faults: Vec<String>,
}

/// Number of messages in one request.
const MESSAGES_PER_REQUEST: usize = 1_000;

/// Number of consecutive unreadable log entries after which no more pages are searched, if the length of the
/// log is not known.
const MAX_UNREADABLE: u32 = 10_000;

impl Recto {
    /// Copies everything that can be read of a damaged conversation into a new conversation: its messages
    /// byte for byte and in order, and the view of the newest version that can be read. The versions, marks
    /// and tools of the damaged one are not copied. It stays as it is. The new conversation is stored
    /// completely or not at all.
    pub async fn salvage(&self, name: &str, to: &str) -> Result<SalvageReport, Error> {
        self.salvage_into(name, self, to).await
    }

    /// [`salvage`](Self::salvage) into another store: a store whose structures are damaged may refuse to
    /// store anything.
    pub async fn salvage_into(
        &self,
        name: &str,
        target: &Recto,
        to: &str,
    ) -> Result<SalvageReport, Error> {
        let span = tracing::info_span!("salvage");
        self.salvage_to(name, target, to).instrument(span).await
    }

    async fn salvage_to(
        &self,
        name: &str,
        target: &Recto,
        to: &str,
    ) -> Result<SalvageReport, Error> {
        let source = self.salvageable(name).await?;
        let mut faults = source.faults;
        let reader = &source.reader;
        let mut entries = BTreeMap::new();
        for (owner, range) in source.parts {
            read_entries(reader, owner, range, &mut entries, &mut faults).await;
        }
        let end = entries.last_key_value().map_or(0, |(last, _)| last + 1).max(source.entries);
        let mut readable = BTreeMap::new();
        let mut missing_messages = Vec::new();
        for index in 0..end {
            let entry = entries.get(&index);
            // A tool description belongs to tools that the new conversation does not have.
            if entry.is_some_and(|entry| entry.meta.role & WRITTEN_BY_ENGINE != 0) {
                continue;
            }
            let message = entry.map(|entry| Message::from_json_within(&entry.body, &Limits::NONE));
            if let Some(Ok(message)) = message {
                readable.insert(index, message);
            } else {
                missing_messages.push(LogIndex(index));
            }
        }
        let (view, missing_versions) = newest_view(reader, source.newest).await;
        // The copy is made in memory and stored in one transaction, so that an interruption leaves no part of
        // it.
        let memory: Arc<dyn Store> = Arc::new(MemoryStore::without_search());
        let options = Options {
            tenant: target.tenant.clone(),
            counters: self.shared.counters.0.clone(),
            limits: Limits::NONE,
            clock: self.shared.clock.clone(),
            ..Options::default()
        };
        let copy = Recto::with_store(memory.clone(), options);
        let conversation = copy.create(to, source.settings).await?;
        let mut numbers = BTreeMap::new();
        let all: Vec<(u32, Message)> = readable.into_iter().collect();
        for part in all.chunks(MESSAGES_PER_REQUEST) {
            let first = numbers.len() as u32;
            numbers.extend(part.iter().zip(first..).map(|((old, _), new)| (*old, LogIndex(new))));
            conversation.append(part.iter().map(|(_, message)| message.clone())).await?;
        }
        if let Some((version, view)) = &view {
            let readable = view.iter().filter_map(|index| numbers.get(&index.0).copied());
            let arrange = Arrange::entries(readable);
            let reason = format!("the view of version {version} of {name}");
            conversation.apply(arrange.reason(reason)).await?;
        }
        // With a damaged index, the store may refuse the copy, or not find it afterwards.
        match target.shared.store.rebuild_indexes().await {
            // The indexes are built; other damage keeps the file from being written again.
            Ok(()) | Err(recto_store::Error::CopiesLeft { .. }) => {}
            Err(error) if error.is_damage() => faults.push(error.to_string()),
            Err(error) => return Err(error.into()),
        }
        target.copy_from(&memory).await?;
        target.info(to).await?;
        let view_of = view.map(|(version, _)| version);
        let messages = numbers.len();
        let id = conversation.id();
        Ok(SalvageReport { id, messages, missing_messages, view_of, missing_versions, faults })
    }

    /// The rows to read, according to the conversation row.
    async fn salvageable(&self, name: &str) -> Result<Source, Error> {
        let surveyed = self.shared.store.survey().await?;
        let is_searched =
            |tenant: &recto_store::Tenant, found: Option<&str>, id: ConversationId| {
                *tenant == self.tenant && (found == Some(name) || id.to_string() == name)
            };
        let found = surveyed
            .into_iter()
            .find(|found| is_searched(&found.tenant, found.name.as_deref(), found.id));
        let missing = || recto_store::Error::ConversationNotFound { name: name.to_owned() };
        let found = found.ok_or_else(missing)?;
        let mut faults = Vec::new();
        let (settings, lineage, entries) = match &found.row {
            Ok(row) => (row.settings.clone(), row.lineage.clone(), row.head.entries),
            Err(damage) => {
                faults.push(damage.to_string());
                (String::new(), Lineage::default(), 0)
            }
        };
        let settings = match serde_json::from_str::<SavedSettings>(&settings) {
            Ok(saved) => Settings {
                counter: self.shared.counters.named(&saved.counter).unwrap_or_else(|error| {
                    faults.push(format!("{error}: the new conversation counts with \"approx\""));
                    Arc::new(recto_core::Approx)
                }),
                media_tokens: saved.media_tokens.min(recto_core::MAX_MESSAGE_TOKENS),
                heading: saved.heading,
                ..Settings::counting_with(recto_core::Approx)
            },
            Err(_) => {
                faults.push("the settings: the new conversation counts with \"approx\"".to_owned());
                Settings::counting_with(recto_core::Approx)
            }
        };
        let unpacked = UnpackedCommits::default();
        let store = self.shared.store.clone();
        let mut reader = RowReader { store, id: found.id, lineage, unpacked, rewrites: 0 };
        match reader.commits_of(found.id, None).await {
            Ok(commits) => reader.unpacked = commits.into(),
            Err(error) => faults.push(error.to_string()),
        }
        let newest = reader.unpacked.last().map(|commit| Version(commit.head.version));
        let ends = reader.unpacked.iter().map(|commit| commit.head.entries);
        let entries = ends.fold(entries, u32::max);
        let parts = parts_of(found.id, &reader.lineage, entries);
        Ok(Source { reader, settings, parts, entries, newest, faults })
    }
}

/// A damaged conversation.
struct Source {
    reader: RowReader,
    settings: Settings,
    /// The conversations whose rows hold the log, with the entries of each.
    parts: Vec<(ConversationId, Range<u32>)>,
    /// The length of the log, if it is known; else 0.
    entries: u32,
    newest: Option<Version>,
    faults: Vec<String>,
}

/// The conversations whose rows hold a log of this length (0: the length is not known), with the entries of
/// each.
fn parts_of(
    id: ConversationId,
    lineage: &[Ancestor],
    entries: u32,
) -> Vec<(ConversationId, Range<u32>)> {
    let mut start = 0;
    let mut parts = Vec::new();
    for ancestor in lineage {
        parts.push((ancestor.id, start..ancestor.entries.max(start)));
        start = ancestor.entries.max(start);
    }
    let end = if entries > start { entries } else { u32::MAX };
    parts.push((id, start..end));
    parts
}

/// Reads the entries of one conversation: pages one after the other, because a damaged page must not hide
/// the others, then commits.
async fn read_entries(
    reader: &RowReader,
    owner: ConversationId,
    range: Range<u32>,
    entries: &mut BTreeMap<u32, Entry>,
    faults: &mut Vec<String>,
) {
    // Ranges that may contain pages. A range that cannot be read is divided, until it is one entry.
    let mut rest = vec![range.clone()];
    let mut unreadable = 0;
    while let Some(part) = rest.pop() {
        match reader.store.pages(owner, PageKind::Entries, part.clone(), true).await {
            Ok(pages) => {
                unreadable = 0;
                for page in pages {
                    match page.entries() {
                        Ok(found) => entries.extend(
                            (page.first..).zip(found).filter(|(index, _)| range.contains(index)),
                        ),
                        Err(error) => faults.push(format!(
                            "the page of log entries from {} on: {error}",
                            page.first
                        )),
                    }
                }
            }
            Err(error) if part.end - part.start <= 1 => {
                let fault = error.to_string();
                if !faults.contains(&fault) {
                    faults.push(fault);
                }
                // Every read of entries after the last page fails if that page is damaged.
                unreadable += 1;
                if range.end == u32::MAX && unreadable > MAX_UNREADABLE {
                    break;
                }
            }
            Err(_) => {
                let middle = part.start + (part.end - part.start) / 2;
                rest.extend([middle..part.end, part.start..middle]);
            }
        }
    }
    match reader.store.unpacked(owner, None).await {
        Err(error) => faults.push(error.to_string()),
        Ok(unpacked) => {
            for (version, row) in unpacked.commits {
                let opened = row.map_err(|error| error.to_string()).and_then(|row| {
                    let opened = crate::row_reader::unpack_commit(owner, &row);
                    opened.map_err(|error| error.to_string())
                });
                match opened {
                    Ok((first, body)) => entries.extend(
                        (first..).zip(body.entries).filter(|(index, _)| range.contains(index)),
                    ),
                    Err(fault) => faults.push(format!("version {version}: {fault}")),
                }
            }
        }
    }
}

/// The view of the newest version that can be read, and the versions whose records cannot be read.
async fn newest_view(
    reader: &RowReader,
    newest: Option<Version>,
) -> (Option<(Version, Vec<LogIndex>)>, Vec<Version>) {
    let mut versions = Arc::<SavedVersions>::default();
    let mut missing = Vec::new();
    let Some(newest) = newest else { return (None, missing) };
    for version in (0..=newest.0).rev().map(Version) {
        match state_of(reader, &mut versions, version).await {
            Ok(state) => return (Some((version, state.view())), missing),
            Err(_) => missing.push(version),
        }
    }
    (None, missing)
}
