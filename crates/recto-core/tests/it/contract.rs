//! Sentences of the contract, one test each, on the Rust API. Where the plain model has the same
//! sentence, the two are also compared over random requests.

use recto_core::{
    Approx, Arrange, BatchEnd, BatchIndex, BatchStart, Carry, Conversation, LogIndex, Mark,
    Message, Query, Redo, Request, Role, RoleSet, Rollback, Scope, Settings, Tool, Undo, Version,
    WarningCode,
};
use serde_json::json;

use crate::driver::{numbers, reloaded};
use crate::talk::{after, fresh, send};

fn view(talk: &Conversation) -> Vec<usize> {
    numbers(talk.view().iter())
}

fn tool(name: &str) -> Vec<Tool> {
    vec![Tool::new(name, "does it")]
}

fn settings(tools: Vec<Tool>) -> Settings {
    Settings { tools, ..Settings::counting_with(Approx) }
}

fn with_tool(name: &str) -> Conversation {
    Conversation::new(settings(tool(name)), 0).expect("the tools are well-formed")
}

fn appended(talk: Conversation, texts: &[&str]) -> Conversation {
    talk.append(texts.iter().copied().map(Message::user), 1).expect("it is accepted").0
}

fn set_tools(talk: &Conversation, tools: Vec<Tool>) -> Conversation {
    talk.set_tools(tools, 2).expect("it is accepted").0
}

fn text(talk: &Conversation, at: usize) -> String {
    talk.messages().nth(at).expect("there is a message").text().into_owned()
}

fn warned(talk: &Conversation) -> Vec<(WarningCode, Vec<usize>)> {
    let warnings = talk.warnings().expect("everything is at hand");
    warnings.into_iter().map(|warning| (warning.code, numbers(warning.indices))).collect()
}

#[test]
fn a_nested_tool_part_means_the_same_as_a_flat_one() {
    let nested = r#"{"role":"assistant","content":[{"type":"tool_use","tool_use":{"id":"c","name":"f","input":{"a":1}}}]}"#;
    let flat = r#"{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{"a":1}}]}"#;
    let (nested, flat) = (Message::from_json(nested).unwrap(), Message::from_json(flat).unwrap());
    assert_eq!(nested.text(), flat.text());
    assert!(nested.tool_calls().eq(flat.tool_calls()));
    let result = r#"{"role":"tool","content":[{"type":"tool_result","tool_result":{"tool_use_id":"c","content":[{"type":"text","text":"ok"}]}}]}"#;
    let result = Message::from_json(result).unwrap();
    assert_eq!(
        (&*result.text(), result.tool_results().collect::<Vec<_>>()),
        ("ok", vec!["c".into()])
    );
    let (talk, outcome) = fresh().append([nested.clone(), result], 1).unwrap();
    assert_eq!(outcome.warnings(), []);
    let (_, outcome) = send(&talk, r#"{"operation":"DELETE","indices":[0]}"#, 2).unwrap();
    assert_eq!(outcome.warnings()[0].code, WarningCode::TornResult);
    assert_eq!(talk.messages().next().map(Message::json), Some(nested.json()));
}

#[test]
fn a_tool_part_in_both_forms_or_with_another_value_is_refused() {
    let parts = [
        r#"{"type":"tool_use","tool_use":{"id":"c","name":"f","input":{}},"id":"c"}"#,
        r#"{"type":"tool_result","tool_result":{"tool_use_id":"c"},"content":"x"}"#,
        r#"{"type":"tool_use","tool_use":{"id":"c","name":"f"}}"#,
        r#"{"type":"tool_use","tool_use":"f"}"#,
        r#"{"type":"tool_result","tool_result":{"tool_use_id":7}}"#,
    ];
    for part in parts {
        let error = Message::from_json(&format!(r#"{{"role":"tool","content":[{part}]}}"#));
        assert_eq!(error.unwrap_err().code().as_str(), "invalid_message", "{part}");
    }
    let null = r#"{"role":"assistant","content":[{"type":"tool_use","tool_use":null,"id":"c","name":"f","input":{}}]}"#;
    assert_eq!(Message::from_json(null).unwrap().tool_calls().count(), 1);
}

#[test]
fn arrange_shares_what_it_keeps() {
    let talk = appended(fresh(), &["a"; 1_000]);
    let mut indices: Vec<LogIndex> = (0..1_000).map(LogIndex).collect();
    let moved = indices.remove(100);
    indices.insert(900, moved);
    let (arranged, outcome) = talk.apply(Arrange { indices: indices.clone() }, 2).unwrap();
    assert!(arranged.view().iter().eq(indices));
    assert_eq!(outcome.shared_prefix().messages, 100);
    assert_eq!((outcome.hidden(), outcome.shown()), (vec![], vec![]));
    arranged.verify().unwrap();
    // Any order at all.
    let backwards: Vec<LogIndex> = (0..1_000).rev().map(LogIndex).collect();
    let (arranged, _) = arranged.apply(Arrange { indices: backwards.clone() }, 3).unwrap();
    assert!(arranged.view().iter().eq(backwards));
    arranged.verify().unwrap();
}

#[test]
fn an_index_that_arrange_names_twice_counts_at_its_first_place() {
    let talk = appended(fresh(), &["a", "b", "c", "d"]);
    let cut = after(talk, &[r#"{"operation":"DELETE","indices":[1]}"#]);
    let indices = [3, 0, 1, 3, 1, 0, 2].map(LogIndex).to_vec();
    let (arranged, outcome) = cut.apply(Arrange { indices }, 2).unwrap();
    assert_eq!(view(&arranged), [3, 0, 1, 2]);
    assert_eq!(numbers(outcome.shown()), [1]);
}

#[test]
fn a_description_is_a_heading_and_lines_that_start_with_a_dash() {
    let texts = [
        ("Available tools:\n- old: one", true),
        ("可用工具:\n- old: one\n- two: 2", true),
        ("Available tools:", false),
        ("Available tools:\n", false),
        ("Available tools:\n- old: one\n", false),
        ("Available tools:\n- none\n\nYou are careful.", false),
        ("You are careful.\nAvailable tools:\n- old: one", false),
    ];
    for (text, is_stale) in texts {
        let (talk, outcome) = with_tool("f").append([Message::system(text)], 1).unwrap();
        let stale =
            outcome.warnings().iter().any(|warning| warning.code == WarningCode::StaleTools);
        assert_eq!(stale, is_stale, "{text:?}");
        let cleared = after(talk, &[r#"{"operation":"CLEAR"}"#]);
        assert_eq!(view(&cleared), if is_stale { vec![0] } else { vec![0, 1] }, "{text:?}");
    }
    // The same in parts, and with characters that are escaped without need.
    for content in [
        r#"[{"type":"text","text":"Available tools:"},{"type":"text","text":"- old: one"}]"#,
        r#""\u0041vailable tools:\n- old: one""#,
    ] {
        let json = format!(r#"{{"role":"system","content":{content}}}"#);
        let (talk, _) = with_tool("f").append([Message::from_json(&json).unwrap()], 1).unwrap();
        assert_eq!(warned(&talk), [(WarningCode::StaleTools, vec![1])], "{content}");
    }
}

#[test]
fn a_description_of_several_lines_is_known_after_it_was_stored() {
    let tools = vec![Tool::new("f", "first\nsecond")];
    let talk = appended(Conversation::new(settings(tools), 0).unwrap(), &["x"]);
    let talk = reloaded(&talk);
    let other = set_tools(&talk, tool("g"));
    assert_eq!(
        (view(&other), text(&other, 0)),
        (vec![2, 1], "Available tools:\n- g: does it".into())
    );
}

#[test]
fn setting_tools_replaces_every_stale_description_by_the_newest_present_one() {
    let talk = appended(with_tool("f"), &["x"]);
    let talk = talk.append([Message::system("Available tools:\n- g: does it")], 2).unwrap().0;
    let hidden = after(talk, &[r#"{"operation":"DELETE","indices":[2]}"#]);
    let (set, outcome) = hidden.set_tools(tool("g"), 3).unwrap();
    assert_eq!((view(&set), outcome.added(), outcome.tools_changed()), (vec![2, 1], vec![], true));
}

#[test]
fn undo_and_redo_and_rollback_to_a_version_restore_the_tools() {
    let talk = set_tools(&appended(with_tool("f"), &["x"]), tool("g"));
    let name = |talk: &Conversation| talk.tools().map(|tools| tools.tools()[0].name().to_owned());
    let (undone, outcome) = talk.apply(Undo, 3).unwrap();
    assert_eq!((name(&undone), outcome.tools_changed()), (Some("f".into()), true));
    let (redone, outcome) = undone.apply(Redo, 4).unwrap();
    assert_eq!((name(&redone), outcome.tools_changed()), (Some("g".into()), true));
    let (back, _) = redone.apply(Rollback::ToVersion(Version(1)), 5).unwrap();
    assert_eq!(name(&back), Some("f".into()));
    assert_eq!(name(&reloaded(&back)), Some("f".into()));
    // In a list, too, with what comes behind it.
    let request: Request = Request::from_json(
        r#"{"ops":[{"operation":"ROLLBACK","targetVersion":1},{"operation":"CLEAR"}]}"#,
    )
    .unwrap();
    let (listed, outcome) = redone.apply(request, 5).unwrap();
    assert_eq!((name(&listed), view(&listed)), (Some("f".into()), vec![0]));
    assert!(outcome.tools_changed());
    assert_eq!(name(&reloaded(&listed)), Some("f".into()));
    assert_eq!(name(&redone.at(Version(1)).unwrap()), Some("f".into()), "a fork takes them");
}

#[test]
fn going_back_to_a_batch_keeps_the_tools_and_what_is_described() {
    let talk = appended(with_tool("f"), &["x"]);
    let started = talk.apply(BatchStart::default(), 2).unwrap().0;
    let set = set_tools(&started, tool("g"));
    for back in [
        set.apply(Rollback::ToBatch(BatchIndex(0)), 3).unwrap().0,
        set.apply(BatchEnd::default(), 3).unwrap().0,
        set.apply(BatchEnd { target: None, carry: Carry::All }, 3).unwrap().0,
    ] {
        assert_eq!((view(&back), back.stats().total_batches), (vec![2, 1], 1));
        assert_eq!(warned(&back), []);
    }
}

#[test]
fn carry_skips_what_is_visible_or_stale_pinned_or_not() {
    let talk = appended(with_tool("f"), &["x"]);
    let talk = talk.apply(BatchStart::default(), 2).unwrap().0;
    let stale = Message::system("Available tools:\n- old: one");
    let talk = talk.append([stale, Message::assistant("done")], 2).unwrap().0;
    let talk = talk.apply(Mark::pin([LogIndex(2)]), 2).unwrap().0;
    let carry = Carry::Roles([Role::System, Role::Assistant].into_iter().collect::<RoleSet>());
    let (ended, _) = talk.apply(BatchEnd { target: None, carry }, 3).unwrap();
    assert_eq!(view(&ended), [0, 1, 3]);
}

#[test]
fn a_conversation_without_tools_warns_of_what_the_engine_wrote() {
    let talk = appended(with_tool("f"), &["x"]);
    let none = set_tools(&talk, Vec::new());
    assert_eq!(view(&none), [1]);
    let shown = none.apply(Arrange { indices: [0, 1].map(LogIndex).to_vec() }, 3).unwrap().0;
    assert_eq!(warned(&shown), [(WarningCode::StaleTools, vec![0])]);
    let own = fresh().append([Message::system("Available tools:\n- old: one")], 1).unwrap().0;
    assert_eq!(warned(&own), [], "a description that the user wrote is an ordinary message");
}

#[test]
fn batch_start_with_tools_spares_the_description_and_drops_stale_ones() {
    let talk = appended(with_tool("f"), &["x", "y"]);
    let talk = talk.append([Message::system("Available tools:\n- old: one")], 1).unwrap().0;
    let start = BatchStart { boundary: Some(LogIndex(2)), with_tools: true };
    assert_eq!(view(&talk.apply(start.clone(), 2).unwrap().0), [0, 2]);
    let hidden = after(talk, &[r#"{"operation":"DELETE","indices":[0,3]}"#]);
    assert_eq!(view(&hidden.apply(start, 2).unwrap().0), [0, 2]);
}

#[test]
fn batch_end_without_a_target_returns_from_the_newest_start_also_after_it_was_stored() {
    let talk = appended(fresh(), &["a"]);
    let error = talk.apply(BatchEnd::default(), 2).unwrap_err();
    assert_eq!(error.code().as_str(), "batch_not_found");
    let first = talk.apply(BatchStart::default(), 2).unwrap().0;
    let second = appended(first, &["b"]).apply(BatchStart::default(), 3).unwrap().0;
    let cut = after(second, &[r#"{"operation":"TRUNCATE","keepLast":1}"#]);
    for talk in [cut.clone(), reloaded(&cut)] {
        let (talk, _) = talk.apply(BatchEnd::default(), 4).unwrap();
        assert_eq!((talk.stats().current_batch_index, view(&talk)), (BatchIndex(1), vec![0, 1]));
        let (talk, _) = talk.apply(BatchEnd::default(), 5).unwrap();
        assert_eq!((talk.stats().current_batch_index, view(&talk)), (BatchIndex(0), vec![0]));
        assert!(talk.apply(BatchEnd::default(), 6).is_err());
    }
}

#[test]
fn an_unexpected_batch_number_is_refused_before_the_boundary() {
    let talk = appended(fresh(), &["a"]);
    let error =
        send(&talk, r#"{"operation":"batch_start","indices":[99],"batch":4}"#, 2).unwrap_err();
    let json = error.to_json()["error"].clone();
    assert_eq!((&json["code"], &json["field"]), (&json!("invalid_operation"), &json!("batch")));
    assert_eq!(json["details"], json!({"expected": 4, "actual": 1}));
}

#[test]
fn ignored_indices_are_warned_of() {
    let insert = r#"{"operation":"insert","indices":[3,1,3],"data":{"role":"user","content":"x"}}"#;
    let (_, outcome) = send(&fresh(), insert, 1).unwrap();
    let warnings = outcome.warnings();
    assert_eq!(warnings.len(), 1);
    assert_eq!(
        (warnings[0].code, numbers(warnings[0].indices.clone())),
        (WarningCode::IgnoredIndices, vec![1, 3])
    );
}

#[test]
fn what_only_the_modification_form_can_say_is_written_and_read_again() {
    for json in [
        r#"{"operation":"insert","indices":[3],"data":[{"role":"user","content":"x"}]}"#,
        r#"{"operation":"delete","indices":[]}"#,
        r#"{"operation":"compress","indices":[],"description":"why"}"#,
        r#"{"operation":"batch_start","indices":[2],"batch":4}"#,
    ] {
        let request = Request::from_json(json).unwrap();
        assert_eq!(request.to_json(), json);
        assert_eq!(Request::from_json(&request.to_json()).unwrap(), request);
    }
}

#[test]
fn a_request_in_which_nothing_is_done_makes_no_version() {
    let talk = appended(fresh(), &["a"]);
    for json in [
        r#"{"operation":"delete","indices":[]}"#,
        r#"{"ops":[{"operation":"FIT","maxTokens":99},{"operation":"compress","indices":[]}]}"#,
    ] {
        let (next, outcome) = send(&talk, json, 2).unwrap();
        assert_eq!((next.version(), outcome.changed), (Version(1), false), "{json}");
    }
    let mixed = r#"{"ops":[{"operation":"FIT","maxTokens":99},{"operation":"BATCH_START"}]}"#;
    assert!(send(&talk, mixed, 2).unwrap().1.changed);
}

#[test]
fn a_conversation_is_created_with_messages_behind_the_description() {
    let messages = [Message::user("a"), Message::assistant("b")];
    let talk = Conversation::with_messages(settings(tool("f")), &messages, 0).unwrap();
    assert_eq!((view(&talk), talk.version()), (vec![0, 1, 2], Version(0)));
    assert_eq!(text(&talk, 0), "Available tools:\n- f: does it");
    let described = [Message::user("a"), Message::system("可用工具:\n- f: does it")];
    let talk = Conversation::with_messages(settings(tool("f")), &described, 0).unwrap();
    assert_eq!(view(&talk), [0, 1]);
    assert_eq!(talk.tool_descriptions().unwrap(), [LogIndex(1)]);
}

#[test]
fn the_mark_map_lists_the_visible_entries_by_role_or_all() {
    let talk = appended(fresh(), &["a", "b", "c"]);
    let talk = after(talk, &[r#"{"operation":"ARRANGE","indices":[2,0]}"#]);
    assert_eq!(numbers(talk.mark_map(Scope::Visible).unwrap().type_indices.user), [2, 0]);
    assert_eq!(numbers(talk.mark_map(Scope::All).unwrap().type_indices.user), [0, 1, 2]);
}

#[test]
fn the_state_has_the_visible_messages_and_a_snapshot_of_each_batch_below() {
    let talk = appended(fresh(), &["a", "b"]);
    let talk = after(talk, &[r#"{"operation":"TRUNCATE","keepLast":1}"#]);
    let state = json!(talk.array_state().unwrap());
    assert_eq!(state["messages"], json!([{"role": "user", "content": "b"}]));
    assert_eq!((&state["currentBatchIndex"], &state["totalMessageCount"]), (&json!(1), &json!(1)));
    assert_eq!(state["batchSnapshots"].as_array().map(Vec::len), Some(1));
    assert_eq!(state["batchSnapshots"][0]["messageCount"], 2);
}

#[test]
fn foreign_messages_are_noticed() {
    let foreign = |field: &str| format!(r#"{{"role":"assistant","content":"x",{field}}}"#);
    for field in [
        r#""tool_calls":[{"id":"1"}]"#,
        r#""toolCalls":[{"id":"1"}]"#,
        r#""tool_call_id":"1""#,
        r#""toolCallId":"1""#,
        r#""function_call":{"name":"f"}"#,
        r#""functionCall":{"name":"f"}"#,
    ] {
        let message = Message::from_json(&foreign(field)).unwrap();
        let (_, outcome) = appended(fresh(), &["a"]).append([message], 1).unwrap();
        let codes: Vec<_> = outcome.warnings().iter().map(|warning| warning.code).collect();
        assert_eq!(codes, [WarningCode::ForeignMessage], "{field}");
    }
    for field in
        [r#""tool_calls":null"#, r#""toolCalls":[ ]"#, r#""tool_calls":[1],"tool_calls":[]"#]
    {
        assert!(!Message::from_json(&foreign(field)).unwrap().is_foreign(), "{field}");
    }
    for content in [r#""content":null,"#, r#""content":"","#, ""] {
        let json = format!(r#"{{"role":"assistant",{content}"tool_calls":[{{"id":"1"}}]}}"#);
        let error = Message::from_json(&json).unwrap_err().to_string();
        assert!(error.contains("field of another format"), "{error}");
    }
}

#[test]
fn an_empty_view_is_noticed() {
    let talk = appended(fresh(), &["a"]);
    let (_, outcome) = send(&talk, r#"{"operation":"CLEAR"}"#, 2).unwrap();
    assert_eq!(outcome.warnings()[0].code, WarningCode::ViewEmpty);
    let (_, outcome) = talk.apply(Arrange::default(), 2).unwrap();
    assert_eq!(outcome.warnings()[0].code, WarningCode::ViewEmpty);
}

#[test]
fn thinking_is_counted_but_neither_found_nor_filtered_by() {
    let thinking = r#"{"role":"assistant","content":[{"type":"thinking","text":"12345678"},{"type":"text","text":"abc"}]}"#;
    let (talk, _) = fresh().append([Message::from_json(thinking).unwrap()], 1).unwrap();
    // Twelve characters with the newline between the two parts.
    assert_eq!(talk.view().tokens(), 3 + 3);
    assert_eq!(talk.search("12345678").unwrap().len(), 0);
    let query = Query::from_json(r#"{"contains":"1234"}"#).unwrap();
    assert_eq!(talk.query(&query).unwrap().len(), 0);
    let filtered =
        send(&talk, r#"{"operation":"FILTER","contentContains":["1234"]}"#, 2).unwrap().0;
    assert!(filtered.view().is_empty());
}

#[test]
fn tools_that_cannot_be_read_as_values_are_the_same_only_byte_for_byte() {
    let tools = |description: &str| {
        let json = format!(r#"[{{"name":"a","description":"{description}","x":"\\ud800"}}]"#);
        Tool::list_from_json(&json).expect("half a surrogate pair is kept")
    };
    let talk = Conversation::new(settings(tools("old")), 0).expect("the tools are right");
    assert!(!talk.set_tools(tools("old"), 1).unwrap().1.changed);
    assert!(talk.set_tools(tools("new"), 1).unwrap().1.changed);
    // Space and the order of keys mean nothing.
    let spaced = Tool::list_from_json(r#"[ {"description": "does it", "name": "f"} ]"#).unwrap();
    assert!(!with_tool("f").set_tools(spaced, 1).unwrap().1.changed);
}
