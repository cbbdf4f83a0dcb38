//! Verification of everything that is stored of a conversation.

use std::sync::Arc;

use recto_core::{
    Counter, EntryMeta, Message, PartialConversation, SavedSettings, SavedVersion, Version,
};
use recto_store::{Entry, Link};
use tracing::Instrument;

use crate::loaded::{read_entry, read_record};
use crate::{Conversation, Error, Progress, ProgressFn};

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
    /// Whether no fault was found.
    pub fn is_sound(&self) -> bool {
        self.faults.is_empty()
    }
}

impl Conversation {
    /// Reads everything that is stored of the conversation, recomputes the chain of hashes, and checks
    /// all versions. It takes as long as reading the whole conversation. Other reads and writes do not
    /// wait for it.
    pub async fn verify(&self) -> Result<Report, Error> {
        self.verify_with_progress(&mut |_| {}).await
    }

    /// [`verify`](Self::verify) with a progress callback that counts versions.
    pub async fn verify_with_progress(&self, progress: ProgressFn<'_>) -> Result<Report, Error> {
        let span = tracing::info_span!("verify", conversation = %self.id);
        let report = self.checked(progress).instrument(span.clone()).await?;
        if !report.is_sound() {
            let faults = report.faults.len();
            span.in_scope(|| tracing::warn!(faults, "the stored conversation is damaged"));
        }
        Ok(report)
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
