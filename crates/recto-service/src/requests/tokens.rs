//! `{"conversation": NAME, "tokens": true}`

use std::cmp::Reverse;
use std::collections::HashMap;

use recto::{Query, QueryAt, Role};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::InField as _;
use crate::{At, Error, Perform, Service, ShownEntry, TrueOr, entries_of};

/// The tokens of the view: by role, by tool, and the largest messages.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Tokens {
    /// The conversation: its whole name, or its id.
    pub conversation: String,
    /// `true`, or options.
    pub tokens: TrueOr<TokensOptions>,
    /// The version to read. Default: the newest.
    pub at: Option<At>,
}

/// Options of `tokens`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TokensOptions {
    /// Maximum number of messages in `largest`. Default: 10.
    pub largest: Option<u64>,
}

/// The tokens of a view.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TokenShares {
    /// The conversation's name.
    pub conversation: String,
    /// The version of the view.
    pub version: u32,
    /// The token counter.
    pub counter: String,
    /// The number of messages in the view.
    pub messages: usize,
    /// The tokens of the view.
    pub tokens: u64,
    /// The shares of the roles. Roles without messages are missing.
    pub by_role: Vec<TokenShare>,
    /// The shares of the tools, the largest first. The tokens of a message with calls or results of
    /// several tools are divided equally among these tools. `(call not in view)` is the share of results
    /// whose call is not before them in the view.
    pub by_tool: Vec<TokenShare>,
    /// The messages with the most tokens, the largest first.
    pub largest: Vec<ShownEntry>,
}

/// A share of the tokens of a view.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TokenShare {
    /// The role or the tool.
    pub name: String,
    /// The number of messages.
    pub messages: usize,
    /// The number of tokens.
    pub tokens: u64,
}

impl Perform for Tokens {
    type Response = TokenShares;

    async fn perform(self, service: &Service) -> Result<TokenShares, Error> {
        let conversation = service.conversation(&self.conversation).await?;
        let handle = &conversation.handle;
        let version = match self.at {
            Some(at) => at.0,
            None => handle.version().await?,
        };
        let query = Query { at: QueryAt::Version(version), ..Query::default() };
        let entries = entries_of(handle, &query).await.in_field("at")?;
        let by_role = Role::ALL.map(|role| {
            let of_role = entries.iter().filter(|entry| entry.message.role() == role);
            TokenShare::of(role.as_str(), of_role)
        });
        let by_tool = by_tool(&entries);
        let (messages, tokens) = (entries.len(), entries.iter().map(|entry| entry.tokens).sum());
        let mut largest = entries;
        largest.sort_by_key(|entry| Reverse((entry.tokens, Reverse(entry.index))));
        let count = self.tokens.0.largest.unwrap_or(10);
        largest.truncate(usize::try_from(count).unwrap_or(usize::MAX));
        Ok(TokenShares {
            counter: handle.settings().await?.counter,
            conversation: conversation.name,
            version: version.0,
            messages,
            tokens,
            by_role: by_role.into_iter().filter(|share| share.messages > 0).collect(),
            by_tool,
            largest,
        })
    }
}

/// The share of each tool: the tokens of its calls and results. The largest share is first.
fn by_tool(entries: &[ShownEntry]) -> Vec<TokenShare> {
    let mut names: HashMap<String, String> = HashMap::new();
    let mut shares: HashMap<String, TokenShare> = HashMap::new();
    for entry in entries {
        let calls: Vec<_> = entry.message.tool_calls().collect();
        for call in &calls {
            names.insert(call.id.clone().into_owned(), call.name.clone().into_owned());
        }
        let called = calls.iter().map(|call| call.name.clone().into_owned());
        let answered = entry
            .message
            .tool_result_ids()
            .map(|id| names.get(&*id).cloned().unwrap_or_else(|| "(call not in view)".to_owned()));
        let mut tools: Vec<String> = called.chain(answered).collect();
        tools.sort();
        tools.dedup();
        let parts = tools.len().max(1) as u64;
        for (number, name) in (0..).zip(tools) {
            let part = (entry.tokens + parts - 1 - number) / parts;
            let share = shares.entry(name.clone()).or_insert_with(|| TokenShare {
                name,
                messages: 0,
                tokens: 0,
            });
            share.messages += 1;
            share.tokens += part;
        }
    }
    let mut shares: Vec<TokenShare> = shares.into_values().collect();
    shares.sort_by(|one, other| other.tokens.cmp(&one.tokens).then(one.name.cmp(&other.name)));
    shares
}

impl TokenShare {
    fn of<'a>(name: &str, entries: impl Iterator<Item = &'a ShownEntry>) -> TokenShare {
        let start = TokenShare { name: name.to_owned(), messages: 0, tokens: 0 };
        entries.fold(start, |share, entry| TokenShare {
            messages: share.messages + 1,
            tokens: share.tokens + entry.tokens,
            ..share
        })
    }
}
