//! What a version is: everything that a rollback brings back.

use std::sync::Arc;

use crate::live_path::LivePath;
use crate::{Marks, ToolSet, View};

/// The state at a version. Cloning one costs O(1).
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) view: View,
    pub(crate) path: LivePath,
    pub(crate) marks: Marks,
    /// The tools, if the conversation has any.
    pub(crate) tools: Option<Arc<ToolSet>>,
}
