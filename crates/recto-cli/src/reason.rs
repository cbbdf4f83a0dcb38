//! The title of a version: its operation and its reason on one line.

use recto::{OperationKind, Version};
use serde_json::Value;

/// Separates the description of an operation from the reason of the caller.
const SEPARATOR: &str = " · ";

/// A description with a reason: `DELETE 1 entry · noise`.
pub(crate) fn with_reason(description: &str, reason: &str) -> String {
    format!("{description}{SEPARATOR}{reason}")
}

/// `DELETE 1 entry · noise`, `DELETE 1 entry` if the request has no reason, or `DELETE · noise` if a
/// program gave a reason instead of the description. If all operations of a request share a reason, it is
/// written once.
pub(crate) fn version_title(operation: OperationKind, description: &str) -> String {
    match operation {
        OperationKind::Create => description.to_owned(),
        OperationKind::List => {
            let mut reasons: Vec<&str> = description.split("; ").collect();
            reasons.dedup();
            with_operation(operation, &with_shared_reason(&reasons))
        }
        operation => with_operation(operation, description),
    }
}

/// The title of an UNDO or REDO with the request that it undid or redid: `UNDO of v3 FIT into 9 tokens`. The
/// title of that request is missing if it is not known.
pub(crate) fn title_of(title: &str, target: Version, of: Option<&str>) -> String {
    let (operation, reason) = match title.split_once(SEPARATOR) {
        Some((operation, reason)) => (operation, Some(reason)),
        None => (title, None),
    };
    let of = of.map_or(String::new(), |of| format!(" {of}"));
    let written = format!("{operation} of v{target}{of}");
    reason.map_or(written.clone(), |reason| with_reason(&written, reason))
}

/// The descriptions of several operations. A reason that all of them have follows the last one.
fn with_shared_reason(descriptions: &[&str]) -> String {
    let parts: Option<Vec<(&str, &str)>> =
        descriptions.iter().map(|description| description.split_once(SEPARATOR)).collect();
    match parts.as_deref() {
        Some([(_, reason), others @ ..]) if others.iter().all(|(_, other)| other == reason) => {
            let operations = parts.iter().flatten().map(|(operation, _)| *operation);
            with_reason(&operations.collect::<Vec<_>>().join("; "), reason)
        }
        _ => descriptions.join("; "),
    }
}

fn with_operation(operation: OperationKind, description: &str) -> String {
    match names_operation(description) {
        true => description.to_owned(),
        false => format!("{} · {description}", operation.as_str()),
    }
}

/// Whether a description was generated from an operation. Such a description starts with its name.
fn names_operation(description: &str) -> bool {
    let word = description.split([' ', ',']).next().unwrap_or_default();
    serde_json::from_value::<OperationKind>(Value::from(word)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_has_operation_and_reason_once() {
        use OperationKind::{Clear, Create, Delete, Fit, List, Undo};
        for (operation, description, title) in [
            (Delete, "DELETE 1 entry", "DELETE 1 entry"),
            (Delete, "noise", "DELETE · noise"),
            (Clear, "CLEAR, keep system", "CLEAR, keep system"),
            (Undo, "UNDO", "UNDO"),
            (Create, "the conversation was created", "the conversation was created"),
            (List, "noise; noise; more", "LIST · noise; more"),
            (List, "DELETE 1 entry; FIT into 9 tokens", "DELETE 1 entry; FIT into 9 tokens"),
            (Fit, "FIT into 9 tokens · budget", "FIT into 9 tokens · budget"),
            (
                List,
                "DELETE 1 entry · noise; FIT into 9 tokens · noise",
                "DELETE 1 entry; FIT into 9 tokens · noise",
            ),
            (List, "DELETE 1 entry · a; UNDO · b", "DELETE 1 entry · a; UNDO · b"),
        ] {
            assert_eq!(version_title(operation, description), title);
        }
    }
}
