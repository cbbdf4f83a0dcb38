//! New stores of every kind, removed after the test.

use recto_store::{MemoryStore, SqliteOptions, SqliteStore, Store};
use tempfile::TempDir;

/// A new store, and the folder that it may need.
pub(crate) struct Place {
    pub(crate) store: Box<dyn Store>,
    _folder: Option<TempDir>,
}

pub(crate) async fn memory() -> Place {
    Place { store: Box::new(MemoryStore::default()), _folder: None }
}

#[cfg(all(unix, feature = "postgres"))]
pub(crate) async fn postgres() -> Place {
    let address = testserver::PostgresServer::shared().database();
    let store = recto_store::PostgresStore::open(&address, Default::default());
    Place { store: Box::new(store.await.unwrap()), _folder: None }
}

/// A PostgreSQL store whose connections go through PgBouncer.
#[cfg(all(unix, feature = "postgres"))]
pub(crate) async fn pgbouncer() -> Place {
    static BOUNCER: std::sync::OnceLock<testserver::PgBouncer> = std::sync::OnceLock::new();
    let server = testserver::PostgresServer::shared();
    let bouncer = BOUNCER.get_or_init(|| testserver::PgBouncer::start(server));
    let direct = server.database();
    let database = direct.rsplit('/').next().expect("an address ends with the database");
    let address = bouncer.address(database);
    let store = recto_store::PostgresStore::open(&address, Default::default());
    Place { store: Box::new(store.await.unwrap()), _folder: None }
}

pub(crate) async fn sqlite() -> Place {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("it.db"), SqliteOptions::default());
    Place { store: Box::new(store.await.unwrap()), _folder: Some(folder) }
}
