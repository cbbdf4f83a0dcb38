//! Fits and repairs a list of foreign messages without a stored conversation.
//!
//! The messages become a conversation in memory. FIT and [`fix`](crate::fix) change its view; the result
//! names the foreign messages that stay by their positions, so that a program can pass on its own objects,
//! and has new messages only where a repair made one.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use recto_core::{
    Approx, Conversation, Counter, Fit, Limits, LogIndex, Mark, Message, Settings, Unmark,
};
use serde_json::Value;

use crate::export::{Container, ExportOptions, export};
use crate::foreign_message::may_be_foreign;
use crate::format::message_list::CallNames;
use crate::json::{self, Str};
use crate::lint::{fix, lint};
use crate::parts::MessageParts;
use crate::{Error, Finding, Format, RenderOptions, Target};

/// A list of messages of a [`Format`], in memory.
///
/// ```
/// use recto_core::{Approx, Fit};
/// use recto_format::{ForeignList, Format, ListItem, Target};
///
/// let messages = [
///     r#"{"role": "user", "content": "Which flights?"}"#,
///     r#"{"role": "assistant", "content": "Let me look."}"#,
///     r#"{"role": "user", "content": "Never mind."}"#,
/// ];
/// let mut list = ForeignList::read(&messages, Format::OpenAiChat, std::sync::Arc::new(Approx))?;
/// list.fit(&Fit::within(14), &[])?;
/// list.repair(Target::OpenAiChat, None)?;
/// assert_eq!(list.items()?, [ListItem::Kept(1), ListItem::Kept(2)]);
/// # Ok::<(), recto_format::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ForeignList {
    format: Format,
    /// The log has the messages of all foreign messages, followed by the messages that repairs made.
    conversation: Conversation,
    /// For each foreign message, the number of log entries up to its end.
    ends: Vec<usize>,
}

/// An item of the list that results from fitting and repairing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListItem {
    /// The foreign message at this position of the given list.
    Kept(usize),
    /// A new message, as JSON in the format of the list.
    Made(String),
}

impl ForeignList {
    /// Reads messages, each the JSON of one foreign message. A message that cannot be read is kept and
    /// has no text. A message whose role the format does not have is [`Error::Malformed`], as in
    /// [`import`](crate::import()): its text would not be counted.
    ///
    /// Formats that are not lists of messages (sessions and exports) are [`Error::NotInFormat`]. A message
    /// of another format in a list of [`Format::Recto`] is [`Error::ForeignMessage`]: its tool calls would be
    /// neither counted nor paired.
    pub fn read(
        messages: &[&str],
        format: Format,
        counter: Arc<dyn Counter>,
    ) -> Result<ForeignList, Error> {
        let Some(read) = format.codec().read_list(messages) else {
            let looks_like = "a list of messages, which this format does not have".to_owned();
            return Err(Error::NotInFormat { format, looks_like });
        };
        let (mut all, mut ends) = (Vec::new(), Vec::with_capacity(messages.len()));
        let read = match read {
            Ok(read) => read,
            Err(error) => {
                refuse_foreign(messages.iter().enumerate(), format)?;
                return Err(error.in_format(format));
            }
        };
        for (at, converted) in read.into_iter().enumerate() {
            if format == Format::Recto && converted.iter().any(may_be_foreign) {
                refuse_foreign([(at, &messages[at])], format)?;
            }
            if format == Format::Recto && converted.iter().any(Message::is_foreign) {
                return Err(Error::ForeignMessage { position: at, format: None });
            }
            all.extend(converted);
            ends.push(all.len());
        }
        let settings = Settings { counter, ..Settings::counting_with(Approx) };
        let conversation = Conversation::with_messages(settings, &all, 0)?;
        Ok(ForeignList { format, conversation, ends })
    }

    /// The tokens of the list, with the messages that repairs made.
    pub fn tokens(&self) -> u64 {
        self.tokens_of_items().unwrap_or_else(|_| self.conversation.stats().tokens)
    }

    /// The tokens of [`items`](Self::items). A repair makes one message with all results of a turn. Most
    /// formats have one message for each result, so the made items are read again and counted.
    fn tokens_of_items(&self) -> Result<u64, Error> {
        let given = self.ends.last().copied().unwrap_or(0);
        if self.conversation.view().iter().all(|index| index.as_usize() < given) {
            return Ok(self.conversation.stats().tokens);
        }
        let of_each = self.tokens_of_each();
        let (mut tokens, mut made) = (0, Vec::new());
        for item in self.items()? {
            match item {
                ListItem::Kept(at) => tokens += of_each[at],
                ListItem::Made(message) => made.push(message),
            }
        }
        let made: Vec<&str> = made.iter().map(String::as_str).collect();
        let counter = Arc::clone(self.conversation.counter());
        let made = ForeignList::read(&made, self.format, counter)?;
        Ok(tokens + made.conversation.stats().tokens)
    }

    /// The tokens of each foreign message, whether it is kept or not.
    pub fn tokens_of_each(&self) -> Vec<u64> {
        let tokens = |at: usize| self.conversation.log().tokens(LogIndex(at as u32)).unwrap_or(0);
        (0..self.ends.len()).map(|item| self.entries_of(item).map(tokens).sum()).collect()
    }

    /// Keeps the newest messages that fit a budget, with FIT, and those at the positions `keep`.
    ///
    /// A foreign message that became several messages is kept or dropped as a whole.
    pub fn fit(&mut self, fit: &Fit, keep: &[usize]) -> Result<(), Error> {
        let pinned: Vec<LogIndex> = keep
            .iter()
            .filter(|&&item| item < self.ends.len())
            .flat_map(|&item| self.entries_of(item))
            .map(|entry| LogIndex(entry as u32))
            .collect();
        let mut pins = self.conversation.clone();
        if !pinned.is_empty() {
            pins = pins.apply(Mark::pin(pinned.iter().copied()), 0)?.0;
        }
        let mut budget = fit.max_tokens;
        let fitted = loop {
            let fitted = match pins.apply(Fit { max_tokens: budget, ..fit.clone() }, 0) {
                Ok((fitted, _)) => fitted,
                Err(recto_core::Error::BudgetTooSmall { .. }) => {
                    return Err(self.too_small(&pins, fit));
                }
                Err(error) => return Err(error.into()),
            };
            if !self.splits_an_item(&fitted) {
                break fitted;
            }
            // The run starts inside a foreign message: the next shorter run starts later.
            budget = fitted.stats().tokens.saturating_sub(1);
        };
        self.conversation = match pinned.is_empty() {
            true => fitted,
            // The pins end with FIT, because a repair may have to replace these messages.
            false => fitted.apply(Unmark::unpin(pinned), 0)?.0,
        };
        Ok(())
    }

    /// True if a view shows some but not all messages that one foreign message became.
    fn splits_an_item(&self, fitted: &Conversation) -> bool {
        let shown: BTreeSet<usize> = fitted.view().iter().map(|index| index.as_usize()).collect();
        (0..self.ends.len()).any(|item| {
            let count = self.entries_of(item).filter(|entry| shown.contains(entry)).count();
            count != 0 && count != self.entries_of(item).len()
        })
    }

    /// The error of a budget into which no run of whole foreign messages fits, with a budget that suffices.
    fn too_small(&self, pins: &Conversation, fit: &Fit) -> Error {
        let suffices = |max_tokens: u64| {
            let fitted = pins.apply(Fit { max_tokens, ..fit.clone() }, 0);
            fitted.is_ok_and(|(fitted, _)| !self.splits_an_item(&fitted))
        };
        let (mut low, mut needed) = (fit.max_tokens, pins.stats().tokens);
        while low + 1 < needed {
            let middle = low + (needed - low) / 2;
            match suffices(middle) {
                true => needed = middle,
                false => low = middle,
            }
        }
        let max_tokens = fit.max_tokens;
        recto_core::Error::BudgetTooSmall { needed, max_tokens }.into()
    }

    /// Fits a budget as [`fit`](Self::fit) does and repairs the result as [`repair`](Self::repair) does.
    /// The messages that the repairs add are part of the budget. Returns the findings of the result.
    pub fn fit_and_repair(
        &mut self,
        fit: &Fit,
        keep: &[usize],
        target: Target,
        model: Option<&str>,
    ) -> Result<Vec<Finding>, Error> {
        let repaired = |budget: u64| -> Result<(ForeignList, Vec<Finding>), Error> {
            let mut list = self.clone();
            list.fit(&Fit { max_tokens: budget, ..fit.clone() }, keep)?;
            let findings = list.repair(target, model)?;
            Ok((list, findings))
        };
        let is_small = |found: &(ForeignList, Vec<Finding>)| found.0.tokens() <= fit.max_tokens;
        let too_small = |error: &Error| {
            matches!(error, Error::Engine(recto_core::Error::BudgetTooSmall { .. }))
        };
        let found = match repaired(fit.max_tokens) {
            Ok(found) if is_small(&found) => found,
            Err(error) if !too_small(&error) => return Err(error),
            // Searches for the largest budget whose repaired result fits. The search starts at the smallest
            // budget that FIT accepts.
            _ => {
                let mut low = match self.clone().fit(&Fit { max_tokens: 0, ..fit.clone() }, keep) {
                    Err(Error::Engine(recto_core::Error::BudgetTooSmall { needed, .. })) => needed,
                    Err(error) => return Err(error),
                    Ok(()) => 0,
                };
                let mut high = fit.max_tokens;
                let mut found = repaired(low)?;
                if !is_small(&found) {
                    let (needed, max_tokens) = (low.max(found.0.tokens()), fit.max_tokens);
                    return Err(recto_core::Error::BudgetTooSmall { needed, max_tokens }.into());
                }
                while low + 1 < high {
                    let middle = low + (high - low) / 2;
                    let tried = repaired(middle)?;
                    match is_small(&tried) {
                        true => (low, found) = (middle, tried),
                        false => high = middle,
                    }
                }
                found
            }
        };
        let (list, findings) = found;
        *self = list;
        Ok(findings)
    }

    /// Repairs the list for a provider: afterwards all findings of [`lint`] have the severity `note`. Returns
    /// the findings before the repair; their `index` is a position in the given list.
    pub fn repair(&mut self, target: Target, model: Option<&str>) -> Result<Vec<Finding>, Error> {
        let options = RenderOptions { model, ..RenderOptions::default() };
        let mut findings = lint(self.conversation.messages(), target, &options);
        let view: Vec<LogIndex> = self.conversation.view().iter().collect();
        for finding in &mut findings {
            finding.index = view.get(finding.index).map_or(self.ends.len(), |entry| {
                self.ends.partition_point(|&end| end <= entry.as_usize())
            });
        }
        let entries = self.conversation.entries().map(|entry| (entry.index, entry.message));
        if let Some(request) = fix(entries, target, &options)? {
            self.conversation = self.conversation.apply(request, 0)?.0;
        }
        Ok(findings)
    }

    /// The list: foreign messages that stay, and new ones.
    pub fn items(&self) -> Result<Vec<ListItem>, Error> {
        let given = self.ends.last().copied().unwrap_or(0);
        let shown: BTreeSet<usize> =
            self.conversation.view().iter().map(|index| index.as_usize()).collect();
        let mut originals = Originals {
            hidden: (0..given).filter(|entry| !shown.contains(entry)).collect(),
            conversation: &self.conversation,
        };
        let mut pieces: Vec<Piece> = Vec::new();
        for index in self.conversation.view().iter() {
            let message = self.conversation.message(index).expect("the log has the entry");
            match index.as_usize() < given {
                true => pieces.push(Piece::Given(index.as_usize())),
                false => originals.find(message, &mut pieces)?,
            }
        }
        self.joined(&pieces)
    }

    /// Joins the pieces of each foreign message. If some of them are missing, the others are written as
    /// new messages.
    fn joined(&self, pieces: &[Piece]) -> Result<Vec<ListItem>, Error> {
        let mut items = Vec::new();
        let mut at = 0;
        while let Some(piece) = pieces.get(at) {
            at += 1;
            let entry = match piece {
                Piece::Made(message) => {
                    self.write(message, &mut items)?;
                    continue;
                }
                &Piece::Given(entry) => entry,
            };
            let item = self.ends.partition_point(|&end| end <= entry);
            let entries = self.entries_of(item);
            let rest = entries.clone().skip(1).map(Piece::Given);
            if entry == entries.start
                && rest.eq(pieces[at..].iter().take(entries.len() - 1).cloned())
            {
                at += entries.len() - 1;
                // Foreign messages that were converted to no message are kept with the next message.
                let before =
                    (0..item).rev().take_while(|&before| self.entries_of(before).is_empty());
                let mut before: Vec<usize> = before.collect();
                before.reverse();
                items.extend(before.into_iter().chain([item]).map(ListItem::Kept));
            } else {
                let message = self.conversation.message(LogIndex(entry as u32));
                self.write(message.expect("the log has the entry"), &mut items)?;
            }
        }
        // The last foreign messages that were converted to no message have no next message.
        let after = (0..self.ends.len()).rev().take_while(|&item| self.entries_of(item).is_empty());
        let mut after: Vec<usize> = after.collect();
        after.reverse();
        items.extend(after.into_iter().map(ListItem::Kept));
        Ok(items)
    }

    /// Writes a message in the format of the list.
    fn write(&self, message: &Message, items: &mut Vec<ListItem>) -> Result<(), Error> {
        let options = ExportOptions { container: Container::Lines, ..ExportOptions::default() };
        let mut written = Vec::new();
        export([&*self.with_names(message)?], self.format, &options, &mut written)?;
        let written = String::from_utf8_lossy(&written);
        items.extend(written.lines().map(|line| ListItem::Made(line.to_owned())));
        Ok(())
    }

    /// The message with the names of the tools in its results, if the format writes them with the results.
    fn with_names<'m>(&self, message: &'m Message) -> Result<Cow<'m, Message>, Error> {
        let writes_names = matches!(
            self.format,
            Format::Gemini | Format::OpenAiAgentsJs | Format::VercelModel | Format::PydanticAi
        );
        if !writes_names || message.tool_result_ids().next().is_none() {
            return Ok(Cow::Borrowed(message));
        }
        let mut names = CallNames::default();
        for message in self.conversation.messages() {
            names.record(&MessageParts::of(message));
        }
        let mut value: Value = serde_json::from_str(message.json()).unwrap_or_default();
        for part in value["content"].as_array_mut().into_iter().flatten() {
            let id = part["tool_use_id"].as_str().map(json::string);
            let name = id.as_deref().and_then(Str::of).and_then(|id| names.of(id));
            if let (Some(name), None) = (name, part.get("name")) {
                part["name"] = name.text().into();
            }
        }
        Ok(Cow::Owned(Message::from_json_within(&value.to_string(), &Limits::NONE)?))
    }

    /// The log entries of a foreign message.
    fn entries_of(&self, item: usize) -> std::ops::Range<usize> {
        let start = item.checked_sub(1).map_or(0, |before| self.ends[before]);
        start..self.ends[item]
    }
}

/// Refuses messages of other formats in a list of Recto's own messages.
fn refuse_foreign<'m>(
    messages: impl IntoIterator<Item = (usize, &'m &'m str)>,
    format: Format,
) -> Result<(), Error> {
    if format != Format::Recto {
        return Ok(());
    }
    let foreign = |(position, message): (usize, &&str)| {
        Some(Error::ForeignMessage { position, format: Some(Format::of_foreign_message(message)?) })
    };
    messages.into_iter().find_map(foreign).map_or(Ok(()), Err)
}

/// A message of the result.
#[derive(Clone, PartialEq)]
enum Piece {
    /// A log entry that was given.
    Given(usize),
    Made(Message),
}

/// Given messages that a repair replaced. A repair writes all messages of a turn again, including those that
/// it does not change.
struct Originals<'a> {
    hidden: BTreeSet<usize>,
    conversation: &'a Conversation,
}

impl Originals<'_> {
    /// Adds the given message that is equal to `made`. If there is none, splits `made` into its results and
    /// adds, for each, the equal given message or the new one.
    fn find(&mut self, made: &Message, pieces: &mut Vec<Piece>) -> Result<(), Error> {
        if let Some(entry) = self.equal(made) {
            pieces.push(Piece::Given(entry));
            return Ok(());
        }
        for single in single_results(made)? {
            pieces.push(match self.equal(&single) {
                Some(entry) => Piece::Given(entry),
                None => Piece::Made(single),
            });
        }
        Ok(())
    }

    fn equal(&mut self, made: &Message) -> Option<usize> {
        let content = comparable(made);
        let is_equal = |entry: &usize| {
            let message = self.conversation.message(LogIndex(*entry as u32));
            message.is_some_and(|given| given.role() == made.role() && comparable(given) == content)
        };
        let found = self.hidden.iter().copied().find(is_equal)?;
        self.hidden.remove(&found);
        Some(found)
    }
}

/// Splits a message that consists of several tool results into one message for each result.
fn single_results(message: &Message) -> Result<Vec<Message>, Error> {
    let value: Value = serde_json::from_str(message.json()).unwrap_or_default();
    let parts = value["content"].as_array().map_or(&[][..], Vec::as_slice);
    if parts.len() < 2 || parts.iter().any(|part| part["type"] != "tool_result") {
        return Ok(vec![message.clone()]);
    }
    let single = |part: &Value| {
        let mut single = value.clone();
        single["content"] = vec![part.clone()].into();
        Message::from_json_within(&single.to_string(), &Limits::NONE)
    };
    Ok(parts.iter().map(single).collect::<Result<_, _>>()?)
}

/// The content of a message in one form: a string is a list with one text.
fn comparable(message: &Message) -> Value {
    let value: Value = serde_json::from_str(message.json()).unwrap_or_default();
    comparable_content(&value["content"])
}

fn comparable_content(content: &Value) -> Value {
    let parts = match content {
        Value::String(text) if text.is_empty() => Vec::new(),
        Value::String(text) => vec![serde_json::json!({ "type": "text", "text": text })],
        Value::Array(parts) => parts.clone(),
        _ => Vec::new(),
    };
    let part = |part: Value| {
        let Value::Object(fields) = part else { return part };
        // A tool part may have the nested form.
        let nested = fields.get("type").and_then(Value::as_str).and_then(|kind| fields.get(kind));
        let mut flat = nested.and_then(Value::as_object).cloned().unwrap_or_default();
        let is_nested = !flat.is_empty();
        for (key, value) in fields {
            if !(is_nested && value.is_object()) {
                flat.insert(key, value);
            }
        }
        if flat.get("type").is_some_and(|kind| kind == "tool_result") {
            let content = comparable_content(flat.get("content").unwrap_or(&Value::Null));
            flat.insert("content".to_owned(), content);
            flat.retain(|key, value| key != "is_error" || *value == true);
            flat.retain(|key, _| key != "name");
        }
        Value::Object(flat)
    };
    parts.into_iter().map(part).collect()
}
