//! A store that is watched, and in which something happens at the worst moment: right before rows
//! are rewritten.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use recto::{ConversationId, Store, Tenant};
use recto_store::{
    Commit, ConversationRow, Hit, IdempotencyKey, NewConversation, Page, PageKind, Rewrite,
    StoreFuture, StoredRows, Unpacked,
};

/// What somebody else does.
pub(crate) type Deed = Box<dyn FnOnce() -> StoreFuture<'static, ()> + Send>;

/// A store whose next rewrite comes too late.
pub(crate) struct Meddled {
    store: Arc<dyn Store>,
    deed: Mutex<Option<Deed>>,
    lists: AtomicUsize,
}

impl Meddled {
    pub(crate) fn with(store: Arc<dyn Store>, deed: Deed) -> Arc<Meddled> {
        Arc::new(Meddled { store, deed: Mutex::new(Some(deed)), lists: AtomicUsize::new(0) })
    }

    /// How often all names were listed.
    pub(crate) fn lists(&self) -> usize {
        self.lists.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for Meddled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Meddled({:?})", self.store)
    }
}

/// Methods that only pass on what they are given.
macro_rules! pass_on {
    ($($method:ident($($argument:ident: $type:ty),*) -> $answer:ty;)*) => {
        $(fn $method<'a>(&'a self, $($argument: $type),*) -> StoreFuture<'a, $answer> {
            self.store.$method($($argument),*)
        })*
    };
}

impl recto_store::sealed::Sealed for Meddled {}

impl Store for Meddled {
    pass_on! {
        create(new: NewConversation) -> ();
        find(tenant: &'a Tenant, name: &'a str) -> Option<ConversationRow>;
        get(tenant: &'a Tenant, id: ConversationId) -> Option<ConversationRow>;
        rename(tenant: &'a Tenant, from: &'a str, to: &'a str) -> ();
        set_policy(tenant: &'a Tenant, name: &'a str, policy: Option<String>) -> ();
        remove_at(tenant: &'a Tenant, name: &'a str, at: Option<u32>) -> ();
        unpacked(id: ConversationId, above: Option<u32>) -> Unpacked;
        pages(id: ConversationId, kind: PageKind, numbers: Range<u32>, bodies: bool) -> Vec<Page>;
        commit(commit: Commit) -> ();
        remember(id: ConversationId, key: IdempotencyKey) -> ();
        key(id: ConversationId, key: &'a str) -> Option<IdempotencyKey>;
        search(tenant: &'a Tenant, words: &'a [String],
            within: Option<&'a [(ConversationId, u32)]>, limit: usize) -> Vec<Hit>;
        clean() -> ();
        forks(id: ConversationId) -> Vec<ConversationRow>;
        tenants() -> Vec<Tenant>;
        rows(id: ConversationId) -> StoredRows;
        restore(new: NewConversation, rows: StoredRows) -> ();
        check() -> Vec<String>;
        size() -> Option<u64>;
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
        let deed = self.deed.lock().expect("nobody panics").take();
        Box::pin(async move {
            if let Some(deed) = deed {
                deed().await?;
            }
            self.store.rewrite(id, at, rewrite).await
        })
    }

    fn keeps_words(&self) -> bool {
        self.store.keeps_words()
    }
}
