//! An open store and its conversations by name.

use std::fmt;
use std::sync::Arc;

use recto_core::{Counter, Limits, Message, PartialConversation, Settings, Timestamp, Version};
use recto_store::{
    Address, CommitRow, ConversationId, ConversationRow, Head, Lineage, Link, MemoryStore,
    NewConversation, Store, Tenant, new_id, pack_commit,
};
use tracing::Instrument;

use crate::commit::{entries_of, words};
use crate::conversation::Creation;
use crate::loaded::LoadedConversation;
use crate::open_slots::OpenSlots;
use crate::{Clock, Conversation, Error, check_name, engine};

/// Options of [`Recto::open_with`]. Fields may be added: construct it with `..Options::default()`.
#[derive(Clone, Debug)]
pub struct Options {
    /// The tenant whose conversations are read and written. Default: the tenant with the empty name.
    pub tenant: Tenant,
    /// Whether a store that this call creates keeps an index for [`Recto::search`]. Default: `true`.
    /// The index takes about a quarter of the size of the messages as JSON. An existing store stays as
    /// it was created; to change it, make a [backup](Recto::backup) and restore it into a new store.
    pub search: bool,
    /// Maximum number of open conversations that stay in memory. Default: 256.
    pub open_conversations: usize,
    /// Counters in addition to the built-in ones. A conversation stores the name of its counter, and
    /// can be opened only with a counter of that name.
    pub counters: Vec<Arc<dyn Counter>>,
    /// Limits on the messages of requests that are read as JSON. Default: 32 MiB per message, 64 levels,
    /// 10,000 messages per request.
    pub limits: Limits,
    /// The source of the times of requests and leases. Default: the clock of the system.
    pub clock: Clock,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            tenant: Tenant::default(),
            search: true,
            open_conversations: 256,
            counters: Vec::new(),
            limits: Limits::default(),
            clock: Clock::default(),
        }
    }
}

/// An open store. A clone costs O(1) and shares the open conversations.
#[derive(Clone)]
pub struct Recto {
    pub(crate) shared: Arc<Shared>,
    pub(crate) tenant: Tenant,
}

impl fmt::Debug for Recto {
    /// Writes the kind of store and no stored data, so that the value can be logged.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Recto({:?})", self.shared.store)
    }
}

/// Counters of the caller.
#[derive(Debug)]
pub(crate) struct Counters(pub(crate) Vec<Arc<dyn Counter>>);

impl Counters {
    /// The counter of this name: the caller's, else a built-in one.
    pub(crate) fn named(&self, name: &str) -> Result<Arc<dyn Counter>, Error> {
        let own = self.0.iter().find(|counter| counter.name() == name).cloned();
        let found = own.or_else(|| <dyn Counter>::named(name));
        found.ok_or_else(|| Error::UnknownCounter { name: name.to_owned() })
    }
}

/// What all clones of a [`Recto`] share.
pub(crate) struct Shared {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) counters: Counters,
    pub(crate) limits: Limits,
    pub(crate) clock: Clock,
    /// Whether the store keeps an index for the search.
    pub(crate) is_searched: bool,
    pub(crate) open: OpenSlots<LoadedConversation>,
}

/// Facts about a stored conversation that need no loading.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConversationInfo {
    /// The name.
    pub name: String,
    /// The id. It never changes.
    pub id: ConversationId,
    /// The time when the conversation was created or forked.
    pub created: Timestamp,
    /// The time of the newest version.
    pub updated: Timestamp,
    /// The newest version.
    pub version: Version,
    /// The length of the log.
    pub messages: u32,
    /// The hash of the newest version and of all versions before it. A caller that keeps it elsewhere
    /// can later check whether the stored history was changed.
    pub link: Link,
    /// The conversation and version that this one was forked from.
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

impl Recto {
    /// Opens a store by its address: `memory:`, `sqlite:PATH` or `postgres://…`. Creates a SQLite file
    /// that does not exist.
    pub async fn open(address: &str) -> Result<Recto, Error> {
        Self::open_with(address, Options::default()).await
    }

    /// [`open`](Self::open) with options.
    pub async fn open_with(address: &str, options: Options) -> Result<Recto, Error> {
        let address: Address = address.parse()?;
        // The address may contain a password: only the kind of store is logged.
        let span = tracing::info_span!("open", store = address.kind());
        let store = open_store(&address, &options).instrument(span).await?;
        Ok(Self::with_store(store, options))
    }

    /// Uses a store that is already open.
    pub fn with_store(store: Arc<dyn Store>, options: Options) -> Recto {
        let shared = Shared {
            is_searched: store.keeps_words(),
            store,
            counters: Counters(options.counters),
            limits: options.limits,
            clock: options.clock,
            open: OpenSlots::keeping(options.open_conversations),
        };
        Recto { shared: Arc::new(shared), tenant: options.tenant }
    }

    /// The same store for another tenant.
    pub fn for_tenant(&self, tenant: Tenant) -> Recto {
        Recto { shared: self.shared.clone(), tenant }
    }

    /// The limits on the messages of requests that are read as JSON.
    pub fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    /// The underlying store.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.shared.store
    }

    /// Creates an empty conversation.
    pub async fn create(&self, name: &str, settings: Settings) -> Result<Conversation, Error> {
        self.create_with_messages(name, settings, &[]).await
    }

    /// Creates a conversation that shows messages at version 0. The description of the tools comes
    /// before them if there are tools, unless the messages already contain it.
    pub async fn create_with_messages(
        &self,
        name: &str,
        settings: Settings,
        messages: &[Message],
    ) -> Result<Conversation, Error> {
        check_name(name)?;
        let max = recto_core::MAX_MESSAGE_TOKENS;
        if settings.media_tokens > max {
            let reason = format!("mediaTokens is at most {max}, the most that a message counts");
            let field = Some("mediaTokens".to_owned());
            return Err(recto_core::Error::InvalidOperation { reason, field }.into());
        }
        let now = self.shared.clock.now();
        let conversation = engine::Conversation::with_messages(settings, messages, now)?;
        let conversation = PartialConversation::from(conversation);
        let id = ConversationId(new_id(now));
        let settings = conversation.saved_settings();
        // A conversation whose counter is unknown could not be opened again.
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
            words: if self.shared.is_searched { words(&conversation, 0)? } else { Vec::new() },
        };
        let span = tracing::debug_span!("create", conversation = %id, messages = messages.len());
        self.shared.store.create(new).instrument(span).await?;
        Ok(self.handle(id, settings, Lineage::default()))
    }

    /// Finds a conversation by its name.
    pub async fn conversation(&self, name: &str) -> Result<Conversation, Error> {
        let row = self.row(name).await?;
        Ok(self.opened(row).await)
    }

    /// Finds a conversation by its id.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// use recto::{Approx, Recto, Settings};
    ///
    /// let recto = Recto::open("memory:").await?;
    /// let id = recto.create("draft", Settings::counting_with(Approx)).await?.id();
    /// recto.rename("draft", "support").await?;
    /// assert_eq!(recto.conversation_by_id(id).await?.id(), id);
    /// assert_eq!(recto.info_by_id(id).await?.name, "support");
    /// # Ok::<(), recto::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn conversation_by_id(&self, id: ConversationId) -> Result<Conversation, Error> {
        let row = self.row_by_id(id).await?;
        Ok(self.opened(row).await)
    }

    /// Finds a conversation by its name, or creates it. The settings are used only for a new one.
    pub async fn conversation_or_create(
        &self,
        name: &str,
        settings: Settings,
    ) -> Result<Conversation, Error> {
        if let Some(row) = self.shared.store.find(&self.tenant, name).await? {
            return Ok(self.opened(row).await);
        }
        match self.create(name, settings).await {
            // Another writer created it in between.
            Err(Error::Store(recto_store::Error::ConversationExists { .. })) => {
                self.conversation(name).await
            }
            other => other,
        }
    }

    /// Facts about a conversation, without loading it.
    pub async fn info(&self, name: &str) -> Result<ConversationInfo, Error> {
        Ok(self.row(name).await?.into())
    }

    /// [`info`](Self::info) by id.
    pub async fn info_by_id(&self, id: ConversationId) -> Result<ConversationInfo, Error> {
        Ok(self.row_by_id(id).await?.into())
    }

    /// Lists at most `limit` conversations in the order of their names, starting after the name
    /// `after`.
    pub async fn list(
        &self,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ConversationInfo>, Error> {
        let rows = self.shared.store.list(&self.tenant, after, limit).await?;
        Ok(rows.into_iter().map(ConversationInfo::from).collect())
    }

    /// Renames a conversation.
    pub async fn rename(&self, from: &str, to: &str) -> Result<(), Error> {
        check_name(to)?;
        let span = tracing::debug_span!("rename");
        Ok(self.shared.store.rename(&self.tenant, from, to).instrument(span).await?)
    }

    /// Writes the store's files again without free space. After that they hold no data of removed
    /// conversations, or of erased and pruned messages. It takes as long as copying the whole store, so call
    /// it once after several removals. It builds damaged indexes of a SQLite file again, and all indexes of
    /// PostgreSQL.
    pub async fn clean(&self) -> Result<(), Error> {
        let span = tracing::info_span!("clean");
        let clean = async {
            self.repair_search_index().await?;
            Ok(self.shared.store.clean().await?)
        };
        clean.instrument(span).await
    }

    pub(crate) async fn row(&self, name: &str) -> Result<ConversationRow, Error> {
        let row = self.shared.store.find(&self.tenant, name).await?;
        let missing = || recto_store::Error::ConversationNotFound { name: name.to_owned() };
        Ok(row.ok_or_else(missing)?)
    }

    pub(crate) async fn row_by_id(&self, id: ConversationId) -> Result<ConversationRow, Error> {
        let row = self.shared.store.get(&self.tenant, id).await?;
        let missing = || recto_store::Error::ConversationNotFound { name: id.to_string() };
        Ok(row.ok_or_else(missing)?)
    }

    /// The handle of a conversation. If the conversation is not open in this process yet, its temporary
    /// scopes whose holder has died or whose lease is over are ended first.
    async fn opened(&self, row: ConversationRow) -> Conversation {
        let conversation = self.handle_of(row);
        let slot = self.shared.open.slot(conversation.id);
        // A writer that holds the lock has the conversation open.
        let is_open =
            slot.is_published() || slot.writer.try_lock().map_or(true, |open| open.is_some());
        drop(slot);
        if !is_open && let Err(error) = conversation.end_expired_scopes().await {
            // The first read or write reports what is wrong with the conversation.
            tracing::warn!(
                conversation = %conversation.id,
                error = error.for_log(),
                "expired temporary scopes could not be ended"
            );
        }
        conversation
    }

    pub(crate) fn handle_of(&self, row: ConversationRow) -> Conversation {
        self.handle(row.id, row.settings, row.lineage)
    }

    pub(crate) fn handle(
        &self,
        id: ConversationId,
        settings: String,
        lineage: Lineage,
    ) -> Conversation {
        let creation = Arc::new(Creation { settings, lineage });
        Conversation { recto: self.clone(), id, creation }
    }
}

async fn open_store(address: &Address, options: &Options) -> Result<Arc<dyn Store>, Error> {
    match address {
        Address::Memory if options.search => Ok(Arc::new(MemoryStore::default())),
        Address::Memory => Ok(Arc::new(MemoryStore::without_search())),
        #[cfg(feature = "sqlite")]
        Address::Sqlite(path) => {
            let options =
                recto_store::SqliteOptions { search: options.search, ..Default::default() };
            Ok(Arc::new(recto_store::SqliteStore::open(path, options).await?))
        }
        #[cfg(feature = "postgres")]
        Address::Postgres(address) => {
            let options =
                recto_store::PostgresOptions { search: options.search, ..Default::default() };
            Ok(Arc::new(recto_store::PostgresStore::open(address, options).await?))
        }
        other => Err(recto_store::Error::NotBuilt { store: other.kind() }.into()),
    }
}
