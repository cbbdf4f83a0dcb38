//! Drives a stored conversation with the same JSON as the model, and compares the results.

use std::sync::Arc;

use recto::{
    Approx, BatchIndex, Conversation, Error, LogIndex, Message, Note, Options, Outcome, Query,
    Recto, Request, Scope, Settings, Store, Tool, Version, WriteOptions,
};
use serde_json::{Value, json};
use testkit::conformance::comparable_state;
use testkit::generate::Step;
use testkit::{Model, Refusal, StoreModel};

/// A stored conversation and its model.
///
/// Two `Recto` values have the store open and take turns. Now and then one of them is opened again.
pub(crate) struct Pair {
    store: Arc<dyn Store>,
    handles: [Conversation; 2],
    turn: usize,
    pub(crate) model: Model,
    name: String,
}

pub(crate) fn numbers(indices: impl IntoIterator<Item = LogIndex>) -> Vec<usize> {
    indices.into_iter().map(LogIndex::as_usize).collect()
}

fn recto_with(store: &Arc<dyn Store>) -> Recto {
    Recto::with_store(store.clone(), Options::default())
}

impl Pair {
    pub(crate) async fn new(store: Arc<dyn Store>, name: &str, model: Model) -> Pair {
        let recto = recto_with(&store);
        let first = create(&recto, name, &model).await;
        let second = recto_with(&store).conversation(name).await.expect("it is there");
        let (handles, name) = ([first, second], name.to_owned());
        Pair { store, handles, turn: 0, model, name }
    }

    /// The handle whose turn it is.
    pub(crate) fn conversation(&self) -> &Conversation {
        &self.handles[self.turn]
    }

    pub(crate) fn take_turns(&mut self) {
        self.turn = 1 - self.turn;
    }

    /// Opens the store again for the handle whose turn it is, with nothing loaded.
    pub(crate) async fn restart(&mut self) {
        let recto = recto_with(&self.store);
        let conversation = recto.conversation(&self.name).await.expect("the conversation exists");
        self.handles[self.turn] = conversation;
    }

    /// Performs a step on both. Panics if the results differ.
    pub(crate) async fn step(&mut self, step: &Step) {
        match step {
            Step::Apply(request) => {
                // Every third version has a note.
                let before = self.model.version();
                let note = before.is_multiple_of(3).then(|| format!("{{\"after\": {before}}}"));
                let ours = match Request::from_json(&request.to_string()) {
                    Ok(request) => {
                        let note = note.as_deref().map(|note| Note::from_json(note).expect("JSON"));
                        let options = WriteOptions { note, ..WriteOptions::default() };
                        self.conversation().apply_with(request, options).await
                    }
                    Err(error) => Err(error.into()),
                };
                let theirs = self.model.apply(request, 0);
                compare_results(ours, theirs);
                if let Some(note) = note.filter(|_| self.model.version() > before) {
                    self.model.note(&note);
                }
            }
            Step::SetTools(tools) => {
                let ours = match Tool::list_from_json(&tools.to_string()) {
                    Ok(tools) => self.conversation().set_tools(tools).await,
                    Err(error) => Err(error.into()),
                };
                let theirs = self.model.set_tools(tools, 0);
                compare_results(ours, theirs);
            }
            // The model has another clock.
            Step::Ask(query) if query.get("from").is_none() && query.get("to").is_none() => {
                self.query(query).await;
            }
            Step::Ask(_) => {}
            Step::MarkMap => {
                let ours = self.conversation().mark_map(Scope::Visible).await.expect("a mark map");
                assert_eq!(json!(ours), self.model.mark_map());
            }
            Step::MarkMapOfAll => {
                let ours = self.conversation().mark_map(Scope::All).await.expect("a mark map");
                assert_eq!(json!(ours), self.model.mark_map_of_all());
            }
            Step::State => {
                let ours = json!(self.conversation().state().await.expect("a state"));
                assert_eq!(comparable_state(&ours), comparable_state(&self.model.state()));
            }
            Step::Snapshot(batch) => self.snapshot(*batch).await,
            Step::Diff(from, to) => self.diff(*from, *to).await,
        }
    }

    async fn query(&self, query: &Value) {
        let ours = match Query::from_json(&query.to_string()) {
            Ok(query) => self.conversation().query(&query).await,
            Err(error) => Err(error.into()),
        };
        match (ours, self.model.query_positions(query)) {
            (Ok(entries), Ok(expected)) => {
                for entry in &entries {
                    assert_eq!(entry.message.text(), self.model.text(entry.index.as_usize()));
                }
                let entries: Vec<_> = entries
                    .iter()
                    .map(|entry| (entry.index.as_usize(), entry.position.map(|p| p.0)))
                    .collect();
                assert_eq!(entries, expected);
            }
            (Err(error), Err(refusal)) => assert_eq!(error.code(), refusal.code),
            (ours, theirs) => panic!("{ours:?} against {theirs:?}"),
        }
    }

    async fn snapshot(&self, batch: usize) {
        match (self.conversation().snapshot(BatchIndex(batch)).await, self.model.snapshot(batch)) {
            (Ok(ours), Ok(theirs)) => {
                assert_eq!(numbers(ours.view.iter()), theirs.messages);
                for (index, message) in ours.messages() {
                    assert_eq!(message.text(), self.model.text(index.as_usize()));
                }
                if let Some(description) = theirs.description {
                    assert_eq!(ours.reason, description);
                }
            }
            (Err(error), Err(refusal)) => assert_eq!(error.code(), refusal.code),
            (ours, theirs) => panic!("{ours:?} against {theirs:?}"),
        }
    }

    async fn diff(&self, from: u64, to: u64) {
        let version = |number: u64| Version(u32::try_from(number).unwrap_or(u32::MAX));
        let ours = self.conversation().diff(version(from), version(to)).await;
        match (ours, self.model.diff(from, to)) {
            (Ok(ours), Ok(theirs)) => {
                assert_eq!(numbers(ours.hidden.indices), theirs.hidden);
                assert_eq!(numbers(ours.shown.indices), theirs.shown);
                assert_eq!(ours.kept.messages, theirs.kept.len());
                assert_eq!(ours.kept.tokens, theirs.kept_tokens);
            }
            (Err(error), Err(refusal)) => assert_eq!(error.code(), refusal.code),
            (ours, theirs) => panic!("{ours:?} against {theirs:?}"),
        }
    }

    /// Compares everything that is stored with the model.
    pub(crate) async fn compare_all(&mut self) {
        self.restart().await;
        let version = self.conversation().version().await.expect("it is there").0;
        assert_eq!(u64::from(version), self.model.version());
        for version in 0..=version {
            let ours = self.conversation().messages_at(Version(version)).await.expect("it exists");
            let view = self.model.view_at(u64::from(version)).expect("it exists");
            assert_eq!(numbers(ours.iter().map(|entry| entry.index)), view);
            let info = self.conversation().version_info(Version(version)).await.expect("it exists");
            assert_eq!(info.messages, view.len());
            let note = info.note.as_ref().map(Note::json);
            assert_eq!(note, self.model.note_at(u64::from(version)), "version {version}");
        }
        for index in 0..self.model.log_len() {
            let message =
                self.conversation().message(LogIndex(index as u32)).await.expect("it exists");
            assert_eq!(message.expect("it exists").text(), self.model.text(index));
        }
        let marks: Vec<(String, Vec<usize>)> = self
            .model
            .marks()
            .iter()
            .filter(|(_, set)| !set.is_empty())
            .map(|(label, set)| (label.clone(), set.iter().copied().collect()))
            .collect();
        let ours = self.conversation().marks().await.expect("they can be read").into_iter();
        assert_eq!(ours.map(|(label, set)| (label, numbers(set))).collect::<Vec<_>>(), marks);
        let report = self.conversation().verify().await.expect("it can be read");
        assert_eq!(report.faults, Vec::<String>::new());
        assert_eq!(report.entries as usize, self.model.log_len());
    }
}

/// The first difference between the conversations of a store and their model: names, the view of every
/// version, and every message. Conversations whose name does not start with the prefix are not compared.
pub(crate) async fn difference(recto: &Recto, model: &StoreModel, prefix: &str) -> Option<String> {
    compare_with_model(recto, model, prefix).await.err()
}

async fn compare_with_model(recto: &Recto, model: &StoreModel, prefix: &str) -> Result<(), String> {
    let failed = |error: Error| error.to_string();
    let listed = recto.list(None, 10_000).await.map_err(failed)?;
    let names: Vec<String> =
        listed.into_iter().map(|info| info.name).filter(|name| name.starts_with(prefix)).collect();
    same("the names", &names, &model.names())?;
    for name in &names {
        let conversation = recto.conversation(name).await.map_err(failed)?;
        let model = model.get(name);
        let newest = conversation.version().await.map_err(failed)?;
        same(&format!("the version of {name}"), &u64::from(newest.0), &model.version())?;
        for version in (0..=newest.0).map(Version) {
            let entries = conversation.messages_at(version).await.map_err(failed)?;
            let view = model.view_at(u64::from(version.0)).expect("it has the same versions");
            let ours = numbers(entries.iter().map(|entry| entry.index));
            same(&format!("the view of {name} at {version}"), &*ours, view)?;
            for entry in entries {
                let index = entry.index.as_usize();
                let what = format!("#{index} of {name} at {version}");
                same(&what, &*entry.message.text(), model.text(index))?;
                same(&what, &entry.tokens, &model.entry_tokens(index))?;
            }
        }
        for index in 0..model.log_len() {
            let message = conversation.message(LogIndex(index as u32)).await.map_err(failed)?;
            let text = message.map(|message| message.text().into_owned());
            same(&format!("#{index} of {name}"), &text.as_deref(), &Some(model.text(index)))?;
        }
    }
    Ok(())
}

fn same<T: PartialEq + std::fmt::Debug + ?Sized>(
    what: &str,
    ours: &T,
    theirs: &T,
) -> Result<(), String> {
    match ours == theirs {
        true => Ok(()),
        false => Err(format!("{what}: stored {ours:?}, expected {theirs:?}")),
    }
}

/// Creates a conversation like a model at version 0.
pub(crate) async fn create(recto: &Recto, name: &str, model: &Model) -> Conversation {
    let settings = model.settings();
    let tools = model.tools().iter().map(|tool| Tool::from_json(&tool.json.to_string()));
    let settings = Settings {
        tools: tools.collect::<Result<_, _>>().expect("the tools are well-formed"),
        heading: settings.heading.clone(),
        media_tokens: settings.media_tokens,
        ..Settings::counting_with(Approx)
    };
    let messages = model.initial_messages().as_array().expect("a list of messages").iter();
    let messages: Vec<Message> = messages
        .map(|message| Message::from_json(&message.to_string()).expect("it is well-formed"))
        .collect();
    let created = recto.create_with_messages(name, settings, &messages).await;
    created.expect("it is new")
}

pub(crate) fn compare_results(
    ours: Result<Outcome, Error>,
    theirs: Result<testkit::Outcome, Refusal>,
) {
    match (ours, theirs) {
        (Ok(outcome), Ok(expected)) => compare(&outcome, &expected),
        (Err(error), Err(refusal)) => {
            assert_eq!(error.code(), refusal.code, "{error} | {}", refusal.message);
        }
        (Ok(_), Err(refusal)) => panic!("only the model refused: {refusal}"),
        (Err(error), Ok(_)) => panic!("only the engine refused: {error}"),
    }
}

fn compare(outcome: &Outcome, expected: &testkit::Outcome) {
    assert_eq!(u64::from(outcome.version.0), expected.version);
    assert_eq!(outcome.changed, expected.changed);
    assert_eq!(outcome.stats().current_batch_index.0, expected.batch);
    assert_eq!(outcome.stats().total_messages, expected.log);
    assert_eq!(outcome.stats().tokens, expected.tokens);
    assert_eq!(numbers(outcome.view().iter()), expected.view);
    assert_eq!(numbers(outcome.hidden()), expected.hidden);
    assert_eq!(numbers(outcome.shown()), expected.shown);
    assert_eq!(numbers(outcome.added()), expected.added);
    assert_eq!(outcome.shared_prefix().messages, expected.shared_prefix_messages);
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
