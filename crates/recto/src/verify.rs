//! Verification of everything that is stored of a conversation.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use recto_core::{
    Approx, Counter, EntryMeta, Message, PartialConversation, SavedSettings, SavedVersion, Version,
};
use recto_store::{
    Ancestor, ConversationId, ConversationRow, Entry, Hit, Link, SurveyedConversation, Words,
    WordsOf,
};
use tracing::Instrument;

use crate::loaded::{read_entry, read_message, read_record};
use crate::row_reader::{RowReader, damaged};
use crate::{Conversation, Error, Progress, ProgressFn, Recto};

/// The result of a verification.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifyReport {
    /// The number of versions.
    pub versions: u32,
    /// The number of log entries.
    pub entries: u32,
    /// The number of log entries that were erased or pruned.
    pub erased: u32,
    /// The hash of the newest version and of all versions before it.
    pub link: Link,
    /// Descriptions of what is wrong, at most 100. Empty if everything is valid.
    pub faults: Vec<String>,
}

impl VerifyReport {
    /// The report about a conversation that cannot be opened.
    fn of_damage(damage: &Error) -> VerifyReport {
        let (versions, entries, erased) = (0, 0, 0);
        let faults = vec![damage.to_string()];
        VerifyReport { versions, entries, erased, link: Link([0; 32]), faults }
    }

    /// Whether no fault was found.
    pub fn is_sound(&self) -> bool {
        self.faults.is_empty()
    }
}

impl Recto {
    /// [Verifies](Conversation::verify) all conversations, also those that are too damaged to be opened,
    /// and returns a report for each name. `progress` receives the name and the number of versions.
    pub async fn verify_all(
        &self,
        progress: &mut (dyn FnMut(&str, Progress) + Send),
    ) -> Result<Vec<(String, VerifyReport)>, Error> {
        let mut reports = Vec::new();
        let surveyed = match self.shared.store.survey().await.map_err(Error::from) {
            Err(error) if is_damage(&error) => {
                let report = VerifyReport::of_damage(&error);
                return Ok(vec![("all conversations".to_owned(), report)]);
            }
            surveyed => surveyed?,
        };
        let rows = surveyed.iter().filter_map(|found| found.row.as_ref().ok());
        let mut verification = Verification::of(rows);
        for found in surveyed {
            // The tenant of a damaged row is a guess.
            let is_here = found.tenant == self.tenant || found.row.is_err();
            let Some(name) = found.name.filter(|_| is_here) else { continue };
            let mut of_one = |done| progress(&name, done);
            let report = match found.row {
                Ok(row) => verification.verify(&self.handle_of(row), &mut of_one).await?,
                Err(damage) => VerifyReport::of_damage(&damage.into()),
            };
            reports.push((name, report));
        }
        reports.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(reports)
    }

    /// [Verifies](Conversation::verify) the conversation of a name, also if it is too damaged to be
    /// opened.
    pub async fn verify_named(
        &self,
        name: &str,
        progress: ProgressFn<'_>,
    ) -> Result<VerifyReport, Error> {
        match self.row(name).await {
            Ok(row) => self.handle_of(row).verify_with_progress(progress).await,
            Err(error) if is_damage(&error) => Ok(VerifyReport::of_damage(&error)),
            Err(error) => Err(error),
        }
    }

    /// Checks the store as a whole, and returns descriptions of the damage: the structures of the
    /// database, all rows, and the search index, which is compared with the messages.
    pub async fn check(&self) -> Result<Vec<String>, Error> {
        let mut damage = self.shared.store.check().await?;
        let mut index = self.check_index().await;
        if index.as_ref().map_or(true, |faults| !faults.is_empty()) {
            // Another process may have written between the two reads.
            index = self.check_index().await;
        }
        match index {
            Err(error) if is_damage(&error) => damage.push(error.to_string()),
            index => damage.extend(index?),
        }
        Ok(damage)
    }

    /// Compares the search index with the messages.
    async fn check_index(&self) -> Result<Vec<String>, Error> {
        if !self.shared.is_searched {
            return Ok(Vec::new());
        }
        let surveyed = self.shared.store.survey().await?;
        self.compare_index(&surveyed).await
    }

    /// Compares the search index with the messages of these conversations. A message that was erased or
    /// pruned must not be in the index. An error that reports damage is about the index.
    async fn compare_index(&self, surveyed: &[SurveyedConversation]) -> Result<Vec<String>, Error> {
        let mut indexed = self.shared.store.indexed_words(&self.tenant).await?;
        let mut faults = Vec::new();
        for found in surveyed.iter().filter(|found| found.tenant == self.tenant) {
            let Ok(row) = &found.row else { continue };
            let mut wrong = 0;
            let reader = self.handle_of(row.clone()).reader();
            let mut start = row.lineage.last().map_or(0, |from| from.entries);
            while start < row.head.entries {
                let end = start.saturating_add(4_096).min(row.head.entries);
                let Some(entries) = undamaged_entries(&reader, start..end).await? else { break };
                for (entry, stored) in (start..).zip(&entries) {
                    let hit = Hit { conversation: row.id, entry };
                    let message = match stored.meta.gone {
                        // It fails only for a damaged message.
                        None => read_message(&reader, &stored.body).ok(),
                        Some(_) => None,
                    };
                    let words = message.map(|message| Words::of(&message.text()));
                    wrong += u32::from(match words.filter(|words| !words.is_empty()) {
                        Some(words) => !indexed.take(hit, &words),
                        None => stored.meta.gone.is_some() && indexed.remove(hit),
                    });
                }
                start = end;
            }
            if wrong > 0 {
                let name = found.name.clone().unwrap_or_else(|| row.id.to_string());
                faults
                    .push(format!("the search index lacks words of {wrong} messages of {name:?}"));
            }
        }
        Ok(faults)
    }
}

impl Recto {
    /// Builds the search index again from the messages, if it is damaged or lacks some of their words.
    pub(crate) async fn repair_search_index(&self) -> Result<(), Error> {
        const MAX_ATTEMPTS: u32 = 3;
        if !self.shared.is_searched {
            return Ok(());
        }
        for _ in 0..MAX_ATTEMPTS {
            if self.is_search_index_sound().await? || !self.shared.store.clear_words().await? {
                return Ok(());
            }
            tracing::warn!("the search index is damaged; it is built again");
            self.fill_search_index().await?;
            // Another process may have erased a message while its words were added.
        }
        match self.is_search_index_sound().await? {
            true => Ok(()),
            false => Err(recto_store::Error::Failed {
                action: "building the search index again",
                reason: "other processes write to it; repeat it".to_owned(),
                source: None,
            }
            .into()),
        }
    }

    /// Whether the search index is undamaged and complete. A failed read is an error: it says nothing about
    /// the index.
    async fn is_search_index_sound(&self) -> Result<bool, Error> {
        if !self.shared.store.check_words().await?.is_empty() {
            return Ok(false);
        }
        let surveyed = self.shared.store.survey().await?;
        match self.compare_index(&surveyed).await {
            Err(error) if is_damage(&error) => Ok(false),
            faults => Ok(faults?.is_empty()),
        }
    }

    /// Adds the words of all messages to the search index.
    async fn fill_search_index(&self) -> Result<(), Error> {
        let store = &self.shared.store;
        for found in store.survey().await? {
            // Messages in damaged rows get no words.
            let Ok(row) = found.row else { continue };
            let reader = self.handle_of(row.clone()).reader();
            let mut start = row.lineage.last().map_or(0, |from| from.entries);
            while start < row.head.entries {
                let end = start.saturating_add(4_096).min(row.head.entries);
                let Some(entries) = undamaged_entries(&reader, start..end).await? else { break };
                let present = (start..).zip(&entries).filter(|(_, it)| it.meta.gone.is_none());
                let words = present.filter_map(|(entry, stored)| {
                    let message = read_message(&reader, &stored.body).ok()?;
                    Some(WordsOf { entry, words: Words::of(&message.text()) })
                });
                store.add_words(row.id, words.collect()).await?;
                start = end;
            }
        }
        Ok(())
    }
}

/// Reads log entries. `None` if their rows are damaged, which the check of the rows reports.
async fn undamaged_entries(
    reader: &RowReader,
    range: Range<u32>,
) -> Result<Option<Vec<Entry>>, Error> {
    match reader.entries(range).await {
        Ok(entries) => Ok(Some(entries)),
        Err(error) if is_damage(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

impl Conversation {
    /// A reader of the rows, without any that were read before.
    fn reader(&self) -> RowReader {
        RowReader {
            store: self.recto.shared.store.clone(),
            id: self.id,
            lineage: self.creation.lineage.clone(),
            unpacked: Default::default(),
            rewrites: 0,
        }
    }

    /// Reads everything that is stored of the conversation, recomputes the chain of hashes, and checks
    /// all versions. It takes as long as reading the whole conversation. Other reads and writes do not
    /// wait for it.
    pub async fn verify(&self) -> Result<VerifyReport, Error> {
        self.verify_with_progress(&mut |_| {}).await
    }

    /// [`verify`](Self::verify) with a progress callback that counts versions.
    pub async fn verify_with_progress(
        &self,
        progress: ProgressFn<'_>,
    ) -> Result<VerifyReport, Error> {
        Verification::default().verify(self, progress).await
    }

    /// A report about a conversation that cannot be read to its end.
    async fn damaged_report(&self, damage: &Error) -> Result<VerifyReport, Error> {
        let head = match self.recto.row_by_id(self.id).await {
            Ok(row) => Some(row.head),
            // A damaged row is not always found.
            Err(Error::Store(recto_store::Error::ConversationNotFound { .. })) => None,
            Err(error) if is_damage(&error) => None,
            Err(error) => return Err(error),
        };
        Ok(VerifyReport {
            versions: head.map_or(0, |head| head.version.saturating_add(1)),
            entries: head.map_or(0, |head| head.entries),
            erased: 0,
            link: head.map_or(Link::start(&self.creation.settings), |head| head.link),
            faults: vec![damage.to_string()],
        })
    }

    async fn checked(
        &self,
        verification: &mut Verification,
        progress: ProgressFn<'_>,
    ) -> Result<VerifyReport, Error> {
        let mut settings: SavedSettings = serde_json::from_str(&self.creation.settings)
            .map_err(|_| damaged(self.id, "its settings cannot be read"))?;
        // Nothing is counted again, so a counter that this program does not have is not needed.
        let counter = self.recto.shared.counters.named(&settings.counter).unwrap_or_else(|_| {
            settings.counter = Approx.name().to_owned();
            Arc::new(Approx)
        });
        let lineage = &self.creation.lineage;
        // The ancestors that were verified before are not read again.
        let is_known = |from: &Ancestor| verification.known.contains_key(&from.id);
        let known = lineage.iter().rposition(is_known).map_or(0, |at| at + 1);
        let mut before = match known.checked_sub(1).and_then(|at| lineage.get(at)) {
            Some(from) => verification.known.get(&from.id).and_then(|check| check.up_to(from)),
            None => None,
        };
        for at in known..=lineage.len() {
            let id = lineage.get(at).map_or(self.id, |from| from.id);
            let store = self.recto.shared.store.clone();
            // A separate read: nothing in memory is trusted, and no other request waits.
            let reader = RowReader::new(store, id, lineage.up_to(at)).await?;
            let start = before.take().unwrap_or_else(|| Check {
                link: Link::start(&self.creation.settings),
                ..Check::new(settings.clone(), counter.clone())
            });
            let mut check = start.clone();
            let read = check.own_rows(&reader, None, progress).await;
            let Some(from) = lineage.get(at) else {
                read?;
                let report = check.report();
                verification.keep(id, check);
                return Ok(report);
            };
            if read.is_ok() && check.faults.is_empty() {
                before = check.up_to(from);
                verification.keep(id, check);
            } else {
                // Damage after the fork point does not concern the fork.
                let mut shared = start;
                shared.own_rows(&reader, Some(from), progress).await?;
                before = shared.up_to(from);
            }
        }
        unreachable!("the last round is about the conversation itself")
    }
}

/// Verifies several conversations of a store. Rows that forks share are verified once, so the verification of
/// a store takes as long as reading it, however deep its forks are.
#[derive(Default)]
pub(crate) struct Verification {
    /// Verified conversations that have forks.
    known: HashMap<ConversationId, Check>,
    /// The conversations that have forks; `None`: not known.
    forked: Option<HashSet<ConversationId>>,
}

impl Verification {
    /// A verification of these conversations.
    pub(crate) fn of<'a>(
        conversations: impl IntoIterator<Item = &'a ConversationRow>,
    ) -> Verification {
        let lineages = conversations.into_iter().map(|row| &row.lineage);
        let mut forked = HashSet::new();
        for lineage in lineages {
            // The ancestors of a known ancestor are known too.
            let above = lineage.iter().rev();
            above.map(|from| from.id).take_while(|id| forked.insert(*id)).for_each(drop);
        }
        Verification { known: HashMap::new(), forked: Some(forked) }
    }

    /// [Verifies](Conversation::verify) a conversation.
    pub(crate) async fn verify(
        &mut self,
        conversation: &Conversation,
        progress: ProgressFn<'_>,
    ) -> Result<VerifyReport, Error> {
        let span = tracing::info_span!("verify", conversation = %conversation.id);
        let report = match conversation.checked(self, progress).instrument(span.clone()).await {
            Err(error) if is_damage(&error) => conversation.damaged_report(&error).await?,
            report => report?,
        };
        if !report.is_sound() {
            let faults = report.faults.len();
            span.in_scope(|| tracing::warn!(faults, "the stored conversation is damaged"));
        }
        Ok(report)
    }

    fn keep(&mut self, id: ConversationId, check: Check) {
        if self.forked.as_ref().is_some_and(|forked| forked.contains(&id)) {
            self.known.insert(id, check);
        }
    }
}

/// Whether an error says that rows, or the structures of the database, are damaged.
pub(crate) fn is_damage(error: &Error) -> bool {
    error.reports_damage()
}

/// What was verified of a conversation: its versions from 0 on, read from its rows and those of its
/// ancestors.
#[derive(Clone)]
struct Check {
    /// The first version that was read from the conversation's own rows.
    start: u32,
    /// For each of its own versions: the link, the number of log entries, and how many of them are erased.
    own: Vec<(Link, u32, u32)>,
    /// The hash of the last version that was read.
    link: Link,
    /// The number of entries that were read.
    entries: u32,
    erased: u32,
    /// What is wrong, at most [`MAX_FAULTS`], with the version in which it is.
    faults: Vec<(u32, String)>,
    /// The conversation up to the last version that was read; `None` if a version is invalid.
    conversation: Option<PartialConversation>,
    settings: SavedSettings,
    counter: Arc<dyn Counter>,
}

/// Maximum number of faults in a report.
const MAX_FAULTS: usize = 100;

impl Check {
    fn new(settings: SavedSettings, counter: Arc<dyn Counter>) -> Check {
        Check {
            start: 0,
            own: Vec::new(),
            link: Link([0; 32]),
            entries: 0,
            erased: 0,
            faults: Vec::new(),
            conversation: None,
            settings,
            counter,
        }
    }

    /// What was verified of the versions that a fork shares.
    fn up_to(&self, shared: &Ancestor) -> Option<Check> {
        let last = shared.versions.checked_sub(1)?;
        let &(link, entries, erased) = self.own.get(last.checked_sub(self.start)? as usize)?;
        let faults = self.faults.iter().filter(|(version, _)| *version <= last);
        let conversation = self.conversation.as_ref();
        Some(Check {
            start: shared.versions,
            own: Vec::new(),
            link,
            entries,
            erased,
            faults: faults.cloned().collect(),
            conversation: conversation.and_then(|whole| whole.at(Version(last)).ok()),
            settings: self.settings.clone(),
            counter: self.counter.clone(),
        })
    }

    fn report(&self) -> VerifyReport {
        VerifyReport {
            versions: self.start + self.own.len() as u32,
            entries: self.entries,
            erased: self.erased,
            link: self.link,
            faults: self.faults.iter().map(|(_, fault)| fault.clone()).collect(),
        }
    }

    /// Verifies the versions in a conversation's own rows, or those of them that a fork shares. Earlier
    /// versions have been verified.
    async fn own_rows(
        &mut self,
        reader: &RowReader,
        shared: Option<&Ancestor>,
        progress: ProgressFn<'_>,
    ) -> Result<(), Error> {
        let (last, log_len, end) = match shared {
            Some(shared) => (shared.versions.saturating_sub(1), shared.entries, None),
            None => {
                let head = reader.newest()?;
                (head.version, head.entries, Some(head.link))
            }
        };
        let base = self.conversation.clone();
        self.start = reader.own_start().0.max(self.start);
        self.first_row(reader).await?;
        let mut version = self.start;
        while version <= last {
            // Records of one row are read together.
            let mut records = Vec::new();
            for (number, record) in reader.records(version).await? {
                if (version..=last).contains(&number) {
                    records.push((number, read_record(reader, &record.json)?, record));
                }
            }
            let read_to = records.last().map_or(0, |(_, saved, _)| saved.log_len());
            let entries = reader.entries(self.entries..read_to.min(log_len)).await?;
            let mut rest = &*entries;
            for (number, saved, record) in &records {
                let added = saved.log_len().saturating_sub(self.entries) as usize;
                let added = rest.split_off(..added.min(rest.len())).unwrap_or_default();
                self.version(Version(*number), &record.json, record.link, added);
                let messages = added.iter().map(|entry| read_entry(reader, entry));
                let messages: Vec<_> = messages.collect::<Result<_, Error>>()?;
                self.placeholders(Version(*number), added, &messages);
                self.follow(Version(*number), saved, messages);
                version = number + 1;
            }
            progress(Progress::new(u64::from(version), u64::from(last) + 1));
        }
        if self.entries != log_len {
            self.fault(last, "its newest record and row differ in log length".to_owned());
        }
        if end.is_some_and(|end| end != self.link) {
            let fault = "the computed end of the chain differs from the stored one";
            self.fault(last, fault.to_owned());
        }
        if let Some(conversation) = &self.conversation
            && let Err(error) = match &base {
                Some(base) => conversation.verify_since(base),
                None => conversation.verify(),
            }
        {
            let fault = error.to_string();
            self.fault(last, fault);
        }
        Ok(())
    }

    /// The first row of a fork is a copy of the version that it starts from.
    async fn first_row(&mut self, reader: &RowReader) -> Result<(), Error> {
        let Some(version) = self.start.checked_sub(1) else { return Ok(()) };
        let copy = reader.unpacked.first().filter(|commit| commit.head.version == version);
        let Some(copy) = copy else { return Ok(()) };
        let original = RowReader { unpacked: Default::default(), ..reader.clone() };
        let mut records = original.records(version).await?.into_iter();
        let original = records.find(|(number, _)| *number == version);
        if original.is_none_or(|(_, record)| record.json != copy.record) {
            self.fault(version, format!("version {version} is not that of the origin"));
        }
        Ok(())
    }

    fn fault(&mut self, version: u32, fault: String) {
        if self.faults.len() < MAX_FAULTS {
            self.faults.push((version, fault));
        }
    }

    fn version(&mut self, version: Version, record: &str, link: Link, entries: &[Entry]) {
        let numbered = (self.entries..).zip(entries);
        let hashed = numbered.map(|(number, entry)| (number, &entry.meta, entry.body_hash()));
        let computed = self.link.next(version.0, record.as_bytes(), hashed);
        if computed != link {
            self.fault(version.0, format!("version {version} is not what was written"));
        }
        // Continue with the stored hash, so that each fault is reported at its own version.
        self.link = link;
        self.erased += entries.iter().filter(|e| e.meta.gone.is_some()).count() as u32;
        self.entries += entries.len() as u32;
        self.own.push((self.link, self.entries, self.erased));
    }

    /// The chain has only the hash of an erased message, so its stored body must be a placeholder.
    fn placeholders(
        &mut self,
        version: Version,
        entries: &[Entry],
        messages: &[(Option<Message>, EntryMeta)],
    ) {
        let gone = entries.iter().zip(messages).filter(|(entry, _)| entry.meta.gone.is_some());
        for (entry, (message, _)) in gone {
            let is_empty = message.as_ref().is_some_and(|message| {
                [message.erased(), message.pruned()].iter().any(|empty| empty.json() == entry.body)
            });
            if !is_empty {
                let fault = "the text of an erased message is not a placeholder";
                self.fault(version.0, format!("version {version}: {fault}"));
            }
        }
    }

    fn follow(
        &mut self,
        version: Version,
        saved: &SavedVersion,
        messages: Vec<(Option<Message>, EntryMeta)>,
    ) {
        let next = match &self.conversation {
            Some(conversation) => conversation.followed_by(saved, messages),
            None if version == Version(0) => {
                PartialConversation::first(&self.settings, self.counter.clone(), saved, messages)
            }
            None => return,
        };
        match next {
            Ok(next) => self.conversation = Some(next),
            Err(error) => {
                self.conversation = None;
                self.fault(version.0, error.to_string());
            }
        }
    }
}
