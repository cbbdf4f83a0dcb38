//! Instruction counts of the core operations at 10⁴ messages: a regression check that does not depend on the
//! load of the machine.
//!
//! `cargo xtask bench counts` runs it; it requires Valgrind and `gungraun-runner`. It fails if an operation
//! needs more instructions than its limit, which is about 10 % above the count at the time the limit was
//! set. If an increase is justified, raise the limit and give the reason in the commit message.

#![allow(missing_docs, reason = "the macros generate items without documentation")]

#[allow(dead_code, reason = "shared with the bench `engine`")]
#[path = "engine/transcript.rs"]
mod transcript;

use std::hint::black_box;

use gungraun::prelude::*;
use gungraun::{Callgrind, EventKind};
use recto_core::{
    Append, Approx, Arrange, BatchIndex, BatchStart, Compress, Conversation, Delete, Diff, Fit,
    Insert, LogIndex, Message, Outcome, Position, Replace, Request, Restore, Role, Rollback,
    Settings, Truncate, Undo, Version,
};

use transcript::{Transcript, remarks};

const SIZE: usize = 10_000;
const MIDDLE: usize = SIZE / 2;

fn at_most(instructions: u64) -> LibraryBenchmarkConfig {
    let callgrind = Callgrind::default().hard_limits([(EventKind::Ir, instructions)]).clone();
    LibraryBenchmarkConfig::default().tool(callgrind).clone()
}

/// A conversation of [`SIZE`] messages that were appended turn by turn, with three edits. The same messages
/// are repeated, because generating messages takes most of the setup time under Valgrind.
fn conversation() -> Conversation {
    let mut conversation =
        Conversation::new(Settings::counting_with(Approx), 0).expect("it is right");
    let repeated = Transcript::of(SIZE / 40);
    while conversation.view().len() < SIZE {
        for turn in repeated.turns() {
            conversation = after(&conversation, Append { messages: turn.to_vec() });
        }
    }
    conversation = after(&conversation, Insert { position: Position(100), messages: remarks(1) });
    conversation = after(&conversation, Delete { indices: vec![LogIndex(MIDDLE as u32 + 1)] });
    after(&conversation, Insert { position: Position(SIZE - 100), messages: remarks(1) })
}

fn after(conversation: &Conversation, request: impl Into<Request>) -> Conversation {
    conversation.apply(request, 0).expect("the request is right").0
}

fn entry(at: usize) -> Vec<LogIndex> {
    vec![LogIndex(at as u32)]
}

/// A conversation and a request for it.
fn with(request: impl Into<Request>) -> (Conversation, Request) {
    (conversation(), request.into())
}

fn append() -> (Conversation, Request) {
    let (conversation, request) = append_after_edit();
    (after(&conversation, request.clone()), request)
}

fn append_after_edit() -> (Conversation, Request) {
    with(Append { messages: remarks(1) })
}

fn insert() -> (Conversation, Request) {
    with(Insert { position: Position(MIDDLE), messages: remarks(1) })
}

fn replace() -> (Conversation, Request) {
    with(Replace { index: Position(MIDDLE), message: Message::user("in its place") })
}

fn delete() -> (Conversation, Request) {
    with(Delete { indices: entry(MIDDLE) })
}

fn restore() -> (Conversation, Request) {
    with(Restore { indices: entry(MIDDLE + 1) })
}

/// The entries of a conversation's view, of which one has moved.
fn moved(conversation: &Conversation) -> Vec<LogIndex> {
    let mut indices: Vec<LogIndex> = conversation.view().iter().collect();
    let moved = indices.remove(SIZE / 4);
    indices.insert(SIZE / 4 * 3, moved);
    indices
}

fn arrange() -> (Conversation, Request) {
    let conversation = conversation();
    let indices = moved(&conversation);
    (conversation, Arrange { indices }.into())
}

fn truncate() -> (Conversation, Request) {
    with(Truncate { keep_last: Some(MIDDLE), ..Default::default() })
}

fn compress() -> (Conversation, Request) {
    let indices = (MIDDLE..MIDDLE + 10).map(|at| LogIndex(at as u32)).collect();
    with(Compress { indices, summary: Some(Message::user("what they said")) })
}

fn batch_start() -> (Conversation, Request) {
    with(BatchStart { boundary: Some(LogIndex(MIDDLE as u32)), with_tools: false })
}

fn rollback_to_batch() -> (Conversation, Request) {
    with(Rollback::ToBatch(BatchIndex(1)))
}

fn rollback_to_version() -> (Conversation, Request) {
    with(Rollback::ToVersion(Version(500)))
}

fn undo() -> (Conversation, Request) {
    with(Undo)
}

fn fit() -> (Conversation, Request) {
    let conversation = conversation();
    let half = conversation.view().tokens() / 2;
    (conversation, Fit::within(half).into())
}

// About 300 instructions of each request are for tool descriptions: the set of those that the engine wrote,
// and the tools of each version. About 200 instructions of UNDO and ROLLBACK record the version that
// introduced the restored view, so that a store can save the new version as a change of that one.
#[library_benchmark]
#[bench::append(setup = append, config = at_most(2_900))]
#[bench::append_after_edit(setup = append_after_edit, config = at_most(7_000))]
#[bench::insert(setup = insert, config = at_most(17_300))]
#[bench::replace(setup = replace, config = at_most(15_600))]
#[bench::delete(setup = delete, config = at_most(17_000))]
#[bench::restore(setup = restore, config = at_most(21_500))]
#[bench::arrange(setup = arrange, config = at_most(415_000))]
#[bench::truncate(setup = truncate, config = at_most(20_500))]
#[bench::compress(setup = compress, config = at_most(42_000))]
#[bench::batch_start(setup = batch_start, config = at_most(37_700))]
#[bench::rollback_to_batch(setup = rollback_to_batch, config = at_most(1_830))]
#[bench::rollback_to_version(setup = rollback_to_version, config = at_most(1_250))]
#[bench::undo(setup = undo, config = at_most(1_160))]
#[bench::fit(setup = fit, config = at_most(76_000))]
fn apply(
    (conversation, request): (Conversation, Request),
) -> (Conversation, Conversation, Outcome) {
    let (next, outcome) = black_box(&conversation).apply(request, 0).expect("the request is right");
    // The old value is returned, so that dropping it is not counted.
    (conversation, next, outcome)
}

fn arranged() -> (Conversation, Vec<LogIndex>) {
    let (conversation, request) = arrange();
    let arranged = after(&conversation, request);
    let indices = arranged.view().iter().collect();
    (arranged, indices)
}

// The part of ARRANGE that reads its list.
#[library_benchmark]
#[bench::arranged(setup = arranged, config = at_most(335_000))]
fn read_list(
    (conversation, indices): (Conversation, Vec<LogIndex>),
) -> (Conversation, Vec<LogIndex>) {
    assert_eq!(conversation.view().run_length(Position(0), black_box(&indices)), indices.len());
    (conversation, indices)
}

fn after_insert() -> (Conversation, Outcome) {
    let (conversation, request) = insert();
    conversation.apply(request, 0).expect("the request is right")
}

#[library_benchmark]
#[bench::after_insert(setup = after_insert, config = at_most(125_000))]
fn read_outcome((conversation, outcome): (Conversation, Outcome)) -> (Conversation, Outcome) {
    black_box(outcome.hidden());
    black_box(outcome.shown());
    black_box(outcome.shared_prefix());
    black_box(outcome.warnings());
    (conversation, outcome)
}

#[library_benchmark]
#[bench::tool(setup = conversation, config = at_most(920))]
fn nth_of_role(conversation: Conversation) -> (Conversation, Option<Position>) {
    let found = black_box(&conversation).view().nth_of(Role::Tool, 1_500);
    (conversation, found)
}

#[library_benchmark]
#[bench::middle(setup = conversation, config = at_most(1_200))]
fn position(conversation: Conversation) -> (Conversation, Option<Position>) {
    let found = black_box(&conversation).view().position_of(LogIndex(MIDDLE as u32));
    (conversation, found)
}

#[library_benchmark]
#[bench::one_edit(setup = conversation, config = at_most(80_500))]
fn diff(conversation: Conversation) -> (Conversation, Diff) {
    let now = conversation.version();
    let diff = black_box(&conversation).diff(Version(now.0 - 1), now).expect("both exist");
    (conversation, diff)
}

library_benchmark_group!(
    name = counts,
    benchmarks = [apply, read_list, read_outcome, nth_of_role, position, diff]
);
main!(library_benchmark_groups = counts);
