//! The baseline: plain SQLite with the same pragmas and one row per message. One writer commits each row on
//! the calling thread; for several writers, a thread commits waiting rows together. Nothing is counted,
//! hashed, checked or packed.

use std::path::Path;
use std::thread;

use rusqlite::{Connection, params};
use tokio::sync::{mpsc, oneshot};

pub(crate) struct Bare(Connection);

impl Bare {
    pub(crate) fn new(path: &Path) -> Bare {
        let db = Connection::open(path).expect("the file can be made");
        db.execute_batch(
            "PRAGMA journal_mode = WAL;
             PRAGMA synchronous = FULL;
             CREATE TABLE messages (number INTEGER PRIMARY KEY, body BLOB NOT NULL);",
        )
        .expect("the file is new");
        Bare(db)
    }

    /// Returns when the row is durable.
    pub(crate) fn append(&self, json: &str) {
        let run = |sql: &str| self.0.prepare_cached(sql)?.execute([]);
        let insert = || {
            run("BEGIN IMMEDIATE")?;
            self.0
                .prepare_cached("INSERT INTO messages (body) VALUES (?1)")?
                .execute([json.as_bytes()])?;
            run("COMMIT")
        };
        insert().expect("there is no other writer");
    }
}

/// Bare rows of several conversations, with group commit. The number of the conversation is the first part of
/// the primary key, so the rows of a conversation are next to each other for a reader.
#[derive(Clone)]
pub(crate) struct BareGroups(mpsc::Sender<Job>);

#[derive(Debug)]
struct Job {
    place: i64,
    json: String,
    durable: oneshot::Sender<()>,
}

impl BareGroups {
    pub(crate) fn new(path: &Path) -> BareGroups {
        let Bare(db) = Bare::new(path);
        let (sender, mut jobs) = mpsc::channel::<Job>(1_024);
        thread::spawn(move || {
            while let Some(first) = jobs.blocking_recv() {
                let mut group = vec![first];
                while let Ok(job) = jobs.try_recv() {
                    group.push(job);
                }
                commit(&db, &group).expect("there is no other writer");
                for job in group {
                    job.durable.send(()).expect("every writer waits");
                }
            }
        });
        BareGroups(sender)
    }

    /// Returns when the row is durable.
    pub(crate) async fn append(&self, conversation: usize, number: usize, json: &str) {
        let (durable, done) = oneshot::channel();
        let place = (conversation << 32 | number) as i64;
        let job = Job { place, json: json.to_owned(), durable };
        self.0.send(job).await.expect("the thread runs while there is a sender");
        done.await.expect("the thread answers after the commit");
    }
}

fn commit(db: &Connection, group: &[Job]) -> rusqlite::Result<()> {
    db.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    for job in group {
        db.prepare_cached("INSERT INTO messages VALUES (?1, ?2)")?
            .execute(params![job.place, job.json.as_bytes()])?;
    }
    db.prepare_cached("COMMIT")?.execute([]).map(drop)
}
