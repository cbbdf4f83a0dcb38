//! Statements of the contract, one test each, on the Rust API. The random comparison with the plain
//! model covers most of them too.

use recto_core::{
    Approx, Arrange, BatchEnd, BatchIndex, BatchStart, Carry, Conversation, LogIndex, Mark,
    Message, Outcome, Query, Redo, Request, Role, RoleSet, Rollback, Scope, Settings, Tool, Undo,
    Version, WarningCode,
};
use serde_json::json;

use crate::conversations::{after, fresh, send};
use crate::driver::{numbers, reloaded};

fn view(conversation: &Conversation) -> Vec<usize> {
    numbers(conversation.view().iter())
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

fn appended(conversation: Conversation, texts: &[&str]) -> Conversation {
    conversation.append(texts.iter().copied().map(Message::user), 1).expect("it is accepted").0
}

fn set_tools(conversation: &Conversation, tools: Vec<Tool>) -> Conversation {
    conversation.set_tools(tools, 2).expect("it is accepted").0
}

fn text(conversation: &Conversation, at: usize) -> String {
    conversation.messages().nth(at).expect("there is a message").text().into_owned()
}

fn warned(conversation: &Conversation) -> Vec<(WarningCode, Vec<usize>)> {
    let warnings = conversation.warnings().expect("everything is loaded");
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
        (&*result.text(), result.tool_result_ids().collect::<Vec<_>>()),
        ("ok", vec!["c".into()])
    );
    let (conversation, outcome) = fresh().append([nested.clone(), result], 1).unwrap();
    assert_eq!(outcome.warnings(), []);
    let (_, outcome) = send(&conversation, r#"{"operation":"DELETE","indices":[0]}"#, 2).unwrap();
    assert_eq!(outcome.warnings()[0].code, WarningCode::TornResult);
    assert_eq!(conversation.messages().next().map(Message::json), Some(nested.json()));
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
fn arrange_shares_the_runs_that_it_keeps() {
    let conversation = appended(fresh(), &["a"; 1_000]);
    let mut indices: Vec<LogIndex> = (0..1_000).map(LogIndex).collect();
    let moved = indices.remove(100);
    indices.insert(900, moved);
    let (arranged, outcome) = conversation.apply(Arrange { indices: indices.clone() }, 2).unwrap();
    assert!(arranged.view().iter().eq(indices));
    assert_eq!(outcome.shared_prefix().messages, 100);
    assert_eq!((outcome.hidden(), outcome.shown()), (vec![], vec![]));
    arranged.verify().unwrap();
    // Any order.
    let backwards: Vec<LogIndex> = (0..1_000).rev().map(LogIndex).collect();
    let (arranged, _) = arranged.apply(Arrange { indices: backwards.clone() }, 3).unwrap();
    assert!(arranged.view().iter().eq(backwards));
    arranged.verify().unwrap();
}

#[test]
fn an_index_that_arrange_lists_twice_counts_at_its_first_position() {
    let conversation = appended(fresh(), &["a", "b", "c", "d"]);
    let cut = after(conversation, &[r#"{"operation":"DELETE","indices":[1]}"#]);
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
        let (conversation, outcome) = with_tool("f").append([Message::system(text)], 1).unwrap();
        let stale =
            outcome.warnings().iter().any(|warning| warning.code == WarningCode::StaleTools);
        assert_eq!(stale, is_stale, "{text:?}");
        let cleared = after(conversation, &[r#"{"operation":"CLEAR"}"#]);
        assert_eq!(view(&cleared), if is_stale { vec![0] } else { vec![0, 1] }, "{text:?}");
    }
    // The same in parts, and with characters that are escaped without need.
    for content in [
        r#"[{"type":"text","text":"Available tools:"},{"type":"text","text":"- old: one"}]"#,
        r#""\u0041vailable tools:\n- old: one""#,
    ] {
        let json = format!(r#"{{"role":"system","content":{content}}}"#);
        let (conversation, _) =
            with_tool("f").append([Message::from_json(&json).unwrap()], 1).unwrap();
        assert_eq!(warned(&conversation), [(WarningCode::StaleTools, vec![1])], "{content}");
    }
}

#[test]
fn a_description_of_several_lines_is_recognised_after_loading() {
    let tools = vec![Tool::new("f", "first\nsecond")];
    let conversation = appended(Conversation::new(settings(tools), 0).unwrap(), &["x"]);
    let conversation = reloaded(&conversation);
    let other = set_tools(&conversation, tool("g"));
    assert_eq!(
        (view(&other), text(&other, 0)),
        (vec![2, 1], "Available tools:\n- g: does it".into())
    );
}

#[test]
fn setting_tools_replaces_every_stale_description_by_the_newest_present_one() {
    let conversation = appended(with_tool("f"), &["x"]);
    let conversation =
        conversation.append([Message::system("Available tools:\n- g: does it")], 2).unwrap().0;
    let hidden = after(conversation, &[r#"{"operation":"DELETE","indices":[2]}"#]);
    let (set, outcome) = hidden.set_tools(tool("g"), 3).unwrap();
    assert_eq!((view(&set), outcome.added(), outcome.tools_changed()), (vec![2, 1], vec![], true));
}

#[test]
fn undo_and_redo_and_rollback_to_a_version_restore_the_tools() {
    let conversation = set_tools(&appended(with_tool("f"), &["x"]), tool("g"));
    let name = |conversation: &Conversation| {
        conversation.tools().map(|tools| tools.tools()[0].name().to_owned())
    };
    let (undone, outcome) = conversation.apply(Undo, 3).unwrap();
    assert_eq!((name(&undone), outcome.tools_changed()), (Some("f".into()), true));
    let (redone, outcome) = undone.apply(Redo, 4).unwrap();
    assert_eq!((name(&redone), outcome.tools_changed()), (Some("g".into()), true));
    let (back, _) = redone.apply(Rollback::ToVersion(Version(1)), 5).unwrap();
    assert_eq!(name(&back), Some("f".into()));
    assert_eq!(name(&reloaded(&back)), Some("f".into()));
    // Also in a list, before other operations.
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
fn rollback_to_a_batch_keeps_the_tools_and_their_description() {
    let conversation = appended(with_tool("f"), &["x"]);
    let started = conversation.apply(BatchStart::default(), 2).unwrap().0;
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
fn carry_skips_visible_entries_and_stale_descriptions() {
    let conversation = appended(with_tool("f"), &["x"]);
    let conversation = conversation.apply(BatchStart::default(), 2).unwrap().0;
    let stale = Message::system("Available tools:\n- old: one");
    let conversation = conversation.append([stale, Message::assistant("done")], 2).unwrap().0;
    let conversation = conversation.apply(Mark::pin([LogIndex(2)]), 2).unwrap().0;
    let carry = Carry::Roles([Role::System, Role::Assistant].into_iter().collect::<RoleSet>());
    let (ended, _) = conversation.apply(BatchEnd { target: None, carry }, 3).unwrap();
    assert_eq!(view(&ended), [0, 1, 3]);
}

#[test]
fn a_conversation_without_tools_warns_of_descriptions_that_the_engine_wrote() {
    let conversation = appended(with_tool("f"), &["x"]);
    let none = set_tools(&conversation, Vec::new());
    assert_eq!(view(&none), [1]);
    let shown = none.apply(Arrange { indices: [0, 1].map(LogIndex).to_vec() }, 3).unwrap().0;
    assert_eq!(warned(&shown), [(WarningCode::StaleTools, vec![0])]);
    let own = fresh().append([Message::system("Available tools:\n- old: one")], 1).unwrap().0;
    assert_eq!(warned(&own), [], "a description that the user wrote is an ordinary message");
}

#[test]
fn batch_start_with_tools_keeps_the_present_description_and_drops_stale_ones() {
    let conversation = appended(with_tool("f"), &["x", "y"]);
    let conversation =
        conversation.append([Message::system("Available tools:\n- old: one")], 1).unwrap().0;
    let start = BatchStart { boundary: Some(LogIndex(2)), with_tools: true };
    assert_eq!(view(&conversation.apply(start.clone(), 2).unwrap().0), [0, 2]);
    let hidden = after(conversation, &[r#"{"operation":"DELETE","indices":[0,3]}"#]);
    assert_eq!(view(&hidden.apply(start, 2).unwrap().0), [0, 2]);
}

#[test]
fn batch_end_without_a_target_reverts_the_newest_batch_start_also_after_loading() {
    let conversation = appended(fresh(), &["a"]);
    let error = conversation.apply(BatchEnd::default(), 2).unwrap_err();
    assert_eq!(error.code().as_str(), "batch_not_found");
    let first = conversation.apply(BatchStart::default(), 2).unwrap().0;
    let second = appended(first, &["b"]).apply(BatchStart::default(), 3).unwrap().0;
    let cut = after(second, &[r#"{"operation":"TRUNCATE","keepLast":1}"#]);
    for conversation in [cut.clone(), reloaded(&cut)] {
        let (conversation, _) = conversation.apply(BatchEnd::default(), 4).unwrap();
        assert_eq!(
            (conversation.stats().current_batch_index, view(&conversation)),
            (BatchIndex(1), vec![0, 1])
        );
        let (conversation, _) = conversation.apply(BatchEnd::default(), 5).unwrap();
        assert_eq!(
            (conversation.stats().current_batch_index, view(&conversation)),
            (BatchIndex(0), vec![0])
        );
        assert!(conversation.apply(BatchEnd::default(), 6).is_err());
    }
}

#[test]
fn an_unexpected_batch_number_is_refused_before_the_boundary() {
    let conversation = appended(fresh(), &["a"]);
    let error = send(&conversation, r#"{"operation":"batch_start","indices":[99],"batch":4}"#, 2)
        .unwrap_err();
    let json = error.to_json()["error"].clone();
    assert_eq!((&json["code"], &json["field"]), (&json!("invalid_operation"), &json!("batch")));
    assert_eq!(json["details"], json!({"expected": 4, "actual": 1}));
}

#[test]
fn ignored_indices_cause_a_warning() {
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
fn requests_of_the_modification_form_survive_a_round_trip() {
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
fn a_request_without_effect_makes_no_version() {
    let conversation = appended(fresh(), &["a"]);
    for json in [
        r#"{"operation":"delete","indices":[]}"#,
        r#"{"ops":[{"operation":"FIT","maxTokens":99},{"operation":"compress","indices":[]}]}"#,
    ] {
        let (next, outcome) = send(&conversation, json, 2).unwrap();
        assert_eq!((next.version(), outcome.changed), (Version(1), false), "{json}");
    }
    let mixed = r#"{"ops":[{"operation":"FIT","maxTokens":99},{"operation":"BATCH_START"}]}"#;
    assert!(send(&conversation, mixed, 2).unwrap().1.changed);
}

#[test]
fn the_messages_of_a_new_conversation_follow_the_tool_description() {
    let messages = [Message::user("a"), Message::assistant("b")];
    let conversation = Conversation::with_messages(settings(tool("f")), &messages, 0).unwrap();
    assert_eq!((view(&conversation), conversation.version()), (vec![0, 1, 2], Version(0)));
    assert_eq!(text(&conversation, 0), "Available tools:\n- f: does it");
    let described = [Message::user("a"), Message::system("可用工具:\n- f: does it")];
    let conversation = Conversation::with_messages(settings(tool("f")), &described, 0).unwrap();
    assert_eq!(view(&conversation), [0, 1]);
    assert_eq!(conversation.tool_descriptions().unwrap(), [LogIndex(1)]);
}

#[test]
fn the_mark_map_lists_the_visible_entries_by_role_or_all() {
    let conversation = appended(fresh(), &["a", "b", "c"]);
    let conversation = after(conversation, &[r#"{"operation":"ARRANGE","indices":[2,0]}"#]);
    assert_eq!(numbers(conversation.mark_map(Scope::Visible).unwrap().type_indices.user), [2, 0]);
    assert_eq!(numbers(conversation.mark_map(Scope::All).unwrap().type_indices.user), [0, 1, 2]);
}

#[test]
fn the_state_has_the_visible_messages_and_a_snapshot_of_each_batch_below() {
    let conversation = appended(fresh(), &["a", "b"]);
    let conversation = after(conversation, &[r#"{"operation":"TRUNCATE","keepLast":1}"#]);
    let state = json!(conversation.array_state().unwrap());
    assert_eq!(state["messages"], json!([{"role": "user", "content": "b"}]));
    assert_eq!((&state["currentBatchIndex"], &state["totalMessageCount"]), (&json!(1), &json!(1)));
    assert_eq!(state["batchSnapshots"].as_array().map(Vec::len), Some(1));
    assert_eq!(state["batchSnapshots"][0]["messageCount"], 2);
}

#[test]
fn foreign_messages_cause_a_warning() {
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
fn an_empty_view_causes_a_warning() {
    let conversation = appended(fresh(), &["a"]);
    let (_, outcome) = send(&conversation, r#"{"operation":"CLEAR"}"#, 2).unwrap();
    assert_eq!(outcome.warnings()[0].code, WarningCode::ViewEmpty);
    let (_, outcome) = conversation.apply(Arrange::default(), 2).unwrap();
    assert_eq!(outcome.warnings()[0].code, WarningCode::ViewEmpty);
}

#[test]
fn the_warning_about_an_empty_view_names_the_operation_that_restores_it() {
    let message = |outcome: &Outcome| outcome.warnings()[0].message.clone();
    let conversation = appended(fresh(), &["a"]);
    let (_, cleared) = send(&conversation, r#"{"operation":"CLEAR"}"#, 2).unwrap();
    assert_eq!(message(&cleared), "the view is empty; UNDO restores it");
    let (undone, outcome) = send(&conversation, r#"{"operation":"UNDO"}"#, 2).unwrap();
    assert_eq!(message(&outcome), "the view is empty; REDO restores it");
    let (redone, _) = send(&undone, r#"{"operation":"REDO"}"#, 3).unwrap();
    assert_eq!(redone.view().len(), 1);
    let (_, outcome) = send(&fresh(), r#"{"operation":"BATCH_START"}"#, 2).unwrap();
    assert_eq!(message(&outcome), "the view is empty");
}

#[test]
fn thinking_is_counted_but_not_searched() {
    let thinking = r#"{"role":"assistant","content":[{"type":"thinking","text":"12345678"},{"type":"text","text":"abc"}]}"#;
    let (conversation, _) = fresh().append([Message::from_json(thinking).unwrap()], 1).unwrap();
    // Twelve characters with the newline between the two parts.
    assert_eq!(conversation.view().tokens(), 3 + 3);
    assert_eq!(conversation.search("12345678").unwrap().len(), 0);
    let query = Query::from_json(r#"{"contains":"1234"}"#).unwrap();
    assert_eq!(conversation.query(&query).unwrap().len(), 0);
    let filtered =
        send(&conversation, r#"{"operation":"FILTER","contentContains":["1234"]}"#, 2).unwrap().0;
    assert!(filtered.view().is_empty());
}

#[test]
fn tools_that_are_not_valid_unicode_are_equal_only_byte_for_byte() {
    let tools = |description: &str| {
        let json = format!(r#"[{{"name":"a","description":"{description}","x":"\\ud800"}}]"#);
        Tool::list_from_json(&json).expect("half a surrogate pair is kept")
    };
    let conversation = Conversation::new(settings(tools("old")), 0).expect("the tools are valid");
    assert!(!conversation.set_tools(tools("old"), 1).unwrap().1.changed);
    assert!(conversation.set_tools(tools("new"), 1).unwrap().1.changed);
    // White space and the order of keys do not matter.
    let spaced = Tool::list_from_json(r#"[ {"description": "does it", "name": "f"} ]"#).unwrap();
    assert!(!with_tool("f").set_tools(spaced, 1).unwrap().1.changed);
}
