//! Settings of a new conversation. All but the tools are fixed when it is created.

use std::sync::Arc;

use crate::Tool;
use crate::counter::Counter;
use crate::live_path::LoadedBatches;
use crate::message_log::Meter;
use crate::tools::{DEFAULT_HEADING, Headings};

/// Settings of a new conversation. Fields may be added: construct it with `..Settings::default()` or from
/// [`Settings::counting_with`].
#[derive(Clone, Debug)]
pub struct Settings {
    /// Counts tokens.
    pub counter: Arc<dyn Counter>,
    /// Tokens of an image, audio or file part. Default: 1,000.
    pub media_tokens: u64,
    /// The tools that the model may call. Default: none. Their description is the first log entry, unless the
    /// first messages contain it.
    pub tools: Vec<Tool>,
    /// The heading of the tool description. Default: [`DEFAULT_HEADING`].
    pub heading: String,
}

#[cfg(feature = "bpe")]
impl Default for Settings {
    /// The default settings with the counter `o200k_base`.
    fn default() -> Self {
        Settings::counting_with(crate::Bpe::O200kBase)
    }
}

impl Settings {
    /// The default settings with this counter: 1,000 tokens for each image, audio or file, no tools.
    pub fn counting_with(counter: impl Counter + 'static) -> Settings {
        Settings {
            counter: Arc::new(counter),
            media_tokens: 1_000,
            tools: Vec::new(),
            heading: DEFAULT_HEADING.to_owned(),
        }
    }
}

/// The data that all versions of a conversation share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) meter: Meter,
    /// The headings of tool descriptions.
    pub(crate) headings: Headings,
    pub(crate) loaded_batches: LoadedBatches,
}

impl Shared {
    pub(crate) fn new(meter: Meter, heading: String) -> Arc<Shared> {
        let headings = Headings::new(heading);
        Arc::new(Shared { meter, headings, loaded_batches: LoadedBatches::default() })
    }
}
