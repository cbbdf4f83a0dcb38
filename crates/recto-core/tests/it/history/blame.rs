//! `blame`: every request that added, hid or showed an entry.

use recto_core::{Conversation, Effect, LogIndex, Version};

use super::{DELETE_0, RESTORE_0, UNDO};
use crate::conversations::{after, append, fresh, tools, view, with_tools};

/// The effects on an entry, one line per request.
fn effects_on(conversation: &Conversation, index: u32) -> Vec<String> {
    let blames = conversation.blame(LogIndex(index)).expect("it is in the log");
    let line = |blame: &recto_core::Blame| {
        let effect = match blame.effect {
            Effect::Added => "added",
            Effect::AddedHidden => "added hidden",
            Effect::Hidden => "hidden",
            Effect::Shown => "shown",
            other => panic!("an unknown effect: {other:?}"),
        };
        assert_eq!(blame.timestamp, i64::from(blame.version.0), "sent at the time 1, 2, 3 …");
        format!("{} {effect} by {}: {}", blame.version, blame.operation, blame.reason)
    };
    blames.iter().map(line).collect()
}

#[test]
fn every_request_that_hid_or_showed_an_entry_is_named() {
    let conversation = after(
        fresh(),
        &[
            &append(3),
            r#"{"operation":"MARK","indices":[0],"mark":"m"}"#,
            r#"{"operation":"DELETE","indices":[0,1],"description":"too old"}"#,
            r#"{"operation":"DELETE","indices":[0]}"#,
            r#"{"operation":"RESTORE","indices":[0,2]}"#,
            r#"{"operation":"TRUNCATE","keepLast":1}"#,
            UNDO,
            r#"{"operation":"ROLLBACK","targetVersion":3,"description":"back to the cut"}"#,
            r#"{"operation":"ROLLBACK","targetBatchIndex":0}"#,
        ],
    );
    assert_eq!(
        effects_on(&conversation, 0),
        [
            "1 added by APPEND: APPEND 3 messages",
            "3 hidden by DELETE: too old",
            "5 shown by RESTORE: RESTORE 2 entries",
            "6 hidden by TRUNCATE: TRUNCATE keepLast 1",
            "7 shown by UNDO: UNDO",
            "8 hidden by ROLLBACK: back to the cut",
            "9 shown by ROLLBACK: ROLLBACK to batch 0",
        ]
    );
    assert_eq!(effects_on(&conversation, 2), ["1 added by APPEND: APPEND 3 messages"]);
}

#[test]
fn every_operation_that_adds_an_entry_is_named() {
    let message = r#"{"role":"user","content":"x"}"#;
    let conversation = after(
        fresh(),
        &[
            &format!(r#"{{"operation":"INSERT","position":0,"messages":[{message}]}}"#),
            &format!(r#"{{"operation":"REPLACE","index":0,"message":{message}}}"#),
            &format!(r#"{{"operation":"COMPRESS","indices":[1],"summary":{message}}}"#),
            &format!(r#"{{"operation":"replace","indices":[2],"data":[{message},{message}]}}"#),
            r#"{"operation":"BATCH_START","boundary":4}"#,
            r#"{"operation":"BATCH_END","targetBatchIndex":0,"carry":"all"}"#,
        ],
    );
    let ends = |index: u32| {
        let effects = effects_on(&conversation, index);
        (effects[0].clone(), effects[effects.len() - 1].clone())
    };
    assert_eq!(ends(0).0, "1 added by INSERT: INSERT 1 message at 0");
    assert_eq!(
        effects_on(&conversation, 0)[1],
        "2 hidden by REPLACE: REPLACE the entry at position 0"
    );
    assert_eq!(ends(1).0, "2 added by REPLACE: REPLACE the entry at position 0");
    assert_eq!(ends(2).0, "3 added by COMPRESS: COMPRESS 1 entry into a summary");
    assert_eq!(ends(2).1, "4 hidden by REPLACE_ENTRIES: REPLACE 1 entry by 2 messages");
    assert_eq!(ends(3).1, "5 hidden by BATCH_START: BATCH_START from entry 4");
    assert_eq!(view(&conversation), [4], "visible entries that were added since are carried");
    assert_eq!(ends(4).1, "4 added by REPLACE_ENTRIES: REPLACE 1 entry by 2 messages");
}

#[test]
fn the_operation_of_a_list_that_changed_an_entry_is_named() {
    let conversation = after(
        fresh(),
        &[
            &append(2),
            r#"{"ops":[
                {"operation":"APPEND","messages":[{"role":"user","content":"new"}]},
                {"operation":"DELETE","indices":[0],"description":"first cut"},
                {"operation":"RESTORE","indices":[0]},
                {"operation":"DELETE","indices":[0,1],"description":"second cut"},
                {"operation":"RESTORE","indices":[1]},
                {"operation":"BATCH_START"}]}"#,
        ],
    );
    let first = "1 added by APPEND: APPEND 2 messages";
    assert_eq!(effects_on(&conversation, 0), [first, "2 hidden by DELETE: second cut"]);
    assert_eq!(
        effects_on(&conversation, 1),
        [first],
        "changes that the list itself reverts are not listed"
    );
    assert_eq!(effects_on(&conversation, 2), ["2 added by APPEND: APPEND 1 message"]);
}

#[test]
fn an_entry_may_be_hidden_by_the_request_that_adds_it() {
    let conversation = after(
        fresh(),
        &[
            r#"{"ops":[
                {"operation":"APPEND","messages":[{"role":"user","content":"a"},{"role":"user","content":"b"}]},
                {"operation":"DELETE","indices":[0],"description":"a mistake"}]}"#,
            RESTORE_0,
        ],
    );
    assert_eq!(
        effects_on(&conversation, 0),
        ["1 added hidden by DELETE: a mistake", "2 shown by RESTORE: RESTORE 1 entry"]
    );
    assert_eq!(effects_on(&conversation, 1), ["1 added by APPEND: APPEND 2 messages"]);
}

#[test]
fn creation_is_blamed_for_the_tool_description() {
    let start = with_tools(&["old"]);
    assert_eq!(effects_on(&start, 0), ["0 added by CREATE: the conversation was created"]);
    let (conversation, _) = start.set_tools(tools(&["new"]), 1).expect("it is accepted");
    assert_eq!(effects_on(&conversation, 0)[1], "1 hidden by SET_TOOLS: SET_TOOLS");
    assert_eq!(effects_on(&conversation, 1), ["1 added by SET_TOOLS: SET_TOOLS"]);
    let (conversation, outcome) = conversation.set_tools(tools(&[]), 2).expect("it is accepted");
    assert_eq!(effects_on(&conversation, 1)[1], "2 hidden by SET_TOOLS: SET_TOOLS");
    assert_eq!((conversation.view().len(), outcome.stats().current_batch_index.0), (0, 2));
    conversation.verify().expect("its invariants hold");
}

#[test]
fn an_older_value_has_only_its_own_versions() {
    let conversation = after(fresh(), &[&append(1), DELETE_0, RESTORE_0]);
    for (version, effects) in [(1, 1), (2, 2), (3, 3)] {
        let at = conversation.at(Version(version)).expect("it exists");
        assert_eq!(effects_on(&at, 0).len(), effects);
    }
    assert!(conversation.at(Version(0)).expect("it exists").blame(LogIndex(0)).is_err());
}

#[test]
fn the_request_that_hid_each_hidden_entry_is_the_last_that_blame_names() {
    let requests = [
        append(5),
        r#"{"operation":"DELETE","indices":[0,1],"description":"too old"}"#.to_owned(),
        r#"{"operation":"RESTORE","indices":[0]}"#.to_owned(),
        r#"{"operation":"TRUNCATE","keepLast":1}"#.to_owned(),
        r#"{"operation":"ROLLBACK","targetVersion":2}"#.to_owned(),
        append(2),
        r#"{"operation":"DELETE","indices":[0,5]}"#.to_owned(),
        UNDO.to_owned(),
        r#"{"operation":"CLEAR"}"#.to_owned(),
    ];
    for end in 1..=requests.len() {
        let requests: Vec<&str> = requests[..end].iter().map(|request| &**request).collect();
        let conversation = after(fresh(), &requests);
        let hidden = conversation.blame_hidden(conversation.version()).expect("it exists");
        let visible = view(&conversation);
        let expected: Vec<_> = (0..conversation.log().len() as u32)
            .filter(|index| !visible.contains(&(*index as usize)))
            .map(|index| {
                let blames = conversation.blame(LogIndex(index)).expect("it is in the log");
                (LogIndex(index), blames.into_iter().next_back().expect("it was added"))
            })
            .collect();
        assert_eq!(hidden, expected, "after {end} requests");
    }
    let conversation = fresh();
    let error = conversation.blame_hidden(Version(1)).unwrap_err();
    assert_eq!(error.code().as_str(), "version_not_found");
}
