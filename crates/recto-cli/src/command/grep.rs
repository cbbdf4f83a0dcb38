//! `recto grep`: messages that have a text.

use anstyle::Style;
use clap::Args;
use recto::Pick;
use serde::Serialize;

use super::show::Select;
use crate::arguments::OfConversation;
use crate::desk::Desk;
use crate::entry_line::{ShownEntry, text_of};
use crate::failure::Failure;
use crate::numbers::counted;
use crate::output::Answer;
use crate::page::{FAINT, Line, Page, STRONG};

/// Find messages that have a text, in what the model reads or in everything.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto grep 'no answer'
  recto grep --all timeout --role tool
  recto grep --everywhere 'timeout gateway'    # whole words, in all conversations")]
pub(crate) struct Grep {
    /// The text; upper and lower case differ
    text: String,

    #[command(flatten)]
    of: OfConversation,

    #[command(flatten)]
    select: Select,

    /// Look for whole words in all conversations of the store, hidden messages too
    #[arg(long, conflicts_with_all = ["all", "role", "contains", "excludes", "mark", "since", "until", "at", "batch"])]
    everywhere: bool,

    /// At most so many
    #[arg(long, value_name = "COUNT", default_value_t = 1_000)]
    limit: usize,
}

impl Grep {
    pub(crate) fn run(mut self, desk: &mut Desk<'_>) -> Result<(), Failure> {
        let session = desk.session()?;
        if self.everywhere {
            let found = session.recto.search(&self.text, self.limit)?;
            let mut hits = Vec::new();
            for hit in found {
                let talk = session.recto.conversation(&hit.conversation)?;
                let entry = talk.entries(&[hit.index])?.into_iter().next();
                let entry = entry.map(ShownEntry::from);
                hits.extend(entry.map(|entry| Hit { conversation: Some(hit.conversation), entry }));
            }
            let words = self.text.split_whitespace().map(str::to_owned).collect();
            return desk.answer(&Found { text: self.text, hits, words });
        }
        let named = session.conversation(&self.of.conversation)?;
        self.select.contains.push(self.text.clone());
        let query = self.select.query(Pick::First(self.limit), &named)?;
        let entries = super::show::found(&session, &named, &query)?;
        let hits = entries.into_iter().map(|entry| Hit { conversation: None, entry });
        let words = self.select.contains.clone();
        desk.answer(&Found { text: self.text, hits: hits.collect(), words })
    }
}

#[derive(Serialize)]
struct Found {
    text: String,
    #[serde(rename = "messages")]
    hits: Vec<Hit>,
    #[serde(skip)]
    words: Vec<String>,
}

#[derive(Serialize)]
struct Hit {
    #[serde(skip_serializing_if = "Option::is_none")]
    conversation: Option<String>,
    #[serde(flatten)]
    entry: ShownEntry,
}

impl Answer for Found {
    fn show(&self, page: &mut Page) {
        for Hit { conversation, entry } in &self.hits {
            if let Some(conversation) = conversation {
                let line = entry.line((STRONG, &format!("{conversation} ")), &self.words, page);
                page.line(line);
                continue;
            }
            let place = entry.position.map_or("hidden".into(), |position| position.to_string());
            let lead = format!("{place:>6}");
            let shown = match page.is_terminal() {
                true => ShownEntry { message: around(entry, &self.words), ..entry.clone() },
                false => entry.clone(),
            };
            let line = shown.line((Style::new(), &lead), &self.words, page);
            page.line(line);
        }
        let count = counted(self.hits.len() as u64, "message");
        page.line(Line::new().styled(FAINT, format!("{count} found")));
    }
}

/// The message, beginning a little before the first hit if that is far inside.
fn around(entry: &ShownEntry, words: &[String]) -> recto::Message {
    let text = text_of(&entry.message);
    let first = words.iter().filter_map(|word| text.find(word.as_str())).min().unwrap_or(0);
    if first <= 40 {
        return entry.message.clone();
    }
    let start = text.char_indices().map(|(at, _)| at).rfind(|at| *at + 20 <= first);
    let excerpt = format!("…{}", &text[start.unwrap_or(0)..]);
    recto::Message::new(entry.message.role(), &excerpt).unwrap_or_else(|_| entry.message.clone())
}
