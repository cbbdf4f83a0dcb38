//! Verification of everything that is stored of a conversation.

use std::sync::Arc;

use recto_core::{
    Counter, EntryMeta, Message, PartialConversation, SavedSettings, SavedVersion, Version,
};
use recto_store::{Entry, Hit, Link, Words};
use tracing::Instrument;

use crate::loaded::{read_entry, read_message, read_record};
use crate::row_reader::RowReader;
use crate::{Conversation, Error, Progress, ProgressFn, Recto};

/// The result of a verification.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
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

impl Report {
    /// The report about a conversation that cannot be opened.
    fn of_damage(damage: &Error) -> Report {
        let (versions, entries, erased) = (0, 0, 0);
        let faults = vec![damage.to_string()];
        Report { versions, entries, erased, link: Link([0; 32]), faults }
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
    ) -> Result<Vec<(String, Report)>, Error> {
        let mut reports = Vec::new();
        for found in self.shared.store.survey().await? {
            // The tenant of a damaged row is a guess.
            let is_here = found.tenant == self.tenant || found.row.is_err();
            let Some(name) = found.name.filter(|_| is_here) else { continue };
            let mut of_one = |done| progress(&name, done);
            let report = match found.row {
                Ok(row) => self.handle_of(row).verify_with_progress(&mut of_one).await?,
                Err(damage) => Report::of_damage(&damage.into()),
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
    ) -> Result<Report, Error> {
        match self.row(name).await {
            Ok(row) => self.handle_of(row).verify_with_progress(progress).await,
            Err(error) if is_damage(&error) => Ok(Report::of_damage(&error)),
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
        damage.extend(index.unwrap_or_else(|error| vec![error.to_string()]));
        Ok(damage)
    }

    /// Compares the search index with the messages. A message that was erased or pruned must not be in
    /// the index.
    async fn check_index(&self) -> Result<Vec<String>, Error> {
        if !self.shared.is_searched {
            return Ok(Vec::new());
        }
        let store = &self.shared.store;
        let surveyed = store.survey().await?;
        let mut indexed = store.indexed_words(&self.tenant).await?;
        let mut faults = Vec::new();
        for found in surveyed.iter().filter(|found| found.tenant == self.tenant) {
            let Ok(row) = &found.row else { continue };
            let mut wrong = 0;
            let reader = self.handle_of(row.clone()).reader();
            let mut start = row.lineage.last().map_or(0, |from| from.entries);
            while start < row.head.entries {
                let end = start.saturating_add(4_096).min(row.head.entries);
                // Damaged rows are reported elsewhere.
                let Ok(entries) = reader.entries(start..end).await else { break };
                for (entry, stored) in (start..).zip(&entries) {
                    let hit = Hit { conversation: row.id, entry };
                    let message = match stored.meta.gone {
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
                faults.push(format!(
                    "the search index has not the words of {wrong} messages of {name:?}"
                ));
            }
        }
        Ok(faults)
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
        }
    }

    /// Reads everything that is stored of the conversation, recomputes the chain of hashes, and checks
    /// all versions. It takes as long as reading the whole conversation. Other reads and writes do not
    /// wait for it.
    pub async fn verify(&self) -> Result<Report, Error> {
        self.verify_with_progress(&mut |_| {}).await
    }

    /// [`verify`](Self::verify) with a progress callback that counts versions.
    pub async fn verify_with_progress(&self, progress: ProgressFn<'_>) -> Result<Report, Error> {
        let span = tracing::info_span!("verify", conversation = %self.id);
        let report = match self.checked(progress).instrument(span.clone()).await {
            Err(error) if is_damage(&error) => self.damaged_report(&error).await,
            report => report?,
        };
        if !report.is_sound() {
            let faults = report.faults.len();
            span.in_scope(|| tracing::warn!(faults, "the stored conversation is damaged"));
        }
        Ok(report)
    }

    /// A report about a conversation that cannot be read to its end.
    async fn damaged_report(&self, damage: &Error) -> Report {
        let row = self.recto.row_by_id(self.id).await.ok();
        let head = row.map(|row| row.head);
        Report {
            versions: head.map_or(0, |head| head.version.saturating_add(1)),
            entries: head.map_or(0, |head| head.entries),
            erased: 0,
            link: head.map_or(Link::start(&self.creation.settings), |head| head.link),
            faults: vec![damage.to_string()],
        }
    }

    async fn checked(&self, progress: ProgressFn<'_>) -> Result<Report, Error> {
        // A separate load: nothing in memory is trusted, and no other request waits.
        let loaded = self.load().await?;
        let reader = loaded.reader.clone();
        let head = loaded.head();
        let settings: SavedSettings = loaded.conversation.saved_settings();
        let mut check = Check {
            report: Report {
                versions: head.version + 1,
                entries: head.entries,
                erased: 0,
                link: Link::start(&self.creation.settings),
                faults: Vec::new(),
            },
            entries: 0,
            conversation: None,
            settings,
            counter: loaded.conversation.counter().clone(),
        };
        let mut version = 0;
        while version <= head.version {
            // Records of one row are read together.
            let mut records = Vec::new();
            for (number, record) in reader.records(version).await? {
                if (version..=head.version).contains(&number) {
                    records.push((number, read_record(&reader, &record.json)?, record));
                }
            }
            let end = records.last().map_or(0, |(_, saved, _)| saved.log_len());
            let entries = reader.entries(check.entries..end.min(head.entries)).await?;
            let mut rest = &*entries;
            for (number, saved, record) in &records {
                let added = saved.log_len().saturating_sub(check.entries) as usize;
                let added = rest.split_off(..added.min(rest.len())).unwrap_or_default();
                check.version(Version(*number), &record.json, record.link, added);
                let messages = added.iter().map(|entry| read_entry(&reader, entry));
                let messages: Vec<_> = messages.collect::<Result<_, Error>>()?;
                check.placeholders(Version(*number), added, &messages);
                check.follow(saved, messages);
                version = number + 1;
            }
            progress(Progress::new(u64::from(version), u64::from(head.version) + 1));
        }
        if check.report.link != head.link {
            check.fault("the chain does not end in what is stored as its end".to_owned());
        }
        if let Some(conversation) = &check.conversation
            && let Err(error) = conversation.verify()
        {
            let fault = error.to_string();
            check.fault(fault);
        }
        Ok(check.report)
    }
}

/// Whether an error says that rows are damaged. SQLite fails with an error if its own structures are.
fn is_damage(error: &Error) -> bool {
    error.is_damage() || matches!(error, Error::Store(recto_store::Error::Failed { .. }))
}

struct Check {
    report: Report,
    /// The number of entries that were read.
    entries: u32,
    /// The conversation up to the last version that was read; `None` if a version is invalid.
    conversation: Option<PartialConversation>,
    settings: SavedSettings,
    counter: Arc<dyn Counter>,
}

impl Check {
    fn fault(&mut self, fault: String) {
        const MAX_FAULTS: usize = 100;
        if self.report.faults.len() < MAX_FAULTS {
            self.report.faults.push(fault);
        }
    }

    fn version(&mut self, version: Version, record: &str, link: Link, entries: &[Entry]) {
        let numbered = (self.entries..).zip(entries);
        let hashed = numbered.map(|(number, entry)| (number, &entry.meta, entry.body_hash()));
        let computed = self.report.link.next(version.0, record.as_bytes(), hashed);
        if computed != link {
            self.fault(format!("version {version} is not what was written"));
        }
        // Continue with the stored hash, so that each fault is reported at its own version.
        self.report.link = link;
        self.report.erased += entries.iter().filter(|e| e.meta.gone.is_some()).count() as u32;
        self.entries += entries.len() as u32;
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
                let fault = "what stands in the place of an erased message is not a placeholder";
                self.fault(format!("version {version}: {fault}"));
            }
        }
    }

    fn follow(&mut self, saved: &SavedVersion, messages: Vec<(Option<Message>, EntryMeta)>) {
        let next = match &self.conversation {
            Some(conversation) => conversation.followed_by(saved, messages),
            None if self.report.faults.is_empty() => {
                PartialConversation::first(&self.settings, self.counter.clone(), saved, messages)
            }
            None => return,
        };
        match next {
            Ok(next) => self.conversation = Some(next),
            Err(error) => {
                self.conversation = None;
                self.fault(error.to_string());
            }
        }
    }
}
