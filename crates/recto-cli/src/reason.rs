//! What a version did, and why, in one line.

use recto::OperationKind;
use serde_json::Value;

/// `DELETE · noise`; where nobody gave a reason, what the operation did: `DELETE 1 entry`. Of several
/// operations in one request, a reason that they share is said once.
pub(crate) fn told(operation: OperationKind, description: &str) -> String {
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

/// Whether a description was made from an operation, which stands in front.
fn names_operation(description: &str) -> bool {
    let word = description.split([' ', ',']).next().unwrap_or_default();
    serde_json::from_value::<OperationKind>(Value::from(word)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operation_and_reason_are_told_and_neither_twice() {
        use OperationKind::{Clear, Create, Delete, List, Undo};
        for (operation, description, said) in [
            (Delete, "DELETE 1 entry", "DELETE 1 entry"),
            (Delete, "noise", "DELETE · noise"),
            (Clear, "CLEAR, keep system", "CLEAR, keep system"),
            (Undo, "UNDO", "UNDO"),
            (Create, "the conversation was created", "the conversation was created"),
            (List, "noise; noise; more", "LIST · noise; more"),
            (List, "DELETE 1 entry; FIT into 9 tokens", "DELETE 1 entry; FIT into 9 tokens"),
        ] {
            assert_eq!(told(operation, description), said);
        }
    }
}
