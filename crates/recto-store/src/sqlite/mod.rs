//! A store that keeps everything in one SQLite file.
//!
//! Invariants:
//! - One thread writes, in the order of the requests, many requests per transaction
//!   (`write_queue.rs`, `file_writer.rs`).
//! - Readers run at the same time and see only what is durable (`readers.rs`).
//! - Any number of processes may open the same file.
//! - Every row has a checksum, which is verified whenever the row is read (`checksum.rs`).
//! - After the disk failed to sync, the store refuses writes until it is opened again.
//! - A file that was deleted or replaced since it was opened accepts no writes (`opened_files.rs`).
//! - A file that cannot be written can be read.
//!
//! The tables are in `schema.rs`, the statements that write in `write_request.rs`, those that read in
//! `read.rs`, the search in `search_index.rs`.

mod checksum;
mod connection;
mod erasure;
mod fault;
mod file_writer;
mod inspection;
mod newest_versions;
mod opened_files;
mod place;
mod read;
mod readers;
mod schema;
mod search_index;
mod word_segments;
mod write_queue;
mod write_request;

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode};

use self::connection::Access;
use self::fault::Fault;
use self::file_writer::FileWriter;
use self::readers::Readers;
use self::write_queue::WriteQueue;
use self::write_request::WriteRequest;
use crate::checks;
use crate::error::Reason;
use crate::{
    Commit, ConversationId, ConversationRow, Error, Hit, IdempotencyKey, NewConversation, Page,
    PageKind, RestoredConversation, Rewrite, RewriteOf, Store, StoreFuture, StoredRows,
    SurveyedConversation, Tenant, Unpacked, WordSums, WordsOf,
};

const DEFAULT_WAIT: Duration = Duration::from_secs(10);

/// Options of a SQLite store. Fields may be added: construct it with `..SqliteOptions::default()`.
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    /// Whether a new file gets a search index. Default: true. An existing file keeps what it was
    /// created with, because the store receives the words of an entry only once.
    pub search: bool,
    /// Maximum number of concurrent reads. Default: 4.
    pub readers: usize,
    /// How long a request waits for other processes that use the file. After it, a write fails and changes
    /// nothing, and erasing returns [`CopiesLeft`](Error::CopiesLeft). Default: 10 seconds.
    pub wait: Duration,
    /// Commits without syncing: a power failure can lose acknowledged requests. The tests of power
    /// failures use it to show that they notice such a loss.
    #[doc(hidden)]
    pub unsynced: bool,
}

impl Default for SqliteOptions {
    fn default() -> SqliteOptions {
        SqliteOptions { search: true, readers: 4, wait: DEFAULT_WAIT, unsynced: false }
    }
}

/// Conversations in a SQLite file.
///
/// ```
/// # async fn example() -> Result<(), recto_store::Error> {
/// use recto_store::{SqliteOptions, SqliteStore, Store, Tenant};
///
/// let store = SqliteStore::open("recto.db", SqliteOptions::default()).await?;
/// let names = store.list(&Tenant::default(), None, 100).await?;
/// store.backup("today.db").await?;
/// # Ok(())
/// # }
/// ```
pub struct SqliteStore {
    path: PathBuf,
    has_index: bool,
    readers: Arc<Readers>,
    /// Why the file can only be read, if it cannot be written.
    writer: Result<WriteQueue<WriteRequest>, String>,
}

impl SqliteStore {
    /// Opens a file, or creates it.
    pub async fn open(
        path: impl Into<PathBuf>,
        options: SqliteOptions,
    ) -> Result<SqliteStore, Error> {
        let path = path.into();
        let opened = tokio::task::spawn_blocking(move || SqliteStore::open_now(&path, &options));
        opened.await.unwrap_or_else(|_| Err(Error::failed(OPENING, "the program is shutting down")))
    }

    fn open_now(path: &Path, options: &SqliteOptions) -> Result<SqliteStore, Error> {
        connection::wait_at_most(options.wait);
        // Relative paths would mean another file after a change of folder.
        let path = std::path::absolute(path).map_err(|error| Error::failed(OPENING, error))?;
        let writable = SqliteStore::open_to_write(&path, options);
        match writable {
            // A file that cannot be written can be read.
            Err(ref error) if is_not_writable(error) => {
                SqliteStore::open_to_read(&path, options, why_not_written(error)).or(writable)
            }
            opened => opened,
        }
    }

    fn open_to_write(path: &Path, options: &SqliteOptions) -> Result<SqliteStore, Error> {
        let failed = |fault: Fault| fault.during(OPENING);
        let db = connection::open(path, true).map_err(|error| {
            match fault::is(&error, ErrorCode::NotADatabase) {
                true => Error::NotAStore { path: path.display().to_string() },
                false => Error::failed(OPENING, why_not_opened(path, error)),
            }
        })?;
        schema::prepare(&db, path, options.search)?;
        if options.unsynced {
            let lowered = db.pragma_update(None, "synchronous", "NORMAL");
            lowered.map_err(|error| failed(error.into()))?;
        }
        let has_index = search_index::exists(&db).map_err(failed)?;
        let writer =
            FileWriter::new(path.to_owned(), db, has_index, options.wait).map_err(failed)?;
        let writer = WriteQueue::start(writer).map_err(|error| Error::failed(OPENING, error))?;
        let readers = Readers::new(path.to_owned(), Access::Write, options);
        Ok(SqliteStore { path: path.to_owned(), has_index, readers, writer: Ok(writer) })
    }

    fn open_to_read(
        path: &Path,
        options: &SqliteOptions,
        reason: String,
    ) -> Result<SqliteStore, Error> {
        let failed = |fault: Fault| fault.during(OPENING);
        let has_log = inspection::has_log(path);
        let mut accesses = vec![Access::ReadOnly];
        accesses.extend((!has_log).then_some(Access::Immutable));
        let mut opened = Err(Error::failed(OPENING, NOT_WRITABLE));
        for access in accesses {
            opened = connection::open_reader(path, access)
                .map_err(Fault::from)
                .and_then(|db| schema::check_readable(&db, path).map(|()| db))
                .map(|db| (db, access))
                .map_err(failed);
            if opened.is_ok() {
                break;
            }
        }
        let (db, access) = opened?;
        let has_index = search_index::exists(&db).map_err(failed)?;
        let readers = Readers::new(path.to_owned(), access, options);
        Ok(SqliteStore { path: path.to_owned(), has_index, readers, writer: Err(reason) })
    }

    /// Copies everything as it is now into a new file, while other requests read and write. The
    /// copy is a separate store. Refused if there is a file of that name.
    pub async fn backup(&self, to: impl Into<PathBuf>) -> Result<(), Error> {
        let to = to.into();
        self.readers.read("copying the file", move |db| inspection::copy(db, &to)).await
    }

    /// Sends a request to the writer, and waits until it is durable.
    fn write<'a>(&'a self, checked: Result<WriteRequest, Error>) -> StoreFuture<'a, ()> {
        self.write_all(checked.map(|request| vec![request]))
    }

    fn write_all<'a>(&'a self, checked: Result<Vec<WriteRequest>, Error>) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let requests = checked?;
            let Some(action) = requests.first().map(WriteRequest::action) else { return Ok(()) };
            match &self.writer {
                Ok(writer) => writer.write(requests, action).await,
                Err(reason) => Err(Error::failed(action, &**reason)),
            }
        })
    }

    fn read<T: Send + 'static>(
        &self,
        action: &'static str,
        work: impl FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> StoreFuture<'_, T> {
        Box::pin(self.readers.read(action, work))
    }
}

const OPENING: &str = "opening the file";

const NOT_WRITABLE: &str = "the file or its folder cannot be written";

/// Whether a store could not be opened because nothing can be written.
fn is_not_writable(error: &Error) -> bool {
    let Error::Failed { source: Some(cause), .. } = error else { return false };
    let code = cause.downcast_ref::<rusqlite::ffi::Error>().map(|error| error.code);
    use ErrorCode::{CannotOpen, DiskFull, PermissionDenied, ReadOnly, SystemIoFailure};
    code.is_some_and(|code| {
        [CannotOpen, DiskFull, PermissionDenied, ReadOnly, SystemIoFailure].contains(&code)
    })
}

/// Why nothing can be written: the permissions, or the disk.
fn why_not_written(error: &Error) -> String {
    let Error::Failed { source: Some(cause), reason, .. } = error else {
        return NOT_WRITABLE.to_owned();
    };
    let code = cause.downcast_ref::<rusqlite::ffi::Error>().map(|error| error.code);
    match code {
        Some(ErrorCode::DiskFull | ErrorCode::SystemIoFailure) => {
            format!("{NOT_WRITABLE}: {reason}")
        }
        _ => NOT_WRITABLE.to_owned(),
    }
}

/// Why a file cannot be opened, as far as its folder shows.
fn why_not_opened(path: &Path, error: rusqlite::Error) -> Reason {
    let shown = path.display();
    let folder = path.parent().unwrap_or(path);
    let Reason { text, cause } = fault::reason(&error);
    let text = if path.is_dir() {
        format!("{shown} is a folder; name a file in it")
    } else if !folder.is_dir() {
        format!("the folder {} does not exist; create it first", folder.display())
    } else {
        format!("{shown}: {text}; see whether it and its folder may be read and written")
    };
    Reason { text, cause }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SqliteStore({})", self.path.display())
    }
}

impl Drop for SqliteStore {
    /// The writer, which is dropped after this, is the last to close the file, so SQLite also deletes the
    /// log.
    fn drop(&mut self) {
        self.readers.close();
    }
}

impl crate::sealed::Sealed for SqliteStore {}

impl Store for SqliteStore {
    fn create(&self, new: NewConversation) -> StoreFuture<'_, ()> {
        self.write(checks::check_new(&new).map(|()| WriteRequest::Create(Box::new(new))))
    }

    fn find<'a>(
        &'a self,
        tenant: &'a Tenant,
        name: &'a str,
    ) -> StoreFuture<'a, Option<ConversationRow>> {
        let (tenant, name) = (tenant.clone(), name.to_owned());
        self.read("looking for a conversation", move |db| read::find(db, &tenant, &name))
    }

    fn get_all<'a>(
        &'a self,
        tenant: &'a Tenant,
        ids: Vec<ConversationId>,
    ) -> StoreFuture<'a, Vec<ConversationRow>> {
        let tenant = tenant.clone();
        self.read("looking for conversations", move |db| read::get_all(db, &tenant, ids))
    }

    fn list<'a>(
        &'a self,
        tenant: &'a Tenant,
        after: Option<&'a str>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<ConversationRow>> {
        let (tenant, after) = (tenant.clone(), after.map(str::to_owned));
        self.read("listing conversations", move |db| {
            read::list(db, &tenant, after.as_deref(), limit)
        })
    }

    fn rename<'a>(&'a self, tenant: &'a Tenant, from: &'a str, to: &'a str) -> StoreFuture<'a, ()> {
        let work = WriteRequest::Rename {
            tenant: tenant.clone(),
            from: from.to_owned(),
            to: to.to_owned(),
        };
        self.write(checks::check_name(to).map(|()| work))
    }

    fn set_policy<'a>(
        &'a self,
        tenant: &'a Tenant,
        name: &'a str,
        policy: Option<String>,
    ) -> StoreFuture<'a, ()> {
        self.write(Ok(WriteRequest::SetPolicy {
            tenant: tenant.clone(),
            name: name.to_owned(),
            policy,
        }))
    }

    fn remove_with<'a>(
        &'a self,
        tenant: &'a Tenant,
        name: &'a str,
        rewrites: Vec<RewriteOf>,
    ) -> StoreFuture<'a, ()> {
        let (tenant, name) = (tenant.clone(), name.to_owned());
        self.write(Ok(WriteRequest::Remove { tenant, name, rewrites }))
    }

    fn unpacked(&self, id: ConversationId, above: Option<u32>) -> StoreFuture<'_, Unpacked> {
        self.read("reading versions", move |db| read::unpacked(db, id, above))
    }

    fn pages(
        &self,
        id: ConversationId,
        kind: PageKind,
        numbers: Range<u32>,
        bodies: bool,
    ) -> StoreFuture<'_, Vec<Page>> {
        self.read("reading pages", move |db| read::pages(db, id, kind, numbers, bodies))
    }

    fn pages_of(
        &self,
        parts: Vec<(ConversationId, Range<u32>)>,
        kind: PageKind,
        bodies: bool,
    ) -> StoreFuture<'_, Vec<Vec<Page>>> {
        self.read("reading pages", move |db| {
            let parts = parts.into_iter();
            parts.map(|(id, numbers)| read::pages(db, id, kind, numbers, bodies)).collect()
        })
    }

    fn unpacked_of(&self, ids: Vec<ConversationId>) -> StoreFuture<'_, Vec<Unpacked>> {
        self.read("reading versions", move |db| {
            ids.into_iter().map(|id| read::unpacked(db, id, None)).collect()
        })
    }

    fn commit(&self, commit: Commit) -> StoreFuture<'_, ()> {
        self.commit_all(vec![commit])
    }

    fn commit_all(&self, commits: Vec<Commit>) -> StoreFuture<'_, ()> {
        let checked = commits.iter().try_for_each(checks::check_commit);
        let request = |commit| WriteRequest::Commit(Box::new(commit));
        self.write_all(checked.map(|()| commits.into_iter().map(request).collect()))
    }

    fn remember(&self, conversation: ConversationId, key: IdempotencyKey) -> StoreFuture<'_, ()> {
        self.write(checks::check_key(&key).map(|()| WriteRequest::Remember { conversation, key }))
    }

    fn key<'a>(
        &'a self,
        id: ConversationId,
        key: &'a str,
    ) -> StoreFuture<'a, Option<IdempotencyKey>> {
        let key = key.to_owned();
        self.read("reading an idempotency key", move |db| read::key(db, id, &key))
    }

    fn search<'a>(
        &'a self,
        tenant: &'a Tenant,
        words: &'a [String],
        limit: usize,
    ) -> StoreFuture<'a, Vec<Hit>> {
        if !self.has_index {
            return Box::pin(std::future::ready(Err(Error::NoSearch)));
        }
        let (tenant, words) = (tenant.clone(), words.to_vec());
        self.read("searching", move |db| search_index::find(db, &tenant, &words, limit))
    }

    fn rewrite(
        &self,
        conversation: ConversationId,
        at: u32,
        rewrite: Rewrite,
    ) -> StoreFuture<'_, ()> {
        self.write(Ok(WriteRequest::Rewrite(RewriteOf { conversation, at, rewrite })))
    }

    fn clean(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            self.rebuild_indexes().await?;
            self.write(Ok(WriteRequest::Clean)).await
        })
    }

    fn check_words(&self) -> StoreFuture<'_, Vec<String>> {
        match self.has_index {
            true => {
                self.read("checking the search index", |db| Ok(inspection::damage_of_words(db)))
            }
            false => Box::pin(std::future::ready(Ok(Vec::new()))),
        }
    }

    fn clear_words(&self) -> StoreFuture<'_, bool> {
        let has_index = self.has_index;
        let cleared = self.write(Ok(WriteRequest::ClearWords));
        Box::pin(async move { cleared.await.map(|()| has_index) })
    }

    fn add_words(&self, conversation: ConversationId, words: Vec<WordsOf>) -> StoreFuture<'_, ()> {
        self.write(Ok(WriteRequest::AddWords { conversation, words }))
    }

    fn rebuild_indexes(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let is_damaged = |db: &Connection| {
                Ok(read::sound_rewrites(db).is_err() || inspection::has_damaged_index(db)?)
            };
            match self.read("checking the indexes", is_damaged).await? {
                true => self.write(Ok(WriteRequest::RebuildIndexes)).await,
                false => Ok(()),
            }
        })
    }

    fn forks(&self, id: ConversationId) -> StoreFuture<'_, Vec<ConversationRow>> {
        self.read("looking for forks", move |db| read::forks(db, id))
    }

    fn survey(&self) -> StoreFuture<'_, Vec<SurveyedConversation>> {
        self.read("listing conversations", inspection::survey)
    }

    fn indexed_words<'a>(&'a self, _tenant: &'a Tenant) -> StoreFuture<'a, WordSums> {
        match self.has_index {
            true => self.read("reading the search index", search_index::sums),
            false => Box::pin(std::future::ready(Ok(WordSums::default()))),
        }
    }

    fn rows(&self, id: ConversationId) -> StoreFuture<'_, StoredRows> {
        self.read("reading rows", move |db| read::rows(db, id))
    }

    fn restore(&self, conversations: Vec<RestoredConversation>) -> StoreFuture<'_, ()> {
        let checked = checks::check_restored(&conversations);
        self.write(checked.map(|()| WriteRequest::Restore(conversations)))
    }

    fn copy_to<'a>(&'a self, path: &'a Path) -> StoreFuture<'a, bool> {
        Box::pin(async move { self.backup(path).await.map(|()| true) })
    }

    fn keeps_words(&self) -> bool {
        self.has_index
    }

    fn check(&self) -> StoreFuture<'_, Vec<String>> {
        self.read("checking the file", |db| Ok(inspection::damage(db)))
    }

    fn size(&self) -> StoreFuture<'_, Option<u64>> {
        Box::pin(std::future::ready(inspection::size(&self.path).map(Some)))
    }
}
