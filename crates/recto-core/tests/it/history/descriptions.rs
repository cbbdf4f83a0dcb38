//! Descriptions of versions and of batches.

use recto_core::{BatchIndex, Conversation, Version};
use serde_json::json;

use super::{DELETE_0, UNDO};
use crate::conversations::{after, append, fresh, send};
use crate::driver::numbers;

/// Operations and their generated descriptions.
const MADE: &[(&str, &str)] = &[
    (r#"{"operation":"APPEND","messages":[{"role":"user","content":"x"}]}"#, "APPEND 1 message"),
    (
        r#"{"operation":"INSERT","position":1,"messages":[{"role":"user","content":"x"},{"role":"user","content":"x"}]}"#,
        "INSERT 2 messages at 1",
    ),
    (
        r#"{"operation":"REPLACE","index":0,"message":{"role":"user","content":"x"}}"#,
        "REPLACE the entry at position 0",
    ),
    (
        r#"{"operation":"replace","indices":[0,1],"data":{"role":"user","content":"x"}}"#,
        "REPLACE 2 entries by 1 message",
    ),
    (DELETE_0, "DELETE 1 entry"),
    (r#"{"operation":"COMPRESS","indices":[0,1]}"#, "COMPRESS 2 entries"),
    (
        r#"{"operation":"COMPRESS","indices":[0],"summary":{"role":"user","content":"x"}}"#,
        "COMPRESS 1 entry into a summary",
    ),
    (
        r#"{"operation":"TRUNCATE","keepFirst":3,"keepLast":2,"removeFirst":1,"removeLast":0}"#,
        "TRUNCATE keepFirst 3 keepLast 2 removeFirst 1 removeLast 0",
    ),
    (
        r#"{"operation":"TRUNCATE","range":{"start":1,"end":2},"role":"user","keepOthers":true,"scope":"all"}"#,
        "TRUNCATE range 1..2 role user keepOthers of the whole log",
    ),
    (
        r#"{"operation":"FILTER","roles":["tool","user"],"contentContains":["x"],"contentExcludes":["y"]}"#,
        r#"FILTER roles user, tool containing "x" without "y""#,
    ),
    (r#"{"operation":"CLEAR"}"#, "CLEAR, keep system"),
    (r#"{"operation":"CLEAR","keepSystemMessage":false}"#, "CLEAR"),
    (r#"{"operation":"ARRANGE","indices":[1,0]}"#, "ARRANGE 2 entries"),
    (r#"{"operation":"RESTORE","indices":[0,1]}"#, "RESTORE 2 entries"),
    (r#"{"operation":"FIT","maxTokens":5}"#, "FIT into 5 tokens"),
    (r#"{"operation":"BATCH_START"}"#, "BATCH_START"),
    (r#"{"operation":"BATCH_START","boundary":2}"#, "BATCH_START from entry 2"),
    (r#"{"operation":"BATCH_END","targetBatchIndex":0}"#, "BATCH_END to batch 0"),
    (r#"{"operation":"ROLLBACK","targetBatchIndex":0}"#, "ROLLBACK to batch 0"),
    (r#"{"operation":"ROLLBACK","targetVersion":0}"#, "ROLLBACK to version 0"),
    (r#"{"operation":"MARK","indices":[0],"mark":"a \"b\""}"#, r#"MARK 1 entry "a \"b\"""#),
    (r#"{"operation":"UNMARK","indices":[0,1],"mark":"m"}"#, r#"UNMARK 2 entries "m""#),
    (UNDO, "UNDO"),
    (
        r#"{"ops":[{"operation":"CLEAR","description":"tidy"},{"operation":"BATCH_START"}]}"#,
        "tidy; BATCH_START",
    ),
];

fn newest(conversation: &Conversation) -> recto_core::VersionInfo {
    conversation.versions().next_back().expect("there is always version 0")
}

#[test]
fn a_description_is_generated_if_none_is_given() {
    let conversation = after(fresh(), &[&append(3)]);
    for (request, expected) in MADE {
        let (next, _) = send(&conversation, request, 7).expect(request);
        assert_eq!(newest(&next).reason, *expected, "{request}");
        assert_eq!(newest(&next).timestamp, 7);
    }
}

#[test]
fn a_given_description_is_kept_unchanged() {
    let conversation = after(fresh(), &[&append(3)]);
    let given = "why \u{202e}\0 \"quoted\"\n压缩";
    for (request, _) in MADE.iter().filter(|(request, _)| !request.contains("ops")) {
        let described = request.replacen('{', &format!(r#"{{"description":{},"#, json!(given)), 1);
        let (next, outcome) = send(&conversation, &described, 7).expect(request);
        assert_eq!(newest(&next).reason, given, "{request}");
        let batch = next.stats().current_batch_index;
        if batch == BatchIndex(1) {
            let snapshot = next.snapshot(batch).expect("it is current");
            assert_eq!(snapshot.reason, given, "{request}");
            assert_eq!(snapshot.timestamp, 7, "{request}");
        }
        assert_eq!(outcome.affected_batch(), batch);
    }
}

#[test]
fn a_snapshot_has_the_time_and_the_reason_of_its_batch() {
    let conversation = after(
        fresh(),
        &[
            &append(2),
            r#"{"operation":"DELETE","indices":[0],"description":"cut"}"#,
            &append(1),
            r#"{"ops":[
                {"operation":"BATCH_START","description":"inner"},
                {"operation":"APPEND","messages":[{"role":"user","content":"x"}],"description":"no batch"},
                {"operation":"CLEAR"}]}"#,
            &append(1),
        ],
    );
    let seen: Vec<(String, i64, Vec<usize>)> = (0..conversation.stats().total_batches)
        .map(|batch| conversation.snapshot(BatchIndex(batch)).expect("it is on the path"))
        .map(|found| {
            let messages = numbers(found.messages().map(|(index, _)| index));
            (found.reason.clone(), found.timestamp, messages)
        })
        .collect();
    let row = |why: &str, when: i64, view: &[usize]| (why.to_owned(), when, view.to_vec());
    assert_eq!(
        seen,
        [
            row("the start of the conversation", 0, &[0, 1]),
            row("cut", 2, &[1, 2]),
            row("inner", 4, &[1, 2, 3]),
            row("CLEAR, keep system", 4, &[4]),
        ]
    );
}

#[test]
fn a_batch_number_that_is_used_again_has_its_new_reason() {
    let conversation = after(
        fresh(),
        &[
            &append(2),
            r#"{"operation":"BATCH_START","description":"first"}"#,
            r#"{"operation":"ROLLBACK","targetBatchIndex":0}"#,
            r#"{"operation":"BATCH_START","description":"second"}"#,
        ],
    );
    let why = |conversation: &Conversation| {
        conversation.snapshot(BatchIndex(1)).map(|found| found.reason)
    };
    assert_eq!(why(&conversation).as_deref(), Ok("second"));
    let at = conversation.at(Version(2)).expect("it exists");
    assert_eq!(why(&at).as_deref(), Ok("first"));
}
