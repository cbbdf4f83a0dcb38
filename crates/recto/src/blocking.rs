//! The API for programs without async: every method blocks until its result is there.
//!
//! ```
//! use recto::blocking::Recto;
//! use recto::{Approx, Message, Settings};
//!
//! let recto = Recto::open("memory:")?;
//! let conversation = recto.create("support", Settings::counting_with(Approx))?;
//! conversation.append([Message::user("Checkout fails!")])?;
//! assert_eq!(conversation.messages()?.len(), 1);
//! # Ok::<(), recto::Error>(())
//! ```
//!
//! Every async method of [`Recto`](crate::Recto) and [`Conversation`](crate::Conversation) has a blocking
//! form here, with the same name and arguments. An open store owns a runtime with one worker thread. A
//! blocking method panics if it is called inside an async runtime: use the async form there.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
#[cfg(feature = "sqlite")]
use std::path::Path;
use std::pin::{Pin, pin};
use std::sync::Arc;

use recto_core::{
    ArrayState, BatchIndex, BatchSnapshot, Blame, Diff, Limits, LogIndex, MarkBlame, MarkMap,
    Message, Outcome, Query, Request, SavedSettings, Scope, Settings, Stats, Timestamp, Tool,
    Version, VersionInfo, Warning,
};
#[cfg(feature = "format")]
use recto_format::Input;
use recto_store::{ConversationId, Store, Tenant};
use tokio::runtime::{Builder, Runtime};

use crate::temporary::HeldScope;
#[cfg(feature = "sqlite")]
use crate::{BackupReport, RestoreReport};
use crate::{
    ConversationInfo, Entry, ErasedMessage, Error, ExaminedConversation, FoundMessage, Keep,
    Options, Policy, Preview, Progress, ProgressFn, PruneReport, SalvageReport, Temporary,
    VerifyReport, WriteOptions,
};
#[cfg(feature = "format")]
use crate::{ImportOptions, ImportedTranscript};

/// An open store; see [`crate::Recto`]. Must not be used inside an async runtime.
#[derive(Clone, Debug)]
pub struct Recto {
    runtime: Arc<Runtime>,
    inner: crate::Recto,
}

/// A handle of a stored conversation; see [`crate::Conversation`].
#[derive(Clone, Debug)]
pub struct Conversation {
    runtime: Arc<Runtime>,
    inner: crate::Conversation,
}

/// Runs a future to its end. The runtime receives it as a trait object: otherwise its code would be
/// compiled again for every method of this module.
fn wait<T>(runtime: &Runtime, future: impl Future<Output = T>) -> T {
    let mut output = None;
    {
        let mut work = pin!(async { output = Some(future.await) });
        let work: Pin<&mut dyn Future<Output = ()>> = work.as_mut();
        runtime.block_on(work);
    }
    output.expect("the future has ended")
}

/// Defines the blocking forms of async methods with the same name and arguments. A method without `->`
/// returns a conversation.
macro_rules! blocking {
    (@output) => { Conversation };
    (@output $output:ty) => { $output };
    (@wrapped $handle:ident, $inner:ident) => {
        Conversation { runtime: $handle.runtime.clone(), inner: $inner }
    };
    (@wrapped $handle:ident, $inner:ident, $output:ty) => { $inner };
    ($type:ident {
        $($(#[$attribute:meta])*
        fn $name:ident($($argument:ident: $kind:ty),*) $(-> $output:ty)?;)*
    }) => {
        impl $type {$(
            #[doc = concat!(
                "Waits for [`", stringify!($name), "`](crate::", stringify!($type), "::",
                stringify!($name), ")."
            )]
            $(#[$attribute])*
            pub fn $name(&self, $($argument: $kind),*) -> Result<blocking!(@output $($output)?), Error> {
                let inner = wait(&self.runtime, self.inner.$name($($argument),*))?;
                Ok(blocking!(@wrapped self, inner $(, $output)?))
            }
        )*}
    };
}

impl Recto {
    /// Opens a store by its address; see [`crate::Recto::open`].
    pub fn open(address: &str) -> Result<Recto, Error> {
        Self::open_with(address, Options::default())
    }

    /// [`open`](Self::open) with options.
    pub fn open_with(address: &str, options: Options) -> Result<Recto, Error> {
        let runtime = start()?;
        let inner = wait(&runtime, crate::Recto::open_with(address, options))?;
        Ok(Recto { runtime: Arc::new(runtime), inner })
    }

    /// Uses a store that is already open.
    pub fn with_store(store: Arc<dyn Store>, options: Options) -> Result<Recto, Error> {
        let inner = crate::Recto::with_store(store, options);
        Ok(Recto { runtime: Arc::new(start()?), inner })
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

    /// Waits for [`salvage_into`](crate::Recto::salvage_into).
    pub fn salvage_into(
        &self,
        name: &str,
        target: &Recto,
        to: &str,
    ) -> Result<SalvageReport, Error> {
        wait(&self.runtime, self.inner.salvage_into(name, &target.inner, to))
    }

    /// The limits on the messages of requests that are read as JSON.
    pub fn limits(&self) -> &Limits {
        self.inner.limits()
    }

    /// The underlying store.
    pub fn store(&self) -> &Arc<dyn Store> {
        self.inner.store()
    }
}

fn start() -> Result<Runtime, Error> {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
    runtime.map_err(|error| {
        recto_store::Error::Failed {
            action: "starting",
            reason: error.to_string(),
            source: Some(error.into()),
        }
        .into()
    })
}

blocking! {
    Recto {
        fn create(name: &str, settings: Settings);
        fn create_with_messages(name: &str, settings: Settings, messages: &[Message]);
        fn conversation(name: &str);
        fn conversation_by_id(id: ConversationId);
        fn conversation_or_create(name: &str, settings: Settings);
        fn info(name: &str) -> ConversationInfo;
        fn info_by_id(id: ConversationId) -> ConversationInfo;
        fn list(after: Option<&str>, limit: usize) -> Vec<ConversationInfo>;
        fn rename(from: &str, to: &str) -> ();
        fn remove(name: &str) -> ();
        fn remove_if(name: &str, expected_version: impl Into<Option<Version>>) -> ();
        fn clean() -> ();
        fn salvage(name: &str, to: &str) -> SalvageReport;
        fn check() -> Vec<String>;
        fn examine() -> Vec<ExaminedConversation>;
        fn verify_all(
            progress: &mut (dyn FnMut(&str, Progress) + Send)
        ) -> Vec<(String, VerifyReport)>;
        fn verify_named(name: &str, progress: ProgressFn<'_>) -> VerifyReport;
        fn search(text: &str, limit: usize) -> Vec<FoundMessage>;
        fn search_without_index(text: &str, limit: usize) -> Vec<FoundMessage>;
        #[cfg(feature = "format")]
        fn import(input: impl Input + Send + 'static, options: ImportOptions) -> ImportedTranscript;
        #[cfg(feature = "format")]
        fn import_with_progress(
            input: impl Input + Send + 'static,
            options: ImportOptions,
            progress: &mut (dyn FnMut(u64) + Send)
        ) -> ImportedTranscript;
        #[cfg(feature = "sqlite")]
        fn backup(path: impl AsRef<Path>) -> ();
        #[cfg(feature = "sqlite")]
        fn backup_with_progress(path: impl AsRef<Path>, progress: ProgressFn<'_>) -> ();
        #[cfg(feature = "sqlite")]
        fn backup_damaged(path: impl AsRef<Path>, progress: ProgressFn<'_>) -> BackupReport;
        #[cfg(feature = "sqlite")]
        fn restore(path: impl AsRef<Path>) -> RestoreReport;
        #[cfg(feature = "sqlite")]
        fn restore_with_progress(path: impl AsRef<Path>, progress: ProgressFn<'_>) -> RestoreReport;
    }
}

impl Conversation {
    /// The async form.
    pub fn inner(&self) -> &crate::Conversation {
        &self.inner
    }

    /// The id. It never changes; the name can.
    pub fn id(&self) -> ConversationId {
        self.inner.id()
    }

    /// Runs work in a temporary scope; see
    /// [`with_temporary`](crate::Conversation::with_temporary). The lease is renewed on the thread of the
    /// runtime.
    pub fn with_temporary<T>(
        &self,
        scope: Temporary,
        work: impl FnOnce() -> T,
    ) -> Result<T, Error> {
        let held = Arc::new(wait(&self.runtime, HeldScope::begin(&self.inner, scope))?);
        let renewed = held.clone();
        let renewal = self.runtime.spawn(async move {
            renewed.keep_renewing().await;
        });
        let done = catch_unwind(AssertUnwindSafe(work));
        renewal.abort();
        wait(&self.runtime, async {
            // The task has ended when it can be awaited, and has dropped its reference.
            let _cancelled = renewal.await;
            let held = Arc::into_inner(held).expect("the renewal has ended");
            held.end(done.is_ok()).await
        })?;
        match done {
            Ok(done) => Ok(done),
            Err(panic) => resume_unwind(panic),
        }
    }
}

blocking! {
    Conversation {
        fn fork(name: &str, at: Version);
        fn apply(request: impl Into<Request>) -> Outcome;
        fn apply_with(request: impl Into<Request>, options: WriteOptions) -> Outcome;
        fn preview(request: impl Into<Request>) -> Preview;
        fn preview_with(request: impl Into<Request>, options: WriteOptions) -> Preview;
        fn append(messages: impl IntoIterator<Item = Message>) -> Outcome;
        fn set_tools(tools: Vec<Tool>) -> Outcome;
        fn set_tools_with(tools: Vec<Tool>, options: WriteOptions) -> Outcome;
        fn preview_tools(tools: Vec<Tool>) -> Preview;
        fn preview_tools_with(tools: Vec<Tool>, options: WriteOptions) -> Preview;
        fn version() -> Version;
        fn stats() -> Stats;
        fn messages() -> Vec<Entry>;
        fn messages_at(version: Version) -> Vec<Entry>;
        fn messages_to_send(version: Version) -> Vec<Entry>;
        fn query(query: &Query) -> Vec<Entry>;
        fn count(query: &Query) -> usize;
        fn message(index: LogIndex) -> Option<Message>;
        fn entries(indices: &[LogIndex]) -> Vec<Entry>;
        fn times(indices: &[LogIndex]) -> Vec<Timestamp>;
        fn marks() -> Vec<(String, Vec<LogIndex>)>;
        fn marks_at(version: Version) -> Vec<(String, Vec<LogIndex>)>;
        fn tools() -> Vec<Tool>;
        fn tools_at(version: Version) -> Vec<Tool>;
        fn settings() -> SavedSettings;
        fn policy() -> Policy;
        fn set_policy(policy: &Policy) -> ();
        fn log_tokens(lengths: &[usize]) -> Vec<u64>;
        fn warnings() -> Vec<Warning>;
        fn warnings_at(version: Version) -> Vec<Warning>;
        fn version_info(version: Version) -> VersionInfo;
        fn versions(range: Range<Version>) -> Vec<VersionInfo>;
        fn parent(version: Version) -> Option<Version>;
        fn undo_target(version: Version) -> Option<Version>;
        fn diff(from: Version, to: Version) -> Diff;
        fn blame(index: LogIndex) -> Vec<Blame>;
        fn blame_marks(index: LogIndex) -> Vec<MarkBlame>;
        fn blame_hidden(at: Version) -> Vec<(LogIndex, Blame)>;
        fn snapshot(batch: BatchIndex) -> BatchSnapshot;
        fn mark_map(scope: Scope) -> MarkMap;
        fn mark_map_at(version: Version, scope: Scope) -> MarkMap;
        fn state() -> ArrayState;
        fn state_at(version: Version) -> ArrayState;
        #[cfg(feature = "format")]
        fn invalid_thinking(version: Version, entries: &[Entry]) -> Vec<usize>;
        fn end_expired_scopes() -> usize;
        fn end_all_scopes() -> usize;
        fn prune(keep: &Keep) -> PruneReport;
        fn prune_if(keep: &Keep, expected_version: impl Into<Option<Version>>) -> PruneReport;
        fn preview_prune(keep: &Keep) -> PruneReport;
        fn preview_prune_if(keep: &Keep, expected_version: impl Into<Option<Version>>) -> PruneReport;
        fn erase(index: LogIndex) -> ErasedMessage;
        fn erase_if(index: LogIndex, expected_version: impl Into<Option<Version>>) -> ErasedMessage;
        fn verify() -> VerifyReport;
        fn verify_with_progress(progress: ProgressFn<'_>) -> VerifyReport;
    }
}
