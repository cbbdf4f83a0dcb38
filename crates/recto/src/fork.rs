//! A conversation that begins where another one was at some version. It shares all rows up to there.

use recto_core::Version;
use recto_store::{Ancestor, CommitBody, CommitRow, ConversationId, Head, NewConversation};
use uuid::Uuid;

use crate::opened::read_record;
use crate::stored::Setup;
use crate::{Error, StoredConversation};

impl StoredConversation {
    /// Forks the conversation at a version: a new one of this name that has the same log and
    /// history up to there, and goes its own way from there. Costs the same however long it is.
    pub async fn fork(&self, name: &str, at: Version) -> Result<StoredConversation, Error> {
        let opened = self.reading().await?;
        let current = opened.conversation.version();
        if at > current {
            return Err(
                recto_core::Error::VersionNotFound { version: at, current, field: "at" }.into()
            );
        }
        let records = opened.reader.records(at.0).await?;
        let found = records.into_iter().find(|(number, _)| *number == at.0);
        let (_, record) = found.expect("the records begin with the one that was asked for");
        let saved = read_record(&opened.reader, &record.json)?;
        let id = ConversationId(Uuid::now_v7());
        let (versions, entries) = (at.0 + 1, saved.log_len());
        let lineage = self.lineage_up_to(versions, entries);
        let now = self.recto.shared.clock.now();
        let head = Head { version: at.0, entries, link: record.link, committed: now };
        let body = CommitBody { record: record.json, entries: Vec::new() };
        let new = NewConversation {
            id,
            tenant: self.recto.tenant.clone(),
            name: name.to_owned(),
            created: now,
            settings: self.setup.settings.clone(),
            policy: self.setup.policy.clone(),
            lineage: lineage.clone(),
            first: CommitRow { head, body: body.pack() },
            words: Vec::new(),
        };
        self.recto.shared.store.create(new).await?;
        let Setup { settings, policy, .. } = &*self.setup;
        Ok(self.recto.handle(id, settings.clone(), policy.clone(), lineage))
    }

    /// The conversations that have the first so many versions and entries of this one.
    fn lineage_up_to(&self, versions: u32, entries: u32) -> Vec<Ancestor> {
        let own = Ancestor { id: self.id, versions, entries };
        let mut lineage: Vec<Ancestor> = Vec::new();
        for ancestor in self.setup.lineage.iter().chain([&own]) {
            lineage.push(Ancestor {
                id: ancestor.id,
                versions: ancestor.versions.min(versions),
                entries: ancestor.entries.min(entries),
            });
            if ancestor.versions >= versions && ancestor.entries >= entries {
                break;
            }
        }
        lineage
    }
}
