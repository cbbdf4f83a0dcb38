//! Where requests for the writer come in.
//!
//! ```text
//!   a thread that waits for this request alone ── the writer is free ──► it is done here, at once
//!                                              └─ or not ─┐
//!   a task, which must not hold its thread up ────────────┴──► queue ──► the writer's thread
//! ```
//!
//! Who blocks on a request becomes the writer for that long (`own_thread.rs` says why, and who does).
//! What waits for another process, or takes long, goes to the queue in any case; and so do several
//! requests that one thread asks for together, since they become durable together there.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};

use tokio::sync::{mpsc, oneshot};

use super::connection;
use super::own_thread::OwnThread;
use super::queue::{self, Clerk};
use super::work::Work;
use super::writer::{Job, Writer};
use crate::Error;

/// How many requests may wait for the writer before callers have to wait to ask.
const QUEUE: usize = 1_024;

/// The writer of a file, and the ways to it.
pub(super) struct Desk {
    shared: Arc<Shared>,
    /// None only while it is being dropped.
    queue: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    own_thread: OwnThread,
}

#[derive(Debug)]
struct Shared {
    writer: Mutex<Writer>,
    /// How many requests are in the queue or being done by the writer's thread.
    queued: AtomicUsize,
}

/// The writer's thread: it is the writer whenever there is something in the queue.
struct WriterThread<'a> {
    shared: &'a Shared,
    writer: Option<MutexGuard<'a, Writer>>,
}

impl WriterThread<'_> {
    fn writer(&mut self) -> &mut Writer {
        self.writer.as_deref_mut().expect("it is the writer while it serves a group")
    }
}

impl Clerk for WriterThread<'_> {
    type Work = Work;

    fn stands_alone(work: &Work) -> bool {
        Writer::stands_alone(work)
    }

    fn store(&mut self, jobs: &[Job], is_last: bool) -> Option<Vec<Result<(), Error>>> {
        self.writer().store(jobs, is_last)
    }

    fn nobody_waits(&mut self) {
        self.writer().nobody_waits();
    }

    /// If somebody panicked as the writer, nobody knows what it was about to do.
    fn before_group(&mut self) -> bool {
        self.writer = self.shared.writer.lock().ok();
        self.writer.is_some()
    }

    fn after_group(&mut self, served: usize) {
        self.shared.queued.fetch_sub(served, Ordering::Relaxed);
        self.writer = None;
        connection::give_way();
    }
}

impl Desk {
    pub(super) fn open(writer: Writer) -> std::io::Result<Desk> {
        let shared = Arc::new(Shared { writer: Mutex::new(writer), queued: AtomicUsize::new(0) });
        let (queue, jobs) = mpsc::channel(QUEUE);
        let threads = shared.clone();
        let thread = thread::Builder::new().name("recto-writer".to_owned()).spawn(move || {
            queue::serve(&mut WriterThread { shared: &threads, writer: None }, jobs)
        })?;
        Ok(Desk {
            shared,
            queue: Some(queue),
            thread: Some(thread),
            own_thread: OwnThread::default(),
        })
    }

    /// Has something written, and waits until it is durable.
    pub(super) async fn write(&self, work: Work) -> Result<(), Error> {
        let doing = work.doing();
        let (answer, mut answered) = oneshot::channel();
        let mut job = Job { work, answer };
        if job.work.is_short()
            && let Some(_here) = self.own_thread.waits_for_this().await
        {
            match self.do_here(job) {
                None => return answered.try_recv().unwrap_or(Err(Error::UnknownOutcome)),
                Some(not_done) => job = not_done,
            }
        }
        let queue = self.queue.as_ref().expect("nobody asks while it is being dropped");
        let stopped = |_| Error::failed(doing, "the writer has stopped");
        let place = queue.reserve().await.map_err(stopped)?;
        self.shared.queued.fetch_add(1, Ordering::Relaxed);
        place.send(job);
        answered.await.unwrap_or(Err(Error::UnknownOutcome))
    }

    /// Does it on this thread if nobody else writes or waits to. Gives it back if it did not.
    fn do_here(&self, job: Job) -> Option<Job> {
        if self.shared.queued.load(Ordering::Relaxed) > 0 {
            return Some(job);
        }
        let Ok(mut writer) = self.shared.writer.try_lock() else { return Some(job) };
        if !writer.begins_at_once() {
            return Some(job);
        }
        queue::take_turn(&mut *writer, vec![job]);
        None
    }
}

impl Drop for Desk {
    /// Waits for the writer's thread; then the file can be closed.
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            // Its requests were told if it failed.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rusqlite::Connection;
    use tokio::runtime::{Builder, Runtime};
    use tokio::time::timeout;

    use super::super::{connection, schema};
    use super::*;
    use crate::{
        Commit, CommitBody, CommitRow, ConversationId, Head, Link, NewConversation, Tenant,
    };

    /// A desk without a thread: what goes to the queue stays there.
    struct Trial {
        desk: Desk,
        queue: mpsc::Receiver<Job>,
        id: ConversationId,
        folder: tempfile::TempDir,
    }

    fn row(version: u32) -> CommitRow {
        let head = Head { version, entries: 0, link: Link([0; 32]), committed: 0 };
        CommitRow { head, body: CommitBody::default().pack() }
    }

    impl Trial {
        fn new() -> Trial {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("talks.db");
            let db = connection::open(&path, true).unwrap();
            schema::prepare(&db, &path, false).unwrap();
            let writer = Mutex::new(Writer::new(path, db, false).unwrap());
            let shared = Arc::new(Shared { writer, queued: AtomicUsize::new(0) });
            let (queue, jobs) = mpsc::channel(QUEUE);
            let own_thread = OwnThread::default();
            let desk = Desk { shared, queue: Some(queue), thread: None, own_thread };
            let id = ConversationId(uuid::Uuid::now_v7());
            let trial = Trial { desk, queue: jobs, id, folder };
            let new = NewConversation {
                id,
                tenant: Tenant::default(),
                name: "one".to_owned(),
                created: 0,
                settings: "{}".to_owned(),
                policy: None,
                lineage: Vec::new(),
                first: row(0),
                words: Vec::new(),
            };
            multi().block_on(trial.desk.write(Work::Create(Box::new(new)))).unwrap();
            trial
        }

        fn commit(&self, version: u32) -> Work {
            let (conversation, row) = (self.id, row(version));
            let (key, words, seal) = (None, Vec::new(), None);
            Work::Commit(Box::new(Commit { conversation, row, key, words, seal }))
        }

        /// Asks for as long as it would take to be done.
        async fn ask(&self, version: u32) -> Option<Result<(), Error>> {
            timeout(Duration::from_millis(50), self.desk.write(self.commit(version))).await.ok()
        }

        fn in_queue(&mut self) -> usize {
            std::iter::from_fn(|| self.queue.try_recv().ok()).count()
        }
    }

    fn multi() -> Runtime {
        Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
    }

    #[test]
    fn who_blocks_on_a_request_writes_it_on_its_own_thread() {
        let mut trial = Trial::new();
        assert_eq!(multi().block_on(trial.ask(1)), Some(Ok(())));
        let conflict = Error::VersionConflict { expected: 6, current: 1 };
        assert_eq!(multi().block_on(trial.ask(7)), Some(Err(conflict)));
        assert_eq!(trial.in_queue(), 0);
    }

    #[test]
    fn tasks_and_runtimes_of_one_thread_are_not_held_up() {
        let mut trial = Trial::new();
        let one = Builder::new_current_thread().enable_all().build().unwrap();
        assert_eq!(one.block_on(trial.ask(1)), None);
        assert_eq!(trial.in_queue(), 1);
        let trial = Arc::new(tokio::sync::Mutex::new(trial));
        let task = trial.clone();
        let asked = async move { task.lock().await.ask(1).await };
        let runtime = multi();
        assert_eq!(runtime.block_on(runtime.spawn(asked)).unwrap(), None);
        assert_eq!(trial.blocking_lock().in_queue(), 1);
    }

    #[test]
    fn requests_that_one_thread_asks_for_together_become_durable_together() {
        let mut trial = Trial::new();
        let both = async { tokio::join!(trial.ask(1), trial.ask(2)) };
        assert_eq!(multi().block_on(both), (None, None));
        assert_eq!(trial.in_queue(), 2);
    }

    #[test]
    fn nobody_waits_for_another_process_or_passes_those_who_wait() {
        let mut trial = Trial::new();
        let other = Connection::open(trial.folder.path().join("talks.db")).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        assert_eq!(multi().block_on(trial.ask(1)), None);
        other.execute_batch("ROLLBACK").unwrap();
        assert_eq!(multi().block_on(trial.ask(1)), None, "the other one is in the queue");
        assert_eq!(trial.in_queue(), 2);
    }
}
