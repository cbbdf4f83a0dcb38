//! Recto's own work for a turn: token check, render, record, commit. What the model takes is taken off.
//!
//! A conversation of 10,000 messages in a SQLite file, of which 200 are visible; a provider on loopback.

#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use recto::{Message, Recto, Settings, Truncate};
use recto_agent::{
    Agent, Answer, BoxFuture, Budget, CallError, Endpoint, HttpModel, Model, Strategy, Target,
    Watch,
};
use testserver::{ModelServer, Reply};

/// A model whose time is taken.
struct Timed(HttpModel, Arc<AtomicU64>);

impl Model for Timed {
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
        watch: &'a Watch<'a>,
    ) -> BoxFuture<'a, Result<Answer, CallError>> {
        Box::pin(async move {
            let start = Instant::now();
            let answer = self.0.call(body, watch).await;
            self.1.fetch_add(start.elapsed().as_nanos() as u64, Ordering::SeqCst);
            answer
        })
    }
}

const STREAM: &str = concat!(
    r#"data: {"choices":[{"delta":{"content":"All is well, as far as I can see."}}]}"#,
    "\n\n",
    r#"data: {"choices":[{"delta":{},"finish_reason":"stop"}]}"#,
    "\n\n",
    r#"data: {"choices":[],"usage":{"prompt_tokens":12000,"completion_tokens":9}}"#,
    "\n\ndata: [DONE]\n\n",
);

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.expect("a runtime starts").block_on(measure());
}

async fn measure() {
    let messages = 10_000;
    let folder = tempfile::tempdir().expect("a folder for the file");
    let address = format!("sqlite:{}", folder.path().join("talks.db").display());
    let recto = Recto::open(&address).await.expect("the store opens");
    let talk = recto.create("talk", Settings::default()).await.expect("it is new");
    for chunk in 0..messages / 500 {
        let chunk = (0..250).flat_map(|turn| {
            let text =
                format!("turn {chunk}.{turn}: {}", "the gateway times out now and then ".repeat(6));
            [Message::user(&text), Message::assistant(&text)]
        });
        talk.append(chunk).await.expect("it is stored");
    }
    let cut = Truncate { keep_last: Some(200), ..Truncate::default() };
    talk.apply(cut).await.expect("it is stored");
    let server = ModelServer::answering(|_| Reply::stream(STREAM));
    let endpoint = Endpoint::new(format!("{}/v1", server.url()), "gpt-5");
    let model = HttpModel::openai_chat(endpoint).expect("the endpoint is fine");
    let in_model = Arc::new(AtomicU64::new(0));
    let agent = Agent::new(talk, Timed(model, in_model.clone())).budget(Budget {
        limit: Some(1_000_000),
        threshold: Some(900_000),
        target: 500_000,
        strategies: vec![Strategy::KeepSystemAndRecent],
        horizon: None,
    });
    let mut own = Vec::new();
    for turn in 0..60 {
        in_model.store(0, Ordering::SeqCst);
        let start = Instant::now();
        agent.say(Message::user(&format!("And now, in turn {turn}?"))).await.expect("it answers");
        own.push(start.elapsed() - Duration::from_nanos(in_model.load(Ordering::SeqCst)));
    }
    // The first turns open things.
    let mut own = own.split_off(10);
    own.sort();
    let (median, worst) = (own[own.len() / 2], own[own.len() * 95 / 100]);
    println!(
        "a turn on {messages} messages, 200 visible: {median:?} (95 %: {worst:?}), limit 3 ms"
    );
    parts(&agent).await;
    assert!(median < Duration::from_millis(3), "over the limit");
}

/// What the parts of a turn take by themselves.
async fn parts(agent: &Agent) {
    let talk = agent.conversation();
    let (mut append, mut read, mut render, mut version) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for turn in 0..40 {
        let start = Instant::now();
        talk.append([Message::user(&format!("turn {turn}"))]).await.expect("it is stored");
        append.push(start.elapsed());
        let start = Instant::now();
        let newest = talk.version().await.expect("it is there");
        version.push(start.elapsed());
        let start = Instant::now();
        let entries = talk.messages_at(newest).await.expect("they are there");
        read.push(start.elapsed());
        let start = Instant::now();
        let messages = entries.iter().map(|entry| &entry.message);
        let options = recto_format::RenderOptions::default();
        let rendered = recto_format::render(messages, Target::OpenAiChat, &options);
        render.push(start.elapsed());
        drop(rendered);
    }
    for (what, mut times) in [
        ("append and commit", append),
        ("the version", version),
        ("the view", read),
        ("render", render),
    ] {
        times.sort();
        println!("  {what}: {:?}", times[times.len() / 2]);
    }
}
