//! Hostile messages and requests, and the verdict on each: the same bytes back, or a typed error.
//! The list is the contract's corpus for the engine; other surfaces may run it too.

use recto_core::{
    Conversation, Error, LogIndex, Message, Query, Request, Restore, Rollback, Version,
};

use crate::driver::fingerprint;
use crate::talk::{after, fresh, send};

/// What is said of an accepted input; anything else is the code of the error.
const KEPT: &str = "kept";

/// Messages and what becomes of each.
const MESSAGES: &[(&str, &str)] = &[
    // The plainest, and space around and inside.
    (r#"{"role":"user","content":"x"}"#, KEPT),
    (" \t\r\n{\"role\":\"user\",\"content\":\"x\"} \r\n", KEPT),
    (
        "{ \"role\" :\t\"user\" ,\n\"content\" : [ { \"type\" : \"text\" , \"text\" : \"x\" } ] }",
        KEPT,
    ),
    ("\u{a0}{\"role\":\"user\",\"content\":\"x\"}", "invalid_json"),
    ("\u{c}{\"role\":\"user\",\"content\":\"x\"}", "invalid_json"),
    ("\u{feff}{\"role\":\"user\",\"content\":\"x\"}", "invalid_json"),
    ("", "invalid_json"),
    (" \n ", "invalid_json"),
    // No message at all.
    ("null", "invalid_message"),
    ("true", "invalid_message"),
    ("-0", "invalid_message"),
    ("1e400", "invalid_message"),
    (r#""user: x""#, "invalid_message"),
    ("[]", "invalid_message"),
    (r#"[{"role":"user","content":"x"}]"#, "invalid_message"),
    ("{}", "invalid_message"),
    // What JSON is not.
    (r#"{"role":"user","content":"x""#, "invalid_json"),
    (r#"{"role":"user","content":"x"}}"#, "invalid_json"),
    (r#"{"role":"user","content":"x"} {}"#, "invalid_json"),
    (r#"{"role":"user","content":"x",}"#, "invalid_json"),
    (r#"{"role":"user" "content":"x"}"#, "invalid_json"),
    (r#"{"role":"user","content":["x",]}"#, "invalid_json"),
    (r#"{'role':'user','content':'x'}"#, "invalid_json"),
    (r#"{role:"user",content:"x"}"#, "invalid_json"),
    (r#"{"role":"user","content":"x"/**/}"#, "invalid_json"),
    (r#"{"role":"user","content":"x" // no"#, "invalid_json"),
    (r#"{"role":"user","content":x}"#, "invalid_json"),
    (r#"{"role":"user","content":undefined}"#, "invalid_json"),
    (r#"{"role":"user","content":"x","a":NaN}"#, "invalid_json"),
    (r#"{"role":"user","content":"x","a":Infinity}"#, "invalid_json"),
    (r#"{"role":"user","content":"x","a":-Infinity}"#, "invalid_json"),
    (r#"{"role":"user","content":"x","a":01}"#, "invalid_json"),
    (r#"{"role":"user","content":"x","a":+1}"#, "invalid_json"),
    (r#"{"role":"user","content":"x","a":.5}"#, "invalid_json"),
    (r#"{"role":"user","content":"x","a":1.}"#, "invalid_json"),
    (r#"{"role":"user","content":"x","a":1e}"#, "invalid_json"),
    (r#"{"role":"user","content":"x","a":0x10}"#, "invalid_json"),
    (r#"{"role":"user","content":"x","a":1_000}"#, "invalid_json"),
    (r#"{"role":"user","content":"x","a":-}"#, "invalid_json"),
    (r#"{"role":"user","content":"x","a":tru}"#, "invalid_json"),
    (r#"{"role":"user","content":"x",1:2}"#, "invalid_json"),
    // Control characters must be escaped.
    ("{\"role\":\"user\",\"content\":\"a\u{0}b\"}", "invalid_json"),
    ("{\"role\":\"user\",\"content\":\"a\u{1b}[31mb\"}", "invalid_json"),
    ("{\"role\":\"user\",\"content\":\"a\nb\"}", "invalid_json"),
    ("{\"role\":\"user\",\"content\":\"a\tb\"}", "invalid_json"),
    ("{\"role\":\"user\",\u{0}\"content\":\"a\"}", "invalid_json"),
    ("{\"role\":\"user\",\"content\":\"a\"}\u{0}", "invalid_json"),
    (r#"{"role":"user","content":"a\u0000b"}"#, KEPT),
    (r#"{"role":"user","content":"\u0000"}"#, KEPT),
    (r#"{"role":"user","content":"\u001b[31mred\u001b[0m\u0007"}"#, KEPT),
    (r#"{"role":"user","content":"\b\f\n\r\t\"\\\/"}"#, KEPT),
    ("{\"role\":\"user\",\"content\":\"\u{7f}\u{80}\u{9b}31m\"}", KEPT),
    // Escapes.
    (r#"{"role":"user","content":"\u0041\u00e9\u4e2d"}"#, KEPT),
    (r#"{"role":"user","content":"\u00E9 \uD83D\uDE00"}"#, KEPT),
    (r#"{"role":"user","content":"\x41"}"#, "invalid_json"),
    (r#"{"role":"user","content":"\u41"}"#, "invalid_json"),
    (r#"{"role":"user","content":"\u{41}"}"#, "invalid_json"),
    (r#"{"role":"user","content":"\U00000041"}"#, "invalid_json"),
    (r#"{"role":"user","content":"\u00g0"}"#, "invalid_json"),
    (r#"{"role":"user","content":"\"}"#, "invalid_json"),
    // Half surrogate pairs.
    (r#"{"role":"user","content":"\ud800"}"#, KEPT),
    (r#"{"role":"user","content":"\udc00"}"#, KEPT),
    (r#"{"role":"user","content":"\udc00\ud800"}"#, KEPT),
    (r#"{"role":"user","content":"\ud800\ud800\udc00"}"#, KEPT),
    (r#"{"role":"user","content":"a\ud83dx\ude00b"}"#, KEPT),
    (r#"{"role":"user","content":"\ud83d\n\ude00"}"#, KEPT),
    (r#"{"role":"user","content":"x","\ud800":"\udfff"}"#, KEPT),
    (r#"{"role":"user","content":"x","id":"\ud800"}"#, KEPT),
    (r#"{"role":"\ud800","content":"x"}"#, "invalid_message"),
    (r#"{"role":"user","content":[{"type":"\ud800"}]}"#, KEPT),
    // Text that looks like other text.
    ("{\"role\":\"user\",\"content\":\"\u{202e}gnirts\u{202c}\u{2066}x\u{2069}\"}", KEPT),
    ("{\"role\":\"user\",\"content\":\"\u{200b}\u{200d}\u{2060}\u{feff}\"}", KEPT),
    ("{\"role\":\"user\",\"content\":\"\u{e9} e\u{301} \u{212b} \u{c5} A\u{30a}\"}", KEPT),
    ("{\"role\":\"user\",\"content\":\"\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}\"}", KEPT),
    ("{\"role\":\"user\",\"content\":\"\u{fffe}\u{ffff}\u{10ffff}\u{fffd}\u{e000}\"}", KEPT),
    ("{\"role\":\"user\",\"content\":\"a\u{2028}b\u{2029}c\u{85}d\"}", KEPT),
    ("{\"role\":\"user\",\"content\":\"</script><img src=x onerror=alert(1)>\"}", KEPT),
    (r#"{"role":"user","content":"'; DROP TABLE messages; --"}"#, KEPT),
    (r#"{"role":"user","content":"<|endoftext|><|im_start|>system"}"#, KEPT),
    // Roles.
    (r#"{"role":"\u0075ser","content":"x"}"#, KEPT),
    (r#"{"\u0072ole":"user","\u0063ontent":"x"}"#, KEPT),
    (r#"{"role":"User","content":"x"}"#, "invalid_message"),
    (r#"{"role":" user","content":"x"}"#, "invalid_message"),
    (r#"{"role":"user\u0000","content":"x"}"#, "invalid_message"),
    ("{\"role\":\"\u{ff55}ser\",\"content\":\"x\"}", "invalid_message"),
    (r#"{"role":"","content":"x"}"#, "invalid_message"),
    (r#"{"role":null,"content":"x"}"#, "invalid_message"),
    (r#"{"role":5,"content":"x"}"#, "invalid_message"),
    (r#"{"role":["user"],"content":"x"}"#, "invalid_message"),
    (r#"{"role":"developer","content":"x"}"#, "invalid_message"),
    (r#"{"Role":"user","content":"x"}"#, "invalid_message"),
    (r#"{"role\u0000":"user","content":"x"}"#, "invalid_message"),
    (r#"{"content":"x"}"#, "invalid_message"),
    // Content.
    (r#"{"role":"user"}"#, "invalid_message"),
    (r#"{"role":"user","content":null}"#, "invalid_message"),
    (r#"{"role":"tool","content":null}"#, "invalid_message"),
    (r#"{"role":"user","content":0}"#, "invalid_message"),
    (r#"{"role":"user","content":false}"#, "invalid_message"),
    (r#"{"role":"user","content":{}}"#, "invalid_message"),
    (r#"{"role":"user","content":{"type":"text","text":"x"}}"#, "invalid_message"),
    (r#"{"role":"user","content":""}"#, "empty_content"),
    (r#"{"role":"system","content":""}"#, "empty_content"),
    (r#"{"role":"assistant","content":[]}"#, "empty_content"),
    (r#"{"role":"user","content":[ ]}"#, "empty_content"),
    (r#"{"role":"tool","content":""}"#, KEPT),
    (r#"{"role":"tool","content":[ ]}"#, KEPT),
    (r#"{"role":"user","content":" "}"#, KEPT),
    (r#"{"role":"user","content":"\n"}"#, KEPT),
    // Duplicate keys: the last one counts, all come back.
    (r#"{"role":"robot","role":"user","content":"x"}"#, KEPT),
    (r#"{"role":"user","role":"robot","content":"x"}"#, "invalid_message"),
    (r#"{"role":"user","content":"","content":"x"}"#, KEPT),
    (r#"{"role":"user","content":"x","content":""}"#, "empty_content"),
    (r#"{"role":"user","content":"x","content":null}"#, "invalid_message"),
    (r#"{"role":"user","content":"x","\u0063ontent":"y"}"#, KEPT),
    (r#"{"role":"user","content":"x","a":1,"a":2,"a":1}"#, KEPT),
    (r#"{"role":"user","content":[{"type":"text","text":5,"text":"x"}]}"#, KEPT),
    (r#"{"role":"user","content":[{"type":"text","type":"hologram"}]}"#, KEPT),
    // Unknown fields, and numbers that floats cannot hold.
    (r#"{"role":"user","content":"x","b":1,"a":2}"#, KEPT),
    (r#"{"role":"user","content":"x","":""}"#, KEPT),
    (r#"{"role":"user","content":"x","__proto__":{"polluted":true}}"#, KEPT),
    (r#"{"role":"user","content":"x","$serde_json::private::RawValue":"]"}"#, KEPT),
    (r#"{"role":"user","content":"x","metadata":null}"#, KEPT),
    (r#"{"role":"user","content":"x","metadata":[1,"a",{}]}"#, KEPT),
    (r#"{"role":"user","content":"x","a":123456789012345678901234567890}"#, KEPT),
    (r#"{"role":"user","content":"x","a":-123456789012345678901234567890}"#, KEPT),
    (r#"{"role":"user","content":"x","a":[1e400,-1e400,1e-400]}"#, KEPT),
    (r#"{"role":"user","content":"x","a":[-0,-0.0,0e0,1E+2,1.50,100e-2]}"#, KEPT),
    (r#"{"role":"user","content":"x","a":0.1000000000000000055511151231257827}"#, KEPT),
    // The optional fields.
    (r#"{"role":"user","content":"x","id":""}"#, KEPT),
    (r#"{"role":"user","content":"x","id":null,"name":null,"timestamp":null}"#, KEPT),
    (r#"{"role":"user","content":"x","id":5}"#, "invalid_message"),
    (r#"{"role":"user","content":"x","id":"a","id":["a"]}"#, "invalid_message"),
    (r#"{"role":"user","content":"x","name":{}}"#, "invalid_message"),
    (r#"{"role":"user","content":"x","timestamp":-1}"#, KEPT),
    (r#"{"role":"user","content":"x","timestamp":9223372036854775807}"#, KEPT),
    (r#"{"role":"user","content":"x","timestamp":9223372036854775808}"#, "invalid_message"),
    (r#"{"role":"user","content":"x","timestamp":1.0}"#, "invalid_message"),
    (r#"{"role":"user","content":"x","timestamp":1e3}"#, "invalid_message"),
    (r#"{"role":"user","content":"x","timestamp":"2026-01-01"}"#, "invalid_message"),
    (r#"{"role":"user","content":"x","timestamp":true}"#, "invalid_message"),
    (r#"{"role":"user","content":"","timestamp":"noon"}"#, "invalid_message"),
    // Parts.
    (r#"{"role":"user","content":["x"]}"#, "invalid_message"),
    (r#"{"role":"user","content":[null]}"#, "invalid_message"),
    (r#"{"role":"user","content":[[]]}"#, "invalid_message"),
    (r#"{"role":"user","content":[{}]}"#, "invalid_message"),
    (r#"{"role":"user","content":[{"type":null}]}"#, "invalid_message"),
    (r#"{"role":"user","content":[{"type":["text"],"text":"x"}]}"#, "invalid_message"),
    (r#"{"role":"user","content":[{"type":""}]}"#, KEPT),
    (r#"{"role":"user","content":[{"type":"TEXT"}]}"#, KEPT),
    (r#"{"role":"user","content":[{"type":"text "}]}"#, KEPT),
    (r#"{"role":"user","content":[{"type":"\u0074ext"}]}"#, "invalid_message"),
    (r#"{"role":"user","content":[{"type":"\u0074ext","\u0074ext":"\u0078"}]}"#, KEPT),
    (r#"{"role":"user","content":[{"type":"text"}]}"#, "invalid_message"),
    (r#"{"role":"user","content":[{"type":"text","text":null}]}"#, "invalid_message"),
    (r#"{"role":"user","content":[{"type":"text","text":["x"]}]}"#, "invalid_message"),
    (r#"{"role":"user","content":[{"type":"text","text":""}]}"#, KEPT),
    (
        r#"{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"\ud83d"},{"type":"text","text":"\ude00"}]}"#,
        KEPT,
    ),
    (
        r#"{"role":"user","content":[{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}]}"#,
        KEPT,
    ),
    (r#"{"role":"user","content":[{"type":"image"},{"type":"audio"},{"type":"file"}]}"#, KEPT),
    (r#"{"role":"user","content":[{"type":"image","source":{"data":"AA=="},"text":5}]}"#, KEPT),
    (r#"{"role":"assistant","content":[{"type":"redacted_thinking","data":"c2VjcmV0"}]}"#, KEPT),
    (
        r#"{"role":"assistant","content":[{"type":"thinking","text":"t","signature":"\u0041+/="}]}"#,
        KEPT,
    ),
    (r#"{"role":"assistant","content":[{"type":"thinking","text":"","signature":null}]}"#, KEPT),
    (r#"{"role":"assistant","content":[{"type":"thinking","signature":"s"}]}"#, "invalid_message"),
    (
        r#"{"role":"assistant","content":[{"type":"thinking","text":"t","signature":5}]}"#,
        "invalid_message",
    ),
    // Tool calls.
    (
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}}]}"#,
        KEPT,
    ),
    (
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"","name":"","input":null}]}"#,
        KEPT,
    ),
    (
        r#"{"role":"user","content":[{"type":"tool_use","id":"c","name":"f","input":"plain \u0022"}]}"#,
        KEPT,
    ),
    (
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":[ 1e400 , -0 , 123456789012345678901234567890 ]}]}"#,
        KEPT,
    ),
    (
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{ "a" : 1 , "a" : 2 , "\u0061" : "\ud800" }}]}"#,
        KEPT,
    ),
    (
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"\u0063","name":"\ud800\u0000","input":{"k \" [":"]}"}}]}"#,
        KEPT,
    ),
    (
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f"}]}"#,
        "invalid_message",
    ),
    (
        r#"{"role":"assistant","content":[{"type":"tool_use","id":null,"name":"f","input":{}}]}"#,
        "invalid_message",
    ),
    (
        r#"{"role":"assistant","content":[{"type":"tool_use","id":7,"name":"f","input":{}}]}"#,
        "invalid_message",
    ),
    (
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"c","input":{}}]}"#,
        "invalid_message",
    ),
    (
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}},{"type":"tool_use","id":"c","name":"f","input":{}}]}"#,
        KEPT,
    ),
    // Tool results.
    (r#"{"role":"tool","content":[{"type":"tool_result","tool_use_id":"c"}]}"#, KEPT),
    (
        r#"{"role":"tool","content":[{"type":"tool_result","tool_use_id":"c","content":null,"is_error":null}]}"#,
        KEPT,
    ),
    (
        r#"{"role":"tool","content":[{"type":"tool_result","tool_use_id":"c","content":"","is_error":true}]}"#,
        KEPT,
    ),
    (r#"{"role":"tool","content":[{"type":"tool_result","tool_use_id":"c","content":[]}]}"#, KEPT),
    (
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"a"},{"type":"image"},{"type":"hologram"},{"type":"text","text":"b"}]}]}"#,
        KEPT,
    ),
    (
        r#"{"role":"tool","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"tool_result","tool_use_id":"d","content":[{"type":"tool_use","id":"e","name":"f","input":1}]}]}]}"#,
        KEPT,
    ),
    (r#"{"role":"tool","content":[{"type":"tool_result","content":"x"}]}"#, "invalid_message"),
    (r#"{"role":"tool","content":[{"type":"tool_result","tool_use_id":null}]}"#, "invalid_message"),
    (
        r#"{"role":"tool","content":[{"type":"tool_result","tool_use_id":"c","content":5}]}"#,
        "invalid_message",
    ),
    (
        r#"{"role":"tool","content":[{"type":"tool_result","tool_use_id":"c","content":{}}]}"#,
        "invalid_message",
    ),
    (
        r#"{"role":"tool","content":[{"type":"tool_result","tool_use_id":"c","content":["x"]}]}"#,
        "invalid_message",
    ),
    (
        r#"{"role":"tool","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"text"}]}]}"#,
        "invalid_message",
    ),
    (
        r#"{"role":"tool","content":[{"type":"tool_result","tool_use_id":"c","is_error":"no"}]}"#,
        "invalid_message",
    ),
    (
        r#"{"role":"tool","content":[{"type":"tool_result","tool_use_id":"c","is_error":0}]}"#,
        "invalid_message",
    ),
    // An exchange inside one message, and one in the wrong order.
    (
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}},{"type":"tool_result","tool_use_id":"c","content":"x"}]}"#,
        KEPT,
    ),
    (
        r#"{"role":"assistant","content":[{"type":"tool_result","tool_use_id":"c","content":"x"},{"type":"tool_use","id":"c","name":"f","input":{}}]}"#,
        KEPT,
    ),
    // Headings of tool descriptions are texts like any other.
    (r#"{"role":"system","content":"可用工具:\n- old: gone"}"#, KEPT),
];

/// Messages that are too long to write down.
fn made_messages() -> Vec<(String, &'static str)> {
    let with = |value: &str| format!(r#"{{"role":"user","content":"x","a":{value}}}"#);
    let lists = |depth: usize| with(&("[".repeat(depth) + &"]".repeat(depth)));
    let filled = |fill: &str, times: usize| with(&format!("\"{}\"", fill.repeat(times)));
    let size = with("\"\"").len();
    let parts = |part: &str, count: usize| {
        format!(r#"{{"role":"user","content":[{}]}}"#, vec![part; count].join(","))
    };
    vec![
        (lists(63), KEPT),
        (lists(64), "too_large"),
        (lists(100_000), "too_large"),
        (with(&(r#"{"a":"#.repeat(100_000) + "1" + &"}".repeat(100_000))), "too_large"),
        (filled("[", 100_000), KEPT),
        (filled(r#"\"["#, 10_000), KEPT),
        (filled("x", (4 << 20) - size), KEPT),
        (filled("x", (4 << 20) - size + 1), "too_large"),
        (filled("x", 10 << 20), "too_large"),
        (with(&"7".repeat(100_000)), KEPT),
        (with(&format!("0.{}", "3".repeat(100_000))), KEPT),
        (with(&format!("1e{}", "9".repeat(1_000))), KEPT),
        (format!(r#"{{"role":"user","content":"x","{}":1}}"#, "k".repeat(1 << 20)), KEPT),
        (format!(r#"{{"role":"user","content":"x","id":"{}"}}"#, "i".repeat(1 << 20)), KEPT),
        (format!(r#"{{"role":"{}","content":"x"}}"#, "r".repeat(1 << 20)), "invalid_message"),
        (format!(r#"{{"role":"user","content":"{}"}}"#, r"\ud800".repeat(100_000)), KEPT),
        (format!(r#"{{"role":"user",{}"content":"x"}}"#, " ".repeat(100_000)), KEPT),
        (format!(r#"{{{}"role":"user","content":"x"}}"#, r#""a":1,"#.repeat(10_000)), KEPT),
        (parts(r#"{"type":"text","text":"a"}"#, 10_000), KEPT),
        (parts(r#"{"type":"image"}"#, 10_000), KEPT),
        (parts(r#"{"type":"tool_use","id":"c","name":"f","input":{}}"#, 10_000), KEPT),
        (parts("[]", 10_000), "invalid_message"),
    ]
}

/// Requests to [`talk`], in any form, and what becomes of each.
const REQUESTS: &[(&str, &str)] = &[
    (r#"{"operation":"CLEAR"}"#, KEPT),
    (" \n{\"operation\":\"CLEAR\"}\t", KEPT),
    (r#"{"\u006fperation":"\u0043LEAR"}"#, KEPT),
    (r#"{"operation":"NOPE","operation":"CLEAR"}"#, KEPT),
    (r#"{"operation":"CLEAR","operation":"NOPE"}"#, "invalid_operation"),
    (r#"{"operation":"CLEAR","operation":null}"#, "invalid_operation"),
    (r#"{"operation":"CLEAR\u0000"}"#, "invalid_operation"),
    (r#"{"operation":"\ud800"}"#, "invalid_operation"),
    (r#"{"operation":" CLEAR"}"#, "invalid_operation"),
    (r#"{"operation":"Clear"}"#, "invalid_operation"),
    (r#"{"operation":["CLEAR"]}"#, "invalid_operation"),
    (r#"{"operation":""}"#, "invalid_operation"),
    (r#"{"OPERATION":"CLEAR"}"#, "invalid_operation"),
    (r#"{"operation":"CLEAR","":1}"#, "invalid_operation"),
    (r#"{"operation":"CLEAR","__proto__":{}}"#, "invalid_operation"),
    (r#"{"operation":"CLEAR"};"#, "invalid_json"),
    (r#"{"operation":"CLEAR"}{"operation":"UNDO"}"#, "invalid_json"),
    ("\u{feff}{\"operation\":\"CLEAR\"}", "invalid_json"),
    ("{\"operation\":\"CLEAR\u{0}\"}", "invalid_json"),
    // One operation, a list, or neither.
    (r#"{"op":{"operation":"CLEAR"}}"#, KEPT),
    (r#"{"ops":[{"operation":"CLEAR"},{"op":{"operation":"CLEAR"}}]}"#, "invalid_operation"),
    (r#"{"op":{"operation":"CLEAR"},"ops":[{"operation":"CLEAR"}]}"#, "invalid_operation"),
    (r#"{"operation":"CLEAR","op":{"operation":"CLEAR"}}"#, "invalid_operation"),
    (r#"{"ops":null}"#, "invalid_operation"),
    (r#"{"ops":[null]}"#, "invalid_operation"),
    (r#"{"ops":[[{"operation":"CLEAR"}]]}"#, "invalid_operation"),
    (r#"{"ops":"CLEAR"}"#, "invalid_operation"),
    (r#"[{"operation":"CLEAR"}]"#, "invalid_operation"),
    // Numbers.
    (r#"{"operation":"TRUNCATE","keepLast":123456789012345678901234567890}"#, KEPT),
    (r#"{"operation":"TRUNCATE","keepLast":1e400}"#, "invalid_operation"),
    (r#"{"operation":"TRUNCATE","keepLast":1e0}"#, "invalid_operation"),
    (r#"{"operation":"TRUNCATE","keepLast":-0}"#, "invalid_operation"),
    (r#"{"operation":"TRUNCATE","keepLast":0.0}"#, "invalid_operation"),
    (r#"{"operation":"TRUNCATE","keepLast":true}"#, "invalid_operation"),
    (r#"{"operation":"TRUNCATE","keepLast":null,"keepFirst":1}"#, KEPT),
    (r#"{"operation":"TRUNCATE","keepLast":null}"#, "invalid_operation"),
    (r#"{"operation":"TRUNCATE","keepLast":"x","keepLast":1}"#, KEPT),
    ("{\"operation\":\"TRUNCATE\",\"keepLast\u{200b}\":1}", "invalid_operation"),
    ("{\"operation\":\"TRUNCATE\",\"keepL\u{430}st\":1}", "invalid_operation"),
    (r#"{"operation":"TRUNCATE","keepL\u0061st":1}"#, KEPT),
    (r#"{"operation":"TRUNCATE","range":{"start":9,"start":0,"end":1}}"#, KEPT),
    (r#"{"operation":"TRUNCATE","range":{"start":0,"end":null}}"#, "invalid_operation"),
    (r#"{"operation":"TRUNCATE","range":{"start":1,"end":0}}"#, "invalid_range"),
    (r#"{"operation":"TRUNCATE","range":null,"role":"\u0075ser"}"#, KEPT),
    (r#"{"operation":"DELETE","indices":[0,0,0]}"#, KEPT),
    (r#"{"operation":"DELETE","indices":[0,null]}"#, "invalid_operation"),
    (r#"{"operation":"DELETE","indices":[[0]]}"#, "invalid_operation"),
    (r#"{"operation":"DELETE","indices":"0"}"#, "invalid_operation"),
    (r#"{"operation":"DELETE","indices":{"0":0}}"#, "invalid_operation"),
    (r#"{"operation":"DELETE","indices":0}"#, "invalid_operation"),
    (
        r#"{"operation":"DELETE","indices":[0,123456789012345678901234567890]}"#,
        "index_out_of_range",
    ),
    // Texts.
    (r#"{"operation":"CLEAR","description":"\u001b[2J\u202e\u0000\ud800"}"#, KEPT),
    (r#"{"operation":"CLEAR","description":null}"#, KEPT),
    (r#"{"operation":"CLEAR","description":""}"#, KEPT),
    (r#"{"operation":"CLEAR","description":["why"]}"#, "invalid_operation"),
    (r#"{"operation":"MARK","indices":[0],"mark":"\u0000"}"#, KEPT),
    (r#"{"operation":"MARK","indices":[0],"mark":"\ud800"}"#, KEPT),
    (r#"{"operation":"MARK","indices":[0],"mark":" "}"#, KEPT),
    (r#"{"operation":"MARK","indices":[0],"mark":"p\u0069nned"}"#, KEPT),
    (r#"{"operation":"MARK","indices":[0],"mark":null}"#, "invalid_operation"),
    (r#"{"operation":"MARK","indices":[0],"mark":["a"]}"#, "invalid_operation"),
    (r#"{"operation":"FILTER","contentContains":["\u0000","\ud800","\n"]}"#, KEPT),
    (r#"{"operation":"FILTER","contentContains":[null]}"#, "invalid_operation"),
    (r#"{"operation":"FILTER","contentContains":[["x"]]}"#, "invalid_operation"),
    (r#"{"operation":"FILTER","roles":["user","user"]}"#, KEPT),
    (r#"{"operation":"FILTER","roles":["user","robot"]}"#, "invalid_operation"),
    (r#"{"operation":"CLEAR","scope":"all\u0000"}"#, "invalid_operation"),
    (r#"{"operation":"CLEAR","scope":"\u0061ll"}"#, KEPT),
    (r#"{"operation":"CLEAR","scope":null,"keepSystemMessage":null}"#, KEPT),
    (r#"{"operation":"CLEAR","keepSystemMessage":"true"}"#, "invalid_operation"),
    (r#"{"operation":"BATCH_END","targetBatchIndex":0,"carry":"\u0061ll"}"#, KEPT),
    (r#"{"operation":"BATCH_END","targetBatchIndex":0,"carry":null}"#, KEPT),
    (r#"{"operation":"BATCH_END","targetBatchIndex":0,"carry":{"all":true}}"#, "invalid_operation"),
    (r#"{"operation":"ROLLBACK","targetBatchIndex":0,"targetVersion":null}"#, KEPT),
    // The older forms.
    (r#"{"operation":"clear"}"#, KEPT),
    (r#"{"operation":"clear","clear":null}"#, KEPT),
    (r#"{"operation":"clear","clear":[]}"#, "invalid_operation"),
    (r#"{"operation":"\u0063lear","\u0063lear":{}}"#, KEPT),
    (r#"{"operation":"truncate","filter":{"roles":["user"]}}"#, "invalid_operation"),
    (
        r#"{"operation":"insert","insert":{"position":-1.0,"messages":[{"role":"user","content":"x"}]}}"#,
        "invalid_operation",
    ),
    (
        r#"{"operation":"insert","insert":{"position":-1,"messages":[{"role":"user","content":"x"}]}}"#,
        KEPT,
    ),
    (r#"{"operation":"insert","indices":[],"data":{"role":"user","content":"x","a":1e400}}"#, KEPT),
    (
        r#"{"operation":"insert","indices":null,"data":{"role":"user","content":"x"}}"#,
        "invalid_operation",
    ),
    (r#"{"operation":"insert","indices":[],"data":null}"#, "invalid_operation"),
    (r#"{"operation":"insert","indices":[],"data":[null]}"#, "invalid_message"),
    (r#"{"operation":"insert","indices":[],"data":"x"}"#, "invalid_message"),
];

/// Queries to [`talk`], and what becomes of each.
const QUERIES: &[(&str, &str)] = &[
    ("{}", KEPT),
    ("null", "invalid_operation"),
    ("\u{feff}{}", "invalid_json"),
    (r#"{"contains":"\u0000"}"#, KEPT),
    (r#"{"contains":["\ud800","\udc00"]}"#, KEPT),
    (r#"{"contains":{}}"#, "invalid_operation"),
    (r#"{"role":"\u0075ser"}"#, KEPT),
    (r#"{"role":"user","role":"tool"}"#, KEPT),
    (r#"{"role":"USER"}"#, "invalid_operation"),
    (r#"{"last":123456789012345678901234567890}"#, KEPT),
    (r#"{"last":1e400}"#, "invalid_operation"),
    (r#"{"last":-0}"#, "invalid_operation"),
    (r#"{"from":1e3}"#, "invalid_operation"),
    (r#"{"from":5,"to":1}"#, KEPT),
    (r#"{"mark":"\u0000"}"#, KEPT),
    (r#"{"first":null,"last":1}"#, KEPT),
    (r#"{"__proto__":1}"#, "invalid_operation"),
];

/// A short conversation that the requests and queries meet.
fn talk() -> Conversation {
    after(
        fresh(),
        &[
            r#"{"operation":"APPEND","messages":[
                {"role":"system","content":"be brief"},
                {"role":"user","content":"a\u0000\ud800"},
                {"role":"user","content":"b"}]}"#,
            r#"{"operation":"BATCH_START"}"#,
        ],
    )
}

fn verdict<T>(result: &Result<T, Error>) -> &'static str {
    match result {
        Ok(_) => KEPT,
        Err(error) => error.code().as_str(),
    }
}

/// The start of an input, for messages to people.
fn name(input: &str) -> String {
    input.chars().take(120).collect()
}

fn without_space_around(json: &str) -> &str {
    json.trim_matches([' ', '\t', '\r', '\n'])
}

#[test]
fn the_corpus_is_long_enough() {
    let count = MESSAGES.len() + made_messages().len() + REQUESTS.len() + QUERIES.len();
    assert!(count >= 300, "{count}");
}

#[test]
fn a_hostile_message_comes_back_byte_for_byte_or_is_refused() {
    for &(json, expected) in MESSAGES {
        meet(json, expected);
    }
}

#[test]
fn a_hostile_message_of_any_length_comes_back_byte_for_byte_or_is_refused() {
    for (json, expected) in made_messages() {
        meet(&json, expected);
    }
}

/// Tests one message by itself and inside a request.
fn meet(json: &str, expected: &str) {
    let message = Message::from_json(json);
    assert_eq!(verdict(&message), expected, "{}", name(json));
    if expected == "invalid_json" {
        return;
    }
    let request = format!(r#"{{"operation":"APPEND","messages":[{json}]}}"#);
    let appended = send(&fresh(), &request, 5);
    assert_eq!(verdict(&appended), expected, "{}", name(&request));
    if let (Ok(message), Ok((talk, _))) = (message, appended) {
        assert_eq!(message.json(), without_space_around(json));
        comes_back(&message, talk);
    }
}

/// Tests that a message that was appended is the same wherever it is read from.
fn comes_back(message: &Message, talk: Conversation) {
    let shown = name(message.json());
    let is_same = |talk: &Conversation| {
        let entry = talk.log().get(LogIndex(0)).expect("it is in the log");
        assert_eq!(entry.message.json(), message.json(), "{shown}");
        assert_eq!(entry.message.text(), message.text(), "{shown}");
    };
    is_same(&talk);
    talk.verify().unwrap_or_else(|fault| panic!("{shown}: {fault}"));

    let text = message.text();
    let tokens = text.len().div_ceil(4) + 3 + 1_000 * message.media();
    assert_eq!(talk.view().tokens(), tokens as u64, "{shown}");
    if !text.is_empty() {
        assert_eq!(talk.search(&text).map(|hits| hits.len()), Ok(1), "{shown}: it has its text");
    }

    let hide = format!(
        r#"{{"operation":"COMPRESS","indices":[0],"summary":{}}}"#,
        r#"{"role":"user","content":"s"}"#
    );
    let (hidden, _) = send(&talk, &hide, 6).expect("it can be hidden");
    is_same(&hidden);
    let (shown_again, outcome) =
        hidden.apply(Restore { indices: vec![LogIndex(0)] }, 7).expect("it can be restored");
    is_same(&shown_again);
    outcome.to_json();
    let (back, _) =
        shown_again.apply(Rollback::ToVersion(Version(1)), 8).expect("the version exists");
    assert_eq!(back.messages().next().map(Message::json), Some(message.json()));
    is_same(&back.at(Version(1)).expect("it exists"));
    is_same(&crate::driver::reloaded(&back));
}

#[test]
fn a_hostile_request_is_carried_out_whole_or_refused_without_a_trace() {
    let talk = talk();
    let before = fingerprint(&talk);
    for &(request, expected) in REQUESTS {
        let answer = send(&talk, request, 9);
        assert_eq!(verdict(&answer), expected, "{request}");
        if let Ok((next, outcome)) = answer {
            next.verify().unwrap_or_else(|fault| panic!("{request}: {fault}"));
            outcome.to_json();
            let at = next.at(talk.version()).expect("it exists");
            assert_eq!(fingerprint(&at), before, "{request}: the version before is as it was");
        }
        assert_eq!(fingerprint(&talk), before, "{request}");
    }
}

#[test]
fn a_hostile_query_is_answered_or_refused() {
    let talk = talk();
    for &(query, expected) in QUERIES {
        let answer = Query::from_json(query).and_then(|query| talk.ask(&query));
        assert_eq!(verdict(&answer), expected, "{query}");
    }
}

#[test]
fn every_prefix_of_a_request_is_refused() {
    let request = r#"{"ops":[{"operation":"APPEND","messages":[{"role":"user","content":"\ud83d\ude00é"}]}]}"#;
    assert!(Request::from_json(request).is_ok());
    for (end, _) in request.char_indices() {
        let cut = &request[..end];
        assert_eq!(verdict(&Request::from_json(cut)), "invalid_json", "{cut}");
        assert_eq!(verdict(&Message::from_json(cut)), "invalid_json", "{cut}");
    }
}

#[test]
fn half_a_surrogate_pair_is_read_as_a_replacement_and_kept_as_it_came() {
    let json = r#"{"role":"user","content":"a\ud800b"}"#;
    let message = Message::from_json(json).expect("it is kept");
    assert_eq!((message.json(), &*message.text()), (json, "a\u{fffd}b"));
}

#[test]
fn one_id_in_two_spellings_is_one_id() {
    let talk = after(
        fresh(),
        &[r#"{"operation":"APPEND","messages":[
            {"role":"assistant","content":[{"type":"tool_use","id":"c\/1","name":"f","input":{}}]},
            {"role":"tool","content":[{"type":"tool_result","tool_use_id":"\u0063/1"}]}]}"#],
    );
    let (_, outcome) = send(&talk, r#"{"operation":"BATCH_START"}"#, 2).expect("it is accepted");
    assert_eq!(outcome.warnings(), []);
    let (_, outcome) =
        send(&talk, r#"{"operation":"DELETE","indices":[0]}"#, 2).expect("it is accepted");
    assert_eq!(outcome.warnings().len(), 1, "the result has lost its call");
}
