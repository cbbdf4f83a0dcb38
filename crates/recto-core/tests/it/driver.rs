//! Sends the same JSON to the engine and to the model, and compares the responses.

use recto_core::{
    Approx, BatchIndex, Conversation, Error, LogIndex, Message, Outcome, Query, Request,
    SavedConversation, Scope, Settings, Tool, Version,
};
use serde_json::{Value, json};
use testkit::conformance::comparable_state;
use testkit::generate::Step;
use testkit::{Model, Refusal};

/// The engine and the model of one conversation.
pub(crate) struct Pair {
    pub(crate) engine: Conversation,
    pub(crate) model: Model,
    pub(crate) now: i64,
}

pub(crate) fn numbers(indices: impl IntoIterator<Item = LogIndex>) -> Vec<usize> {
    indices.into_iter().map(LogIndex::as_usize).collect()
}

/// The observable state of a conversation as text, to compare two states.
pub(crate) fn fingerprint(conversation: &Conversation) -> String {
    let versions: Vec<_> = conversation.versions().collect();
    let views: Vec<Vec<usize>> = versions
        .iter()
        .map(|info| numbers(conversation.at(info.version).expect("it exists").view().iter()))
        .collect();
    let marks: Vec<_> = conversation
        .marks()
        .labels()
        .map(|label| (label.to_owned(), numbers(conversation.marks().indices(label))))
        .collect();
    let log: Vec<_> = conversation.log().iter().map(|e| (e.timestamp, e.message.json())).collect();
    let batches: Vec<_> = (0..conversation.stats().total_batches)
        .map(|batch| {
            let snapshot = conversation.snapshot(BatchIndex(batch)).expect("it is on the path");
            (snapshot.reason.clone(), snapshot.timestamp, numbers(snapshot.view.iter()))
        })
        .collect();
    let tools = conversation.tools().map(|tools| tools.tools().to_vec());
    let stats = conversation.stats();
    let map = conversation.mark_map(Scope::All).expect("everything is loaded");
    let map = serde_json::to_string(&map).expect("it can be written");
    format!("{stats:?}{versions:?}{views:?}{marks:?}{log:?}{batches:?}{tools:?}{map}")
}

pub(crate) fn engine_for(model: &Model, now: i64) -> Conversation {
    let settings = model.settings();
    let tools = model.tools().iter().map(|tool| Tool::from_json(&tool.json.to_string()));
    let settings = Settings {
        tools: tools.collect::<Result<_, Error>>().expect("the tools are well-formed"),
        heading: settings.heading.clone(),
        media_tokens: settings.media_tokens,
        ..Settings::counting_with(Approx)
    };
    let messages = model.initial_messages().as_array().expect("a list of messages").iter();
    let messages: Vec<Message> = messages
        .map(|message| Message::from_json(&message.to_string()).expect("it is well-formed"))
        .collect();
    Conversation::with_messages(settings, &messages, now).expect("the heading is not empty")
}

/// The conversation after saving and loading.
pub(crate) fn reloaded(conversation: &Conversation) -> Conversation {
    let json = serde_json::to_string(&conversation.save()).expect("it can be written");
    let saved: SavedConversation = serde_json::from_str(&json).expect("it can be read");
    Conversation::load(&saved).expect("a saved conversation can be loaded")
}

impl Pair {
    pub(crate) fn new(model: Model, now: i64) -> Pair {
        Pair { engine: engine_for(&model, now), model, now }
    }

    /// Performs a step on both, and panics if they differ.
    pub(crate) fn step(&mut self, step: &Step) {
        self.now += 7;
        match step {
            Step::Apply(request) => {
                let actual = Request::from_json(&request.to_string())
                    .and_then(|request| self.engine.apply(request, self.now));
                let expected = self.model.apply(request, self.now);
                self.compare_results(actual, expected);
            }
            Step::SetTools(tools) => {
                let actual = Tool::list_from_json(&tools.to_string())
                    .and_then(|tools| self.engine.set_tools(tools, self.now));
                let expected = self.model.set_tools(tools, self.now);
                self.compare_results(actual, expected);
            }
            Step::Ask(query) => self.query(query),
            Step::MarkMap => {
                let map = self.engine.mark_map(Scope::Visible).expect("everything is loaded");
                assert_eq!(json!(map), self.model.mark_map());
            }
            Step::MarkMapOfAll => {
                let map = self.engine.mark_map(Scope::All).expect("everything is loaded");
                assert_eq!(json!(map), self.model.mark_map_of_all());
            }
            Step::State => {
                let state = self.engine.array_state().expect("everything is loaded");
                let (actual, expected) = (json!(state), self.model.state());
                assert_eq!(comparable_state(&actual), comparable_state(&expected));
            }
            Step::Snapshot(batch) => self.snapshot(*batch),
            Step::Diff(from, to) => self.diff(*from, *to),
        }
    }

    fn compare_results(
        &mut self,
        actual: Result<(Conversation, Outcome), Error>,
        expected: Result<testkit::Outcome, Refusal>,
    ) {
        match (actual, expected) {
            (Ok((engine, outcome)), Ok(expected)) => {
                self.engine = engine;
                compare(&outcome, &expected);
                self.compare_state();
            }
            (Err(error), Err(refusal)) => {
                assert_eq!(error.code().as_str(), refusal.code, "{error} | {}", refusal.message);
                if let Some(details) = refusal.details {
                    let actual = error.to_json()["error"]["details"].clone();
                    for (name, value) in details.as_object().expect("details are an object") {
                        assert_eq!(actual[name], *value, "{error}");
                    }
                }
            }
            (Ok(_), Err(refusal)) => panic!("only the model refused: {refusal}"),
            (Err(error), Ok(_)) => panic!("only the engine refused: {error}"),
        }
    }

    fn compare_state(&self) {
        let (engine, model) = (&self.engine, &self.model);
        assert_eq!(numbers(engine.view().iter()), model.view());
        assert_eq!(engine.log().len(), model.log_len());
        assert_eq!(u64::from(engine.version().0), model.version());
        let labels: Vec<&str> = engine.marks().labels().collect();
        let marks: Vec<&String> = model
            .marks()
            .iter()
            .filter(|(_, set)| !set.is_empty())
            .map(|(label, _)| label)
            .collect();
        assert_eq!(labels, marks);
        for label in labels {
            let expected: Vec<usize> = model.marks()[label].iter().copied().collect();
            assert_eq!(numbers(engine.marks().indices(label)), expected);
        }
    }

    /// Compares every entry, every version and every batch.
    pub(crate) fn compare_all(&self) {
        let (engine, model) = (&self.engine, &self.model);
        engine.verify().expect("the invariants of the engine hold");
        self.compare_state();
        for (index, entry) in engine.log().iter().enumerate() {
            assert_eq!(entry.message.text(), model.text(index));
            assert_eq!(entry.timestamp, model.timestamp(index));
            assert_eq!(entry.message.role().as_str(), model.role(index).name());
            let message: Value = serde_json::from_str(entry.message.json()).expect("it is JSON");
            assert_eq!(message, *model.message(index));
            let tokens = engine.log().tokens(LogIndex(index as u32));
            assert_eq!(tokens, Some(model.entry_tokens(index)));
        }
        for version in 0..=engine.version().0 {
            let at = engine.at(Version(version)).expect("it exists");
            let view = model.view_at(u64::from(version)).expect("it exists");
            assert_eq!(numbers(at.view().iter()), view);
            assert_eq!(at.log().len(), model.log_len_at(u64::from(version)).expect("it exists"));
        }
        for batch in 0..model.batches() {
            self.snapshot(batch);
        }
        let loaded = reloaded(engine);
        loaded.verify().expect("the invariants hold after loading");
        assert_eq!(fingerprint(&loaded), fingerprint(engine));
    }

    /// Continues with the conversation after saving and loading.
    pub(crate) fn reload(&mut self) {
        self.engine = reloaded(&self.engine);
    }

    fn query(&self, query: &Value) {
        let actual =
            Query::from_json(&query.to_string()).and_then(|query| self.engine.query(&query));
        let expected = self.model.query_positions(query);
        match (actual, expected) {
            (Ok(hits), Ok(expected)) => {
                let hits: Vec<_> = hits
                    .iter()
                    .map(|hit| (hit.index.as_usize(), hit.position.map(|p| p.0)))
                    .collect();
                assert_eq!(hits, expected);
            }
            (Err(error), Err(refusal)) => {
                assert_eq!(error.code().as_str(), refusal.code, "{error} | {}", refusal.message);
            }
            (actual, expected) => panic!("{actual:?} against {expected:?}"),
        }
    }

    fn snapshot(&self, batch: usize) {
        match (self.engine.snapshot(BatchIndex(batch)), self.model.snapshot(batch)) {
            (Ok(actual), Ok(expected)) => {
                assert_eq!(numbers(actual.view.iter()), expected.messages);
                assert_eq!(actual.view.len(), expected.message_count);
                assert_eq!(actual.timestamp, expected.timestamp);
                if let Some(description) = expected.description {
                    assert_eq!(actual.reason, description);
                }
            }
            (Err(error), Err(refusal)) => assert_eq!(error.code().as_str(), refusal.code),
            (actual, expected) => panic!("{actual:?} against {expected:?}"),
        }
    }

    fn diff(&self, from: u64, to: u64) {
        let version = |number: u64| Version(u32::try_from(number).unwrap_or(u32::MAX));
        match (self.engine.diff(version(from), version(to)), self.model.diff(from, to)) {
            (Ok(actual), Ok(expected)) => {
                assert_eq!(actual.hidden.tokens, expected.hidden_tokens);
                assert_eq!(actual.shown.tokens, expected.shown_tokens);
                assert_eq!(numbers(actual.hidden.indices), expected.hidden);
                assert_eq!(numbers(actual.shown.indices), expected.shown);
                assert_eq!(actual.moved.indices.len(), expected.moved_count);
                assert_eq!(actual.kept.messages, expected.kept.len());
                assert_eq!(actual.kept.tokens, expected.kept_tokens);
            }
            (Err(error), Err(refusal)) => assert_eq!(error.code().as_str(), refusal.code),
            (actual, expected) => panic!("{actual:?} against {expected:?}"),
        }
    }
}

fn compare(outcome: &Outcome, expected: &testkit::Outcome) {
    assert_eq!(u64::from(outcome.version.0), expected.version);
    assert_eq!(outcome.changed, expected.changed);
    assert_eq!(outcome.stats().current_batch_index.0, expected.batch);
    assert_eq!(outcome.stats().total_batches, expected.batches);
    assert_eq!(outcome.stats().total_messages, expected.log);
    assert_eq!(outcome.stats().current_batch_messages, expected.view.len());
    assert_eq!(outcome.stats().tokens, expected.tokens);
    assert_eq!(numbers(outcome.view().iter()), expected.view);
    assert_eq!(numbers(outcome.hidden()), expected.hidden);
    assert_eq!(numbers(outcome.shown()), expected.shown);
    assert_eq!(numbers(outcome.added()), expected.added);
    assert_eq!(outcome.shared_prefix().messages, expected.shared_prefix_messages);
    assert_eq!(outcome.shared_prefix().tokens, expected.shared_prefix_tokens);
    assert_eq!(outcome.tools_changed(), expected.tools_changed);
    let warnings = outcome.warnings();
    let mut warned: Vec<(String, Vec<usize>)> = warnings
        .iter()
        .map(|warning| (json!(warning.code).to_string(), numbers(warning.indices.clone())))
        .collect();
    warned.sort_unstable();
    let mut expected: Vec<(String, Vec<usize>)> = expected
        .warnings
        .iter()
        .map(|(code, indices)| (json!(code).to_string(), indices.clone()))
        .collect();
    expected.sort_unstable();
    assert_eq!(warned, expected);
}
