//! UNDO and REDO.

use recto_core::{Conversation, Redo, Undo};

use super::{DELETE_0, REDO, UNDO};
use crate::conversations::{after, append, fresh, send, tools, view, with_tools};
use crate::driver::{fingerprint, numbers};

#[test]
fn undo_skips_requests_that_are_undone() {
    // The table in src/history.rs: A, B, C, UNDO, UNDO, REDO.
    let conversation = after(fresh(), &[&append(1), &append(1), &append(1), UNDO, UNDO, REDO]);
    let lengths: Vec<usize> = conversation.versions().map(|info| info.messages).collect();
    assert_eq!(lengths, [0, 1, 2, 3, 2, 1, 2]);
    let twice = after(conversation.clone(), &[UNDO, UNDO]);
    assert!(twice.view().is_empty());
    assert!(send(&twice, UNDO, 9).is_err());
    let again = after(twice, &[REDO, REDO, REDO]);
    assert_eq!(view(&again), [0, 1, 2]);
    assert!(send(&again, REDO, 9).is_err());
    let other = after(conversation, &[REDO]);
    assert_eq!(view(&other), [0, 1, 2]);
}

#[test]
fn any_other_request_ends_redo() {
    let conversation = after(fresh(), &[&append(2), &append(1), UNDO]);
    let others = [
        append(1),
        r#"{"operation":"BATCH_START"}"#.to_owned(),
        r#"{"operation":"MARK","indices":[0],"mark":"m"}"#.to_owned(),
        r#"{"operation":"ROLLBACK","targetBatchIndex":0}"#.to_owned(),
        r#"{"ops":[{"operation":"CLEAR"},{"operation":"FIT","maxTokens":99}]}"#.to_owned(),
    ];
    for other in &others {
        let next = after(conversation.clone(), &[other]);
        let error = send(&next, REDO, 9).expect_err(other);
        assert_eq!(error.code().as_str(), "nothing_to_redo", "{other}");
        let back = after(next, &[UNDO]);
        assert_eq!(view(&back), view(&conversation), "{other}");
    }
    let (tooled, _) = conversation.set_tools(tools(&["f"]), 9).expect("it is accepted");
    assert!(send(&tooled, REDO, 10).is_err());
}

#[test]
fn a_fit_without_effect_leaves_redo_possible() {
    let conversation = after(fresh(), &[&append(2), &append(1), UNDO]);
    let (same, outcome) =
        send(&conversation, r#"{"operation":"FIT","maxTokens":999}"#, 9).expect("ok");
    assert_eq!((outcome.changed, outcome.version), (false, conversation.version()));
    assert_eq!(fingerprint(&same), fingerprint(&conversation));
    assert_eq!(view(&after(same, &[REDO])), [0, 1, 2]);
}

#[test]
fn undo_reverts_everything_that_a_request_changed() {
    let start = after(with_tools(&["f"]), &[&append(3)]);
    let pinned = r#"{"operation":"MARK","indices":[1],"mark":"pinned"}"#;
    let requests = [
        pinned,
        r#"{"operation":"TRUNCATE","keepLast":1,"description":"why"}"#,
        r#"{"operation":"CLEAR","keepSystemMessage":false}"#,
        r#"{"operation":"BATCH_START","boundary":2}"#,
        r#"{"ops":[{"operation":"BATCH_START"},{"operation":"MARK","indices":[0],"mark":"m"}]}"#,
    ];
    let seen = |conversation: &Conversation| {
        let marks: Vec<(String, Vec<usize>)> = conversation
            .marks()
            .labels()
            .map(|label| (label.to_owned(), numbers(conversation.marks().indices(label))))
            .collect();
        let tools = conversation.tools().map(|tools| tools.tools().to_vec());
        (view(conversation), marks, tools, conversation.stats().total_batches)
    };
    for request in requests {
        let next = after(start.clone(), &[request]);
        let back = after(next.clone(), &[UNDO]);
        assert_eq!(seen(&back), seen(&start), "{request}");
        assert_eq!(seen(&after(back, &[REDO])), seen(&next), "{request}");
    }
    let (other, _) = start.set_tools(tools(&["g"]), 9).expect("it is accepted");
    let (back, _) = other.apply(Undo, 10).expect("UNDO is possible");
    assert_eq!(seen(&back), seen(&start), "the tools too");
    let (again, _) = back.apply(Redo, 11).expect("REDO is possible");
    assert_eq!(seen(&again), seen(&other));
}

#[test]
fn undone_messages_stay_in_the_log_and_keep_their_indices() {
    let conversation = after(fresh(), &[&append(2), UNDO, &append(1)]);
    assert_eq!((view(&conversation), conversation.log().len()), (vec![2], 3));
    let conversation = after(conversation, &[r#"{"operation":"RESTORE","indices":[0]}"#]);
    assert_eq!(view(&conversation), [0, 2]);
}

#[test]
fn undo_reverts_a_rollback() {
    let conversation = after(
        fresh(),
        &[&append(3), DELETE_0, r#"{"operation":"ROLLBACK","targetVersion":1}"#, UNDO, UNDO, UNDO],
    );
    let lengths: Vec<usize> = conversation.versions().map(|info| info.messages).collect();
    assert_eq!(lengths, [0, 3, 2, 3, 2, 3, 0]);
}
