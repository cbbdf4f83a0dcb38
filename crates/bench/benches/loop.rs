//! Recto's own work for a turn: token check, render, record, commit. The time of the model is subtracted.
//!
//! The conversation has 10,000 messages in a SQLite file, of which 200 are visible. The provider is a server
//! on loopback.
//!
//! `--peer PYTHON SCRIPT` also measures the same turn with another program and the same provider, once before
//! Recto is measured and once after it. `--json` prints one line of JSON. `cargo xtask bench loop` passes both.

#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use recto::{Message, Recto, Settings, Truncate};
use recto_agent::{
    Agent, BoxFuture, Budget, CallContext, CallError, Endpoint, HttpModel, Model, Reply, Strategy,
    Target,
};
use testserver::{ModelServer, Reply as HttpReply};

/// A model whose calls are timed.
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
        context: &'a CallContext<'a>,
    ) -> BoxFuture<'a, Result<Reply, CallError>> {
        Box::pin(async move {
            let start = Instant::now();
            let answer = self.0.call(body, context).await;
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

/// The same reply without streaming, for programs that do not request a stream.
const WHOLE: &str = r#"{"choices":[{"message":{"role":"assistant","content":"All is well, as far as I can see."},"finish_reason":"stop"}],"usage":{"prompt_tokens":12000,"completion_tokens":9}}"#;

/// Number of turns that are run.
const TURNS: usize = 155;
/// Number of turns of a round. The first round is not counted, because its turns fill the caches. The result is
/// the median of the fastest other round, because other processes use the machine too.
const ROUND: usize = 5;
/// Number of visible messages before the first turn.
const VISIBLE: usize = 200;
/// Number of messages in the log before the first turn.
const MESSAGES: usize = 10_000;
/// Upper bound of the result.
const LIMIT: Duration = Duration::from_millis(3);

fn main() {
    // `cargo bench` adds the option `--bench`.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|it| it != "--bench").collect();
    let peer = arguments.iter().position(|it| it == "--peer");
    let peer = peer.and_then(|at| Some((arguments.get(at + 1)?, arguments.get(at + 2)?)));
    let is_json = arguments.iter().any(|it| it == "--json");
    let server = ModelServer::answering(|received| {
        match received.body.windows(13).any(|part| part == br#""stream":true"#) {
            true => HttpReply::stream(STREAM),
            false => HttpReply::json(200, WHOLE),
        }
    });
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.expect("a runtime starts");
    let ask_peer = || peer.map(|(python, script)| theirs(python, script, &server));
    // The other program runs before and after Recto, so that both have the same load of the machine.
    let before = ask_peer();
    let own = runtime.block_on(measure(&server, is_json));
    let after = ask_peer();
    let rounds = own[ROUND..].chunks(ROUND).map(|round| median_of(round.to_vec()));
    let median = rounds.min().expect("there are rounds");
    let usual = median_of(own[ROUND..].to_vec());
    let theirs = before.zip(after).map(|(before, after)| before.min(after));
    let ratio = theirs.map(|theirs| theirs.as_secs_f64() / median.as_secs_f64());
    if is_json {
        let millis = |time: Duration| time.as_secs_f64() * 1e3;
        let line = serde_json::json!({
            "messages": MESSAGES, "visible": VISIBLE, "recto": millis(median),
            "rectoUsual": millis(usual), "limit": millis(LIMIT), "langgraph": theirs.map(millis),
            "ratio": ratio, "passes": median < LIMIT,
        });
        println!("{line}");
    } else {
        println!("a turn on {MESSAGES} messages, {VISIBLE} visible, without the model's time:");
        println!("  Recto: {median:?} in the quickest round ({usual:?} over all), limit {LIMIT:?}");
        if let (Some(theirs), Some(ratio)) = (theirs, ratio) {
            println!(
                "  LangGraph, SummarizationMiddleware, SqliteSaver: {theirs:?}, {ratio:.0} × as long"
            );
        }
    }
    assert!(median < LIMIT, "a turn takes {median:?}, which is not under the limit of {LIMIT:?}");
}

fn median_of(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// The median of the fastest round of another program.
fn theirs(python: &str, script: &str, server: &ModelServer) -> Duration {
    let url = format!("{}/v1/chat/completions", server.url());
    let output = std::process::Command::new(python)
        .args([script, &url, &VISIBLE.to_string(), &TURNS.to_string(), &ROUND.to_string()])
        .stderr(std::process::Stdio::inherit())
        .output()
        .expect("the other program starts");
    let answer = String::from_utf8_lossy(&output.stdout);
    let line = answer.lines().rev().find_map(|line| serde_json::from_str(line).ok());
    let line: serde_json::Value = line.expect("it prints a line of JSON");
    Duration::from_secs_f64(line["median"].as_f64().expect("a median"))
}

/// The time of each turn, without the time of the model.
async fn measure(server: &ModelServer, is_json: bool) -> Vec<Duration> {
    let folder = tempfile::tempdir().expect("a folder for the file");
    let address = format!("sqlite:{}", folder.path().join("conversations.db").display());
    let recto = Recto::open(&address).await.expect("the store opens");
    let conversation = recto.create("conversation", Settings::default()).await.expect("it is new");
    for chunk in 0..MESSAGES / 500 {
        let chunk = (0..250).flat_map(|turn| {
            let text =
                format!("turn {chunk}.{turn}: {}", "the gateway times out now and then ".repeat(6));
            [Message::user(&text), Message::assistant(&text)]
        });
        conversation.append(chunk).await.expect("it is stored");
    }
    let cut = Truncate { keep_last: Some(VISIBLE), ..Truncate::default() };
    conversation.apply(cut).await.expect("it is stored");
    let endpoint = Endpoint::new(format!("{}/v1", server.url()), "gpt-5");
    let model = HttpModel::openai_chat(endpoint).expect("the endpoint is fine");
    let in_model = Arc::new(AtomicU64::new(0));
    let agent = Agent::new(conversation, Timed(model, in_model.clone())).budget(Budget {
        limit: Some(1_000_000),
        threshold: Some(900_000),
        target: 500_000,
        strategies: vec![Strategy::KeepSystemAndRecent],
        horizon: None,
    });
    let mut own = Vec::new();
    for turn in 0..TURNS {
        in_model.store(0, Ordering::SeqCst);
        let start = Instant::now();
        agent.send(Message::user(&format!("And now, in turn {turn}?"))).await.expect("it answers");
        own.push(start.elapsed() - Duration::from_nanos(in_model.load(Ordering::SeqCst)));
    }
    if !is_json {
        parts(&agent).await;
    }
    own
}

/// Measures the parts of a turn one by one, and prints the median time of each.
async fn parts(agent: &Agent) {
    let conversation = agent.conversation();
    let (mut append, mut read, mut render, mut version) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for turn in 0..40 {
        let start = Instant::now();
        conversation.append([Message::user(&format!("turn {turn}"))]).await.expect("it is stored");
        append.push(start.elapsed());
        let start = Instant::now();
        let newest = conversation.version().await.expect("it is there");
        version.push(start.elapsed());
        let start = Instant::now();
        let entries = conversation.messages_at(newest).await.expect("they are there");
        read.push(start.elapsed());
        let start = Instant::now();
        let messages = entries.iter().map(|entry| &entry.message);
        let options = recto_format::RenderOptions::default();
        let rendered = recto_format::render(messages, Target::OpenAiChat, &options);
        render.push(start.elapsed());
        drop(rendered);
    }
    println!("parts of a turn:");
    for (what, times) in [
        ("append and commit", append),
        ("the version", version),
        ("the view", read),
        ("render", render),
    ] {
        println!("  {what}: {:?}", median_of(times));
    }
}
