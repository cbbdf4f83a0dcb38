//! Tools: concurrent calls, errors, cancellation, and the tools of a conversation.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use recto::{BatchIndex, Counter, Mark, Message, PINNED, Redo, Rollback, Tool, Undo, Version};
use recto_agent::{
    Agent, BoxFuture, CancelToken, CommandTool, RunTool, Stop, Strategy, Target, ToolInput,
    ToolOutput,
};
use serde_json::json;
use testserver::ModelServer;

use crate::streams::ScriptedReply;
use crate::{TARGETS, agent, check};

/// A tool that returns the load of a host. It panics if the host is named `panic`.
pub(crate) struct Load;

impl RunTool for Load {
    fn describe(&self) -> Tool {
        Tool::from_json(
            r#"{"name":"load","description":"How busy a host is.","input_schema":{"type":"object","properties":{"host":{"type":"string"}}}}"#,
        )
        .unwrap()
    }

    fn run<'a>(&'a self, input: ToolInput<'a>) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            assert!(!input.json.contains("panic"), "this tool panics, as the test wants");
            ToolOutput::ok(format!("{} is idle", input.json))
        })
    }
}

/// A tool that waits until all calls run.
struct Together(Arc<AtomicUsize>, usize);

impl RunTool for Together {
    fn describe(&self) -> Tool {
        Tool::new("my tool", "A name that no provider takes.")
    }

    fn run<'a>(&'a self, input: ToolInput<'a>) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            self.0.fetch_add(1, Ordering::SeqCst);
            while self.0.load(Ordering::SeqCst) < self.1 && !input.cancel.is_cancelled() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            ToolOutput::ok(input.id)
        })
    }
}

#[tokio::test]
async fn parallel_calls_run_at_the_same_time_under_their_own_names() {
    for target in TARGETS {
        // The model calls the tool by the name in the request.
        let server = ModelServer::answering(move |received| {
            let body = String::from_utf8_lossy(&received.body);
            if body.contains("call_2") {
                return ScriptedReply::text("Done.").streamed(target);
            }
            let request: serde_json::Value = serde_json::from_str(&body).unwrap();
            let tool = &request["tools"][0];
            let name = tool["name"].as_str().or(tool["function"]["name"].as_str()).unwrap();
            assert_ne!(name, "my tool");
            ScriptedReply::call("call_1", name, "{}")
                .and_call("call_2", name, "{}")
                .streamed(target)
        });
        let count = Arc::new(AtomicUsize::new(0));
        let agent = agent(target, &server).await.tool(Together(count, 2));
        let run = agent.send(Message::user("Both, please.")).await.unwrap();
        assert_eq!((run.stop, run.turns), (Stop::Done, 2));
        let entries = agent.conversation().messages().await.unwrap();
        let calls: Vec<String> = entries
            .iter()
            .flat_map(|entry| entry.message.tool_calls())
            .map(|call| call.name.into_owned())
            .collect();
        assert_eq!(calls, ["my tool", "my tool"]);
        let results = entries.iter().flat_map(|entry| entry.message.tool_result_ids());
        assert_eq!(results.collect::<Vec<_>>(), ["call_1", "call_2"]);
        for received in server.received() {
            check(target, &received.body);
        }
    }
}

#[tokio::test]
async fn cancelled_tools_have_results() {
    let server = ModelServer::replying([
        ScriptedReply::call("c1", "my_tool", "{}").streamed(Target::OpenAiChat),
        ScriptedReply::text("As you like.").streamed(Target::OpenAiChat),
    ]);
    struct Forever;
    impl RunTool for Forever {
        fn describe(&self) -> Tool {
            Tool::new("my_tool", "Takes for ever.")
        }
        fn run<'a>(&'a self, _: ToolInput<'a>) -> BoxFuture<'a, ToolOutput> {
            Box::pin(std::future::pending())
        }
    }
    let cancel = CancelToken::new();
    let stop = cancel.clone();
    let agent = agent(Target::OpenAiChat, &server).await.tool(Forever).on_event(move |event| {
        if matches!(event, recto_agent::Event::ToolStarted { .. }) {
            stop.cancel();
        }
    });
    agent.conversation().append([Message::user("Go.")]).await.unwrap();
    assert_eq!(agent.run(&cancel).await.unwrap().stop, Stop::Cancelled);
    let entries = agent.conversation().messages().await.unwrap();
    let last = entries.last().unwrap().message.json();
    assert!(last.contains("was cancelled") && last.contains("\"is_error\":true"), "{last}");
    assert_eq!(agent.send(Message::user("Stop.")).await.unwrap().stop, Stop::Done);
    check(Target::OpenAiChat, &server.received()[1].body);
}

#[cfg(unix)]
#[tokio::test]
async fn a_program_is_a_tool() {
    let tool = Tool::from_json(
        r#"{"name":"count","description":"Counts.","parameters":{"type":"object"}}"#,
    );
    let server = ModelServer::replying([
        ScriptedReply::call("c1", "count", r#"{"a": "four"}"#).streamed(Target::Anthropic),
        ScriptedReply::text("13 bytes.").streamed(Target::Anthropic),
    ]);
    let program = CommandTool::new(tool.unwrap(), "wc").arguments(["-c"]);
    let agent = agent(Target::Anthropic, &server).await.tool(program);
    assert_eq!(agent.send(Message::user("How long?")).await.unwrap().text, "13 bytes.");
    let body = String::from_utf8(server.received()[1].body.clone()).unwrap();
    assert!(body.contains(r#""tool_use_id":"c1","content":"13\n""#), "{body}");
}

#[tokio::test]
async fn a_model_that_calls_tools_without_end_is_stopped() {
    let mut number = 0;
    let server = ModelServer::answering(move |_| {
        number += 1;
        ScriptedReply::call(&format!("c{number}"), "load", "{}").streamed(Target::OpenAiResponses)
    });
    let agent = agent(Target::OpenAiResponses, &server).await.tool(Load).max_turns(7);
    let run = agent.send(Message::user("Go.")).await.unwrap();
    assert_eq!((run.stop, run.turns), (Stop::TurnLimit, 7));
    assert_eq!(server.received().len(), 7);
    let _: &Agent = &agent;
}

#[tokio::test]
async fn items_after_reasoning_are_sent_back_unchanged() {
    let target = Target::OpenAiResponses;
    let thought =
        ScriptedReply { thinking: "Hm.", signature: "c2ln", ..ScriptedReply::text("I look.") };
    let server = ModelServer::replying([
        thought.and_call("c1", "load", r#"{"host":"web-1"}"#).streamed(target),
        ScriptedReply::text("Idle.").streamed(target),
    ]);
    let agent = agent(target, &server).await.tool(Load);
    agent.send(Message::user("How busy is web-1?")).await.unwrap();
    let received = server.received();
    let request: serde_json::Value = serde_json::from_slice(&received[1].body).unwrap();
    let items = request["input"].as_array().unwrap();
    let ids: Vec<_> = items.iter().filter_map(|item| item["id"].as_str()).collect();
    assert_eq!(ids, ["rs_1", "msg_1", "fc_c1"]);
    check(target, &received[1].body);
}

/// Tools that the provider runs, and items that are not known here.
#[tokio::test]
async fn items_and_blocks_of_the_provider_are_sent_back_unchanged() {
    let event = |data: &serde_json::Value| {
        format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap())
    };
    let items = json!([
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2ln"},
        {"type": "tool_search_call", "id": "ts_1", "call_id": null, "execution": "server",
            "arguments": {}, "status": "completed"},
        {"type": "tool_search_output", "id": "tso_1", "call_id": null, "execution": "server",
            "status": "completed", "tools": []},
        {"type": "agent_message", "id": "am_1", "content": []},
    ]);
    let response = json!({"id": "resp_1", "model": "m-1-2026", "status": "completed",
        "output": items, "error": null});
    let responses = event(&json!({"type": "response.completed", "response": response}));
    let blocks = json!([
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "advisor", "input": {}},
        {"type": "advisor_tool_result", "tool_use_id": "srvtoolu_1",
            "content": {"type": "advisor_result", "text": "ok"}},
        {"type": "fallback", "model": "m-0"},
    ]);
    let usage = json!({"input_tokens": 1, "output_tokens": 1});
    let message = json!({"id": "msg_1", "type": "message", "role": "assistant",
        "model": "m-1-2026", "content": [], "usage": usage});
    let mut anthropic = event(&json!({"type": "message_start", "message": message}));
    for (index, block) in blocks.as_array().unwrap().iter().enumerate() {
        anthropic +=
            &event(&json!({"type": "content_block_start", "index": index, "content_block": block}));
        anthropic += &event(&json!({"type": "content_block_stop", "index": index}));
    }
    anthropic += &event(&json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"},
        "usage": usage}));
    anthropic += &event(&json!({"type": "message_stop"}));
    for (target, stream, sent) in
        [(Target::OpenAiResponses, responses, items), (Target::Anthropic, anthropic, blocks)]
    {
        let server = ModelServer::replying([
            testserver::Reply::stream(stream),
            ScriptedReply::text("Idle.").streamed(target),
        ]);
        let agent = agent(target, &server).await;
        agent.send(Message::user("How busy is web-1?")).await.unwrap();
        agent.send(Message::user("And now?")).await.unwrap();
        let received = server.received();
        let request: serde_json::Value = serde_json::from_slice(&received[1].body).unwrap();
        let list = match target {
            Target::Anthropic => request["messages"][1]["content"].as_array().unwrap(),
            _ => &request["input"].as_array().unwrap()[1..5].to_vec(),
        };
        assert_eq!(json!(list), sent, "{request}");
    }
}

/// OpenRouter streams signed thinking in pieces and requires it unchanged with the results.
#[tokio::test]
async fn reasoning_details_of_a_router_are_sent_back_with_the_results() {
    let chunk = |delta: serde_json::Value, finish: Option<&str>| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        format!("data: {}\n\n", json!({"id": "gen-1", "model": "m", "choices": [choice]}))
    };
    let detail = |fields: serde_json::Value| {
        let mut detail = json!({"type": "reasoning.text", "index": 0, "format": "anthropic-v1"});
        detail.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        detail
    };
    let encrypted = json!({"type": "reasoning.encrypted", "data": "ZW5j", "index": 1});
    let function = json!({"name": "load", "arguments": "{\"host\":\"web-1\"}"});
    let call = json!({"index": 0, "id": "c1", "type": "function", "function": function});
    let events = [
        // Both names of the text, as some servers send them.
        chunk(
            json!({"reasoning": "Two ", "reasoning_content": "Two ",
            "reasoning_details": [detail(json!({"text": "Two "}))]}),
            None,
        ),
        chunk(
            json!({"reasoning": "hosts.", "reasoning_details": [detail(json!({"text": "hosts."}))]}),
            None,
        ),
        chunk(json!({"reasoning_details": [detail(json!({"signature": "c2ln"}))]}), None),
        chunk(json!({"reasoning_details": [encrypted]}), None),
        chunk(json!({"tool_calls": [call]}), None),
        chunk(json!({}), Some("tool_calls")),
    ];
    let target = Target::OpenAiChat;
    let stream = testserver::Reply::stream(events.concat() + "data: [DONE]\n\n");
    let server = ModelServer::replying([stream, ScriptedReply::text("Idle.").streamed(target)]);
    let agent = agent(target, &server).await.tool(Load);
    agent.send(Message::user("How busy is web-1?")).await.unwrap();
    let received = server.received();
    let request: serde_json::Value = serde_json::from_slice(&received[1].body).unwrap();
    let reply = request["messages"].as_array().unwrap();
    let reply = reply.iter().find(|message| message["role"] == "assistant").unwrap();
    let whole = detail(json!({"text": "Two hosts.", "signature": "c2ln"}));
    assert_eq!(reply["reasoning_details"], json!([whole, encrypted]), "{reply}");
    assert!(reply.get("reasoning_content").is_none(), "{reply}");
    let entries = agent.conversation().messages().await.unwrap();
    let stored = entries.iter().find(|entry| entry.message.json().contains("Two hosts."));
    assert!(stored.unwrap().message.json().contains(r#"{"type":"thinking","text":"Two hosts."}"#));
}

/// Version 2026-10-21 rejects citations in texts of the user.
#[tokio::test]
async fn requests_follow_the_api_version_of_the_endpoint() {
    let target = Target::Anthropic;
    let cited = r#"{"role":"user","content":[{"type":"text","text":"The sky is blue.","citations":[{"type":"char_location","cited_text":"blue","document_index":0,"document_title":null,"start_char_index":0,"end_char_index":4}]}],"metadata":{"source":{"format":"anthropic","provider":"anthropic"}}}"#;
    for (version, header, is_sent) in
        [(None, "2023-06-01", true), (Some("2026-10-21"), "2026-10-21", false)]
    {
        let server = ModelServer::replying([ScriptedReply::text("Yes.").streamed(target)]);
        let mut endpoint = crate::endpoint(&server);
        endpoint.api_version = version.map(str::to_owned);
        let model = recto_agent::HttpModel::anthropic(endpoint).unwrap();
        let conversation = agent(target, &server).await.conversation().clone();
        let agent = Agent::new(conversation, model);
        agent.send(Message::from_json(cited).unwrap()).await.unwrap();
        let received = server.received();
        assert_eq!(received[0].header("anthropic-version"), Some(header));
        let body = String::from_utf8(received[0].body.clone()).unwrap();
        assert_eq!(body.contains("char_location"), is_sent, "{body}");
        // The manifest has the version, so the same bytes are rendered again.
        assert_eq!(agent.call(1).await.unwrap().api_version.as_deref(), version);
        assert_eq!(agent.request_of_call(1).await.unwrap(), body);
    }
}

#[tokio::test]
async fn an_agent_without_tools_keeps_those_of_the_conversation() {
    let target = Target::OpenAiChat;
    let server = ModelServer::answering(move |_| ScriptedReply::text("Fine.").streamed(target));
    let with_tools = agent(target, &server).await.tool(Load);
    with_tools.send(Message::user("Hi!")).await.unwrap();
    let conversation = with_tools.conversation().clone();
    // The tool description precedes the question.
    let first = &conversation.messages().await.unwrap()[0].message;
    assert_eq!(first.role(), recto::Role::System);
    let without = Agent::new(conversation.clone(), crate::model(target, &server));
    without.send(Message::user("And now?")).await.unwrap();
    assert_eq!(conversation.tools().await.unwrap(), [Load.describe()]);
    let body = |at: usize| String::from_utf8(server.received()[at].body.clone()).unwrap();
    assert!(body(0).contains("load") && body(1).contains("load"), "{}", body(1));
}

#[tokio::test]
async fn a_tool_that_no_provider_accepts_is_not_stored() {
    struct Odd;
    impl RunTool for Odd {
        fn describe(&self) -> Tool {
            Tool::from_json(r#"{"name":"odd","description":"","input_schema":{"type":"array"}}"#)
                .unwrap()
        }
        fn run<'a>(&'a self, _: ToolInput<'a>) -> BoxFuture<'a, ToolOutput> {
            Box::pin(async { ToolOutput::ok("") })
        }
    }
    let server = ModelServer::replying([]);
    let agent = agent(Target::OpenAiChat, &server).await.tool(Odd);
    let error = agent.send(Message::user("Hi!")).await.unwrap_err();
    assert!(error.to_string().contains("odd"), "{error}");
    assert_eq!(agent.conversation().tools().await.unwrap(), []);
    assert_eq!(agent.conversation().messages().await.unwrap(), []);
}

#[tokio::test]
async fn a_tool_runs_only_with_an_object_as_input() {
    let inputs = [r#""{\"host\":\"a\"}""#, "[1]", "7", "null"];
    for target in TARGETS {
        let mut reply = ScriptedReply::call("c", "load", "{}");
        for (number, input) in inputs.iter().enumerate() {
            reply = reply.and_call(&format!("c{number}"), "load", input);
        }
        let server = ModelServer::replying([
            reply.streamed(target),
            ScriptedReply::text("Sorry.").streamed(target),
        ]);
        let events = crate::EventLog::default();
        let agent = events.attach(agent(target, &server).await.tool(Load));
        agent.send(Message::user("Go.")).await.unwrap();
        let ok = events.texts().iter().filter(|word| *word == "tool load false").count();
        let failed = events.texts().iter().filter(|word| *word == "tool load true").count();
        assert_eq!((ok, failed), (1, inputs.len()), "{target}: {:?}", events.texts());
    }
}

#[tokio::test]
async fn the_number_of_concurrent_calls_is_limited() {
    struct Busy(Arc<AtomicUsize>, Arc<AtomicUsize>);
    impl RunTool for Busy {
        fn describe(&self) -> Tool {
            Tool::new("busy", "Takes a while.")
        }
        fn run<'a>(&'a self, _: ToolInput<'a>) -> BoxFuture<'a, ToolOutput> {
            Box::pin(async move {
                let now = self.0.fetch_add(1, Ordering::SeqCst) + 1;
                self.1.fetch_max(now, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(5)).await;
                self.0.fetch_sub(1, Ordering::SeqCst);
                ToolOutput::ok("")
            })
        }
    }
    let target = Target::OpenAiChat;
    let reply = (0..40)
        .fold(ScriptedReply::text(""), |reply, n| reply.and_call(&format!("c{n}"), "busy", "{}"));
    let server = ModelServer::replying([
        reply.streamed(target),
        ScriptedReply::text("Done.").streamed(target),
    ]);
    let most = Arc::new(AtomicUsize::new(0));
    let agent = agent(target, &server).await.tool(Busy(Arc::default(), most.clone()));
    assert_eq!(agent.send(Message::user("Go.")).await.unwrap().stop, Stop::Done);
    assert_eq!(most.load(Ordering::SeqCst), 8);
}

/// The names of the tools in a request.
fn tool_names(body: &[u8]) -> Vec<String> {
    let request: serde_json::Value = serde_json::from_slice(body).unwrap();
    let tools = request["tools"].as_array().cloned().unwrap_or_default();
    let name = |tool: &serde_json::Value| {
        tool["name"].as_str().or(tool["function"]["name"].as_str()).unwrap().to_owned()
    };
    tools.iter().map(name).collect()
}

#[tokio::test]
async fn a_provider_receives_the_tools_without_their_description_after_every_rollback() {
    for target in TARGETS {
        let server = ModelServer::answering(move |_| ScriptedReply::text("Fine.").streamed(target));
        let agent = agent(target, &server).await.tool(Load);
        let conversation = agent.conversation();
        let stale = || vec![Tool::new("disk", "How full a disk is.")];
        agent.send(Message::user("1")).await.unwrap();
        let with_load = conversation.version().await.unwrap();
        conversation.set_tools(stale()).await.unwrap();
        let with_disk = conversation.version().await.unwrap();
        assert!(
            conversation
                .messages()
                .await
                .unwrap()
                .iter()
                .any(|it| it.message.text().contains("disk"))
        );
        agent.send(Message::user("2")).await.unwrap();
        // ROLLBACK to a version restores its tools, and the agent sets its own again.
        conversation.apply(Rollback::ToVersion(with_disk)).await.unwrap();
        assert_eq!(conversation.tools().await.unwrap(), stale());
        agent.send(Message::user("3")).await.unwrap();
        conversation.apply(Rollback::ToVersion(with_load)).await.unwrap();
        let before = conversation.version().await.unwrap();
        agent.send(Message::user("4")).await.unwrap();
        // The tools were already those of the agent, so only the question and the answer are new.
        assert_eq!(conversation.version().await.unwrap().0, before.0 + 2);
        // ROLLBACK to a batch keeps the tools.
        conversation.apply(Rollback::ToBatch(BatchIndex(0))).await.unwrap();
        agent.send(Message::user("5")).await.unwrap();
        conversation.apply(Rollback::ToVersion(Version(0))).await.unwrap();
        assert_eq!(conversation.tools().await.unwrap(), []);
        agent.send(Message::user("6")).await.unwrap();
        // A pinned description stays visible, even if it is stale.
        conversation.apply(Rollback::ToVersion(with_disk)).await.unwrap();
        let entries = conversation.messages().await.unwrap();
        let pinned = entries.iter().find(|it| it.message.text().contains("- disk: ")).unwrap();
        conversation
            .apply(Mark { indices: vec![pinned.index], mark: PINNED.into() })
            .await
            .unwrap();
        agent.send(Message::user("7")).await.unwrap();
        assert!(conversation.messages().await.unwrap().iter().any(|it| it.index == pinned.index));

        let received = server.received();
        assert_eq!(received.len(), 7);
        for (number, received) in (1..).zip(&received) {
            let body = String::from_utf8_lossy(&received.body);
            assert!(!body.contains("Available tools"), "{target} {number}: {body}");
            assert!(!body.contains("- load") && !body.contains("disk"), "{target}: {body}");
            assert_eq!(tool_names(&received.body), ["load"], "{target} {number}: {body}");
            check(target, &received.body);
            assert_eq!(agent.request_of_call(number).await.unwrap().as_bytes(), received.body);
        }
    }
}

#[tokio::test]
async fn the_agent_sets_its_tools_again_after_undo_and_redo() {
    let target = Target::OpenAiChat;
    let server = ModelServer::answering(move |_| ScriptedReply::text("Fine.").streamed(target));
    let agent = agent(target, &server).await.tool(Load);
    let conversation = agent.conversation();
    agent.send(Message::user("1")).await.unwrap();
    let load = conversation.tools().await.unwrap();
    conversation.set_tools(Vec::new()).await.unwrap();
    conversation.apply(Undo).await.unwrap();
    assert_eq!(conversation.tools().await.unwrap(), load);
    conversation.apply(Redo).await.unwrap();
    assert_eq!(conversation.tools().await.unwrap(), []);
    agent.send(Message::user("2")).await.unwrap();
    assert_eq!(conversation.tools().await.unwrap(), load);
    assert_eq!(tool_names(&server.received()[1].body), ["load"]);
}

#[tokio::test]
async fn a_tool_description_is_not_in_the_budget_and_no_strategy_hides_it() {
    let target = Target::Anthropic;
    let server = ModelServer::answering(move |_| {
        ScriptedReply { usage: None, ..ScriptedReply::text("Fine.") }.streamed(target)
    });
    let agent = agent(target, &server).await.tool(Load);
    let conversation = agent.conversation();
    agent.send(Message::user("1")).await.unwrap();
    let call = agent.call(1).await.unwrap();
    let entries = conversation.messages_at(call.version).await.unwrap();
    let (described, others): (Vec<_>, Vec<_>) =
        entries.iter().partition(|it| it.message.text().starts_with("Available tools:"));
    assert_eq!((described.len(), others.len()), (1, 1));
    let tools: String =
        conversation.tools().await.unwrap().iter().map(|it| it.json().to_owned()).collect();
    let counter = <dyn Counter>::named("o200k_base").unwrap();
    assert_eq!(call.counted, others[0].tokens + counter.count(&tools));
    // Even the strategy that hides system messages keeps it.
    crate::budget::fill(&agent, 20).await;
    let budget = crate::budget::budget(900, 400, 200, &[Strategy::KeepRecent]);
    let agent = agent.budget(budget);
    agent.send(Message::user("2")).await.unwrap();
    let call = agent.call(2).await.unwrap();
    assert_eq!(call.compressed[0].strategy, "keep-recent");
    assert!(agent.conversation().messages().await.unwrap()[0].index == described[0].index);
}
