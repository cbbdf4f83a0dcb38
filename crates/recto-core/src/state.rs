//! The state of a version: its view, live path and marks. ROLLBACK to a version restores its state and its
//! tools.

use crate::live_path::LivePath;
use crate::{Marks, Version, View};

/// The state at a version. A clone costs O(1).
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) view: View,
    pub(crate) path: LivePath,
    pub(crate) marks: Marks,
    pub(crate) origins: Origins,
}

/// The versions that introduced the view and the marks of a state: its own version, or an earlier one
/// with which it shares them. The next version is saved as a change of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Origins {
    pub(crate) view: Version,
    pub(crate) marks: Version,
}
