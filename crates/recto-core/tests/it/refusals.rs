//! Every error of the contract: reachable, typed, telling what would be right, and without a trace
//! in the conversation that refused.

use std::collections::BTreeSet;

use recto_core::{
    Append, BatchEnd, BatchIndex, BatchStart, Carry, Compress, Conversation, Delete, Error, Filter,
    Fit, Insert, LogIndex, Mark, Message, Moment, Operation, Pick, Position, Query, Redo, Replace,
    ReplaceEntries, Request, Restore, Role, RoleSet, Rollback, Tool, Truncate, Undo, Unmark,
    Version,
};
use serde_json::Value;

use crate::driver::fingerprint;
use crate::talk::{after, append, fresh, send, view};

/// Seven log entries of which 1 and 6 are hidden and 4 is pinned; version 6, batch 2, and a request
/// that was taken back.
fn worked() -> Conversation {
    let talk = after(
        fresh(),
        &[
            r#"{"operation":"APPEND","messages":[
                {"role":"system","content":"be brief"},
                {"role":"user","content":"a"},
                {"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}}]},
                {"role":"tool","content":[{"type":"tool_result","tool_use_id":"c","content":"b"}]},
                {"role":"user","content":"keep me"},
                {"role":"assistant","content":"d"}]}"#,
            r#"{"operation":"DELETE","indices":[1]}"#,
            r#"{"operation":"MARK","indices":[4],"mark":"pinned"}"#,
            r#"{"operation":"BATCH_START"}"#,
            r#"{"operation":"APPEND","messages":[{"role":"user","content":"e"}]}"#,
            r#"{"operation":"UNDO"}"#,
        ],
    );
    assert_eq!(view(&talk), [0, 2, 3, 4, 5]);
    talk
}

/// A request, the code that refuses it, the field that is to blame (or `""`), and words that tell
/// what would be right.
type Case<'a> = (&'a str, &'a str, &'a str, &'a [&'a str]);

/// Refused by [`worked`]: what is no request, or not a well-formed one.
const SHAPES: &[Case<'_>] = &[
    ("", "invalid_json", "", &["not JSON"]),
    ("{", "invalid_json", "", &["not JSON", "line 1"]),
    ("{\"operation\":\"CLEAR\"} x", "invalid_json", "", &["not JSON", "column 23"]),
    ("{'operation':'CLEAR'}", "invalid_json", "", &["not JSON"]),
    ("{\"operation\":\"CLEAR\",}", "invalid_json", "", &["not JSON"]),
    ("\u{feff}{\"operation\":\"CLEAR\"}", "invalid_json", "", &["not JSON"]),
    ("{\"operation\":\"a\u{0}\"}", "invalid_json", "", &["not JSON"]),
    ("NaN", "invalid_json", "", &["not JSON"]),
    ("null", "invalid_operation", "", &["a request is an object, not null"]),
    ("[]", "invalid_operation", "", &["a request is an object, not a list"]),
    ("\"UNDO\"", "invalid_operation", "", &["a request is an object, not a string"]),
    ("{}", "invalid_operation", "operation", &["operation is missing", "APPEND"]),
    (r#"{"operation":null}"#, "invalid_operation", "operation", &["missing"]),
    (r#"{"operation":7}"#, "invalid_operation", "operation", &["must be a string"]),
    (r#"{"operation":"NOPE"}"#, "invalid_operation", "operation", &["\"NOPE\"", "TRUNCATE"]),
    (r#"{"operation":"append"}"#, "invalid_operation", "operation", &["APPEND"]),
    (r#"{"operation":"UNDO "}"#, "invalid_operation", "operation", &["UNDO"]),
    (r#"{"op":null}"#, "invalid_operation", "op", &["needs the field op"]),
    (r#"{"op":[]}"#, "invalid_operation", "", &["an operation is an object, not a list"]),
    (r#"{"op":{"operation":"CLEAR"},"now":1}"#, "invalid_operation", "now", &["op"]),
    (r#"{"ops":[]}"#, "invalid_operation", "ops", &["at least one operation"]),
    (r#"{"ops":{}}"#, "invalid_operation", "ops", &["must be a list"]),
    (r#"{"ops":[{"operation":"UNDO"}]}"#, "invalid_operation", "ops[0]", &["UNDO stands alone"]),
    (
        r#"{"ops":[{"operation":"CLEAR"},{"operation":"REDO"}]}"#,
        "invalid_operation",
        "ops[1]",
        &["REDO stands alone"],
    ),
    (r#"{"operation":"UNDO","times":2}"#, "invalid_operation", "times", &["UNDO has no field"]),
    (r#"{"operation":"CLEAR","description":5}"#, "invalid_operation", "description", &["a string"]),
    // Numbers are whole and start at 0.
    (r#"{"operation":"TRUNCATE","keepLast":-1}"#, "invalid_operation", "keepLast", &["from 0"]),
    (r#"{"operation":"TRUNCATE","keepLast":2.0}"#, "invalid_operation", "keepLast", &["whole"]),
    (r#"{"operation":"TRUNCATE","keepLast":"2"}"#, "invalid_operation", "keepLast", &["number"]),
    (r#"{"operation":"TRUNCATE","keepLast":1e3}"#, "invalid_operation", "keepLast", &["whole"]),
    (r#"{"operation":"TRUNCATE","keepLast":-0}"#, "invalid_operation", "keepLast", &["whole"]),
    (r#"{"operation":"TRUNCATE","keepLast":[2]}"#, "invalid_operation", "keepLast", &["whole"]),
    // Each operation's own fields.
    (r#"{"operation":"TRUNCATE"}"#, "invalid_operation", "", &["criterion", "keepFirst", "role"]),
    (r#"{"operation":"TRUNCATE","scope":"all"}"#, "invalid_operation", "", &["criterion"]),
    (
        r#"{"operation":"TRUNCATE","keeplast":1}"#,
        "invalid_operation",
        "keeplast",
        &["did you mean keepLast?"],
    ),
    (
        r#"{"operation":"TRUNCATE","keepLast":1,"keepOthers":false}"#,
        "invalid_operation",
        "keepOthers",
        &["keepOthers goes with role"],
    ),
    (r#"{"operation":"TRUNCATE","role":"robot"}"#, "invalid_operation", "role", &["assistant"]),
    (r#"{"operation":"TRUNCATE","range":[0,1]}"#, "invalid_operation", "range", &["start and end"]),
    (r#"{"operation":"TRUNCATE","range":{"start":0}}"#, "invalid_operation", "end", &["end"]),
    (
        r#"{"operation":"TRUNCATE","range":{"start":0,"end":1,"step":1}}"#,
        "invalid_operation",
        "step",
        &["start, end"],
    ),
    (r#"{"operation":"FILTER"}"#, "invalid_operation", "", &["criterion", "contentContains"]),
    (r#"{"operation":"FILTER","roles":[]}"#, "invalid_operation", "roles", &["at least one role"]),
    (r#"{"operation":"FILTER","roles":"user"}"#, "invalid_operation", "roles", &["a list"]),
    (
        r#"{"operation":"FILTER","contentContains":[]}"#,
        "invalid_operation",
        "contentContains",
        &["at least one text"],
    ),
    (
        r#"{"operation":"FILTER","contentExcludes":["a",""]}"#,
        "invalid_operation",
        "contentExcludes",
        &["not empty"],
    ),
    (
        r#"{"operation":"FILTER","contentContains":"a"}"#,
        "invalid_operation",
        "contentContains",
        &["a list"],
    ),
    (r#"{"operation":"CLEAR","scope":"hidden"}"#, "invalid_operation", "scope", &["visible"]),
    (
        r#"{"operation":"CLEAR","keepSystemMessage":1}"#,
        "invalid_operation",
        "keepSystemMessage",
        &["true or false"],
    ),
    (r#"{"operation":"APPEND"}"#, "invalid_operation", "messages", &["needs the field messages"]),
    (r#"{"operation":"APPEND","messages":[]}"#, "invalid_operation", "messages", &["at least one"]),
    (r#"{"operation":"APPEND","messages":{}}"#, "invalid_operation", "messages", &["a list"]),
    (
        r#"{"operation":"INSERT","position":0,"messages":[]}"#,
        "invalid_operation",
        "messages",
        &["at least one"],
    ),
    (
        r#"{"operation":"INSERT","position":-1,"messages":[{"role":"user","content":"x"}]}"#,
        "invalid_operation",
        "position",
        &["from 0"],
    ),
    (r#"{"operation":"REPLACE","index":0}"#, "invalid_operation", "message", &["needs the field"]),
    (r#"{"operation":"DELETE"}"#, "invalid_operation", "indices", &["needs the field indices"]),
    (r#"{"operation":"DELETE","indices":[]}"#, "invalid_operation", "indices", &["at least one"]),
    (r#"{"operation":"DELETE","indices":[0,"1"]}"#, "invalid_operation", "indices", &["whole"]),
    (r#"{"operation":"RESTORE","indices":[]}"#, "invalid_operation", "indices", &["at least one"]),
    (r#"{"operation":"RESTORE","indices":[-1]}"#, "invalid_operation", "indices", &["from 0"]),
    (r#"{"operation":"COMPRESS","indices":[]}"#, "invalid_operation", "indices", &["at least one"]),
    (r#"{"operation":"MARK","indices":[0]}"#, "invalid_operation", "mark", &["needs the field"]),
    (r#"{"operation":"MARK","indices":[0],"mark":""}"#, "invalid_operation", "mark", &["name"]),
    (r#"{"operation":"UNMARK","indices":[],"mark":"x"}"#, "invalid_operation", "indices", &["one"]),
    (
        r#"{"operation":"ROLLBACK"}"#,
        "invalid_operation",
        "",
        &["targetBatchIndex", "targetVersion"],
    ),
    (
        r#"{"operation":"ROLLBACK","targetBatchIndex":0,"targetVersion":0}"#,
        "invalid_operation",
        "",
        &["either targetBatchIndex or targetVersion"],
    ),
    (r#"{"operation":"BATCH_END"}"#, "invalid_operation", "targetBatchIndex", &["needs the field"]),
    (
        r#"{"operation":"BATCH_END","targetBatchIndex":0,"carry":[]}"#,
        "invalid_operation",
        "carry",
        &["at least one role"],
    ),
    (
        r#"{"operation":"BATCH_END","targetBatchIndex":0,"carry":"some"}"#,
        "invalid_operation",
        "carry",
        &["\"none\", \"all\" or a list of roles"],
    ),
    (r#"{"operation":"FIT"}"#, "invalid_operation", "maxTokens", &["needs the field maxTokens"]),
    (
        r#"{"operation":"FIT","maxTokens":9,"startOn":"robot"}"#,
        "invalid_operation",
        "startOn",
        &["system, user, assistant or tool"],
    ),
    // The node form.
    (r#"{"operation":"truncate"}"#, "invalid_operation", "truncate", &["object \"truncate\""]),
    (r#"{"operation":"truncate","truncate":5}"#, "invalid_operation", "truncate", &["an object"]),
    (r#"{"operation":"truncate","keepLast":1}"#, "invalid_operation", "keepLast", &["truncate"]),
    (r#"{"operation":"clear","clear":{"all":true}}"#, "invalid_operation", "all", &["scope"]),
    (
        r#"{"operation":"insert","insert":{"position":-2,"messages":[{"role":"user","content":"x"}]}}"#,
        "invalid_operation",
        "position",
        &["from 0"],
    ),
    (
        r#"{"operation":"insert","insert":{"position":-1,"messages":[]}}"#,
        "invalid_operation",
        "messages",
        &["at least one"],
    ),
    // The modification form.
    (r#"{"operation":"insert","data":{}}"#, "invalid_operation", "indices", &["needs the field"]),
    (
        r#"{"operation":"insert","indices":[1],"data":{"role":"user","content":"x"}}"#,
        "invalid_operation",
        "indices",
        &["must be empty"],
    ),
    (r#"{"operation":"insert","indices":[]}"#, "invalid_operation", "data", &["needs the field"]),
    (
        r#"{"operation":"insert","indices":[],"data":[]}"#,
        "invalid_operation",
        "data",
        &["at least one message"],
    ),
    (r#"{"operation":"replace","indices":[],"data":{}}"#, "invalid_operation", "indices", &["one"]),
    (
        r#"{"operation":"delete","indices":[0],"data":{}}"#,
        "invalid_operation",
        "data",
        &["indices"],
    ),
    (
        r#"{"operation":"batch_start","indices":[]}"#,
        "invalid_operation",
        "indices",
        &["exactly one"],
    ),
    (
        r#"{"operation":"batch_end","indices":[0,1]}"#,
        "invalid_operation",
        "indices",
        &["exactly one"],
    ),
    // Messages.
    (r#"{"operation":"APPEND","messages":["hi"]}"#, "invalid_message", "messages[0]", &["object"]),
    (
        r#"{"operation":"APPEND","messages":[{"role":"user","content":"x"},{"content":"x"}]}"#,
        "invalid_message",
        "messages[1].role",
        &["role is missing", "system, user, assistant or tool"],
    ),
    (
        r#"{"operation":"INSERT","position":0,"messages":[{"role":"robot","content":"x"}]}"#,
        "invalid_message",
        "messages[0].role",
        &["system, user, assistant or tool", "robot"],
    ),
    (
        r#"{"operation":"REPLACE","index":0,"message":{"role":"user"}}"#,
        "invalid_message",
        "message.content",
        &["a string or a list of parts"],
    ),
    (
        r#"{"operation":"COMPRESS","indices":[0],"summary":{"role":"user","content":5}}"#,
        "invalid_message",
        "summary.content",
        &["a string or a list of parts", "a number"],
    ),
    (
        r#"{"operation":"APPEND","messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text"}]}]}"#,
        "invalid_message",
        "messages[0].content[1].text",
        &["a text part has a text"],
    ),
    (
        r#"{"operation":"APPEND","messages":[{"role":"tool","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"tool_use","id":"x","name":"n"}]}]}]}"#,
        "invalid_message",
        "messages[0].content[0].content[0].input",
        &["{} if it needs none"],
    ),
    (
        r#"{"operation":"APPEND","messages":[{"role":"user","content":"x","timestamp":1.5}]}"#,
        "invalid_message",
        "messages[0].timestamp",
        &["milliseconds since 1970", "1.5"],
    ),
    (
        r#"{"operation":"insert","insert":{"position":-1,"messages":[{"role":"user","id":5,"content":"x"}]}}"#,
        "invalid_message",
        "insert.messages[0].id",
        &["id must be a string"],
    ),
    (
        r#"{"operation":"replace","replace":{"index":0,"message":[]}}"#,
        "invalid_message",
        "replace.message",
        &["role and content", "a list"],
    ),
    (
        r#"{"operation":"replace","indices":[0],"data":{"role":"user","content":"x","name":1}}"#,
        "invalid_message",
        "data.name",
        &["name must be a string"],
    ),
    (
        r#"{"ops":[{"operation":"CLEAR"},{"operation":"APPEND","messages":[{"role":"user","content":[7]}]}]}"#,
        "invalid_message",
        "ops[1].messages[0].content[0]",
        &["a part is an object with a type, not a number"],
    ),
    (
        r#"{"operation":"APPEND","messages":[{"role":"user","content":""}]}"#,
        "empty_content",
        "messages[0].content",
        &["user", "text or parts"],
    ),
    (
        r#"{"operation":"insert","indices":[],"data":[{"role":"tool","content":""},{"role":"assistant","content":[]}]}"#,
        "empty_content",
        "data[1].content",
        &["assistant"],
    ),
    (
        r#"{"operation":"COMPRESS","indices":[0],"summary":{"role":"system","content":""}}"#,
        "empty_content",
        "summary.content",
        &["system"],
    ),
];

/// Refused by [`worked`]: well-formed requests that do not fit the conversation.
const MISFITS: &[Case<'_>] = &[
    (
        r#"{"operation":"INSERT","position":6,"messages":[{"role":"user","content":"x"}]}"#,
        "position_out_of_range",
        "position",
        &["position 6", "use 0 to 5"],
    ),
    (
        r#"{"operation":"insert","insert":{"position":6,"messages":[{"role":"user","content":"x"}]}}"#,
        "position_out_of_range",
        "position",
        &["use 0 to 5"],
    ),
    (
        r#"{"operation":"REPLACE","index":5,"message":{"role":"user","content":"x"}}"#,
        "index_out_of_range",
        "index",
        &["no entry at place 5", "use 0 to 4"],
    ),
    (r#"{"operation":"DELETE","indices":[0,7]}"#, "index_out_of_range", "indices", &["use 0 to 6"]),
    (r#"{"operation":"RESTORE","indices":[7]}"#, "index_out_of_range", "indices", &["entry 7"]),
    (r#"{"operation":"COMPRESS","indices":[7]}"#, "index_out_of_range", "indices", &["use 0 to 6"]),
    (
        r#"{"operation":"MARK","indices":[7],"mark":"x"}"#,
        "index_out_of_range",
        "indices",
        &["use 0 to 6"],
    ),
    (
        r#"{"operation":"UNMARK","indices":[7],"mark":"x"}"#,
        "index_out_of_range",
        "indices",
        &["use 0 to 6"],
    ),
    (
        r#"{"operation":"BATCH_START","boundary":8}"#,
        "index_out_of_range",
        "boundary",
        &["boundary 8", "use 0 to 7"],
    ),
    (
        r#"{"operation":"replace","indices":[1],"data":{"role":"user","content":"x"}}"#,
        "not_visible",
        "indices",
        &["log entry 1 is hidden", "RESTORE"],
    ),
    (
        r#"{"operation":"TRUNCATE","range":{"start":3,"end":1}}"#,
        "invalid_range",
        "range",
        &["starts at 3", "at 1", "start must not be above end"],
    ),
    (
        r#"{"operation":"truncate","truncate":{"range":{"start":9,"end":8}}}"#,
        "invalid_range",
        "range",
        &["start must not be above end"],
    ),
    (
        r#"{"operation":"ROLLBACK","targetBatchIndex":3}"#,
        "batch_not_found",
        "targetBatchIndex",
        &["no batch 3", "use 0 to 2"],
    ),
    (
        r#"{"operation":"BATCH_END","targetBatchIndex":9,"carry":"all"}"#,
        "batch_not_found",
        "targetBatchIndex",
        &["use 0 to 2"],
    ),
    (
        r#"{"operation":"ROLLBACK","targetVersion":7}"#,
        "version_not_found",
        "targetVersion",
        &["no version 7", "use 0 to 6"],
    ),
    (r#"{"operation":"DELETE","indices":[0,4]}"#, "pinned", "indices", &["entry 4", "UNMARK"]),
    (r#"{"operation":"COMPRESS","indices":[4]}"#, "pinned", "indices", &["entry 4", "UNMARK"]),
    (
        r#"{"operation":"replace","indices":[2,4],"data":{"role":"user","content":"x"}}"#,
        "pinned",
        "indices",
        &["entry 4", "UNMARK"],
    ),
    (
        r#"{"operation":"COMPRESS","indices":[1,6],"summary":{"role":"user","content":"x"}}"#,
        "nothing_to_compress",
        "",
        &["none of the entries is visible", "name visible entries"],
    ),
    (
        r#"{"operation":"FIT","maxTokens":9}"#,
        "budget_too_small",
        "maxTokens",
        &["takes 10 tokens", "only 9", "raise maxTokens"],
    ),
    // The older forms have no names of their own for these: errors use the contract's.
    (
        r#"{"operation":"batch_start","indices":[8]}"#,
        "index_out_of_range",
        "boundary",
        &["boundary 8", "use 0 to 7"],
    ),
    (
        r#"{"operation":"batch_end","indices":[3]}"#,
        "batch_not_found",
        "targetBatchIndex",
        &["no batch 3", "use 0 to 2"],
    ),
    // Existence comes before visibility, and that before pins.
    (
        r#"{"operation":"replace","indices":[1,4,7],"data":{"role":"user","content":"x"}}"#,
        "index_out_of_range",
        "indices",
        &["entry 7"],
    ),
    (
        r#"{"operation":"replace","indices":[1,4],"data":{"role":"user","content":"x"}}"#,
        "not_visible",
        "indices",
        &["entry 1"],
    ),
    // The shape of all operations of a list comes before what any of them meets.
    (
        r#"{"ops":[{"operation":"DELETE","indices":[99]},{"operation":"APPEND","messages":[{"role":"user","content":""}]}]}"#,
        "empty_content",
        "ops[1].messages[0].content",
        &["user"],
    ),
];

/// Refused by an empty conversation.
const ON_NOTHING: &[Case<'_>] = &[
    (r#"{"operation":"UNDO"}"#, "nothing_to_undo", "", &["no request left to take back"]),
    (r#"{"operation":"REDO"}"#, "nothing_to_redo", "", &["REDO follows UNDO"]),
    (r#"{"operation":"DELETE","indices":[0]}"#, "index_out_of_range", "indices", &["none yet"]),
    (
        r#"{"operation":"REPLACE","index":0,"message":{"role":"user","content":"x"}}"#,
        "index_out_of_range",
        "index",
        &["none yet"],
    ),
    (
        r#"{"operation":"INSERT","position":1,"messages":[{"role":"user","content":"x"}]}"#,
        "position_out_of_range",
        "position",
        &["use 0 to 0"],
    ),
    (
        r#"{"operation":"ROLLBACK","targetVersion":1}"#,
        "version_not_found",
        "targetVersion",
        &["use 0 to 0"],
    ),
];

/// Queries that [`worked`] refuses.
const QUESTIONS: &[Case<'_>] = &[
    ("{", "invalid_json", "", &["not JSON"]),
    ("[]", "invalid_operation", "", &["a query is an object, not a list"]),
    (r#"{"contain":"x"}"#, "invalid_operation", "contain", &["did you mean contains?"]),
    (r#"{"role":"user","roles":["user"]}"#, "invalid_operation", "roles", &["exclude each other"]),
    (r#"{"first":1,"last":1}"#, "invalid_operation", "last", &["first and last exclude"]),
    (r#"{"batchIndex":0,"version":0}"#, "invalid_operation", "version", &["exclude each other"]),
    (r#"{"roles":[]}"#, "invalid_operation", "roles", &["at least one role"]),
    (r#"{"contains":""}"#, "invalid_operation", "contains", &["not empty"]),
    (r#"{"excludes":["a",""]}"#, "invalid_operation", "excludes", &["not empty"]),
    (r#"{"mark":""}"#, "invalid_operation", "mark", &["name a label"]),
    (r#"{"from":-1}"#, "invalid_operation", "from", &["from 0"]),
    (r#"{"scope":"hidden"}"#, "invalid_operation", "scope", &["visible"]),
    (r#"{"range":{"start":2,"end":1}}"#, "invalid_range", "range", &["start must not be above"]),
    (r#"{"batchIndex":3}"#, "batch_not_found", "batchIndex", &["use 0 to 2"]),
    (r#"{"version":7}"#, "version_not_found", "version", &["use 0 to 6"]),
];

/// What is over the default limits: made here because it is large.
fn oversized() -> Vec<(String, &'static str, &'static [&'static str])> {
    let wordy = format!(r#"{{"role":"user","content":"{}"}}"#, "x".repeat(4 << 20));
    let deep =
        format!(r#"{{"role":"user","content":"x","y":{}{}}}"#, "[".repeat(64), "]".repeat(64));
    let one = |message: &str| format!(r#"{{"operation":"APPEND","messages":[{message}]}}"#);
    let half = append(5_001);
    vec![
        (one(&wordy), "messages[0]", &["size in bytes", "4194304", "split it, or raise the limit"]),
        (one(&deep), "messages[0]", &["depth", "is 65", "limit of 64"]),
        (
            format!(r#"{{"operation":"REPLACE","index":0,"message":{deep}}}"#),
            "message",
            &["depth", "limit of 64"],
        ),
        (append(10_001), "", &["number of messages", "10001", "limit of 10000"]),
        (
            format!(r#"{{"ops":[{half},{half}]}}"#),
            "ops[1]",
            &["number of messages", "limit of 10000"],
        ),
    ]
}

/// What an error does not say as its case wants it, or as JSON says it otherwise.
fn faults(error: &Error, (request, code, field, words): Case<'_>) -> Vec<String> {
    let json = error.to_json();
    let inner = json["error"].as_object().expect("an error is an object");
    let known = ["code", "message", "field", "details"];
    let as_json = [
        inner.keys().all(|key| known.contains(&&**key)),
        inner["code"] == error.code().as_str(),
        inner["message"] == error.to_string(),
        inner.get("field").and_then(Value::as_str) == error.field().as_deref(),
        inner.get("details").is_none_or(Value::is_object),
    ];
    let mut faults = Vec::new();
    if error.code().as_str() != code {
        faults.push(format!("its code is {}, not {code}", error.code()));
    }
    if error.field().as_deref().unwrap_or("") != field {
        faults.push(format!("its field is {:?}, not {field:?}", error.field()));
    }
    let missing = words.iter().filter(|word| !error.to_string().contains(**word));
    faults.extend(missing.map(|word| format!("it does not say {word:?}")));
    if as_json.contains(&false) {
        faults.push(format!("it is written as {json}"));
    }
    let request: String = request.chars().take(200).collect();
    faults.iter().map(|fault| format!("{request}\n  {error}\n  {fault}\n")).collect()
}

/// Tests all cases on one conversation, and that none of them left a trace in it.
fn check_all(start: impl Fn() -> Conversation, cases: &[Case<'_>]) {
    let talk = start();
    let before = fingerprint(&talk);
    let mut found = Vec::new();
    for &case in cases {
        match send(&talk, case.0, 50) {
            Err(error) => found.extend(faults(&error, case)),
            Ok((_, outcome)) => {
                found.push(format!("{} is accepted: {}", case.0, outcome.to_json()))
            }
        }
        assert_eq!(fingerprint(&talk), before, "{}", case.0);
    }
    assert!(found.is_empty(), "{}", found.concat());
    // What is hidden from the outside did not change either: both go on alike.
    talk.verify().expect("it holds together");
    for next in [r#"{"operation":"REDO"}"#, &append(40), r#"{"operation":"UNDO"}"#] {
        let (tried, twin) = (send(&talk, next, 60), send(&start(), next, 60));
        match (tried, twin) {
            (Ok((tried, _)), Ok((twin, _))) => assert_eq!(fingerprint(&tried), fingerprint(&twin)),
            (tried, twin) => assert_eq!(tried.err(), twin.err()),
        }
    }
}

#[test]
fn a_malformed_request_is_refused_without_a_trace() {
    check_all(worked, SHAPES);
}

#[test]
fn a_request_that_does_not_fit_the_conversation_is_refused_without_a_trace() {
    check_all(worked, MISFITS);
}

#[test]
fn an_empty_conversation_refuses_without_a_trace() {
    check_all(fresh, ON_NOTHING);
}

#[test]
fn what_is_over_the_limits_is_too_large_and_leaves_no_trace() {
    let requests = oversized();
    let cases: Vec<Case<'_>> = requests
        .iter()
        .map(|(request, field, words)| (&**request, "too_large", *field, *words))
        .collect();
    check_all(worked, &cases);
}

#[test]
fn a_malformed_or_misplaced_question_is_refused() {
    let talk = worked();
    let before = fingerprint(&talk);
    let refused = |&case: &Case<'_>| {
        let asked = Query::from_json(case.0).and_then(|query| talk.ask(&query));
        faults(&asked.expect_err(case.0), case)
    };
    let found: Vec<String> = QUESTIONS.iter().flat_map(refused).collect();
    assert!(found.is_empty(), "{}", found.concat());
    assert_eq!(fingerprint(&talk), before);
}

#[test]
fn a_pinned_entry_named_by_its_place_is_refused_for_that_field() {
    check_all(
        worked,
        &[(
            r#"{"operation":"REPLACE","index":3,"message":{"role":"user","content":"x"}}"#,
            "pinned",
            "index",
            &["entry 4", "UNMARK"],
        )],
    );
}

#[test]
fn a_list_is_refused_whole_for_one_of_its_operations() {
    let talk = worked();
    let before = fingerprint(&talk);
    let good = [
        r#"{"operation":"APPEND","messages":[{"role":"user","content":"x"}]}"#,
        r#"{"operation":"CLEAR","keepSystemMessage":false}"#,
        r#"{"operation":"MARK","indices":[7],"mark":"pinned"}"#,
        r#"{"operation":"ROLLBACK","targetVersion":1}"#,
    ];
    let bad = [
        (r#"{"operation":"DELETE","indices":[8]}"#, "index_out_of_range"),
        (r#"{"operation":"ROLLBACK","targetBatchIndex":9}"#, "batch_not_found"),
        (r#"{"operation":"ROLLBACK","targetVersion":7}"#, "version_not_found"),
        (r#"{"operation":"FILTER"}"#, "invalid_operation"),
    ];
    for (bad, code) in bad {
        for place in 0..=good.len() {
            let mut list = good.to_vec();
            list.insert(place, bad);
            let request = format!(r#"{{"ops":[{}]}}"#, list.join(","));
            let error = send(&talk, &request, 50).expect_err(&request);
            assert_eq!(error.code().as_str(), code, "{request}: {error}");
            assert_eq!(fingerprint(&talk), before, "{request}");
        }
    }
}

#[test]
fn a_refusal_in_a_list_says_which_operation_it_is() {
    let talk = worked();
    let second = [
        r#"{"operation":"TRUNCATE","keeplast":1}"#,
        r#"{"operation":"UNDO"}"#,
        r#"{"operation":"APPEND","messages":[{"role":"user","content":""}]}"#,
        r#"{"operation":"DELETE","indices":[99]}"#,
        r#"{"operation":"DELETE","indices":[4]}"#,
    ];
    for operation in second {
        let request = format!(r#"{{"ops":[{{"operation":"BATCH_START"}},{operation}]}}"#);
        let error = send(&talk, &request, 50).expect_err(&request);
        let json = error.to_json().to_string();
        assert!(json.contains("ops[1]"), "{request}: {json}");
    }
}

#[test]
fn an_error_carries_the_numbers_that_it_is_about() {
    let talk = worked();
    let details = |request: &str| {
        let error = send(&talk, request, 50).expect_err(request);
        error.to_json()["error"]["details"].clone()
    };
    let cases = [
        (
            r#"{"operation":"INSERT","position":9,"messages":[{"role":"user","content":"x"}]}"#,
            serde_json::json!({"position": 9, "viewLength": 5}),
        ),
        (
            r#"{"operation":"DELETE","indices":[9]}"#,
            serde_json::json!({"index": 9, "logLength": 7}),
        ),
        (
            r#"{"operation":"BATCH_START","boundary":9}"#,
            serde_json::json!({"boundary": 9, "logLength": 7}),
        ),
        (r#"{"operation":"DELETE","indices":[4]}"#, serde_json::json!({"index": 4})),
        (
            r#"{"operation":"TRUNCATE","range":{"start":3,"end":1}}"#,
            serde_json::json!({"start": 3, "end": 1}),
        ),
        (
            r#"{"operation":"ROLLBACK","targetBatchIndex":9}"#,
            serde_json::json!({"batch": 9, "currentBatch": 2}),
        ),
        (
            r#"{"operation":"ROLLBACK","targetVersion":9}"#,
            serde_json::json!({"version": 9, "currentVersion": 6}),
        ),
        (r#"{"operation":"FIT","maxTokens":9}"#, serde_json::json!({"needed": 10, "maxTokens": 9})),
        (r#"{"operation":"NOPE"}"#, Value::Null),
    ];
    for (request, expected) in cases {
        assert_eq!(details(request), expected, "{request}");
    }
}

fn user() -> Message {
    Message::user("x")
}

/// Requests that only Rust can write, and the code that refuses each.
fn typed_requests() -> Vec<(Request, &'static str)> {
    let (zero, pinned) = (vec![LogIndex(0)], vec![LogIndex(4)]);
    let (beyond, hidden) = (vec![LogIndex(u32::MAX)], vec![LogIndex(1)]);
    let undo = || Operation::from(Undo);
    let words = |words: &[&str]| Some(words.iter().map(|&word| word.to_owned()).collect());
    vec![
        (Request { steps: Vec::new() }, "invalid_operation"),
        (Request::from_iter([undo(), undo()]), "invalid_operation"),
        (Request::from_iter([undo(), Redo.into()]), "invalid_operation"),
        (Append::default().into(), "invalid_operation"),
        (Insert::default().into(), "invalid_operation"),
        (ReplaceEntries::default().into(), "invalid_operation"),
        (
            ReplaceEntries { indices: zero.clone(), messages: Vec::new() }.into(),
            "invalid_operation",
        ),
        (
            ReplaceEntries { indices: Vec::new(), messages: vec![user()] }.into(),
            "invalid_operation",
        ),
        (Delete::default().into(), "invalid_operation"),
        (Restore::default().into(), "invalid_operation"),
        (Compress::default().into(), "invalid_operation"),
        (Compress { indices: Vec::new(), summary: Some(user()) }.into(), "invalid_operation"),
        (Mark::default().into(), "invalid_operation"),
        (Mark { indices: zero.clone(), mark: String::new() }.into(), "invalid_operation"),
        (Mark { indices: Vec::new(), mark: "x".into() }.into(), "invalid_operation"),
        (Unmark::default().into(), "invalid_operation"),
        (Unmark { indices: zero.clone(), mark: String::new() }.into(), "invalid_operation"),
        (Truncate::default().into(), "invalid_operation"),
        (
            Truncate { keep_last: Some(1), keep_others: true, ..Truncate::default() }.into(),
            "invalid_operation",
        ),
        (Filter::default().into(), "invalid_operation"),
        (Filter { roles: Some(RoleSet::NONE), ..Filter::default() }.into(), "invalid_operation"),
        (Filter { content_contains: words(&[]), ..Filter::default() }.into(), "invalid_operation"),
        (
            Filter { content_excludes: words(&["a", ""]), ..Filter::default() }.into(),
            "invalid_operation",
        ),
        (
            BatchEnd { target: BatchIndex(0), carry: Carry::Roles(RoleSet::NONE) }.into(),
            "invalid_operation",
        ),
        (
            Insert { position: Position(usize::MAX), messages: vec![user()] }.into(),
            "position_out_of_range",
        ),
        (Replace { index: Position(usize::MAX), message: user() }.into(), "index_out_of_range"),
        (Delete { indices: beyond.clone() }.into(), "index_out_of_range"),
        (Restore { indices: beyond.clone() }.into(), "index_out_of_range"),
        (Compress { indices: beyond.clone(), summary: None }.into(), "index_out_of_range"),
        (Mark { indices: beyond.clone(), mark: "x".into() }.into(), "index_out_of_range"),
        (Unmark { indices: beyond.clone(), mark: "x".into() }.into(), "index_out_of_range"),
        (BatchStart { boundary: Some(LogIndex(u32::MAX)) }.into(), "index_out_of_range"),
        (ReplaceEntries { indices: beyond, messages: vec![user()] }.into(), "index_out_of_range"),
        (ReplaceEntries { indices: hidden.clone(), messages: vec![user()] }.into(), "not_visible"),
        (backwards(|range| Truncate { range, ..Truncate::default() }).into(), "invalid_range"),
        (Rollback::ToBatch(BatchIndex(usize::MAX)).into(), "batch_not_found"),
        (BatchEnd { target: BatchIndex(usize::MAX), carry: Carry::All }.into(), "batch_not_found"),
        (Rollback::ToVersion(Version(u32::MAX)).into(), "version_not_found"),
        (Delete { indices: pinned.clone() }.into(), "pinned"),
        (Compress { indices: pinned.clone(), summary: Some(user()) }.into(), "pinned"),
        (Replace { index: Position(3), message: user() }.into(), "pinned"),
        (ReplaceEntries { indices: pinned, messages: vec![user()] }.into(), "pinned"),
        (Compress { indices: hidden, summary: Some(user()) }.into(), "nothing_to_compress"),
        (Fit::default().into(), "budget_too_small"),
    ]
}

/// A range that ends before it starts.
fn backwards<T>(make: impl FnOnce(Option<std::ops::Range<usize>>) -> T) -> T {
    make(Some(std::ops::Range { start: 3, end: 1 }))
}

#[test]
fn what_only_rust_can_ask_for_is_refused_without_a_trace() {
    let talk = worked();
    let before = fingerprint(&talk);
    for (request, code) in typed_requests() {
        let error = talk.apply(request.clone(), 50).expect_err(code);
        assert_eq!(error.code().as_str(), code, "{request:?}: {error}");
        assert_eq!(fingerprint(&talk), before, "{request:?}");
    }
    let codes = [fresh().apply(Undo, 1), fresh().apply(Redo, 1)]
        .map(|refused| refused.expect_err("there is nothing yet").code().as_str());
    assert_eq!(codes, ["nothing_to_undo", "nothing_to_redo"]);
}

#[test]
fn what_only_rust_can_question_is_refused() {
    let talk = worked();
    let asked = |query: Query| talk.ask(&query).map(drop);
    let beyond = (BatchIndex(usize::MAX), Version(u32::MAX), LogIndex(u32::MAX));
    let words = |word: &str| Some(vec![word.to_owned()]);
    let back = backwards(Option::unwrap_or_default);
    let answers = [
        (asked(Query { roles: Some(RoleSet::NONE), ..Query::default() }), "invalid_operation"),
        (asked(Query { contains: Some(Vec::new()), ..Query::default() }), "invalid_operation"),
        (asked(Query { excludes: words(""), ..Query::default() }), "invalid_operation"),
        (asked(Query { pick: Pick::Range(back.clone()), ..Query::default() }), "invalid_range"),
        (asked(Query { moment: Moment::Batch(beyond.0), ..Query::default() }), "batch_not_found"),
        (
            asked(Query { moment: Moment::Version(beyond.1), ..Query::default() }),
            "version_not_found",
        ),
        (talk.search("").map(drop), "invalid_operation"),
        (talk.recent_by_role(RoleSet::NONE, 1).map(drop), "invalid_operation"),
        (talk.range(back.clone()).map(drop), "invalid_range"),
        (talk.range_by_role(Role::User, back).map(drop), "invalid_range"),
        (talk.at(beyond.1).map(drop), "version_not_found"),
        (talk.diff(Version(0), beyond.1).map(drop), "version_not_found"),
        (talk.diff(beyond.1, Version(0)).map(drop), "version_not_found"),
        (talk.batch_view(beyond.0).map(drop), "batch_not_found"),
        (talk.snapshot(beyond.0).map(drop), "batch_not_found"),
        (talk.blame(beyond.2).map(drop), "index_out_of_range"),
        (Message::new(Role::User, "").map(drop), "empty_content"),
        (Message::from_json("{").map(drop), "invalid_json"),
        (Message::from_json("{}").map(drop), "invalid_message"),
        (Tool::list_from_json("[").map(drop), "invalid_json"),
        (Tool::list_from_json("{}").map(drop), "invalid_operation"),
        (Tool::list_from_json(r#"[{"name":"a"}]"#).map(drop), "invalid_operation"),
    ];
    for (number, (answer, code)) in answers.into_iter().enumerate() {
        let error = answer.expect_err(code);
        assert_eq!(error.code().as_str(), code, "{number}: {error}");
    }
}

#[test]
fn an_empty_label_is_refused_however_it_is_asked_for() {
    let talk = worked();
    let by_rust = talk.ask(&Query { mark: Some(String::new()), ..Query::default() });
    let by_json = Query::from_json(r#"{"mark":""}"#).and_then(|query| talk.ask(&query));
    let marked = talk.marked_by_role(Role::User, "");
    for answer in [by_rust, by_json, marked] {
        assert_eq!(answer.map_err(|error| error.code().as_str()), Err("invalid_operation"));
    }
}

#[test]
fn a_refused_request_does_not_end_redo() {
    let talk = worked();
    for (request, ..) in SHAPES.iter().chain(MISFITS) {
        send(&talk, request, 50).expect_err(request);
    }
    let (again, _) = send(&talk, r#"{"operation":"REDO"}"#, 51).expect("REDO is still possible");
    assert_eq!(view(&again), [0, 2, 3, 4, 5, 6]);
}

#[test]
fn every_code_of_the_engine_is_reached_by_a_request() {
    // The list of codes is read from where it is written, so that a new one cannot be forgotten.
    let source = include_str!("../../src/error.rs");
    let written: BTreeSet<&str> = source
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Code::")?.split_once(" => \""))
        .filter_map(|(_, code)| code.strip_suffix("\","))
        // Only a saved conversation that is damaged gives this one; `saved` tests it.
        .filter(|&code| code != "storage")
        .collect();
    let tables = SHAPES.iter().chain(MISFITS).chain(ON_NOTHING);
    let mut reached: BTreeSet<&str> = tables.map(|&(_, code, ..)| code).collect();
    reached.insert("too_large");
    assert_eq!(reached, written);
    assert_eq!(reached.len(), 16, "the contract names sixteen codes that an engine can give");
}
