//! Conversations with 100,000 versions and batches.

use super::*;

const LONG: usize = 100_000;

fn repeat(start: Conversation, times: usize, request: impl Into<Request> + Clone) -> Conversation {
    (0..times).fold(start, |conversation, _| {
        conversation.apply(request.clone(), 1).expect("it is accepted").0
    })
}

#[test]
fn a_hundred_thousand_batches_can_be_opened_and_restored() {
    on_a_small_stack(|| {
        let conversation = repeat(fresh(), LONG, BatchStart::default());
        assert_eq!(conversation.stats().total_batches, LONG + 1);
        for batch in [0, 1, LONG / 2, LONG - 1, LONG] {
            let (back, _) = conversation
                .apply(Rollback::ToBatch(BatchIndex(batch)), 2)
                .expect("it is on the live path");
            assert_eq!(back.stats().current_batch_index, BatchIndex(batch));
            assert_eq!(
                conversation.snapshot(BatchIndex(batch)).map(|found| found.batch.0),
                Ok(batch)
            );
        }
        assert_eq!(
            conversation.mark_map(recto_core::Scope::Visible).unwrap().boundary_to_batch.len(),
            LONG + 1
        );
        let early = conversation.at(Version(10)).expect("it exists");
        drop(conversation);
        assert_eq!(early.stats().total_batches, 11);
    });
}

#[test]
fn a_hundred_thousand_requests_can_be_undone_and_redone() {
    on_a_small_stack(|| {
        let append = Append { messages: vec![Message::user("x")] };
        let full = repeat(fresh(), LONG, append);
        let empty = repeat(full.clone(), LONG, Undo);
        assert_eq!((empty.view().len(), empty.version()), (0, Version(2 * LONG as u32)));
        assert_eq!(code_of(&empty.apply(Undo, 1)), "nothing_to_undo");
        let again = repeat(empty, LONG, Redo);
        assert_eq!(again.view().len(), LONG);
        assert_eq!(code_of(&again.apply(Redo, 1)), "nothing_to_redo");
        assert!(again.view().iter().eq(full.view().iter()));
        let (back, _) = again.apply(Undo, 1).expect("the newest can be undone");
        assert_eq!(back.view().len(), LONG - 1);
        assert_eq!(again.blame(LogIndex(0)).map(|blame| blame.len()), Ok(3));
    });
}

#[test]
fn a_hundred_thousand_edits_of_one_view_are_all_kept() {
    let mut conversation = long(1_000);
    for number in 0..LONG as u32 {
        let index = number % 1_000;
        let name = if number / 1_000 % 2 == 0 { "DELETE" } else { "RESTORE" };
        let request = format!(r#"{{"operation":"{name}","indices":[{index}]}}"#);
        conversation = send(&conversation, &request, 1).expect("it is accepted").0;
    }
    assert_eq!(conversation.view().len(), 1_000);
    assert_eq!(conversation.at(Version(1_001)).map(|at| at.view().len()), Ok(0));
    assert_eq!(conversation.at(Version(501)).map(|at| at.view().len()), Ok(500));
    let diff = conversation.diff(Version(1), Version(501)).expect("both exist");
    assert_eq!(diff.hidden.indices.len(), 500);
    let query = Query { at: QueryAt::Version(Version(501)), ..Query::default() };
    assert_eq!(conversation.query(&query).map(|hits| hits.len()), Ok(500));
    assert_eq!(conversation.blame(LogIndex(7)).map(|blame| blame.len()), Ok(101));
}

#[test]
fn tools_may_change_three_thousand_times() {
    let names: Vec<String> = (0..3_000).map(|number| format!("tool{number}")).collect();
    let mut conversation = with_tools(&["first"]);
    for name in &names {
        conversation = conversation.set_tools(tools(&[name]), 1).expect("it is accepted").0;
    }
    assert_eq!((conversation.view().len(), conversation.log().len()), (1, 3_001));
    assert_eq!(conversation.count_by_role(Role::System), 1);
}
