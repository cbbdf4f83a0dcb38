//! Random schedules of faults, cancels, crashes and restarts over whole runs. They are seeded: a failure
//! names the seed.

use std::future::poll_fn;
use std::task::Poll;

use recto::{Message, Recto, Role, Settings};
use recto_agent::{Agent, Budget, CancelToken, Event, HttpModel, Stop, Strategy, Target};
use testserver::{ModelServer, Reply};

use crate::streams::ScriptedReply;
use crate::tools::Load;
use crate::{TARGETS, check, endpoint};

/// Pseudo-random numbers (xorshift).
#[derive(Clone)]
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

/// A random reply: complete, cut, or an HTTP error.
fn reply(target: Target, dice: &mut Dice) -> Reply {
    let words = "so it goes on and on, é 漢 🙂 ".repeat(1 + dice.roll(8) as usize);
    let reply = match dice.roll(3) {
        0 => ScriptedReply::text(words),
        1 => ScriptedReply::call(&format!("c{}", dice.roll(1_000)), "load", r#"{"host":"a"}"#),
        _ => ScriptedReply { thinking: "Hm, é.", signature: "c2ln", ..ScriptedReply::text(words) }
            .and_call(&format!("a{}", dice.roll(1_000)), "load", r#"{"host":"a"}"#)
            .and_call(&format!("b{}", dice.roll(1_000)), "load", r#"{"host":"panic"}"#),
    };
    let reply = ScriptedReply { usage: None, ..reply };
    let events = reply.events(target);
    let cut = dice.roll(events.len() as u64 + 50) as usize;
    match dice.roll(10) {
        0 => Reply::json(429, "{}"),
        1 => Reply::json(500, "{}"),
        2 => Reply::json(400, "{}"),
        3 => Reply::cut(),
        4 | 5 => Reply::stream(events).in_pieces(7).cut_at(cut),
        6 => Reply::stream(&events.as_bytes()[..cut.min(events.len())]).in_pieces(11),
        _ => Reply::stream(events).in_pieces(1 + dice.roll(40) as usize),
    }
}

/// Polls a future at most `polls` times and then drops it, which simulates a crash.
async fn crash_after<T>(polls: u64, future: impl Future<Output = T>) -> Option<T> {
    let mut future = Box::pin(future);
    let mut left = polls;
    poll_fn(move |context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        future.as_mut().poll(context).map(Some)
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_every_schedule_the_conversation_can_be_continued() {
    let seeds =
        std::env::var("RECTO_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(5_u64);
    for seed in 1..=seeds {
        for target in TARGETS {
            let dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
            let ended = tokio::spawn(schedule(target, dice)).await;
            assert!(ended.is_ok(), "seed {seed} for {target}");
        }
    }
}

async fn schedule(target: Target, mut dice: Dice) {
    let folder = tempfile::tempdir().unwrap();
    let address = format!("sqlite:{}", folder.path().join("conversations.db").display());
    let is_fair = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (fair, mut server_dice) = (is_fair.clone(), dice.clone());
    let server =
        ModelServer::answering(move |_| match fair.load(std::sync::atomic::Ordering::SeqCst) {
            true => {
                ScriptedReply { usage: None, ..ScriptedReply::text("Here I am.") }.streamed(target)
            }
            false => reply(target, &mut server_dice),
        });
    let budget = Budget {
        limit: Some(2_000),
        threshold: Some(900),
        target: 500,
        strategies: vec![Strategy::ClearToolResults, Strategy::Summarise, Strategy::SlidingWindow],
        horizon: None,
    };
    let mut endpoint = endpoint(&server);
    endpoint.retry.max_attempts = 2;
    let model = HttpModel::new(target, endpoint).unwrap();
    let mut recto = Recto::open(&address).await.unwrap();
    recto.create("conversation", Settings::default()).await.unwrap();
    let mut acknowledged: Vec<String> = Vec::new();
    for step in 0..25 {
        let cancel = CancelToken::new();
        let (stop, at) = (cancel.clone(), dice.roll(30));
        let count = std::sync::atomic::AtomicU64::new(0);
        let agent = Agent::new(recto.conversation("conversation").await.unwrap(), model.clone())
            .tool(Load)
            .budget(budget.clone())
            .max_turns(4)
            .on_event(move |event| {
                let is_due = matches!(event, Event::Delta(_) | Event::ToolStarted { .. })
                    && count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == at;
                if is_due {
                    stop.cancel();
                }
            });
        let question = format!("question {step}");
        agent.conversation().append([Message::user(&question)]).await.unwrap();
        acknowledged.push(question);
        let polls = if dice.roll(3) == 0 { dice.roll(60) } else { u64::MAX };
        let _ = crash_after(polls, agent.run(&cancel)).await;
        if dice.roll(4) == 0 {
            drop((agent, recto));
            recto = Recto::open(&address).await.unwrap();
        }
    }
    is_fair.store(true, std::sync::atomic::Ordering::SeqCst);
    let agent = Agent::new(recto.conversation("conversation").await.unwrap(), model).budget(budget);
    let run = agent.send(Message::user("The last one.")).await.unwrap();
    assert_eq!((run.stop, run.text.as_str()), (Stop::Done, "Here I am."));
    // Every request was valid, the log has all acknowledged messages in order, and every call can be shown.
    for received in server.received() {
        check(target, &received.body);
    }
    let conversation = agent.conversation();
    let log = conversation
        .query(&recto::Query { scope: recto::Scope::All, ..Default::default() })
        .await
        .unwrap();
    let asked = log.iter().filter(|entry| entry.message.role() == Role::User);
    let asked = asked.map(|entry| entry.message.text()).filter(|text| text.starts_with("question"));
    assert_eq!(asked.collect::<Vec<_>>(), acknowledged);
    let bodies: Vec<Vec<u8>> = server.received().into_iter().map(|it| it.body).collect();
    for call in agent.calls().await.unwrap() {
        let sent = agent.request_of_call(call.number).await.unwrap();
        assert!(bodies.contains(&sent.into_bytes()), "call {}", call.number);
    }
    conversation.verify().await.unwrap();
}
