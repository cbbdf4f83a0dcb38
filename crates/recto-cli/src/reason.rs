//! The title of a version: its operation and its reason on one line.

use recto::OperationKind;
use serde_json::Value;

/// `DELETE · noise`, or `DELETE 1 entry` if the request has no reason. If all operations of a request
/// share a reason, it is written once.
pub(crate) fn version_title(operation: OperationKind, description: &str) -> String {
    match operation {
        OperationKind::Create => description.to_owned(),
        OperationKind::List => {
            let mut reasons: Vec<&str> = description.split("; ").collect();
            reasons.dedup();
            with_operation(operation, &reasons.join("; "))
        }
        operation => with_operation(operation, description),
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
        use OperationKind::{Clear, Create, Delete, List, Undo};
        for (operation, description, title) in [
            (Delete, "DELETE 1 entry", "DELETE 1 entry"),
            (Delete, "noise", "DELETE · noise"),
            (Clear, "CLEAR, keep system", "CLEAR, keep system"),
            (Undo, "UNDO", "UNDO"),
            (Create, "the conversation was created", "the conversation was created"),
            (List, "noise; noise; more", "LIST · noise; more"),
            (List, "DELETE 1 entry; FIT into 9 tokens", "DELETE 1 entry; FIT into 9 tokens"),
        ] {
            assert_eq!(version_title(operation, description), title);
        }
    }
}
