//! Manifests of calls, totals, and the calibration of token counts.

use recto::{LogIndex, Message, Position, Recto, Replace, Rollback, Settings, Undo, Version};
use recto_agent::{
    Agent, ConversationExt as _, Endpoint, Error, Event, HttpModel, Stop, Target, Totals,
};
use testserver::{ModelServer, Reply};

use crate::streams::ScriptedReply;
use crate::tools::Load;
use crate::{TARGETS, agent, conversation, model};

fn text_reply(text: &str, input: u64, output: u64) -> ScriptedReply {
    ScriptedReply { usage: Some((input, 0, output)), ..ScriptedReply::text(text) }
}

#[tokio::test]
async fn a_reopened_store_has_the_manifests_of_all_calls() {
    let folder = tempfile::tempdir().unwrap();
    let address = format!("sqlite:{}", folder.path().join("conversations.db").display());
    for target in TARGETS {
        let name = target.name();
        let server = ModelServer::replying([
            ScriptedReply::call("c1", "load", r#"{"host":"a"}"#).streamed(target),
            ScriptedReply { thinking: "Hm.", signature: "c2ln", ..ScriptedReply::text("Idle.") }
                .streamed(target),
            Reply::json(400, "{}"),
            ScriptedReply::text("Yes.").streamed(target),
        ]);
        let model = || model(target, &server);
        let recto = Recto::open(&address).await.unwrap();
        let conversation = recto.create(name, Settings::default()).await.unwrap();
        let first = Agent::new(conversation, model()).tool(Load);
        first.conversation().append([Message::system("Be brief.")]).await.unwrap();
        first.send(Message::user("Is a idle?")).await.unwrap();
        first.send(Message::user("Sure?")).await.unwrap_err();
        drop((first, recto));

        let recto = Recto::open(&address).await.unwrap();
        let conversation = recto.conversation(name).await.unwrap();
        let agent = Agent::new(conversation, model()).tool(Load);
        agent.send(Message::user("Sure, now?")).await.unwrap();
        let calls = agent.calls().await.unwrap();
        assert_eq!(calls.iter().map(|call| call.number).collect::<Vec<_>>(), [1, 2, 3, 4]);
        assert!(calls.iter().all(|call| call.target == name && call.model == "m-1"));
        assert_eq!(calls[2].usage, None);
        assert!(calls[2].failure.as_deref().unwrap().contains("400"), "{:?}", calls[2].failure);
        let received = server.received();
        for (call, received) in calls.iter().zip(&received) {
            // Exactly the bytes that were sent.
            assert_eq!(agent.request_of_call(call.number).await.unwrap().as_bytes(), received.body);
            assert_eq!(call.bytes, received.body.len() as u64);
        }
        let error = agent.request_of_call(5).await.unwrap_err();
        assert!(matches!(error, Error::CallNotFound { number: 5, calls: 4 }), "{error}");
        let report = recto.conversation(name).await.unwrap().verify().await;
        assert!(report.is_ok(), "{report:?}");
    }
}

#[tokio::test]
async fn the_manifest_of_a_failed_call_is_in_the_log_but_in_no_view() {
    let server = ModelServer::replying([Reply::json(403, "{}")]);
    let agent = agent(Target::OpenAiChat, &server).await;
    let conversation = agent.conversation();
    conversation.append([Message::user("Hi")]).await.unwrap();
    let before = conversation.stats().await.unwrap();
    agent.run(&Default::default()).await.unwrap_err();
    let after = conversation.stats().await.unwrap();
    assert_eq!(after.total_messages, before.total_messages + 1);
    assert_eq!(after.current_batch_messages, before.current_batch_messages);
    assert_eq!((after.total_batches, after.tokens), (before.total_batches, before.tokens));
    let note = conversation.message(LogIndex(1)).await.unwrap().unwrap();
    assert!(note.text().starts_with("[no reply to call 1: "), "{}", note.text());
    // It can be undone like any request, and the view is the same.
    conversation.apply(Undo).await.unwrap();
    assert_eq!(conversation.messages().await.unwrap().len(), 1);
}

#[tokio::test]
async fn the_request_of_a_call_is_not_reproducible_after_a_message_was_erased() {
    let server = ModelServer::replying([ScriptedReply::text("Noted.").streamed(Target::Anthropic)]);
    let agent = agent(Target::Anthropic, &server).await;
    agent.send(Message::user("My password is hunter2.")).await.unwrap();
    agent.request_of_call(1).await.unwrap();
    agent.conversation().erase(LogIndex(0)).await.unwrap();
    let error = agent.request_of_call(1).await.unwrap_err().to_string();
    assert!(error.contains("erased") && !error.contains("hunter2"), "{error}");
}

#[tokio::test]
async fn a_rollback_changes_cumulative_totals_but_not_lifetime_totals() {
    let target = Target::OpenAiChat;
    let server = ModelServer::replying([
        text_reply("a", 100, 1).streamed(target),
        text_reply("b", 200, 2).streamed(target),
        text_reply("c", 400, 4).streamed(target),
        Reply::json(400, "{}"),
        text_reply("d", 800, 8).streamed(target),
        text_reply("", 1_600, 16).streamed(target),
        text_reply("e", 3_200, 32).streamed(target),
    ]);
    let agent = agent(target, &server).await;
    let conversation = agent.conversation();
    let input = |totals: Totals| (totals.calls, totals.usage.input, totals.usage.output);
    for question in ["1", "2", "3"] {
        agent.send(Message::user(question)).await.unwrap();
    }
    assert_eq!(input(agent.cumulative_totals().await.unwrap()), (3, 700, 7));
    // Back to the first answer.
    conversation.apply(Rollback::ToVersion(Version(2))).await.unwrap();
    assert_eq!(input(agent.cumulative_totals().await.unwrap()), (1, 100, 1));
    assert_eq!(input(agent.lifetime_totals().await.unwrap()), (3, 700, 7));
    // A failure counts as a call, and nothing else.
    agent.send(Message::user("4")).await.unwrap_err();
    assert_eq!(input(agent.cumulative_totals().await.unwrap()), (2, 100, 1));
    let run = agent.send(Message::user("5")).await.unwrap();
    assert_eq!((run.stop, run.text.as_str()), (Stop::Done, "d"));
    assert_eq!(input(agent.cumulative_totals().await.unwrap()), (3, 900, 9));
    assert_eq!(input(agent.lifetime_totals().await.unwrap()), (5, 1_500, 15));
    // UNDO changes the cumulative totals too, and a new agent has the same totals.
    conversation.apply(Undo).await.unwrap();
    let fresh = Agent::new(conversation.clone(), model(target, &server));
    for agent in [&agent, &fresh] {
        assert_eq!(input(agent.cumulative_totals().await.unwrap()), (2, 100, 1));
        assert_eq!(input(agent.lifetime_totals().await.unwrap()), (5, 1_500, 15));
    }
    // An empty reply has usage too.
    assert_eq!(agent.send(Message::user("6")).await.unwrap().stop, Stop::Empty);
    assert_eq!(input(agent.cumulative_totals().await.unwrap()), (3, 1_700, 17));
    let call = agent.call(6).await.unwrap();
    assert_eq!((input(call.cumulative), input(call.lifetime)), ((3, 1_700, 17), (6, 3_100, 31)));
}

#[tokio::test]
async fn costs_come_from_the_price_table() {
    let prices = recto_format::PriceTable::from_json(
        r#"{"models":[{"model":"m-","input":10,"cached":1,"output":50}]}"#,
    );
    let reply = ScriptedReply { usage: Some((1_000, 400, 20)), ..ScriptedReply::text("ok") };
    let target = Target::Anthropic;
    let server = ModelServer::replying([reply.streamed(target), reply.streamed(target)]);
    let agent = agent(target, &server).await.prices(prices.unwrap());
    agent.send(Message::user("Hi")).await.unwrap();
    agent.send(Message::user("Hi")).await.unwrap();
    // Twice 600 × 10 + 400 × 1 + 20 × 50, in millionths.
    assert!((agent.cumulative_totals().await.unwrap().cost - 2.0 * 0.0074).abs() < 1e-12);
}

#[tokio::test]
async fn the_calibration_is_accurate_after_a_few_reports() {
    let target = Target::Anthropic;
    // This model counts 1.5 tokens per word, and 9 tokens per request.
    let server = ModelServer::answering(move |received| {
        let request: serde_json::Value = serde_json::from_slice(&received.body).unwrap();
        let texts = request["messages"].as_array().unwrap().iter().map(|message| {
            let content = &message["content"];
            let text = content.as_str().or(content[0]["text"].as_str()).unwrap();
            text.split_whitespace().count() as u64
        });
        let input = texts.sum::<u64>() * 3 / 2 + 9;
        text_reply("so it is, as far as anybody can tell from here", input, 10).streamed(target)
    });
    let expected = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let events = expected.clone();
    let agent = agent(target, &server).await.on_event(move |event| {
        if let Event::CallEnded(call) = event {
            events.lock().unwrap().push((call.expected, call.usage.unwrap().input));
        }
    });
    for _ in 0..12 {
        let question = "tell me something that is long enough to be counted ".repeat(8);
        agent.send(Message::user(&question)).await.unwrap();
    }
    let known = agent.calibration().await.unwrap();
    assert_eq!(known.reports, 12);
    assert!(known.error.unwrap() < 0.02, "{known:?}");
    let relative_error =
        |&(expected, reported): &(u64, u64)| (expected as f64 / reported as f64 - 1.0).abs();
    let expected = expected.lock().unwrap().clone();
    assert!(relative_error(&expected[0]) > 0.2, "{expected:?}");
    assert!(expected[3..].iter().all(|pair| relative_error(pair) < 0.03), "{expected:?}");
    // Another agent computes the same factor from the manifests.
    let other = Agent::new(agent.conversation().clone(), model(target, &server));
    let factor = other.calibration().await.unwrap().factor;
    assert!((factor - known.factor).abs() < 0.01, "{factor} {known:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_agents_number_their_calls_without_gaps() {
    let folder = tempfile::tempdir().unwrap();
    let address = format!("sqlite:{}", folder.path().join("conversations.db").display());
    let target = Target::OpenAiChat;
    let mut turn = 0;
    let server = ModelServer::answering(move |_| {
        turn += 1;
        match turn % 5 {
            0 => Reply::json(400, "{}"),
            1 => text_reply("", 1, 1).streamed(target),
            _ => text_reply("ok", 1, 1).streamed(target),
        }
    });
    Recto::open(&address).await.unwrap().create("conversation", Settings::default()).await.unwrap();
    let mut tasks = Vec::new();
    for agent in 0..4 {
        // Each agent opens the store itself, like a separate process.
        let recto = Recto::open(&address).await.unwrap();
        let conversation = recto.conversation("conversation").await.unwrap();
        let agent = (agent, Agent::new(conversation, model(target, &server)));
        tasks.push(tokio::spawn(async move {
            for turn in 0..10 {
                let question = format!("question {turn} of {}", agent.0);
                let _ = agent.1.send(Message::user(&question)).await;
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let recto = Recto::open(&address).await.unwrap();
    let agent =
        Agent::new(recto.conversation("conversation").await.unwrap(), model(target, &server));
    let calls = agent.calls().await.unwrap();
    let numbers: Vec<u64> = calls.iter().map(|call| call.number).collect();
    assert_eq!(numbers, (1..=40).collect::<Vec<u64>>());
    // The totals count every call once.
    let last = calls.last().unwrap();
    assert_eq!((last.lifetime.calls, last.lifetime.usage.input), (40, 32));
    for call in &calls {
        assert_eq!(call.lifetime.calls, call.number);
        assert_eq!(call.cumulative.calls, call.number);
        agent.request_of_call(call.number).await.unwrap();
    }
}

#[tokio::test]
async fn a_message_appended_from_a_child_is_not_a_call_of_the_parent() {
    let target = Target::Anthropic;
    let server = ModelServer::replying([
        text_reply("one", 10, 1).streamed(target),
        ScriptedReply { thinking: "Hm.", signature: "c2ln", ..text_reply("two", 20, 2) }
            .streamed(target),
        text_reply("three", 40, 4).streamed(target),
    ]);
    let parent = agent(target, &server).await;
    parent.send(Message::user("1")).await.unwrap();
    let conversation = parent.conversation();
    let child = conversation.fork("child", conversation.version().await.unwrap()).await.unwrap();
    let child = Agent::new(child, model(target, &server));
    child.send(Message::user("2")).await.unwrap();
    assert_eq!(child.call(2).await.unwrap().usage.unwrap().input, 20);
    let newest = recto::Truncate { keep_last: Some(1), ..Default::default() };
    conversation.append_from_child(child.conversation(), newest).await.unwrap();
    assert_eq!(parent.calls().await.unwrap().len(), 1);
    parent.send(Message::user("3")).await.unwrap();
    let numbers: Vec<u64> = parent.calls().await.unwrap().iter().map(|call| call.number).collect();
    assert_eq!(numbers, [1, 2]);
    assert_eq!(parent.request_of_call(2).await.unwrap().as_bytes(), server.received()[2].body);
    assert_eq!(parent.cumulative_totals().await.unwrap().usage.input, 50);
    // The rest of the message is unchanged: the signature and the source.
    let view = conversation.messages().await.unwrap();
    let json = view[2].message.json();
    assert!(json.contains(r#""signature":"c2ln""#) && json.contains(r#""source":{"#), "{json}");
    assert!(json.contains(r#""handedBack":{"#) && !json.contains("sha256"), "{json}");
}

#[tokio::test]
async fn operations_of_a_workflow_may_have_any_form() {
    let recto = recto::Recto::open("memory:").await.unwrap();
    let create = |name| recto.create(name, recto::Settings::counting_with(recto::Approx));
    let (child, parent) = (create("child").await.unwrap(), create("parent").await.unwrap());
    child.append(["one", "two", "three"].map(recto::Message::user)).await.unwrap();
    for operation in [
        r#"{"operation": "BATCH_START"}"#,
        r#"{"operation": "truncate", "truncate": {"keepLast": 2}}"#,
        r#"{"operation": "delete", "indices": [1]}"#,
    ] {
        child.apply_json(operation).await.unwrap();
    }
    assert_eq!(child.messages().await.unwrap().len(), 1);
    for (operation, messages) in [
        (r#"{"operation": "filter", "filter": {"contentContains": ["three"]}}"#, 1),
        (r#"{"operation": "delete", "indices": [0]}"#, 2),
    ] {
        let operation = recto::Request::from_json(operation).unwrap();
        parent.append_from_child(&child, operation).await.unwrap();
        assert_eq!(parent.messages().await.unwrap().len(), messages);
    }
}

#[tokio::test]
async fn thinking_that_an_edit_made_invalid_is_not_sent() {
    let target = Target::Anthropic;
    let server = ModelServer::replying([1, 2].map(|_| ScriptedReply::text("ok").streamed(target)));
    let endpoint = Endpoint::new(format!("{}/v1", server.url()), "claude-fable-5-1").key("k");
    let agent = Agent::new(conversation().await, HttpModel::new(target, endpoint).unwrap());
    let answer = serde_json::json!({ "role": "assistant",
        "content": [{ "type": "thinking", "text": "Hm.", "signature": "c2ln" },
            { "type": "text", "text": "Yes." }],
        "metadata": { "source": { "provider": "anthropic", "model": "claude-fable-5-1" } } });
    let answer = Message::from_json(&answer.to_string()).unwrap();
    agent.conversation().append([Message::user("Is a idle?"), answer]).await.unwrap();
    agent.send(Message::user("Sure?")).await.unwrap();
    let replaced = Replace { index: Position(0), message: Message::user("Is b idle?") };
    agent.conversation().apply(replaced).await.unwrap();
    agent.send(Message::user("Sure, now?")).await.unwrap();
    let received = server.received();
    let sent: Vec<String> =
        received.iter().map(|it| String::from_utf8_lossy(&it.body).into_owned()).collect();
    assert!(sent[0].contains("c2ln"), "{}", sent[0]);
    assert!(sent[1].contains("Is b idle?") && !sent[1].contains("c2ln"), "{}", sent[1]);
    for (number, sent) in (1..).zip(&sent) {
        assert_eq!(agent.request_of_call(number).await.unwrap(), *sent);
    }
}
