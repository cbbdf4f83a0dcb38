//! Examples and rules of the founding documents that no other test covers as a whole. `docs/seeds.md`
//! lists every requirement with its test.

use recto_core::{Conversation, LogIndex, Message, Role, Scope};
use serde_json::{Value, json};
use testkit::generate::{self, Choices, Step};

use crate::conversations::{after, fresh, send, view};
use crate::driver::{Pair, numbers};

fn appended(roles: &[&str]) -> Conversation {
    let messages: Vec<Value> = roles
        .iter()
        .enumerate()
        .map(|(number, role)| {
            json!({"role": role, "content": format!("{role} {number}"), "timestamp": 1_000 * number})
        })
        .collect();
    after(fresh(), &[&json!({"operation": "APPEND", "messages": messages}).to_string()])
}

fn boundaries(conversation: &Conversation) -> Vec<usize> {
    numbers(conversation.mark_map(Scope::Visible).expect("everything is loaded").batch_boundaries)
}

fn query(conversation: &Conversation, query: &str) -> Vec<usize> {
    let query = recto_core::Query::from_json(query).expect("the query is valid");
    numbers(conversation.query(&query).expect("it is answered").into_iter().map(|hit| hit.index))
}

#[test]
fn a_temporary_prompt_goes_from_batch_0_to_1_and_back() {
    let start = appended(&["user"; 5]);
    assert_eq!(boundaries(&start), [0]);
    let prompt = after(
        start,
        &[
            r#"{"operation":"batch_start","indices":[5]}"#,
            r#"{"operation":"insert","indices":[],"data":{"role":"system","content":"focus"}}"#,
        ],
    );
    assert_eq!((boundaries(&prompt), view(&prompt)), (vec![0, 5], vec![5]));
    let end = after(prompt, &[r#"{"operation":"batch_end","indices":[0]}"#]);
    assert_eq!((boundaries(&end), view(&end)), (vec![0], vec![0, 1, 2, 3, 4]));
}

#[test]
fn a_list_of_modifications_is_one_request() {
    let start = appended(&["user", "assistant", "user", "assistant"]);
    let list = r#"{"ops":[
        {"operation":"batch_start","indices":[0],"batch":1},
        {"operation":"insert","indices":[],"data":[{"role":"user","content":"a"},{"role":"user","content":"b"}]},
        {"operation":"compress","indices":[0,1]},
        {"operation":"batch_end","indices":[],"carry":["user"]}]}"#;
    let (conversation, outcome) = send(&start, list, 9).expect("it is accepted");
    assert_eq!((view(&conversation), outcome.version.0), (vec![0, 1, 2, 3, 4, 5], 2));
}

/// "Not compressed" in the seeds: the entries of the view from the boundary of the current batch on.
#[test]
fn the_visible_entries_are_those_from_the_boundary_of_the_current_batch_on() {
    for seed in 0..40 {
        let mut pair = Pair::new(testkit::Model::new(testkit::Settings::default(), 0), 0);
        for number in 0..40 {
            let numbers = generate::numbers(seed * 1_000 + number, 120);
            match generate::step(&mut Choices::new(&numbers), &pair.model) {
                // A restored description may be older than its batch.
                Step::SetTools(_) => {}
                step => pair.step(&step),
            }
            let map = pair.engine.mark_map(Scope::Visible).expect("everything is loaded");
            let boundary = *map.batch_boundaries.last().expect("batch 0 always exists");
            assert!(map.original_indices.iter().all(|&index| index >= boundary), "{seed}: {map:?}");
            assert_eq!(map.batch_boundaries.len(), map.boundary_to_batch.len());
        }
    }
}

#[test]
fn every_truncation_step_counts_within_the_role() {
    let conversation =
        appended(&["user", "assistant", "user", "tool", "user", "assistant", "user"]);
    for (step, kept) in [
        (r#""keepFirst":2"#, vec![0, 2]),
        (r#""keepLast":2"#, vec![4, 6]),
        (r#""removeFirst":1"#, vec![2, 4, 6]),
        (r#""removeLast":1"#, vec![0, 2, 4]),
        (r#""range":{"start":1,"end":3}"#, vec![2, 4]),
    ] {
        let truncate = format!(r#"{{"operation":"truncate","truncate":{{"role":"user",{step}}}}}"#);
        assert_eq!(view(&after(conversation.clone(), &[&truncate])), kept, "{step}");
    }
    let none = r#"{"operation":"truncate","truncate":{"role":"system","keepLast":3}}"#;
    assert_eq!(view(&after(conversation, &[none])), Vec::<usize>::new());
}

#[test]
fn the_newest_0_of_a_role_are_none_and_a_role_can_be_queried_by_time() {
    let conversation = appended(&["user", "assistant", "user", "assistant", "user"]);
    assert_eq!(query(&conversation, r#"{"role":"user","last":0}"#), Vec::<usize>::new());
    assert_eq!(query(&conversation, r#"{"role":"user","from":1000,"to":4000}"#), [2]);
    assert_eq!(query(&conversation, r#"{"last":2}"#), [3, 4]);
    assert_eq!(query(&conversation, r#"{"range":{"start":1,"end":3}}"#), [1, 2]);
}

#[test]
fn visible_messages_are_counted_by_role() {
    let conversation = appended(&["user", "assistant", "user"]);
    let cut = after(conversation, &[r#"{"operation":"DELETE","indices":[0]}"#]);
    assert_eq!((cut.count_by_role(Role::User), cut.count_by_role(Role::Assistant)), (1, 1));
}

#[test]
fn no_operation_has_the_field_create_new_batch() {
    for operation in [
        r#"{"operation":"TRUNCATE","keepLast":1,"createNewBatch":true}"#,
        r#"{"operation":"truncate","truncate":{"keepLast":1,"createNewBatch":true}}"#,
        r#"{"operation":"clear","clear":{"createNewBatch":false}}"#,
    ] {
        let error = send(&appended(&["user"]), operation, 2).expect_err("the field is unknown");
        assert_eq!(error.field().as_deref(), Some("createNewBatch"), "{operation}");
    }
}

#[test]
fn id_timestamp_and_metadata_of_a_message_are_kept() {
    let json = r#"{"role":"user","content":"x","id":"m1","timestamp":5,"metadata":{"a":[1]}}"#;
    let (conversation, _) =
        fresh().append([Message::from_json(json).expect("it is valid")], 9).unwrap();
    let entry = conversation.log().get(LogIndex(0)).expect("it was added");
    assert_eq!((entry.message.json(), entry.timestamp), (json, 5));
}

#[test]
fn with_the_heading_of_the_seeds_clear_shows_the_description_once() {
    let settings = recto_core::Settings {
        tools: vec![recto_core::Tool::new("search", "find pages")],
        heading: "可用工具:".into(),
        ..recto_core::Settings::counting_with(recto_core::Approx)
    };
    let start = Conversation::new(settings, 0).expect("the tools are valid");
    let clear = after(start, &[r#"{"operation":"clear"}"#, r#"{"operation":"clear"}"#]);
    let texts: Vec<_> = clear.messages().map(|message| message.text().into_owned()).collect();
    assert_eq!(texts, ["可用工具:\n- search: find pages"]);
}
