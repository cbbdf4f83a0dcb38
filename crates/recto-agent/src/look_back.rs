//! Tools that let the model look behind a summary, without changing what it reads.

use recto::{LogIndex, Query, Scope, StoredConversation, Tool};
use serde::Deserialize;

use crate::{BoxFuture, RunTool, ToolInput, ToolOutput};

/// The most bytes that one look shows.
const LONGEST: usize = 16 << 10;
/// The most entries that a search names.
const MOST_FOUND: usize = 20;
/// How much of an entry a search shows, in characters.
const EXCERPT: usize = 160;

/// `recto_expand`: the messages that a summary, or a result that was cleared, stands for.
#[derive(Clone, Debug)]
pub struct ExpandTool(pub StoredConversation);

/// `recto_search`: messages of the whole log, hidden or not.
#[derive(Clone, Debug)]
pub struct SearchTool(pub StoredConversation);

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
            match expanded(&self.0, range.from, range.to.unwrap_or(range.from)).await {
                Ok(text) => ToolOutput::ok(text),
                Err(error) => ToolOutput::error(error.to_string()),
            }
        })
    }
}

async fn expanded(talk: &StoredConversation, from: u32, to: u32) -> Result<String, recto::Error> {
    let log = talk.stats().await?.total_messages as u32;
    let end = to.saturating_add(1).min(log);
    let mut text = String::new();
    for index in from..end {
        let Some(entry) = talk.entries(&[LogIndex(index)]).await?.pop() else { break };
        let said = entry.message.text();
        let shown = format!("[entry {index}, {}]\n{said}\n\n", entry.message.role().as_str());
        if !text.is_empty() && text.len() + shown.len() > LONGEST {
            text.push_str(&format!("[more: go on from entry {index}]"));
            return Ok(text);
        }
        text.push_str(cut(&shown, LONGEST));
        if shown.len() > LONGEST {
            text.push_str("\n[the rest of it is left out]\n\n");
        }
    }
    if text.is_empty() {
        text = format!("there are no such entries; the log has 0 to {}", log.saturating_sub(1));
    }
    Ok(text)
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
            match found(&self.0, &text).await {
                Ok(text) => ToolOutput::ok(text),
                Err(error) => ToolOutput::error(error.to_string()),
            }
        })
    }
}

async fn found(talk: &StoredConversation, text: &str) -> Result<String, recto::Error> {
    let contains = Some(vec![text.to_owned()]);
    let entries = talk.ask(&Query { scope: Scope::All, contains, ..Query::default() }).await?;
    if entries.is_empty() {
        return Ok("nothing has it".into());
    }
    let mut lines = Vec::new();
    for entry in entries.iter().take(MOST_FOUND) {
        let said = entry.message.text();
        let at = said.find(text).unwrap_or(0);
        let start = said[..at].char_indices().rev().nth(EXCERPT / 4).map_or(0, |(at, _)| at);
        let excerpt: String = said[start..].chars().take(EXCERPT).collect();
        let excerpt = excerpt.replace('\n', " ");
        lines.push(format!("entry {}, {}: {excerpt}", entry.index, entry.message.role().as_str()));
    }
    if entries.len() > MOST_FOUND {
        lines.push(format!("and {} more", entries.len() - MOST_FOUND));
    }
    Ok(lines.join("\n"))
}

/// At most so many bytes, cut between characters.
fn cut(text: &str, len: usize) -> &str {
    let end = (0..=len.min(text.len())).rev().find(|&at| text.is_char_boundary(at));
    &text[..end.unwrap_or(0)]
}
