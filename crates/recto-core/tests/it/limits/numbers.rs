//! The largest numbers, zero, and indices and positions that do not exist.

use super::*;

const THIRTY_DIGITS: &str = "999999999999999999999999999999";

/// Numbers above every index, position, batch and version of the conversations here.
const HUGE: [&str; 6] = [
    "4294967294",
    "4294967295",
    "4294967296",
    "18446744073709551615",
    "18446744073709551616",
    THIRTY_DIGITS,
];

/// Requests with a number at `#`, and the result if it is huge.
const REQUESTS: &[(&str, &str)] = &[
    (
        r#"{"operation":"INSERT","position":#,"messages":[{"role":"user","content":"x"}]}"#,
        "position_out_of_range",
    ),
    (
        r#"{"operation":"insert","insert":{"position":#,"messages":[{"role":"user","content":"x"}]}}"#,
        "position_out_of_range",
    ),
    (
        r#"{"operation":"REPLACE","index":#,"message":{"role":"user","content":"x"}}"#,
        "index_out_of_range",
    ),
    (
        r#"{"operation":"replace","replace":{"index":#,"message":{"role":"user","content":"x"}}}"#,
        "index_out_of_range",
    ),
    (
        r#"{"operation":"replace","indices":[#],"data":{"role":"user","content":"x"}}"#,
        "index_out_of_range",
    ),
    (r#"{"operation":"DELETE","indices":[0,#]}"#, "index_out_of_range"),
    (r#"{"operation":"delete","indices":[#]}"#, "index_out_of_range"),
    (r#"{"operation":"RESTORE","indices":[#,0]}"#, "index_out_of_range"),
    (r#"{"operation":"COMPRESS","indices":[#]}"#, "index_out_of_range"),
    (r#"{"operation":"compress","indices":[#]}"#, "index_out_of_range"),
    (r#"{"operation":"MARK","indices":[#],"mark":"x"}"#, "index_out_of_range"),
    (r#"{"operation":"UNMARK","indices":[#],"mark":"x"}"#, "index_out_of_range"),
    (r#"{"operation":"BATCH_START","boundary":#}"#, "index_out_of_range"),
    (r#"{"operation":"batch_start","indices":[#]}"#, "index_out_of_range"),
    (r#"{"operation":"BATCH_END","targetBatchIndex":#}"#, "batch_not_found"),
    (r#"{"operation":"BATCH_END","targetBatchIndex":#,"carry":"all"}"#, "batch_not_found"),
    (r#"{"operation":"batch_end","indices":[#]}"#, "batch_not_found"),
    (r#"{"operation":"ROLLBACK","targetBatchIndex":#}"#, "batch_not_found"),
    (r#"{"operation":"ROLLBACK","targetVersion":#}"#, "version_not_found"),
    (r#"{"operation":"TRUNCATE","keepFirst":#}"#, "ok"),
    (r#"{"operation":"TRUNCATE","keepLast":#}"#, "ok"),
    (r#"{"operation":"TRUNCATE","removeFirst":#}"#, "ok"),
    (r#"{"operation":"TRUNCATE","removeLast":#}"#, "ok"),
    (r#"{"operation":"TRUNCATE","keepFirst":#,"keepLast":#,"removeFirst":#,"removeLast":#}"#, "ok"),
    (r#"{"operation":"TRUNCATE","removeFirst":#,"role":"user","keepOthers":true}"#, "ok"),
    (r#"{"operation":"TRUNCATE","keepLast":#,"role":"user","scope":"all"}"#, "ok"),
    (r#"{"operation":"TRUNCATE","range":{"start":0,"end":#}}"#, "ok"),
    (r#"{"operation":"TRUNCATE","range":{"start":#,"end":#}}"#, "ok"),
    (r#"{"operation":"TRUNCATE","keepLast":2,"range":{"start":1,"end":#}}"#, "ok"),
    (r#"{"operation":"TRUNCATE","range":{"start":#,"end":1}}"#, "invalid_range"),
    (r#"{"operation":"truncate","truncate":{"keepLast":#}}"#, "ok"),
    (r#"{"operation":"FIT","maxTokens":#}"#, "ok"),
    (r#"{"operation":"FIT","maxTokens":#,"keepSystem":false,"startOn":"user"}"#, "ok"),
];

/// Queries with a number at `#`, and the result if it is huge.
const QUERIES: &[(&str, &str)] = &[
    (r#"{"first":#}"#, "ok"),
    (r#"{"last":#}"#, "ok"),
    (r#"{"role":"user","first":#}"#, "ok"),
    (r#"{"contains":"e","last":#}"#, "ok"),
    (r#"{"range":{"start":0,"end":#}}"#, "ok"),
    (r#"{"range":{"start":#,"end":#}}"#, "ok"),
    (r#"{"range":{"start":#,"end":#},"contains":"e"}"#, "ok"),
    (r#"{"range":{"start":#,"end":1}}"#, "invalid_range"),
    (r#"{"from":#}"#, "ok"),
    (r#"{"to":#,"scope":"all"}"#, "ok"),
    (r#"{"batchIndex":#}"#, "batch_not_found"),
    (r#"{"version":#}"#, "version_not_found"),
];

fn edited() -> Conversation {
    after(
        fresh(),
        &[
            &append(5),
            r#"{"operation":"MARK","indices":[2],"mark":"pinned"}"#,
            r#"{"operation":"TRUNCATE","keepLast":2}"#,
        ],
    )
}

#[test]
fn a_huge_number_in_any_field_is_accepted_or_refused_with_a_code() {
    for conversation in [fresh(), edited()] {
        for (template, expected) in REQUESTS {
            for number in HUGE {
                let request = template.replace('#', number);
                let result = send(&conversation, &request, 9);
                assert_eq!(code_of(&result), *expected, "{request}");
                if let Ok((next, outcome)) = result {
                    next.verify().unwrap_or_else(|fault| panic!("{request}: {fault}"));
                    outcome.to_json();
                }
            }
        }
        for (template, expected) in QUERIES {
            for number in HUGE {
                let query = template.replace('#', number);
                let result = Query::from_json(&query).and_then(|query| conversation.query(&query));
                assert_eq!(code_of(&result), *expected, "{query}");
            }
        }
    }
}

#[test]
fn zero_in_any_field_keeps_the_invariants() {
    for conversation in [fresh(), edited()] {
        for (template, _) in REQUESTS {
            let request = template.replace('#', "0");
            if let Ok((next, _)) = send(&conversation, &request, 9) {
                next.verify().unwrap_or_else(|fault| panic!("{request}: {fault}"));
            }
        }
        for (template, _) in QUERIES {
            let query = template.replace('#', "0");
            let result = Query::from_json(&query).and_then(|query| conversation.query(&query));
            assert_eq!(code_of(&result), "ok", "{query}");
        }
    }
}

#[test]
fn the_largest_valid_number_is_accepted_and_the_next_is_refused() {
    // Version 3, batches 0 and 1, log of 5, view of 3: the pinned entry and the last two.
    let conversation = edited();
    assert_eq!(view(&conversation), [2, 3, 4]);
    let cases = [
        (r#"{"operation":"INSERT","position":#,"messages":[{"role":"user","content":"x"}]}"#, 3),
        (r#"{"operation":"REPLACE","index":#,"message":{"role":"user","content":"x"}}"#, 2),
        (r#"{"operation":"RESTORE","indices":[#]}"#, 4),
        (r#"{"operation":"DELETE","indices":[#]}"#, 4),
        (r#"{"operation":"BATCH_START","boundary":#}"#, 5),
        (r#"{"operation":"ROLLBACK","targetBatchIndex":#}"#, 1),
        (r#"{"operation":"ROLLBACK","targetVersion":#}"#, 3),
    ];
    for (template, last) in cases {
        let apply =
            |number: i32| send(&conversation, &template.replace('#', &number.to_string()), 9);
        assert_eq!(code_of(&apply(last)), "ok", "{template} {last}");
        assert_ne!(code_of(&apply(last + 1)), "ok", "{template} {}", last + 1);
    }
}

#[test]
fn a_timestamp_is_any_whole_number_of_64_bits() {
    let cases = [
        ("0", "ok"),
        ("-1", "ok"),
        ("9223372036854775807", "ok"),
        ("-9223372036854775808", "ok"),
        ("9223372036854775808", "invalid_message"),
        (THIRTY_DIGITS, "invalid_message"),
        ("1e3", "invalid_message"),
        ("1.0", "invalid_message"),
        ("\"1\"", "invalid_message"),
    ];
    for (number, expected) in cases {
        let json = format!(r#"{{"role":"user","content":"x","timestamp":{number}}}"#);
        let message = Message::from_json(&json);
        assert_eq!(code_of(&message), expected, "{json}");
        if let Ok(message) = message {
            let (conversation, _) = fresh().append([message], i64::MIN).expect("it is accepted");
            let all = conversation.by_time_range(i64::MIN..i64::MAX).expect("it is a range");
            assert_eq!(all.len(), usize::from(number != "9223372036854775807"), "{number}");
        }
    }
}

#[test]
fn methods_accept_positions_that_do_not_exist() {
    for conversation in [fresh(), edited()] {
        let view = conversation.view();
        let len = view.len();
        assert_eq!(view.get(Position(usize::MAX)), None);
        assert_eq!(view.position_of(LogIndex(u32::MAX)), None);
        assert_eq!(view.nth_of(RoleSet::ALL, usize::MAX), None);
        assert_eq!(view.tokens_in(..=usize::MAX), view.tokens());
        assert_eq!(view.tokens_in(usize::MAX..), 0);
        assert_eq!(view.tokens_in(usize::MAX..=usize::MAX), 0);
        assert_eq!(view.count_of(RoleSet::NONE), 0);
        assert!(conversation.log().get(LogIndex(u32::MAX)).is_none());
        assert!(conversation.log().tokens(LogIndex(u32::MAX)).is_none());
        assert_eq!(conversation.recent(usize::MAX).map(|hits| hits.len()), Ok(len));
        assert_eq!(conversation.recent(0).map(|hits| hits.len()), Ok(0));
        assert_eq!(conversation.range(usize::MAX..usize::MAX).map(|hits| hits.len()), Ok(0));
        assert_eq!(conversation.range(0..usize::MAX).map(|hits| hits.len()), Ok(len));
        for pick in [Pick::First(usize::MAX), Pick::Last(usize::MAX), Pick::Range(0..usize::MAX)] {
            for contains in [None, Some(vec!["x".to_owned()])] {
                let query = Query { contains, pick: pick.clone(), ..Query::default() };
                assert_eq!(conversation.query(&query).map(|hits| hits.len()), Ok(len), "{query:?}");
            }
        }
    }
}

#[test]
fn counts_saturate_instead_of_overflowing() {
    let settings = Settings { media_tokens: u64::MAX, ..Settings::counting_with(Approx) };
    let start = Conversation::new(settings, 0).expect("the settings are valid");
    let image = r#"{"role":"user","content":[{"type":"image"},{"type":"audio"}]}"#;
    let image = Message::from_json(image).expect("it is well-formed");
    let (conversation, _) = start.append(vec![image; 3], 1).expect("it is accepted");
    assert_eq!(conversation.view().tokens(), 3 * recto_core::MAX_MESSAGE_TOKENS);
    let (cut, _) = conversation.apply(Fit::within(1 << 31), 2).expect("two of them fit");
    assert_eq!(view(&cut), [1, 2]);
    cut.verify().expect("its invariants hold");
}
