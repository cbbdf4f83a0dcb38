//! The `tracing` spans and events of a run: what they contain, and what they must not contain.

use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex};

use recto::Message;
use recto_agent::{Agent, Budget, Error, Strategy, Target};
use testserver::{ModelServer, Reply};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;

use crate::streams::ScriptedReply;
use crate::tools::Load;
use crate::{TARGETS, conversation, model};

/// Collects all spans, records and events as text, of every target and level.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<String>>);

struct Fields<'a>(&'a mut String);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {}={value:?}", field.name()).unwrap();
    }
}

impl Collector {
    fn line(&self, heading: &str, visit: impl FnOnce(&mut Fields<'_>)) {
        let mut text = self.0.lock().unwrap();
        text.push_str(heading);
        visit(&mut Fields(&mut text));
        text.push('\n');
    }

    fn text(&self) -> String {
        self.0.lock().unwrap().clone()
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Collector {
    fn on_new_span(&self, attributes: &Attributes<'_>, _: &Id, _: Context<'_, S>) {
        let name = attributes.metadata().name();
        self.line(&format!("span {name}:"), |fields| attributes.record(fields));
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let name = context.span(id).map_or("", |span| span.name());
        self.line(&format!("record {name}:"), |fields| values.record(fields));
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let level = event.metadata().level();
        self.line(&format!("{level}:"), |fields| event.record(fields));
    }
}

/// Runs an agent with a collector. The tests use one thread, so the collector receives all events of the run.
async fn collect(agent: &Agent, text: &str) -> (Result<(), Error>, String) {
    let collector = Collector::default();
    let subscriber = tracing_subscriber::registry().with(collector.clone());
    let guard = tracing::subscriber::set_default(subscriber);
    let run = agent.send(Message::user(text)).await.map(drop);
    drop(guard);
    (run, collector.text())
}

fn check_secrets(text: &str) {
    for secret in ["sk-very", "marmalade", "orchid", "velvet", "is idle", "tulip"] {
        assert!(!text.contains(secret), "{secret} is in {text}");
    }
}

#[tokio::test]
async fn spans_have_numbers_and_names_but_no_content_and_no_keys() {
    for target in TARGETS {
        let error = r#"{"error":{"message":"Bearer sk-very-secret asked about marmalade"}}"#;
        let server = ModelServer::replying([
            Reply::json(500, error),
            ScriptedReply::call("c1", "load", r#"{"host":"orchid"}"#)
                .and_call("c2", "tulip", "{}")
                .and_call("c3", "load", r#"{"host":"panic orchid"}"#)
                .streamed(target),
            ScriptedReply::text("The word is velvet.").streamed(target),
        ]);
        let agent = Agent::new(conversation().await, model(target, &server)).tool(Load);
        let (run, text) = collect(&agent, "Is marmalade busy?").await;
        run.unwrap();
        check_secrets(&text);
        let provider = target.name();
        for expected in [
            &format!("span model_call: provider=\"{provider}\" model=\"m-1\" purpose=\"reply\""),
            "WARN: message=an attempt of a model call failed status=500 failure=\"provider\"",
            "record model_call: status=500",
            "record model_call: status=200",
            "record model_call: attempts=2",
            "record model_call: call=1",
            "record model_call: call=2",
            "record model_call: finish=\"tool_calls\"",
            "record model_call: input_tokens=100",
            "record model_call: output_tokens=10",
            "record model_call: duration_ms=",
            "span tool_call: tool=\"load\"",
            "span tool_call: tool=\"unknown\"",
            "record tool_call: is_error=true",
            "record tool_call: is_error=false",
            "record tool_call: duration_ms=",
            "WARN: message=the tool panicked",
        ] {
            assert!(text.contains(expected), "{target}: {expected} is missing in {text}");
        }
    }
}

#[tokio::test]
async fn the_span_of_a_summary_has_its_call_number_and_no_content_of_failures() {
    let target = Target::OpenAiChat;
    let refusal = r#"{"error":{"message":"marmalade is not allowed, sk-very-secret"}}"#;
    let server = ModelServer::replying([
        ScriptedReply { usage: None, ..ScriptedReply::text("They spoke of velvet.") }
            .streamed(target),
        Reply::json(400, refusal),
    ]);
    let budget = Budget {
        threshold: Some(500),
        target: 200,
        strategies: vec![Strategy::Summarise],
        ..Budget::default()
    };
    let agent = Agent::new(conversation().await, model(target, &server)).budget(budget);
    crate::budget::fill(&agent, 20).await;
    let (run, text) = collect(&agent, "And marmalade?").await;
    assert!(run.is_err());
    check_secrets(&text);
    assert!(!text.contains("why is that so"), "{text}");
    for expected in ["purpose=\"summary\"", "record model_call: call=1", "failure=\"refused\""] {
        assert!(text.contains(expected), "{expected} is missing in {text}");
    }
}
