//! `recto grep`: finds messages by text.

use std::collections::BTreeSet;

use anstyle::Style;
use clap::Args;
use recto::{Pick, Query};
use recto_service::{Search as SearchRequest, SearchHit};
use serde::Serialize;

use super::show::Select;
use crate::arguments::ConversationArgument;
use crate::context::Context;
use crate::entry_line::{
    EntryLine as _, ShownEntry, heading, position_column, position_heading, text_of,
};
use crate::failure::Failure;
use crate::numbers::counted;
use crate::output::CommandResult;
use crate::page::{FAINT, Line, Page, STRONG};
use crate::printable;
use crate::session::{NamedConversation, Session};

/// Find messages that contain a text.
///
/// Searches the view, with --all the log, with --everywhere all conversations.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto grep 'no answer'
  recto grep -i error --at now-3
  recto grep --all timeout --role tool
  recto grep --everywhere 'timeout gateway'    # whole words, in all conversations: `recto search`")]
pub(crate) struct Grep {
    /// Text to find; case matters unless -i is given
    text: String,

    /// Ignore case
    #[arg(short, long)]
    ignore_case: bool,

    #[command(flatten)]
    of: ConversationArgument,

    #[command(flatten)]
    select: Select,

    /// Find whole words in all conversations of the store, also in hidden messages
    #[arg(long, conflicts_with_all = ["ignore_case", "all", "role", "contains", "excludes", "mark", "since", "until", "at", "batch"])]
    everywhere: bool,

    /// Maximum number of messages
    #[arg(long, value_name = "COUNT", default_value_t = 1_000)]
    limit: usize,
}

impl Grep {
    pub(crate) fn run(mut self, context: &mut Context<'_>) -> Result<(), Failure> {
        let session = context.session()?;
        if self.everywhere {
            return context.print(&Found::everywhere(self.text, self.limit, &session)?);
        }
        let named = session.conversation(&self.of.conversation)?;
        let (entries, mut words) = self.found(&session, &named)?;
        words.append(&mut self.select.contains);
        let hits = entries.into_iter().map(|entry| Hit { conversation: None, entry });
        let (hits, is_everything) = (hits.collect(), self.select.all);
        context.print(&Found { text: self.text, hits, words, is_everything })
    }

    /// The messages that contain the text and pass the filters, at most `limit`, and the spellings of the
    /// text in the messages.
    fn found(
        &self,
        session: &Session,
        named: &NamedConversation,
    ) -> Result<(Vec<ShownEntry>, Vec<String>), Failure> {
        if self.text.is_empty() {
            return Err(Failure::Usage("the text is empty; every message contains it".to_owned()));
        }
        if !self.ignore_case && self.select.contains.is_empty() {
            let contains = Some(vec![self.text.clone()]);
            let query = Query { contains, ..self.select.query(Pick::First(self.limit), named)? };
            return Ok((super::show::found(session, named, &query)?, vec![self.text.clone()]));
        }
        // A query cannot ignore case, and it finds messages that contain any of its texts. So `-i`, and the
        // combination of the text with `--contains`, are handled here.
        let query = self.select.query(Pick::All, named)?;
        let mut found = super::show::found(session, named, &query)?;
        let lower = self.text.to_lowercase();
        let mut words = BTreeSet::new();
        found.retain(|entry| {
            let text = entry.message.text();
            let hits = match self.ignore_case {
                true => in_any_case(&text, &lower),
                false => text.contains(&self.text).then(|| self.text.clone()).into_iter().collect(),
            };
            let is_hit = !hits.is_empty();
            words.extend(hits);
            is_hit
        });
        found.truncate(self.limit);
        Ok((found, words.into_iter().collect()))
    }
}

/// All spellings, in upper and lower case, with which a word occurs in a text. `word` is in lower case.
fn in_any_case(text: &str, word: &str) -> BTreeSet<String> {
    // Conversion to lower case can change the length of a text, so `places` maps each byte of the converted
    // text to the start of the character that it comes from.
    let mut lower = String::with_capacity(text.len());
    let mut places = Vec::with_capacity(text.len() + 1);
    for (at, character) in text.char_indices() {
        for small in character.to_lowercase() {
            lower.push(small);
            places.extend(std::iter::repeat_n(at, small.len_utf8()));
        }
    }
    places.push(text.len());
    let mut spellings = BTreeSet::new();
    for (start, _) in lower.match_indices(word) {
        let last = text[places[start + word.len() - 1]..].chars().next();
        let end = places[start + word.len() - 1] + last.map_or(0, char::len_utf8);
        spellings.insert(text[places[start]..end].to_owned());
    }
    spellings
}

/// The messages that were found.
#[derive(Serialize)]
pub(super) struct Found {
    text: String,
    #[serde(rename = "messages")]
    hits: Vec<Hit>,
    #[serde(skip)]
    words: Vec<String>,
    /// Whether hidden messages were searched too.
    #[serde(skip)]
    is_everything: bool,
}

impl Found {
    /// The messages that contain all words of a text, from all conversations.
    pub(super) fn everywhere(
        text: String,
        limit: usize,
        session: &Session,
    ) -> Result<Found, Failure> {
        let limit = Some(limit as u64);
        let found = session.run(SearchRequest { search: text.clone(), limit })?.messages;
        let hits = found.into_iter().map(|SearchHit { conversation, entry, .. }| Hit {
            conversation: Some(conversation),
            entry,
        });
        let hits = hits.collect();
        let words = text.split_whitespace().map(str::to_owned).collect();
        Ok(Found { text, hits, words, is_everything: true })
    }
}

/// Column at which the text of a message starts: marks may move it further.
const TEXT_COLUMN: usize = 40;

/// Width at which the names of conversations are cut.
const MAX_NAME_WIDTH: usize = 30;

#[derive(Serialize)]
struct Hit {
    #[serde(skip_serializing_if = "Option::is_none")]
    conversation: Option<String>,
    #[serde(flatten)]
    entry: ShownEntry,
}

impl CommandResult for Found {
    fn show(&self, page: &mut Page) {
        let names = self.hits.iter().filter_map(|hit| hit.conversation.as_deref());
        let width = names.map(|name| printable::width(&printable::escaped(name))).max();
        let width = width.map(|width| width.clamp("conversation".len(), MAX_NAME_WIDTH));
        if !self.hits.is_empty() {
            page.line(heading(&match width {
                Some(width) => format!("{:<width$} ", "conversation"),
                None => position_heading(),
            }));
        }
        for Hit { conversation, entry } in &self.hits {
            if let (Some(conversation), Some(width)) = (conversation, width) {
                let name = printable::one_line(conversation, width);
                let space = " ".repeat((width + 1).saturating_sub(printable::width(&name)));
                let line = entry.line((STRONG, &format!("{name}{space}")), &self.words, page);
                page.line(line);
                continue;
            }
            let lead = position_column(entry);
            let mut shown = entry.clone();
            if page.cuts_lines() {
                shown.message = around(entry, &self.words, page.columns());
            }
            let line = shown.line((Style::new(), &lead), &self.words, page);
            page.line(line);
        }
        let count = counted(self.hits.len() as u64, "message");
        let more = match self.hits.is_empty() && !self.is_everything {
            true => "; --all also searches hidden messages",
            false => "",
        };
        page.line(Line::new().styled(FAINT, format!("{count} found{more}")));
    }
}

/// The message with an excerpt as its text, which starts shortly before the first hit. If the text fits
/// the line, or the first hit is near its start, the message is returned unchanged.
fn around(entry: &ShownEntry, words: &[String], columns: usize) -> recto::Message {
    let text = text_of(&entry.message);
    // On the line, the text comes after the columns with the entry, the role and the tokens.
    if printable::width(&printable::escaped(&text)) + TEXT_COLUMN <= columns {
        return entry.message.clone();
    }
    let first = words.iter().filter_map(|word| text.find(word.as_str())).min().unwrap_or(0);
    if first <= 40 {
        return entry.message.clone();
    }
    let start = text.char_indices().map(|(at, _)| at).rfind(|at| *at + 20 <= first);
    let excerpt = format!("…{}", &text[start.unwrap_or(0)..]);
    recto::Message::new(entry.message.role(), &excerpt).unwrap_or_else(|_| entry.message.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_spellings_of_a_word_in_upper_and_lower_case_are_found() {
        let found = |text: &str, word: &str| {
            in_any_case(text, &word.to_lowercase()).into_iter().collect::<Vec<_>>()
        };
        assert_eq!(found("Error: no ERROR, error", "eRRor"), ["ERROR", "Error", "error"]);
        assert_eq!(found("ÄRGER und ärger", "Ärger"), ["ÄRGER", "ärger"]);
        // İ is two characters in lower case.
        assert_eq!(found("İstanbul İSTANBUL", "stanbul"), ["STANBUL", "stanbul"]);
        assert!(found("İ", "i̇").contains(&"İ".to_owned()));
        assert_eq!(found("中文 Text", "文 T"), ["文 T"]);
        assert_eq!(found("nothing", "else"), Vec::<String>::new());
    }
}
