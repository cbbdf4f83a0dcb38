//! Budgets: no request exceeds the limit, no message is lost, and the loop terminates.

use recto::{Fit, LogIndex, Mark, Message, PINNED, Recto, Restore, Role, Settings};
use recto_agent::{
    Agent, Budget, ConversationExt as _, Error, ExpandTool, RunTool, Stop, Strategy, Target,
    ToolInput,
};
use testserver::{ModelServer, Received, Reply};

use crate::streams::ScriptedReply;
use crate::tools::Load;
use crate::{EventLog, TARGETS, agent, check};

/// A reply without usage, so that the calibration does not change the counts of the conversation.
pub(crate) fn plain(text: &str) -> ScriptedReply {
    ScriptedReply { usage: None, ..ScriptedReply::text(text) }
}

pub(crate) fn budget(limit: u64, threshold: u64, target: u64, strategies: &[Strategy]) -> Budget {
    let strategies = strategies.to_vec();
    Budget { limit: Some(limit), threshold: Some(threshold), target, strategies, horizon: None }
}

pub(crate) async fn fill(agent: &Agent, turns: usize) {
    for turn in 0..turns {
        let question = Message::user(&format!("question {turn}: {}", "why is that so ".repeat(10)));
        let answer = Message::assistant(&format!("answer {turn}: {}", "because it is ".repeat(10)));
        agent.conversation().append([question, answer]).await.unwrap();
    }
}

#[tokio::test]
async fn the_error_about_the_floor_lists_its_parts() {
    let server = ModelServer::replying([]);
    let budget = budget(200, 150, 100, &[Strategy::KeepSystemAndRecent]);
    let agent = agent(Target::OpenAiChat, &server).await.tool(Load).budget(budget);
    let conversation = agent.conversation();
    conversation
        .append([
            Message::system(&"Always be careful. ".repeat(20)),
            Message::user(&"This is the task. ".repeat(25)),
            Message::user("Go."),
        ])
        .await
        .unwrap();
    conversation.apply(Mark { indices: vec![LogIndex(1)], mark: PINNED.into() }).await.unwrap();
    let version = conversation.version().await.unwrap().0;
    let error = agent.run(&Default::default()).await.unwrap_err();
    let Error::FloorTooHigh { limit: 200, ref parts, .. } = error else { panic!("{error}") };
    let names: Vec<&str> = parts.iter().map(|part| part.name).collect();
    assert_eq!(names[..2], ["pinned messages", "system messages"]);
    assert!(names.contains(&"tools") && names.contains(&"the newest exchange"), "{error}");
    // Only setting the tools made a version.
    assert_eq!(conversation.version().await.unwrap().0, version + 1);
    assert_eq!(server.received().len(), 0);
}

#[tokio::test]
async fn without_strategies_the_limit_is_an_error() {
    let server = ModelServer::replying([]);
    let agent = agent(Target::OpenAiChat, &server).await;
    let agent = agent.budget(Budget::with_limit(300));
    fill(&agent, 10).await;
    let error = agent.send(Message::user("And?")).await.unwrap_err();
    assert!(
        matches!(&error, Error::OverLimit { limit: 300, tried, .. } if tried.is_empty()),
        "{error}"
    );
    assert!(error.to_string().contains("set one"), "{error}");
}

#[tokio::test]
async fn old_results_are_cleared_first_and_can_be_restored() {
    for target in TARGETS {
        let server = ModelServer::replying([plain("ok").streamed(target)]);
        let events = EventLog::default();
        let strategies = [Strategy::ClearToolResults, Strategy::KeepSystemAndRecent];
        let agent = agent(target, &server).await.budget(budget(4_000, 1_500, 900, &strategies));
        let agent = events.attach(agent);
        let conversation = agent.conversation();
        conversation.append([Message::user("Look at all hosts.")]).await.unwrap();
        for host in 0..8 {
            let id = format!("c{host}");
            let input = serde_json::json!({"host": host});
            let result = format!("host {host}: {}", "load is low, disk is fine ".repeat(30));
            conversation
                .append([
                    Message::tool_call(&id, "load", &input),
                    Message::tool_result(&id, &result),
                ])
                .await
                .unwrap();
        }
        let before = conversation.messages().await.unwrap();
        let run = agent.run(&Default::default()).await.unwrap();
        assert_eq!(run.stop, Stop::Done);
        assert_eq!(
            events.texts(),
            ["compressionRequested", "compressionCompleted clear-tool-results"]
        );
        let body = String::from_utf8(server.received()[0].body.clone()).unwrap();
        assert!(
            body.contains("[cleared: entry 2 of the log]") && body.contains("host 7:"),
            "{body}"
        );
        check(target, body.as_bytes());
        let call = agent.call(1).await.unwrap();
        assert_eq!(call.compressed[0].strategy, "clear-tool-results");
        assert!(call.compressed[0].reason.contains("over the threshold of 1500"));
        assert!(call.compressed[0].after <= 900, "{call:?}");
        // Everything that was hidden can be restored.
        let hidden: Vec<LogIndex> = before.iter().map(|entry| entry.index).collect();
        conversation.apply(Restore { indices: hidden }).await.unwrap();
        let after = conversation.messages().await.unwrap();
        assert!(before.iter().all(|old| after.iter().any(|new| new.message == old.message)));
    }
}

#[tokio::test]
async fn nested_tool_parts_are_cleared_and_summarised_like_flat_ones() {
    let target = Target::Anthropic;
    for strategy in [Strategy::ClearToolResults, Strategy::Summarise] {
        let server = ModelServer::replying([
            plain(if strategy == Strategy::Summarise { "All hosts are idle." } else { "ok" })
                .streamed(target),
            plain("ok").streamed(target),
        ]);
        let agent = agent(target, &server).await.budget(budget(6_000, 1_500, 900, &[strategy]));
        let conversation = agent.conversation();
        conversation.append([Message::user("Look at all hosts.")]).await.unwrap();
        for host in 0..8 {
            let text = format!("host {host}: {}", "load is low, disk is fine ".repeat(30));
            let call = serde_json::json!({"role": "assistant", "content": [{"type": "tool_use",
                "tool_use": {"id": format!("c{host}"), "name": "load", "input": {"host": host}}}]});
            let result = serde_json::json!({"role": "tool", "content": [{"type": "tool_result",
                "tool_result": {"tool_use_id": format!("c{host}"), "content": text}}]});
            let read = |json: &serde_json::Value| Message::from_json(&json.to_string()).unwrap();
            conversation.append([read(&call), read(&result)]).await.unwrap();
        }
        assert_eq!(agent.run(&Default::default()).await.unwrap().stop, Stop::Done);
        let received = server.received();
        let question = String::from_utf8_lossy(&received[0].body);
        let body = &received.last().unwrap().body;
        check(target, body);
        let sent = String::from_utf8_lossy(body);
        assert!(sent.contains(r#""tool_use_id":"c7""#) && sent.contains("host 7:"), "{sent}");
        match strategy {
            Strategy::Summarise => {
                assert!(question.contains("load {\\\"host\\\":0}"), "{question}");
                assert!(question.contains("host 0:") && sent.contains("All hosts are idle."));
            }
            _ => assert!(sent.contains("[cleared: entry 2 of the log]"), "{sent}"),
        }
        assert!(!sent.contains("host 0:"), "{sent}");
        let expand = ExpandTool::new(conversation.clone());
        let input = ToolInput::new("x", r#"{"from":1,"to":2}"#);
        let shown = expand.run(input).await.text;
        assert!(shown.contains(r#"load {"host":0}"#) && shown.contains("host 0:"), "{shown}");
    }
}

#[tokio::test]
async fn a_fit_without_a_fitting_run_appends_nothing_to_the_parent() {
    let recto = Recto::open("memory:").await.unwrap();
    let child = recto.create("child", Settings::default()).await.unwrap();
    let parent = recto.create("parent", Settings::default()).await.unwrap();
    let long = Message::user(&"a long story ".repeat(50));
    child.append([Message::system("Be brief."), long]).await.unwrap();
    let fit = Fit { max_tokens: 20, ..Fit::default() };
    let error = parent.append_from_child(&child, fit).await.unwrap_err();
    assert_eq!(error.code(), "budget_too_small", "{error}");
    assert_eq!(parent.stats().await.unwrap().total_messages, 0);
    let fit = r#"{"operation":"FIT","maxTokens":20}"#;
    assert_eq!(child.apply_json(fit).await.unwrap_err().code(), "budget_too_small");
    assert_eq!(child.messages().await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_summary_replaces_old_messages_and_is_a_separate_call() {
    for target in TARGETS {
        let server = ModelServer::replying([
            plain("They talked about why things are so.").streamed(target),
            plain("Fine.").streamed(target),
        ]);
        let events = EventLog::default();
        let agent = agent(target, &server).await;
        let agent =
            events.attach(agent.budget(budget(5_000, 2_000, 1_000, &[Strategy::Summarise])));
        agent.conversation().append([Message::system("Be kind.")]).await.unwrap();
        fill(&agent, 25).await;
        let run = agent.send(Message::user("And?")).await.unwrap();
        assert_eq!(run.text, "Fine.");
        assert_eq!(events.texts(), ["compressionRequested", "compressionCompleted summarise"]);
        let view = agent.conversation().messages().await.unwrap();
        assert_eq!(view[0].message.text(), "Be kind.");
        let summary = &view[1].message;
        assert!(summary.text().ends_with("They talked about why things are so."));
        let of: serde_json::Value = serde_json::from_str(summary.json()).unwrap();
        let of = of["metadata"]["summary"]["of"].as_array().unwrap().len();
        // It replaces everything between the system message and the next message.
        assert_eq!(of, view[2].index.0 as usize - 1);
        let received = server.received();
        for (number, received) in received.iter().enumerate() {
            check(target, &received.body);
            let sent = agent.request_of_call(number as u64 + 1).await.unwrap();
            assert_eq!(sent.as_bytes(), received.body);
        }
        assert!(agent.call(1).await.unwrap().summary_prompt.is_some());
        assert_eq!(agent.cumulative_totals().await.unwrap().calls, 2);
    }
}

#[tokio::test]
async fn a_summary_that_failed_replaces_nothing_and_the_next_strategy_is_tried() {
    let target = Target::Anthropic;
    let long = "and then ".repeat(3_000);
    let bad: [(&str, Reply); 5] = [
        ("empty", plain("").streamed(target)),
        ("blank", plain("  \n ").streamed(target)),
        ("refused", Reply::json(400, "{}")),
        ("cut off", ScriptedReply { is_cut_short: true, ..plain("They talked") }.streamed(target)),
        ("no shorter", plain(&long).streamed(target)),
    ];
    for (name, reply) in bad {
        let server = ModelServer::replying([reply, plain("Fine.").streamed(target)]);
        let events = EventLog::default();
        let strategies = [Strategy::Summarise, Strategy::SlidingWindow];
        let agent = agent(target, &server).await.budget(budget(5_000, 2_000, 1_000, &strategies));
        let agent = events.attach(agent);
        fill(&agent, 25).await;
        let run = agent.send(Message::user("And?")).await.unwrap();
        assert_eq!(run.text, "Fine.", "{name}");
        let words = events.texts();
        assert!(words[1].starts_with("compressionFailed summarise: "), "{name}: {words:?}");
        assert_eq!(words[2], "compressionCompleted sliding-window", "{name}");
        let view = agent.conversation().messages().await.unwrap();
        assert!(view.iter().all(|entry| !entry.message.json().contains("\"summary\"")), "{name}");
        assert_eq!(view[0].message.role(), Role::User);
        // It is recorded as a call.
        assert_eq!(agent.calls().await.unwrap().len(), 2, "{name}");
    }
}

#[tokio::test]
async fn a_compression_that_does_not_pay_off_is_deferred_below_the_limit() {
    let prices = r#"{"models":[{"model":"m-","input":10,"cached":1,"cache_write":12.5}]}"#;
    for (limit, is_deferred) in [(100_000, true), (2_100, false)] {
        let target = Target::OpenAiChat;
        let server = ModelServer::replying([plain("Fine.").streamed(target)]);
        let events = EventLog::default();
        // A small edit near the start invalidates nearly the whole prompt cache.
        let budget = budget(limit, 1_900, 1_850, &[Strategy::KeepSystemAndRecent]);
        let agent = agent(target, &server).await.budget(Budget { horizon: Some(3), ..budget });
        let prices = recto_format::PriceTable::from_json(prices).unwrap();
        let agent = events.attach(agent.prices(prices));
        fill(&agent, 25).await;
        agent.send(Message::user("And?")).await.unwrap();
        let words = events.texts();
        assert_eq!(
            words.iter().any(|word| word == "compressionDeferred"),
            is_deferred,
            "{words:?}"
        );
        let done = words.iter().any(|word| word.starts_with("compressionCompleted"));
        assert_eq!(done, !is_deferred, "{words:?}");
    }
}

/// The tokens of a request, as the provider counts them: texts, calls, and 3 per message.
pub(crate) fn tokens(body: &[u8]) -> u64 {
    let request: serde_json::Value = serde_json::from_slice(body).unwrap();
    let count = |text: &str| recto::Bpe::O200kBase.count(text);
    let message = |message: &serde_json::Value| {
        let calls = message["tool_calls"].as_array().into_iter().flatten();
        let calls = calls.map(|call| count(&call["function"].to_string()));
        3 + count(message["content"].as_str().unwrap_or("")) + calls.sum::<u64>()
    };
    let messages: u64 = request["messages"].as_array().unwrap().iter().map(message).sum();
    messages + count(&request["tools"].to_string())
}

#[tokio::test]
async fn a_thousand_turns_under_a_small_limit() {
    let target = Target::OpenAiChat;
    const LIMIT: u64 = 1_200;
    let answer = |received: &Received| {
        let body = String::from_utf8_lossy(&received.body);
        let tokens = tokens(&received.body);
        assert!(tokens <= LIMIT, "{tokens}");
        if body.contains("The older part of the conversation") {
            return plain("They count, and all went well so far.").streamed(Target::OpenAiChat);
        }
        assert!(body.contains("You count.") && body.contains("The secret word is marmalade."));
        let number = received.body.len() % 97;
        let (usage, id) = (Some((tokens, 0, 10)), format!("c{}", received.body.len()));
        match number % 3 {
            0 => ScriptedReply { usage, ..ScriptedReply::call(&id, "load", r#"{"host":"a"}"#) },
            _ => ScriptedReply { usage, ..plain(&"ok, next ".repeat(1 + number)) },
        }
        .streamed(Target::OpenAiChat)
    };
    let server = ModelServer::answering(answer);
    let strategies =
        [Strategy::ClearToolResults, Strategy::Summarise, Strategy::KeepSystemAndRecent];
    let agent = agent(target, &server).await.tool(Load).max_turns(3);
    let agent = agent.budget(budget(LIMIT, 1_000, 600, &strategies));
    let conversation = agent.conversation().clone();
    conversation
        .append([Message::system("You count."), Message::user("The secret word is marmalade.")])
        .await
        .unwrap();
    conversation.apply(Mark { indices: vec![LogIndex(1)], mark: PINNED.into() }).await.unwrap();
    for turn in 0..1_000 {
        let question = format!("turn {turn}: {}", "go on ".repeat(turn % 40));
        let run = agent.send(Message::user(&question)).await.unwrap();
        assert!(matches!(run.stop, Stop::Done | Stop::TurnLimit), "{run:?}");
    }
    let stats = conversation.stats().await.unwrap();
    assert!(stats.tokens <= LIMIT + 1_000, "{stats:?}");
    let view = conversation.messages().await.unwrap();
    assert_eq!((view[0].message.text(), view[1].index), ("You count.".into(), LogIndex(1)));
    let calls = agent.calls().await.unwrap();
    assert!(calls.len() >= 1_000);
    assert_eq!(calls.last().unwrap().lifetime.calls, calls.len() as u64);
    // Every hidden message can be restored.
    let all: Vec<LogIndex> = (0..stats.total_messages as u32).map(LogIndex).collect();
    conversation.apply(Restore { indices: all }).await.unwrap();
    assert_eq!(conversation.messages().await.unwrap().len(), stats.total_messages);
}

/// The errors of providers for a request that exceeds the context window.
fn too_long(target: Target, is_stream: bool) -> Reply {
    let text = "This model's maximum context length is 1000 tokens. However, you asked for 2000.";
    let code = "context_length_exceeded";
    match (target, is_stream) {
        (Target::OpenAiChat, false) => Reply::json(
            400,
            format!(
                r#"{{"error":{{"message":"{text}","type":"invalid_request_error","param":"messages","code":"{code}"}}}}"#
            ),
        ),
        (Target::OpenAiChat, true) => Reply::stream(format!(
            "data: {{\"error\":{{\"message\":\"x\",\"type\":\"invalid_request_error\",\"code\":\"{code}\"}}}}\n\n"
        )),
        (Target::OpenAiResponses, false) => Reply::json(
            400,
            format!(
                r#"{{"error":{{"message":"Your input exceeds the context window of this model.","type":"invalid_request_error","code":"{code}"}}}}"#
            ),
        ),
        (Target::OpenAiResponses, true) => Reply::stream(format!(
            "data: {{\"type\":\"response.failed\",\"response\":{{\"id\":\"r\",\"status\":\"failed\",\"error\":{{\"code\":\"{code}\",\"message\":\"Your input exceeds the context window of this model.\"}}}}}}\n\n"
        )),
        (_, false) => Reply::json(
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#,
        ),
        (_, true) => Reply::json(
            413,
            r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#,
        ),
    }
}

#[tokio::test]
async fn a_request_that_is_too_long_is_repeated_once_with_a_shorter_view() {
    for target in TARGETS {
        for is_stream in [false, true] {
            let name = format!("{target} {is_stream}");
            let server = ModelServer::replying([
                too_long(target, is_stream),
                plain("Fine.").streamed(target),
                too_long(target, is_stream),
                too_long(target, is_stream),
                plain("Never asked.").streamed(target),
            ]);
            let events = EventLog::default();
            // The limit of the budget is not reached.
            let strategies = [Strategy::ClearToolResults, Strategy::SlidingWindow];
            let agent =
                agent(target, &server).await.budget(budget(90_000, 80_000, 70_000, &strategies));
            let agent = events.attach(agent);
            agent.conversation().append([Message::system("Be kind.")]).await.unwrap();
            fill(&agent, 25).await;
            let run = agent.send(Message::user("And?")).await.unwrap();
            assert_eq!((run.stop, run.text.as_str()), (Stop::Done, "Fine."), "{name}");
            let words = events.texts();
            assert_eq!(words[0], "compressionRequested", "{name}");
            assert_eq!(*words.last().unwrap(), "compressionCompleted sliding-window", "{name}");
            let received = server.received();
            assert!(received[1].body.len() < received[0].body.len() * 6 / 10, "{name}");
            assert!(String::from_utf8_lossy(&received[1].body).contains("Be kind."), "{name}");
            check(target, &received[1].body);
            let calls = agent.calls().await.unwrap();
            assert!(calls[0].failure.is_some() && calls[1].failure.is_none(), "{name}: {calls:?}");
            assert!(
                calls[1].compressed[0].reason.contains("too long"),
                "{:?}",
                calls[1].compressed
            );
            // The loop terminates.
            let error = agent.send(Message::user("And now?")).await.unwrap_err();
            let Error::Call(error) = error else { panic!("{name}: {error}") };
            assert!(matches!(error.failure, recto_agent::Failure::TooLong { .. }), "{name}");
            assert_eq!(server.received().len(), 4, "{name}");
        }
    }
}

#[tokio::test]
async fn without_strategies_a_request_that_is_too_long_is_an_error() {
    let target = Target::Anthropic;
    let server = ModelServer::replying([too_long(target, false)]);
    let agent = agent(target, &server).await;
    fill(&agent, 5).await;
    let before = agent.conversation().stats().await.unwrap().current_batch_messages;
    agent.send(Message::user("And?")).await.unwrap_err();
    assert_eq!(server.received().len(), 1);
    let after = agent.conversation().stats().await.unwrap().current_batch_messages;
    assert_eq!(after, before + 1);
}

#[tokio::test]
async fn a_deferred_summary_is_not_requested() {
    let prices = r#"{"models":[{"model":"m-","input":10,"cached":1,"cache_write":12.5}]}"#;
    let target = Target::OpenAiChat;
    let server = ModelServer::replying([plain("Fine.").streamed(target)]);
    let events = EventLog::default();
    let budget = budget(100_000, 1_900, 1_850, &[Strategy::Summarise]);
    let agent = agent(target, &server).await.budget(Budget { horizon: Some(3), ..budget });
    let agent = events.attach(agent.prices(recto_format::PriceTable::from_json(prices).unwrap()));
    fill(&agent, 25).await;
    assert_eq!(agent.send(Message::user("And?")).await.unwrap().text, "Fine.");
    assert_eq!(events.texts(), ["compressionRequested", "compressionDeferred"]);
    assert_eq!(server.received().len(), 1);
}
