//! Versions: who did what to an entry, what changed between two, going back and forth, and reading
//! or going on from any of them.

use std::sync::Barrier;
use std::thread;

use recto_core::{
    Append, BatchIndex, Conversation, Delete, Effect, LogIndex, Mark, Message, Operation, PINNED,
    Query, Redo, Request, Restore, Rollback, Truncate, Undo, Version,
};
use serde_json::json;

use crate::driver::{fingerprint, numbers};
use crate::talk::{after, append, fresh, send, tools, view, with_tools};

const DELETE_0: &str = r#"{"operation":"DELETE","indices":[0]}"#;
const RESTORE_0: &str = r#"{"operation":"RESTORE","indices":[0]}"#;
const UNDO: &str = r#"{"operation":"UNDO"}"#;
const REDO: &str = r#"{"operation":"REDO"}"#;

mod blame {
    use super::*;

    /// What happened to an entry, a line a request.
    fn story(talk: &Conversation, index: u32) -> Vec<String> {
        let blames = talk.blame(LogIndex(index)).expect("it is in the log");
        let line = |blame: &recto_core::Blame| {
            let effect = match blame.effect {
                Effect::Added => "added",
                Effect::AddedHidden => "added hidden",
                Effect::Hidden => "hidden",
                Effect::Shown => "shown",
                other => panic!("an unknown effect: {other:?}"),
            };
            assert_eq!(blame.timestamp, i64::from(blame.version.0), "sent at the time 1, 2, 3 …");
            format!("{} {effect} by {}: {}", blame.version, blame.operation, blame.description)
        };
        blames.iter().map(line).collect()
    }

    #[test]
    fn every_request_that_hid_or_showed_an_entry_is_named() {
        let talk = after(
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
            story(&talk, 0),
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
        assert_eq!(story(&talk, 2), ["1 added by APPEND: APPEND 3 messages"]);
    }

    #[test]
    fn an_entry_may_come_with_any_operation() {
        let message = r#"{"role":"user","content":"x"}"#;
        let talk = after(
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
            let story = story(&talk, index);
            (story[0].clone(), story[story.len() - 1].clone())
        };
        assert_eq!(ends(0).0, "1 added by INSERT: INSERT 1 message at 0");
        assert_eq!(story(&talk, 0)[1], "2 hidden by REPLACE: REPLACE the entry at 0");
        assert_eq!(ends(1).0, "2 added by REPLACE: REPLACE the entry at 0");
        assert_eq!(ends(2).0, "3 added by COMPRESS: COMPRESS 1 entry into a summary");
        assert_eq!(ends(2).1, "4 hidden by REPLACE_ENTRIES: REPLACE 1 entry by 2 messages");
        assert_eq!(ends(3).1, "5 hidden by BATCH_START: BATCH_START from entry 4");
        assert_eq!(view(&talk), [4], "what was added since comes along, if it is visible");
        assert_eq!(ends(4).1, "4 added by REPLACE_ENTRIES: REPLACE 1 entry by 2 messages");
    }

    #[test]
    fn in_a_list_the_operation_that_did_it_is_named() {
        let talk = after(
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
        assert_eq!(story(&talk, 0), [first, "2 hidden by DELETE: second cut"]);
        assert_eq!(story(&talk, 1), [first], "what a list undoes itself does not count");
        assert_eq!(story(&talk, 2), ["2 added by APPEND: APPEND 1 message"]);
    }

    #[test]
    fn an_entry_may_be_hidden_by_the_request_that_adds_it() {
        let talk = after(
            fresh(),
            &[
                r#"{"ops":[
                    {"operation":"APPEND","messages":[{"role":"user","content":"a"},{"role":"user","content":"b"}]},
                    {"operation":"DELETE","indices":[0],"description":"a mistake"}]}"#,
                RESTORE_0,
            ],
        );
        assert_eq!(
            story(&talk, 0),
            ["1 added hidden by DELETE: a mistake", "2 shown by RESTORE: RESTORE 1 entry"]
        );
        assert_eq!(story(&talk, 1), ["1 added by APPEND: APPEND 2 messages"]);
    }

    #[test]
    fn what_created_the_conversation_is_blamed_for_its_tools() {
        let start = with_tools(&["old"]);
        assert_eq!(story(&start, 0), ["0 added by CREATE: the conversation was created"]);
        let (talk, _) = start.set_tools(tools(&["new"]), 1).expect("it is accepted");
        assert_eq!(story(&talk, 0)[1], "1 hidden by SET_TOOLS: SET_TOOLS");
        assert_eq!(story(&talk, 1), ["1 added by SET_TOOLS: SET_TOOLS"]);
        let (talk, outcome) = talk.set_tools(tools(&[]), 2).expect("it is accepted");
        assert_eq!(story(&talk, 1)[1], "2 hidden by SET_TOOLS: SET_TOOLS");
        assert_eq!((talk.view().len(), outcome.stats().current_batch_index.0), (0, 2));
        talk.verify().expect("it holds together");
    }

    #[test]
    fn an_older_value_knows_only_its_own_versions() {
        let talk = after(fresh(), &[&append(1), DELETE_0, RESTORE_0]);
        for (version, effects) in [(1, 1), (2, 2), (3, 3)] {
            let at = talk.at(Version(version)).expect("it exists");
            assert_eq!(story(&at, 0).len(), effects);
        }
        assert!(talk.at(Version(0)).expect("it exists").blame(LogIndex(0)).is_err());
    }
}

mod diff {
    use super::*;

    #[test]
    fn a_diff_tells_what_is_kept_hidden_shown_and_moved_with_tokens() {
        let talk = after(
            fresh(),
            &[
                r#"{"operation":"APPEND","messages":[
                    {"role":"user","content":"a"},
                    {"role":"user","content":"four and more"},
                    {"role":"user","content":"c"}]}"#,
                r#"{"operation":"DELETE","indices":[1]}"#,
                r#"{"operation":"APPEND","messages":[{"role":"user","content":"eight by"}]}"#,
            ],
        );
        let diff = talk.diff(Version(1), Version(3)).expect("both exist");
        assert_eq!(
            serde_json::to_value(&diff).expect("it can be written"),
            json!({
                "kept": {"messages": 2, "tokens": 8},
                "hidden": {"indices": [1], "tokens": 7},
                "shown": {"indices": [3], "tokens": 5},
                "moved": {"indices": [], "tokens": 0},
            })
        );
        let back = talk.diff(Version(3), Version(1)).expect("both exist");
        assert_eq!((back.hidden, back.shown), (diff.shown, diff.hidden));
        assert_eq!(back.kept, diff.kept);
    }

    #[test]
    fn a_version_does_not_differ_from_itself() {
        let talk = after(fresh(), &[&append(100), r#"{"operation":"TRUNCATE","keepLast":50}"#]);
        for version in 0..=2 {
            let diff = talk.diff(Version(version), Version(version)).expect("it exists");
            assert_eq!((diff.hidden, diff.shown, diff.moved), Default::default());
            let at = talk.at(Version(version)).expect("it exists");
            assert_eq!(diff.kept.messages, at.view().len());
            assert_eq!(diff.kept.tokens, at.view().tokens());
        }
    }

    #[test]
    fn an_entry_that_comes_back_elsewhere_is_moved() {
        // Entry 4 stands before 0; restored, 2 comes right behind 0 or 1, but 4 stays in front.
        let insert =
            r#"{"operation":"INSERT","position":0,"messages":[{"role":"user","content":"x"}]}"#;
        let talk = after(
            fresh(),
            &[
                &append(4),
                insert,
                r#"{"operation":"DELETE","indices":[4]}"#,
                r#"{"operation":"RESTORE","indices":[4]}"#,
            ],
        );
        assert_eq!(view(&talk), [0, 1, 2, 3, 4]);
        let diff = talk.diff(Version(2), Version(4)).expect("both exist");
        assert_eq!(numbers(diff.moved.indices), [4], "as few entries as explain it");
        assert_eq!(diff.moved.tokens, 4);
        assert_eq!((diff.hidden, diff.shown), Default::default());
        assert_eq!(diff.kept.messages, 5);
    }

    #[test]
    fn of_two_stretches_that_change_places_the_shorter_one_is_moved() {
        let talk = after(
            fresh(),
            &[
                &append(300),
                r#"{"operation":"TRUNCATE","keepLast":100}"#,
                r#"{"operation":"INSERT","position":0,"messages":[{"role":"user","content":"x"}]}"#,
                r#"{"operation":"TRUNCATE","removeFirst":1}"#,
                r#"{"operation":"RESTORE","indices":[300]}"#,
            ],
        );
        let diff = talk.diff(Version(3), Version(5)).expect("both exist");
        assert_eq!(numbers(diff.moved.indices), [300]);
        let whole = talk.diff(Version(1), Version(5)).expect("both exist");
        assert_eq!(whole.hidden.indices.len(), 200);
        assert_eq!(numbers(whole.shown.indices), [300]);
        assert_eq!(whole.moved, Default::default());
    }
}

mod undo {
    use super::*;

    #[test]
    fn taking_back_jumps_over_older_undos() {
        // The table in src/history.rs: A, B, C, UNDO, UNDO, REDO.
        let talk = after(fresh(), &[&append(1), &append(1), &append(1), UNDO, UNDO, REDO]);
        let lengths: Vec<usize> = talk.versions().map(|info| info.messages).collect();
        assert_eq!(lengths, [0, 1, 2, 3, 2, 1, 2]);
        let twice = after(talk.clone(), &[UNDO, UNDO]);
        assert!(twice.view().is_empty());
        assert!(send(&twice, UNDO, 9).is_err());
        let again = after(twice, &[REDO, REDO, REDO]);
        assert_eq!(view(&again), [0, 1, 2]);
        assert!(send(&again, REDO, 9).is_err());
        let other = after(talk, &[REDO]);
        assert_eq!(view(&other), [0, 1, 2]);
    }

    #[test]
    fn any_other_request_ends_redo() {
        let talk = after(fresh(), &[&append(2), &append(1), UNDO]);
        let others = [
            append(1),
            r#"{"operation":"BATCH_START"}"#.to_owned(),
            r#"{"operation":"MARK","indices":[0],"mark":"m"}"#.to_owned(),
            r#"{"operation":"ROLLBACK","targetBatchIndex":0}"#.to_owned(),
            r#"{"ops":[{"operation":"CLEAR"},{"operation":"FIT","maxTokens":99}]}"#.to_owned(),
        ];
        for other in &others {
            let next = after(talk.clone(), &[other]);
            let error = send(&next, REDO, 9).expect_err(other);
            assert_eq!(error.code().as_str(), "nothing_to_redo", "{other}");
            let back = after(next, &[UNDO]);
            assert_eq!(view(&back), view(&talk), "{other}");
        }
        let (tooled, _) = talk.set_tools(tools(&["f"]), 9).expect("it is accepted");
        assert!(send(&tooled, REDO, 10).is_err());
    }

    #[test]
    fn a_fit_with_nothing_to_do_leaves_redo_possible() {
        let talk = after(fresh(), &[&append(2), &append(1), UNDO]);
        let (same, outcome) = send(&talk, r#"{"operation":"FIT","maxTokens":999}"#, 9).expect("ok");
        assert_eq!((outcome.changed, outcome.version), (false, talk.version()));
        assert_eq!(fingerprint(&same), fingerprint(&talk));
        assert_eq!(view(&after(same, &[REDO])), [0, 1, 2]);
    }

    #[test]
    fn everything_that_a_request_changed_is_taken_back() {
        let start = after(with_tools(&["f"]), &[&append(3)]);
        let pinned = r#"{"operation":"MARK","indices":[1],"mark":"pinned"}"#;
        let requests = [
            pinned,
            r#"{"operation":"TRUNCATE","keepLast":1,"description":"why"}"#,
            r#"{"operation":"CLEAR","keepSystemMessage":false}"#,
            r#"{"operation":"BATCH_START","boundary":2}"#,
            r#"{"ops":[{"operation":"BATCH_START"},{"operation":"MARK","indices":[0],"mark":"m"}]}"#,
        ];
        let seen = |talk: &Conversation| {
            let marks: Vec<(String, Vec<usize>)> = talk
                .marks()
                .labels()
                .map(|label| (label.to_owned(), numbers(talk.marks().with(label))))
                .collect();
            let tools = talk.tools().map(|tools| tools.tools().to_vec());
            (view(talk), marks, tools, talk.stats().total_batches)
        };
        for request in requests {
            let next = after(start.clone(), &[request]);
            let back = after(next.clone(), &[UNDO]);
            assert_eq!(seen(&back), seen(&start), "{request}");
            assert_eq!(seen(&after(back, &[REDO])), seen(&next), "{request}");
        }
        let (other, _) = start.set_tools(tools(&["g"]), 9).expect("it is accepted");
        let (back, _) = other.apply(Undo, 10).expect("it can be taken back");
        assert_eq!(seen(&back), seen(&start), "the tools too");
        let (again, _) = back.apply(Redo, 11).expect("it can be put back");
        assert_eq!(seen(&again), seen(&other));
    }

    #[test]
    fn what_was_taken_back_stays_in_the_log_and_is_not_numbered_again() {
        let talk = after(fresh(), &[&append(2), UNDO, &append(1)]);
        assert_eq!((view(&talk), talk.log().len()), (vec![2], 3));
        let talk = after(talk, &[r#"{"operation":"RESTORE","indices":[0]}"#]);
        assert_eq!(view(&talk), [0, 2]);
    }

    #[test]
    fn a_rollback_is_a_request_like_any_other_to_undo() {
        let talk = after(
            fresh(),
            &[
                &append(3),
                DELETE_0,
                r#"{"operation":"ROLLBACK","targetVersion":1}"#,
                UNDO,
                UNDO,
                UNDO,
            ],
        );
        let lengths: Vec<usize> = talk.versions().map(|info| info.messages).collect();
        assert_eq!(lengths, [0, 3, 2, 3, 2, 3, 0]);
    }
}

mod at {
    use super::*;

    /// A conversation with every kind of request, and the values that it went through.
    fn journey() -> Vec<Conversation> {
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
        let values = journey();
        let last = values.last().expect("there are some");
        for (version, value) in values.iter().enumerate() {
            let at = last.at(Version(version as u32)).expect("it exists");
            assert_eq!(fingerprint(&at), fingerprint(value), "version {version}");
            at.verify().expect("it holds together");
            let all = Query::from_json(&format!(r#"{{"version":{version},"scope":"all"}}"#));
            let asked = last.query(&all.expect("it is a query")).expect("it exists");
            assert_eq!(asked.len(), value.log().len());
        }
    }

    #[test]
    fn going_on_from_an_older_version_does_not_disturb_the_newer_ones() {
        let values = journey();
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
            fork.verify().expect("it holds together");
            assert_eq!(fork.version().0 as usize, version + 3);
            let own = LogIndex(value.log().len() as u32);
            let message = fork.log().get(own).map(|entry| entry.message.text().into_owned());
            assert_eq!(message.as_deref(), Some("fork"));
        }
        for (value, before) in values.iter().zip(&before) {
            assert_eq!(fingerprint(value), *before);
        }
        last.verify().expect("it holds together");
    }

    #[test]
    fn a_rollback_to_a_version_brings_view_batches_and_marks_but_keeps_the_log() {
        let values = journey();
        let last = values.last().expect("there are some");
        for (version, value) in values.iter().enumerate() {
            let (back, _) =
                last.apply(Rollback::ToVersion(Version(version as u32)), 99).expect("it exists");
            assert_eq!(view(&back), view(value));
            assert_eq!(back.stats().total_batches, value.stats().total_batches);
            assert_eq!(
                numbers(back.marks().with(PINNED)),
                numbers(value.marks().with(PINNED)),
                "version {version}"
            );
            assert_eq!(back.log().len(), last.log().len());
            assert_eq!(back.version().0, last.version().0 + 1);
        }
    }
}

mod descriptions {
    use super::*;

    /// Operations and the description that is made of each.
    const MADE: &[(&str, &str)] = &[
        (
            r#"{"operation":"APPEND","messages":[{"role":"user","content":"x"}]}"#,
            "APPEND 1 message",
        ),
        (
            r#"{"operation":"INSERT","position":1,"messages":[{"role":"user","content":"x"},{"role":"user","content":"x"}]}"#,
            "INSERT 2 messages at 1",
        ),
        (
            r#"{"operation":"REPLACE","index":0,"message":{"role":"user","content":"x"}}"#,
            "REPLACE the entry at 0",
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

    fn newest(talk: &Conversation) -> recto_core::VersionInfo {
        talk.versions().next_back().expect("there is always version 0")
    }

    #[test]
    fn a_description_is_made_where_none_is_given() {
        let talk = after(fresh(), &[&append(3)]);
        for (request, expected) in MADE {
            let (next, _) = send(&talk, request, 7).expect(request);
            assert_eq!(newest(&next).description, *expected, "{request}");
            assert_eq!(newest(&next).timestamp, 7);
        }
    }

    #[test]
    fn a_description_that_is_given_is_kept_word_for_word() {
        let talk = after(fresh(), &[&append(3)]);
        let given = "why \u{202e}\0 \"quoted\"\n压缩";
        for (request, _) in MADE.iter().filter(|(request, _)| !request.contains("ops")) {
            let described =
                request.replacen('{', &format!(r#"{{"description":{},"#, json!(given)), 1);
            let (next, outcome) = send(&talk, &described, 7).expect(request);
            assert_eq!(newest(&next).description, given, "{request}");
            let batch = next.stats().current_batch_index;
            if batch == BatchIndex(1) {
                let snapshot = next.snapshot(batch).expect("it is current");
                assert_eq!(snapshot.description, given, "{request}");
                assert_eq!(snapshot.timestamp, 7, "{request}");
            }
            assert_eq!(outcome.affected_batch(), batch);
        }
    }

    #[test]
    fn a_snapshot_tells_when_and_why_its_batch_was_opened() {
        let talk = after(
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
        let seen: Vec<(String, i64, Vec<usize>)> = (0..talk.stats().total_batches)
            .map(|batch| talk.snapshot(BatchIndex(batch)).expect("it is on the path"))
            .map(|found| {
                let messages = numbers(found.messages().map(|(index, _)| index));
                (found.description.clone(), found.timestamp, messages)
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
        let talk = after(
            fresh(),
            &[
                &append(2),
                r#"{"operation":"BATCH_START","description":"first"}"#,
                r#"{"operation":"ROLLBACK","targetBatchIndex":0}"#,
                r#"{"operation":"BATCH_START","description":"second"}"#,
            ],
        );
        let why = |talk: &Conversation| talk.snapshot(BatchIndex(1)).map(|found| found.description);
        assert_eq!(why(&talk).as_deref(), Ok("second"));
        let at = talk.at(Version(2)).expect("it exists");
        assert_eq!(why(&at).as_deref(), Ok("first"));
    }
}

mod tool_descriptions {
    use super::*;

    fn texts(talk: &Conversation) -> Vec<String> {
        talk.messages().map(|message| message.text().into_owned()).collect()
    }

    fn description(name: &str) -> String {
        format!("Available tools:\n- {name}: does it")
    }

    fn set(talk: &Conversation, names: &[&str]) -> Conversation {
        talk.set_tools(tools(names), 50).expect("it is accepted").0
    }

    #[test]
    fn new_tools_take_the_place_of_a_stale_description_in_a_new_batch() {
        let talk = after(with_tools(&["old"]), &[&append(1)]);
        let next = set(&talk, &["new"]);
        assert_eq!(texts(&next), [description("new"), "x".into()]);
        assert_eq!(next.stats().current_batch_index, BatchIndex(1));
        assert_eq!(
            next.snapshot(BatchIndex(1)).map(|found| found.description),
            Ok("SET_TOOLS".into())
        );
        let (back, outcome) = next.apply(Rollback::ToBatch(BatchIndex(0)), 51).expect("it exists");
        assert_eq!(texts(&back), [description("new"), "x".into()], "the tools are the new ones");
        assert!(!outcome.tools_changed());
        let (back, outcome) = next.apply(Rollback::ToVersion(Version(1)), 51).expect("it exists");
        assert_eq!(texts(&back)[0], description("old"));
        assert_eq!(back.tools().map(|tools| tools.tools()), Some(&*tools(&["old"])));
        assert!(outcome.tools_changed());
        assert_eq!(outcome.to_json()["toolsChanged"], true);
    }

    #[test]
    fn new_tools_are_appended_where_no_description_is_visible() {
        let talk = after(fresh(), &[&append(1)]);
        let next = set(&talk, &["new"]);
        assert_eq!(texts(&next), ["x".into(), description("new")]);
        assert_eq!(next.stats().total_batches, 1, "appending opens no batch");
    }

    #[test]
    fn a_pinned_stale_description_stays_and_the_new_one_is_appended() {
        let pin = r#"{"operation":"MARK","indices":[0],"mark":"pinned"}"#;
        let talk = after(with_tools(&["old"]), &[&append(1), pin]);
        let next = set(&talk, &["new"]);
        assert_eq!(texts(&next), [description("old"), "x".into(), description("new")]);
        let clear = after(next.clone(), &[r#"{"operation":"CLEAR"}"#]);
        assert_eq!(texts(&clear), [description("old"), description("new")]);
    }

    #[test]
    fn setting_the_same_tools_changes_nothing() {
        let talk = after(with_tools(&["f"]), &[&append(1)]);
        let (next, outcome) = talk.set_tools(tools(&["f"]), 50).expect("it is accepted");
        assert_eq!((view(&next), next.log().len()), (view(&talk), talk.log().len()));
        assert_eq!((next.version(), outcome.changed), (talk.version(), false));
    }

    #[test]
    fn a_conversation_that_gives_up_its_tools_describes_none_after_clear() {
        let talk = set(&after(with_tools(&["old"]), &[&append(1)]), &[]);
        assert!(talk.tools().is_none());
        let clear = after(talk, &[r#"{"operation":"CLEAR","keepSystemMessage":false}"#]);
        assert!(clear.view().is_empty());
    }

    #[test]
    fn after_every_clear_the_present_description_is_visible_once() {
        let talk = set(&after(with_tools(&["old"]), &[&append(2)]), &["new"]);
        let clears = [
            r#"{"operation":"CLEAR"}"#,
            r#"{"operation":"CLEAR","keepSystemMessage":false}"#,
            r#"{"operation":"CLEAR","scope":"all"}"#,
            r#"{"operation":"CLEAR","scope":"all","keepSystemMessage":false}"#,
            r#"{"operation":"clear"}"#,
        ];
        for clear in clears {
            let next = after(talk.clone(), &[clear]);
            assert_eq!(texts(&next), [description("new")], "{clear}");
            assert_eq!(next.log().len(), talk.log().len(), "{clear}: the log has it already");
        }
    }
}

mod pins {
    use super::*;

    #[test]
    fn with_the_scope_all_visible_pins_stay_in_log_order_and_hidden_ones_stay_hidden() {
        let talk = after(
            fresh(),
            &[
                r#"{"operation":"APPEND","messages":[
                    {"role":"system","content":"s"},
                    {"role":"user","content":"a"},
                    {"role":"assistant","content":"b"},
                    {"role":"user","content":"c"},
                    {"role":"assistant","content":"d"}]}"#,
                r#"{"operation":"MARK","indices":[1,2],"mark":"pinned"}"#,
                r#"{"operation":"UNMARK","indices":[2],"mark":"pinned"}"#,
                r#"{"operation":"DELETE","indices":[0,2]}"#,
                r#"{"operation":"MARK","indices":[2,4],"mark":"pinned"}"#,
            ],
        );
        assert_eq!(view(&talk), [1, 3, 4]);
        let cases = [
            (r#"{"operation":"TRUNCATE","keepFirst":1,"scope":"all"}"#, vec![0, 1, 4]),
            (r#"{"operation":"TRUNCATE","keepLast":0,"scope":"all"}"#, vec![1, 4]),
            (r#"{"operation":"TRUNCATE","role":"user","keepLast":1,"scope":"all"}"#, vec![1, 3, 4]),
            (
                r#"{"operation":"TRUNCATE","role":"user","keepLast":0,"keepOthers":true,"scope":"all"}"#,
                vec![0, 1, 2, 4],
            ),
            (r#"{"operation":"FILTER","roles":["system"],"scope":"all"}"#, vec![0, 1, 4]),
            (r#"{"operation":"FILTER","contentContains":["b"],"scope":"all"}"#, vec![1, 2, 4]),
            (r#"{"operation":"CLEAR","scope":"all"}"#, vec![0, 1, 4]),
            (r#"{"operation":"CLEAR","scope":"all","keepSystemMessage":false}"#, vec![1, 4]),
            (r#"{"operation":"CLEAR"}"#, vec![1, 4]),
            (r#"{"operation":"BATCH_START","boundary":5}"#, vec![1, 4]),
        ];
        for (request, expected) in cases {
            assert_eq!(view(&after(talk.clone(), &[request])), expected, "{request}");
        }
    }
}

mod threads {
    use super::*;

    const THREADS: usize = 8;
    const ROUNDS: usize = 60;

    /// What one thread does to its clone: everything that writes at the shared end of log, view and
    /// history, and some that does not.
    fn requests(thread: usize, round: usize) -> Vec<Request> {
        let message = Message::user(&format!("thread {thread} round {round}"));
        let append = Append { messages: vec![message.clone(); 1 + (thread + round) % 5] };
        let first = LogIndex(((thread + round) % 3) as u32);
        let list: [Operation; 3] = [
            append.clone().into(),
            Mark { indices: vec![first], mark: format!("m{thread}") }.into(),
            Truncate { keep_last: Some(7), ..Truncate::default() }.into(),
        ];
        vec![
            append.clone().into(),
            Delete { indices: vec![first] }.into(),
            Undo.into(),
            append.into(),
            Request::from_iter(list),
            Restore { indices: vec![first] }.into(),
            Undo.into(),
            Redo.into(),
            Rollback::ToBatch(BatchIndex(0)).into(),
        ]
    }

    fn run(start: &Conversation, thread: usize, round: usize) -> Conversation {
        requests(thread, round)
            .into_iter()
            .zip(100..)
            .fold(start.clone(), |talk, (request, now)| {
                talk.apply(request, now).expect("it is accepted").0
            })
    }

    #[test]
    fn threads_that_go_on_from_one_value_do_not_disturb_each_other() {
        // Each round starts with another length, so that the shared chunks are hit at every place.
        for round in 0..ROUNDS {
            let base = after(fresh(), &[&append(3 + round)]);
            let before = fingerprint(&base);
            let barrier = Barrier::new(THREADS);
            let ends: Vec<Conversation> = thread::scope(|scope| {
                let workers: Vec<_> = (0..THREADS)
                    .map(|thread| {
                        let (base, barrier) = (&base, &barrier);
                        scope.spawn(move || {
                            barrier.wait();
                            run(base, thread, round)
                        })
                    })
                    .collect();
                workers.into_iter().map(|worker| worker.join().expect("no panic")).collect()
            });
            assert_eq!(fingerprint(&base), before, "round {round}");
            for (thread, end) in ends.iter().enumerate() {
                // The same requests on a value that nobody shares.
                let alone = run(&after(fresh(), &[&append(3 + round)]), thread, round);
                assert_eq!(fingerprint(end), fingerprint(&alone), "round {round} {thread}");
            }
            ends[round % THREADS].verify().expect("it holds together");
        }
    }

    #[test]
    fn threads_that_hand_each_other_values_read_what_was_written() {
        let mut talk = fresh();
        for round in 0..200 {
            let append = Append { messages: vec![Message::user(&round.to_string())] };
            let reader = talk.clone();
            let len = reader.view().len();
            talk = thread::scope(|scope| {
                let writer = scope.spawn(|| talk.apply(append, round).expect("it is accepted").0);
                let readers: Vec<_> =
                    (0..2).map(|_| scope.spawn(|| reader.messages().count())).collect();
                for seen in readers {
                    assert_eq!(seen.join().expect("no panic"), len);
                }
                writer.join().expect("no panic")
            });
        }
        let texts: Vec<String> = talk.messages().map(|m| m.text().into_owned()).collect();
        assert_eq!(texts, (0..200).map(|round| round.to_string()).collect::<Vec<_>>());
        talk.verify().expect("it holds together");
    }
}
