//! A test of everything that is stored of a conversation.

use std::sync::Arc;

use recto_core::{
    Counter, EntryMeta, Message, PartialConversation, SavedSettings, SavedVersion, Version,
};
use recto_store::{Entry, Link};

use crate::opened::{read_entry, read_record};
use crate::{Error, Progress, StoredConversation, Watcher};

/// What was found in a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// How many versions there are.
    pub versions: u32,
    /// How many log entries there are.
    pub entries: u32,
    /// How many of them were erased.
    pub erased: u32,
    /// What the chain has come to.
    pub link: Link,
    /// What does not hold, in words. Empty if all is well.
    pub faults: Vec<String>,
}

impl Report {
    /// Whether everything holds together.
    pub fn is_sound(&self) -> bool {
        self.faults.is_empty()
    }
}

impl StoredConversation {
    /// Reads everything that is stored of the conversation, computes the chain anew, and tests all
    /// versions. It takes as long as reading the whole conversation.
    pub async fn verify(&self) -> Result<Report, Error> {
        self.verify_with(&mut |_| {}).await
    }

    /// [`verify`](Self::verify), telling how many versions are tested.
    pub async fn verify_with(&self, progress: Watcher<'_>) -> Result<Report, Error> {
        // Nothing that is in memory is trusted, and no other request waits.
        let opened = self.open().await?;
        let shelf = opened.shelf.clone();
        let head = opened.head();
        let settings: SavedSettings = opened.conversation.saved_settings();
        let mut check = Check {
            report: Report {
                versions: head.version + 1,
                entries: head.entries,
                erased: 0,
                link: Link::start(&self.setup.settings),
                faults: Vec::new(),
            },
            entries: 0,
            conversation: None,
            settings,
            counter: opened.conversation.counter().clone(),
        };
        let mut version = 0;
        while version <= head.version {
            // What is in one row is read at once.
            let mut records = Vec::new();
            for (number, record) in shelf.records(version).await? {
                if (version..=head.version).contains(&number) {
                    records.push((number, read_record(&shelf, &record.json)?, record));
                }
            }
            let end = records.last().map_or(0, |(_, saved, _)| saved.log_len());
            let entries = shelf.entries(check.entries..end.min(head.entries)).await?;
            let mut rest = &*entries;
            for (number, saved, record) in &records {
                let added = saved.log_len().saturating_sub(check.entries) as usize;
                let added = rest.split_off(..added.min(rest.len())).unwrap_or_default();
                check.version(Version(*number), &record.json, record.link, added);
                let messages = added.iter().map(|entry| read_entry(&shelf, entry));
                let messages: Vec<_> = messages.collect::<Result<_, Error>>()?;
                check.placeholders(Version(*number), added, &messages);
                check.follow(saved, messages);
                version = number + 1;
            }
            progress(Progress { done: u64::from(version), all: u64::from(head.version) + 1 });
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
    /// How many entries were read so far.
    entries: u32,
    /// The conversation as it was read so far; none if a version could not be made.
    conversation: Option<PartialConversation>,
    settings: SavedSettings,
    counter: Arc<dyn Counter>,
}

impl Check {
    fn fault(&mut self, fault: String) {
        const MOST: usize = 100;
        if self.report.faults.len() < MOST {
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
        // What follows is compared with what is stored, so that each fault is named where it is.
        self.report.link = link;
        self.report.erased += entries.iter().filter(|e| e.meta.gone.is_some()).count() as u32;
        self.entries += entries.len() as u32;
    }

    /// Where a message is gone, only its hash is in the chain: what stands there must say nothing.
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
