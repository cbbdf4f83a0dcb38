//! For programs without async: every method waits.
//!
//! ```
//! use recto::blocking::Recto;
//! use recto::{Message, Settings};
//!
//! let recto = Recto::open("memory:")?;
//! let talk = recto.create("support", Settings::default())?;
//! talk.append([Message::user("Checkout fails!")])?;
//! assert_eq!(talk.messages()?.len(), 1);
//! # Ok::<(), recto::Error>(())
//! ```
//!
//! What has no method here can be had with [`Recto::wait`]. Inside an async runtime all of them
//! panic: use the async form there.

use std::ops::Range;
#[cfg(feature = "sqlite")]
use std::path::Path;
use std::sync::Arc;

use recto_core::{
    ArrayState, BatchIndex, BatchSnapshot, Blame, Diff, LogIndex, MarkMap, Message, Outcome, Query,
    Request, Scope, Settings, Stats, Tool, Version, VersionInfo, Warning,
};
use recto_store::Tenant;
use tokio::runtime::{Builder, Runtime};

#[cfg(feature = "sqlite")]
use crate::Restored;
use crate::{
    ConversationInfo, Entry, Error, FoundMessage, Keep, Options, Policy, Preview, Pruned, Receipt,
    Report, Write,
};

/// An open store; see [`crate::Recto`]. Not to be used inside an async runtime.
#[derive(Clone, Debug)]
pub struct Recto {
    runtime: Arc<Runtime>,
    recto: crate::Recto,
}

/// A conversation in a store; see [`crate::StoredConversation`].
#[derive(Clone, Debug)]
pub struct StoredConversation {
    runtime: Arc<Runtime>,
    talk: crate::StoredConversation,
}

impl Recto {
    /// Opens a store by its address.
    pub fn open(address: &str) -> Result<Recto, Error> {
        Self::open_with(address, Options::default())
    }

    /// [`open`](Self::open) with options of your own.
    pub fn open_with(address: &str, options: Options) -> Result<Recto, Error> {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|error| recto_store::Error::Failed {
            doing: "starting",
            reason: error.to_string(),
        })?;
        let recto = runtime.block_on(crate::Recto::open_with(address, options))?;
        Ok(Recto { runtime: Arc::new(runtime), recto })
    }

    /// The async form, for what has no method here.
    pub fn inner(&self) -> &crate::Recto {
        &self.recto
    }

    /// Waits for something async.
    pub fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    fn conversation_of(&self, talk: crate::StoredConversation) -> StoredConversation {
        StoredConversation { runtime: self.runtime.clone(), talk }
    }

    /// Creates a conversation.
    pub fn create(&self, name: &str, settings: Settings) -> Result<StoredConversation, Error> {
        Ok(self.conversation_of(self.wait(self.recto.create(name, settings))?))
    }

    /// Creates a conversation that shows messages at version 0.
    pub fn create_with_messages(
        &self,
        name: &str,
        settings: Settings,
        messages: &[Message],
    ) -> Result<StoredConversation, Error> {
        let created = self.recto.create_with_messages(name, settings, messages);
        Ok(self.conversation_of(self.wait(created)?))
    }

    /// A conversation by its name.
    pub fn conversation(&self, name: &str) -> Result<StoredConversation, Error> {
        Ok(self.conversation_of(self.wait(self.recto.conversation(name))?))
    }

    /// A conversation by its name; it is created if there is none.
    pub fn conversation_or_create(
        &self,
        name: &str,
        settings: Settings,
    ) -> Result<StoredConversation, Error> {
        let talk = self.wait(self.recto.conversation_or_create(name, settings))?;
        Ok(self.conversation_of(talk))
    }

    /// Conversations in the order of their names.
    pub fn list(&self, after: Option<&str>, limit: usize) -> Result<Vec<ConversationInfo>, Error> {
        self.wait(self.recto.list(after, limit))
    }

    /// What is known of a conversation without opening it.
    pub fn info(&self, name: &str) -> Result<ConversationInfo, Error> {
        self.wait(self.recto.info(name))
    }

    /// Gives a conversation another name.
    pub fn rename(&self, from: &str, to: &str) -> Result<(), Error> {
        self.wait(self.recto.rename(from, to))
    }

    /// What is wanted of a conversation.
    pub fn policy(&self, name: &str) -> Result<Policy, Error> {
        self.wait(self.recto.policy(name))
    }

    /// Sets what is wanted of a conversation.
    pub fn set_policy(&self, name: &str, policy: &Policy) -> Result<(), Error> {
        self.wait(self.recto.set_policy(name, policy))
    }

    /// Takes a conversation away for good.
    pub fn remove(&self, name: &str) -> Result<(), Error> {
        self.wait(self.recto.remove(name))
    }

    /// The same store for another tenant.
    pub fn for_tenant(&self, tenant: Tenant) -> Recto {
        Recto { runtime: self.runtime.clone(), recto: self.recto.for_tenant(tenant) }
    }

    /// Copies everything into a new SQLite file.
    #[cfg(feature = "sqlite")]
    pub fn backup(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        self.wait(self.recto.backup(path))
    }

    /// Copies the conversations of a backup into this store.
    #[cfg(feature = "sqlite")]
    pub fn restore(&self, path: impl AsRef<Path>) -> Result<Restored, Error> {
        self.wait(self.recto.restore(path))
    }

    /// Messages that have all the words of `text`.
    pub fn search(&self, text: &str, limit: usize) -> Result<Vec<FoundMessage>, Error> {
        self.wait(self.recto.search(text, limit))
    }
}

impl StoredConversation {
    /// The async form, for what has no method here.
    pub fn inner(&self) -> &crate::StoredConversation {
        &self.talk
    }

    /// Performs a request on the newest version. `Ok` means that it is durable.
    pub fn apply(&self, request: impl Into<Request>) -> Result<Outcome, Error> {
        self.runtime.block_on(self.talk.apply(request))
    }

    /// [`apply`](Self::apply), with an expected version or an idempotency key.
    pub fn apply_with(&self, request: impl Into<Request>, write: Write) -> Result<Outcome, Error> {
        self.runtime.block_on(self.talk.apply_with(request, write))
    }

    /// Appends messages.
    pub fn append(&self, messages: impl IntoIterator<Item = Message>) -> Result<Outcome, Error> {
        self.runtime.block_on(self.talk.append(messages))
    }

    /// The newest version.
    pub fn version(&self) -> Result<Version, Error> {
        self.runtime.block_on(self.talk.version())
    }

    /// What the model reads, in order.
    pub fn messages(&self) -> Result<Vec<Entry>, Error> {
        self.runtime.block_on(self.talk.messages())
    }

    /// What the model read at a version, in order.
    pub fn messages_at(&self, version: Version) -> Result<Vec<Entry>, Error> {
        self.runtime.block_on(self.talk.messages_at(version))
    }

    /// Answers a query.
    pub fn ask(&self, query: &Query) -> Result<Vec<Entry>, Error> {
        self.runtime.block_on(self.talk.ask(query))
    }

    /// A message by its number, visible or not.
    pub fn message(&self, index: LogIndex) -> Result<Option<Message>, Error> {
        self.runtime.block_on(self.talk.message(index))
    }

    /// Log entries by their numbers, visible or not.
    pub fn entries(&self, indices: &[LogIndex]) -> Result<Vec<Entry>, Error> {
        self.runtime.block_on(self.talk.entries(indices))
    }

    /// What a request would do to the newest version.
    pub fn preview(&self, request: impl Into<Request>) -> Result<Preview, Error> {
        self.runtime.block_on(self.talk.preview(request))
    }

    /// The figures.
    pub fn stats(&self) -> Result<Stats, Error> {
        self.runtime.block_on(self.talk.stats())
    }

    /// The versions of a range in order.
    pub fn versions(&self, range: Range<u32>) -> Result<Vec<VersionInfo>, Error> {
        self.runtime.block_on(self.talk.versions(range))
    }

    /// What two versions have in common, and what not.
    pub fn diff(&self, from: Version, to: Version) -> Result<Diff, Error> {
        self.runtime.block_on(self.talk.diff(from, to))
    }

    /// Everything that happened to an entry, oldest first.
    pub fn blame(&self, index: LogIndex) -> Result<Vec<Blame>, Error> {
        self.runtime.block_on(self.talk.blame(index))
    }

    /// A batch of the live path.
    pub fn snapshot(&self, batch: BatchIndex) -> Result<BatchSnapshot, Error> {
        self.runtime.block_on(self.talk.snapshot(batch))
    }

    /// The mark map.
    pub fn mark_map(&self, scope: Scope) -> Result<MarkMap, Error> {
        self.runtime.block_on(self.talk.mark_map(scope))
    }

    /// The visible messages and a snapshot of each batch below the current one.
    pub fn state(&self) -> Result<ArrayState, Error> {
        self.runtime.block_on(self.talk.state())
    }

    /// Tool calls and results that the view has torn apart.
    pub fn warnings(&self) -> Result<Vec<Warning>, Error> {
        self.runtime.block_on(self.talk.warnings())
    }

    /// Sets other tools.
    pub fn set_tools(&self, tools: Vec<Tool>, write: Write) -> Result<Outcome, Error> {
        self.runtime.block_on(self.talk.set_tools(tools, write))
    }

    /// Drops the messages that no kept version shows, for good.
    pub fn prune(&self, keep: &Keep) -> Result<Pruned, Error> {
        self.runtime.block_on(self.talk.prune(keep))
    }

    /// Forks the conversation at a version.
    pub fn fork(&self, name: &str, at: Version) -> Result<StoredConversation, Error> {
        let talk = self.runtime.block_on(self.talk.fork(name, at))?;
        Ok(StoredConversation { runtime: self.runtime.clone(), talk })
    }

    /// Overwrites the body of a message for good.
    pub fn erase(&self, index: LogIndex) -> Result<Receipt, Error> {
        self.runtime.block_on(self.talk.erase(index))
    }

    /// Tests everything that is stored of the conversation.
    pub fn verify(&self) -> Result<Report, Error> {
        self.runtime.block_on(self.talk.verify())
    }
}
