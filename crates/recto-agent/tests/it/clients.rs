//! Requests and replies of the HTTP clients: every provider, with and without streaming.

use std::sync::Mutex;

use bytes::Bytes;
use recto_agent::{
    CallContext, CancelToken, Delta, Failure, Finish, HttpModel, Model as _, Reply, ReplyPart,
    Target, Usage,
};
use testserver::{ModelServer, Reply as HttpReply};

use crate::streams::ScriptedReply;
use crate::{TARGETS, endpoint, model};

fn thoughtful() -> ScriptedReply {
    ScriptedReply {
        thinking: "Two hosts, so two calls. 🙂",
        signature: "EqQBCgIYAhIM+/=",
        text: "Ich prüfe beide — 稍等。".into(),
        usage: Some((1_200, 1_000, 40)),
        ..ScriptedReply::default()
    }
    .and_call("call_a", "load", r#"{"host": "web-1", "n": 1.50}"#)
    .and_call("call_b", "load", r#"{"host":"wéb-2"}"#)
}

async fn ask(model: &HttpModel) -> Reply {
    model.call(Bytes::from_static(b"{}"), &CallContext::default()).await.unwrap()
}

#[tokio::test]
async fn a_reply_is_the_same_streamed_in_pieces_of_any_size_and_not_streamed() {
    for target in TARGETS {
        let whole = ModelServer::replying([thoughtful().whole(target)]);
        let whole =
            ask(&HttpModel::new(target, endpoint(&whole).without_streaming()).unwrap()).await;
        // Pieces of one byte split every character and every line.
        for piece in [1, 2, 3, 7, 64, usize::MAX] {
            let server = ModelServer::replying([thoughtful().streamed(target).in_pieces(piece)]);
            let mut streamed = ask(&model(target, &server)).await;
            if target == Target::Anthropic {
                // Without streaming, the input is a JSON value, which the test server serialises again.
                for (at, part) in streamed.parts.iter_mut().enumerate() {
                    if let ReplyPart::ToolCall { input, .. } = part {
                        let ReplyPart::ToolCall { input: other, .. } = &whole.parts[at] else {
                            panic!()
                        };
                        let json =
                            |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
                        assert_eq!(json(input), json(other));
                        input.clone_from(other);
                    }
                }
            }
            assert_eq!(streamed, whole, "{target} in pieces of {piece}");
        }
        assert_eq!(whole.finish, Finish::ToolCalls, "{target}");
        assert_eq!(whole.text(), thoughtful().text);
        let mut usage = Usage::new(1_200, 40);
        usage.cached = 1_000;
        assert_eq!(whole.usage, Some(usage), "{target}");
        assert_eq!(whole.model.as_deref(), Some("m-1-2026"));
        assert_eq!(whole.parts.len(), 4);
    }
}

#[tokio::test]
async fn thinking_keeps_its_signature_and_calls_their_bytes() {
    let server = ModelServer::replying([thoughtful().streamed(Target::Anthropic)]);
    let answer = ask(&model(Target::Anthropic, &server)).await;
    let [ReplyPart::Thinking { text, signature }, _, ReplyPart::ToolCall { input, .. }, _] =
        &answer.parts[..]
    else {
        panic!("{answer:?}")
    };
    assert_eq!(text, "Two hosts, so two calls. 🙂");
    assert_eq!(signature.as_deref(), Some("EqQBCgIYAhIM+/="));
    assert_eq!(input, r#"{"host": "web-1", "n": 1.50}"#);
    let server = ModelServer::replying([thoughtful().streamed(Target::OpenAiResponses)]);
    let answer = ask(&model(Target::OpenAiResponses, &server)).await;
    assert!(
        matches!(&answer.parts[0], ReplyPart::Opaque(item) if item.contains("EqQBCgIYAhIM+/="))
    );
}

#[tokio::test]
async fn deltas_are_passed_to_the_callback() {
    for target in TARGETS {
        let server = ModelServer::replying([thoughtful().streamed(target)]);
        let events = Mutex::new((String::new(), String::new(), 0));
        let on_delta = |delta: Delta<'_>| {
            let mut events = events.lock().unwrap();
            match delta {
                Delta::Text(text) => events.0.push_str(text),
                Delta::Thinking(text) => events.1.push_str(text),
                Delta::ToolCall(name) => {
                    assert_eq!(name, "load");
                    events.2 += 1;
                }
                _ => {}
            }
        };
        let context = CallContext::new(&on_delta, CancelToken::new());
        model(target, &server).call(Bytes::new(), &context).await.unwrap();
        let (text, thinking, calls) = events.into_inner().unwrap();
        assert_eq!((text, thinking.as_str(), calls), (thoughtful().text, thoughtful().thinking, 2));
    }
}

#[tokio::test]
async fn the_body_is_sent_unchanged_to_the_path_of_the_provider_with_the_key() {
    let body = Bytes::from_static("{\"a\": 1.50, \"a\":\"é\\u00e9\"}\n".as_bytes());
    let expected = [
        (Target::OpenAiChat, "/v1/chat/completions", "authorization", "Bearer sk-very-secret"),
        (Target::OpenAiResponses, "/v1/responses", "authorization", "Bearer sk-very-secret"),
        (Target::Anthropic, "/v1/messages", "x-api-key", "sk-very-secret"),
    ];
    for (target, path, header, key) in expected {
        let server = ModelServer::replying([ScriptedReply::text("ok").streamed(target)]);
        model(target, &server).call(body.clone(), &CallContext::default()).await.unwrap();
        let [received] = &server.received()[..] else { panic!() };
        assert_eq!(received.body, body);
        assert_eq!((received.path.as_str(), received.header(header)), (path, Some(key)));
        assert_eq!(received.header("content-type"), Some("application/json"));
    }
}

#[tokio::test]
async fn a_key_is_in_no_error_even_if_the_provider_repeats_it() {
    for target in TARGETS {
        let body = r#"{"error":{"message":"Incorrect API key: sk-very-secret","type":"auth"}}"#;
        let server = ModelServer::replying([HttpReply::json(401, body)]);
        let error =
            model(target, &server).call(Bytes::new(), &CallContext::default()).await.unwrap_err();
        assert!(matches!(&error.failure, Failure::Unauthorized { status: 401, .. }), "{error:?}");
        for text in [error.to_string(), format!("{error:?}")] {
            assert!(!text.contains("very-secret"), "{text}");
        }
        // A call with a wrong key is not retried.
        assert_eq!(server.received().len(), 1);
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed_with_the_key() {
    let other =
        ModelServer::replying([ScriptedReply::text("thank you").streamed(Target::Anthropic)]);
    let reply = HttpReply::json(307, "").header("location", &other.url());
    let server = ModelServer::replying([reply]);
    let error = model(Target::Anthropic, &server).call(Bytes::new(), &CallContext::default()).await;
    assert!(matches!(error.unwrap_err().failure, Failure::Refused { status: 307, .. }));
    assert_eq!(other.received().len(), 0);
}

#[tokio::test]
async fn streams_that_deviate_from_openai_are_decoded() {
    let call = |index: &str, id: &str, name: &str, arguments: &str| {
        format!(
            r#"data: {{"choices":[{{"delta":{{"tool_calls":[{{{index}"id":"{id}","function":{{"name":"{name}","arguments":"{arguments}"}}}}]}}}}]}}"#
        ) + "\n\n"
    };
    let end = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    let streams = [
        // No `index`.
        call("", "a", "f", "{}") + &call("", "b", "g", "{}") + end,
        // The same `index` for all calls.
        call("\"index\":0,", "a", "f", "{}") + &call("\"index\":0,", "b", "g", "{}") + end,
        // No ids.
        call("\"index\":0,", "", "f", "{}") + &call("\"index\":1,", "", "g", "{}") + end,
        // No `index`. The first piece has the name, and the input is in two pieces.
        call("", "a", "f", "{") + &call("", "", "", "}") + &call("", "b", "g", "{}") + end,
    ];
    for stream in streams {
        let server = ModelServer::replying([HttpReply::stream(&stream)]);
        let answer = ask(&model(Target::OpenAiChat, &server)).await;
        let calls: Vec<(&str, &str)> = answer
            .parts
            .iter()
            .map(|part| match part {
                ReplyPart::ToolCall { name, input, .. } => (name.as_str(), input.as_str()),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(calls, [("f", "{}"), ("g", "{}")], "{stream}");
        assert_eq!(answer.finish, Finish::ToolCalls);
    }
}

#[tokio::test]
async fn a_response_above_the_size_limit_fails_with_the_partial_reply() {
    let server = ModelServer::replying([
        ScriptedReply::text("x".repeat(200_000)).streamed(Target::OpenAiChat)
    ]);
    let mut endpoint = endpoint(&server);
    endpoint.max_response_bytes = 50_000;
    endpoint.retry.max_attempts = 1;
    let model = HttpModel::openai_chat(endpoint).unwrap();
    let error = model.call(Bytes::new(), &CallContext::default()).await.unwrap_err();
    assert!(error.to_string().contains("longer than 50000 bytes"), "{error}");
    assert!(error.partial.is_some());
}

#[tokio::test]
async fn a_lone_surrogate_in_a_reply_is_replaced_and_the_reply_is_complete() {
    let broken = ScriptedReply::text("before § behind");
    for target in TARGETS {
        let events = broken.events(target).replace('§', r"\ud800");
        let server = ModelServer::replying([HttpReply::stream(events)]);
        let streamed = ask(&model(target, &server)).await;
        let body = broken.whole_body(target).replace('§', r"\udfff");
        let server = ModelServer::replying([HttpReply::json(200, body)]);
        let endpoint = endpoint(&server).without_streaming();
        let whole = ask(&HttpModel::new(target, endpoint).unwrap()).await;
        for reply in [streamed, whole] {
            assert_eq!(reply.text(), "before \u{fffd} behind", "{target}");
            assert_eq!(reply.finish, Finish::Stop, "{target}");
        }
    }
}
