//! The line in front of the writer: who is served with whom, and who is told what.
//!
//! What always holds:
//! - requests are stored in the order in which they came, as many together as are waiting;
//! - one that must stand alone is alone in its group;
//! - each is answered once, after its group is stored, and with what is stored;
//! - who left before the group was stored has changed nothing, unless people leave all the time.
//!
//! It knows nothing of files, so that shuttle can try many orders of the threads.

use tokio::sync::{mpsc, oneshot};

use crate::Error;

/// The most requests that become durable together.
const GROUP: usize = 512;

/// How often a group is done again because somebody stopped waiting for an answer.
const LEAVERS: usize = 3;

/// A request, and where its answer goes.
#[derive(Debug)]
pub(super) struct Job<W> {
    pub(super) work: W,
    pub(super) answer: oneshot::Sender<Result<(), Error>>,
}

/// Who serves the line.
pub(super) trait Clerk {
    type Work;

    /// Whether a request must not be stored together with others.
    fn stands_alone(work: &Self::Work) -> bool;

    /// Stores what can be stored, at once. None if somebody [left](somebody_left) before that, and
    /// then nothing is stored; the last time, nobody is waited for.
    fn store(&mut self, jobs: &[Job<Self::Work>], is_last: bool) -> Option<Vec<Result<(), Error>>>;

    /// All have left, and nothing is stored.
    fn nobody_waits(&mut self) {}

    /// Before a group is gathered: whether it can be served.
    fn before_group(&mut self) -> bool {
        true
    }

    /// Afterwards, before others come.
    fn after_group(&mut self, _served: usize) {}
}

/// Whether somebody whose request could be stored does not wait for it any more.
pub(super) fn somebody_left<W>(jobs: &[Job<W>], answers: &[Result<(), Error>]) -> bool {
    jobs.iter().zip(answers).any(|(job, answer)| answer.is_ok() && job.answer.is_closed())
}

/// Serves the line until nobody can ask any more.
pub(super) fn serve<C: Clerk>(clerk: &mut C, mut line: mpsc::Receiver<Job<C::Work>>) {
    let mut kept = None;
    while let Some(first) = kept.take().or_else(|| next(&mut line)) {
        if !clerk.before_group() {
            return;
        }
        let stands_alone = C::stands_alone(&first.work);
        let mut jobs = vec![first];
        while !stands_alone && jobs.len() < GROUP {
            match line.try_recv() {
                Ok(job) if C::stands_alone(&job.work) => {
                    kept = Some(job);
                    break;
                }
                Ok(job) => jobs.push(job),
                Err(_) => break,
            }
        }
        let served = jobs.len();
        take_turn(clerk, jobs);
        clerk.after_group(served);
    }
}

/// Waits for the next one.
fn next<W>(line: &mut mpsc::Receiver<Job<W>>) -> Option<Job<W>> {
    #[cfg(test)]
    return shuttle::future::block_on(line.recv());
    #[cfg(not(test))]
    line.blocking_recv()
}

/// Has a group stored, and tells everybody.
pub(super) fn take_turn<C: Clerk>(clerk: &mut C, mut jobs: Vec<Job<C::Work>>) {
    for round in 0.. {
        jobs.retain(|job| !job.answer.is_closed());
        if jobs.is_empty() {
            return clerk.nobody_waits();
        }
        if let Some(answers) = clerk.store(&jobs, round == LEAVERS) {
            // Who was refused is told first, and so can be the first of those who try again.
            let mut done = Vec::new();
            for (job, answer) in jobs.into_iter().zip(answers) {
                // Who left after the commit cannot be told.
                match answer {
                    Ok(()) => done.push(job.answer),
                    refused => drop(job.answer.send(refused)),
                }
            }
            done.into_iter().for_each(|answer| drop(answer.send(Ok(()))));
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use shuttle::future::block_on;
    use shuttle::sync::Mutex;
    use shuttle::thread;

    use super::*;

    /// Numbers; every seventh stands alone, every fifth is refused.
    #[derive(Default)]
    struct Shelf {
        stored: Vec<u32>,
        /// Those who left before the disk had begun to write: nobody may store theirs.
        left: Vec<u32>,
    }

    struct Numbers(Arc<Mutex<Shelf>>);

    impl Clerk for Numbers {
        type Work = u32;

        fn stands_alone(work: &u32) -> bool {
            work.is_multiple_of(7)
        }

        fn store(&mut self, jobs: &[Job<u32>], is_last: bool) -> Option<Vec<Result<(), Error>>> {
            let alone = jobs.iter().any(|job| job.work.is_multiple_of(7));
            assert!(!alone || jobs.len() == 1, "what stands alone is alone");
            let refuse = |job: &Job<u32>| match job.work.is_multiple_of(5) {
                true => Err(Error::ReadOnly),
                false => Ok(()),
            };
            let answers: Vec<_> = jobs.iter().map(refuse).collect();
            thread::yield_now();
            let mut shelf = self.0.lock().expect("nobody panics");
            if !is_last && somebody_left(jobs, &answers) {
                return None;
            }
            let done = jobs.iter().zip(&answers).filter(|(_, answer)| answer.is_ok());
            let done: Vec<u32> = done.map(|(job, _)| job.work).collect();
            assert!(is_last || !done.iter().any(|work| shelf.left.contains(work)));
            shelf.stored.extend(done);
            Some(answers)
        }
    }

    fn race() {
        let shelf = Arc::new(Mutex::new(Shelf::default()));
        // A short line, so that callers have to wait to get into it.
        let (line, jobs) = mpsc::channel::<Job<u32>>(2);
        let desk = shelf.clone();
        let server = thread::spawn(move || serve(&mut Numbers(desk), jobs));
        let callers: Vec<_> = (0..3_u32)
            .map(|caller| {
                let (line, shelf) = (line.clone(), shelf.clone());
                thread::spawn(move || block_on(call(caller, line, shelf)))
            })
            .collect();
        drop(line);
        let mut expected: Vec<u32> = Vec::new();
        for caller in callers {
            expected.extend(caller.join().expect("it does not panic"));
        }
        server.join().expect("it ends when nobody can ask any more");
        let shelf = shelf.lock().expect("nobody panicked");
        for caller in 0..3 {
            let own: Vec<u32> =
                shelf.stored.iter().copied().filter(|work| work / 100 == caller).collect();
            assert!(own.is_sorted(), "each caller's requests keep their order");
            assert!(own.windows(2).all(|pair| pair[0] != pair[1]), "nothing is stored twice");
        }
        assert!(expected.iter().all(|work| shelf.stored.contains(work)));
    }

    /// Asks for a few numbers, leaves now and then, and says which were acknowledged.
    async fn call(caller: u32, line: mpsc::Sender<Job<u32>>, shelf: Arc<Mutex<Shelf>>) -> Vec<u32> {
        let mut done = Vec::new();
        for number in 1..5 {
            let work = caller * 100 + number;
            let (answer, answered) = oneshot::channel();
            assert!(line.send(Job { work, answer }).await.is_ok(), "the line is open");
            if number == 2 {
                thread::yield_now();
                let mut shelf = shelf.lock().expect("nobody panics");
                drop(answered);
                if !shelf.stored.contains(&work) {
                    shelf.left.push(work);
                }
                continue;
            }
            match answered.await.expect("everybody who waits is answered") {
                Ok(()) => {
                    assert!(shelf.lock().expect("nobody panics").stored.contains(&work));
                    done.push(work);
                }
                Err(_) => assert!(work.is_multiple_of(5), "{work}"),
            }
        }
        done
    }

    #[test]
    fn whoever_asks_waits_and_leaves_in_whatever_order_is_told_what_is_stored() {
        shuttle::check_random(race, 5_000);
        shuttle::check_pct(race, 5_000, 3);
    }
}
