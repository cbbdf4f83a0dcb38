//! Threads that share one value.

use std::sync::Barrier;
use std::thread;

use recto_core::{
    Append, BatchIndex, Conversation, Delete, LogIndex, Mark, Message, Operation, Redo, Request,
    Restore, Rollback, Truncate, Undo,
};

use crate::conversations::{after, append, fresh};
use crate::driver::fingerprint;

const THREADS: usize = 8;
const ROUNDS: usize = 60;

/// The requests of one thread: most write at the shared end of log, view and history, some do not.
fn requests(thread: usize, round: usize) -> Vec<Request> {
    let message = Message::user(&format!("thread {thread} round {round}"));
    let append = Append { messages: vec![message.clone(); 1 + (thread + round) % 5] };
    let first = LogIndex(((thread + round) % 3) as u32);
    let list: [Operation; 3] = [
        append.clone().into(),
        Mark { indices: vec![first], mark: format!("m{thread}") }.into(),
        Truncate { keep_last: Some(7), ..Truncate::default() }.into(),
    ];
    vec![
        append.clone().into(),
        Delete { indices: vec![first] }.into(),
        Undo.into(),
        append.into(),
        Request::from_iter(list),
        Restore { indices: vec![first] }.into(),
        Undo.into(),
        Redo.into(),
        Rollback::ToBatch(BatchIndex(0)).into(),
    ]
}

fn run(start: &Conversation, thread: usize, round: usize) -> Conversation {
    requests(thread, round)
        .into_iter()
        .zip(100..)
        .fold(start.clone(), |conversation, (request, now)| {
            conversation.apply(request, now).expect("it is accepted").0
        })
}

#[test]
fn threads_that_continue_from_one_value_are_independent() {
    // Each round starts with another length, so that writes begin at every offset of a shared chunk.
    for round in 0..ROUNDS {
        let base = after(fresh(), &[&append(3 + round)]);
        let before = fingerprint(&base);
        let barrier = Barrier::new(THREADS);
        let ends: Vec<Conversation> = thread::scope(|scope| {
            let workers: Vec<_> = (0..THREADS)
                .map(|thread| {
                    let (base, barrier) = (&base, &barrier);
                    scope.spawn(move || {
                        barrier.wait();
                        run(base, thread, round)
                    })
                })
                .collect();
            workers.into_iter().map(|worker| worker.join().expect("no panic")).collect()
        });
        assert_eq!(fingerprint(&base), before, "round {round}");
        for (thread, end) in ends.iter().enumerate() {
            // The same requests on a value that no other thread shares.
            let alone = run(&after(fresh(), &[&append(3 + round)]), thread, round);
            assert_eq!(fingerprint(end), fingerprint(&alone), "round {round} {thread}");
        }
        ends[round % THREADS].verify().expect("its invariants hold");
    }
}

#[test]
fn a_thread_reads_the_values_that_another_thread_wrote() {
    let mut conversation = fresh();
    for round in 0..200 {
        let append = Append { messages: vec![Message::user(&round.to_string())] };
        let reader = conversation.clone();
        let len = reader.view().len();
        conversation = thread::scope(|scope| {
            let writer =
                scope.spawn(|| conversation.apply(append, round).expect("it is accepted").0);
            let readers: Vec<_> =
                (0..2).map(|_| scope.spawn(|| reader.messages().count())).collect();
            for seen in readers {
                assert_eq!(seen.join().expect("no panic"), len);
            }
            writer.join().expect("no panic")
        });
    }
    let texts: Vec<String> = conversation.messages().map(|m| m.text().into_owned()).collect();
    assert_eq!(texts, (0..200).map(|round| round.to_string()).collect::<Vec<_>>());
    conversation.verify().expect("its invariants hold");
}
