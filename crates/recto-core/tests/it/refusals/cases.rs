//! Tables of requests that are refused.

use crate::conversations::append;

/// A request, the code of its error, the field of the error (or `""`), and words of its message.
pub(super) type Case<'a> = (&'a str, &'a str, &'a str, &'a [&'a str]);

/// Malformed requests to [`worked`].
pub(super) const SHAPES: &[Case<'_>] = &[
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
    (
        r#"{"ops":[{"operation":"UNDO"}]}"#,
        "invalid_operation",
        "ops[0]",
        &["UNDO must be the only operation"],
    ),
    (
        r#"{"ops":[{"operation":"CLEAR"},{"operation":"REDO"}]}"#,
        "invalid_operation",
        "ops[1]",
        &["REDO must be the only operation"],
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
    // Fields of single operations.
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
        &["keepOthers needs role"],
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
    (r#"{"operation":"MARK","indices":[0],"mark":""}"#, "invalid_operation", "mark", &["must"]),
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
        r#"{"operation":"batch_end","indices":[0],"batch":1}"#,
        "invalid_operation",
        "batch",
        &["different batches"],
    ),
    (r#"{"operation":"delete","indices":[0],"batch":1}"#, "invalid_operation", "batch", &["batch"]),
    (
        r#"{"operation":"BATCH_START","withTools":"yes"}"#,
        "invalid_operation",
        "withTools",
        &["true or false"],
    ),
    (r#"{"operation":"BATCH_START","batch":1}"#, "invalid_operation", "batch", &["no field"]),
    (
        r#"{"operation":"TRUNCATE","keepLast":1,"filter":null}"#,
        "invalid_operation",
        "filter",
        &["no field"],
    ),
    (
        r#"{"operation":"truncate","truncate":{"keepLast":1},"nope":null}"#,
        "invalid_operation",
        "nope",
        &["no field"],
    ),
    (r#"{"operation":"ARRANGE"}"#, "invalid_operation", "indices", &["needs the field indices"]),
    (
        r#"{"operation":"ARRANGE","indices":[-1]}"#,
        "invalid_operation",
        "indices",
        &["whole number"],
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
        &["a text part needs the field text"],
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

/// Well-formed requests that [`worked`] refuses.
pub(super) const MISFITS: &[Case<'_>] = &[
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
        &["no entry at position 5", "use 0 to 4"],
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
        r#"{"operation":"ARRANGE","indices":[0,7]}"#,
        "index_out_of_range",
        "indices",
        &["use 0 to 6"],
    ),
    (r#"{"operation":"ARRANGE","indices":[]}"#, "pinned", "indices", &["UNMARK"]),
    (
        r#"{"operation":"batch_start","indices":[99],"batch":1}"#,
        "invalid_operation",
        "batch",
        &["number 3, not 1"],
    ),
    (
        r#"{"operation":"FIT","maxTokens":9}"#,
        "budget_too_small",
        "maxTokens",
        &["fits into 9 tokens", "set maxTokens to 14 or more"],
    ),
    // Errors about the older forms use the names of the contract.
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
    // Existence is checked before visibility, and visibility before pins.
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
    // The shape of all operations of a list is checked before any of them is applied.
    (
        r#"{"ops":[{"operation":"DELETE","indices":[99]},{"operation":"APPEND","messages":[{"role":"user","content":""}]}]}"#,
        "empty_content",
        "ops[1].messages[0].content",
        &["user"],
    ),
];

/// Requests that an empty conversation refuses.
pub(super) const ON_NOTHING: &[Case<'_>] = &[
    (r#"{"operation":"UNDO"}"#, "nothing_to_undo", "", &["no request left to undo"]),
    (r#"{"operation":"REDO"}"#, "nothing_to_redo", "", &["REDO must follow UNDO"]),
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
pub(super) const QUESTIONS: &[Case<'_>] = &[
    ("{", "invalid_json", "", &["not JSON"]),
    ("[]", "invalid_operation", "", &["a query is an object, not a list"]),
    (r#"{"contain":"x"}"#, "invalid_operation", "contain", &["did you mean contains?"]),
    (r#"{"role":"user","roles":["user"]}"#, "invalid_operation", "roles", &["exclude each other"]),
    (r#"{"first":1,"last":1}"#, "invalid_operation", "last", &["first and last exclude"]),
    (r#"{"batchIndex":0,"version":0}"#, "invalid_operation", "version", &["exclude each other"]),
    (r#"{"roles":[]}"#, "invalid_operation", "roles", &["at least one role"]),
    (r#"{"contains":""}"#, "invalid_operation", "contains", &["not empty"]),
    (r#"{"excludes":["a",""]}"#, "invalid_operation", "excludes", &["not empty"]),
    (r#"{"mark":""}"#, "invalid_operation", "mark", &["at least 1 character"]),
    (r#"{"from":-1}"#, "invalid_operation", "from", &["from 0"]),
    (r#"{"scope":"hidden"}"#, "invalid_operation", "scope", &["visible"]),
    (r#"{"range":{"start":2,"end":1}}"#, "invalid_range", "range", &["start must not be above"]),
    (r#"{"batchIndex":3}"#, "batch_not_found", "batchIndex", &["use 0 to 2"]),
    (r#"{"version":7}"#, "version_not_found", "version", &["use 0 to 6"]),
];

/// Requests over the default limits. They are generated because they are large.
pub(super) fn oversized() -> Vec<(String, &'static str, &'static [&'static str])> {
    let wordy = format!(r#"{{"role":"user","content":"{}"}}"#, "x".repeat(32 << 20));
    let deep =
        format!(r#"{{"role":"user","content":"x","y":{}{}}}"#, "[".repeat(64), "]".repeat(64));
    let one = |message: &str| format!(r#"{{"operation":"APPEND","messages":[{message}]}}"#);
    let half = append(5_001);
    vec![
        (
            one(&wordy),
            "messages[0]",
            &["size in bytes", "33554432", "split it, or raise the limit"],
        ),
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
