//! The scenario as one JSON document.

use recto::{EngineError as Error, LogIndex, Outcome, VersionInfo};
use serde_json::{Value, json};

use super::scenario::Scenario;

pub(super) fn document(scenario: &Scenario) -> Result<Value, Error> {
    let conversation = &scenario.conversation;
    let (from, to) = (scenario.recorded.version, scenario.restored.version);
    let cut = &scenario.plain_cut;
    let entries = conversation.log().as_view().iter().map(|index| entry(scenario, index));
    let steps = conversation.versions().skip(1).zip(scenario.outcomes());
    let steps = steps.map(|(version, outcome)| step(&version, outcome));
    let versions = conversation.versions().rev();
    Ok(json!({
        "counter": conversation.counter().name(),
        "log": entries.collect::<Vec<_>>(),
        // This version is not in `versions`, because the scenario discards it.
        "plainCut": {
            "view": cut.view(),
            "tokens": cut.stats().tokens,
            "warnings": cut.warnings(),
        },
        "steps": steps.collect::<Vec<_>>(),
        "blame": { "index": scenario.rule, "history": conversation.blame(scenario.rule)? },
        "diff": { "from": from, "to": to, "changes": conversation.diff(from, to)? },
        "versions": versions.collect::<Vec<_>>(),
    }))
}

fn entry(scenario: &Scenario, index: LogIndex) -> Value {
    let message: Value =
        serde_json::from_str(scenario.message(index).json()).expect("the engine accepts only JSON");
    json!({
        "index": index,
        "tokens": scenario.conversation.log().tokens(index),
        "message": message,
    })
}

fn step(version: &VersionInfo, outcome: &Outcome) -> Value {
    json!({
        "operation": version.operation,
        "description": version.reason,
        "view": outcome.view(),
        "result": outcome.to_json(),
    })
}
