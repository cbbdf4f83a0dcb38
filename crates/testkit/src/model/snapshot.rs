//! A batch as it is exported (section 7).

/// A batch of the live path as it was when it was left (the current one: now).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The number of the batch.
    pub batch_index: usize,
    /// When the batch was opened.
    pub timestamp: i64,
    /// As the user gave it; what is made up where it is missing is not in here.
    pub description: Option<String>,
    /// The length of `messages`.
    pub message_count: usize,
    /// The batch's view, as log indices.
    pub messages: Vec<usize>,
}
