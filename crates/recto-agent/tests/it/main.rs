//! The loop against a scripted provider: real HTTP on loopback.

mod behind;
mod budget;
mod certificates;
mod chaos;
mod clients;
mod faults;
mod history;
mod ladder;
mod mcp;
mod observability;
mod secrets;
mod streams;
mod taken_back;
mod tools;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use recto::{Conversation, Recto, Settings};
use recto_agent::{Agent, Endpoint, Event, HttpModel, Retry, Target, Timeouts};
use testserver::ModelServer;

/// The three providers that have a client.
const TARGETS: [Target; 3] = [Target::OpenAiChat, Target::OpenAiResponses, Target::Anthropic];

/// An endpoint with short timeouts.
fn endpoint(server: &ModelServer) -> Endpoint {
    let mut endpoint = Endpoint::new(format!("{}/v1", server.url()), "m-1").key("sk-very-secret");
    endpoint.timeouts = Timeouts {
        connect: Duration::from_secs(5),
        first_byte: Duration::from_millis(1_500),
        idle: Duration::from_millis(1_000),
    };
    let (initial_delay, max_delay) = (Duration::from_millis(10), Duration::from_secs(3));
    endpoint.retry = Retry { max_attempts: 3, initial_delay, max_delay };
    endpoint
}

fn model(target: Target, server: &ModelServer) -> HttpModel {
    HttpModel::new(target, endpoint(server)).unwrap()
}

async fn conversation() -> Conversation {
    let recto = Recto::open("memory:").await.unwrap();
    recto.create("conversation", Settings::default()).await.unwrap()
}

async fn agent(target: Target, server: &ModelServer) -> Agent {
    Agent::new(conversation().await, model(target, server))
}

/// The path of a program among the examples of this crate. `cargo test` builds them with the tests.
fn example(name: &str) -> String {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().and_then(std::path::Path::parent).unwrap();
    let path = folder.join("examples").join(name).with_extension(std::env::consts::EXE_EXTENSION);
    assert!(
        path.exists(),
        "`--test` leaves examples out; build them: cargo build -p recto-agent --examples"
    );
    path.to_str().unwrap().to_owned()
}

/// Records the events of a run as short texts.
#[derive(Clone, Default)]
struct EventLog(Arc<Mutex<Vec<String>>>);

impl EventLog {
    fn attach(&self, agent: Agent) -> Agent {
        let events = self.clone();
        agent.on_event(move |event| {
            let word = match event {
                Event::TokenLimitExceeded { .. } => "tokenLimitExceeded".into(),
                Event::CompressionRequested { .. } => "compressionRequested".into(),
                Event::CompressionCompleted { strategy, before, after, .. } => {
                    assert!(after < before);
                    format!("compressionCompleted {strategy}")
                }
                Event::CompressionFailed { strategy, reason } => {
                    format!("compressionFailed {strategy}: {reason}")
                }
                Event::MessageHidden { entry } => format!("hidden {entry}"),
                Event::CompressionDeferred { .. } => "compressionDeferred".into(),
                Event::ToolEnded { name, is_error, .. } => format!("tool {name} {is_error}"),
                _ => return,
            };
            events.0.lock().unwrap().push(word);
        })
    }

    fn texts(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// Checks that the provider accepts the request, with validators that are independent of Recto.
fn check(target: Target, body: &[u8]) {
    let provider = testkit::provider::Provider::ALL.into_iter();
    let provider = provider.into_iter().find(|it| it.name() == target.name()).unwrap();
    let request = serde_json::from_slice(body).unwrap();
    if let Err(violation) = provider.check(&request) {
        panic!("{target}: {violation:?} in {}", String::from_utf8_lossy(body));
    }
}
