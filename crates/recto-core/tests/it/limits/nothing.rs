//! An empty conversation.

use super::*;

/// Every operation on an empty conversation: refused, or the length of the view afterwards.
const OPERATIONS: &[(&str, Result<usize, &str>)] = &[
    (r#"{"operation":"APPEND","messages":[{"role":"tool","content":""}]}"#, Ok(1)),
    (r#"{"operation":"INSERT","position":0,"messages":[{"role":"user","content":"x"}]}"#, Ok(1)),
    (
        r#"{"operation":"REPLACE","index":0,"message":{"role":"user","content":"x"}}"#,
        Err("index_out_of_range"),
    ),
    (r#"{"operation":"DELETE","indices":[0]}"#, Err("index_out_of_range")),
    (r#"{"operation":"COMPRESS","indices":[0]}"#, Err("index_out_of_range")),
    (
        r#"{"operation":"COMPRESS","indices":[0],"summary":{"role":"user","content":"x"}}"#,
        Err("index_out_of_range"),
    ),
    (r#"{"operation":"TRUNCATE","keepFirst":1}"#, Ok(0)),
    (r#"{"operation":"TRUNCATE","keepLast":0}"#, Ok(0)),
    (r#"{"operation":"TRUNCATE","range":{"start":0,"end":0}}"#, Ok(0)),
    (r#"{"operation":"TRUNCATE","role":"user","keepOthers":true,"scope":"all"}"#, Ok(0)),
    (r#"{"operation":"FILTER","roles":["user"]}"#, Ok(0)),
    (r#"{"operation":"FILTER","contentContains":["x"],"scope":"all"}"#, Ok(0)),
    (r#"{"operation":"CLEAR"}"#, Ok(0)),
    (r#"{"operation":"CLEAR","keepSystemMessage":false,"scope":"all"}"#, Ok(0)),
    (r#"{"operation":"RESTORE","indices":[0]}"#, Err("index_out_of_range")),
    (r#"{"operation":"FIT","maxTokens":0}"#, Ok(0)),
    (r#"{"operation":"BATCH_START"}"#, Ok(0)),
    (r#"{"operation":"BATCH_START","boundary":0}"#, Ok(0)),
    (r#"{"operation":"BATCH_START","boundary":1}"#, Err("index_out_of_range")),
    (r#"{"operation":"BATCH_END","targetBatchIndex":0,"carry":"all"}"#, Ok(0)),
    (r#"{"operation":"BATCH_END","targetBatchIndex":1}"#, Err("batch_not_found")),
    (r#"{"operation":"ROLLBACK","targetBatchIndex":0}"#, Ok(0)),
    (r#"{"operation":"ROLLBACK","targetVersion":0}"#, Ok(0)),
    (r#"{"operation":"ROLLBACK","targetVersion":1}"#, Err("version_not_found")),
    (r#"{"operation":"MARK","indices":[0],"mark":"x"}"#, Err("index_out_of_range")),
    (r#"{"operation":"UNMARK","indices":[0],"mark":"x"}"#, Err("index_out_of_range")),
    (r#"{"operation":"UNDO"}"#, Err("nothing_to_undo")),
    (r#"{"operation":"REDO"}"#, Err("nothing_to_redo")),
];

#[test]
fn every_operation_has_a_result_in_an_empty_conversation() {
    for (request, expected) in OPERATIONS {
        let answer = send(&fresh(), request, 1);
        let found = answer.as_ref().map(|(next, _)| next.view().len());
        assert_eq!(found.map_err(|error| error.code().as_str()), *expected, "{request}");
        if let Ok((next, outcome)) = answer {
            next.verify().unwrap_or_else(|fault| panic!("{request}: {fault}"));
            outcome.to_json();
        }
    }
}

#[test]
fn every_query_has_a_result_in_an_empty_conversation() {
    let conversation = fresh();
    let queries = [
        "{}",
        r#"{"scope":"all"}"#,
        r#"{"role":"user","last":3}"#,
        r#"{"roles":["user","tool"],"first":0}"#,
        r#"{"contains":"x","excludes":["y"]}"#,
        r#"{"mark":"pinned"}"#,
        r#"{"from":0,"to":9}"#,
        r#"{"range":{"start":0,"end":0}}"#,
        r#"{"batchIndex":0}"#,
        r#"{"version":0,"scope":"all"}"#,
    ];
    for query in queries {
        let answer = Query::from_json(query).and_then(|query| conversation.query(&query));
        assert_eq!(answer.map(|hits| hits.len()), Ok(0), "{query}");
    }
    assert_eq!(conversation.view().tokens(), 0);
    assert_eq!(conversation.messages().count(), 0);
    assert_eq!(conversation.versions().count(), 1);
    assert_eq!(conversation.diff(Version(0), Version(0)), Ok(recto_core::Diff::default()));
    assert!(conversation.blame(LogIndex(0)).is_err());
    assert_eq!(conversation.snapshot(BatchIndex(0)).map(|batch| batch.view.len()), Ok(0));
    assert_eq!(
        conversation.mark_map(recto_core::Scope::Visible).unwrap().batch_boundaries,
        [LogIndex(0)]
    );
    assert!(conversation.set_tools(tools(&[]), 1).is_ok());
    let at = conversation.at(Version(0)).expect("it always exists");
    assert_eq!(fingerprint(&at), fingerprint(&conversation));
    conversation.verify().expect("its invariants hold");
}
