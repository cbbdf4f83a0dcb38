//! Typed reading of the cases in the folder `conformance/` of the workspace.
//! `conformance/README.md` defines the format of a case.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::model::Outcome;

/// One case: it starts from a new conversation with its settings.
#[derive(Debug, Clone)]
pub struct Case {
    /// The name of the case.
    pub name: String,
    /// The token counter.
    pub counter: String,
    /// The tools at creation; may be empty.
    pub tools: Value,
    /// The messages at creation; may be empty.
    pub messages: Value,
    /// The steps, in order.
    pub steps: Vec<Step>,
}

/// A step and its expected result.
#[derive(Debug, Clone)]
pub struct Step {
    /// The request, query or export.
    pub kind: Kind,
    /// The expected result.
    pub expect: Expect,
}

/// The kinds of steps.
#[derive(Debug, Clone)]
pub enum Kind {
    /// A request: `{"op": …}` or `{"ops": […]}`.
    Request(Value),
    /// A query.
    Ask(Value),
    /// The mark map.
    MarkMap,
    /// The mark map with `scope: "all"`.
    MarkMapOfAll,
    /// Setting the tools.
    SetTools(Value),
    /// The message array state.
    State,
}

/// The expected result of a step.
#[derive(Debug, Clone, PartialEq)]
pub enum Expect {
    /// The outcome of an accepted request.
    Outcome(ExpectedOutcome),
    /// The log indices that a query finds.
    Indices(Vec<usize>),
    /// The mark map.
    MarkMap(Value),
    /// The message array state, as returned by [`comparable_state`].
    State(Value),
    /// The code of the error of a refused request or query. Nothing has changed.
    Error(String),
}

/// The expected outcome of an accepted request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedOutcome {
    /// `version`
    pub version: u64,
    /// `currentBatchIndex`
    pub batch: usize,
    /// `totalBatches`
    pub batches: usize,
    /// `totalMessages`
    pub log: usize,
    /// The tokens of the view.
    pub tokens: u64,
    /// `changed`
    pub changed: bool,
    /// The indices that an empty query finds.
    pub view: Vec<usize>,
    /// `hidden`, sorted.
    pub hidden: Vec<usize>,
    /// `shown`, sorted.
    pub shown: Vec<usize>,
    /// `added`, sorted.
    pub added: Vec<usize>,
    /// The messages of the shared prefix.
    pub shared_prefix: usize,
}

impl From<Outcome> for ExpectedOutcome {
    fn from(outcome: Outcome) -> ExpectedOutcome {
        ExpectedOutcome {
            version: outcome.version,
            batch: outcome.batch,
            batches: outcome.batches,
            log: outcome.log,
            tokens: outcome.tokens,
            changed: outcome.changed,
            view: outcome.view,
            hidden: outcome.hidden,
            shown: outcome.shown,
            added: outcome.added,
            shared_prefix: outcome.shared_prefix_messages,
        }
    }
}

/// The fields of a message array state that the cases compare. All other fields are removed.
///
/// # Panics
/// If the state lacks one of the fields.
pub fn comparable_state(state: &Value) -> Value {
    let only = |object: &Value, fields: &[&str]| {
        let fields = fields.iter().map(|&field| {
            let value = object.get(field).unwrap_or_else(|| panic!("{field} is missing"));
            (field.to_owned(), value.clone())
        });
        Value::Object(fields.collect())
    };
    let mut comparable =
        only(state, &["messages", "totalMessageCount", "currentBatchIndex", "batchSnapshots"]);
    for snapshot in comparable["batchSnapshots"].as_array_mut().expect("a list of snapshots") {
        *snapshot = only(snapshot, &["batchIndex", "messageCount", "messages"]);
    }
    comparable
}

/// The folder with the cases.
pub fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../conformance")
}

/// The cases of `named.json`. Each tests one rule.
///
/// # Panics
/// If the file is missing or has other content.
pub fn named_cases() -> Vec<Case> {
    let cases: Vec<Value> = serde_json::from_str(&read("named.json")).expect("a list of cases");
    cases.iter().map(Case::read).collect()
}

/// The cases of `random.jsonl`.
///
/// # Panics
/// If the file is missing or has other content.
pub fn random_cases() -> Vec<Case> {
    let text = read("random.jsonl");
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines
        .map(|line| Case::read(&serde_json::from_str(line).expect("each line is a case")))
        .collect()
}

/// All cases, the named ones first.
///
/// # Panics
/// If a file is missing or has other content.
pub fn all_cases() -> Vec<Case> {
    [named_cases(), random_cases()].concat()
}

fn read(file: &str) -> String {
    let path = folder().join(file);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

impl Case {
    pub(crate) fn read(json: &Value) -> Case {
        let text = |field: &str| json[field].as_str().expect("a string").to_owned();
        Case {
            name: text("name"),
            counter: text("counter"),
            tools: json.get("tools").cloned().unwrap_or_else(|| json!([])),
            messages: json.get("messages").cloned().unwrap_or_else(|| json!([])),
            steps: json["steps"].as_array().expect("steps").iter().map(Step::read).collect(),
        }
    }
}

impl Step {
    fn read(json: &Value) -> Step {
        let kind = if let Some(query) = json.get("ask") {
            Kind::Ask(query.clone())
        } else if let Some(tools) = json.get("setTools") {
            Kind::SetTools(tools.clone())
        } else if let Some(value) = json.get("state") {
            assert_eq!(*value, json!(true), "a state step is true");
            Kind::State
        } else if let Some(value) = json.get("markMap") {
            if *value == json!({"scope": "all"}) {
                Kind::MarkMapOfAll
            } else {
                assert_eq!(*value, json!(true), "a mark map step is true or has a scope");
                Kind::MarkMap
            }
        } else {
            let mut request = json.clone();
            request.as_object_mut().expect("a step is an object").shift_remove("expect");
            Kind::Request(request)
        };
        let expect = Expect::read(&kind, &json["expect"]);
        Step { kind, expect }
    }
}

impl Expect {
    fn read(kind: &Kind, json: &Value) -> Expect {
        if let Some(code) = json.get("error") {
            return Expect::Error(code.as_str().expect("a code").to_owned());
        }
        match kind {
            Kind::Request(_) | Kind::SetTools(_) => Expect::Outcome(ExpectedOutcome::read(json)),
            Kind::Ask(_) => Expect::Indices(indices(&json["indices"])),
            Kind::MarkMap | Kind::MarkMapOfAll => Expect::MarkMap(json.clone()),
            Kind::State => Expect::State(comparable_state(json)),
        }
    }
}

impl ExpectedOutcome {
    fn read(json: &Value) -> ExpectedOutcome {
        let number = |field: &str| json[field].as_u64().unwrap_or_else(|| panic!("{field}"));
        let count = |field: &str| usize::try_from(number(field)).expect("a small number");
        ExpectedOutcome {
            version: number("version"),
            batch: count("batch"),
            batches: count("batches"),
            log: count("log"),
            tokens: number("tokens"),
            changed: json["changed"].as_bool().expect("changed"),
            view: indices(&json["view"]),
            hidden: indices(&json["hidden"]),
            shown: indices(&json["shown"]),
            added: indices(&json["added"]),
            shared_prefix: count("sharedPrefix"),
        }
    }
}

fn indices(json: &Value) -> Vec<usize> {
    let list = json.as_array().expect("a list of indices");
    list.iter().map(|index| index.as_u64().expect("an index") as usize).collect()
}
