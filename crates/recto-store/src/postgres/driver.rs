//! Who moves the bytes of a connection.
//!
//! Whoever waits for an answer does it: the request goes from its own thread to the socket, and no
//! other thread has to be woken first, which takes about 20 µs. A task in the background does it when
//! nobody waits: if a request was given up, if a transaction was left, and at the end.
//!
//! ```text
//!   request ──► queue of the driver ──► Driver ◄── polled by who waits; else by the task ──► socket
//! ```
//!
//! What always holds: who polled last is told when there is something to do, and then polls again;
//! before it stops to do so, it wakes the task, unless everything is answered. So nothing stays
//! behind, whenever a future is dropped. When the runtime of the task ends, the connection does too.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio_postgres::Error;

type Connection = Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>;

/// The end of a connection that reads and writes. When it is dropped, the task takes leave of the
/// server.
pub(super) struct Driver(Arc<Shared>);

struct Shared {
    /// None when it is over.
    connection: Mutex<Option<Connection>>,
    /// Wakes the task.
    task: Mutex<Waker>,
    /// How many wait for answers.
    waiting: AtomicUsize,
}

impl Driver {
    pub(super) fn start(
        connection: impl Future<Output = Result<(), Error>> + Send + 'static,
    ) -> Driver {
        let shared = Arc::new(Shared {
            connection: Mutex::new(Some(Box::pin(connection))),
            task: Mutex::new(Waker::noop().clone()),
            waiting: AtomicUsize::new(0),
        });
        let task = Task(Arc::clone(&shared));
        tokio::spawn(poll_fn(move |cx| task.poll(cx)));
        Driver(shared)
    }

    /// Waits for an answer, and moves the bytes meanwhile.
    pub(super) async fn drive<T>(&self, work: impl Future<Output = T>) -> T {
        let mut waits = Waits::on(&self.0);
        let mut work = pin!(work);
        let done = poll_fn(|cx| {
            // First, so that the task is not woken for what is asked for next.
            let _ = self.0.poll(cx);
            let done = work.as_mut().poll(cx);
            if done.is_pending() {
                let _ = self.0.poll(cx);
            }
            done
        });
        let done = done.await;
        waits.is_answered = true;
        done
    }

    /// Lets the task go on with what nobody waits for.
    pub(super) fn leave(&self) {
        self.0.leave();
    }

    /// Looks whether the server has ended the connection.
    pub(super) fn look(&self) {
        // In the name of the task: perhaps nobody will wait.
        let task = lock(&self.0.task).clone();
        let _ = self.0.poll(&mut Context::from_waker(&task));
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.leave();
    }
}

impl Shared {
    fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut place = lock(&self.connection);
        // A connection that panics is over.
        let Some(mut connection) = place.take() else { return Poll::Ready(()) };
        // How it ended is known to those who wait.
        let end = connection.as_mut().poll(cx);
        if end.is_pending() {
            *place = Some(connection);
        }
        end.map(|_| ())
    }

    fn leave(&self) {
        lock(&self.task).wake_by_ref();
    }
}

/// What runs in the background.
struct Task(Arc<Shared>);

impl Task {
    fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
        lock(&self.0.task).clone_from(cx.waker());
        self.0.poll(cx)
    }
}

impl Drop for Task {
    /// When its runtime ends, nobody is left who could end a transaction or take leave: then the
    /// connection is over too, whoever still has it.
    fn drop(&mut self) {
        let connection = lock(&self.0.connection).take();
        drop(connection);
    }
}

/// Somebody who waits for an answer.
struct Waits<'a> {
    shared: &'a Shared,
    is_answered: bool,
}

impl Waits<'_> {
    fn on(shared: &Shared) -> Waits<'_> {
        shared.waiting.fetch_add(1, Ordering::Relaxed);
        Waits { shared, is_answered: false }
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        let waited = self.shared.waiting.fetch_sub(1, Ordering::Relaxed);
        if !self.is_answered || waited > 1 {
            self.shared.leave();
        }
    }
}

/// What a lock holds is whole even after a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use testserver::PostgresServer;
    use tokio_postgres::NoTls;

    use super::*;

    struct Talk {
        client: tokio_postgres::Client,
        driver: Driver,
    }

    impl Talk {
        async fn ask(&self, sql: &str) -> i32 {
            self.driver.drive(self.client.query_one(sql, &[])).await.unwrap().get(0)
        }
    }

    async fn connect() -> Arc<Talk> {
        let address = PostgresServer::shared().address("postgres");
        let (client, connection) = tokio_postgres::connect(&address, NoTls).await.unwrap();
        Arc::new(Talk { client, driver: Driver::start(connection) })
    }

    async fn in_time<T>(work: impl Future<Output = T>) -> T {
        tokio::time::timeout(Duration::from_secs(20), work).await.expect("nobody waits for ever")
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn many_can_wait_on_one_connection_and_any_of_them_can_give_up() {
        let talk = connect().await;
        let tasks: Vec<_> = (0..16_i32)
            .map(|task| {
                let talk = Arc::clone(&talk);
                tokio::spawn(async move {
                    for round in 0..40 {
                        let number = task * 100 + round;
                        let given = Duration::from_micros(((number * 7) % 23) as u64 * 100);
                        let slowly = format!("SELECT {number} FROM pg_sleep(0.001)");
                        if let Ok(answer) = tokio::time::timeout(given, talk.ask(&slowly)).await {
                            assert_eq!(answer, number);
                        }
                        assert_eq!(talk.ask(&format!("SELECT {number}")).await, number);
                    }
                })
            })
            .collect();
        for task in tasks {
            in_time(task).await.unwrap();
        }
    }

    #[tokio::test]
    async fn who_waits_is_answered_after_who_polled_last_has_gone() {
        let talk = connect().await;
        let ask = |sql: &'static str| {
            let talk = Arc::clone(&talk);
            tokio::spawn(async move { talk.ask(sql).await })
        };
        let first = ask("SELECT 1 FROM pg_sleep(0.4)");
        tokio::time::sleep(Duration::from_millis(100)).await;
        // Polls after the first one, which waits and has no reason to poll again.
        let second = ask("SELECT 2 FROM pg_sleep(0.1)");
        tokio::time::sleep(Duration::from_millis(100)).await;
        second.abort();
        assert_eq!(in_time(first).await.unwrap(), 1);
        assert_eq!(in_time(talk.ask("SELECT 3")).await, 3);
    }

    #[test]
    fn a_runtime_that_ends_takes_its_connections_along() {
        let server = PostgresServer::shared();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let talk = runtime.block_on(connect());
        let pid = runtime.block_on(talk.ask("SELECT pg_backend_pid()"));
        runtime.block_on(talk.driver.drive(talk.client.batch_execute("BEGIN; SELECT 1"))).unwrap();
        drop(runtime);
        let sessions = format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {pid}");
        let start = std::time::Instant::now();
        while server.sql("postgres", &sessions) != "0" {
            assert!(start.elapsed() < Duration::from_secs(10), "it is still there");
        }
        assert!(talk.client.is_closed());
    }
}
