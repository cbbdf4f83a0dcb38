//! `{"fit": [MESSAGE, …], "maxTokens": N}`, `{"repair": [MESSAGE, …], "for": PROVIDER}` and
//! `{"countTokens": [MESSAGE, …]}`: requests about a list of messages that is not stored.

use std::sync::Arc;

use recto_core::{Counter, Error as EngineError, Fit as FitOperation, Role};
use recto_format::{Finding, ForeignList, Format, ListItem};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::Error;
use crate::error::wrong;
use crate::schema;
use crate::values::{Provider, TranscriptFormat};

/// Keeps the newest messages of a list that fit a token budget. Nothing is stored.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FitList<'a> {
    /// The messages.
    #[serde(borrow)]
    #[schemars(with = "Vec<schema::Anything>")]
    pub fit: Vec<&'a RawValue>,
    /// The format of the messages. Default: `recto`; a message of another format is then an error that
    /// names its format.
    pub format: Option<TranscriptFormat>,
    /// The largest number of tokens that the list may have.
    pub max_tokens: u64,
    /// The number of tokens that a list with more than `maxTokens` is cut down to. Default: `maxTokens`.
    pub target_tokens: Option<u64>,
    /// Whether system messages stay. Default: `true`.
    pub keep_system: Option<bool>,
    /// The role of the first message that stays, besides system messages. Default: any.
    #[schemars(with = "Option<schema::Role>")]
    pub start_on: Option<String>,
    /// Positions of messages that stay.
    pub keep: Option<Vec<u64>>,
    /// The token counter. Default: `o200k_base`.
    #[schemars(with = "Option<schema::CounterName>")]
    pub counter: Option<String>,
    /// The provider whose rules the list must follow afterwards. The messages that the repairs add are part
    /// of the budget. Default: no repairs.
    pub repair_for: Option<Provider>,
    /// The model.
    pub model: Option<String>,
}

/// Repairs a list of messages for a provider. Nothing is stored.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RepairList<'a> {
    /// The messages.
    #[serde(borrow)]
    #[schemars(with = "Vec<schema::Anything>")]
    pub repair: Vec<&'a RawValue>,
    /// The provider.
    #[serde(rename = "for")]
    pub provider: Provider,
    /// The format of the messages. Default: `recto`; a message of another format is then an error that
    /// names its format.
    pub format: Option<TranscriptFormat>,
    /// The token counter. Default: `o200k_base`.
    #[schemars(with = "Option<schema::CounterName>")]
    pub counter: Option<String>,
    /// The model.
    pub model: Option<String>,
}

/// Counts the tokens of messages. Nothing is stored.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CountTokens<'a> {
    /// The messages.
    #[serde(borrow)]
    #[schemars(with = "Vec<schema::Anything>")]
    pub count_tokens: Vec<&'a RawValue>,
    /// The format of the messages. Default: `recto`; a message of another format is then an error that
    /// names its format.
    pub format: Option<TranscriptFormat>,
    /// The token counter. Default: `o200k_base`.
    #[schemars(with = "Option<schema::CounterName>")]
    pub counter: Option<String>,
}

/// A list that was fitted or repaired.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct FittedList {
    /// The list.
    pub messages: Vec<FittedMessage>,
    /// Positions of messages that were given and are not in the list, in ascending order.
    pub dropped: Vec<usize>,
    /// The tokens of the given messages.
    pub tokens_before: u64,
    /// The tokens of the list.
    pub tokens: u64,
    /// The repairs.
    pub repairs: Vec<ListRepair>,
}

/// A message of a list that was fitted or repaired.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum FittedMessage {
    /// The position of a message that was given.
    From(usize),
    /// A new message, in the format of the list.
    #[schemars(with = "schema::Anything")]
    Made(Box<RawValue>),
}

/// A repair of a list.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListRepair {
    /// The name of the rule.
    pub rule: &'static str,
    /// `error`, `warning` or `note`.
    pub severity: &'static str,
    /// The position of the message that was given.
    pub index: usize,
    /// The problem.
    pub message: String,
    /// How it was repaired.
    pub repair: &'static str,
}

/// The tokens of messages.
#[derive(Debug, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct TokenCount {
    /// The tokens of all messages together.
    pub tokens: u64,
    /// The tokens of each message.
    pub each: Vec<u64>,
}

impl FitList<'_> {
    /// Performs the request. It needs no store.
    pub fn compute(self) -> Result<FittedList, Error> {
        let start_on = self.start_on.as_deref().map(role_named).transpose()?;
        let max_tokens = self.target_tokens.unwrap_or(self.max_tokens);
        if max_tokens > self.max_tokens {
            return Err(wrong("targetTokens", "targetTokens is at most maxTokens").into());
        }
        let fit =
            FitOperation { max_tokens, keep_system: self.keep_system.unwrap_or(true), start_on };
        let count = self.fit.len();
        let keep: Vec<usize> = self.keep.iter().flatten().map(|&at| at as usize).collect();
        if let Some(at) = keep.iter().find(|&&at| at >= count) {
            let reason = format!("there is no message at position {at}; the list has {count}");
            return Err(wrong("keep", reason).into());
        }
        let mut list = read(&self.fit, "fit", self.format, self.counter.as_deref())?;
        let before = list.tokens();
        let findings = match self.repair_for {
            Some(Provider(target)) => {
                let model = self.model.as_deref();
                let mut whole = list.clone();
                let repaired = match before <= self.max_tokens {
                    true => Some(whole.repair(target, model)?),
                    false => None,
                };
                // A list that is small enough as it is may be too large with the repairs.
                match repaired.filter(|_| whole.tokens() <= self.max_tokens) {
                    Some(findings) => {
                        list = whole;
                        findings
                    }
                    None => list.fit_and_repair(&fit, &keep, target, model)?,
                }
            }
            None if before > self.max_tokens => {
                list.fit(&fit, &keep)?;
                Vec::new()
            }
            None => Vec::new(),
        };
        fitted(&list, count, before, &findings)
    }
}

impl RepairList<'_> {
    /// Performs the request. It needs no store.
    pub fn compute(self) -> Result<FittedList, Error> {
        let mut list = read(&self.repair, "repair", self.format, self.counter.as_deref())?;
        let before = list.tokens();
        let findings = list.repair(self.provider.0, self.model.as_deref())?;
        fitted(&list, self.repair.len(), before, &findings)
    }
}

impl CountTokens<'_> {
    /// Performs the request. It needs no store.
    pub fn compute(self) -> Result<TokenCount, Error> {
        let list = read(&self.count_tokens, "countTokens", self.format, self.counter.as_deref())?;
        let each = list.tokens_of_each();
        Ok(TokenCount { tokens: each.iter().sum(), each })
    }
}

fn role_named(name: &str) -> Result<Role, EngineError> {
    let roles = [Role::System, Role::User, Role::Assistant, Role::Tool];
    roles.into_iter().find(|role| role.as_str() == name).ok_or_else(|| {
        let reason = format!("there is no role {name:?}; use system, user, assistant, tool");
        wrong("startOn", reason)
    })
}

fn read(
    messages: &[&RawValue],
    field: &str,
    format: Option<TranscriptFormat>,
    counter: Option<&str>,
) -> Result<ForeignList, Error> {
    let counter = counter_named(counter.unwrap_or("o200k_base"))?;
    let format = format.map_or(Format::Recto, |format| format.0);
    for (number, message) in messages.iter().enumerate() {
        if !message.get().starts_with('{') {
            let field = format!("{field}[{number}]");
            return Err(wrong(&field, format!("{field} is a message: an object")).into());
        }
    }
    let messages: Vec<&str> = messages.iter().map(|message| message.get()).collect();
    ForeignList::read(&messages, format, counter)
        .map_err(|error| Error::from(error).in_field(field))
}

fn fitted(
    list: &ForeignList,
    given: usize,
    tokens_before: u64,
    findings: &[Finding],
) -> Result<FittedList, Error> {
    let mut dropped = vec![true; given];
    let mut messages = Vec::new();
    for item in list.items()? {
        messages.push(match item {
            ListItem::Kept(at) => {
                dropped[at] = false;
                FittedMessage::From(at)
            }
            ListItem::Made(json) => {
                let json = RawValue::from_string(json).map_err(std::io::Error::other);
                FittedMessage::Made(json.map_err(recto_format::Error::Io)?)
            }
            _ => continue,
        });
    }
    let repairs = findings.iter().map(|finding| ListRepair {
        rule: finding.rule.name,
        severity: finding.rule.severity.as_str(),
        index: finding.index,
        message: finding.message.clone(),
        repair: finding.rule.repair,
    });
    Ok(FittedList {
        messages,
        dropped: (0..given).filter(|&at| dropped[at]).collect(),
        tokens_before,
        tokens: list.tokens(),
        repairs: repairs.collect(),
    })
}

/// A built-in token counter by its name.
pub fn counter_named(name: &str) -> Result<Arc<dyn Counter>, EngineError> {
    <dyn Counter>::named(name).ok_or_else(|| {
        let known = <dyn Counter>::BUILT_IN.join(", ");
        wrong("counter", format!("there is no counter {name:?}; use {known}"))
    })
}
