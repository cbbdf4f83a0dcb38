//! Measures the times of the plain list.

use std::time::Duration;

use recto_core::{Role, RoleSet};

use crate::plain::{PlainList, PlainMessage, Shape};
use crate::recto::{FILTERS, spoken};
use crate::sheet::Sheet;
use crate::subject::{Subject, scattered};
use crate::transcript::rare_words;

/// Measurements for which the plain list would take longer are skipped.
const TOO_LONG: Duration = Duration::from_secs(4);

/// Measures the rows of the plain list at one size.
pub(crate) fn measure(subject: &Subject, sheet: &mut Sheet<'_>) {
    let mut list = subject.plain();
    versions(&mut list, subject, sheet);
    edits(&mut list, subject, sheet);
    queries(&list, subject, sheet);
    shapes(&mut list, subject, sheet);
}

fn versions(list: &mut PlainList, subject: &Subject, sheet: &mut Sheet<'_>) {
    sheet.row("keep a version", |sampling| {
        let keep = |list: &mut PlainList, _| list.snapshots.push(list.messages.clone());
        sampling.tidied(list, keep, |list| drop(list.snapshots.pop()))
    });
    let back = [
        "ROLLBACK to a batch",
        "ROLLBACK to a recent version",
        "ROLLBACK to a version",
        "UNDO",
        "REDO",
    ];
    sheet.rows(&back, |sampling| {
        list.snapshots.push(list.messages.clone());
        let time = sampling.tidied(list, |list, _| list.roll_back(), |_| {});
        list.snapshots.clear();
        time
    });
    sheet.rows(&["diff, 1 edit", "diff, 100 edits"], |sampling| {
        list.shape(Shape::Delete { index: subject.place(0) as u32 });
        let time = sampling.calls(1, |_| list.changes().0.len());
        list.reset();
        time
    });
}

fn edits(list: &mut PlainList, subject: &Subject, sheet: &mut Sheet<'_>) {
    let size = subject.size;
    let place = |number| subject.place(number);
    let added =
        |number: usize| PlainMessage::new((size + number) as u32, &subject.remark(number), 12);
    let inserts = ["INSERT", "INSERT, outcome read", "INSERT after 200 edits, outcome read"];
    shaped(list, sheet, &inserts, |n| Shape::Insert { at: place(n), message: added(n) });
    shaped(list, sheet, &["REPLACE"], |n| Shape::Replace { at: place(n), message: added(n) });
    let deletes = ["DELETE", "DELETE after 200 edits"];
    shaped(list, sheet, &deletes, |n| Shape::Delete { index: place(n) as u32 });
    shaped(list, sheet, &["TRUNCATE to the last half"], |_| Shape::KeepLast(size / 2));
    shaped(list, sheet, &["BATCH_START from the middle"], |n| Shape::From {
        boundary: place(n) as u32,
    });
    shaped(list, sheet, &["COMPRESS 10 entries"], |n| {
        let from = subject.block(n) as u32;
        Shape::Compress { from, to: from + 10, summary: added(n) }
    });
    let hidden = list.messages.remove(size / 2);
    shaped(list, sheet, &["RESTORE"], |_| Shape::Restore { message: hidden.clone() });
    list.messages.insert(size / 2, hidden);

    sheet.row("APPEND, not counted", |sampling| {
        let prepared = added(0);
        let time = sampling.calls(60, |_| list.append(prepared.clone()));
        list.messages.truncate(size);
        time
    });
}

/// Shapes the list repeatedly. Reverting each operation is not measured.
fn shaped(
    list: &mut PlainList,
    sheet: &mut Sheet<'_>,
    rows: &[&'static str],
    shape: impl Fn(usize) -> Shape,
) {
    sheet.rows(rows, |sampling| {
        sampling.tidied(list, |list, number| list.shape(shape(number)), PlainList::reset)
    });
}

fn queries(list: &PlainList, subject: &Subject, sheet: &mut Sheet<'_>) {
    let size = subject.size;
    let tools = list.count_of(Role::Tool);
    let nth = |number| list.nth_of(Role::Tool, scattered(number, 0, tools));
    sheet.row("n-th of a role", |sampling| sampling.calls(4, nth));
    let newest = |roles: RoleSet| list.newest(roles, 10);
    sheet.row("newest 10 of a role", |sampling| sampling.calls(200, |_| newest(Role::User.into())));
    let two: RoleSet = [Role::User, Role::Assistant].into_iter().collect();
    sheet.row("newest 10 of two roles", |sampling| sampling.calls(200, |_| newest(two)));
    sheet.row("count of a role", |sampling| sampling.calls(4, |_| list.count_of(Role::Tool)));
    let sum = |number| {
        let start = scattered(number, 0, size / 2);
        list.tokens_in(start..start + size / 2)
    };
    sheet.row("token sum of a range", |sampling| sampling.calls(4, sum));
    let position = |number| list.position_of(subject.place(number) as u32);
    sheet.rows(&["position of an index", "position of an index after 200 edits"], |sampling| {
        sampling.calls(4, position)
    });
}

fn shapes(list: &mut PlainList, subject: &Subject, sheet: &mut Sheet<'_>) {
    let tokens = subject.fresh.view().tokens();
    let half = ["FIT into 1/2", "FIT into 1/2 after 200 edits"];
    shaped(list, sheet, &half, |_| Shape::Fit { max_tokens: tokens / 2 });
    shaped(list, sheet, &["FIT into 1 %"], |_| Shape::Fit { max_tokens: tokens / 100 });
    sheet.row("FILTER by role", |sampling| {
        let filter = |list: &mut PlainList, _| list.shape(Shape::Roles(spoken()));
        subject.size as f64 / sampling.tidied(list, filter, PlainList::reset)
    });
    for (row, count) in FILTERS {
        // A text of 1 GB takes at least half a second for each word.
        let expected = Duration::from_secs_f64(subject.text_bytes as f64 * 0.5e-9 * count as f64);
        if expected > TOO_LONG {
            return;
        }
        let words = rare_words(count);
        sheet.row(row, |sampling| {
            let filter = |list: &mut PlainList, _| list.shape(Shape::Containing(words.clone()));
            subject.text_bytes as f64 / sampling.tidied(list, filter, PlainList::reset)
        });
    }
}
