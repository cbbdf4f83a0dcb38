//! Requests that only the Rust API can express.

use recto_core::{
    Append, BatchEnd, BatchIndex, BatchStart, Carry, Compress, Delete, Filter, Fit, Insert,
    LogIndex, Mark, Message, Operation, Pick, Position, Query, QueryAt, Redo, Replace,
    ReplaceEntries, Request, Restore, Role, RoleSet, Rollback, Tool, Truncate, Undo, Unmark,
    Version,
};

use super::worked;
use crate::conversations::fresh;
use crate::driver::fingerprint;

fn user() -> Message {
    Message::user("x")
}

/// Requests that have no JSON form, and the code of their error.
fn typed_requests() -> Vec<(Request, &'static str)> {
    let (zero, pinned) = (vec![LogIndex(0)], vec![LogIndex(4)]);
    let (beyond, hidden) = (vec![LogIndex(u32::MAX)], vec![LogIndex(1)]);
    let undo = || Operation::from(Undo);
    let words = |words: &[&str]| Some(words.iter().map(|&word| word.to_owned()).collect());
    vec![
        (Request { steps: Vec::new() }, "invalid_operation"),
        (Request::from_iter([undo(), undo()]), "invalid_operation"),
        (Request::from_iter([undo(), Redo.into()]), "invalid_operation"),
        (Append::default().into(), "invalid_operation"),
        (Insert::default().into(), "invalid_operation"),
        (ReplaceEntries::default().into(), "invalid_operation"),
        (
            ReplaceEntries { indices: zero.clone(), messages: Vec::new() }.into(),
            "invalid_operation",
        ),
        (
            ReplaceEntries { indices: Vec::new(), messages: vec![user()] }.into(),
            "invalid_operation",
        ),
        (Delete::default().into(), "invalid_operation"),
        (Restore::default().into(), "invalid_operation"),
        (Compress::default().into(), "invalid_operation"),
        (Compress { indices: Vec::new(), summary: Some(user()) }.into(), "invalid_operation"),
        (Mark::default().into(), "invalid_operation"),
        (Mark { indices: zero.clone(), mark: String::new() }.into(), "invalid_operation"),
        (Mark { indices: Vec::new(), mark: "x".into() }.into(), "invalid_operation"),
        (Unmark::default().into(), "invalid_operation"),
        (Unmark { indices: zero.clone(), mark: String::new() }.into(), "invalid_operation"),
        (Truncate::default().into(), "invalid_operation"),
        (
            Truncate { keep_last: Some(1), keep_others: true, ..Truncate::default() }.into(),
            "invalid_operation",
        ),
        (Filter::default().into(), "invalid_operation"),
        (Filter { roles: Some(RoleSet::NONE), ..Filter::default() }.into(), "invalid_operation"),
        (Filter { content_contains: words(&[]), ..Filter::default() }.into(), "invalid_operation"),
        (
            Filter { content_excludes: words(&["a", ""]), ..Filter::default() }.into(),
            "invalid_operation",
        ),
        (
            BatchEnd { target: Some(BatchIndex(0)), carry: Carry::Roles(RoleSet::NONE) }.into(),
            "invalid_operation",
        ),
        (
            Insert { position: Position(usize::MAX), messages: vec![user()] }.into(),
            "position_out_of_range",
        ),
        (Replace { index: Position(usize::MAX), message: user() }.into(), "index_out_of_range"),
        (Delete { indices: beyond.clone() }.into(), "index_out_of_range"),
        (Restore { indices: beyond.clone() }.into(), "index_out_of_range"),
        (Compress { indices: beyond.clone(), summary: None }.into(), "index_out_of_range"),
        (Mark { indices: beyond.clone(), mark: "x".into() }.into(), "index_out_of_range"),
        (Unmark { indices: beyond.clone(), mark: "x".into() }.into(), "index_out_of_range"),
        (
            BatchStart { boundary: Some(LogIndex(u32::MAX)), with_tools: false }.into(),
            "index_out_of_range",
        ),
        (ReplaceEntries { indices: beyond, messages: vec![user()] }.into(), "index_out_of_range"),
        (ReplaceEntries { indices: hidden.clone(), messages: vec![user()] }.into(), "not_visible"),
        (backwards(|range| Truncate { range, ..Truncate::default() }).into(), "invalid_range"),
        (Rollback::ToBatch(BatchIndex(usize::MAX)).into(), "batch_not_found"),
        (
            BatchEnd { target: Some(BatchIndex(usize::MAX)), carry: Carry::All }.into(),
            "batch_not_found",
        ),
        (Rollback::ToVersion(Version(u32::MAX)).into(), "version_not_found"),
        (Delete { indices: pinned.clone() }.into(), "pinned"),
        (Compress { indices: pinned.clone(), summary: Some(user()) }.into(), "pinned"),
        (Replace { index: Position(3), message: user() }.into(), "pinned"),
        (ReplaceEntries { indices: pinned, messages: vec![user()] }.into(), "pinned"),
        (Compress { indices: hidden, summary: Some(user()) }.into(), "nothing_to_compress"),
        (Fit::default().into(), "budget_too_small"),
    ]
}

/// A range that ends before it starts.
fn backwards<T>(make: impl FnOnce(Option<std::ops::Range<usize>>) -> T) -> T {
    make(Some(std::ops::Range { start: 3, end: 1 }))
}

#[test]
fn an_invalid_request_without_a_json_form_changes_nothing() {
    let conversation = worked();
    let before = fingerprint(&conversation);
    for (request, code) in typed_requests() {
        let error = conversation.apply(request.clone(), 50).expect_err(code);
        assert_eq!(error.code().as_str(), code, "{request:?}: {error}");
        assert_eq!(fingerprint(&conversation), before, "{request:?}");
    }
    let codes = [fresh().apply(Undo, 1), fresh().apply(Redo, 1)]
        .map(|refused| refused.expect_err("there is nothing yet").code().as_str());
    assert_eq!(codes, ["nothing_to_undo", "nothing_to_redo"]);
}

#[test]
fn an_invalid_query_without_a_json_form_is_refused() {
    let conversation = worked();
    let asked = |query: Query| conversation.query(&query).map(drop);
    let beyond = (BatchIndex(usize::MAX), Version(u32::MAX), LogIndex(u32::MAX));
    let words = |word: &str| Some(vec![word.to_owned()]);
    let back = backwards(Option::unwrap_or_default);
    let answers = [
        (asked(Query { roles: Some(RoleSet::NONE), ..Query::default() }), "invalid_operation"),
        (asked(Query { contains: Some(Vec::new()), ..Query::default() }), "invalid_operation"),
        (asked(Query { excludes: words(""), ..Query::default() }), "invalid_operation"),
        (asked(Query { pick: Pick::Range(back.clone()), ..Query::default() }), "invalid_range"),
        (asked(Query { at: QueryAt::Batch(beyond.0), ..Query::default() }), "batch_not_found"),
        (asked(Query { at: QueryAt::Version(beyond.1), ..Query::default() }), "version_not_found"),
        (conversation.search("").map(drop), "invalid_operation"),
        (conversation.recent_by_role(RoleSet::NONE, 1).map(drop), "invalid_operation"),
        (conversation.range(back.clone()).map(drop), "invalid_range"),
        (conversation.range_by_role(Role::User, back).map(drop), "invalid_range"),
        (conversation.at(beyond.1).map(drop), "version_not_found"),
        (conversation.diff(Version(0), beyond.1).map(drop), "version_not_found"),
        (conversation.diff(beyond.1, Version(0)).map(drop), "version_not_found"),
        (conversation.batch_view(beyond.0).map(drop), "batch_not_found"),
        (conversation.snapshot(beyond.0).map(drop), "batch_not_found"),
        (conversation.blame(beyond.2).map(drop), "index_out_of_range"),
        (Message::new(Role::User, "").map(drop), "empty_content"),
        (Message::from_json("{").map(drop), "invalid_json"),
        (Message::from_json("{}").map(drop), "invalid_message"),
        (Tool::list_from_json("[").map(drop), "invalid_json"),
        (Tool::list_from_json("{}").map(drop), "invalid_operation"),
        (Tool::list_from_json(r#"[{"name":"a"}]"#).map(drop), "invalid_operation"),
    ];
    for (number, (answer, code)) in answers.into_iter().enumerate() {
        let error = answer.expect_err(code);
        assert_eq!(error.code().as_str(), code, "{number}: {error}");
    }
}
