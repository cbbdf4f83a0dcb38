//! The story as one JSON document, for programs.

use recto::{EngineError as Error, LogIndex, Outcome, VersionInfo};
use serde_json::{Value, json};

use super::story::Story;

pub(super) fn document(story: &Story) -> Result<Value, Error> {
    let conversation = &story.conversation;
    let (from, to) = (story.told.version, story.restored.version);
    let cut = &story.plain_cut;
    let entries = conversation.log().as_view().iter().map(|index| entry(story, index));
    let steps = conversation.versions().skip(1).zip(story.outcomes());
    let steps = steps.map(|(version, outcome)| step(&version, outcome));
    let versions = conversation.versions().rev();
    Ok(json!({
        "counter": conversation.counter().name(),
        "log": entries.collect::<Vec<_>>(),
        // Its version is not among the others: nobody kept it.
        "plainCut": {
            "view": cut.view(),
            "tokens": cut.stats().tokens,
            "warnings": cut.warnings(),
        },
        "steps": steps.collect::<Vec<_>>(),
        "blame": { "index": story.rule, "history": conversation.blame(story.rule)? },
        "diff": { "from": from, "to": to, "changes": conversation.diff(from, to)? },
        "versions": versions.collect::<Vec<_>>(),
    }))
}

fn entry(story: &Story, index: LogIndex) -> Value {
    let message: Value = serde_json::from_str(story.message(index).json())
        .expect("the engine accepted it, so it is JSON");
    json!({
        "index": index,
        "tokens": story.conversation.log().tokens(index),
        "message": message,
    })
}

fn step(version: &VersionInfo, outcome: &Outcome) -> Value {
    json!({
        "operation": version.operation,
        "description": version.description,
        "view": outcome.view(),
        "result": outcome.to_json(),
    })
}
