//! Faults of a provider or the network, for every provider.
//!
//! After each case the conversation has no answer, the whole answer, or an answer that is marked incomplete.
//! Every request was valid, the exact request of every call can be shown, and the next message is answered.

use std::time::{Duration, Instant, SystemTime};

use futures_util::StreamExt as _;
use recto::{Message, Role};
use recto_agent::{Agent, Call, CancelToken, Error, Failure, Run, Stop, Target};
use testserver::{ModelServer, Received, Reply};

use crate::streams::ScriptedReply;
use crate::tools::Load;
use crate::{TARGETS, check, conversation, model};

/// The part of the answer that is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    None,
    Whole,
    Incomplete,
}

/// The expected end of a run.
enum ExpectedEnd {
    With(Stop),
    Failing(fn(&Failure) -> bool),
}

struct Case {
    name: &'static str,
    replies: fn(Target) -> Vec<Reply>,
    ends: ExpectedEnd,
    kept: Kept,
    /// Number of requests that the server receives.
    requests: usize,
}

const LONG: &str = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen \
                    fifteen sixteen seventeen eighteen nineteen twenty, and so on until it is enough; \
                    é ü 漢字 🙂 so that characters are split as well, wherever the pieces end, again and again";

fn long(target: Target) -> String {
    ScriptedReply::text(LONG).events(target)
}

fn long_call(target: Target) -> String {
    let arguments = format!(r#"{{"host":"web-1","why":"{LONG}"}}"#);
    ScriptedReply::call("c1", "load", &arguments).events(target)
}

/// A stream with an additional event in the middle.
fn with_event(target: Target, event: &str) -> String {
    let events = long(target);
    let half = events.len() / 2;
    let half = (half..).find(|&at| events.is_char_boundary(at)).unwrap();
    let at = half + events[half..].find("\n\n").unwrap() + 2;
    format!("{}{event}{}", &events[..at], &events[at..])
}

fn error_event(target: Target) -> &'static str {
    match target {
        Target::OpenAiChat => {
            "data: {\"error\":{\"message\":\"too much to do\",\"type\":\"server_error\"}}\n\n"
        }
        Target::OpenAiResponses => {
            "event: error\ndata: {\"type\":\"error\",\"code\":\"server_error\",\"message\":\"too much to do\"}\n\n"
        }
        _ => {
            "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"too much to do\"}}\n\n"
        }
    }
}

/// A stream without its end event, if the provider sends one after the last event of the answer.
fn without_end(target: Target) -> String {
    let events = long(target);
    let end = match target {
        Target::OpenAiChat => "data: [DONE]",
        Target::OpenAiResponses => return events,
        _ => "event: message_stop",
    };
    let at = events.find(end).unwrap();
    events[..at].to_owned()
}

/// A stream whose last events are repeated.
fn with_end_twice(target: Target) -> String {
    let events = long(target);
    let at = events.trim_end().rfind("\n\n").unwrap();
    let at = events[..at].rfind("\n\n").unwrap() + 2;
    format!("{events}{}", &events[at..])
}

/// An event without content, with `null` in every optional field.
fn null_event(target: Target) -> &'static str {
    match target {
        Target::OpenAiChat => {
            "data: {\"id\":null,\"model\":null,\"choices\":[{\"index\":0,\"delta\":{\"role\":null,\"content\":null,\"tool_calls\":null,\"refusal\":null},\"finish_reason\":null}],\"usage\":null}\n\n"
        }
        Target::OpenAiResponses => {
            "data: {\"type\":\"response.in_progress\",\"response\":null}\n\n"
        }
        _ => "data: {\"type\":\"ping\",\"delta\":null,\"usage\":null}\n\n",
    }
}

/// A delta with a lone surrogate.
fn half_a_character(target: Target) -> &'static str {
    match target {
        Target::OpenAiChat => "data: {\"choices\":[{\"delta\":{\"content\":\"\\ud83d\"}}]}\n\n",
        Target::OpenAiResponses => {
            "data: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"delta\":\"\\ud83d\"}\n\n"
        }
        _ => {
            "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"\\ud83d\"}}\n\n"
        }
    }
}

/// The reply of a model that refuses.
fn refusal(target: Target) -> Reply {
    let events = match target {
        Target::OpenAiChat => {
            "data: {\"choices\":[{\"delta\":{\"refusal\":\"I will \"}}]}\n\n\
             data: {\"choices\":[{\"delta\":{\"refusal\":\"not.\"}}]}\n\n\
             data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
        }
        Target::OpenAiResponses => {
            "data: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"type\":\"message\",\"id\":\"m\",\"role\":\"assistant\",\"status\":\"completed\",\"content\":[{\"type\":\"refusal\",\"refusal\":\"I will not.\"}]}}\n\n\
             data: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\",\"status\":\"completed\",\"output\":[{\"type\":\"message\",\"id\":\"m\",\"role\":\"assistant\",\"status\":\"completed\",\"content\":[{\"type\":\"refusal\",\"refusal\":\"I will not.\"}]}]}}\n\n"
        }
        _ => {
            return Reply::stream(
                ScriptedReply::text("I will not.").events(target).replace("end_turn", "refusal"),
            );
        }
    };
    Reply::stream(events)
}

fn ok(target: Target) -> Reply {
    ScriptedReply::text("All is well.").streamed(target)
}

fn is_cut(failure: &Failure) -> bool {
    matches!(failure, Failure::Cut(_))
}

fn is_provider(failure: &Failure) -> bool {
    matches!(failure, Failure::Provider { .. })
}

fn is_malformed(failure: &Failure) -> bool {
    matches!(failure, Failure::Malformed(_))
}

fn is_timeout(failure: &Failure) -> bool {
    matches!(failure, Failure::Timeout { .. })
}

const DONE: ExpectedEnd = ExpectedEnd::With(Stop::Done);

#[rustfmt::skip]
const CASES: &[Case] = &[
    Case { name: "an answer", replies: |t| vec![ok(t)],
        ends: DONE, kept: Kept::Whole, requests: 1 },
    Case { name: "an answer in one-byte pieces", replies: |t| vec![Reply::stream(long(t)).in_pieces(1)],
        ends: DONE, kept: Kept::Whole, requests: 1 },
    Case { name: "429 with Retry-After", replies: |t| vec![Reply::json(429, "{}").header("retry-after", "0.2"), ok(t)],
        ends: DONE, kept: Kept::Whole, requests: 2 },
    Case { name: "429 without Retry-After", replies: |t| vec![Reply::json(429, "{}"), ok(t)],
        ends: DONE, kept: Kept::Whole, requests: 2 },
    Case { name: "429 with Retry-After above the maximum delay", replies: |_| vec![Reply::json(429, "{}").header("retry-after", "3600")],
        ends: ExpectedEnd::Failing(|f| matches!(f, Failure::RateLimited { retry_after: Some(after), .. } if after.as_secs() == 3600)),
        kept: Kept::None, requests: 1 },
    Case { name: "429 in every attempt", replies: |_| vec![Reply::json(429, "{}"); 3],
        ends: ExpectedEnd::Failing(|f| matches!(f, Failure::RateLimited { .. })), kept: Kept::None, requests: 3 },
    Case { name: "500 once", replies: |t| vec![Reply::json(500, "oh"), ok(t)],
        ends: DONE, kept: Kept::Whole, requests: 2 },
    Case { name: "529 in every attempt", replies: |_| vec![Reply::json(529, "{}"); 3],
        ends: ExpectedEnd::Failing(is_provider), kept: Kept::None, requests: 3 },
    Case { name: "503 with a page", replies: |t| vec![Reply::json(503, "<html>busy</html>"), ok(t)],
        ends: DONE, kept: Kept::Whole, requests: 2 },
    Case { name: "400", replies: |_| vec![Reply::json(400, r#"{"error":{"message":"no such field"}}"#)],
        ends: ExpectedEnd::Failing(|f| matches!(f, Failure::Refused { status: 400, message } if message == "no such field")),
        kept: Kept::None, requests: 1 },
    Case { name: "400, too long", replies: |_| vec![Reply::json(400, r#"{"error":{"code":"context_length_exceeded","message":"x"}}"#)],
        ends: ExpectedEnd::Failing(|f| matches!(f, Failure::TooLong { .. })), kept: Kept::None, requests: 1 },
    Case { name: "403", replies: |_| vec![Reply::json(403, "{}")],
        ends: ExpectedEnd::Failing(|f| matches!(f, Failure::Unauthorized { .. })), kept: Kept::None, requests: 1 },
    Case { name: "no answer in time", replies: |_| vec![Reply::json(200, "{}").after(Duration::from_secs(9)); 3],
        ends: ExpectedEnd::Failing(is_timeout), kept: Kept::None, requests: 3 },
    Case { name: "a slow start", replies: |t| vec![ok(t).after(Duration::from_millis(300))],
        ends: DONE, kept: Kept::Whole, requests: 1 },
    Case { name: "silence inside the answer", replies: |t| vec![Reply::stream(long(t)).stall_at(long(t).len() / 2)],
        ends: ExpectedEnd::Failing(is_timeout), kept: Kept::Incomplete, requests: 1 },
    Case { name: "silence before the answer", replies: |t| vec![Reply::stream(long(t)).stall_at(0), ok(t)],
        ends: DONE, kept: Kept::Whole, requests: 2 },
    Case { name: "silence after the answer", replies: |t| vec![Reply::stream(long(t)).stall_at(usize::MAX)],
        ends: DONE, kept: Kept::Whole, requests: 1 },
    Case { name: "cut before the head", replies: |t| vec![Reply::cut(), ok(t)],
        ends: DONE, kept: Kept::Whole, requests: 2 },
    Case { name: "cut before the first event", replies: |t| vec![Reply::stream(long(t)).cut_at(0), ok(t)],
        ends: DONE, kept: Kept::Whole, requests: 2 },
    Case { name: "cut inside the first event", replies: |t| vec![Reply::stream(long(t)).cut_at(20), ok(t)],
        ends: DONE, kept: Kept::Whole, requests: 2 },
    Case { name: "cut inside the answer", replies: |t| vec![Reply::stream(long(t)).cut_at(long(t).len() / 2)],
        ends: ExpectedEnd::Failing(is_cut), kept: Kept::Incomplete, requests: 1 },
    Case { name: "cut after the answer", replies: |t| vec![Reply::stream(long(t)).cut_at(usize::MAX)],
        ends: DONE, kept: Kept::Whole, requests: 1 },
    Case { name: "a stream that ends inside the answer", replies: |t| vec![Reply::stream(&long(t).as_bytes()[..long(t).len() / 2])],
        ends: ExpectedEnd::Failing(is_cut), kept: Kept::Incomplete, requests: 1 },
    Case { name: "cut inside the input of a call", replies: |t| vec![Reply::stream(long_call(t)).cut_at(long_call(t).len() / 2)],
        ends: ExpectedEnd::Failing(is_cut), kept: Kept::None, requests: 1 },
    Case { name: "a malformed event before the answer", replies: |_| vec![Reply::stream("data: {nonsense\n\n")],
        ends: ExpectedEnd::Failing(is_malformed), kept: Kept::None, requests: 1 },
    Case { name: "a malformed event inside the answer", replies: |t| vec![Reply::stream(with_event(t, "data: {nonsense\n\n"))],
        ends: ExpectedEnd::Failing(is_malformed), kept: Kept::Incomplete, requests: 1 },
    Case { name: "bytes that are not UTF-8", replies: |t| {
            let mut events = long(t).into_bytes();
            let half = events.len() / 2;
            let at = half + events[half..].windows(2).position(|it| it == b"\n\n").unwrap() + 2;
            events.splice(at..at, b"data: \"\xff\xfe\"\n\n".iter().copied());
            vec![Reply::stream(events)]
        }, ends: ExpectedEnd::Failing(is_malformed), kept: Kept::Incomplete, requests: 1 },
    Case { name: "comments and empty events", replies: |t| vec![Reply::stream(with_event(t, ": keep-alive\n\ndata:\n\nid: 3\n\n"))],
        ends: DONE, kept: Kept::Whole, requests: 1 },
    Case { name: "a byte order mark", replies: |t| vec![Reply::stream(format!("\u{feff}{}", long(t)))],
        ends: DONE, kept: Kept::Whole, requests: 1 },
    Case { name: "lines that end in CRLF", replies: |t| vec![Reply::stream(long(t).replace('\n', "\r\n")).in_pieces(5)],
        ends: DONE, kept: Kept::Whole, requests: 1 },
    Case { name: "an error before the answer, inside the stream", replies: |t| vec![Reply::stream(error_event(t)), ok(t)],
        ends: DONE, kept: Kept::Whole, requests: 2 },
    Case { name: "an error inside the answer", replies: |t| vec![Reply::stream(with_event(t, error_event(t)))],
        ends: ExpectedEnd::Failing(is_provider), kept: Kept::Incomplete, requests: 1 },
    Case { name: "an empty answer", replies: |t| vec![ScriptedReply::text("").streamed(t)],
        ends: ExpectedEnd::With(Stop::Empty), kept: Kept::None, requests: 1 },
    Case { name: "a page instead of an answer", replies: |_| vec![Reply::json(200, "<html>hello</html>")],
        ends: ExpectedEnd::Failing(is_malformed), kept: Kept::None, requests: 1 },
    Case { name: "another object instead of an answer", replies: |_| vec![Reply::json(200, r#"{"hello":1}"#)],
        ends: ExpectedEnd::Failing(is_malformed), kept: Kept::None, requests: 1 },
    Case { name: "not streamed, although a stream was requested", replies: |t| vec![ScriptedReply::text(LONG).whole(t)],
        ends: DONE, kept: Kept::Whole, requests: 1 },
    Case { name: "not streamed, and cut", replies: |t| vec![ScriptedReply::text(LONG).whole(t).cut_at(30), ok(t)],
        ends: DONE, kept: Kept::Whole, requests: 2 },
    Case { name: "no usage", replies: |t| vec![ScriptedReply { usage: None, ..ScriptedReply::text(LONG) }.streamed(t)],
        ends: DONE, kept: Kept::Whole, requests: 1 },
    Case { name: "the limit of tokens inside a text", replies: |t| vec![ScriptedReply { is_cut_short: true, ..ScriptedReply::text(LONG) }.streamed(t)],
        ends: ExpectedEnd::With(Stop::Length), kept: Kept::Incomplete, requests: 1 },
    Case { name: "the limit of tokens inside the input of a call", replies: |t| {
            let reply = ScriptedReply { is_cut_short: true, ..ScriptedReply::text("Let me see.") };
            vec![reply.and_call("c1", "load", r#"{"host": "we"#).streamed(t)]
        }, ends: ExpectedEnd::With(Stop::Length), kept: Kept::Incomplete, requests: 1 },
    Case { name: "a call whose input is not JSON", replies: |t| vec![ScriptedReply::call("c1", "load", r#"{"host": web}"#).streamed(t), ok(t)],
        ends: DONE, kept: Kept::Whole, requests: 2 },
    Case { name: "a call whose input is a list", replies: |t| vec![ScriptedReply::call("c1", "load", "[1]").streamed(t), ok(t)],
        ends: DONE, kept: Kept::Whole, requests: 2 },
    Case { name: "a call without an input", replies: |t| vec![ScriptedReply::call("c1", "load", "").streamed(t), ok(t)],
        ends: DONE, kept: Kept::Whole, requests: 2 },
    Case { name: "a call of an unknown tool", replies: |t| vec![ScriptedReply::call("c1", "fly", "{}").streamed(t), ok(t)],
        ends: DONE, kept: Kept::Whole, requests: 2 },
    Case { name: "parallel calls", replies: |t| {
            let reply = ScriptedReply::text("Both.").and_call("c1", "load", r#"{"host":"a"}"#);
            vec![reply.and_call("c2", "load", r#"{"host":"b"}"#).streamed(t), ok(t)]
        }, ends: DONE, kept: Kept::Whole, requests: 2 },
    Case { name: "parallel calls of one id", replies: |t| {
            let reply = ScriptedReply::call("c", "load", r#"{"host":"a"}"#);
            vec![reply.and_call("c", "load", r#"{"host":"b"}"#).streamed(t), ok(t)]
        }, ends: DONE, kept: Kept::Whole, requests: 2 },
    Case { name: "a tool that panics", replies: |t| vec![ScriptedReply::call("c1", "load", r#"{"host":"panic"}"#).streamed(t), ok(t)],
        ends: DONE, kept: Kept::Whole, requests: 2 },
    Case { name: "thinking", replies: |t| {
            let reply = ScriptedReply { thinking: "Hm.", signature: "c2ln", ..ScriptedReply::text("") };
            vec![reply.and_call("c1", "load", "{}").streamed(t), ok(t)]
        }, ends: DONE, kept: Kept::Whole, requests: 2 },
    Case { name: "cut inside thinking", replies: |t| {
            let reply = ScriptedReply { thinking: LONG, signature: "c2ln", ..ScriptedReply::text("so") };
            let events = reply.events(t);
            vec![Reply::stream(&events).cut_at(events.len() / 3)]
        }, ends: ExpectedEnd::Failing(is_cut), kept: Kept::Incomplete, requests: 1 },
    Case { name: "cut after a call, before its results", replies: |t| {
            vec![ScriptedReply::call("c1", "load", "{}").streamed(t), Reply::json(400, "{}")]
        }, ends: ExpectedEnd::Failing(|f| matches!(f, Failure::Refused { .. })), kept: Kept::Whole, requests: 2 },
    Case { name: "429 until a time", replies: |t| {
            let then = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(1));
            vec![Reply::json(429, "{}").header("retry-after", &then), ok(t)]
        }, ends: DONE, kept: Kept::Whole, requests: 2 },
    Case { name: "429 until a time that is long ago", replies: |t| {
            vec![Reply::json(429, "{}").header("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT"), ok(t)]
        }, ends: DONE, kept: Kept::Whole, requests: 2 },
    Case { name: "429 with an invalid Retry-After", replies: |t| {
            vec![Reply::json(429, "{}").header("retry-after", "soon"), ok(t)]
        }, ends: DONE, kept: Kept::Whole, requests: 2 },
    Case { name: "529 with Retry-After in milliseconds", replies: |t| {
            vec![Reply::json(529, "{}").header("retry-after-ms", "50"), ok(t)]
        }, ends: DONE, kept: Kept::Whole, requests: 2 },
    Case { name: "502 without a body", replies: |t| vec![Reply::json(502, ""), ok(t)],
        ends: DONE, kept: Kept::Whole, requests: 2 },
    Case { name: "408, then 500, then an answer", replies: |t| vec![Reply::json(408, "{}"), Reply::json(500, "{}"), ok(t)],
        ends: DONE, kept: Kept::Whole, requests: 3 },
    Case { name: "404", replies: |_| vec![Reply::page(404, "<html>no such page</html>")],
        ends: ExpectedEnd::Failing(|f| matches!(f, Failure::Refused { status: 404, .. })), kept: Kept::None, requests: 1 },
    Case { name: "a redirect", replies: |_| vec![Reply::json(307, "").header("location", "http://127.0.0.1:1/v1")],
        ends: ExpectedEnd::Failing(|f| matches!(f, Failure::Refused { status: 307, .. })), kept: Kept::None, requests: 1 },
    Case { name: "200 with a page", replies: |_| vec![Reply::page(200, "<html>log in first</html>")],
        ends: ExpectedEnd::Failing(is_malformed), kept: Kept::None, requests: 1 },
    Case { name: "200 with nothing", replies: |_| vec![Reply::json(200, "")],
        ends: ExpectedEnd::Failing(is_malformed), kept: Kept::None, requests: 1 },
    Case { name: "an answer with an unrequested content encoding", replies: |t| {
            vec![Reply::stream(long(t)).header("content-encoding", "gzip")]
        }, ends: ExpectedEnd::Failing(is_malformed), kept: Kept::None, requests: 1 },
    Case { name: "more bytes than were announced", replies: |t| vec![ScriptedReply::text(LONG).whole(t).claiming(40)],
        ends: ExpectedEnd::Failing(is_malformed), kept: Kept::None, requests: 1 },
    Case { name: "fewer bytes than were announced", replies: |t| {
            vec![ScriptedReply::text(LONG).whole(t).claiming(1 << 20).cut_at(usize::MAX), ok(t)]
        }, ends: DONE, kept: Kept::Whole, requests: 2 },
    Case { name: "an answer that ends with its connection", replies: |t| vec![Reply::stream(long(t)).until_close()],
        ends: DONE, kept: Kept::Whole, requests: 1 },
    Case { name: "cut after the last event but before the end", replies: |t| {
            vec![Reply::stream(without_end(t)).cut_at(usize::MAX)]
        }, ends: DONE, kept: Kept::Whole, requests: 1 },
    Case { name: "silence after the last event but before the end", replies: |t| {
            vec![Reply::stream(without_end(t)).stall_at(usize::MAX)]
        }, ends: DONE, kept: Kept::Whole, requests: 1 },
    Case { name: "the last events twice", replies: |t| vec![Reply::stream(with_end_twice(t))],
        ends: DONE, kept: Kept::Whole, requests: 1 },
    Case { name: "an error after the answer", replies: |t| {
            vec![Reply::stream(format!("{}{}", without_end(t), error_event(t)))]
        }, ends: DONE, kept: Kept::Whole, requests: 1 },
    Case { name: "a malformed event after the answer", replies: |t| vec![Reply::stream(format!("{}data: {{what\n\n", long(t)))],
        ends: DONE, kept: Kept::Whole, requests: 1 },
    Case { name: "an unknown event", replies: |t| {
            vec![Reply::stream(with_event(t, "event: novel\ndata: {\"type\":\"novel\",\"depth\":[1]}\n\n"))]
        }, ends: DONE, kept: Kept::Whole, requests: 1 },
    Case { name: "null in every optional field", replies: |t| vec![Reply::stream(with_event(t, null_event(t)))],
        ends: DONE, kept: Kept::Whole, requests: 1 },
    Case { name: "a line of two megabytes", replies: |t| {
            vec![Reply::stream(with_event(t, &format!(": {}\n\n", "x".repeat(2 << 20))))]
        }, ends: DONE, kept: Kept::Whole, requests: 1 },
    Case { name: "an answer of two megabytes", replies: |t| vec![ScriptedReply::text("é".repeat(1 << 20)).whole(t)],
        ends: DONE, kept: Kept::Whole, requests: 1 },
    Case { name: "an answer in slow pieces", replies: |t| {
            let events = ScriptedReply::text("Slow, but steady.").events(t);
            let piece = events.len() / 8;
            vec![Reply::stream(events).in_pieces(piece).pausing(Duration::from_millis(250))]
        }, ends: DONE, kept: Kept::Whole, requests: 1 },
    Case { name: "only keep-alive comments", replies: |_| {
            let comments = Reply::stream(": keep-alive\n\n".repeat(60));
            vec![comments.in_pieces(14).pausing(Duration::from_millis(100)); 3]
        }, ends: ExpectedEnd::Failing(is_timeout), kept: Kept::None, requests: 3 },
    Case { name: "half of a surrogate pair", replies: |t| vec![Reply::stream(with_event(t, half_a_character(t)))],
        ends: DONE, kept: Kept::Whole, requests: 1 },
    Case { name: "control characters", replies: |t| vec![ScriptedReply::text("a\0b\u{1b}[31m\u{202e}\u{feff}c").streamed(t)],
        ends: DONE, kept: Kept::Whole, requests: 1 },
    Case { name: "a refusal", replies: |t| vec![refusal(t)],
        ends: ExpectedEnd::With(Stop::Refused), kept: Kept::Whole, requests: 1 },
    Case { name: "a call without an id", replies: |t| vec![ScriptedReply::call("", "load", "{}").streamed(t), ok(t)],
        ends: DONE, kept: Kept::Whole, requests: 2 },
    Case { name: "a call without a name", replies: |t| vec![ScriptedReply::call("c1", "", "{}").streamed(t), ok(t)],
        ends: DONE, kept: Kept::Whole, requests: 2 },
    Case { name: "one id for two calls, one after the other", replies: |t| {
            let reply = ScriptedReply::call("c1", "load", "{}");
            vec![reply.streamed(t), reply.streamed(t), ok(t)]
        }, ends: DONE, kept: Kept::Whole, requests: 3 },
    Case { name: "an id that no provider accepts", replies: |t| {
            vec![ScriptedReply::call(&"é ".repeat(100), "load", "{}").streamed(t), ok(t)]
        }, ends: DONE, kept: Kept::Whole, requests: 2 },
    Case { name: "a call with deeply nested input", replies: |t| {
            let deep = format!("{}{}", "{\"a\":".repeat(200), "1".to_owned() + &"}".repeat(200));
            vec![ScriptedReply::call("c1", "load", &deep).streamed(t), ok(t)]
        }, ends: DONE, kept: Kept::Whole, requests: 2 },
    Case { name: "numbers out of range in the input of a call", replies: |t| {
            vec![ScriptedReply::call("c1", "load", r#"{"host":1e400,"n":123456789012345678901234567890,"n":-0}"#).streamed(t), ok(t)]
        }, ends: DONE, kept: Kept::Whole, requests: 2 },
];

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn after_every_fault_the_next_message_is_answered() {
    let all = TARGETS.into_iter().flat_map(|target| CASES.iter().map(move |case| (target, case)));
    // A few at a time, so that a busy machine does not cause timeouts.
    let results = futures_util::stream::iter(all)
        .map(|(target, case)| tokio::spawn(run_case(target, case)))
        .buffer_unordered(12)
        .collect::<Vec<_>>()
        .await;
    let failed = results.into_iter().filter(Result::is_err).count();
    assert_eq!(failed, 0, "of {} cases", TARGETS.len() * CASES.len());
}

async fn run_case(target: Target, case: &'static Case) {
    let name = format!("{target}: {}", case.name);
    let mut replies = (case.replies)(target);
    replies.push(ScriptedReply::text("Here I am.").streamed(target));
    let server = ModelServer::replying(replies);
    let conversation = conversation().await;
    let agent = Agent::new(conversation.clone(), model(target, &server)).tool(Load);
    conversation
        .append([Message::system("You are on call."), Message::user("Is all well?")])
        .await
        .unwrap();

    let ended = agent.run(&CancelToken::new()).await;
    check_end(&name, case, &ended);
    // In the Responses API an incomplete reasoning item cannot be sent back.
    let kept = match case.name {
        "cut inside thinking" if target == Target::OpenAiResponses => Kept::None,
        _ => case.kept,
    };
    let answers = answers(&agent).await;
    let incomplete = answers.iter().filter(|it| it.json().contains("\"incomplete\":{")).count();
    match kept {
        Kept::None => assert!(answers.is_empty(), "{name}: {answers:?}"),
        Kept::Whole => assert!(!answers.is_empty() && incomplete == 0, "{name}: {answers:?}"),
        Kept::Incomplete => assert!(answers.len() == 1 && incomplete == 1, "{name}: {answers:?}"),
    }
    assert_eq!(server.received().len(), case.requests, "{name}");
    for received in server.received() {
        check(target, &received.body);
    }

    // The next message is answered, and all earlier messages are still in the view.
    let before = conversation.messages().await.unwrap();
    let run = agent.send(Message::user("And now?")).await;
    let run = run.unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!((run.stop, run.text.as_str()), (Stop::Done, "Here I am."), "{name}");
    let after = conversation.messages().await.unwrap();
    assert_eq!(after[..before.len()], before[..], "{name}");
    let received = server.received();
    check(target, &received[case.requests].body);
    check_requests_of_calls(&name, &agent, &received).await;
}

fn check_end(name: &str, case: &Case, ended: &Result<Run, Error>) {
    match (&case.ends, ended) {
        (ExpectedEnd::With(stop), Ok(run)) => assert_eq!(run.stop, *stop, "{name}"),
        (ExpectedEnd::Failing(is), Err(Error::Call(error))) if is(&error.failure) => {}
        (_, other) => panic!("{name}: {other:?}"),
    }
}

async fn answers(agent: &Agent) -> Vec<Message> {
    let entries = agent.conversation().messages().await.unwrap();
    let messages = entries.into_iter().map(|entry| entry.message);
    messages.filter(|message| message.role() == Role::Assistant).collect()
}

/// The request of each call can be rendered again and equals the bytes that the server received.
async fn check_requests_of_calls(name: &str, agent: &Agent, received: &[Received]) {
    let calls = agent.calls().await.unwrap();
    let mut at = 0;
    for (number, call) in calls.iter().enumerate() {
        assert_eq!(call.number, number as u64 + 1, "{name}");
        let sent = agent
            .request_of_call(call.number)
            .await
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(sent.len() as u64, call.bytes);
        // Retries send the same bytes. The attempts of a failed call include the last one.
        let failed = call.attempts.len();
        let times = if call.failure.is_some() { failed.max(1) } else { failed + 1 };
        for _ in 0..times {
            assert!(received[at].body == sent.as_bytes(), "{name}: call {}", call.number);
            at += 1;
        }
    }
    assert_eq!(at, received.len(), "{name}");
}

#[tokio::test]
async fn retry_after_is_respected_and_stored_in_the_manifest() {
    let limited =
        Reply::json(429, r#"{"error":{"message":"slowly"}}"#).header("retry-after", "0.3");
    let server = ModelServer::replying([limited, ok(Target::Anthropic)]);
    let agent = Agent::new(conversation().await, model(Target::Anthropic, &server));
    let start = Instant::now();
    agent.send(Message::user("Hi")).await.unwrap();
    assert!(start.elapsed() >= Duration::from_millis(300));
    let call: Call = agent.call(1).await.unwrap();
    let [attempt] = &call.attempts[..] else { panic!("{call:?}") };
    assert_eq!(attempt.status, Some(429));
    assert!(attempt.failure.contains("slowly") && attempt.waited_millis >= 300, "{attempt:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_run_stores_the_partial_answer() {
    for target in TARGETS {
        let slow = Reply::stream(long(target)).in_pieces(64).pausing(Duration::from_millis(10));
        let server = ModelServer::replying([slow, ok(target)]);
        let conversation = conversation().await;
        conversation.append([Message::user("Tell me.")]).await.unwrap();
        let cancel = CancelToken::new();
        let stop = cancel.clone();
        let agent =
            Agent::new(conversation.clone(), model(target, &server)).on_event(move |event| {
                if matches!(event, recto_agent::Event::Delta(_)) {
                    stop.cancel();
                }
            });
        let run = agent.run(&cancel).await.unwrap();
        assert_eq!(run.stop, Stop::Cancelled, "{target}");
        assert!(LONG.starts_with(&run.text) && run.text.len() < LONG.len(), "{}", run.text);
        assert!(!run.text.is_empty(), "{target}");
        let [answer] = &answers(&agent).await[..] else { panic!() };
        assert!(answer.json().contains(r#""incomplete":{"reason":"the call was cancelled"}"#));
        let run = agent.send(Message::user("Go on.")).await.unwrap();
        assert_eq!(run.stop, Stop::Done);
        check(target, &server.received()[1].body);
    }
}

#[tokio::test]
async fn a_dropped_run_stores_no_part_of_the_answer() {
    let slow =
        Reply::stream(long(Target::Anthropic)).in_pieces(64).pausing(Duration::from_millis(50));
    let server = ModelServer::replying([slow, ok(Target::Anthropic)]);
    let agent = Agent::new(conversation().await, model(Target::Anthropic, &server));
    let run =
        tokio::time::timeout(Duration::from_millis(300), agent.send(Message::user("Hi"))).await;
    assert!(run.is_err());
    assert_eq!(agent.conversation().messages().await.unwrap().len(), 1);
    assert_eq!(agent.send(Message::user("Hi again")).await.unwrap().stop, Stop::Done);
}
