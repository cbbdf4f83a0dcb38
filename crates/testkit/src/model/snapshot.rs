//! The snapshot of a batch (section 7).

/// A batch of the live path with its last view, or the present one of the current batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The number of the batch.
    pub batch_index: usize,
    /// When the batch was opened.
    pub timestamp: i64,
    /// The description that the caller gave, if any.
    pub description: Option<String>,
    /// The length of `messages`.
    pub message_count: usize,
    /// The batch's view, as log indices.
    pub messages: Vec<usize>,
}
