//! Very long lists of indices, words and operations.

use super::*;

const VIEW: usize = 100_000;

/// A million numbers that name every entry of [`VIEW`] ten times, in a scattered order.
fn million() -> Vec<LogIndex> {
    (0..1_000_000).map(|number| LogIndex((number * 7_919 % VIEW) as u32)).collect()
}

#[test]
fn a_million_indices_are_one_request() {
    let conversation = long(VIEW);
    let listed: Vec<String> = million().iter().map(LogIndex::to_string).collect();
    let request = format!(r#"{{"operation":"DELETE","indices":[{}]}}"#, listed.join(","));
    let (empty, outcome) = send(&conversation, &request, 2).expect("it is accepted");
    assert_eq!((empty.view().len(), outcome.hidden().len()), (0, VIEW));

    let ask = |conversation: &Conversation, operation: Operation| {
        conversation.apply(operation, 2).expect("it is accepted")
    };
    let (back, outcome) = ask(&empty, Restore { indices: million() }.into());
    assert_eq!((back.view().len(), outcome.shown().len()), (VIEW, VIEW));
    assert!(back.view().iter().eq(conversation.view().iter()), "all are in their places again");
    let summary = Some(Message::user("s"));
    let (one, outcome) = ask(&conversation, Compress { indices: million(), summary }.into());
    assert_eq!((view(&one), outcome.hidden().len()), (vec![VIEW], VIEW));
    let mark = PINNED.to_owned();
    let (marked, _) = ask(&conversation, Mark { indices: million(), mark: mark.clone() }.into());
    assert_eq!(marked.marks().indices(PINNED).count(), VIEW);
    let none = Truncate { keep_last: Some(0), ..Truncate::default() };
    let (kept, _) = ask(&marked, none.into());
    assert_eq!(kept.view().len(), VIEW, "pinned entries stay");
    let (bare, _) = ask(&marked, Unmark { indices: million(), mark }.into());
    assert_eq!(bare.marks().labels().count(), 0);
}

#[test]
fn one_wrong_index_in_a_million_is_found() {
    let conversation = long(VIEW);
    let mut indices = million();
    indices[500_000] = LogIndex(VIEW as u32);
    assert_eq!(code_of(&conversation.apply(Delete { indices }, 2)), "index_out_of_range");
    assert_eq!((conversation.version(), conversation.view().len()), (Version(1), VIEW));
}

#[test]
fn a_filter_may_have_a_hundred_thousand_words() {
    let conversation = after(
        fresh(),
        &[r#"{"operation":"APPEND","messages":[
            {"role":"user","content":"it is word99999 that is sought"},
            {"role":"user","content":"nothing here"},
            {"role":"user","content":"nor word here"}]}"#],
    );
    let words: Vec<String> = (10_000..110_000).map(|n| format!("\"word{n}\"")).collect();
    let words = words.join(",");
    for (field, left) in [("contentContains", vec![0]), ("contentExcludes", vec![1, 2])] {
        let request = format!(r#"{{"operation":"FILTER","{field}":[{words}]}}"#);
        let (next, _) = send(&conversation, &request, 2).expect("it is accepted");
        assert_eq!(view(&next), left, "{field}");
        let described = next.versions().next_back().expect("it has versions").reason;
        assert!(described.len() < 1_000, "a description is short");
    }
    let query = format!(r#"{{"contains":[{words}]}}"#);
    let hits =
        Query::from_json(&query).and_then(|query| conversation.query(&query)).expect("an answer");
    assert_eq!(hits.len(), 1);
}

#[test]
fn ten_thousand_operations_are_one_version() {
    let operations = [
        append(1),
        r#"{"operation":"DELETE","indices":[0]}"#.to_owned(),
        r#"{"operation":"BATCH_START"}"#.to_owned(),
        r#"{"operation":"MARK","indices":[0],"mark":"m"}"#.to_owned(),
    ];
    let list: Vec<&str> = operations.iter().map(|op| &**op).cycle().take(10_000).collect();
    let request = format!(r#"{{"ops":[{}]}}"#, list.join(","));
    let (conversation, outcome) = send(&fresh(), &request, 1).expect("it is accepted");
    assert_eq!(conversation.version(), Version(1));
    assert_eq!(outcome.stats().total_messages, 2_500);
    assert_eq!(outcome.stats().total_batches, 5_001);
    assert_eq!(outcome.added().len(), 2_500);
    assert_eq!(conversation.blame(LogIndex(2_499)).map(|blame| blame.len()), Ok(1));
    let (back, _) = conversation.apply(Undo, 2).expect("UNDO is possible");
    assert_eq!((back.view().len(), back.stats().total_batches), (0, 1));
}
