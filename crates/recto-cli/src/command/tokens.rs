//! `recto tokens`: where the budget goes.

use std::collections::HashMap;

use clap::Args;
use recto::{Moment, Query, Role};
use serde::Serialize;

use crate::arguments::OfConversation;
use crate::desk::Desk;
use crate::entry_line::ShownEntry;
use crate::failure::Failure;
use crate::numbers::{WhichVersion, counted, grouped};
use crate::output::Answer;
use crate::page::{FAINT, Line, Page, STRONG};
use crate::printable;

/// Show where the budget goes: by role, by tool, and the largest messages.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto tokens
  recto tokens --largest 20
  recto tokens --at now-3                  # as it was three versions ago
  recto tokens --json | jq .byTool")]
pub(crate) struct Tokens {
    #[command(flatten)]
    of: OfConversation,

    /// As it was at this version: 12, or now-3 for three before the newest
    #[arg(long, value_name = "VERSION")]
    at: Option<WhichVersion>,

    /// So many of the largest messages
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    largest: usize,
}

impl Tokens {
    pub(crate) fn run(self, desk: &mut Desk<'_>) -> Result<(), Failure> {
        let session = desk.session()?;
        let named = session.conversation(&self.of.conversation)?;
        let newest = named.talk.version()?;
        let version = self.at.unwrap_or(WhichVersion::Back(0)).from(newest)?;
        let moment = match version == newest {
            true => Moment::Now,
            false => Moment::Version(version),
        };
        let query = Query { moment, ..Query::default() };
        let entries = super::show::found(&session, &named, &query)?;
        let counter = session.recto.wait(named.talk.inner().settings())?.counter;
        let by_role = Role::ALL.map(|role| {
            let of_role = entries.iter().filter(|entry| entry.message.role() == role);
            Share::of(role.as_str(), of_role)
        });
        let by_tool = by_tool(&entries);
        let (messages, tokens) = (entries.len(), entries.iter().map(|entry| entry.tokens).sum());
        let mut largest = entries;
        largest
            .sort_by_key(|entry| std::cmp::Reverse((entry.tokens, std::cmp::Reverse(entry.index))));
        largest.truncate(self.largest);
        desk.answer(&Budget {
            conversation: named.name,
            version: version.0,
            counter,
            messages,
            tokens,
            by_role: by_role.into_iter().filter(|share| share.messages > 0).collect(),
            by_tool,
            largest,
        })
    }
}

/// Calls and results of each tool, the largest first.
fn by_tool(entries: &[ShownEntry]) -> Vec<Share> {
    let mut names: HashMap<String, String> = HashMap::new();
    let mut shares: HashMap<String, Share> = HashMap::new();
    for entry in entries {
        let calls: Vec<_> = entry.message.tool_calls().collect();
        for call in &calls {
            names.insert(call.id.clone().into_owned(), call.name.clone().into_owned());
        }
        let called = calls.iter().map(|call| call.name.clone().into_owned());
        let answered = entry
            .message
            .tool_results()
            .map(|id| names.get(&*id).cloned().unwrap_or_else(|| "(call not in view)".to_owned()));
        let mut tools: Vec<String> = called.chain(answered).collect();
        tools.sort();
        tools.dedup();
        // A message of several tools counts for each in equal parts.
        let parts = tools.len().max(1) as u64;
        for (number, name) in (0..).zip(tools) {
            let part = (entry.tokens + parts - 1 - number) / parts;
            let share = shares.entry(name.clone()).or_insert_with(|| Share {
                name,
                messages: 0,
                tokens: 0,
            });
            share.messages += 1;
            share.tokens += part;
        }
    }
    let mut shares: Vec<Share> = shares.into_values().collect();
    shares.sort_by(|one, other| other.tokens.cmp(&one.tokens).then(one.name.cmp(&other.name)));
    shares
}

#[derive(Serialize)]
struct Share {
    name: String,
    messages: usize,
    tokens: u64,
}

impl Share {
    fn of<'a>(name: &str, entries: impl Iterator<Item = &'a ShownEntry>) -> Share {
        let start = Share { name: name.to_owned(), messages: 0, tokens: 0 };
        entries.fold(start, |share, entry| Share {
            messages: share.messages + 1,
            tokens: share.tokens + entry.tokens,
            ..share
        })
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Budget {
    conversation: String,
    version: u32,
    counter: String,
    messages: usize,
    tokens: u64,
    by_role: Vec<Share>,
    by_tool: Vec<Share>,
    largest: Vec<ShownEntry>,
}

impl Answer for Budget {
    fn show(&self, page: &mut Page) {
        let messages = counted(self.messages as u64, "message");
        let title = format!("{} in {messages}", counted(self.tokens, "token"));
        let line = Line::new().styled(STRONG, title);
        page.line(
            line.styled(FAINT, format!(" at v{}, counted by {}", self.version, self.counter)),
        );
        // Into a pipe names go whole; on a terminal the bar has its room too.
        let longest = if page.is_terminal() { page.columns() / 4 } else { usize::MAX };
        let names = self.by_role.iter().chain(&self.by_tool);
        let names = names.map(|share| printable::width(&printable::escaped(&share.name)));
        let width = names.max().unwrap_or(0).max(18).min(longest.max(18));
        for (title, shares) in [("by role", &self.by_role), ("by tool", &self.by_tool)] {
            if shares.is_empty() {
                continue;
            }
            page.line(Line::new().styled(FAINT, title));
            for share in shares {
                page.line(self.bar(share, width, page.columns()));
            }
        }
        if !self.largest.is_empty() {
            page.line(Line::new().styled(FAINT, "largest"));
            for entry in &self.largest {
                let line = entry.line(Default::default(), &[], page);
                page.line(line);
            }
        }
    }
}

impl Budget {
    fn bar(&self, share: &Share, width: usize, columns: usize) -> Line {
        let part = share.tokens as f64 / self.tokens.max(1) as f64;
        // Behind the name: the tokens, the percentage; behind the bar: the messages.
        let before = 2 + width + 20;
        let room = columns.saturating_sub(before + 16).clamp(10, 40);
        Line::new()
            .text("  ")
            .text(printable::one_line(&share.name, width))
            .pad_to(2 + width)
            .text(format!(" {:>9} {:>4.0} %  ", grouped(share.tokens), part * 100.0))
            .text(bar_of(part, room))
            .pad_to(before + room)
            .styled(FAINT, counted(share.messages as u64, "message"))
    }
}

/// A bar of eighths.
pub(crate) fn bar_of(share: f64, room: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share.clamp(0.0, 1.0) * room as f64 * 8.0).round() as usize;
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}
