//! The write queue of a file: group commit on one writer thread.
//!
//! ```text
//!   caller ──► channel ──► writer thread:  execute a group of requests in one transaction
//!   caller ──►                             drop cancelled requests, and execute the rest again
//!   caller ◄── result ◄──                  COMMIT (synced), then reply to every caller
//! ```
//!
//! Invariants:
//! - Requests are stored in the order in which they enter the channel. A group holds all requests
//!   that wait when the writer is free, at most [`MAX_GROUP`].
//! - A request that [runs alone](GroupWriter::runs_alone) is alone in its group.
//! - Every request whose caller waits receives exactly one reply, after its group is durable or rolled back.
//! - If a caller drops its future before its request is executed, the request is not stored. If the caller
//!   drops it during the execution, the group is executed again without the request, at most
//!   [`MAX_RETRIES`] times.
//!
//! The queue is independent of files: [`GroupWriter`] does the writing. The unit tests replace it, so
//! that shuttle can run many orders of the threads.

use std::thread::{self, JoinHandle};

use tokio::sync::{mpsc, oneshot};

use crate::Error;

/// Capacity of the channel. Callers wait for a free slot above it.
const CAPACITY: usize = 1_024;

/// Maximum number of requests in one transaction.
const MAX_GROUP: usize = 512;

/// Maximum number of times that a group is executed again because callers cancelled during its execution.
const MAX_RETRIES: usize = 3;

/// Stores groups of requests, each group in one transaction.
pub(super) trait GroupWriter {
    type Request;

    /// Whether a request needs a transaction without other requests.
    fn runs_alone(request: &Self::Request) -> bool;

    /// Executes requests in a new transaction. Returns one result per request; refused requests
    /// leave no change behind.
    fn execute(&mut self, requests: &[Self::Request]) -> Vec<Result<(), Error>>;

    /// Commits what `execute` did. Takes the results of `execute`, and returns what is stored.
    fn commit(
        &mut self,
        requests: &[Self::Request],
        results: Vec<Result<(), Error>>,
    ) -> Vec<Result<(), Error>>;

    /// Undoes what `execute` did.
    fn roll_back(&mut self);

    /// Called between two groups, after the replies were sent.
    fn after_group(&mut self) {}
}

/// Sends requests to the writer thread.
#[derive(Debug)]
pub(super) struct WriteQueue<R> {
    /// None only inside `drop`.
    sender: Option<mpsc::Sender<Pending<R>>>,
    thread: Option<JoinHandle<()>>,
}

impl<R: Send + 'static> WriteQueue<R> {
    /// Starts the writer thread.
    pub(super) fn start<W>(mut writer: W) -> std::io::Result<WriteQueue<R>>
    where
        W: GroupWriter<Request = R> + Send + 'static,
    {
        let (sender, receiver) = mpsc::channel(CAPACITY);
        let thread = thread::Builder::new()
            .name("recto-writer".to_owned())
            .spawn(move || run(&mut writer, receiver))?;
        Ok(WriteQueue { sender: Some(sender), thread: Some(thread) })
    }

    /// Stores requests, and waits until all of them are durable. They enter the queue one after the other, so
    /// that one group can hold them. Returns the first error; after it, any of the requests may be stored.
    /// Dropping the future cancels the requests that were not executed yet.
    pub(super) async fn write(&self, requests: Vec<R>, action: &'static str) -> Result<(), Error> {
        let sender = self.sender.as_ref().expect("only drop takes the sender");
        let mut results = Vec::with_capacity(requests.len());
        for request in requests {
            let (reply, result) = oneshot::channel();
            let sent = sender.send(Pending { request, reply }).await;
            sent.map_err(|_| Error::failed(action, "the writer has stopped"))?;
            results.push(result);
        }
        let mut all = Ok(());
        for result in results {
            all = all.and(result.await.unwrap_or(Err(Error::UnknownOutcome)));
        }
        all
    }
}

impl<R> Drop for WriteQueue<R> {
    /// Waits until the writer thread has stored what is queued and has closed the file.
    fn drop(&mut self) {
        self.sender = None;
        if let Some(thread) = self.thread.take() {
            // After a panic, the waiting callers receive `UnknownOutcome`. The text of the panic is not
            // logged, because it could contain stored data.
            if thread.join().is_err() {
                tracing::warn!("the writer thread has panicked");
            }
        }
    }
}

/// A request that waits for its reply.
#[derive(Debug)]
struct Pending<R> {
    request: R,
    reply: oneshot::Sender<Result<(), Error>>,
}

/// Requests that are stored in one transaction.
struct Group<R> {
    requests: Vec<R>,
    /// One for each request.
    replies: Vec<oneshot::Sender<Result<(), Error>>>,
}

impl<R> Group<R> {
    fn of(first: Pending<R>) -> Group<R> {
        Group { requests: vec![first.request], replies: vec![first.reply] }
    }

    fn push(&mut self, pending: Pending<R>) {
        self.requests.push(pending.request);
        self.replies.push(pending.reply);
    }

    /// Removes the requests whose callers no longer wait.
    fn prune_cancelled(&mut self) {
        let all = std::mem::take(&mut self.requests).into_iter().zip(self.replies.drain(..));
        (self.requests, self.replies) = all.filter(|(_, reply)| !reply.is_closed()).unzip();
    }

    /// Whether a request that can be stored was cancelled.
    fn has_cancelled(&self, results: &[Result<(), Error>]) -> bool {
        self.replies.iter().zip(results).any(|(reply, result)| result.is_ok() && reply.is_closed())
    }

    fn reply(self, results: Vec<Result<(), Error>>) {
        // Refused requests first: their callers usually try again, and can join the next group.
        let (stored, refused): (Vec<_>, Vec<_>) =
            self.replies.into_iter().zip(results).partition(|(_, result)| result.is_ok());
        for (reply, result) in refused.into_iter().chain(stored) {
            // A caller that cancelled after the commit receives nothing.
            let _ = reply.send(result);
        }
    }
}

/// The writer thread: stores groups until all senders are gone.
fn run<W: GroupWriter>(writer: &mut W, mut receiver: mpsc::Receiver<Pending<W::Request>>) {
    // A request that runs alone and ended the group before it.
    let mut next = None;
    while let Some(first) = next.take().or_else(|| receive(&mut receiver)) {
        let runs_alone = W::runs_alone(&first.request);
        let mut group = Group::of(first);
        while !runs_alone && group.requests.len() < MAX_GROUP {
            match receiver.try_recv() {
                Ok(pending) if W::runs_alone(&pending.request) => {
                    next = Some(pending);
                    break;
                }
                Ok(pending) => group.push(pending),
                Err(_) => break,
            }
        }
        store(writer, group);
        writer.after_group();
    }
}

fn receive<R>(receiver: &mut mpsc::Receiver<Pending<R>>) -> Option<Pending<R>> {
    #[cfg(test)]
    return shuttle::future::block_on(receiver.recv());
    #[cfg(not(test))]
    receiver.blocking_recv()
}

/// Stores a group, and replies to its callers.
fn store<W: GroupWriter>(writer: &mut W, mut group: Group<W::Request>) {
    for attempt in 0.. {
        group.prune_cancelled();
        if group.requests.is_empty() {
            return;
        }
        let results = writer.execute(&group.requests);
        if attempt < MAX_RETRIES && group.has_cancelled(&results) {
            writer.roll_back();
            continue;
        }
        if results.iter().all(Result::is_err) {
            writer.roll_back();
            return group.reply(results);
        }
        let results = writer.commit(&group.requests, results);
        return group.reply(results);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use shuttle::future::block_on;
    use shuttle::sync::Mutex;
    use shuttle::thread;

    use super::*;

    /// A writer that stores numbers: every seventh runs alone, every fifth is refused.
    #[derive(Default)]
    struct Numbers {
        state: Arc<Mutex<State>>,
        /// The numbers that were cancelled when the last `execute` ended.
        cancelled: Vec<u32>,
    }

    #[derive(Default)]
    struct State {
        stored: Vec<u32>,
        /// The sizes of the groups that were committed.
        groups: Vec<usize>,
        /// Numbers whose callers cancelled before they were stored.
        cancelled: Vec<u32>,
    }

    impl GroupWriter for Numbers {
        type Request = u32;

        fn runs_alone(request: &u32) -> bool {
            request.is_multiple_of(7)
        }

        fn execute(&mut self, requests: &[u32]) -> Vec<Result<(), Error>> {
            let has_alone = requests.iter().any(Numbers::runs_alone);
            assert!(!has_alone || requests.len() == 1, "a request that runs alone is alone");
            thread::yield_now();
            self.cancelled = self.state.lock().expect("no thread panics").cancelled.clone();
            let refuse = |request: &u32| match request.is_multiple_of(5) {
                true => Err(Error::ReadOnly),
                false => Ok(()),
            };
            requests.iter().map(refuse).collect()
        }

        fn commit(
            &mut self,
            requests: &[u32],
            results: Vec<Result<(), Error>>,
        ) -> Vec<Result<(), Error>> {
            let done = requests.iter().zip(&results).filter(|(_, result)| result.is_ok());
            let done: Vec<u32> = done.map(|(request, _)| *request).collect();
            // There are at most as many cancelled requests as retries, so this holds always.
            assert!(!done.iter().any(|request| self.cancelled.contains(request)));
            thread::yield_now();
            let mut state = self.state.lock().expect("no thread panics");
            state.stored.extend(done);
            state.groups.push(requests.len());
            results
        }

        fn roll_back(&mut self) {}
    }

    fn race() {
        let state = Arc::new(Mutex::new(State::default()));
        // A short channel, so that callers have to wait for a slot.
        let (sender, receiver) = mpsc::channel::<Pending<u32>>(2);
        let mut numbers = Numbers { state: state.clone(), cancelled: Vec::new() };
        let writer = thread::spawn(move || run(&mut numbers, receiver));
        let callers: Vec<_> = (0..MAX_RETRIES as u32)
            .map(|caller| {
                let (sender, state) = (sender.clone(), state.clone());
                thread::spawn(move || block_on(call(caller, sender, state)))
            })
            .collect();
        drop(sender);
        let mut expected: Vec<u32> = Vec::new();
        for caller in callers {
            expected.extend(caller.join().expect("a caller does not panic"));
        }
        writer.join().expect("the writer ends when all senders are gone");
        let state = state.lock().expect("no thread panicked");
        for caller in 0..MAX_RETRIES as u32 {
            let own: Vec<u32> =
                state.stored.iter().copied().filter(|request| request / 100 == caller).collect();
            assert!(own.is_sorted(), "the requests of a caller keep their order");
            assert!(own.windows(2).all(|pair| pair[0] != pair[1]), "nothing is stored twice");
        }
        assert!(expected.iter().all(|request| state.stored.contains(request)));
    }

    /// Sends four requests, cancels one of them, and returns the acknowledged ones.
    async fn call(
        caller: u32,
        sender: mpsc::Sender<Pending<u32>>,
        state: Arc<Mutex<State>>,
    ) -> Vec<u32> {
        let mut done = Vec::new();
        for number in 1..5 {
            let request = caller * 100 + number;
            let (reply, result) = oneshot::channel();
            assert!(sender.send(Pending { request, reply }).await.is_ok(), "the writer runs");
            if number == 2 {
                thread::yield_now();
                let mut state = state.lock().expect("no thread panics");
                drop(result);
                if !state.stored.contains(&request) {
                    state.cancelled.push(request);
                }
                continue;
            }
            match result.await.expect("every waiting caller receives a reply") {
                Ok(()) => {
                    assert!(state.lock().expect("no thread panics").stored.contains(&request));
                    done.push(request);
                }
                Err(_) => assert!(request.is_multiple_of(5), "{request}"),
            }
        }
        done
    }

    #[test]
    fn callers_receive_what_is_stored_in_every_order_of_sending_waiting_and_cancelling() {
        shuttle::check_random(race, 5_000);
        shuttle::check_pct(race, 5_000, 3);
    }

    #[test]
    fn requests_that_wait_together_become_durable_together() {
        shuttle::check_random(
            || {
                let mut numbers = Numbers::default();
                let (sender, receiver) = mpsc::channel(CAPACITY);
                let mut results = Vec::new();
                // 14 runs alone, 603 is cancelled.
                let requests = [1, 2, 3, 14].into_iter().chain([11; MAX_GROUP]).chain([601, 603]);
                for request in requests {
                    let (reply, result) = oneshot::channel();
                    assert!(sender.try_send(Pending { request, reply }).is_ok());
                    if request != 603 {
                        results.push(result);
                    }
                }
                drop(sender);
                run(&mut numbers, receiver);
                let state = numbers.state.lock().expect("no thread panics");
                assert_eq!(state.groups, [3, 1, MAX_GROUP, 1]);
                assert!(!state.stored.contains(&603), "a cancelled request is not stored");
                assert!(results.into_iter().all(|result| block_on(result) == Ok(Ok(()))));
            },
            1,
        );
    }
}
