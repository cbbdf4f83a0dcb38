//! Pinned entries and operations with the scope `all`.

use crate::conversations::{after, fresh, view};

#[test]
fn with_the_scope_all_visible_pins_stay_in_log_order_and_hidden_ones_stay_hidden() {
    let conversation = after(
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
    assert_eq!(view(&conversation), [1, 3, 4]);
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
        assert_eq!(view(&after(conversation.clone(), &[request])), expected, "{request}");
    }
}
