//! What a version is: everything that a rollback brings back.

use crate::live_path::LivePath;
use crate::{Marks, Version, View};

/// The state at a version. Cloning one costs O(1).
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) view: View,
    pub(crate) path: LivePath,
    pub(crate) marks: Marks,
    pub(crate) homes: Homes,
}

/// The versions that made what a state consists of: that of the state itself, or earlier ones whose
/// view or marks it shares. So a version can be saved as the change that it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Homes {
    pub(crate) view: Version,
    pub(crate) marks: Version,
}
