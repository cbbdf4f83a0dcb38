//! Requests as JSON: reading a written request gives the same request, and every release writes the same
//! bytes, because stores recognise repeated requests by the hash of these bytes.

use proptest::prelude::*;
use recto_core::{
    Arrange, BatchEnd, BatchIndex, BatchStart, Carry, LogIndex, Mark, Message, OperationKind,
    Query, ReplaceEntries, Request, Unmark,
};
use testkit::corpus::REQUESTS;
use testkit::generate::{self, Choices, Step};
use testkit::{Model, Settings};

/// Requests as earlier releases wrote them. Add lines, but do not change any.
const WRITTEN: &[&str] = &[
    r#"{"operation":"APPEND","messages":[{"role":"user", "content":"a\u00e9","n":1e400,"n":-0}]}"#,
    r#"{"operation":"INSERT","position":3,"messages":[{"role":"user","content":"x"}]}"#,
    r#"{"operation":"REPLACE","index":0,"message":{"role":"user","content":"x"}}"#,
    r#"{"operation":"replace","indices":[1,0],"data":[{"role":"user","content":"x"}]}"#,
    r#"{"operation":"DELETE","indices":[2,1,1]}"#,
    r#"{"operation":"ARRANGE","indices":[2,0]}"#,
    r#"{"operation":"ARRANGE","indices":[]}"#,
    r#"{"operation":"RESTORE","indices":[7],"description":"it was \"needed\""}"#,
    r#"{"operation":"COMPRESS","indices":[0,1]}"#,
    r#"{"operation":"COMPRESS","indices":[0],"summary":{"role":"assistant","content":"s"}}"#,
    r#"{"operation":"TRUNCATE","keepLast":2}"#,
    r#"{"operation":"TRUNCATE","keepFirst":1,"role":"tool","keepOthers":true,"scope":"all"}"#,
    r#"{"operation":"TRUNCATE","removeFirst":4}"#,
    r#"{"operation":"TRUNCATE","removeLast":4}"#,
    r#"{"operation":"TRUNCATE","range":{"start":1,"end":9}}"#,
    r#"{"operation":"FILTER","roles":["system","user"],"contentContains":["a"],"contentExcludes":["b","c"],"scope":"all"}"#,
    r#"{"operation":"CLEAR"}"#,
    r#"{"operation":"CLEAR","keepSystemMessage":false,"scope":"all"}"#,
    r#"{"operation":"FIT","maxTokens":1000}"#,
    r#"{"operation":"FIT","maxTokens":0,"keepSystem":false,"startOn":"user"}"#,
    r#"{"operation":"BATCH_START"}"#,
    r#"{"operation":"BATCH_START","boundary":5}"#,
    r#"{"operation":"BATCH_START","withTools":true}"#,
    r#"{"operation":"BATCH_END"}"#,
    r#"{"operation":"BATCH_END","targetBatchIndex":1}"#,
    r#"{"operation":"BATCH_END","targetBatchIndex":0,"carry":"all"}"#,
    r#"{"operation":"BATCH_END","targetBatchIndex":0,"carry":["assistant","tool"]}"#,
    r#"{"operation":"ROLLBACK","targetBatchIndex":2}"#,
    r#"{"operation":"ROLLBACK","targetVersion":40}"#,
    r#"{"operation":"MARK","indices":[3],"mark":"pinned"}"#,
    r#"{"operation":"UNMARK","indices":[3],"mark":"\u0001\n日"}"#,
    r#"{"operation":"UNDO"}"#,
    r#"{"operation":"REDO","description":""}"#,
    r#"{"ops":[{"operation":"DELETE","indices":[0]},{"operation":"CLEAR","description":"why"}]}"#,
];

#[test]
fn every_release_writes_the_same_bytes() {
    for written in WRITTEN {
        let request =
            Request::from_json(written).unwrap_or_else(|error| panic!("{written}: {error}"));
        assert_eq!(request.to_json(), *written);
    }
    for kind in OperationKind::OPERATIONS {
        let name = match kind {
            OperationKind::ReplaceEntries => "replace",
            kind => kind.as_str(),
        };
        let start = format!(r#"{{"operation":"{name}""#);
        assert!(WRITTEN.iter().any(|written| written.starts_with(&start)), "{name}");
    }
}

#[test]
fn a_constructor_makes_the_request_that_is_written_like_this() {
    let entries = || [LogIndex(3), LogIndex(1)];
    let requests: [(Request, &str); 7] = [
        (Arrange::entries(entries()).into(), r#"{"operation":"ARRANGE","indices":[3,1]}"#),
        (
            Mark::label(entries(), "draft").into(),
            r#"{"operation":"MARK","indices":[3,1],"mark":"draft"}"#,
        ),
        (
            Unmark::label(entries(), "draft").into(),
            r#"{"operation":"UNMARK","indices":[3,1],"mark":"draft"}"#,
        ),
        (BatchStart::from_entry(LogIndex(5)).into(), r#"{"operation":"BATCH_START","boundary":5}"#),
        (BatchEnd::to(BatchIndex(1)).into(), r#"{"operation":"BATCH_END","targetBatchIndex":1}"#),
        (
            BatchEnd { target: Some(BatchIndex(0)), ..BatchEnd::carrying(Carry::All) }.into(),
            r#"{"operation":"BATCH_END","targetBatchIndex":0,"carry":"all"}"#,
        ),
        (
            ReplaceEntries::with_messages(entries(), [Message::user("x")]).into(),
            r#"{"operation":"replace","indices":[3,1],"data":[{"role":"user","content":"x"}]}"#,
        ),
    ];
    for (request, written) in requests {
        assert_eq!(request.to_json(), written);
    }
    for (query, written) in [
        (Query::last(2), r#"{"last":2}"#),
        (Query::containing("x"), r#"{"contains":["x"]}"#),
        (Query::marked("pinned"), r#"{"mark":"pinned"}"#),
    ] {
        assert_eq!(Query::from_json(written).as_ref(), Ok(&query), "{written}");
    }
}

fn check_round_trip(json: &str) {
    if let Ok(request) = Request::from_json(json) {
        let written = request.to_json();
        let again = Request::from_json(&written);
        assert_eq!(again.as_ref(), Ok(&request), "{json}: {written}");
        assert_eq!(again.unwrap().to_json(), written);
    }
}

#[test]
fn every_request_of_the_corpus_survives_a_round_trip() {
    REQUESTS.iter().for_each(|(request, _)| check_round_trip(request));
}

proptest! {
    #[test]
    fn random_requests_survive_a_round_trip(
        settings in prop::collection::vec(any::<u16>(), 0..8),
        steps in prop::collection::vec(prop::collection::vec(any::<u16>(), 0..80), 1..20),
    ) {
        let settings: Settings = generate::settings(&mut Choices::new(&settings));
        let mut model = Model::new(settings, 0);
        for numbers in steps {
            if let Step::Apply(request) = generate::step(&mut Choices::new(&numbers), &model) {
                check_round_trip(&request.to_string());
                let _ = model.apply(&request, 1);
            }
        }
    }
}
