//! Measures the times of Recto.

use std::hint::black_box;
use std::time::Instant;

use recto_core::{
    Append, Arrange, BatchIndex, BatchStart, Clear, Compress, Conversation, Delete, Error, Filter,
    Fit, LogIndex, Mark, Message, Outcome, Pick, Position, Query, Redo, Replace, Request, Restore,
    Role, RoleSet, Rollback, Truncate, Undo, Version,
};

use crate::sheet::Sheet;
use crate::subject::{EDITS, Subject, scattered};
use crate::transcript::rare_words;

/// Number of requests in a chain. It is small, so that edits do not accumulate.
const STEPS: usize = 16;
/// Number of requests in a chain that does not change the view.
const LONG: usize = 60;
/// Number of consecutive queries in a sample.
const CALLS: usize = 200;

/// Measures everything at one size.
pub(crate) fn measure(subject: &Subject, sheet: &mut Sheet<'_>) {
    versions(subject, sheet);
    edits(subject, sheet);
    appends(subject, sheet);
    queries(subject, sheet);
    fits(subject, sheet);
    filters(subject, sheet);
}

fn versions(subject: &Subject, sheet: &mut Sheet<'_>) {
    let Subject { fresh, edited, .. } = subject;
    sheet.row("keep a version", |sampling| {
        let mut kept = Vec::with_capacity(LONG);
        sampling.samples(|| {
            let clock = Instant::now();
            kept.extend(std::iter::repeat_n(edited, LONG).cloned());
            let time = clock.elapsed().as_secs_f64() / LONG as f64;
            black_box(&mut kept).clear();
            time
        })
    });
    // Each step goes three batches down; after the last one, the steps start at the top again.
    let to_batch = |on: &Conversation, number: usize| {
        let batch = BatchIndex(EDITS - 3 * (number % LONG + 1));
        on.apply(Rollback::ToBatch(batch), 0)
    };
    sheet.row("ROLLBACK to a batch", |sampling| sampling.chain(edited, LONG, to_batch));
    let versions = edited.version().0 as usize;
    let some_version = |number| Version(scattered(number, 0, versions) as u32);
    let to_version =
        |on: &Conversation, number: usize| on.apply(Rollback::ToVersion(some_version(number)), 0);
    sheet.row("ROLLBACK to a version", |sampling| sampling.chain(edited, LONG, to_version));
    sheet.row("  and its figures read", |sampling| {
        sampling.chain(edited, LONG, |on, number| {
            let applied = to_version(on, number)?;
            black_box(applied.1.stats());
            Ok(applied)
        })
    });
    // The same number of versions at every size, so that only the length of the view differs.
    let recent = |number| Version((versions - 1 - scattered(number, 0, 200)) as u32);
    let to_recent =
        |on: &Conversation, number: usize| on.apply(Rollback::ToVersion(recent(number)), 0);
    sheet.row("ROLLBACK to a recent version", |sampling| sampling.chain(edited, LONG, to_recent));
    let undo = |on: &Conversation, _: usize| on.apply(Undo, 0);
    sheet.row("UNDO", |sampling| sampling.chain(edited, LONG, undo));
    sheet.row("REDO", |sampling| {
        let undone = repeated(edited, LONG, undo);
        sampling.chain(&undone, LONG, |on, _| on.apply(Redo, 0))
    });

    let read = |number| {
        let then = edited.at(some_version(number)).expect("it exists");
        let middle = then.view().get(Position(then.view().len() / 2));
        (middle, then)
    };
    sheet.row("read at a version", |sampling| sampling.calls(LONG, read));
    let start = fresh.version();
    let diff = |edits: u32| edited.diff(start, Version(start.0 + edits));
    sheet.row("diff, 1 edit", |sampling| sampling.calls(LONG, |_| diff(1)));
    sheet.row("diff, 100 edits", |sampling| sampling.calls(1, |_| diff(100)));
}

fn edits(subject: &Subject, sheet: &mut Sheet<'_>) {
    let Subject { fresh, edited, .. } = subject;
    let insert = |on: &Conversation, number: usize| on.apply(subject.insert(number), 0);
    sheet.row("INSERT", |sampling| sampling.chain(fresh, STEPS, insert));
    let replace = |on: &Conversation, number: usize| {
        let index = Position(subject.place(number));
        on.apply(Replace { index, message: subject.remark(number) }, 0)
    };
    sheet.row("REPLACE", |sampling| sampling.chain(fresh, STEPS, replace));
    let delete = |on: &Conversation, number: usize| {
        on.apply(Delete { indices: vec![LogIndex(subject.place(number) as u32)] }, 0)
    };
    sheet.row("DELETE", |sampling| sampling.chain(fresh, STEPS, delete));
    sheet.row("DELETE after 200 edits", |sampling| {
        sampling.chain(edited, STEPS, |on, number| delete(on, number + EDITS))
    });
    sheet.row("RESTORE", |sampling| {
        let hidden: Vec<_> = (0..STEPS).map(|n| LogIndex(subject.place(n) as u32)).collect();
        let (without, _) = fresh.apply(Delete { indices: hidden.clone() }, 0).expect("they exist");
        let restore = |on: &Conversation, number: usize| {
            on.apply(Restore { indices: vec![hidden[number % STEPS]] }, 0)
        };
        sampling.chain(&without, STEPS, restore)
    });

    arrange(subject, sheet);

    let half = Truncate { keep_last: Some(subject.size / 2), ..Default::default() };
    sheet.row("TRUNCATE to the last half", |sampling| {
        sampling.each(fresh, |on, _| on.apply(half.clone(), 0))
    });
    sheet.row("CLEAR", |sampling| sampling.each(fresh, |on, _| on.apply(Clear::default(), 0)));
    let batch_start = |on: &Conversation, number: usize| {
        let boundary = Some(LogIndex(subject.place(number) as u32));
        on.apply(BatchStart { boundary, with_tools: false }, 0)
    };
    sheet.row("BATCH_START from the middle", |sampling| sampling.each(fresh, batch_start));
    let compress = |on: &Conversation, number: usize| {
        let first = subject.block(number) as u32;
        let indices = (first..first + 10).map(LogIndex).collect();
        on.apply(Compress { indices, summary: Some(subject.remark(number)) }, 0)
    };
    sheet.row("COMPRESS 10 entries", |sampling| sampling.chain(fresh, STEPS, compress));
    let mark = |on: &Conversation, number: usize| {
        let indices = vec![LogIndex(subject.place(number) as u32)];
        on.apply(Mark { indices, mark: "important".into() }, 0)
    };
    sheet.row("MARK", |sampling| sampling.chain(fresh, STEPS, mark));
    let insert_and_read = |on: &Conversation, number: usize| {
        let applied = insert(on, number)?;
        read_all(&applied.1);
        Ok::<_, Error>(applied)
    };
    sheet.row("INSERT, outcome read", |sampling| sampling.chain(fresh, STEPS, insert_and_read));
    sheet.row("INSERT after 200 edits, outcome read", |sampling| {
        sampling.chain(edited, STEPS, |on, number| insert_and_read(on, number + EDITS))
    });
}

/// Measures an ARRANGE that moves one entry. Reading its list is measured separately: the list is as long as
/// the view and is compared with it entry by entry.
fn arrange(subject: &Subject, sheet: &mut Sheet<'_>) {
    let fresh = &subject.fresh;
    let mut indices: Vec<LogIndex> = fresh.view().iter().collect();
    let moved = indices.remove(subject.size / 4);
    indices.insert(subject.size / 4 * 3, moved);
    let request = Request::from(Arrange { indices: indices.clone() });
    let arranged = fresh.apply_request(&request, 0).expect("the entries exist").0;
    let read = || {
        let clock = Instant::now();
        let length = arranged.view().run_length(Position(0), black_box(&indices));
        assert_eq!(length, subject.size);
        clock.elapsed().as_secs_f64()
    };
    sheet.row("reading the list of an ARRANGE", |sampling| sampling.samples(read));
    // This is a small difference of two long times. Many samples of both are taken in turns, and the
    // shortest ones are subtracted.
    sheet.row("ARRANGE one entry, beyond that", |sampling| {
        let (mut least_whole, mut least_read) = (f64::MAX, f64::MAX);
        sampling.samples(|| {
            let clock = Instant::now();
            let applied = fresh.apply_request(black_box(&request), 0);
            least_whole = least_whole.min(clock.elapsed().as_secs_f64());
            drop(black_box(applied));
            least_read = least_read.min(read());
            least_whole
        });
        (least_whole - least_read).max(0.0)
    });
}

fn read_all(outcome: &Outcome) {
    black_box(outcome.hidden());
    black_box(outcome.shown());
    black_box(outcome.added());
    black_box(outcome.shared_prefix());
    black_box(outcome.warnings());
}

fn appends(subject: &Subject, sheet: &mut Sheet<'_>) {
    // Messages of all kinds, in the order of the transcript.
    let messages: Vec<Message> =
        subject.fresh.messages().skip(subject.size / 2).take(256).cloned().collect();
    let append = |on: &Conversation, number: usize| {
        on.apply(Append { messages: vec![messages[number % messages.len()].clone()] }, 0)
    };
    let Subject { fresh, uncounted, .. } = subject;
    sheet.row("APPEND, not counted", |sampling| sampling.chain(uncounted, LONG, append));
    sheet.row("APPEND, approx", |sampling| sampling.chain(fresh, LONG, append));
}

fn queries(subject: &Subject, sheet: &mut Sheet<'_>) {
    let Subject { fresh, edited, size, .. } = subject;
    let view = fresh.view();
    let tools = view.count_of(Role::Tool);
    let nth = |number| view.nth_of(Role::Tool, scattered(number, 0, tools));
    sheet.row("n-th of a role", |sampling| sampling.calls(CALLS, nth));
    let newest = |_| fresh.recent_by_role(Role::User, 10);
    sheet.row("newest 10 of a role", |sampling| sampling.calls(CALLS, newest));
    let roles = Some([Role::User, Role::Assistant].into_iter().collect());
    let query = Query { roles, pick: Pick::Last(10), ..Default::default() };
    sheet.row("newest 10 of two roles", |sampling| sampling.calls(CALLS, |_| fresh.query(&query)));
    let count = |_| black_box(fresh).count_by_role(Role::Tool);
    sheet.row("count of a role", |sampling| sampling.calls(CALLS, count));
    let sum = |number| {
        let start = scattered(number, 0, size / 2);
        view.tokens_in(start..start + size / 2)
    };
    sheet.row("token sum of a range", |sampling| sampling.calls(CALLS, sum));
    let position =
        |on: &Conversation, number| on.view().position_of(LogIndex(subject.place(number) as u32));
    sheet.row("position of an index", |sampling| {
        sampling.calls(CALLS, |number| position(fresh, number))
    });
    sheet.row("position of an index after 200 edits", |sampling| {
        sampling.calls(CALLS, |number| position(edited, number))
    });
}

fn fits(subject: &Subject, sheet: &mut Sheet<'_>) {
    let Subject { fresh, edited, .. } = subject;
    let tokens = fresh.view().tokens();
    // The budget differs in each call, so that the kept run starts at another position.
    let into = |share: u64| {
        move |on: &Conversation, number: usize| {
            on.apply(Fit::within(tokens / share + 97 * (number % 64) as u64), 0)
        }
    };
    sheet.row("FIT into 1/2", |sampling| sampling.each(fresh, into(2)));
    sheet.row("FIT into 1 %", |sampling| sampling.each(fresh, into(100)));
    sheet.row("FIT into 1/2 after 200 edits", |sampling| sampling.each(edited, into(2)));
}

fn filters(subject: &Subject, sheet: &mut Sheet<'_>) {
    let Subject { fresh, size, text_bytes, .. } = subject;
    let by_role = Filter { roles: Some(spoken()), ..Default::default() };
    sheet.row("FILTER by role", |sampling| {
        *size as f64 / sampling.each(fresh, |on, _| on.apply(by_role.clone(), 0))
    });
    for (row, count) in FILTERS {
        let words = Filter { content_contains: Some(rare_words(count)), ..Default::default() };
        sheet.row(row, |sampling| {
            *text_bytes as f64 / sampling.each(fresh, |on, _| on.apply(words.clone(), 0))
        });
    }
}

/// The roles that FILTER by role keeps.
pub(crate) fn spoken() -> RoleSet {
    [Role::System, Role::User, Role::Assistant].into_iter().collect()
}

/// The rows that filter by words, with the number of words.
pub(crate) const FILTERS: [(&str, usize); 4] = [
    ("FILTER by 1 word", 1),
    ("FILTER by 10 words", 10),
    ("FILTER by 100 words", 100),
    ("FILTER by 1,000 words", 1_000),
];

fn repeated(
    start: &Conversation,
    times: usize,
    step: impl Fn(&Conversation, usize) -> Result<(Conversation, Outcome), Error>,
) -> Conversation {
    (0..times).fold(start.clone(), |on, number| step(&on, number).expect("it is right").0)
}
