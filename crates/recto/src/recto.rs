//! An open store: conversations by name.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::sync::Arc;

use recto_core::{
    Conversation, Counter, LogIndex, Message, PartialConversation, Query, Scope, Settings,
    Timestamp, Version,
};
use recto_store::{
    Address, Ancestor, CommitRow, ConversationId, ConversationRow, Head, Hit, Link, MemoryStore,
    NewConversation, Store, Tenant, pack_commit, words_of,
};
use uuid::Uuid;

use crate::commit::{entries_of, words};
use crate::open_slots::OpenSlots;
use crate::opened::Opened;
use crate::stored::Setup;
use crate::{Clock, Error, StoredConversation};

/// How a store is opened.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whose conversations are read and written.
    pub tenant: Tenant,
    /// Whether a store that is created now keeps an index for [`Recto::search`]; yes unless told. It
    /// takes about a quarter of the room that the messages take as JSON. A store stays as it was
    /// created: to change that, make a [backup](Recto::backup) and restore it into a new store.
    pub search: bool,
    /// So many open conversations are kept in memory; 256 unless told.
    pub open_conversations: usize,
    /// Counters of your own, by which conversations were or will be counted.
    pub counters: Vec<Arc<dyn Counter>>,
    /// Tells the time of requests; the system's clock unless told.
    pub clock: Clock,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            tenant: Tenant::default(),
            search: true,
            open_conversations: 256,
            counters: Vec::new(),
            clock: Clock::default(),
        }
    }
}

/// An open store. Cloning one costs O(1); all clones share what they have opened.
#[derive(Clone)]
pub struct Recto {
    pub(crate) shared: Arc<Shared>,
    pub(crate) tenant: Tenant,
}

impl fmt::Debug for Recto {
    /// Nothing of what is open: that does not belong into logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Recto({:?})", self.shared.store)
    }
}

/// Counters by their names.
#[derive(Debug)]
pub(crate) struct Counters(Vec<Arc<dyn Counter>>);

impl Counters {
    /// One of the caller's own, or a built-in one.
    pub(crate) fn named(&self, name: &str) -> Result<Arc<dyn Counter>, Error> {
        let own = self.0.iter().find(|counter| counter.name() == name).cloned();
        let found = own.or_else(|| <dyn Counter>::named(name));
        found.ok_or_else(|| Error::UnknownCounter { name: name.to_owned() })
    }
}

pub(crate) struct Shared {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) counters: Counters,
    pub(crate) clock: Clock,
    pub(crate) is_searched: bool,
    pub(crate) open: OpenSlots<Opened>,
}

/// A conversation in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversationInfo {
    /// Its name.
    pub name: String,
    /// What it is known by, for ever.
    pub id: ConversationId,
    /// When it was created or forked.
    pub created: Timestamp,
    /// When its newest version was made.
    pub updated: Timestamp,
    /// Its newest version.
    pub version: Version,
    /// How long its log is.
    pub messages: u32,
    /// What its chain has come to: whoever notes it down can tell later whether anything was changed.
    pub link: Link,
    /// The conversation and version that it was forked from.
    pub forked_from: Option<(ConversationId, Version)>,
}

impl From<ConversationRow> for ConversationInfo {
    fn from(row: ConversationRow) -> Self {
        ConversationInfo {
            name: row.name,
            id: row.id,
            created: row.created,
            updated: row.head.committed,
            version: Version(row.head.version),
            messages: row.head.entries,
            link: row.head.link,
            forked_from: row
                .lineage
                .last()
                .map(|from| (from.id, Version(from.versions.saturating_sub(1)))),
        }
    }
}

/// A message that a search found.
#[derive(Clone, Debug)]
pub struct FoundMessage {
    /// The conversation that it was added to; if that was removed, a fork of it.
    pub conversation: String,
    /// Its number in the log.
    pub index: LogIndex,
    /// The message.
    pub message: Message,
}

impl Recto {
    /// Opens a store by its address: `memory:`, `sqlite:PATH` (the file is created if there is
    /// none) or `postgres://…`.
    pub async fn open(address: &str) -> Result<Recto, Error> {
        Self::open_with(address, Options::default()).await
    }

    /// [`open`](Self::open) with options of your own.
    pub async fn open_with(address: &str, options: Options) -> Result<Recto, Error> {
        let address: Address = address.parse()?;
        let store: Arc<dyn Store> = match address {
            Address::Memory if options.search => Arc::new(MemoryStore::default()),
            Address::Memory => Arc::new(MemoryStore::without_search()),
            other => open_database(&other, &options).await?,
        };
        Ok(Self::over(store, options))
    }

    /// Over a store of your own.
    pub fn over(store: Arc<dyn Store>, options: Options) -> Recto {
        let shared = Shared {
            is_searched: store.keeps_words(),
            store,
            counters: Counters(options.counters),
            clock: options.clock,
            open: OpenSlots::keeping(options.open_conversations),
        };
        Recto { shared: Arc::new(shared), tenant: options.tenant }
    }

    /// The same store for another tenant.
    pub fn for_tenant(&self, tenant: Tenant) -> Recto {
        Recto { shared: self.shared.clone(), tenant }
    }

    /// The store behind it.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.shared.store
    }

    /// Creates a conversation.
    pub async fn create(
        &self,
        name: &str,
        settings: Settings,
    ) -> Result<StoredConversation, Error> {
        self.create_with_messages(name, settings, &[]).await
    }

    /// Creates a conversation that shows messages at version 0, behind the description of its tools
    /// if it has any. If the messages hold that description, it is not added.
    pub async fn create_with_messages(
        &self,
        name: &str,
        settings: Settings,
        messages: &[Message],
    ) -> Result<StoredConversation, Error> {
        let now = self.shared.clock.now();
        let conversation = Conversation::with_messages(settings, messages, now)?;
        let conversation = PartialConversation::from(conversation);
        let id = ConversationId(Uuid::now_v7());
        let settings = conversation.saved_settings();
        // Whoever opens it again must be able to count.
        self.shared.counters.named(&settings.counter)?;
        let settings = serde_json::to_string(&settings).expect("plain data can be written");
        let record = recto_core::Saver::default().newest(&conversation);
        let record = serde_json::to_string(&record).expect("plain data can be written");
        let entries = entries_of(&conversation, 0)?;
        let numbered = (0..).zip(&entries);
        let hashed = numbered.map(|(number, entry)| (number, &entry.meta, entry.body_hash()));
        let head = Head {
            version: 0,
            entries: entries.len() as u32,
            link: Link::start(&settings).next(0, record.as_bytes(), hashed),
            committed: now,
        };
        let new = NewConversation {
            id,
            tenant: self.tenant.clone(),
            name: name.to_owned(),
            created: now,
            settings: settings.clone(),
            policy: None,
            lineage: Vec::new(),
            first: CommitRow { head, body: pack_commit(&record, &entries) },
            words: if self.shared.is_searched { words(&conversation, 0) } else { Vec::new() },
        };
        self.shared.store.create(new).await?;
        Ok(self.handle(id, settings, None, Vec::new()))
    }

    /// A conversation by its name.
    pub async fn conversation(&self, name: &str) -> Result<StoredConversation, Error> {
        let row = self.row(name).await?;
        Ok(self.opening(row).await)
    }

    /// A conversation by its name; it is created if there is none. If there is one, it stays as it
    /// was set up, whatever `settings` say.
    pub async fn conversation_or_create(
        &self,
        name: &str,
        settings: Settings,
    ) -> Result<StoredConversation, Error> {
        if let Some(row) = self.shared.store.find(&self.tenant, name).await? {
            return Ok(self.opening(row).await);
        }
        match self.create(name, settings).await {
            // Somebody else was quicker.
            Err(Error::Store(recto_store::Error::ConversationExists { .. })) => {
                self.conversation(name).await
            }
            other => other,
        }
    }

    /// What is known of a conversation without opening it.
    pub async fn info(&self, name: &str) -> Result<ConversationInfo, Error> {
        Ok(self.row(name).await?.into())
    }

    /// Conversations in the order of their names: those behind the name `after`, at most `limit`.
    pub async fn list(
        &self,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ConversationInfo>, Error> {
        let rows = self.shared.store.list(&self.tenant, after, limit).await?;
        Ok(rows.into_iter().map(ConversationInfo::from).collect())
    }

    /// Gives a conversation another name.
    pub async fn rename(&self, from: &str, to: &str) -> Result<(), Error> {
        Ok(self.shared.store.rename(&self.tenant, from, to).await?)
    }

    /// Takes a conversation away. What its forks share with it stays theirs. Copies may be left in
    /// free space of the store's files until it is [cleaned](Self::clean): that takes as long as
    /// writing the whole store anew, so it is for once, after all that is to go is gone.
    pub async fn remove(&self, name: &str) -> Result<(), Error> {
        self.remove_at(name, None).await
    }

    /// [Removes](Self::remove) a conversation, provided that this still is its newest version.
    pub async fn remove_at(
        &self,
        name: &str,
        expected_version: Option<Version>,
    ) -> Result<(), Error> {
        let id = self.row(name).await?.id;
        let at = expected_version.map(|version| version.0);
        self.shared.store.remove_at(&self.tenant, name, at).await?;
        self.shared.open.forget(id);
        Ok(())
    }

    /// Leaves no copy behind of what was removed before, nor of what was erased or pruned where that
    /// could not be done to the end. It writes the whole store anew.
    pub async fn clean(&self) -> Result<(), Error> {
        Ok(self.shared.store.clean().await?)
    }

    /// Messages of any conversation that have all the words of `text`, visible or not. A word is a
    /// run of letters and digits, in upper or lower case, and is found whole: "gate" does not find
    /// "gateway". What a fork shares is found in the conversation that it was added to.
    pub async fn search(&self, text: &str, limit: usize) -> Result<Vec<FoundMessage>, Error> {
        if !self.shared.is_searched {
            return Err(recto_store::Error::NoSearch.into());
        }
        let words = words_of(text);
        if words.is_empty() {
            return Ok(Vec::new());
        }
        let mut names = Names::default();
        let mut asked = limit;
        loop {
            let hits = self.shared.store.search(&self.tenant, &words, None, asked).await?;
            let is_all = hits.len() < asked;
            let mut named = Vec::new();
            for hit in &hits {
                if named.len() < limit
                    && let Some(row) = self.shown_by(hit, &mut names).await?
                {
                    named.push((row, hit.entry));
                }
            }
            if named.len() < limit && !is_all {
                asked = asked.saturating_mul(4);
                continue;
            }
            let mut found = Vec::new();
            for (row, entry) in named {
                let index = LogIndex(entry);
                if let Some(message) = self.handle_of((*row).clone()).message(index).await? {
                    found.push(FoundMessage { conversation: row.name.clone(), index, message });
                }
            }
            return Ok(found);
        }
    }

    /// [`search`](Self::search) in a store that keeps no index: reads every message. Messages that
    /// a fork shares are found in each of the two.
    pub async fn search_without_index(
        &self,
        text: &str,
        limit: usize,
    ) -> Result<Vec<FoundMessage>, Error> {
        let words = words_of(text);
        let mut found = Vec::new();
        if words.is_empty() {
            return Ok(found);
        }
        for info in self.list(None, usize::MAX).await? {
            let query = Query { scope: Scope::All, ..Query::default() };
            for entry in self.conversation(&info.name).await?.ask(&query).await? {
                if found.len() == limit {
                    return Ok(found);
                }
                let said = words_of(&entry.message.text());
                if words.iter().all(|word| said.contains(word)) {
                    let (index, message) = (entry.index, entry.message);
                    let conversation = info.name.clone();
                    found.push(FoundMessage { conversation, index, message });
                }
            }
        }
        Ok(found)
    }

    /// The conversation that a message was added to, or a fork that has it.
    async fn shown_by(
        &self,
        hit: &Hit,
        names: &mut Names,
    ) -> Result<Option<Arc<ConversationRow>>, Error> {
        let (id, store) = (hit.conversation, &self.shared.store);
        if let Entry::Vacant(unknown) = names.0.entry(id) {
            let found = match store.get(&self.tenant, id).await? {
                Some(row) => vec![row],
                None => match store.forks(id).await {
                    // All of it was removed meanwhile.
                    Err(recto_store::Error::ConversationNotFound { .. }) => Vec::new(),
                    forks => forks?,
                },
            };
            unknown.insert(found.into_iter().map(Arc::new).collect());
        }
        let mut rows = names.0[&id].iter();
        Ok(rows.find(|row| row.id == id || shares(row, hit)).cloned())
    }

    pub(crate) async fn row(&self, name: &str) -> Result<ConversationRow, Error> {
        let row = self.shared.store.find(&self.tenant, name).await?;
        let missing = || recto_store::Error::ConversationNotFound { name: name.to_owned() };
        Ok(row.ok_or_else(missing)?)
    }

    /// A conversation that is about to be used. Whoever opens it first in this process ends the
    /// temporary scopes in it whose holder has died.
    async fn opening(&self, row: ConversationRow) -> StoredConversation {
        let talk = self.handle_of(row);
        let slot = self.shared.open.slot(talk.id);
        // A writer that holds the lock has it open.
        let is_open =
            slot.is_published() || slot.writer.try_lock().map_or(true, |open| open.is_some());
        drop(slot);
        if !is_open {
            // What cannot be read or written says so to whoever uses it.
            let _ = crate::end_expired(&talk).await;
        }
        talk
    }

    fn handle_of(&self, row: ConversationRow) -> StoredConversation {
        self.handle(row.id, row.settings, row.policy, row.lineage)
    }

    pub(crate) fn handle(
        &self,
        id: ConversationId,
        settings: String,
        policy: Option<String>,
        lineage: Vec<Ancestor>,
    ) -> StoredConversation {
        let setup = Arc::new(Setup { settings, policy, lineage });
        StoredConversation { recto: self.clone(), id, setup }
    }
}

/// The conversations that were found to hold hits: each by itself, or by its forks if it was removed.
#[derive(Default)]
struct Names(HashMap<ConversationId, Vec<Arc<ConversationRow>>>);

/// Whether a fork shares a message with the conversation that it was added to.
fn shares(fork: &ConversationRow, hit: &Hit) -> bool {
    let owner = fork.lineage.iter().find(|ancestor| hit.entry < ancestor.entries);
    owner.is_some_and(|ancestor| ancestor.id == hit.conversation)
}

async fn open_database(address: &Address, options: &Options) -> Result<Arc<dyn Store>, Error> {
    match address {
        Address::Memory => Ok(Arc::new(MemoryStore::default())),
        #[cfg(feature = "sqlite")]
        Address::Sqlite(path) => {
            let options =
                recto_store::SqliteOptions { search: options.search, ..Default::default() };
            Ok(Arc::new(recto_store::SqliteStore::open(path, options).await?))
        }
        #[cfg(not(feature = "sqlite"))]
        Address::Sqlite(_) => Err(recto_store::Error::NotBuilt { store: "sqlite" }.into()),
        #[cfg(feature = "postgres")]
        Address::Postgres(address) => {
            let options =
                recto_store::PostgresOptions { search: options.search, ..Default::default() };
            Ok(Arc::new(recto_store::PostgresStore::open(address, options).await?))
        }
        #[cfg(not(feature = "postgres"))]
        Address::Postgres(_) => Err(recto_store::Error::NotBuilt { store: "postgres" }.into()),
    }
}
