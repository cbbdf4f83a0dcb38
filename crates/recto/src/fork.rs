//! Forks: conversations that start at a version of another one and share its rows up to there.

use recto_core::Version;
use recto_store::{Ancestor, CommitBody, CommitRow, ConversationId, Head, NewConversation, new_id};
use tracing::Instrument;

use crate::loaded::read_record;
use crate::{Conversation, Error, check_name};

impl Conversation {
    /// Forks the conversation at a version. The fork has the same log and history up to that version.
    /// It starts with the present policy of this conversation. The cost does not depend on the length of the
    /// conversation.
    pub async fn fork(&self, name: &str, at: Version) -> Result<Conversation, Error> {
        let span = tracing::debug_span!("fork", conversation = %self.id, version = at.0);
        self.fork_at(name, at).instrument(span).await
    }

    async fn fork_at(&self, name: &str, at: Version) -> Result<Conversation, Error> {
        check_name(name)?;
        let loaded = self.reading_at(at).await?;
        let current = loaded.conversation.version();
        if at > current {
            return Err(
                recto_core::Error::VersionNotFound { version: at, current, field: "at" }.into()
            );
        }
        let records = loaded.reader.records(at.0).await?;
        let found = records.into_iter().find(|(number, _)| *number == at.0);
        let (_, record) = found.expect("the records start with the requested one");
        let saved = read_record(&loaded.reader, &record.json)?;
        let store = &self.recto.shared.store;
        // The policy may have changed since the handle was opened.
        let policy = store.get(&self.recto.tenant, self.id).await?.and_then(|row| row.policy);
        let now = self.now();
        let id = ConversationId(new_id(now));
        let (versions, entries) = (at.0 + 1, saved.log_len());
        let lineage = self.lineage_up_to(versions, entries);
        let head = Head { version: at.0, entries, link: record.link, committed: now };
        let body = CommitBody { record: record.json, entries: Vec::new() };
        let settings = self.creation.settings.clone();
        let new = NewConversation {
            id,
            tenant: self.recto.tenant.clone(),
            name: name.to_owned(),
            created: now,
            settings: settings.clone(),
            policy,
            lineage: lineage.clone(),
            first: CommitRow { head, body: body.pack() },
            words: Vec::new(),
        };
        store.create(new).await?;
        Ok(self.recto.handle(id, settings, lineage.into()))
    }

    /// The conversations whose rows hold the first `versions` versions and `entries` entries of this
    /// one.
    fn lineage_up_to(&self, versions: u32, entries: u32) -> Vec<Ancestor> {
        let own = Ancestor { id: self.id, versions, entries };
        let mut lineage: Vec<Ancestor> = Vec::new();
        for ancestor in self.creation.lineage.iter().chain([&own]) {
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
