//! Strategies that run in order: the entries that they keep, cancellation and concurrent writers.

use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use recto::{Conversation, Message, Tool};
use recto_agent::{
    Agent, BoxFuture, Budget, CallContext, CallError, CancelToken, Error, Failure, HttpModel,
    Model, Reply, RunTool, Stop, Strategy, Target, ToolInput, ToolOutput,
};
use testserver::{ModelServer, Received};

use crate::budget::{budget, fill, plain, tokens};
use crate::streams::ScriptedReply;
use crate::{EventLog, TARGETS, agent, check, conversation, model};

const TARGET: Target = Target::OpenAiChat;
const QUESTION: &str = "Look at every host, and say which one is a zebra.";

/// A tool with long output.
struct Report;

impl RunTool for Report {
    fn describe(&self) -> Tool {
        Tool::new("report", "What a host says.")
    }

    fn run<'a>(&'a self, input: ToolInput<'a>) -> BoxFuture<'a, ToolOutput> {
        let text = format!("report for {}: {}", input.id, "load is low, disk is fine ".repeat(40));
        Box::pin(async move { ToolOutput::ok(text) })
    }
}

fn is_summary(received: &Received) -> bool {
    String::from_utf8_lossy(&received.body).contains("The older part of the conversation")
}

#[tokio::test]
async fn a_long_tool_loop_keeps_its_question_and_its_newest_exchange() {
    const LIMIT: u64 = 1_500;
    const CALLS: usize = 12;
    let ladders: [&[Strategy]; 6] = [
        &[Strategy::SlidingWindow],
        &[Strategy::KeepRecent],
        &[Strategy::KeepSystemAndRecent],
        &[Strategy::Summarise],
        &[Strategy::ClearToolResults, Strategy::SlidingWindow],
        &[Strategy::Summarise, Strategy::SlidingWindow],
    ];
    for target in TARGETS {
        for ladder in ladders {
            let asked = AtomicUsize::new(0);
            let server = ModelServer::answering(move |received: &Received| {
                if is_summary(received) {
                    return plain("All hosts so far are horses.").streamed(target);
                }
                let reply = match asked.fetch_add(1, Ordering::SeqCst) {
                    CALLS => plain("None."),
                    n => ScriptedReply {
                        usage: None,
                        ..ScriptedReply::call(&format!("c{n:02}"), "report", "{}")
                    },
                };
                reply.streamed(target)
            });
            let agent = agent(target, &server).await.tool(Report);
            let agent = agent.budget(budget(LIMIT, 1_200, 800, ladder));
            agent.conversation().append([Message::system("Be kind.")]).await.unwrap();
            fill(&agent, 10).await;
            let run = agent.send(Message::user(QUESTION)).await.unwrap();
            assert_eq!((run.stop, run.text.as_str()), (Stop::Done, "None."), "{ladder:?}");
            let received = server.received();
            let turns: Vec<&Received> = received.iter().filter(|it| !is_summary(it)).collect();
            assert_eq!(turns.len(), CALLS + 1, "{ladder:?}");
            for (turn, received) in turns.into_iter().enumerate() {
                check(target, &received.body);
                let body = String::from_utf8_lossy(&received.body);
                assert!(body.contains(QUESTION), "{target} {ladder:?}, turn {turn}: {body}");
                let newest = turn.checked_sub(1).map(|before| format!("report for c{before:02}"));
                let has_newest = newest.is_none_or(|newest| body.contains(&newest));
                assert!(has_newest, "{target} {ladder:?}, turn {turn}: {body}");
                if target == TARGET {
                    assert!(tokens(&received.body) <= LIMIT, "{ladder:?}, turn {turn}");
                }
            }
        }
    }
}

#[tokio::test]
async fn messages_after_the_question_are_summarised_if_those_before_it_cannot() {
    let long = "They talked about hosts. ".repeat(300);
    let summary =
        serde_json::json!({"role": "user", "content": long, "metadata": {"summary": {"of": [0]}}});
    let summary = Message::from_json(&summary.to_string()).unwrap();
    let server = ModelServer::answering(|received: &Received| {
        plain(if is_summary(received) { "All is well." } else { "Fine." }).streamed(TARGET)
    });
    let agent = agent(TARGET, &server).await;
    let agent = agent.budget(budget(4_000, 3_000, 2_500, &[Strategy::Summarise]));
    let conversation = agent.conversation();
    conversation.append([summary, Message::user(QUESTION)]).await.unwrap();
    for host in 0..10 {
        let (id, input) = (format!("c{host}"), serde_json::json!({"host": host}));
        let result = format!("host {host}: {}", "load is low, disk is fine ".repeat(30));
        let call = Message::tool_call(&id, "load", &input);
        conversation.append([call, Message::tool_result(&id, &result)]).await.unwrap();
    }
    let run = agent.run(&CancelToken::new()).await.unwrap();
    assert_eq!(run.text, "Fine.");
    let view = conversation.messages().await.unwrap();
    let texts: Vec<String> = view.iter().map(|entry| entry.message.text().into_owned()).collect();
    assert_eq!((texts[0].as_str(), texts[1].as_str()), (long.as_str(), QUESTION));
    assert!(texts[2].ends_with("All is well."), "{texts:?}");
}

#[tokio::test]
async fn a_window_that_fits_starts_at_a_turn() {
    let server = ModelServer::replying([plain("Fine.").streamed(TARGET)]);
    let agent = agent(TARGET, &server).await;
    let agent = agent.budget(budget(5_000, 900, 500, &[Strategy::SlidingWindow]));
    fill(&agent, 25).await;
    agent.send(Message::user("And?")).await.unwrap();
    let view = agent.conversation().messages().await.unwrap();
    assert!(view[0].message.text().starts_with("question"), "{}", view[0].message.text());
    assert!(view.len() > 5, "{}", view.len());
}

/// The action that runs during the call for a summary.
enum Meanwhile {
    Cancel(CancelToken),
    Say(Conversation, &'static str),
    Hide(Conversation),
}

/// A client during whose calls another writer changes the conversation.
struct Disturbed(HttpModel, Meanwhile);

impl Model for Disturbed {
    fn target(&self) -> Target {
        self.0.target()
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn fields(&self) -> Vec<(String, String)> {
        self.0.fields()
    }

    fn call<'a>(
        &'a self,
        body: Bytes,
        _: &'a CallContext<'a>,
    ) -> BoxFuture<'a, Result<Reply, CallError>> {
        Box::pin(async move {
            let answer = self.0.call(body, &CallContext::default()).await;
            match &self.1 {
                Meanwhile::Cancel(cancel) => {
                    cancel.cancel();
                    return Err(Failure::Cancelled.into());
                }
                Meanwhile::Say(conversation, text) => {
                    drop(conversation.append([Message::user(text)]).await)
                }
                Meanwhile::Hide(conversation) => {
                    let indices = vec![recto::LogIndex(1)];
                    conversation.apply(recto::Delete { indices }).await.unwrap();
                }
            }
            answer
        })
    }
}

async fn disturbed(
    server: &ModelServer,
    ladder: &[Strategy],
    meanwhile: impl FnOnce(Conversation) -> Meanwhile,
) -> Agent {
    let conversation = conversation().await;
    let summariser = Disturbed(model(TARGET, server), meanwhile(conversation.clone()));
    let agent = Agent::new(conversation, model(TARGET, server)).summariser(summariser);
    let agent = agent.budget(budget(4_000, 1_200, 800, ladder));
    fill(&agent, 25).await;
    agent
}

#[tokio::test]
async fn cancelling_a_summary_stops_the_strategies_and_the_run() {
    let server = ModelServer::replying([plain("They talked.").streamed(TARGET)]);
    let cancel = CancelToken::new();
    let ladder = [Strategy::Summarise, Strategy::SlidingWindow];
    let agent = disturbed(&server, &ladder, |_| Meanwhile::Cancel(cancel.clone())).await;
    let conversation = agent.conversation();
    conversation.append([Message::user("And?")]).await.unwrap();
    let before = conversation.messages().await.unwrap();
    let run = agent.run(&cancel).await.unwrap();
    assert_eq!((run.stop, run.reply), (Stop::Cancelled, None));
    assert_eq!(conversation.messages().await.unwrap(), before);
    // The summary is the only request that was sent, and the only manifest.
    let calls = agent.calls().await.unwrap();
    assert_eq!((calls.len(), server.received().len()), (1, 1));
    assert!(calls[0].summary_prompt.is_some());
}

#[tokio::test]
async fn a_summary_is_applied_after_a_concurrent_write() {
    let server = ModelServer::replying([
        plain("They talked.").streamed(TARGET),
        plain("Fine.").streamed(TARGET),
    ]);
    let events = EventLog::default();
    let say = |conversation| Meanwhile::Say(conversation, "By the way.");
    let agent = events.attach(disturbed(&server, &[Strategy::Summarise], say).await);
    let run = agent.send(Message::user("And?")).await.unwrap();
    assert_eq!(run.text, "Fine.");
    assert_eq!(events.texts()[1..], ["compressionCompleted summarise"]);
    let received = server.received();
    assert_eq!(received.len(), 2);
    let body = String::from_utf8_lossy(&received[1].body).into_owned();
    assert!(body.contains("They talked.") && body.contains("By the way."), "{body}");
    let numbers: Vec<u64> = agent.calls().await.unwrap().iter().map(|call| call.number).collect();
    assert_eq!(numbers, [1, 2]);
}

#[tokio::test]
async fn a_summary_of_messages_that_were_hidden_meanwhile_is_not_applied() {
    let server = ModelServer::replying([
        plain("They talked.").streamed(TARGET),
        plain("Fine.").streamed(TARGET),
    ]);
    let events = EventLog::default();
    let ladder = [Strategy::Summarise, Strategy::SlidingWindow];
    let agent = events.attach(disturbed(&server, &ladder, Meanwhile::Hide).await);
    assert_eq!(agent.send(Message::user("And?")).await.unwrap().text, "Fine.");
    let words = events.texts();
    assert!(words[1].contains("changed the messages that the summary replaces"), "{words:?}");
    assert_eq!(words[2], "compressionCompleted sliding-window");
    assert_eq!(agent.calls().await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_failed_summary_is_not_requested_again_in_every_turn() {
    let server = ModelServer::answering(|received: &Received| {
        plain(if is_summary(received) { "" } else { "Fine." }).streamed(TARGET)
    });
    let agent = agent(TARGET, &server).await;
    let budget = budget(0, 1_200, 800, &[Strategy::Summarise]);
    let agent = agent.budget(Budget { limit: None, ..budget });
    let asked = || server.received().iter().filter(|it| is_summary(it)).count();
    fill(&agent, 25).await;
    for _ in 0..6 {
        agent.send(Message::user("And?")).await.unwrap();
    }
    assert_eq!(asked(), 1);
    // After the view has grown, the summary is requested again.
    fill(&agent, 6).await;
    agent.send(Message::user("And?")).await.unwrap();
    assert_eq!(asked(), 2);
    // The manifest has the purpose of the call and the reason why the summary was not used.
    let call = agent.call(1).await.unwrap();
    assert!(call.summary_prompt.is_some());
    assert!(call.failure.unwrap().ends_with("not used: the model wrote an empty summary"));
    let all = recto::Query { scope: recto::Scope::All, ..Default::default() };
    let log = agent.conversation().query(&all).await.unwrap();
    assert!(log.iter().any(|it| it.message.text().starts_with("[no summary from call 1: ")));
}

#[tokio::test]
async fn over_the_limit_the_error_says_why_each_strategy_failed() {
    let server = ModelServer::answering(|_: &Received| plain("").streamed(TARGET));
    let ladder = [Strategy::ClearToolResults, Strategy::Summarise];
    let agent = agent(TARGET, &server).await.budget(budget(1_500, 1_200, 800, &ladder));
    fill(&agent, 25).await;
    // Above the limit, failed strategies are not skipped.
    for calls in 1..3 {
        let error = agent.send(Message::user("And?")).await.unwrap_err().to_string();
        assert!(error.contains("clear-tool-results (no old tool result"), "{error}");
        assert!(error.contains("summarise (the model wrote an empty summary)"), "{error}");
        assert_eq!(server.received().len(), calls);
    }
}

#[tokio::test]
async fn the_error_about_the_floor_uses_provider_tokens_like_the_limit() {
    // The provider counts three times as many tokens.
    let server = ModelServer::answering(|received: &Received| {
        let usage = Some((3 * tokens(&received.body), 0, 5));
        ScriptedReply { usage, ..plain("Fine.") }.streamed(TARGET)
    });
    let agent = agent(TARGET, &server).await;
    let agent = agent.budget(budget(300, 250, 200, &[Strategy::KeepSystemAndRecent]));
    agent.send(Message::user("How are you today, and what is there to do?")).await.unwrap();
    let error = agent.send(Message::user(&"go on ".repeat(75))).await.unwrap_err();
    let Error::FloorTooHigh { limit, total, ref parts } = error else { panic!("{error}") };
    assert!(total > limit, "{error}");
    assert!(parts.iter().map(|part| part.tokens).sum::<u64>() >= total, "{error}");
}

#[tokio::test]
async fn the_request_for_a_summary_respects_the_limit() {
    for limit in [450, 600, 900, 1_500] {
        let server = ModelServer::answering(|received: &Received| {
            plain(if is_summary(received) { "They talked." } else { "Fine." }).streamed(TARGET)
        });
        let agent = agent(TARGET, &server).await;
        let ladder = [Strategy::Summarise, Strategy::SlidingWindow];
        let agent = agent.budget(budget(limit, limit * 4 / 5, limit / 2, &ladder));
        for turns in 1..10 {
            fill(&agent, turns).await;
            agent.send(Message::user("And?")).await.unwrap();
        }
        let received = server.received();
        assert!(received.iter().any(is_summary));
        for received in received {
            assert!(tokens(&received.body) <= limit, "{limit}: {}", tokens(&received.body));
        }
        for call in agent.calls().await.unwrap() {
            assert!(call.counted <= limit, "{limit}: {call:?}");
        }
    }
}

#[tokio::test]
async fn the_budget_limits_the_output_of_the_history_tools() {
    const LIMIT: u64 = 1_500;
    let everything = r#"{"from":0,"to":4294967295}"#;
    let huge = "entry by entry, word by word ".repeat(2_000);
    for (ladder, first) in [
        (&[Strategy::SlidingWindow][..], "short"),
        (&[Strategy::SlidingWindow], &huge),
        (&[Strategy::Summarise], "short"),
        (&[], "short"),
    ] {
        let asked = AtomicUsize::new(0);
        let server = ModelServer::answering(move |received: &Received| {
            if is_summary(received) {
                return plain("They talked.").streamed(TARGET);
            }
            let call = |id| ScriptedReply {
                usage: None,
                ..ScriptedReply::call(id, "recto_expand", everything)
            };
            let reply = match asked.fetch_add(1, Ordering::SeqCst) {
                0 => call("c1"),
                1 => call("c2").and_call("c3", "recto_expand", everything),
                2 => call("c4").and_call("c5", "recto_search", r#"{"text":"why"}"#),
                _ => plain("Fine."),
            };
            reply.streamed(TARGET)
        });
        let agent = agent(TARGET, &server).await.history_tools();
        let conversation = agent.conversation();
        conversation.append([Message::user(first)]).await.unwrap();
        fill(&agent, 30).await;
        conversation
            .apply(recto::Truncate { keep_last: Some(6), ..Default::default() })
            .await
            .unwrap();
        let agent = agent.budget(match ladder.is_empty() {
            true => Budget { limit: Some(LIMIT), ..Budget::default() },
            false => budget(LIMIT, 1_200, 800, ladder),
        });
        let run = agent.send(Message::user("What was it about?")).await.unwrap();
        assert_eq!((run.stop, run.turns), (Stop::Done, 4), "{ladder:?}");
        let received = server.received();
        for received in &received {
            assert!(tokens(&received.body) <= LIMIT, "{ladder:?}: {}", tokens(&received.body));
        }
        let body = String::from_utf8_lossy(&received[1].body);
        assert!(body.contains("[entry 0, user]"), "{ladder:?}: {body}");
        assert!(body.contains("continue with entry"), "{ladder:?}: {body}");
        assert!(body.contains("the budget has room for"), "{ladder:?}: {body}");
    }
}
