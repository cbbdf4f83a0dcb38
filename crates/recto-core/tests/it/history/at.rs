//! Reading any version, and applying requests to it.

use recto_core::{Conversation, LogIndex, PINNED, Query, Rollback, Version};

use super::{REDO, UNDO};
use crate::conversations::{after, append, fresh, send, view};
use crate::driver::{fingerprint, numbers};

/// The values of a conversation after each of several requests of all kinds.
fn all_values() -> Vec<Conversation> {
    let requests = [
        append(40),
        r#"{"operation":"TRUNCATE","keepLast":30}"#.to_owned(),
        r#"{"operation":"MARK","indices":[35],"mark":"pinned"}"#.to_owned(),
        r#"{"operation":"BATCH_START"}"#.to_owned(),
        append(5),
        r#"{"operation":"CLEAR"}"#.to_owned(),
        r#"{"operation":"RESTORE","indices":[3,4,44]}"#.to_owned(),
        r#"{"operation":"BATCH_END","targetBatchIndex":1,"carry":"all"}"#.to_owned(),
        UNDO.to_owned(),
        REDO.to_owned(),
        r#"{"operation":"UNMARK","indices":[35],"mark":"pinned"}"#.to_owned(),
        append(1),
    ];
    let mut values = vec![fresh()];
    for request in &requests {
        let last = values.last().expect("there is a first one");
        let now = values.len() as i64;
        values.push(send(last, request, now).unwrap_or_else(|e| panic!("{request}: {e}")).0);
    }
    values
}

#[test]
fn a_version_reads_as_it_was() {
    let values = all_values();
    let last = values.last().expect("there are some");
    for (version, value) in values.iter().enumerate() {
        let at = last.at(Version(version as u32)).expect("it exists");
        assert_eq!(fingerprint(&at), fingerprint(value), "version {version}");
        at.verify().expect("its invariants hold");
        let all = Query::from_json(&format!(r#"{{"version":{version},"scope":"all"}}"#));
        let asked = last.query(&all.expect("it is a query")).expect("it exists");
        assert_eq!(asked.len(), value.log().len());
    }
}

#[test]
fn requests_on_an_older_version_leave_the_newer_ones_unchanged() {
    let values = all_values();
    let last = values.last().expect("there are some").clone();
    let before: Vec<String> = values.iter().map(fingerprint).collect();
    for (version, value) in values.iter().enumerate() {
        let at = last.at(Version(version as u32)).expect("it exists");
        let fork = after(
            at,
            &[
                r#"{"operation":"APPEND","messages":[{"role":"assistant","content":"fork"}]}"#,
                &append(70),
                r#"{"operation":"CLEAR"}"#,
            ],
        );
        fork.verify().expect("its invariants hold");
        assert_eq!(fork.version().0 as usize, version + 3);
        let own = LogIndex(value.log().len() as u32);
        let message = fork.log().get(own).map(|entry| entry.message.text().into_owned());
        assert_eq!(message.as_deref(), Some("fork"));
    }
    for (value, before) in values.iter().zip(&before) {
        assert_eq!(fingerprint(value), *before);
    }
    last.verify().expect("its invariants hold");
}

#[test]
fn rollback_to_a_version_restores_view_batches_and_marks_and_keeps_the_log() {
    let values = all_values();
    let last = values.last().expect("there are some");
    for (version, value) in values.iter().enumerate() {
        let (back, _) =
            last.apply(Rollback::ToVersion(Version(version as u32)), 99).expect("it exists");
        assert_eq!(view(&back), view(value));
        assert_eq!(back.stats().total_batches, value.stats().total_batches);
        assert_eq!(
            numbers(back.marks().indices(PINNED)),
            numbers(value.marks().indices(PINNED)),
            "version {version}"
        );
        assert_eq!(back.log().len(), last.log().len());
        assert_eq!(back.version().0, last.version().0 + 1);
    }
}
