//! Token usage of model calls, as providers report it.

use serde::{Deserialize, Serialize};

/// Token usage of one call, as the provider reports it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Usage {
    /// All input tokens, cached or not. (Anthropic reports cached tokens separately; here they are
    /// included.)
    pub input: u64,
    /// Input tokens read from the provider's cache. Part of `input`.
    #[serde(default)]
    pub cached: u64,
    /// Input tokens written to the provider's cache. Part of `input`.
    #[serde(default)]
    pub cache_written: u64,
    /// Input tokens written to the provider's cache for one hour. Part of `cache_written`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_written_1h: u64,
    /// All output tokens, thinking included.
    pub output: u64,
    /// Output tokens of thinking, if the provider reports them. Part of `output`.
    #[serde(default)]
    pub reasoning: u64,
    /// Tokens that the provider used to compact the prompt before the reply. Not part of the other fields,
    /// which are about the compacted prompt.
    #[serde(default, skip_serializing_if = "CompactionUsage::is_none")]
    pub compaction: CompactionUsage,
}

/// Token usage of the compactions that a provider makes during a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CompactionUsage {
    /// All input tokens, cached or not.
    pub input: u64,
    /// Input tokens read from the provider's cache. Part of `input`.
    pub cached: u64,
    /// Input tokens written to the provider's cache. Part of `input`.
    pub cache_written: u64,
    /// All output tokens.
    pub output: u64,
}

impl Usage {
    /// Usage of a call without caching and thinking. Assign the other fields as needed.
    pub fn new(input: u64, output: u64) -> Usage {
        Usage { input, output, ..Usage::default() }
    }

    /// The sum of two usages.
    pub(crate) fn plus(self, other: Usage) -> Usage {
        Usage {
            input: self.input.saturating_add(other.input),
            cached: self.cached.saturating_add(other.cached),
            cache_written: self.cache_written.saturating_add(other.cache_written),
            cache_written_1h: self.cache_written_1h.saturating_add(other.cache_written_1h),
            output: self.output.saturating_add(other.output),
            reasoning: self.reasoning.saturating_add(other.reasoning),
            compaction: self.compaction.plus(other.compaction),
        }
    }
}

impl CompactionUsage {
    /// True if the provider made no compaction, or reported none.
    pub fn is_none(&self) -> bool {
        *self == CompactionUsage::default()
    }

    /// The sum of two usages.
    pub(crate) fn plus(self, other: CompactionUsage) -> CompactionUsage {
        CompactionUsage {
            input: self.input.saturating_add(other.input),
            cached: self.cached.saturating_add(other.cached),
            cache_written: self.cache_written.saturating_add(other.cache_written),
            output: self.output.saturating_add(other.output),
        }
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}
