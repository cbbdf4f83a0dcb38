//! Versions: what changed in each of them, and how to read, restore and continue any of them.

mod at;
mod blame;
mod descriptions;
mod diff;
mod pins;
mod threads;
mod tool_descriptions;
mod undo;

const DELETE_0: &str = r#"{"operation":"DELETE","indices":[0]}"#;
const RESTORE_0: &str = r#"{"operation":"RESTORE","indices":[0]}"#;
const UNDO: &str = r#"{"operation":"UNDO"}"#;
const REDO: &str = r#"{"operation":"REDO"}"#;
