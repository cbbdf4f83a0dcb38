//! Tools with which the model reads messages that are not in its view. They do not change the view.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use recto::{Conversation, Counter, LogIndex, Query, Scope, Tool};
use serde::Deserialize;

use crate::{BoxFuture, RunTool, ToolInput, ToolOutput};

/// The names of the tools.
pub(crate) const NAMES: [&str; 2] = ["recto_expand", "recto_search"];
/// Maximum output of a call, in bytes.
const MAX_OUTPUT_BYTES: usize = 16 << 10;
/// Maximum number of entries that a search lists.
const MAX_FOUND: usize = 20;
/// Length of the excerpt of a found entry, in characters.
const EXCERPT_CHARS: usize = 160;

/// Minimum allowance, in tokens. Below it the output is an explanation only.
const MIN_ALLOWANCE: u64 = 80;
/// Tokens that are reserved for the note about omitted text.
const NOTE_TOKENS: u64 = 40;

/// Maximum tokens of one call's output. An agent with a budget sets it before its tools run. Default:
/// unlimited.
#[derive(Clone, Debug)]
pub(crate) struct OutputAllowance(Arc<AtomicU64>);

impl Default for OutputAllowance {
    fn default() -> Self {
        OutputAllowance(Arc::new(AtomicU64::new(u64::MAX)))
    }
}

impl OutputAllowance {
    pub(crate) fn set(&self, tokens: u64) {
        self.0.store(tokens, Ordering::Relaxed);
    }

    fn tokens(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The tool `recto_expand`: returns log entries, such as those that a summary or the placeholder of a tool
/// result replaced. A call returns about 16 KiB at most, with a note about what it omits. The budget of an
/// agent limits the output further if [`Agent::history_tools`](crate::Agent::history_tools) added the tool.
#[derive(Clone, Debug)]
pub struct ExpandTool(HistoryReader);

/// The tool `recto_search`: searches all messages of the log, visible or not.
#[derive(Clone, Debug)]
pub struct SearchTool(HistoryReader);

/// Reads the log of a conversation within an allowance.
#[derive(Clone, Debug)]
struct HistoryReader {
    conversation: Conversation,
    allowance: OutputAllowance,
}

impl ExpandTool {
    /// The tool for a conversation, without a token limit.
    /// [`Agent::history_tools`](crate::Agent::history_tools) adds it with the limit of the budget.
    pub fn new(conversation: Conversation) -> ExpandTool {
        ExpandTool::within(conversation, OutputAllowance::default())
    }

    pub(crate) fn within(conversation: Conversation, allowance: OutputAllowance) -> ExpandTool {
        ExpandTool(HistoryReader { conversation, allowance })
    }
}

impl SearchTool {
    /// The tool for a conversation, without a token limit.
    /// [`Agent::history_tools`](crate::Agent::history_tools) adds it with the limit of the budget.
    pub fn new(conversation: Conversation) -> SearchTool {
        SearchTool::within(conversation, OutputAllowance::default())
    }

    pub(crate) fn within(conversation: Conversation, allowance: OutputAllowance) -> SearchTool {
        SearchTool(HistoryReader { conversation, allowance })
    }
}

impl RunTool for ExpandTool {
    fn describe(&self) -> Tool {
        Tool::from_json(
            r#"{"name":"recto_expand","description":"Reads earlier messages of this conversation in full, by the entry numbers in summaries and placeholders.","input_schema":{"type":"object","properties":{"from":{"type":"integer","description":"The first entry."},"to":{"type":"integer","description":"The last entry."}},"required":["from"]}}"#,
        )
        .expect("the description is a constant")
    }

    fn run<'a>(&'a self, input: ToolInput<'a>) -> BoxFuture<'a, ToolOutput> {
        #[derive(Deserialize)]
        struct Range {
            from: u32,
            to: Option<u32>,
        }
        Box::pin(async move {
            let range = match serde_json::from_str::<Range>(input.json) {
                Ok(range) => range,
                Err(error) => {
                    return ToolOutput::error(format!("{error}; the fields are from and to"));
                }
            };
            match self.0.expand(range.from, range.to.unwrap_or(range.from)).await {
                Ok(text) => ToolOutput::ok(text),
                Err(error) => ToolOutput::error(error.to_string()),
            }
        })
    }
}

impl RunTool for SearchTool {
    fn describe(&self) -> Tool {
        Tool::from_json(
            r#"{"name":"recto_search","description":"Searches all earlier messages of this conversation for a text, including those that summaries replaced. The search is case-sensitive. Read the results with recto_expand.","input_schema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}}"#,
        )
        .expect("the description is a constant")
    }

    fn run<'a>(&'a self, input: ToolInput<'a>) -> BoxFuture<'a, ToolOutput> {
        #[derive(Deserialize)]
        struct SearchInput {
            text: String,
        }
        Box::pin(async move {
            let text = match serde_json::from_str::<SearchInput>(input.json) {
                Ok(SearchInput { text }) if !text.is_empty() => text,
                _ => return ToolOutput::error("the field text is missing or empty"),
            };
            match self.0.search(&text).await {
                Ok(text) => ToolOutput::ok(text),
                Err(error) => ToolOutput::error(error.to_string()),
            }
        })
    }
}

impl HistoryReader {
    /// The token meter of one call. The inner error is the output if the allowance is too small.
    async fn meter(&self) -> Result<Result<TokenMeter, String>, recto::Error> {
        let limit = self.allowance.tokens();
        if limit < MIN_ALLOWANCE {
            return Ok(Err(format!(
                "the budget has room for {limit} more tokens, which is too few"
            )));
        }
        let settings = self.conversation.settings().await?;
        // Only built-in counters can be found by name. `approx` replaces any other one, because the counts
        // only limit the output.
        let counter = <dyn Counter>::named(&settings.counter);
        let counter = counter.unwrap_or_else(|| Arc::new(recto::Approx));
        Ok(Ok(TokenMeter { counter, limit, left: limit - NOTE_TOKENS }))
    }

    async fn expand(&self, from: u32, to: u32) -> Result<String, recto::Error> {
        let log = self.conversation.stats().await?.total_messages as u32;
        let end = to.saturating_add(1).min(log);
        if from >= end {
            let last = log.saturating_sub(1);
            return Ok(format!("there are no such entries; the log has entries 0 to {last}"));
        }
        let mut meter = match self.meter().await? {
            Ok(meter) => meter,
            Err(reason) => return Ok(reason),
        };
        let mut text = String::new();
        for index in from..end {
            let Some(entry) = self.conversation.entries(&[LogIndex(index)]).await?.pop() else {
                break;
            };
            let content = entry.message.text();
            let shown =
                format!("[entry {index}, {}]\n{content}\n\n", entry.message.role().as_str());
            if text.len() + shown.len() <= MAX_OUTPUT_BYTES && meter.take(&shown) {
                text.push_str(&shown);
                continue;
            }
            let limit = meter.limit_note();
            if !text.is_empty() {
                text.push_str(&format!("[more: continue with entry {index}{limit}]"));
                return Ok(text);
            }
            let start = meter.prefix(cut(&shown, MAX_OUTPUT_BYTES));
            let left_out = shown.trim_end().len().saturating_sub(start.len());
            text = format!("{start}\n[{left_out} bytes of entry {index} are omitted{limit}");
            if index + 1 < end {
                text.push_str(&format!("; more: continue with entry {}", index + 1));
            }
            text.push(']');
            return Ok(text);
        }
        Ok(text)
    }

    async fn search(&self, text: &str) -> Result<String, recto::Error> {
        let mut meter = match self.meter().await? {
            Ok(meter) => meter,
            Err(reason) => return Ok(reason),
        };
        let query = Query { scope: Scope::All, ..Query::containing(text) };
        let entries = self.conversation.query(&query).await?;
        if entries.is_empty() {
            return Ok("no entry contains the text".into());
        }
        let mut lines = Vec::new();
        for entry in entries.iter().take(MAX_FOUND) {
            let content = entry.message.text();
            let at = content.find(text).unwrap_or(0);
            let start =
                content[..at].char_indices().rev().nth(EXCERPT_CHARS / 4).map_or(0, |(at, _)| at);
            let excerpt: String = content[start..].chars().take(EXCERPT_CHARS).collect();
            let (excerpt, role) = (excerpt.replace('\n', " "), entry.message.role());
            let line = format!("entry {}, {}: {excerpt}", entry.index, role.as_str());
            if !meter.take(&line) {
                break;
            }
            lines.push(line);
        }
        if entries.len() > lines.len() {
            let limit = if lines.len() < MAX_FOUND { meter.limit_note() } else { String::new() };
            lines.push(format!("and {} more{limit}", entries.len() - lines.len()));
        }
        Ok(lines.join("\n"))
    }
}

/// Counts the tokens of a call's output against its limit.
struct TokenMeter {
    counter: Arc<dyn Counter>,
    limit: u64,
    left: u64,
}

impl TokenMeter {
    /// Whether a text fits. If so, its tokens are subtracted from those that are left.
    fn take(&mut self, text: &str) -> bool {
        // One more for the separator.
        let left = self.left.checked_sub(self.counter.count(text) + 1);
        self.left = left.unwrap_or(self.left);
        left.is_some()
    }

    /// The longest prefix of a text that fits, approximately.
    fn prefix<'t>(&self, text: &'t str) -> &'t str {
        let mut prefix = text;
        loop {
            let tokens = self.counter.count(prefix);
            if tokens <= self.left {
                return prefix;
            }
            // Slightly less than the proportional share, so that every round makes the prefix shorter.
            let share = self.left as f64 / tokens as f64 * 0.95;
            prefix = cut(text, (prefix.len() as f64 * share) as usize);
        }
    }

    /// A note about the limit, if there is one.
    fn limit_note(&self) -> String {
        match self.limit {
            u64::MAX => String::new(),
            limit => format!("; the budget has room for {limit} tokens"),
        }
    }
}

/// The longest prefix of at most `len` bytes that ends between two characters.
fn cut(text: &str, len: usize) -> &str {
    &text[..text.floor_char_boundary(len)]
}
