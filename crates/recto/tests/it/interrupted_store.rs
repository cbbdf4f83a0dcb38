//! A store that counts calls, and in which another process changes something directly before rows are
//! rewritten.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use recto::{ConversationId, Store, Tenant};
use recto_store::{
    Commit, ConversationRow, Hit, IdempotencyKey, NewConversation, Page, PageKind,
    RestoredConversation, Rewrite, RewriteOf, StoreFuture, StoredRows, SurveyedConversation,
    Unpacked, WordSums, WordsOf,
};

/// The change of the other process.
pub(crate) type Interruption = Box<dyn FnOnce() -> StoreFuture<'static, ()> + Send>;

/// A store that performs a change of another process before its next rewrite.
pub(crate) struct InterruptedStore {
    store: Arc<dyn Store>,
    interruption: Mutex<Option<Interruption>>,
    lists: AtomicUsize,
    lookups: AtomicUsize,
    commits: AtomicUsize,
    reads: AtomicUsize,
    row_sets: AtomicUsize,
    failing_reads: AtomicUsize,
    fails_after_clearing: AtomicBool,
    commit_gate: tokio::sync::Mutex<()>,
    conflicts: AtomicBool,
}

impl InterruptedStore {
    pub(crate) fn with(store: Arc<dyn Store>, interruption: Interruption) -> Arc<InterruptedStore> {
        Arc::new(InterruptedStore {
            store,
            interruption: Mutex::new(Some(interruption)),
            lists: AtomicUsize::new(0),
            lookups: AtomicUsize::new(0),
            commits: AtomicUsize::new(0),
            reads: AtomicUsize::new(0),
            row_sets: AtomicUsize::new(0),
            failing_reads: AtomicUsize::new(0),
            fails_after_clearing: AtomicBool::new(false),
            commit_gate: tokio::sync::Mutex::new(()),
            conflicts: AtomicBool::new(false),
        })
    }

    /// A store that only counts.
    pub(crate) fn counting(store: Arc<dyn Store>) -> Arc<InterruptedStore> {
        Self::with(store, Box::new(|| Box::pin(async { Ok(()) })))
    }

    /// The next reads of unpacked rows fail.
    pub(crate) fn fail_reads(&self, count: usize) {
        self.failing_reads.store(count, Ordering::Relaxed);
    }

    /// The first read of unpacked rows fails after the search index is cleared the next time.
    pub(crate) fn fail_after_clearing(&self) {
        self.fails_after_clearing.store(true, Ordering::Relaxed);
    }

    fn check_read(&self) -> Result<(), recto_store::Error> {
        let next = |left: usize| left.checked_sub(1);
        match self.failing_reads.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next) {
            Ok(_) => Err(lost_connection()),
            Err(_) => Ok(()),
        }
    }

    /// From now on, writes conflict with a change that no read returns, as with a row that cannot be reached.
    pub(crate) fn conflict(&self) {
        self.conflicts.store(true, Ordering::Relaxed);
    }

    fn check_conflict(&self) -> Result<(), recto_store::Error> {
        match self.conflicts.load(Ordering::Relaxed) {
            true => Err(recto_store::Error::VersionConflict { expected: 1, current: 2 }),
            false => Ok(()),
        }
    }

    /// Commits wait until the guard is dropped.
    pub(crate) async fn hold_commits(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.commit_gate.lock().await
    }

    /// Number of commits, where a group is one commit.
    pub(crate) fn commits(&self) -> usize {
        self.commits.load(Ordering::Relaxed)
    }

    /// Number of requests for commits or pages.
    pub(crate) fn reads(&self) -> usize {
        self.reads.load(Ordering::Relaxed)
    }

    /// Number of conversations that these requests were about, where each request counts.
    pub(crate) fn row_sets(&self) -> usize {
        self.row_sets.load(Ordering::Relaxed)
    }

    fn count_read(&self, conversations: usize) {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.row_sets.fetch_add(conversations, Ordering::Relaxed);
    }

    /// Number of calls that find conversations by their ids.
    pub(crate) fn lookups(&self) -> usize {
        self.lookups.load(Ordering::Relaxed)
    }

    /// Number of calls that list all names.
    pub(crate) fn lists(&self) -> usize {
        self.lists.load(Ordering::Relaxed)
    }
}

fn lost_connection() -> recto_store::Error {
    let (action, reason) = ("reading", "the connection was lost".to_owned());
    recto_store::Error::Failed { action, reason, source: None }
}

impl fmt::Debug for InterruptedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InterruptedStore({:?})", self.store)
    }
}

/// Methods that only call the inner store.
macro_rules! pass_on {
    ($($method:ident($($argument:ident: $type:ty),*) -> $answer:ty;)*) => {
        $(fn $method<'a>(&'a self, $($argument: $type),*) -> StoreFuture<'a, $answer> {
            self.store.$method($($argument),*)
        })*
    };
}

impl recto_store::sealed::Sealed for InterruptedStore {}

impl Store for InterruptedStore {
    pass_on! {
        create(new: NewConversation) -> ();
        find(tenant: &'a Tenant, name: &'a str) -> Option<ConversationRow>;
        rename(tenant: &'a Tenant, from: &'a str, to: &'a str) -> ();
        set_policy(tenant: &'a Tenant, name: &'a str, policy: Option<String>) -> ();
        remember(id: ConversationId, key: IdempotencyKey) -> ();
        key(id: ConversationId, key: &'a str) -> Option<IdempotencyKey>;
        search(tenant: &'a Tenant, words: &'a [String], limit: usize) -> Vec<Hit>;
        clean() -> ();
        forks(id: ConversationId) -> Vec<ConversationRow>;
        rows(id: ConversationId) -> StoredRows;
        restore(conversations: Vec<RestoredConversation>) -> ();
        survey() -> Vec<SurveyedConversation>;
        indexed_words(tenant: &'a Tenant) -> WordSums;
        check() -> Vec<String>;
        check_words() -> Vec<String>;
        add_words(id: ConversationId, words: Vec<WordsOf>) -> ();
        size() -> Option<u64>;
    }

    fn clear_words(&self) -> StoreFuture<'_, bool> {
        Box::pin(async move {
            let cleared = self.store.clear_words().await?;
            if self.fails_after_clearing.swap(false, Ordering::Relaxed) {
                self.fail_reads(1);
            }
            Ok(cleared)
        })
    }

    fn get_all<'a>(
        &'a self,
        tenant: &'a Tenant,
        ids: Vec<ConversationId>,
    ) -> StoreFuture<'a, Vec<ConversationRow>> {
        self.lookups.fetch_add(1, Ordering::Relaxed);
        self.store.get_all(tenant, ids)
    }

    fn unpacked(&self, id: ConversationId, above: Option<u32>) -> StoreFuture<'_, Unpacked> {
        if let Err(error) = self.check_read() {
            return Box::pin(async { Err(error) });
        }
        self.count_read(1);
        self.store.unpacked(id, above)
    }

    fn unpacked_of(&self, ids: Vec<ConversationId>) -> StoreFuture<'_, Vec<Unpacked>> {
        if let Err(error) = self.check_read() {
            return Box::pin(async { Err(error) });
        }
        self.count_read(ids.len());
        self.store.unpacked_of(ids)
    }

    fn pages(
        &self,
        id: ConversationId,
        kind: PageKind,
        numbers: Range<u32>,
        bodies: bool,
    ) -> StoreFuture<'_, Vec<Page>> {
        self.count_read(1);
        self.store.pages(id, kind, numbers, bodies)
    }

    fn pages_of(
        &self,
        parts: Vec<(ConversationId, Range<u32>)>,
        kind: PageKind,
        bodies: bool,
    ) -> StoreFuture<'_, Vec<Vec<Page>>> {
        self.count_read(parts.len());
        self.store.pages_of(parts, kind, bodies)
    }

    fn commit(&self, commit: Commit) -> StoreFuture<'_, ()> {
        self.commits.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            drop(self.commit_gate.lock().await);
            self.check_conflict()?;
            self.store.commit(commit).await
        })
    }

    fn commit_all(&self, commits: Vec<Commit>) -> StoreFuture<'_, ()> {
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.store.commit_all(commits)
    }

    fn list<'a>(
        &'a self,
        tenant: &'a Tenant,
        after: Option<&'a str>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<ConversationRow>> {
        self.lists.fetch_add(1, Ordering::Relaxed);
        self.store.list(tenant, after, limit)
    }

    fn rewrite(&self, id: ConversationId, at: u32, rewrite: Rewrite) -> StoreFuture<'_, ()> {
        let interruption = self.interruption.lock().expect("no thread panics").take();
        Box::pin(async move {
            if let Some(interruption) = interruption {
                interruption().await?;
            }
            self.check_conflict()?;
            self.store.rewrite(id, at, rewrite).await
        })
    }

    fn remove_with<'a>(
        &'a self,
        tenant: &'a Tenant,
        name: &'a str,
        rewrites: Vec<RewriteOf>,
    ) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            self.check_conflict()?;
            self.store.remove_with(tenant, name, rewrites).await
        })
    }

    fn keeps_words(&self) -> bool {
        self.store.keeps_words()
    }
}
