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
//! Every async method of [`Recto`](crate::Recto) and [`StoredConversation`](crate::StoredConversation)
//! has its blocking form here, with the same name and arguments. Calling one inside an async runtime
//! panics: use the async form there.

use std::ops::Range;
#[cfg(feature = "sqlite")]
use std::path::Path;
use std::pin::{Pin, pin};
use std::sync::Arc;

use recto_core::{
    ArrayState, BatchIndex, BatchSnapshot, Blame, Diff, LogIndex, MarkMap, Message, Outcome, Query,
    Request, SavedSettings, Scope, Settings, Stats, Timestamp, Tool, Version, VersionInfo, Warning,
};
use recto_store::{ConversationId, Tenant};
use tokio::runtime::{Builder, Runtime};

#[cfg(feature = "sqlite")]
use crate::Restored;
use crate::{
    ConversationInfo, Entry, Error, FoundMessage, Keep, Options, Policy, Preview, Pruned, Receipt,
    Report, Watcher, Write,
};

/// An open store; see [`crate::Recto`]. Must not be used inside an async runtime.
#[derive(Clone, Debug)]
pub struct Recto {
    runtime: Arc<Runtime>,
    inner: crate::Recto,
}

/// A conversation in a store; see [`crate::StoredConversation`].
#[derive(Clone, Debug)]
pub struct StoredConversation {
    runtime: Arc<Runtime>,
    inner: crate::StoredConversation,
}

/// Runs a future to its end. It is passed on as a trait object: the runtime's code would otherwise
/// be compiled again for every method of this module.
fn wait<T>(runtime: &Runtime, future: impl Future<Output = T>) -> T {
    let mut output = None;
    {
        let mut work = pin!(async { output = Some(future.await) });
        let work: Pin<&mut dyn Future<Output = ()>> = work.as_mut();
        runtime.block_on(work);
    }
    output.expect("the future has ended")
}

/// Writes the blocking form of async methods that have the same name and arguments.
macro_rules! blocking {
    ($type:ident {
        $($(#[$attribute:meta])* fn $name:ident($($argument:ident: $kind:ty),*) -> $answer:ty;)*
    }) => {
        impl $type {$(
            #[doc = concat!(
                "Waits for [`", stringify!($name), "`](crate::", stringify!($type), "::",
                stringify!($name), ")."
            )]
            $(#[$attribute])*
            pub fn $name(&self, $($argument: $kind),*) -> Result<$answer, Error> {
                wait(&self.runtime, self.inner.$name($($argument),*))
            }
        )*}
    };
}

/// The same for methods that return a conversation.
macro_rules! blocking_handles {
    ($type:ident {
        $(fn $name:ident($($argument:ident: $kind:ty),*);)*
    }) => {
        impl $type {$(
            #[doc = concat!(
                "Waits for [`", stringify!($name), "`](crate::", stringify!($type), "::",
                stringify!($name), ")."
            )]
            pub fn $name(&self, $($argument: $kind),*) -> Result<StoredConversation, Error> {
                let inner = wait(&self.runtime, self.inner.$name($($argument),*))?;
                Ok(StoredConversation { runtime: self.runtime.clone(), inner })
            }
        )*}
    };
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
            source: Some(error.into()),
        })?;
        let inner = wait(&runtime, crate::Recto::open_with(address, options))?;
        Ok(Recto { runtime: Arc::new(runtime), inner })
    }

    /// The async form.
    pub fn inner(&self) -> &crate::Recto {
        &self.inner
    }

    /// Waits for any other future.
    pub fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        wait(&self.runtime, future)
    }

    /// The same store for another tenant.
    pub fn for_tenant(&self, tenant: Tenant) -> Recto {
        Recto { runtime: self.runtime.clone(), inner: self.inner.for_tenant(tenant) }
    }
}

blocking_handles! {
    Recto {
        fn create(name: &str, settings: Settings);
        fn create_with_messages(name: &str, settings: Settings, messages: &[Message]);
        fn conversation(name: &str);
        fn conversation_or_create(name: &str, settings: Settings);
    }
}

blocking! {
    Recto {
        fn info(name: &str) -> ConversationInfo;
        fn list(after: Option<&str>, limit: usize) -> Vec<ConversationInfo>;
        fn rename(from: &str, to: &str) -> ();
        fn remove(name: &str) -> ();
        fn remove_at(name: &str, expected_version: Option<Version>) -> ();
        fn clean() -> ();
        fn search(text: &str, limit: usize) -> Vec<FoundMessage>;
        fn policy(name: &str) -> Policy;
        fn set_policy(name: &str, policy: &Policy) -> ();
        #[cfg(feature = "sqlite")]
        fn backup(path: impl AsRef<Path>) -> ();
        #[cfg(feature = "sqlite")]
        fn backup_with(path: impl AsRef<Path>, progress: Watcher<'_>) -> ();
        #[cfg(feature = "sqlite")]
        fn restore(path: impl AsRef<Path>) -> Restored;
        #[cfg(feature = "sqlite")]
        fn restore_with(path: impl AsRef<Path>, progress: Watcher<'_>) -> Restored;
    }
}

impl StoredConversation {
    /// The async form.
    pub fn inner(&self) -> &crate::StoredConversation {
        &self.inner
    }

    /// What identifies the conversation, whatever its name.
    pub fn id(&self) -> ConversationId {
        self.inner.id()
    }
}

blocking_handles! {
    StoredConversation {
        fn fork(name: &str, at: Version);
    }
}

blocking! {
    StoredConversation {
        fn apply(request: impl Into<Request>) -> Outcome;
        fn apply_with(request: impl Into<Request>, write: Write) -> Outcome;
        fn preview(request: impl Into<Request>) -> Preview;
        fn preview_with(request: impl Into<Request>, write: Write) -> Preview;
        fn append(messages: impl IntoIterator<Item = Message>) -> Outcome;
        fn set_tools(tools: Vec<Tool>, write: Write) -> Outcome;
        fn preview_tools(tools: Vec<Tool>, write: Write) -> Preview;
        fn version() -> Version;
        fn stats() -> Stats;
        fn messages() -> Vec<Entry>;
        fn messages_at(version: Version) -> Vec<Entry>;
        fn messages_to_send(version: Version) -> Vec<Entry>;
        fn ask(query: &Query) -> Vec<Entry>;
        fn message(index: LogIndex) -> Option<Message>;
        fn entries(indices: &[LogIndex]) -> Vec<Entry>;
        fn times(indices: &[LogIndex]) -> Vec<Timestamp>;
        fn marks() -> Vec<(String, Vec<LogIndex>)>;
        fn marks_at(version: Version) -> Vec<(String, Vec<LogIndex>)>;
        fn tools() -> Vec<Tool>;
        fn tools_at(version: Version) -> Vec<Tool>;
        fn settings() -> SavedSettings;
        fn log_tokens(lengths: &[usize]) -> Vec<u64>;
        fn warnings() -> Vec<Warning>;
        fn warnings_at(version: Version) -> Vec<Warning>;
        fn version_info(version: Version) -> VersionInfo;
        fn versions(range: Range<u32>) -> Vec<VersionInfo>;
        fn parent(version: Version) -> Option<Version>;
        fn diff(from: Version, to: Version) -> Diff;
        fn blame(index: LogIndex) -> Vec<Blame>;
        fn snapshot(batch: BatchIndex) -> BatchSnapshot;
        fn mark_map(scope: Scope) -> MarkMap;
        fn mark_map_at(version: Version, scope: Scope) -> MarkMap;
        fn state() -> ArrayState;
        fn state_at(version: Version) -> ArrayState;
        fn prune(keep: &Keep) -> Pruned;
        fn prune_with(keep: &Keep, expected_version: Option<Version>) -> Pruned;
        fn preview_prune(keep: &Keep, expected_version: Option<Version>) -> Pruned;
        fn erase(index: LogIndex) -> Receipt;
        fn erase_with(index: LogIndex, expected_version: Option<Version>) -> Receipt;
        fn verify() -> Report;
        fn verify_with(progress: Watcher<'_>) -> Report;
    }
}
