//! New stores of every kind, removed after the test.

use std::sync::Arc;

use recto::{MemoryStore, Options, Recto, Store};

/// Defines each test for every store.
macro_rules! on_every_store {
    ($($name:ident)*) => {
        on_every_store!(@ in_memory memory $($name)*);
        on_every_store!(@ in_sqlite sqlite $($name)*);
        #[cfg(all(unix, feature = "postgres"))]
        on_every_store!(@ in_postgres postgres $($name)*);
    };
    (@ $module:ident $place:ident $($name:ident)*) => {
        mod $module {
            $(#[tokio::test]
            async fn $name() {
                super::$name(crate::places::$place().await).await;
            })*
        }
    };
}

pub(crate) use on_every_store;

/// A store and the folder of its file.
pub(crate) struct Place {
    pub(crate) store: Arc<dyn Store>,
    folder: Option<tempfile::TempDir>,
}

pub(crate) async fn memory() -> Place {
    Place { store: Arc::new(MemoryStore::default()), folder: None }
}

pub(crate) async fn sqlite() -> Place {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let path = folder.path().join("conversations.db");
    let store = recto_store::SqliteStore::open(&path, Default::default()).await;
    Place { store: Arc::new(store.expect("it can be opened")), folder: Some(folder) }
}

#[cfg(all(unix, feature = "postgres"))]
pub(crate) async fn postgres() -> Place {
    let address = testserver::PostgresServer::shared().database();
    let store = recto_store::PostgresStore::open(&address, Default::default()).await;
    Place { store: Arc::new(store.expect("it can be opened")), folder: None }
}

impl Place {
    /// A new `Recto`, with nothing loaded.
    pub(crate) fn recto(&self) -> Recto {
        Recto::with_store(self.store.clone(), Options::default())
    }

    /// Whether the store is a file.
    pub(crate) fn is_file(&self) -> bool {
        self.folder.is_some()
    }

    /// Whether a file of the store contains these bytes.
    pub(crate) fn has(&self, bytes: &[u8]) -> bool {
        let Some(folder) = &self.folder else { return false };
        let files = std::fs::read_dir(folder.path()).expect("the folder can be read");
        files.into_iter().any(|file| {
            let content = std::fs::read(file.expect("it is there").path()).unwrap_or_default();
            content.windows(bytes.len()).any(|window| window == bytes)
        })
    }
}
