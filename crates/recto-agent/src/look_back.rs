//! Tools that let the model look behind a summary, without changing what it reads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use recto::{Conversation, Counter, LogIndex, Query, Scope, Tool};
use serde::Deserialize;

use crate::{BoxFuture, RunTool, ToolInput, ToolOutput};

/// What the tools are called.
pub(crate) const NAMES: [&str; 2] = ["recto_expand", "recto_search"];
/// The most bytes that one look shows.
const LONGEST: usize = 16 << 10;
/// The most entries that a search names.
const MOST_FOUND: usize = 20;
/// How much of an entry a search shows, in characters.
const EXCERPT: usize = 160;

/// With less room than this, in tokens, nothing is shown.
const LEAST_ROOM: u64 = 80;
/// The tokens of the words that say what is left out.
const REMARK: u64 = 40;

/// How many tokens a look may show. An agent with a budget sets it before its tools run.
#[derive(Clone, Debug)]
pub(crate) struct Room(Arc<AtomicU64>);

impl Default for Room {
    fn default() -> Self {
        Room(Arc::new(AtomicU64::new(u64::MAX)))
    }
}

impl Room {
    pub(crate) fn set(&self, tokens: u64) {
        self.0.store(tokens, Ordering::Relaxed);
    }

    fn tokens(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// `recto_expand`: the messages that a summary, or a result that was cleared, stands for. As much is
/// shown as the agent's budget has room for.
#[derive(Clone, Debug)]
pub struct ExpandTool(Look);

/// `recto_search`: messages of the whole log, hidden or not.
#[derive(Clone, Debug)]
pub struct SearchTool(Look);

/// A conversation that is looked at, and how much may be shown of it.
#[derive(Clone, Debug)]
struct Look {
    talk: Conversation,
    room: Room,
}

impl ExpandTool {
    /// For a conversation. [`Agent::look_back`](crate::Agent::look_back) keeps it within the budget.
    pub fn new(talk: Conversation) -> ExpandTool {
        ExpandTool::within(talk, Room::default())
    }

    pub(crate) fn within(talk: Conversation, room: Room) -> ExpandTool {
        ExpandTool(Look { talk, room })
    }
}

impl SearchTool {
    /// For a conversation. [`Agent::look_back`](crate::Agent::look_back) keeps it within the budget.
    pub fn new(talk: Conversation) -> SearchTool {
        SearchTool::within(talk, Room::default())
    }

    pub(crate) fn within(talk: Conversation, room: Room) -> SearchTool {
        SearchTool(Look { talk, room })
    }
}

impl RunTool for ExpandTool {
    fn describe(&self) -> Tool {
        Tool::from_json(
            r#"{"name":"recto_expand","description":"Reads earlier messages of this conversation in full, by their entry numbers, as summaries and placeholders name them.","input_schema":{"type":"object","properties":{"from":{"type":"integer","description":"The first entry."},"to":{"type":"integer","description":"The last entry."}},"required":["from"]}}"#,
        )
        .expect("a test describes it")
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
                Err(error) => return ToolOutput::error(format!("{error}; give from, and to")),
            };
            match self.0.expanded(range.from, range.to.unwrap_or(range.from)).await {
                Ok(text) => ToolOutput::ok(text),
                Err(error) => ToolOutput::error(error.to_string()),
            }
        })
    }
}

impl RunTool for SearchTool {
    fn describe(&self) -> Tool {
        Tool::from_json(
            r#"{"name":"recto_search","description":"Searches all earlier messages of this conversation, also those behind summaries, for a text. Upper and lower case count. Read what it finds with recto_expand.","input_schema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}}"#,
        )
        .expect("a test describes it")
    }

    fn run<'a>(&'a self, input: ToolInput<'a>) -> BoxFuture<'a, ToolOutput> {
        #[derive(Deserialize)]
        struct Sought {
            text: String,
        }
        Box::pin(async move {
            let text = match serde_json::from_str::<Sought>(input.json) {
                Ok(Sought { text }) if !text.is_empty() => text,
                _ => return ToolOutput::error("give the text that is sought"),
            };
            match self.0.found(&text).await {
                Ok(text) => ToolOutput::ok(text),
                Err(error) => ToolOutput::error(error.to_string()),
            }
        })
    }
}

impl Look {
    /// What counts tokens here, and how many there may be; the inner error says that it is too few.
    async fn measure(&self) -> Result<Result<Measure, String>, recto::Error> {
        let most = self.room.tokens();
        if most < LEAST_ROOM {
            return Ok(Err(format!(
                "the budget has room for {most} more tokens, which is too few"
            )));
        }
        let settings = self.talk.settings().await?;
        // A counter of the user's own is not at hand here.
        let counter = <dyn Counter>::named(&settings.counter);
        let counter = counter.unwrap_or_else(|| Arc::new(recto::Approx));
        Ok(Ok(Measure { counter, most, left: most - REMARK }))
    }

    async fn expanded(&self, from: u32, to: u32) -> Result<String, recto::Error> {
        let log = self.talk.stats().await?.total_messages as u32;
        let end = to.saturating_add(1).min(log);
        if from >= end {
            let last = log.saturating_sub(1);
            return Ok(format!("there are no such entries; the log has 0 to {last}"));
        }
        let mut measure = match self.measure().await? {
            Ok(measure) => measure,
            Err(reason) => return Ok(reason),
        };
        let mut text = String::new();
        for index in from..end {
            let Some(entry) = self.talk.entries(&[LogIndex(index)]).await?.pop() else { break };
            let said = entry.message.text();
            let shown = format!("[entry {index}, {}]\n{said}\n\n", entry.message.role().as_str());
            if text.len() + shown.len() <= LONGEST && measure.take(&shown) {
                text.push_str(&shown);
                continue;
            }
            let why = measure.why();
            if !text.is_empty() {
                text.push_str(&format!("[more: go on from entry {index}{why}]"));
                return Ok(text);
            }
            let start = measure.front(cut(&shown, LONGEST));
            let left_out = shown.trim_end().len().saturating_sub(start.len());
            text = format!("{start}\n[{left_out} bytes of entry {index} are left out{why}");
            if index + 1 < end {
                text.push_str(&format!("; more: go on from entry {}", index + 1));
            }
            text.push(']');
            return Ok(text);
        }
        Ok(text)
    }

    async fn found(&self, text: &str) -> Result<String, recto::Error> {
        let mut measure = match self.measure().await? {
            Ok(measure) => measure,
            Err(reason) => return Ok(reason),
        };
        let query =
            Query { scope: Scope::All, contains: Some(vec![text.to_owned()]), ..Query::default() };
        let entries = self.talk.query(&query).await?;
        if entries.is_empty() {
            return Ok("nothing has it".into());
        }
        let mut lines = Vec::new();
        for entry in entries.iter().take(MOST_FOUND) {
            let said = entry.message.text();
            let at = said.find(text).unwrap_or(0);
            let start = said[..at].char_indices().rev().nth(EXCERPT / 4).map_or(0, |(at, _)| at);
            let excerpt: String = said[start..].chars().take(EXCERPT).collect();
            let (excerpt, role) = (excerpt.replace('\n', " "), entry.message.role());
            let line = format!("entry {}, {}: {excerpt}", entry.index, role.as_str());
            if !measure.take(&line) {
                break;
            }
            lines.push(line);
        }
        if entries.len() > lines.len() {
            let why = if lines.len() < MOST_FOUND { measure.why() } else { String::new() };
            lines.push(format!("and {} more{why}", entries.len() - lines.len()));
        }
        Ok(lines.join("\n"))
    }
}

/// What may still be shown, in tokens.
struct Measure {
    counter: Arc<dyn Counter>,
    most: u64,
    left: u64,
}

impl Measure {
    /// Whether there is room for a text; then it is taken.
    fn take(&mut self, text: &str) -> bool {
        // One more for what stands between two texts.
        let left = self.left.checked_sub(self.counter.count(text) + 1);
        self.left = left.unwrap_or(self.left);
        left.is_some()
    }

    /// As much of the front of a text as there is room for.
    fn front<'t>(&self, text: &'t str) -> &'t str {
        let mut front = text;
        loop {
            let tokens = self.counter.count(front);
            if tokens <= self.left {
                return front;
            }
            // Nearly the part that fits, and always less than before.
            let part = self.left as f64 / tokens as f64 * 0.95;
            front = cut(text, (front.len() as f64 * part) as usize);
        }
    }

    /// Words that say which bound there is.
    fn why(&self) -> String {
        match self.most {
            u64::MAX => String::new(),
            most => format!("; the budget has room for {most} tokens"),
        }
    }
}

/// At most so many bytes, cut between characters.
fn cut(text: &str, len: usize) -> &str {
    let end = (0..=len.min(text.len())).rev().find(|&at| text.is_char_boundary(at));
    &text[..end.unwrap_or(0)]
}
