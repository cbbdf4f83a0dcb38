//! Hostile messages.

use super::KEPT;

/// Messages and their expected results.
pub const MESSAGES: &[(&str, &str)] = &[
    // The simplest message, and space around and inside it.
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
    // Not a message.
    ("null", "invalid_message"),
    ("true", "invalid_message"),
    ("-0", "invalid_message"),
    ("1e400", "invalid_message"),
    (r#""user: x""#, "invalid_message"),
    ("[]", "invalid_message"),
    (r#"[{"role":"user","content":"x"}]"#, "invalid_message"),
    ("{}", "invalid_message"),
    // Invalid JSON.
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
    // Text that displays like other text, or that other programs interpret.
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
    // Duplicate keys: the last one counts, all are kept.
    (r#"{"role":"robot","role":"user","content":"x"}"#, KEPT),
    (r#"{"role":"user","role":"robot","content":"x"}"#, "invalid_message"),
    (r#"{"role":"user","content":"","content":"x"}"#, KEPT),
    (r#"{"role":"user","content":"x","content":""}"#, "empty_content"),
    (r#"{"role":"user","content":"x","content":null}"#, "invalid_message"),
    (r#"{"role":"user","content":"x","\u0063ontent":"y"}"#, KEPT),
    (r#"{"role":"user","content":"x","a":1,"a":2,"a":1}"#, KEPT),
    (r#"{"role":"user","content":[{"type":"text","text":5,"text":"x"}]}"#, KEPT),
    (r#"{"role":"user","content":[{"type":"text","type":"hologram"}]}"#, KEPT),
    // Unknown fields, and numbers that floats cannot represent.
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
    // The nested form of tool parts.
    (
        r#"{"role":"assistant","content":[{"type":"tool_use","tool_use":{"id":"c","name":"f","input":{ "a" : 1e400 }}}]}"#,
        KEPT,
    ),
    (
        r#"{"role":"assistant","content":[{"type":"tool_use","\u0074ool_use":{"id":"c","name":"f","input":null}}]}"#,
        KEPT,
    ),
    (
        r#"{"role":"assistant","content":[{"type":"tool_use","tool_use":{"id":"c","name":"f"}}]}"#,
        "invalid_message",
    ),
    (
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"c","tool_use":{"id":"c","name":"f","input":{}}}]}"#,
        "invalid_message",
    ),
    (
        r#"{"role":"tool","content":[{"type":"tool_result","tool_result":{"tool_use_id":"c","content":null}}]}"#,
        KEPT,
    ),
    (
        r#"{"role":"tool","content":[{"type":"tool_result","tool_result":{"tool_use_id":"c","content":[{"type":"tool_use","tool_use":{"id":"e","name":"f","input":1}}]}}]}"#,
        KEPT,
    ),
    (
        r#"{"role":"tool","content":[{"type":"tool_result","tool_result":{"content":"x"}}]}"#,
        "invalid_message",
    ),
    (
        r#"{"role":"tool","content":[{"type":"tool_result","tool_result":{"tool_use_id":"c"},"is_error":true}]}"#,
        "invalid_message",
    ),
    // Calls in fields of other formats.
    (r#"{"role":"assistant","content":"x","tool_calls":[{"id":"c"}],"toolCallId":null}"#, KEPT),
    (r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c"}]}"#, "invalid_message"),
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
    // A system message with the text of a tool description is an ordinary message.
    (r#"{"role":"system","content":"可用工具:\n- old: gone"}"#, KEPT),
];

/// Messages that are too long for a literal.
pub fn made_messages() -> Vec<(String, &'static str)> {
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
        (filled("x", (32 << 20) - size), KEPT),
        (filled("x", (32 << 20) - size + 1), "too_large"),
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
